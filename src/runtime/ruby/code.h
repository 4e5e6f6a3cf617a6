/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence of Ruby's instructions in another process: a method, a block, the body of a class or
 * of a file. */
#pragma once

#include "runtime/codes.h"
#include "runtime/ruby/binary.h"

/* A runtime_code_read_fn; the context is a struct ruby_binary. */
bool ruby_code_read(const void *context, const struct runtime_memory *memory,
                    const struct runtime_mark *mark, struct arena *arena,
                    struct runtime_code *ret_code);
