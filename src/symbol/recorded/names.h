/* SPDX-License-Identifier: Apache-2.0 */
/* Names for a recording of addresses, such as perf.data, from the binaries of this machine that are
 * the same: see binaries.h. */
#pragma once

#include "profile/profile.h"

/* Replaces `profile` by one in which addresses have names, which keeps `detail`. The kernel's
 * functions get names if the running kernel is the recorded one, wherever either was loaded, or if
 * perf's cache has its symbols. Code of compilers at run time gets names from their maps. */
int recorded_name(struct profile *profile, enum profile_detail detail, struct error *error);
