/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SLIs were: a bounded list of series with a value for each step of time, newest last, in one
 * file that is replaced as a whole (docs/formats/rules.md). With its user's lock held.
 */
#pragma once

#include "base/error.h"
#include "label/labels.h"

#define HISTORY_SERIES_MAX 500
#define HISTORY_POINTS_MAX 4320 /* three days of minutes */
#define HISTORY_FILE "slis.json"

struct history_point {
    uint32_t time_s;
    float value;
};

struct history_series {
    char *tenant, *sli;
    struct labels labels;
    struct history_point *points; /* by time */
    size_t count, capacity;
};

struct history {
    struct history_series **list;
    size_t count, capacity;
    uint64_t dropped; /* series, for want of room */
    bool unsaved;
};

void history_release(struct history *history);

/* NULL: there is none; with `add`, there is no room: those that ended are removed first. */
struct history_series *history_find(struct history *history, const char *tenant, const char *sli,
                                    const struct labels *labels, bool add, int64_t now_s);

/* Times that are not later than the last are ignored. */
void history_add(struct history *history, struct history_series *series, int64_t time_s,
                 double value);

/* The value at exactly a time; false: none. */
bool history_at(const struct history_series *series, int64_t time_s, double *ret_value);

/* Forgets what is older than a time, and series without points. */
void history_trim(struct history *history, int64_t before_s);

void history_write(const struct history *history, struct buffer *out);
int history_read(struct history *history, const char *text, size_t length, struct error *error);
