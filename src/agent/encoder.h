/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that encodes windows as requests and puts them into the spool. Windows wait for it in
 * a short queue. Its one-time work, such as reading symbol tables, is paced.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/guard/watchdog.h"
#include "agent/naming.h"
#include "agent/send/spool.h"
#include "agent/window.h"

/* All of them outlive the encoder. The namer is its thread's alone while it runs, but for what
 * naming.h permits to others. */
struct encoder_options {
    struct namer *namer;
    struct spool *spool;
    struct watchdog *watchdog;
    double learning_share; /* of one CPU, for what is learned once */
};

struct encoder_stats {
    uint64_t windows; /* that were handed over */
    uint64_t dropped; /* because the last ones were not done yet, or could not be kept */
    uint64_t bytes;   /* of requests */
    int64_t cpu_ns;   /* that making requests took */
};

struct encoder;

int encoder_start(const struct encoder_options *options, struct encoder **ret_encoder,
                  struct error *error);
/* Encodes the windows in the queue first. Takes NULL, as encoder_stats() does. */
void encoder_stop(struct encoder *encoder);

/* ---- from any thread ---- */

/* Takes a window over, to be sent. */
void encoder_take(struct encoder *encoder, struct window *window);
/* Whether a window of that suffix is in the queue or being encoded. */
bool encoder_has(struct encoder *encoder, const char *suffix);
/* Forgets what can be looked up again, when no window waits. */
void encoder_drop_caches(struct encoder *encoder);
struct encoder_stats encoder_stats(struct encoder *encoder);
