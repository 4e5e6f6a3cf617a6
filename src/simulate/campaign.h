/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of the fleet against a server: who sends when, again after what refusal, and what came of
 * it. Paced by the clock as agents are, or as fast as the server takes it.
 */
#pragma once

#include <signal.h>

#include "base/error.h"
#include "simulate/fleet.h"

#define CAMPAIGN_STATUSES 600

struct campaign_options {
    struct fleet_options fleet;
    const char *url, *token; /* token: NULL for none */
    uint32_t rounds;
    bool paced;         /* one round takes fleet.interval_ns; else as fast as it goes */
    double rate;        /* uploads a second at most when not paced; 0: no bound */
    uint32_t in_flight; /* uploads at once when not paced */
    bool prime;         /* send every stack once before, which isn't counted */
    bool prepare;       /* make all uploads before the first is sent */
    int server_pid;     /* the server to measure; 0: none */
    /* True: send nothing more, and wait a moment only for answers that are still to come. */
    const volatile sig_atomic_t *stop;
    /* Called now and then; may be NULL. */
    void (*progress)(void *context, const char *doing, uint64_t done, uint64_t all);
    void *progress_context;
};

struct campaign_result {
    uint64_t uploads, acknowledged, repeated_tries; /* `uploads`: sent, each counted once */
    uint64_t rows, windows;                         /* acknowledged */
    uint64_t primed_rows;
    uint64_t bodies_bytes;               /* of acknowledged uploads */
    uint64_t late;                       /* paced, but sent a second or more after their time */
    uint64_t answers[CAMPAIGN_STATUSES]; /* by status; [0]: the connection broke */
    char *texts[CAMPAIGN_STATUSES];      /* of the first such answer */
    uint64_t given_up;                   /* neither acknowledged nor refused in the end */
    double seconds;                      /* from the first upload to the last answer */
    double cpu_seconds;                  /* of the simulator meanwhile */
    double server_cpu_seconds;           /* meanwhile; < 0: unknown */
    double server_maintenance_seconds;   /* of these, compaction and rollups */
    uint64_t server_memory, server_peak_memory; /* resident, at the end and at most; 0: unknown */
    double latency_p50_ms, latency_p99_ms;
    struct fleet_sum *sums; /* by service: all that was acknowledged, priming included */
    uint32_t sum_count;
};

/* Fails when the server can't be reached at all; refusals are results. */
int campaign_run(const struct campaign_options *options, struct campaign_result *ret_result,
                 struct error *error);
void campaign_result_release(struct campaign_result *result);
