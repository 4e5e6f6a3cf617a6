// SPDX-License-Identifier: Apache-2.0
// Selects a part of a call tree, and its size, from the parameters of a request.

#include "server/api/tree_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "label/quote.h"
#include "query/focus.h"
#include "server/handler/parameters.h"
#include "server/query/context.h"

void tree_part_release(struct tree_part *part)
{
    free(part->focus);
    *part = (struct tree_part){0};
}

int tree_part_read(struct tree_part *part, struct http_request *request, uint64_t nodes,
                   uint64_t nodes_max, struct error *error)
{
    part->nodes = nodes;
    int r = parameter_number(request, "max_nodes", 2, nodes_max, &part->nodes, error);
    return r < 0 ? r : tree_part_read_focus(part, request, error);
}

int tree_part_read_focus(struct tree_part *part, struct http_request *request, struct error *error)
{
    size_t capacity = 0;
    for (size_t i = 0; i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (strcmp(name, "focus"))
            continue;
        if (part->focus_count == FOCUS_FRAMES_MAX)
            return error_set(error, -EINVAL, "The limit of focus is %d frames.", FOCUS_FRAMES_MAX);
        array_reserve(part->focus, capacity, part->focus_count + 1);
        part->focus[part->focus_count++] = value;
    }
    return 0;
}

int tree_part_read_split(const char **ret_label, struct http_request *request, struct error *error)
{
    const char *label = http_request_query(request, "split");
    if (label && *label && !label_name_valid(label, strlen(label)))
        return error_set(error, -EINVAL, "split is not the name of a label: \"%.60s\".", label);
    *ret_label = label && *label ? label : NULL;
    return 0;
}

int tree_part_missing(struct error *error)
{
    return error_set(error, -ENOENT,
                     "No stack of the selection begins with the frames of focus; names must match "
                     "exactly, outermost caller first.");
}

int tree_part_take(const struct tree_part *part, struct calltree *tree, struct flame_table *table,
                   struct flame_options *options, struct error *error)
{
    if (part->focus_count && !calltree_focus(tree, part->focus, part->focus_count))
        return tree_part_missing(error);
    if (table && !part->focus_count && tree->node_count > part->nodes) {
        flame_table_init(table, tree);
        options->table = table;
    }
    options->dropped += calltree_limit(tree, (uint32_t)part->nodes);
    return 0;
}
