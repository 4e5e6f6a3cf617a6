/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's sampling while it is within its budget: the rates and collectors of its settings,
 * changed by the server's order within this host's limits. The guard takes from that what costs too
 * much.
 */
#pragma once

#include <stdbool.h>

#include "agent/settings/settings.h"

#define SAMPLING_REASON_BYTES 257
#define SAMPLING_TEXT_BYTES 400

/* The server's order. Zero is none: everything as the settings say. */
struct sampling_order {
    bool given;
    unsigned rate_hz, wall_rate_hz; /* 0: as the settings say */
    bool has_wall, wall;
    char reason[SAMPLING_REASON_BYTES]; /* without control characters */
};

struct sampling {
    unsigned rate_hz;
    bool wall;
    unsigned wall_rate_hz;
    bool heap;    /* of processes that have memory probes */
    bool faults;  /* growth of resident memory */
    bool rss;     /* resident memory */
    bool ordered; /* by the server, whether or not it makes a difference */
    bool cut;     /* the order asked for more than this host's limits permit */
};

/* The order within the limits of the settings. */
struct sampling sampling_within(const struct agent_settings *settings,
                                const struct sampling_order *order);

/* The modes of capture (enum capture_mode) that it takes; all but CPU may be missing. */
unsigned sampling_modes(const struct sampling *sampling);
/* Whether a collector of this name is wanted. */
bool sampling_wants(const struct sampling *sampling, const char *collector);

bool sampling_same(const struct sampling *a, const struct sampling *b);

/* "9 Hz, wall time at 19 Hz", "9 Hz, wall time off". */
void sampling_describe(const struct sampling *sampling, char *text, size_t room);
/* That, with who wants it: "9 Hz, wall time off, ordered by the server: an incident". */
void sampling_explain(const struct sampling *sampling, const struct sampling_order *order,
                      char ret_text[SAMPLING_TEXT_BYTES]);
