/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders for rates and collectors: "9 Hz and no wall time, for agents that match". Of all that
 * match an agent the last one applies, as a whole; without any, agents do as their settings say.
 * Agents keep within the limits of their own settings, whatever is ordered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/json.h"
#include "io/json_write.h"
#include "label/selector.h"

#define SAMPLING_RATE_MAX 999  /* as of an agent's settings */
#define SAMPLING_RULES_MAX 256 /* of a tenant */
#define SAMPLING_TEXT_BYTES 257
#define SAMPLING_NAME_BYTES 65

/* An order. All unset: agents return to their own settings. */
struct sampling_wish {
    uint64_t rate_hz, wall_rate_hz; /* 0: not set */
    bool has_wall, wall;
};

struct sampling_rule {
    struct sampling_wish wish;
    struct selector selector; /* over the agent's labels */
    char *text;               /* of the selector */
    int64_t since_ns;
    char by[SAMPLING_NAME_BYTES];
    char reason[SAMPLING_TEXT_BYTES];
};

struct sampling_rules {
    struct sampling_rule *list;
    size_t count, capacity;
};

void sampling_rules_release(struct sampling_rules *rules);

/* A rule for all agents replaces those before it. -EINVAL, or -EBUSY when there are too many. */
int sampling_rules_add(struct sampling_rules *rules, const struct sampling_wish *wish,
                       const char *selector, const char *by, const char *reason, int64_t now_ns,
                       struct error *error);

bool sampling_wish_empty(const struct sampling_wish *wish);
/* {"rate":9,"wall":false,"wall_rate":5}: unknown members and rates beyond the limit are errors. */
int sampling_wish_read(struct json *json, struct sampling_wish *wish);
void sampling_wish_members(const struct sampling_wish *wish, struct json_writer *json);
/* "9 Hz, wall time off at 5 Hz"; "own settings" */
void sampling_wish_describe(const struct sampling_wish *wish, char *text, size_t room);

/* {"sampling":{...},"since":...,...}, with times in seconds, or nanoseconds for the file. */
void sampling_rules_write(const struct sampling_rules *rules, bool for_file,
                          struct json_writer *json);
/* One rule of the file. */
int sampling_rule_read(struct json *json, struct sampling_rules *rules);
