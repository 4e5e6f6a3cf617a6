/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes behind a profile's tables. Private to src/profile. */
#pragma once

#include "profile/profile.h"

struct label_set {
    uint32_t first; /* into labels */
    uint32_t count;
};

struct stack_entry {
    uint64_t hash[2]; /* of the frames: 128 bits with a random seed stand for the stack itself */
    uint32_t node;
};

struct profile_tables {
    struct arena text; /* the strings' bytes */
    uint64_t seed;     /* so that nobody can prepare collisions */

    struct profile_label *labels; /* all label sets' labels, one after the other */
    size_t label_count, label_capacity;
    struct label_set *label_sets;
    size_t label_set_count, label_set_capacity;
    struct stack_entry *stacks;
    size_t stack_count, stack_capacity;

    size_t string_capacity, function_capacity, mapping_capacity, frame_capacity, node_capacity,
        link_capacity, type_capacity, comment_capacity;

    struct id_table string_index, function_index, mapping_index, frame_index, node_index,
        link_index, label_set_index, stack_index, sample_index;
};
