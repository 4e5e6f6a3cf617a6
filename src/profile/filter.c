// SPDX-License-Identifier: Apache-2.0
// Filters: see filter.h. Parents come before their children in the tree, so what holds for a whole
// stack is one forward pass over the nodes: O(nodes), whatever the number of samples.

#include "profile/filter.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "profile/naming.h"
#include "profile/tables.h"

#define NODE_DROPPED UINT32_MAX

static bool string_matches(const struct profile *profile, const struct regex *pattern,
                           uint32_t string)
{
    return string &&
           regex_matches(pattern, profile->strings[string].data, profile->strings[string].length);
}

/* Which frames a pattern matches; NULL pattern: none. Names are looked at once per function. */
static bool *match_frames(const struct profile *profile, const struct regex *pattern)
{
    bool *matches = memory_zalloc(profile->frame_count, sizeof(bool));
    if (!pattern)
        return matches;
    _cleanup_free_ bool *functions = memory_zalloc(profile->function_count, sizeof(bool));
    _cleanup_free_ bool *mappings = memory_zalloc(profile->mapping_count, sizeof(bool));
    for (uint32_t i = 1; i < profile->function_count; i++)
        functions[i] = string_matches(profile, pattern, profile->functions[i].name) ||
                       string_matches(profile, pattern, profile->functions[i].file);
    for (uint32_t i = 1; i < profile->mapping_count; i++)
        mappings[i] = string_matches(profile, pattern, profile->mappings[i].file);
    for (uint32_t i = 1; i < profile->frame_count; i++)
        matches[i] = functions[profile->frames[i].function] || mappings[profile->frames[i].mapping];
    return matches;
}

/* Rows move to the node that `new_node` gives for theirs; rows of dropped nodes go. Rows that
 * become equal add up. */
static void rewrite_rows(struct profile *profile, const uint32_t *new_node, const bool *keep_set)
{
    struct profile_samples old = profile->samples;
    profile->samples = (struct profile_samples){0};
    for (unsigned type = 0; type < profile->type_count; type++)
        profile->samples.values[type] = memory_zalloc(1, sizeof(int64_t));
    id_table_clear(&profile->tables->sample_index);
    for (size_t row = 0; row < old.count; row++) {
        uint32_t node = new_node[old.node[row]];
        if (node == NODE_DROPPED || !keep_set[old.labels[row]])
            continue;
        size_t target = profile_sample(profile, node, old.labels[row], old.link ? old.link[row] : 0,
                                       old.time_ns ? old.time_ns[row] : 0);
        for (unsigned type = 0; type < profile->type_count; type++)
            profile_add_value(profile, target, type, old.values[type][row]);
    }
    free(old.node);
    free(old.labels);
    free(old.link);
    free(old.time_ns);
    for (unsigned type = 0; type < profile->type_count; type++)
        free(old.values[type]);
}

static bool tag_passes(const struct profile *profile, const struct profile_label *label,
                       const struct tag_filter *tag)
{
    if (strcmp(profile_text(profile, label->key), tag->key) != 0)
        return false;
    char digits[24];
    const char *text = digits;
    size_t length;
    if (label->text) {
        text = profile_text(profile, label->text);
        length = profile->strings[label->text].length;
    } else {
        length = (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)label->number);
    }
    if (tag->relation == TAG_MATCHES)
        return regex_matches(tag->pattern, text, length);
    return length == strlen(tag->value) && !memcmp(text, tag->value, length);
}

static bool *match_label_sets(const struct profile *profile, const struct profile_filter *filter)
{
    uint32_t sets = profile_label_set_count(profile);
    bool *keep = memory_zalloc(sets, sizeof(bool));
    for (uint32_t i = 0; i < sets; i++) {
        size_t count;
        const struct profile_label *labels = profile_labels(profile, i, &count);
        keep[i] = true;
        for (size_t t = 0; t < filter->tag_count; t++) {
            bool found = false;
            for (size_t k = 0; k < count; k++)
                found |= tag_passes(profile, &labels[k], &filter->tags[t]);
            keep[i] &= found != (filter->tags[t].relation == TAG_IS_NOT);
        }
    }
    return keep;
}

/* A frame whose caller was taken out is no longer inlined into anything that is there. */
static uint32_t without_inlining(struct profile *profile, uint32_t frame)
{
    struct profile_frame copy = profile->frames[frame];
    if (!copy.inlined)
        return frame;
    copy.inlined = 0;
    return profile_frame(profile, &copy);
}

void profile_filter(struct profile *profile, const struct profile_filter *filter)
{
    uint32_t count = profile->node_count;
    _cleanup_free_ bool *focus = match_frames(profile, filter->focus);
    _cleanup_free_ bool *ignore = match_frames(profile, filter->ignore);
    _cleanup_free_ bool *hide = match_frames(profile, filter->hide);
    _cleanup_free_ bool *focused = memory_zalloc(count, sizeof(bool));
    _cleanup_free_ bool *ignored = memory_zalloc(count, sizeof(bool));
    _cleanup_free_ uint32_t *new_node = memory_zalloc(count, sizeof(uint32_t));
    focused[0] = !filter->focus;
    for (uint32_t i = 1; i < count; i++) {
        struct profile_node node = profile->nodes[i];
        focused[i] = focused[node.parent] || focus[node.frame];
        ignored[i] = ignored[node.parent] || ignore[node.frame];
        if (hide[node.frame]) {
            new_node[i] = new_node[node.parent];
        } else {
            uint32_t frame = node.parent && hide[profile->nodes[node.parent].frame]
                                 ? without_inlining(profile, node.frame)
                                 : node.frame;
            new_node[i] = profile_child(profile, new_node[node.parent], frame);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        if (!focused[i] || ignored[i] || (i && !new_node[i]))
            new_node[i] = NODE_DROPPED;
    if (!focused[0])
        new_node[0] = NODE_DROPPED;
    _cleanup_free_ bool *keep_set = match_label_sets(profile, filter);
    rewrite_rows(profile, new_node, keep_set);
}

static int anchored_pattern(const char *expression, const char *what, struct regex **ret_pattern,
                            struct error *error)
{
    size_t room = strlen(expression) + sizeof("^(?:)$");
    _cleanup_free_ char *anchored = memory_alloc(room);
    snprintf(anchored, room, "^(?:%s)$", expression);
    return regex_new(anchored, false, what, ret_pattern, error);
}

/* pprof matches names without a leading dot and without their argument lists. */
static size_t simple_length(const char *name, size_t length)
{
    for (size_t i = 1; i < length; i++)
        if (name[i] == '(' && strncmp(name + i, "(anonymous namespace)", 21) != 0 &&
            name[i - 1] != '.')
            return i;
    return length;
}

static bool name_drops(const struct profile *profile, uint32_t function, const struct regex *drop,
                       const struct regex *keep)
{
    uint32_t name = profile->functions[function].name;
    if (!name)
        return false;
    const char *text = profile_text(profile, name);
    size_t length = profile->strings[name].length;
    if (length > 1 && text[0] == '.')
        text++, length--;
    length = simple_length(text, length);
    return regex_matches(drop, text, length) && !(keep && regex_matches(keep, text, length));
}

int profile_prune(struct profile *profile, struct error *error)
{
    if (!profile->drop_frames)
        return 0;
    _cleanup_regex_ struct regex *drop = NULL, *keep = NULL;
    int r = anchored_pattern(profile_text(profile, profile->drop_frames),
                             "the profile's drop_frames", &drop, error);
    if (!r && profile->keep_frames)
        r = anchored_pattern(profile_text(profile, profile->keep_frames),
                             "the profile's keep_frames", &keep, error);
    if (r < 0)
        return r;
    _cleanup_free_ bool *drops = memory_zalloc(profile->function_count, sizeof(bool));
    struct match_budget budget = {.limit_ns = MATCH_BUDGET_NS};
    struct matching matching;
    matching_begin(&matching, &budget);
    for (uint32_t i = 1; !r && i < profile->function_count; i++) {
        drops[i] = name_drops(profile, i, drop, keep);
        r = matching_check(&matching, error);
    }
    if (r < 0)
        return error_prefix(error, "The profile's drop_frames and keep_frames");

    uint32_t count = profile->node_count;
    _cleanup_free_ bool *cut = memory_zalloc(count, sizeof(bool));
    _cleanup_free_ bool *user_code = memory_zalloc(count, sizeof(bool)); /* seen above or here */
    _cleanup_free_ uint32_t *new_node = memory_zalloc(count, sizeof(uint32_t));
    for (uint32_t i = 1; i < count; i++) {
        struct profile_node node = profile->nodes[i];
        bool dropped = drops[profile->frames[node.frame].function];
        user_code[i] = user_code[node.parent] || !dropped;
        cut[i] = cut[node.parent] || (dropped && user_code[node.parent]);
        new_node[i] = cut[i] ? new_node[node.parent] : i;
    }
    uint32_t sets = profile_label_set_count(profile);
    _cleanup_free_ bool *keep_set = memory_alloc(sets);
    memset(keep_set, true, sets);
    rewrite_rows(profile, new_node, keep_set);
    return 0;
}
