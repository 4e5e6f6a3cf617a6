/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a service is slow or large at a time: which of its symptoms rose, which functions are
 * responsible, since which version, and traces that show it. docs/explain.md. Private to
 * src/server.
 */
#pragma once

#include "server/compare/compared.h"
#include "server/explain/symptoms.h"
#include "server/watch/cause.h"
#include "server/watch/versions.h"

#define EXPLAIN_TRACES 5

struct explanation {
    struct server *server;
    const char *tenant, *service;
    int64_t from_ns, to_ns;
    struct symptoms symptoms;
    struct compared compared;          /* of the chosen symptom */
    bool made;                         /* it was begun */
    const char *query;                 /* that was compared */
    const struct compare_row **causes; /* the greatest change first */
    size_t cause_count;
    bool certain;                     /* false: the greatest changes, which may be noise */
    size_t undecided;                 /* functions that may have grown */
    struct version_list versions;     /* of the service, in the ranges that are compared */
    const struct version_span *since; /* the first version with the change; NULL: not known */
    struct explain_trace {
        struct profile_link link;
        int64_t value, time_ns;
    } traces[EXPLAIN_TRACES]; /* with the first cause; the greatest first */
    size_t trace_count;
};

/* In the handler of a request that was admitted (ADMIT_COMPARISON). The explanation has its first
 * members set, and isn't moved. */
int explain_make(struct explanation *explanation, struct error *error);
void explain_release(struct explanation *explanation);

/* The answer in words, some lines. */
void explain_write_text(const struct explanation *explanation, struct buffer *out);

server_handler explain_get;
