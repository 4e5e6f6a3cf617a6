/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selectors in PromQL's form: {a="b", c!="d", e=~"f|g", "h.i"!~`j\d+`,}. Names beyond [a-zA-Z0-9_]
 * are in quotes; a name alone in quotes, {"x"}, selects by __name__, as in Prometheus 3. A label
 * that isn't there is the same as an empty one, and regular expressions match whole values.
 *
 * A parsed selector is only read by matching: threads can share it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "io/regex.h"
#include "label/labels.h"

#define SELECTOR_BYTES_MAX 65536
#define SELECTOR_MATCHERS_MAX 128

enum matcher_kind { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_REGEX, MATCH_NOT_REGEX };

struct matcher {
    enum matcher_kind kind;
    const char *name; /* the selector's; may be pointed elsewhere, at what lives as long */
    const char *value;
    struct regex *regex; /* NULL for = and != */
};

/* Zero-initialised matches everything. */
struct selector {
    struct matcher *matchers;
    size_t count, capacity;
    struct arena arena;
};

void selector_release(struct selector *selector);
#define _cleanup_selector_ _cleanup_(selector_release)

/* All of the text is one selector; blank text is {}. `ret` is untouched on failure. */
int selector_parse(const char *text, size_t length, struct selector *ret, struct error *error);

/* One matcher more. */
int selector_add(struct selector *selector, enum matcher_kind kind, const char *name,
                 const char *value, struct error *error);

/* `value` is the label's, "" when it isn't there. An expression that meets its match limit matches
 * nothing: =~ is then false, and so is !~. For the few values of an agent or a type; queries, which
 * look at many, use matching_test. */
bool matcher_matches(const struct matcher *matcher, const char *value);
bool selector_matches(const struct selector *selector, const struct labels *labels);

/* The same selector as text; equal matchers in equal order give equal texts. */
void selector_write(struct buffer *out, const struct selector *selector);

/* ---- many values ---- */

/* As matcher_matches, within a budget (io/regex.h). -EDOM when an expression takes too many
 * steps for this value, or all have used up the budget; -ECANCELED. */
int matching_test(struct matching *matching, const struct matcher *matcher, const char *value,
                  bool *ret_matches, struct error *error);
