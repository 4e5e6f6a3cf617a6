/* SPDX-License-Identifier: Apache-2.0 */
/* Which library a function is of, read off its binary, its file and its name. */
#pragma once

#include "profile/views/package.h"

/* Empty for a program's own code. A part of the function's texts, or constant. */
struct package library_of(const struct calltree_function *function);
