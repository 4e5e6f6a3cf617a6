/* SPDX-License-Identifier: Apache-2.0 */
/* Where a function belongs, read off its name: for colours and for tables by package. */
#pragma once

#include "profile/views/calltree.h"

/* A part of the function's own texts; not NUL-terminated. */
struct package {
    const char *text;
    size_t length;
};

/* The package, namespace, binary or directory that a function belongs to; empty when nothing says.
 */
struct package package_of(const struct calltree_function *function);
