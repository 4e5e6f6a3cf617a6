// SPDX-License-Identifier: Apache-2.0
// Rules and detectors over texts: see redact.h.

#include "label/redact.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "label/glob.h"
#include "profile/regex.h"

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

static const char *const replacements[DETECTORS] = {[DETECT_EMAIL] = "[email]",
                                                    [DETECT_TOKEN] = "[token]",
                                                    [DETECT_CREDENTIALS] = "[credentials]",
                                                    [DETECT_PRIVATE_KEY] = "[private-key]",
                                                    [DETECT_ASSIGNMENT] = "[secret]",
                                                    [DETECT_SECRET] = "[secret]",
                                                    [DETECT_CARD] = "[card]",
                                                    [DETECT_IP] = "[ip]"};

/* Labels that say what they hold. Hashes and ids look random and are no secrets; addresses of one's
 * own machines and versions are what these labels are for. */
static const struct {
    enum detector detector;
    const char *label;
} known_exceptions[] = {
    {DETECT_SECRET, "*build_id*"},
    {DETECT_SECRET, "*build.id*"},
    {DETECT_SECRET, "*buildid*"},
    {DETECT_SECRET, "*trace_id*"},
    {DETECT_SECRET, "*traceid*"},
    {DETECT_SECRET, "*trace.id*"},
    {DETECT_SECRET, "*span_id*"},
    {DETECT_SECRET, "*span.id*"},
    {DETECT_SECRET, "*uuid*"},
    {DETECT_SECRET, "*guid*"},
    {DETECT_SECRET, "*.uid"},
    {DETECT_SECRET, "*_uid"},
    {DETECT_SECRET, "uid"},
    {DETECT_SECRET, "*machine*id*"},
    {DETECT_SECRET, "*boot*id*"},
    {DETECT_SECRET, "host.id"},
    {DETECT_SECRET, "*instance*id*"},
    {DETECT_SECRET, "*commit*"},
    {DETECT_SECRET, "*revision*"},
    {DETECT_SECRET, "*git*"},
    {DETECT_SECRET, "*vcs*"},
    {DETECT_SECRET, "*hash*"},
    {DETECT_SECRET, "*sha*"},
    {DETECT_SECRET, "*digest*"},
    {DETECT_SECRET, "*checksum*"},
    {DETECT_SECRET, "*container*"},
    {DETECT_SECRET, "*image*"},
    {DETECT_SECRET, "*cgroup*"},
    {DETECT_SECRET, "*version*"},
    {DETECT_SECRET, "*path*"},
    {DETECT_SECRET, "*file*"},
    {DETECT_SECRET, "exe"},
    {DETECT_SECRET, "binary"},
    {DETECT_IP, "instance"},
    {DETECT_IP, "host"},
    {DETECT_IP, "host.*"},
    {DETECT_IP, "hostname"},
    {DETECT_IP, "node"},
    {DETECT_IP, "node_*"},
    {DETECT_IP, "nodename"},
    {DETECT_IP, "pod_ip"},
    {DETECT_IP, "host_ip"},
    {DETECT_IP, "k8s.*"},
    {DETECT_IP, "server.address"},
    {DETECT_IP, "service.instance.id"},
    {DETECT_IP, "*version*"},
    {DETECT_CARD, "*version*"},
    {DETECT_CARD, "*timestamp*"},
};

struct redactor *redactor_new(void)
{
    struct redactor *redactor = memory_zalloc(1, sizeof(*redactor));
    redactor->detectors = (1u << DETECTORS) - 1;
    for (size_t i = 0; i < ARRAY_LENGTH(known_exceptions); i++)
        redactor_except(redactor, known_exceptions[i].detector, known_exceptions[i].label);
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

/* Puts the text with its replacements into *out; false when there are none. */
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
        /* Exceptions are asked for when something was found, which is seldom. */
        if (label && globs_match(&redactor->exceptions[span.detector], label)) {
            detectors &= ~(1u << span.detector);
            continue;
        }
        buffer_add(out, text + at, span.start - at);
        buffer_add_text(out, replacements[span.detector]);
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
        buffer_add_text(out, replacements[DETECT_ASSIGNMENT]);
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

void redactor_counts(const struct redactor *redactor,
                     void (*callback)(void *context, const char *name, uint64_t count),
                     void *context)
{
    for (size_t i = 0; i < redactor->rule_count; i++)
        callback(context, redactor->rules[i].name, redactor->rules[i].count);
    for (size_t i = 0; i < DETECTORS; i++)
        callback(context, detector_name((enum detector)i), redactor->counts[i]);
}
