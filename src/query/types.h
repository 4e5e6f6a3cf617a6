/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile types as labels, as Pyroscope has them on every series: __profile_type__ is the whole id,
 * and the others are its parts. The store knows types apart from labels, so that selectors which
 * name these are settled before it is asked.
 */
#pragma once

#include "label/selector.h"

#define QUERY_TYPE_LABELS 6
extern const char *const query_type_labels[QUERY_TYPE_LABELS]; /* by name */

/* The part of a type for such a label; NULL for other labels. Its length is `ret_length`. */
const char *query_type_value(const char *id, const char *label, size_t *ret_length);

/* Whether a selector has matchers of such labels, and whether a type meets those. */
bool query_types_selected(const struct selector *selector);
bool query_type_matches(const struct selector *selector, const char *id);

/* Takes those matchers out. */
void query_types_settle(struct selector *selector);
