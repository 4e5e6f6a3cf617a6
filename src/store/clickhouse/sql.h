/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of SQL. Every text from outside goes through sql_text(). */
#pragma once

#include "base/buffer.h"
#include "store/store.h"

/* A literal in quotes; bytes beyond printable ASCII are escaped. */
void sql_text_n(struct buffer *sql, const char *text, size_t length);
void sql_text(struct buffer *sql, const char *text);

/* A name in backquotes. */
void sql_name(struct buffer *sql, const char *name);

/* "name IN (1,2,3)"; a list without members matches nothing. */
void sql_in(struct buffer *sql, const char *name, const uint64_t *list, size_t count);

/* " AND day BETWEEN .. AND hour .. AND time .." of [from, to). */
void sql_range(struct buffer *sql, int64_t from_ns, int64_t to_ns);

/* " AND period BETWEEN ..": the periods that the range touches. */
void sql_periods(struct buffer *sql, int64_t from_ns, int64_t to_ns);

/* The day, hour and period of a time. Names, stacks and frames are announced again in each period,
 * so that retention can remove what only older samples use. */
#define HOUR_NS 3600000000000ll
#define DAY_NS (24 * HOUR_NS)
#define PERIOD_DAYS 32
#define DAY_LAST 65535

/* A row is in the partition of its day, or in that of the next: see choose_day(). */
#define DAYS_AHEAD 1

static inline uint16_t day_of(int64_t time_ns)
{
    int64_t day = time_ns < 0 ? 0 : time_ns / DAY_NS;
    return (uint16_t)(day > DAY_LAST ? DAY_LAST : day);
}

static inline uint32_t hour_of(int64_t time_ns)
{
    return time_ns < 0 ? 0 : (uint32_t)(time_ns / HOUR_NS);
}

static inline uint16_t period_of(int64_t time_ns)
{
    return day_of(time_ns) / PERIOD_DAYS;
}
