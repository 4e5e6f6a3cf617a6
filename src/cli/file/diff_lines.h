/* SPDX-License-Identifier: Apache-2.0 */
/* `assay diff --lines`: one function's lines as if they were functions. */
#pragma once

#include "base/error.h"
#include "profile/profile.h"

#define DIFF_LINES_ELSEWHERE "(other functions)"
#define DIFF_LINES_BELOW "(called from here)"

/* Whether a row is one of the lines, and not what stands for everything else. */
bool diff_lines_is_line(const char *name);

/* Replaces a profile, which has its lines, by one whose frames are the lines of `function` that
 * each stack goes through. Returns how many samples have it. */
size_t diff_lines_of(struct profile *profile, const char *function);
