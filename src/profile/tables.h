/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes behind a profile's tables. Private to src/profile. */
#pragma once

#include "base/digests.h"
#include "profile/profile.h"

struct label_set {
    uint32_t first; /* into labels */
    uint32_t count;
};

struct profile_tables {
    struct arena text; /* the strings' bytes */
    uint64_t seed;     /* so that nobody can prepare collisions */

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
