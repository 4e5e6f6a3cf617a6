// SPDX-License-Identifier: Apache-2.0
// Which part of a call tree is asked for, and how much of it: read from a request and taken.

#include "server/tree_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "query/focus.h"
#include "server/question.h"

void tree_part_release(struct tree_part *part)
{
    free(part->focus);
    *part = (struct tree_part){0};
}

int tree_part_read(struct tree_part *part, struct http_request *request, uint64_t nodes,
                   uint64_t nodes_max, struct error *error)
{
    size_t capacity = 0;
    part->nodes = nodes;
    int r = question_number(request, "max_nodes", 2, nodes_max, &part->nodes, error);
    for (size_t i = 0; !r && i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (strcmp(name, "focus"))
            continue;
        if (part->focus_count == FOCUS_FRAMES_MAX)
            return error_set(error, -EINVAL,
                             "A part of the call tree is named by at most %d frames.",
                             FOCUS_FRAMES_MAX);
        array_reserve(part->focus, capacity, part->focus_count + 1);
        part->focus[part->focus_count++] = value;
    }
    return r;
}

int tree_part_missing(struct error *error)
{
    return error_set(error, -ENOENT,
                     "No stack of the selection begins with the frames of focus; names are "
                     "compared exactly, the outermost caller first.");
}

int tree_part_take(const struct tree_part *part, struct calltree *tree, uint32_t *ret_dropped,
                   struct error *error)
{
    if (part->focus_count && !calltree_focus(tree, part->focus, part->focus_count))
        return tree_part_missing(error);
    *ret_dropped = calltree_limit(tree, (uint32_t)part->nodes);
    return 0;
}
