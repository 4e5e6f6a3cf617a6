/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions from users and from profiles, for filters, selectors, relabelling and
 * redaction: PCRE2 with match limits, so that no expression can hold the program up. One can be
 * used by many threads at once, and whoever asks learns whether a limit was met: a filter then
 * says "no match", but redaction must not.
 *
 * Prometheus's expressions are RE2's, matched against the whole text, with "." matching line
 * breaks too. PCRE2 understands those and more (back references, look-around).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Groups that can be told apart, the whole match among them. */
#define REGEX_GROUPS_MAX 32

struct regex;

struct regex_match {
    size_t count; /* groups in the expression, and one for the whole */
    struct {
        size_t start, end; /* SIZE_MAX, both: this group took no part */
    } groups[REGEX_GROUPS_MAX];
};

enum regex_result { REGEX_NO_MATCH, REGEX_MATCH, REGEX_LIMIT };

/* `anchored`: it has to match the whole text, as in Prometheus. `what` names the setting in error
 * messages: "the matcher of host", "--focus". */
int regex_new(const char *expression, bool anchored, const char *what, struct regex **ret_regex,
              struct error *error);
void regex_free(struct regex *regex);
#define _cleanup_regex_ __attribute__((cleanup(regex_free_pointer)))
static inline void regex_free_pointer(struct regex **regex)
{
    regex_free(*regex);
}

/* The first match at or after `from`. `ret_match` may be NULL; it is untouched without a match. */
enum regex_result regex_find(const struct regex *regex, const char *text, size_t length,
                             size_t from, struct regex_match *ret_match);

static inline bool regex_matches(const struct regex *regex, const char *text, size_t length)
{
    return regex_find(regex, text, length, 0, NULL) == REGEX_MATCH;
}

/* Appends the template with $1, ${1}, $name and ${name} replaced by groups, by Go's rules: $$ is a
 * dollar sign, a name is as long as it can be ($1x is ${1x}), an unknown group is empty, and what
 * is no reference stays as it is. */
void regex_expand(const struct regex *regex, const char *template, const char *text,
                  const struct regex_match *match, struct buffer *out);

/* Is there a $reference in it? */
bool regex_template_refers(const char *template);

/* ---- many texts ---- */

/* The limit on the cost of all expressions of one query, shared by its threads. */
struct match_budget {
    int64_t limit_ns;             /* of CPU time */
    const atomic_bool *cancelled; /* NULL: never */
    _Atomic int64_t used_ns;
};
#define MATCH_BUDGET_NS 1000000000ll /* for one request of a client */

/* One thread's share of it, from begin to end. */
struct matching {
    struct match_budget *budget; /* NULL: without limit */
    int64_t looked_ns, cpu_ns;   /* when the CPU time was looked at, and what it was */
};

void matching_begin(struct matching *matching, struct match_budget *budget);
void matching_end(struct matching *matching);

/* To be asked before each match: -EDOM when the budget is used up, -ECANCELED. */
int matching_check(struct matching *matching, struct error *error);
