/* SPDX-License-Identifier: Apache-2.0 */
/* A function of PHP, or one that is built in, in another process: its class, name and file. */
#pragma once

#include "runtime/codes.h"
#include "runtime/php/binary.h"

/* A runtime_code_read_fn; the context is a struct php_binary. */
bool php_code_read(const void *context, const struct runtime_memory *memory,
                   const struct runtime_mark *mark, struct arena *arena,
                   struct runtime_code *ret_code);
