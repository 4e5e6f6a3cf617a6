/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes behind a profile's tables. Private to src/profile. */
#pragma once

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/digests.h"
#include "base/memory.h"
#include "profile/profile.h"

struct label_set {
    uint32_t first; /* into labels */
    uint32_t count;
};

struct profile_tables {
    struct arena text; /* the strings' bytes */
    uint64_t seed;     /* so that nobody can prepare collisions */
    bool appended;     /* strings, functions or frames that their indexes lack */

    struct profile_label *labels; /* all label sets' labels, one after the other */
    size_t label_count, label_capacity;
    struct label_set *label_sets;
    size_t label_set_count, label_set_capacity;
    struct digest_table stacks; /* of their frames, to nodes */

    size_t string_capacity, function_capacity, mapping_capacity, frame_capacity, node_capacity,
        link_capacity, type_capacity, comment_capacity;

    struct id_table string_index, function_index, mapping_index, frame_index, node_index,
        link_index, label_set_index, sample_index, comment_index;
};

/* Appends one zeroed element to a table and gives its id. */
#define table_add(profile, plural, count_field, capacity_field)                                    \
    ({                                                                                             \
        array_reserve((profile)->plural, (profile)->tables->capacity_field,                        \
                      (size_t)(profile)->count_field + 1);                                         \
        memset(&(profile)->plural[(profile)->count_field], 0, sizeof(*(profile)->plural));         \
        (profile)->count_field++;                                                                  \
    })

static inline uint64_t hash_string(const struct profile_tables *tables, const char *text,
                                   size_t length)
{
    return XXH3_64bits_withSeed(text, length, tables->seed);
}

static inline uint64_t hash_function(const struct profile_tables *tables,
                                     const struct profile_function *function)
{
    return XXH3_64bits_withSeed(function, sizeof(*function), tables->seed);
}

static inline uint64_t hash_frame(const struct profile_tables *tables,
                                  const struct profile_frame *frame)
{
    uint64_t words[3];
    _Static_assert(sizeof(*frame) == sizeof(words), "a frame is three words without padding");
    memcpy(words, frame, sizeof(words));
    /* Two words are mixed side by side, not one after the other: frames are hashed a lot. */
    uint64_t second = hash_word(words[1] + tables->seed);
    return hash_word(hash_word(words[0] ^ tables->seed) ^ (second << 32 | second >> 32) ^ words[2]);
}

/* append.c: gives what was appended to the indexes. */
void index_appended(struct profile *profile);
