// SPDX-License-Identifier: Apache-2.0
// Orders for rates and collectors: see sampling.h.

#include "server/control/sampling.h"
#include "io/document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static void rule_release(struct sampling_rule *rule)
{
    selector_release(&rule->selector);
    free(rule->text);
}

void sampling_rules_release(struct sampling_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        rule_release(&rules->list[i]);
    free(rules->list);
    *rules = (struct sampling_rules){0};
}

static void remove_rule(struct sampling_rules *rules, size_t position)
{
    rule_release(&rules->list[position]);
    memmove(rules->list + position, rules->list + position + 1,
            (--rules->count - position) * sizeof(*rules->list));
}

/* The first rule that says nothing changes nothing. */
static void tidy(struct sampling_rules *rules)
{
    while (rules->count && sampling_wish_empty(&rules->list[0].wish))
        remove_rule(rules, 0);
}

int sampling_rules_add(struct sampling_rules *rules, const struct sampling_wish *wish,
                       const char *selector, const char *by, const char *reason, int64_t now_ns,
                       struct error *error)
{
    struct sampling_rule rule = {.wish = *wish, .since_ns = now_ns};
    struct buffer text = {0};
    int r = selector_parse(selector, strlen(selector), &rule.selector, error);
    if (r < 0)
        return r;
    selector_write(&text, &rule.selector);
    rule.text = memory_strndup(buffer_text(&text), text.length);
    buffer_release(&text);
    snprintf(rule.by, sizeof(rule.by), "%s", by);
    snprintf(rule.reason, sizeof(rule.reason), "%s", reason);
    bool all = !rule.selector.count;
    for (size_t i = rules->count; i-- > 0;)
        if (all || !strcmp(rules->list[i].text, rule.text))
            remove_rule(rules, i);
    if (rules->count >= SAMPLING_RULES_MAX) {
        rule_release(&rule);
        return error_set(error, -EBUSY,
                         "The limit of %d sampling orders is reached; reset the sampling of all "
                         "agents first.",
                         SAMPLING_RULES_MAX);
    }
    array_reserve(rules->list, rules->capacity, rules->count + 1);
    rules->list[rules->count++] = rule;
    tidy(rules);
    return 0;
}

/* ---- what is ordered ---- */

bool sampling_wish_empty(const struct sampling_wish *wish)
{
    return !wish->rate_hz && !wish->wall_rate_hz && !wish->has_wall;
}

static int read_rate(struct json *json, const char *name, uint64_t *rate)
{
    int r = json_u64(json, rate);
    if (r >= 0 && (!*rate || *rate > SAMPLING_RATE_MAX))
        return json_fail(json, "%s must be between 1 and %d", name, SAMPLING_RATE_MAX);
    return r;
}

int sampling_wish_read(struct json *json, struct sampling_wish *wish)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "rate")) {
            r = read_rate(json, "rate", &wish->rate_hz);
        } else if (json_is(&key, "wall_rate")) {
            r = read_rate(json, "wall_rate", &wish->wall_rate_hz);
        } else if (json_is(&key, "wall")) {
            r = json_bool(json, &wish->wall);
            wish->has_wall = true;
        } else {
            r = json_fail(json, "sampling has rate, wall and wall_rate, but not \"%.*s\"",
                          (int)MIN(key.length, (size_t)40), key.data);
        }
    }
    return r;
}

void sampling_wish_members(const struct sampling_wish *wish, struct json_writer *json)
{
    if (wish->rate_hz)
        json_member_unsigned(json, "rate", wish->rate_hz);
    if (wish->has_wall)
        json_member_bool(json, "wall", wish->wall);
    if (wish->wall_rate_hz)
        json_member_unsigned(json, "wall_rate", wish->wall_rate_hz);
}

void sampling_wish_describe(const struct sampling_wish *wish, char *text, size_t room)
{
    char rate[32] = "", wall[32] = "", wall_rate[48] = "";
    if (wish->rate_hz)
        snprintf(rate, sizeof(rate), "%llu Hz", (unsigned long long)wish->rate_hz);
    if (wish->has_wall)
        snprintf(wall, sizeof(wall), "%swall time %s", *rate ? ", " : "",
                 wish->wall ? "on" : "off");
    if (wish->wall_rate_hz)
        snprintf(wall_rate, sizeof(wall_rate), "%swaits at %llu Hz", *rate || *wall ? ", " : "",
                 (unsigned long long)wish->wall_rate_hz);
    snprintf(text, room, "%s%s%s", rate, wall, wall_rate);
    if (sampling_wish_empty(wish))
        snprintf(text, room, "own settings");
}

/* ---- rules as JSON ---- */

void sampling_rules_write(const struct sampling_rules *rules, bool for_file,
                          struct json_writer *json)
{
    json_write_array(json);
    for (size_t i = 0; i < rules->count; i++) {
        const struct sampling_rule *rule = &rules->list[i];
        if (for_file)
            json_write_line(json);
        json_write_object(json);
        json_write_key(json, "sampling");
        json_write_object(json);
        sampling_wish_members(&rule->wish, json);
        json_write_object_end(json);
        if (for_file)
            json_member_signed(json, "since", rule->since_ns);
        else
            json_member_fixed(json, "since", (double)rule->since_ns / 1e9, 3);
        json_member_text(json, "selector", rule->text);
        json_member_text(json, "by", rule->by);
        json_member_text(json, "reason", rule->reason);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

/* Anything else would be longer when it is written again. */
int sampling_rule_read(struct json *json, struct sampling_rules *rules)
{
    _cleanup_buffer_ struct buffer selector = {0}, by = {0}, reason = {0};
    struct sampling_wish wish = {0};
    struct json_string key;
    int64_t since_ns = 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "sampling"))
            r = sampling_wish_read(json, &wish);
        else if (json_is(&key, "since"))
            r = json_i64(json, &since_ns);
        else if (json_is(&key, "selector"))
            r = document_text_buffer(json, &selector, SIZE_MAX);
        else if (json_is(&key, "by"))
            r = document_text_buffer(json, &by, SAMPLING_NAME_BYTES - 1);
        else if (json_is(&key, "reason"))
            r = document_text_buffer(json, &reason, SAMPLING_TEXT_BYTES - 1);
    if (r < 0)
        return r;
    return sampling_rules_add(rules, &wish, buffer_text(&selector), buffer_text(&by),
                              buffer_text(&reason), since_ns, json->error);
}
