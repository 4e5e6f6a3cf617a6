/* SPDX-License-Identifier: Apache-2.0 */
/* Giving names to addresses: a copy of a profile in which frames say which function they are in. */
#pragma once

#include "profile/profile.h"

/* Fills in `function` (interned in `to`), and what else is known, for a frame of `from`. The frame
 * that is passed has its mapping already in `to`. Frames that stay addresses are left alone. */
typedef void (*profile_namer_fn)(void *context, const struct profile *from,
                                 const struct profile_frame *frame, struct profile *to,
                                 struct profile_frame *renamed);

/* Adds all of `from` to `to`, which is empty at first, with frames that have no function renamed.
 */
int profile_rename(const struct profile *from, profile_namer_fn namer, void *context,
                   struct profile *to, struct error *error);
