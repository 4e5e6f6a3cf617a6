/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and cgroups that exceeded a limit and are recorded in less detail, for people to read. One
 * thread at a time.
 */
#pragma once

#include "capture/record/vocabulary.h"

#define EXCESS_MAPPINGS "mappings"

struct excess_list {
    struct excess_entry {
        struct capture_excess excess;
        int64_t noted_ns; /* when it last happened */
    } list[CAPTURE_EXCESS_MAX];
    size_t count;
};

/* A process that has just done too much of `what`, `count` times. In place of what happened longest
 * ago where there is no room. */
void excess_note(struct excess_list *list, uint32_t pid, const char *what, uint64_t count,
                 int64_t now_ns);
/* The cgroup that was noted last for a user; "" without any. */
const char *excess_cgroup(const struct excess_list *list, const char *what, uint32_t user);
/* Forgets what has not happened for some minutes. */
void excess_tidy(struct excess_list *list, int64_t now_ns);
