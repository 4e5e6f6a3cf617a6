/* SPDX-License-Identifier: Apache-2.0 */
/* Giving names to addresses: a copy of a profile in which frames say which function they are in. */
#pragma once

#include "profile/profile.h"

#define PROFILE_EXPANSION_MAX 128 /* frames that one may become */

/*
 * Names a frame of `from` that has no function. An address may be in a function that was inlined
 * into others, so one frame becomes several: `renamed` is filled with them, the outermost first,
 * and how many is returned (at least 1). renamed[0] comes as a copy whose mapping is already in
 * `to`, so a frame that stays an address is left alone. Functions are to be interned in `to`.
 */
typedef size_t (*profile_namer_fn)(void *context, const struct profile *from, uint32_t frame,
                                   struct profile *to,
                                   struct profile_frame renamed[PROFILE_EXPANSION_MAX]);

/* Adds all of `from` to `to`, which is empty at first, with frames that have no function renamed.
 */
int profile_rename(const struct profile *from, profile_namer_fn namer, void *context,
                   struct profile *to, struct error *error);

/* The same, of all frames: the namer is asked about those that have a function, too, and returns 0
 * for those that keep it; renamed[0] comes without. `to` need not be empty. */
int profile_rename_all(const struct profile *from, profile_namer_fn namer, void *context,
                       struct profile *to, struct error *error);
