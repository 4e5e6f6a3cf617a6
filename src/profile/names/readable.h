/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name that a function is shown and compared by. Mangled names are demangled, and the parts of
 * generated names that differ from process to process are left out: numbers and addresses of
 * classes that a JVM made, type arguments of Go functions. docs/names.md lists the rules.
 *
 * profile_function() applies this to all functions, and keeps the original as `system_name`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Appends the readable name; false, and nothing appended, where that is the name as it is. */
bool name_readable(const char *name, size_t length, struct buffer *ret_name);

/* The same without demangling. The result stays what it is if it is passed here again. */
bool name_without_generated(const char *name, size_t length, struct buffer *ret_name);

/* What profile_function() calls a function whose source gives it these names, of which either may
 * be empty; false, and nothing appended: its own name, as it is. Whoever gives two names has
 * demangled already. */
struct name_text {
    const char *data;
    size_t length;
};
bool name_of_function(struct name_text own, struct name_text system, struct buffer *ret_name);
