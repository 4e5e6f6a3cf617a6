/* SPDX-License-Identifier: Apache-2.0 */
/* Which versions of which services sent profiles, from the label `version` of their series. */
#pragma once

#include "store/store.h"

#define VERSIONS_MAX 20000 /* of a tenant */

struct version_span {
    char *service, *version;
    int64_t first_ns, last_ns; /* starts of the first and the last window */
};

struct version_list {
    struct version_span *spans; /* by service, then by first_ns */
    size_t count, capacity;
    uint64_t left_out; /* series whose service or version is too long, or one too many */
};

/* Those with data in a range of time. Recordings, and series without a version, don't count. */
int version_list_read(struct version_list *list, struct store *store, const char *tenant,
                      int64_t from_ns, int64_t to_ns, struct error *error);
void version_list_release(struct version_list *list);
