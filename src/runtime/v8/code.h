/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JavaScript function of another process: its name, file and line. The garbage collector moves
 * objects: what was read counts only if all of it has the right types, and is the same before and
 * after.
 */
#pragma once

#include "runtime/codes.h"
#include "runtime/v8/lines.h"

#define V8_NAME_MAX 512 /* characters; longer names are cut */

/* A runtime_code_read_fn; the context is a struct v8_context. Of the mark, the address is that of
 * the function, the name and the file (its script) are tagged pointers, and the rest is 0.
 * Functions without a name are called "(anonymous) main.js:12". The line is the one where the
 * function begins: V8 doesn't keep the lines of its instructions. */
bool v8_code_read(const void *context, const struct runtime_memory *memory,
                  const struct runtime_mark *mark, struct arena *arena,
                  struct runtime_code *ret_code);
