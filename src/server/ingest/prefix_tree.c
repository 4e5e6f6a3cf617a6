// SPDX-License-Identifier: Apache-2.0
// Reads trees and tries of stacks: see prefix_tree.h. What is on the way from the root to a node is
// kept on a stack of our own; a node costs its own bytes, however deep it is.

#include "server/ingest/prefix_tree.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "io/wire.h"

#define FRAME_BYTES_MAX 4096 /* of a name; what is longer is cut */

/* A node that has children to come. */
struct level {
    uint64_t left; /* children that weren't read yet */
    uint32_t node; /* of the frames that are complete */
    /* Of tries: where the text on the way ends here, and where the frame begins that isn't complete
     * yet. */
    size_t text_end, frame_start;
};

struct reader {
    struct wire wire;
    struct profile *profile;
    bool trie;
    struct level *levels;
    size_t depth, capacity;
    struct buffer text; /* all pieces on the way from the root */
    uint64_t rows, limit;
};

static uint32_t add_frame(struct reader *reader, uint32_t parent, const char *name, size_t length)
{
    struct profile *profile = reader->profile;
    if (!length)
        return parent;
    uint32_t text = profile_string(profile, name, MIN(length, (size_t)FRAME_BYTES_MAX));
    uint32_t function = profile_function(profile, &(struct profile_function){.name = text});
    return profile_child(profile, parent,
                         profile_frame(profile, &(struct profile_frame){.function = function}));
}

/* The piece is put behind what is on the way; each semicolon completes a frame. */
static void add_piece(struct reader *reader, struct level *level, const char *piece, size_t length)
{
    size_t at = reader->text.length;
    buffer_add(&reader->text, piece, length);
    for (; at < reader->text.length; at++) {
        if (reader->text.data[at] != ';')
            continue;
        level->node = add_frame(reader, level->node, reader->text.data + level->frame_start,
                                at - level->frame_start);
        level->frame_start = at + 1;
    }
    level->text_end = reader->text.length;
}

static int add_value(struct reader *reader, const struct level *level, uint64_t value,
                     struct error *error)
{
    uint32_t node = level->node;
    if (!value)
        return 0;
    if (reader->rows++ == reader->limit)
        return error_set(error, -E2BIG, "The tree has more than %llu stacks.",
                         (unsigned long long)reader->limit);
    if (profile_full(reader->profile))
        return error_set(error, -E2BIG, "The tree has too many names.");
    if (reader->text.length > level->frame_start) /* of a trie: the stack's last */
        node = add_frame(reader, node, reader->text.data + level->frame_start,
                         reader->text.length - level->frame_start);
    size_t row = profile_sample(reader->profile, node, 0, 0, 0);
    profile_add_value(reader->profile, row, 0, (int64_t)MIN(value, (uint64_t)INT64_MAX));
    return 0;
}

static int malformed(const struct reader *reader, const void *data, struct error *error)
{
    return error_set(error, -EBADMSG, "The tree is damaged or truncated at byte %zu.",
                     (size_t)(reader->wire.at - (const uint8_t *)data));
}

/* One node below the innermost level. */
static int read_node(struct reader *reader, const void *data, struct error *error)
{
    struct level level = reader->levels[reader->depth - 1];
    uint64_t length, value;
    reader->levels[reader->depth - 1].left--;
    reader->text.length = level.text_end; /* without what siblings before put there */
    if (!wire_varint(&reader->wire, &length) ||
        length > (uint64_t)(reader->wire.end - reader->wire.at))
        return malformed(reader, data, error);
    const char *name = (const char *)reader->wire.at;
    reader->wire.at += length;
    /* Three bytes are the least that a child takes. */
    if (!wire_varint(&reader->wire, &value) || !wire_varint(&reader->wire, &level.left) ||
        level.left > (uint64_t)(reader->wire.end - reader->wire.at) / 3)
        return malformed(reader, data, error);
    if (reader->trie)
        add_piece(reader, &level, name, length);
    else
        level.node = add_frame(reader, level.node, name, length);
    int r = add_value(reader, &level, value, error);
    if (r < 0)
        return r;
    array_reserve(reader->levels, reader->capacity, reader->depth + 1);
    reader->levels[reader->depth++] = level;
    return 0;
}

int prefix_tree_read(const void *data, size_t length, bool trie, uint64_t limit,
                     struct profile *profile, struct error *error)
{
    struct reader reader = {
        .wire = wire_of(data, length), .profile = profile, .trie = trie, .limit = limit};
    int r = 0;
    profile_type(profile, profile_cstring(profile, "samples"), profile_cstring(profile, "count"));
    array_reserve(reader.levels, reader.capacity, 1);
    reader.levels[reader.depth++] = (struct level){.left = length ? 1 : 0};
    while (!r && reader.depth) {
        if (reader.levels[reader.depth - 1].left)
            r = read_node(&reader, data, error);
        else
            reader.depth--;
    }
    if (!r && reader.wire.at != reader.wire.end)
        r = malformed(&reader, data, error);
    free(reader.levels);
    buffer_release(&reader.text);
    return r;
}
