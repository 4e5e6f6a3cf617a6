/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redaction: what looks like a secret or like personal data is replaced by a word that says what it
 * was, "[email]", before it is stored or leaves the host. First come the user's rules in their
 * order, then the detectors (label/redact/detect.h). Every replacement is counted by rule.
 *
 * A rule whose expression meets its match limit replaces the whole text: when in doubt, nothing
 * gets out. Time is linear in the length of a text for the detectors, and bounded for each rule.
 * Once made, threads can share a redactor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "label/labels.h"
#include "label/redact/detect.h"

#define REDACT_RULES_MAX 200

/* Where a text is from. Names are of functions and files, which have no long random texts, card
 * numbers and keys worth a look, but much that looks like them. */
enum redact_place { REDACT_LABEL, REDACT_NAME, REDACT_COMMAND };

struct redactor;

/* With all detectors on and the exceptions that docs/labels.md lists. */
struct redactor *redactor_new(void);
void redactor_free(struct redactor *redactor);

/* Detectors, before the redactor is used: off or on, and names of labels (globs) whose values one
 * leaves alone, beside those that are known. */
void redactor_enable(struct redactor *redactor, enum detector detector, bool enabled);
void redactor_except(struct redactor *redactor, enum detector detector, const char *label_glob);

struct redact_rule_config {
    const char *name;          /* for metrics, and for the default replacement */
    const char *regex;         /* found anywhere, every time */
    const char *replacement;   /* with $1; NULL: "[name]" */
    const char *const *labels; /* globs; none: all labels, names and commands */
    size_t label_count;
};
int redactor_add(struct redactor *redactor, const struct redact_rule_config *config,
                 struct error *error);

/* True: something was replaced, and the new text is in *out, which is emptied first. `label` is the
 * label's name, NULL for other places. */
bool redactor_text(struct redactor *redactor, enum redact_place place, const char *label,
                   const char *text, size_t length, struct buffer *out);

/* All values of a set; how many changed. Names that start with "__" are left alone. */
size_t redactor_labels(struct redactor *redactor, struct labels *labels);

/* Replacements: by each rule and detector, for Prometheus, and in all. */
void redactor_write_metrics(const struct redactor *redactor, const char *metric,
                            struct buffer *out);
uint64_t redactor_total(const struct redactor *redactor);
