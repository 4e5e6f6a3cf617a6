// SPDX-License-Identifier: Apache-2.0
// Allow-list and limits: see policy.h.

#include "label/rules/policy.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define DAY_NS 86400000000000

struct label_policy {
    struct label_policy_options options;
    struct cardinality *cardinality;
    _Atomic uint64_t counts[LABEL_REASONS];
};

struct label_policy_options label_policy_defaults(void)
{
    return (struct label_policy_options){
        .name_bytes = 1024,
        .value_bytes = 2048,
        .count = 30,
        .cardinality = {.values = 10000, .names = 500, .total = 500000, .window_ns = DAY_NS}};
}

void label_policy_options_release(struct label_policy_options *options)
{
    globs_release(&options->allow);
    globs_release(&options->unlimited);
}

struct label_policy *label_policy_new(struct label_policy_options *options)
{
    struct label_policy *policy = memory_zalloc(1, sizeof(*policy));
    policy->options = *options;
    options->allow = options->unlimited = (struct globs){0};
    policy->cardinality = cardinality_new(&policy->options.cardinality);
    return policy;
}

void label_policy_free(struct label_policy *policy)
{
    if (!policy)
        return;
    label_policy_options_release(&policy->options);
    cardinality_free(policy->cardinality);
    free(policy);
}

static unsigned count(struct label_policy *policy, enum label_reason reason)
{
    atomic_fetch_add_explicit(&policy->counts[reason], 1, memory_order_relaxed);
    return 1u << reason;
}

static bool name_valid(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return utf8_valid(name, length);
}

/* 0 when the name may stay. */
static unsigned check_name(struct label_policy *policy, const char *name)
{
    size_t length = strlen(name);
    if (!strcmp(name, LABEL_SERVICE_NAME))
        return 0;
    if (length > policy->options.name_bytes)
        return count(policy, LABEL_NAME_TOO_LONG);
    if (!name_valid(name, length))
        return count(policy, LABEL_NAME_INVALID);
    if (policy->options.allow.count && strncmp(name, "__", 2) != 0 &&
        !globs_match(&policy->options.allow, name))
        return count(policy, LABEL_NOT_ALLOWED);
    return 0;
}

unsigned label_policy_names(struct label_policy *policy, struct labels *labels)
{
    unsigned done = 0;
    size_t kept = 0;
    for (size_t i = 0; i < labels->count; i++) {
        unsigned reason = check_name(policy, labels->list[i].name);
        done |= reason;
        if (!reason)
            labels->list[kept++] = labels->list[i];
    }
    labels->count = kept;
    return done;
}

static unsigned limit_count(struct label_policy *policy, struct labels *labels)
{
    size_t limit = MAX(policy->options.count, (size_t)1), kept = 0, room = limit;
    unsigned done = 0;
    if (labels->count <= limit)
        return 0;
    if (labels_get(labels, LABEL_SERVICE_NAME))
        room--;
    for (size_t i = 0; i < labels->count; i++) {
        bool service = !strcmp(labels->list[i].name, LABEL_SERVICE_NAME);
        if (!service && !room) {
            done |= count(policy, LABEL_TOO_MANY);
            continue;
        }
        room -= !service;
        labels->list[kept++] = labels->list[i];
    }
    labels->count = kept;
    return done;
}

/* A copy with U+FFFD for each byte that isn't part of a character. */
static const char *repair(struct labels *labels, const char *value, size_t length)
{
    _cleanup_buffer_ struct buffer out = {0};
    size_t step;
    for (size_t i = 0; i < length; i += step) {
        step = utf8_sequence(value + i, length - i);
        if (step) {
            buffer_add(&out, value + i, step);
        } else {
            buffer_add_text(&out, "\xef\xbf\xbd");
            step = 1;
        }
    }
    return arena_strndup(&labels->arena, out.data, out.length);
}

static unsigned limit_value(struct label_policy *policy, struct labels *labels, struct label *label)
{
    unsigned done = 0;
    size_t length = strlen(label->value), limit = MAX(policy->options.value_bytes, (size_t)4);
    if (!utf8_valid(label->value, length)) {
        /* No more than can stay is worth repairing. */
        label->value = repair(labels, label->value, MIN(length, limit + 4));
        length = strlen(label->value);
        done |= count(policy, LABEL_VALUE_INVALID);
    }
    if (length > limit) {
        size_t end = limit;
        while (((unsigned char)label->value[end] & 0xc0) == 0x80)
            end--; /* not in the middle of a character */
        label->value = arena_strndup(&labels->arena, label->value, end);
        done |= count(policy, LABEL_VALUE_TOO_LONG);
    }
    return done;
}

/* False: the label has to go. */
static bool limit_cardinality(struct label_policy *policy, const char *tenant, int64_t now_ns,
                              struct label *label, unsigned *done)
{
    if (globs_match(&policy->options.unlimited, label->name))
        return true;
    switch (cardinality_note(policy->cardinality, tenant, label->name, label->value, now_ns)) {
    case CARDINALITY_FULL:
        label->value = LABEL_OTHER;
        *done |= count(policy, LABEL_TOO_MANY_VALUES);
        return true;
    case CARDINALITY_NAMES:
        *done |= count(policy, LABEL_TOO_MANY_NAMES);
        if (strcmp(label->name, LABEL_SERVICE_NAME) != 0)
            return false;
        label->value = LABEL_OTHER;
        return true;
    default:
        return true;
    }
}

unsigned label_policy_values(struct label_policy *policy, const char *tenant, int64_t now_ns,
                             struct labels *labels)
{
    unsigned done = limit_count(policy, labels);
    size_t kept = 0;
    for (size_t i = 0; i < labels->count; i++) {
        struct label label = labels->list[i];
        done |= limit_value(policy, labels, &label);
        if (limit_cardinality(policy, tenant, now_ns, &label, &done))
            labels->list[kept++] = label;
    }
    labels->count = kept;
    return done;
}

void label_policy_counts(const struct label_policy *policy, uint64_t ret_counts[LABEL_REASONS])
{
    for (size_t i = 0; i < LABEL_REASONS; i++)
        ret_counts[i] = atomic_load_explicit(&policy->counts[i], memory_order_relaxed);
}

const char *label_reason_name(enum label_reason reason)
{
    static const char *const names[LABEL_REASONS] = {
        [LABEL_NOT_ALLOWED] = "not_allowed",       [LABEL_NAME_INVALID] = "name_invalid",
        [LABEL_NAME_TOO_LONG] = "name_too_long",   [LABEL_TOO_MANY] = "too_many",
        [LABEL_TOO_MANY_NAMES] = "too_many_names", [LABEL_VALUE_INVALID] = "value_invalid",
        [LABEL_VALUE_TOO_LONG] = "value_too_long", [LABEL_TOO_MANY_VALUES] = "too_many_values"};
    return names[reason];
}

struct cardinality *label_policy_cardinality(struct label_policy *policy)
{
    return policy->cardinality;
}
