/* SPDX-License-Identifier: Apache-2.0 */
/* One part of the call tree: the stacks that begin with given frames. */
#pragma once

#include "profile/naming.h"
#include "profile/profile.h"

#define FOCUS_FRAMES_MAX 4096

/*
 * Takes the values from all samples whose stacks don't begin with these functions, outermost first;
 * names are compared exactly, as the naming has them. False when no stack does: then the profile is
 * untouched.
 */
bool focus_below(struct profile *profile, const struct naming *naming, const char *const *names,
                 size_t count);
