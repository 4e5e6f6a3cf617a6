/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as Pyroscope's oldest clients send them. Nodes come depth first, each as varint length,
 * name, varint value, varint number of children; the first is a root without a name.
 *
 * In a tree a node is a frame and its value what it took itself. In a trie a node is a piece of
 * text, and the texts on the way to a node put together are a folded stack, "main;run;step": pieces
 * end anywhere, not only where a frame does.
 */
#pragma once

#include "profile/profile.h"

/* Adds the tree's content to the profile, as its type samples/count. -EBADMSG when it isn't such a
 * tree, -E2BIG when it has more than `limit` nodes with a value. */
int prefix_tree_read(const void *data, size_t length, bool trie, uint64_t limit,
                     struct profile *profile, struct error *error);
