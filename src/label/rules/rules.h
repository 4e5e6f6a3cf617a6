/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that happens to a label set between its sender and the store, in the order in which it has to
 * happen: relabelling, allow-list, redaction, limits. One engine for agent and server.
 */
#pragma once

#include "config/settings.h"
#include "label/redact/redact.h"
#include "label/rules/policy.h"
#include "label/rules/relabel.h"

/* Threads can share it; label_rules_apply changes counters and tables only. */
struct label_rules {
    struct relabel relabel;
    struct label_policy *policy;
    struct redactor *redactor;
    bool redact_names; /* names of functions and files are to be redacted, too */
};

/* No relabelling, all names allowed, all detectors on. */
void label_rules_init(struct label_rules *rules);
void label_rules_release(struct label_rules *rules);

/* False: relabelling dropped the set. *ret_reasons (may be NULL) gets a bit, 1 << label_reason, for
 * each kind of thing that the policy had to do. */
bool label_rules_apply(struct label_rules *rules, const char *tenant, int64_t now_ns,
                       struct labels *labels, unsigned *ret_reasons);

/* Reads `relabel_configs`, `labels` and `redact` of a configuration file's top level (or of any
 * section that has them) into rules that are initialised here. docs/labels.md has the keys. What is
 * wrong is added to settings->problems; the rules are then usable, but not what was asked for. */
void label_rules_read(struct settings *settings, struct label_rules *ret_rules);

/* The list of rules under a key, for callers with further such lists: scrape_configs. Appends. */
void relabel_read(struct settings *settings, const char *key, struct relabel *relabel);
