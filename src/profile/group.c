// SPDX-License-Identifier: Apache-2.0
// Samples by label: see group.h.

#include "profile/group.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define BINARY "binary"

int profile_group_parse(const char *text, struct profile_group_keys *ret_keys, struct error *error)
{
    struct profile_group_keys keys = {.text = memory_strdup(text)};
    for (char *at = keys.text;;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (!*at || keys.count == PROFILE_GROUP_KEYS_MAX) {
            free(keys.text);
            return error_set(error, -EINVAL,
                             "--by requires up to %d keys such as comm,pid,tid,binary, not \"%s\".",
                             PROFILE_GROUP_KEYS_MAX, text);
        }
        keys.keys[keys.count++] = at;
        if (!comma)
            break;
        at = comma + 1;
    }
    *ret_keys = keys;
    return 0;
}

void profile_group_release(struct profile_group_keys *keys)
{
    free(keys->text);
    *keys = (struct profile_group_keys){0};
}

enum profile_detail profile_group_detail(const struct profile_group_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(keys->keys[i], BINARY))
            return PROFILE_LABELS;
    return 0;
}

/* The binary of the innermost frame that has one. */
static const char *binary_of(const struct profile *profile, uint32_t node)
{
    for (; node; node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        if (!frame->mapping)
            continue;
        const char *path = profile_text(profile, profile->mappings[frame->mapping].file);
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
    }
    return NULL;
}

static void name_group(const struct profile *profile, size_t row, const char *key,
                       struct buffer *name)
{
    size_t count = 0;
    const struct profile_label *labels =
        profile_labels(profile, profile->samples.labels[row], &count);
    name->length = 0;
    if (!strcmp(key, BINARY)) {
        const char *binary = binary_of(profile, profile->samples.node[row]);
        buffer_add_text(name, binary ? binary : "(no binary)");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(profile_text(profile, labels[i].key), key))
            continue;
        buffer_printf(name, "%s ", key);
        if (labels[i].text)
            buffer_add(name, profile->strings[labels[i].text].data,
                       profile->strings[labels[i].text].length);
        else
            buffer_add_i64(name, labels[i].number);
        return;
    }
    buffer_printf(name, "(no %s)", key);
}

static bool is_label(const struct profile *profile, const char *key)
{
    for (size_t row = 0; row < profile->samples.count; row++) {
        size_t count = 0;
        const struct profile_label *labels =
            profile_labels(profile, profile->samples.labels[row], &count);
        for (size_t i = 0; i < count; i++)
            if (!strcmp(profile_text(profile, labels[i].key), key))
                return true;
    }
    return false;
}

const char *profile_group_missing(const struct profile *profile,
                                  const struct profile_group_keys *keys)
{
    for (size_t i = 0; i < keys->count && profile->samples.count; i++)
        if (strcmp(keys->keys[i], BINARY) != 0 && !is_label(profile, keys->keys[i]))
            return keys->keys[i];
    return NULL;
}

static uint32_t group_frame(struct profile *profile, const struct buffer *name)
{
    struct profile_function function = {.name = profile_string(profile, name->data, name->length)};
    return profile_frame(profile,
                         &(struct profile_frame){.function = profile_function(profile, &function)});
}

void profile_group(struct profile *profile, const struct profile_group_keys *keys,
                   enum profile_group_form form)
{
    bool only = form != PROFILE_GROUP_ROOTS;
    _cleanup_buffer_ struct buffer name = {0}, all = {0};
    uint32_t *frames = NULL;
    size_t capacity = 0;
    for (size_t row = 0; row < profile->samples.count && keys->count; row++) {
        uint32_t node = profile->samples.node[row];
        size_t depth = 0, used = 0;
        for (uint32_t at = node; at && !only; at = profile->nodes[at].parent)
            depth++;
        array_reserve(frames, capacity, depth + keys->count + 1);
        if (form == PROFILE_GROUP_UNDER_ROOT && node) {
            uint32_t root = node;
            while (profile->nodes[root].parent)
                root = profile->nodes[root].parent;
            frames[used++] = profile->nodes[root].frame;
        }
        all.length = 0;
        for (size_t i = 0; i < keys->count; i++) {
            name_group(profile, row, keys->keys[i], &name);
            buffer_add_text(&all, i ? ", " : "");
            buffer_add(&all, name.data, name.length);
            if (!only)
                frames[used++] = group_frame(profile, &name);
        }
        if (only)
            frames[used++] = group_frame(profile, &all);
        size_t place = used + depth;
        for (uint32_t at = node; at && !only; at = profile->nodes[at].parent)
            frames[--place] = profile->nodes[at].frame;
        profile->samples.node[row] = profile_stack(profile, frames, used + depth);
    }
    free(frames);
}
