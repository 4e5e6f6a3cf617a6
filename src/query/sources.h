/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process seen by several observers is counted once: of a service whose values of one type come
 * from several sources (the label __source__), an answer uses one for each pod or host, or one for
 * all where these are not known. docs/covered-time.md has the rule. A selector on __source__
 * decides otherwise.
 */
#pragma once

#include "base/buffer.h"
#include "store/store.h"

#define QUERY_SOURCES_SEPARATOR "\n"

struct query_sources {
    struct query_service { /* a service with several sources */
        char *service;
        char *source;   /* the first choice */
        const char *by; /* the label whose values have different sources; NULL: one for all */
        char *others;   /* used where the first choice is not; NULL: none */
    } * services;
    size_t count, capacity;
    struct store_exclusion *excluded; /* what is left out, in order; texts are owned */
    size_t excluded_count, excluded_capacity;
};

void query_sources_release(struct query_sources *sources);

/* Chooses, and has the selection leave the others out; `sources` must outlive it. */
int query_sources_choose(struct query_sources *sources, struct store *store,
                         struct store_selection *selection, const struct store_limits *limits,
                         struct error *error);
