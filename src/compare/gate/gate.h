/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate: limits, and whether a comparison keeps them. A limit is failed when it is certainly
 * exceeded, kept when it certainly isn't or when nothing points to it, and undecided between.
 */
#pragma once

#include "base/buffer.h"
#include "compare/compare.h"
#include "config/yaml.h"
#include "io/regex.h"

enum gate_kind {
    GATE_GROWTH,      /* new / base - 1, of self and total */
    GATE_SHARE,       /* of the new side's total, by total */
    GATE_CORES,       /* of CPU time, by total */
    GATE_PER_REQUEST, /* value per request, by total */
    GATE_KINDS,
};
extern const char *const gate_kind_names[GATE_KINDS];

enum gate_outcome { GATE_PASSED, GATE_FAILED, GATE_UNDECIDED };
extern const char *const gate_outcome_names[];

struct gate_limit {
    char *name;    /* for reports */
    char *pattern; /* NULL: all functions */
    struct regex *function;
    enum gate_kind kind;
    double limit;
};

struct gate_limits {
    struct gate_limit *limits;
    size_t count, capacity;
};
#define GATE_LIMITS_MAX 1000
#define GATE_LIMIT_MAX 1e15

/* A gate on growth is undecided unless it would find a growth of four times the limit, or of this
 * where that is more, four times out of five. */
#define GATE_SENSITIVITY 0.2

void gate_limits_release(struct gate_limits *limits);
#define _cleanup_gate_limits_ __attribute__((cleanup(gate_limits_release)))

/* Adds a limit; -EINVAL for a bad expression or a limit that isn't a number of at least 0. */
int gate_limits_add(struct gate_limits *limits, const char *name, const char *pattern,
                    enum gate_kind kind, double limit, struct error *error);

/* Adds what a budget file names: docs/comparison.md has its keys. `ret` problems, one line each,
 * are in the error's place: -EINVAL and the text of all of them. */
int gate_limits_read(struct gate_limits *limits, const char *path, struct buffer *ret_problems,
                     struct error *error);

/* "5%" or "0.05". A number of at least 1 needs the sign: few who write 5 mean 500%. */
bool gate_parse_share(const char *text, double *ret_share);

struct gate_check {
    const struct gate_limit *limit;
    const char *function; /* NULL: all samples together */
    const char *measure;  /* "self", "total" or "sensitivity": the smallest growth it would find */
    double base, value, change_low, change_high; /* normalised; of growth limits the growth's */
    double growth;
    enum gate_outcome outcome;
    double p;
    /* Additional data that would settle an undecided limit: as a multiple of each side's,
     * and in covered seconds (0: unknown). INFINITY: it is as large as the limit. */
    double more, more_seconds;
};

struct gate_options {
    enum compare_normalize normalize; /* of growth */
    double min_share, false_discovery_rate;
};

struct gate_result {
    enum gate_outcome outcome;
    struct gate_check *checks; /* failed first, then undecided, then passed */
    size_t count, capacity;
    size_t failed, undecided;
    double more_seconds, more_samples; /* that would settle all undecided checks */
};

/* -EINVAL when a limit can't be judged: a sentence says why. `comparisons` are made by the gate as
 * limits need them and are the caller's to release; all names live as long as the table. */
int gate_judge(const struct compare_table *table, const struct gate_options *options,
               const struct gate_limits *limits, const char *unit,
               struct comparison comparisons[static COMPARE_NORMALIZES],
               struct gate_result *ret_result, struct error *error);
void gate_result_release(struct gate_result *result);
#define _cleanup_gate_result_ __attribute__((cleanup(gate_result_release)))

/* Reports. `title` names both sides. */
void gate_write_text(const struct gate_result *result, const struct comparison *comparison,
                     struct buffer *out);
void gate_write_json(const struct gate_result *result, const struct comparison *comparison,
                     struct buffer *out);
void gate_write_markdown(const struct gate_result *result, const struct comparison *comparison,
                         struct buffer *out);
void gate_write_junit(const struct gate_result *result, const struct comparison *comparison,
                      struct buffer *out);
