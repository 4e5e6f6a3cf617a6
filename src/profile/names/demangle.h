/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of C++ and Rust functions as people write them: with namespaces and template arguments,
 * without parameters, return types and Rust's hashes, so that they read as perf's do. The suffixes
 * of a C++ function's compiler-made parts (.part.0, .cold) go too: it is one function.
 */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"

/* A longer name stays as it is, on either side. Names beyond about a thousand bytes meet the
 * library's own limit on recursion before, where they are C++. */
#define DEMANGLE_INPUT_MAX 4096
#define DEMANGLE_OUTPUT_MAX 16384

/* Appends the readable name; false, and nothing appended, when there is none. */
bool demangle(const char *name, struct buffer *ret_name);
