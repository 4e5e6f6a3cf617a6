/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relabelling in Prometheus's form: a list of rules that are applied in order, each changing the
 * set or dropping it. Defaults, checks and results are Prometheus's (docs/labels.md says where we
 * differ). Rules are only read once they are made: threads can share them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "label/labels.h"

#define RELABEL_RULES_MAX 1000
#define RELABEL_SOURCES_MAX 64
#define RELABEL_VALUE_BYTES_MAX 65536 /* of a replacement; the rest is cut off */

enum relabel_action {
    RELABEL_REPLACE,
    RELABEL_KEEP,
    RELABEL_DROP,
    RELABEL_HASHMOD,
    RELABEL_LABELMAP,
    RELABEL_LABELDROP,
    RELABEL_LABELKEEP,
    RELABEL_LOWERCASE,
    RELABEL_UPPERCASE,
    RELABEL_KEEPEQUAL,
    RELABEL_DROPEQUAL,
    RELABEL_ACTIONS,
};

/* The parts of a rule. NULL (and 0 for the modulus) is "not given": the default. */
struct relabel_config {
    const char *const *source_labels;
    size_t source_count;
    const char *separator; /* ";" */
    const char *regex;     /* "(.*)" */
    uint64_t modulus;
    const char *target_label;
    const char *replacement; /* "$1" */
    enum relabel_action action;
};

struct relabel_rule;

/* Zero-initialised changes nothing. */
struct relabel {
    struct relabel_rule *rules;
    size_t count, capacity;
};

void relabel_release(struct relabel *relabel);

/* Checks the rule and appends it; copies what it keeps. */
int relabel_add(struct relabel *relabel, const struct relabel_config *config, struct error *error);

/* False: the set was dropped; it is then in some state between. */
bool relabel_apply(const struct relabel *relabel, struct labels *labels);

/* "replace", ... */
const char *relabel_action_name(enum relabel_action action);
