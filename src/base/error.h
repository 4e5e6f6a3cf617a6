/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors that a person will read. A function that can fail returns 0 or a negative errno-style
 * code and fills `struct error` with one complete sentence: what failed, on which file, offset
 * or address, and what to do next. The caller owns the struct; it lives on the stack.
 *
 * Codes in use: -EBADMSG malformed input, -E2BIG a limit was met, -ENOTSUP recognised but not
 * supported, -EINVAL wrong usage, and whatever errno the system gave.
 */
#pragma once

#include <errno.h>
#include <stdarg.h>

#define ERROR_TEXT_BYTES 512

struct error {
    int code; /* 0 or negative */
    char text[ERROR_TEXT_BYTES];
};

/* Fills `error` (which may be NULL) and returns `code`, so that `return error_set(...)` reads well.
 * Text that doesn't fit is cut. */
int error_set(struct error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with ": ", strerror(-code) and a full stop appended. */
int error_set_errno(struct error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text that is already there: the layer that knows the file's name adds
 * it once. Returns the code. */
int error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
