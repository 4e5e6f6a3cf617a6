/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples by what they belong to: thread names, processes, threads, binaries, or any label. A
 * group's samples get a frame at the root of their stacks for each key, so that trees and pictures
 * are divided by group.
 */
#pragma once

#include "profile/profile.h"

#define PROFILE_GROUP_KEYS_MAX 8

struct profile_group_keys {
    const char *keys[PROFILE_GROUP_KEYS_MAX]; /* "comm", "pid", "binary", or any label's key */
    size_t count;
    char *text; /* what the keys point into */
};

/* From "comm,pid". */
int profile_group_parse(const char *text, struct profile_group_keys *ret_keys, struct error *error);
void profile_group_release(struct profile_group_keys *keys);

/* The details of a profile that groups by these keys need. */
enum profile_detail profile_group_detail(const struct profile_group_keys *keys);

/* The first key that is no label of any sample; NULL when each is, or there are no samples. */
const char *profile_group_missing(const struct profile *profile,
                                  const struct profile_group_keys *keys);

enum profile_group_form {
    PROFILE_GROUP_ROOTS,      /* a frame for each key below all others */
    PROFILE_GROUP_ONLY,       /* one frame for all keys is the whole stack: for tables of groups */
    PROFILE_GROUP_UNDER_ROOT, /* the same above the stack's outermost frame */
};

/* Puts the groups' frames below all stacks: "pid 12", "comm make"; samples without such a label are
 * under "(no KEY)". The binary is that of the innermost frame. */
void profile_group(struct profile *profile, const struct profile_group_keys *keys,
                   enum profile_group_form form);
