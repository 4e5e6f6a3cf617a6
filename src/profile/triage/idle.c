// SPDX-License-Identifier: Apache-2.0
// Idle threads, by rules: see idle.h.

#include "profile/triage/idle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/triage/triage.h"

#define FRAMES_MAX 4096
#define OWN "own-"
#define ALWAYS "always-"

struct rule {
    char *state; /* NULL: busy */
    bool own;    /* the wait is of this state, whatever the kernel sees */
    bool always; /* idle, although something busy is on the stack */
    char *function;
    size_t length;
    bool prefix;
};

struct idle_rules {
    struct rule *list;
    size_t count, capacity;
};

void idle_rules_free(struct idle_rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->list[i].state);
        free(rules->list[i].function);
    }
    free(rules->list);
    free(rules);
}

/* A word of a line, and what follows it. */
static size_t take_word(const char **at, const char *end, const char **ret_word)
{
    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
        ++*at;
    *ret_word = *at;
    while (*at < end && **at != ' ' && **at != '\t' && **at != '\r')
        ++*at;
    return (size_t)(*at - *ret_word);
}

/* Removes a prefix that is followed by something. */
static bool take_prefix(const char **word, size_t *length, const char *prefix)
{
    size_t prefix_length = strlen(prefix);
    if (*length <= prefix_length || memcmp(*word, prefix, prefix_length) != 0)
        return false;
    *word += prefix_length;
    *length -= prefix_length;
    return true;
}

static int parse_line(struct idle_rules *rules, const char *line, const char *end)
{
    const char *state, *function, *comment = memchr(line, '#', (size_t)(end - line));
    if (comment)
        end = comment;
    size_t state_length = take_word(&line, end, &state);
    /* Names of functions have spaces. */
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    function = line;
    size_t length = (size_t)(end - line);
    while (length && strchr(" \t\r", function[length - 1]))
        length--;
    if (!state_length)
        return 0;
    if (!length || length >= IDLE_NAME_BYTES || state_length >= IDLE_NAME_BYTES ||
        memchr(state, 0, (size_t)(function + length - state)))
        return -EINVAL;
    if (rules->count == IDLE_RULES_MAX)
        return -E2BIG;
    bool prefix = function[length - 1] == '*',
         busy = state_length == 4 && !memcmp(state, "busy", 4),
         own = take_prefix(&state, &state_length, OWN),
         always = take_prefix(&state, &state_length, ALWAYS);
    length -= prefix;
    array_reserve(rules->list, rules->capacity, rules->count + 1);
    rules->list[rules->count++] =
        (struct rule){.own = own,
                      .always = always,
                      .state = busy ? NULL : memory_strndup(state, state_length),
                      .function = memory_strndup(function, length),
                      .length = length,
                      .prefix = prefix};
    return 0;
}

int idle_rules_parse(const char *text, size_t length, const char *name,
                     struct idle_rules **ret_rules, struct error *error)
{
    struct idle_rules *rules = memory_zalloc(1, sizeof(*rules));
    const char *end = text + length;
    for (size_t line = 1; text < end; line++) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        int r = parse_line(rules, text, next ? next : end);
        if (r < 0) {
            idle_rules_free(rules);
            return r == -E2BIG
                       ? error_set(error, r, "%s has more than %d rules.", name, IDLE_RULES_MAX)
                       : error_set(error, r,
                                   "%s, line %zu: a rule is STATE, \"busy\", \"own-STATE\" or "
                                   "\"always-STATE\", and the name of a function.",
                                   name, line);
        }
        text = next ? next + 1 : end;
    }
    *ret_rules = rules;
    return 0;
}

static struct idle_rules *defaults;

static void read_defaults(void)
{
    struct error error = {0};
    if (idle_rules_parse(idle_rules_text, strlen(idle_rules_text), "the rules", &defaults, &error) <
        0)
        defaults = memory_zalloc(1, sizeof(*defaults));
}

const struct idle_rules *idle_rules_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_defaults);
    return defaults;
}

static const char *function_of(const struct profile *profile, uint32_t node)
{
    uint32_t function = profile->frames[profile->nodes[node].frame].function;
    return profile_text(profile, profile->functions[function].name);
}

static bool is_named(const struct rule *rule, const char *name)
{
    return rule->prefix ? !strncmp(name, rule->function, rule->length)
                        : !strcmp(name, rule->function);
}

/* Behind the mark of a lock's holder is the holder's stack, which says nothing about the waiter. */
static uint32_t own_part(const struct profile *profile, uint32_t node)
{
    uint32_t own = node;
    for (; node; node = profile->nodes[node].parent)
        if (!strcmp(function_of(profile, node), TRIAGE_HOLDER_MARK))
            own = profile->nodes[node].parent;
    return own;
}

const char *idle_own_state(const struct idle_rules *rules, const struct profile *profile,
                           uint32_t node)
{
    for (node = own_part(profile, node); node; node = profile->nodes[node].parent)
        for (size_t i = 0; i < rules->count; i++)
            if (rules->list[i].own && is_named(&rules->list[i], function_of(profile, node)))
                return rules->list[i].state;
    return NULL;
}

bool idle_matches(const struct idle_rules *rules, const struct profile *profile, uint32_t node,
                  const char *state)
{
    bool idle = false, busy = false;
    for (node = own_part(profile, node); node; node = profile->nodes[node].parent) {
        const char *name = function_of(profile, node);
        if (!strcmp(name, IDLE_ROOT))
            return true;
        for (size_t i = 0; i < rules->count; i++) {
            const struct rule *rule = &rules->list[i];
            if (!is_named(rule, name))
                continue;
            if (rule->own)
                return false;
            if (!rule->state)
                busy = true;
            else if (!strcmp(rule->state, state))
                idle = true;
            if (rule->always && !strcmp(rule->state, state))
                return true;
        }
    }
    return idle && !busy;
}

static const char *state_of(const struct profile *profile, uint32_t label_set)
{
    size_t count = 0;
    const struct profile_label *labels = profile_labels(profile, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), "state"))
            return profile_text(profile, labels[i].text);
    return NULL;
}

static uint32_t root_frame(struct profile *profile)
{
    struct profile_function function = {.name = profile_cstring(profile, IDLE_ROOT)};
    struct profile_frame frame = {.function = profile_function(profile, &function)};
    return profile_frame(profile, &frame);
}

size_t idle_fold(struct profile *profile, const struct idle_rules *rules)
{
    struct profile_samples *samples = &profile->samples;
    _cleanup_free_ uint32_t *frames = memory_zalloc(FRAMES_MAX, sizeof(*frames));
    size_t folded = 0;
    frames[0] = root_frame(profile);
    for (size_t row = 0; row < samples->count; row++) {
        const char *state = state_of(profile, samples->labels[row]);
        uint32_t node = samples->node[row];
        if (!state || !idle_matches(rules, profile, node, state))
            continue;
        size_t count = 1;
        for (uint32_t at = node; at && count < FRAMES_MAX; at = profile->nodes[at].parent)
            count++;
        size_t left = count;
        for (uint32_t at = node; left > 1; at = profile->nodes[at].parent)
            frames[--left] = profile->nodes[at].frame;
        if (count > 1 && frames[1] == frames[0])
            continue;
        samples->node[row] = profile_stack(profile, frames, count);
        folded++;
    }
    return folded;
}
