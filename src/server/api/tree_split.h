/* SPDX-License-Identifier: Apache-2.0 */
/* A call tree whose root has a child for each value of a label, such as each thread. */
#pragma once

#include "profile/views/calltree.h"
#include "server/query/context.h"

#define TREE_SPLIT_MAX 64

/* Adds the selection to the tree, below a frame [LABEL VALUE] for each value. -EINVAL when the
 * label has more than TREE_SPLIT_MAX values there, -E2BIG when one is too large. */
int tree_split_fill(struct query_context *query_context, const char *label, struct calltree *tree,
                    struct error *error);
