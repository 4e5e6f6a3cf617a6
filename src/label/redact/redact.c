// SPDX-License-Identifier: Apache-2.0
// Rules and detectors over texts: see redact.h.

#include "label/redact/redact.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/regex.h"
#include "label/glob.h"
#include "label/redact/redact_rules.h"

/* Beyond these a rule takes the whole text. */
#define REPLACEMENTS_MAX 1000
#define REPLACED_BYTES_MAX (1u << 20)

struct rule {
    char *name, *replacement, *whole;
    struct regex *regex;
    struct globs labels;
    _Atomic uint64_t count;
};

struct redactor {
    struct rule rules[REDACT_RULES_MAX];
    size_t rule_count;
    unsigned detectors; /* 1 << detector */
    struct globs exceptions[DETECTORS];
    _Atomic uint64_t counts[DETECTORS];
};

struct redactor *redactor_new(void)
{
    struct redactor *redactor = memory_zalloc(1, sizeof(*redactor));
    redactor->detectors = (1u << DETECTORS) - 1;
    for (size_t i = 0; redact_exceptions[i].label; i++)
        redactor_except(redactor, redact_exceptions[i].detector, redact_exceptions[i].label);
    return redactor;
}

void redactor_free(struct redactor *redactor)
{
    if (!redactor)
        return;
    for (size_t i = 0; i < redactor->rule_count; i++) {
        struct rule *rule = &redactor->rules[i];
        free(rule->name);
        free(rule->replacement);
        free(rule->whole);
        regex_free(rule->regex);
        globs_release(&rule->labels);
    }
    for (size_t i = 0; i < DETECTORS; i++)
        globs_release(&redactor->exceptions[i]);
    free(redactor);
}

void redactor_enable(struct redactor *redactor, enum detector detector, bool enabled)
{
    unsigned bit = 1u << detector;
    redactor->detectors = enabled ? redactor->detectors | bit : redactor->detectors & ~bit;
}

void redactor_except(struct redactor *redactor, enum detector detector, const char *label_glob)
{
    globs_add(&redactor->exceptions[detector], label_glob);
}

int redactor_add(struct redactor *redactor, const struct redact_rule_config *config,
                 struct error *error)
{
    if (redactor->rule_count == REDACT_RULES_MAX)
        return error_set(error, -E2BIG, "There are more than %d redaction rules.",
                         REDACT_RULES_MAX);
    char what[128];
    snprintf(what, sizeof(what), "the redaction rule %.100s", config->name);
    struct rule *rule = &redactor->rules[redactor->rule_count];
    int result = regex_new(config->regex, false, what, &rule->regex, error);
    if (result < 0)
        return result;
    _cleanup_buffer_ struct buffer whole = {0};
    buffer_printf(&whole, "[%s]", config->name);
    rule->name = memory_strdup(config->name);
    rule->whole = memory_strdup(buffer_text(&whole));
    rule->replacement = config->replacement ? memory_strdup(config->replacement) : NULL;
    for (size_t i = 0; i < config->label_count; i++)
        globs_add(&rule->labels, config->labels[i]);
    redactor->rule_count++;
    return 0;
}

/* Puts the text with its replacements into *out; false when nothing was replaced. */
static bool apply_rule(struct rule *rule, const char *text, size_t length, struct buffer *out)
{
    size_t at = 0, copied = 0;
    uint64_t count = 0;
    struct regex_match match;
    enum regex_result result;
    out->length = 0;
    while ((result = regex_find(rule->regex, text, length, at, &match)) == REGEX_MATCH) {
        size_t start = match.groups[0].start, end = match.groups[0].end;
        if (start == SIZE_MAX || start < copied || ++count > REPLACEMENTS_MAX ||
            out->length > REPLACED_BYTES_MAX) {
            result = REGEX_LIMIT;
            break;
        }
        buffer_add(out, text + copied, start - copied);
        if (rule->replacement)
            regex_expand(rule->regex, rule->replacement, text, &match, out);
        else
            buffer_add_text(out, rule->whole);
        copied = at = end;
        if (start == end) /* an empty match: on by a character, or it would be found again */
            at += end < length ? MAX(utf8_sequence(text + end, length - end), (size_t)1) : 1;
        if (at > length)
            break;
    }
    if (result == REGEX_LIMIT) {
        out->length = 0;
        buffer_add_text(out, rule->whole);
        copied = length;
        count = 1;
    }
    if (!count)
        return false;
    buffer_add(out, text + copied, length - copied);
    atomic_fetch_add_explicit(&rule->count, count, memory_order_relaxed);
    return true;
}

static unsigned detectors_for(const struct redactor *redactor, enum redact_place place)
{
    unsigned detectors = redactor->detectors;
    if (place == REDACT_NAME)
        detectors &= ~(1u << DETECT_SECRET | 1u << DETECT_ASSIGNMENT | 1u << DETECT_CARD);
    if (place == REDACT_COMMAND)
        detectors |= DETECT_OPTIONS;
    return detectors;
}

static void count(struct redactor *redactor, enum detector detector)
{
    atomic_fetch_add_explicit(&redactor->counts[detector], 1, memory_order_relaxed);
}

static bool apply_detectors(struct redactor *redactor, unsigned detectors, const char *label,
                            const char *text, size_t length, struct buffer *out)
{
    struct detect_span span;
    size_t at = 0;
    bool changed = false;
    out->length = 0;
    while (detect_next(text, length, at, detectors, &span)) {
        /* Exceptions are checked after a find, which is rare. */
        if (label && globs_match(&redactor->exceptions[span.detector], label)) {
            detectors &= ~(1u << span.detector);
            continue;
        }
        buffer_add(out, text + at, span.start - at);
        buffer_add_text(out, redact_detectors[span.detector].replacement);
        count(redactor, span.detector);
        at = span.end;
        changed = true;
    }
    if (changed)
        buffer_add(out, text + at, length - at);
    return changed;
}

bool redactor_text(struct redactor *redactor, enum redact_place place, const char *label,
                   const char *text, size_t length, struct buffer *out)
{
    _cleanup_buffer_ struct buffer other = {0};
    bool changed = false;
    if (label && length && text[0] != '[' && redactor->detectors & 1u << DETECT_ASSIGNMENT &&
        detect_secret_name(label, strlen(label)) &&
        !globs_match(&redactor->exceptions[DETECT_ASSIGNMENT], label)) {
        out->length = 0;
        buffer_add_text(out, redact_detectors[DETECT_ASSIGNMENT].replacement);
        count(redactor, DETECT_ASSIGNMENT);
        return true;
    }
    for (size_t i = 0; i < redactor->rule_count; i++) {
        struct rule *rule = &redactor->rules[i];
        if (rule->labels.count && (!label || !globs_match(&rule->labels, label)))
            continue;
        if (apply_rule(rule, text, length, &other)) {
            struct buffer swap = *out;
            *out = other;
            other = swap;
            text = buffer_text(out);
            length = out->length;
            changed = true;
        }
    }
    if (apply_detectors(redactor, detectors_for(redactor, place), label, text, length, &other)) {
        struct buffer swap = *out;
        *out = other;
        other = swap;
        changed = true;
    }
    return changed;
}

size_t redactor_labels(struct redactor *redactor, struct labels *labels)
{
    _cleanup_buffer_ struct buffer out = {0};
    size_t changed = 0;
    for (size_t i = 0; i < labels->count;) {
        struct label *label = &labels->list[i];
        size_t before = labels->count;
        if (strncmp(label->name, "__", 2) != 0 &&
            redactor_text(redactor, REDACT_LABEL, label->name, label->value, strlen(label->value),
                          &out)) {
            changed++;
            labels_set_n(labels, label->name, strlen(label->name), buffer_text(&out), out.length);
        }
        i += labels->count == before; /* a value that became empty is gone */
    }
    return changed;
}

/* Rules of one name are one in stats. */
static bool count_rule(const struct redactor *redactor, size_t at, uint64_t *ret_count)
{
    *ret_count = 0;
    for (size_t i = 0; i < redactor->rule_count; i++) {
        if (strcmp(redactor->rules[i].name, redactor->rules[at].name))
            continue;
        if (i < at)
            return false;
        *ret_count += redactor->rules[i].count;
    }
    return true;
}

void redactor_write_metrics(const struct redactor *redactor, const char *metric, struct buffer *out)
{
    buffer_printf(out,
                  "# HELP %s Replaced values since the rules were loaded, by rule and detector.\n# "
                  "TYPE %s counter\n",
                  metric, metric);
    uint64_t count;
    for (size_t i = 0; i < redactor->rule_count; i++) {
        if (!count_rule(redactor, i, &count))
            continue;
        buffer_printf(out, "%s{rule=\"", metric);
        text_escape_metric(out, redactor->rules[i].name);
        buffer_printf(out, "\"} %llu\n", (unsigned long long)count);
    }
    for (size_t i = 0; i < DETECTORS; i++)
        buffer_printf(out, "%s{detector=\"%s\"} %llu\n", metric, detector_name((enum detector)i),
                      (unsigned long long)redactor->counts[i]);
}

uint64_t redactor_total(const struct redactor *redactor)
{
    uint64_t total = 0;
    for (size_t i = 0; i < redactor->rule_count; i++)
        total += redactor->rules[i].count;
    for (size_t i = 0; i < DETECTORS; i++)
        total += redactor->counts[i];
    return total;
}
