// SPDX-License-Identifier: Apache-2.0
// Splits a call tree by a label. The store has labels by series, so each value is a query of its
// own.

#include "server/api/tree_split.h"

#include <stdlib.h>

#include "base/memory.h"

struct value_list {
    char *list[TREE_SPLIT_MAX + 1]; /* and "", for series without the label */
    size_t count;
    bool full;
};

static void value_list_release(struct value_list *values)
{
    for (size_t i = 0; i < values->count; i++)
        free(values->list[i]);
}

static int gather_value(void *context, const char *text)
{
    struct value_list *values = context;
    values->full = values->count > TREE_SPLIT_MAX;
    if (*text && !values->full)
        values->list[values->count++] = memory_strdup(text);
    return 0;
}

static int add_value(struct query_context *query_context, const struct matcher *matcher,
                     struct calltree *tree, struct error *error)
{
    _cleanup_profile_ struct profile profile;
    struct store_quality quality = {0};
    profile_init(&profile, 0);
    int r = query_context_merge_matching(query_context, matcher, &profile, &quality, error);
    if (r < 0 || !profile.samples.count)
        return r;
    _cleanup_buffer_ struct buffer name = {0};
    if (*matcher->value)
        buffer_printf(&name, "[%s %s]", matcher->name, matcher->value);
    else
        buffer_printf(&name, "[no %s]", matcher->name);
    calltree_below(tree, buffer_text(&name));
    r = calltree_add(tree, &profile, CALLTREE_NEW, error);
    calltree_below(tree, NULL);
    return r;
}

int tree_split_fill(struct query_context *query_context, const char *label, struct calltree *tree,
                    struct error *error)
{
    _cleanup_(value_list_release) struct value_list values = {0};
    values.list[values.count++] = memory_strdup("");
    int r = store_label_values(query_context->server->store, &query_context->selection, label,
                               gather_value, &values, error);
    if (r >= 0 && values.full)
        return error_set(error, -EINVAL,
                         "%.60s has more than %d values in this selection; split by another label, "
                         "or narrow the query.",
                         label, TREE_SPLIT_MAX);
    for (size_t i = 0; r >= 0 && i < values.count; i++)
        r = add_value(query_context, &(struct matcher){MATCH_EQUAL, label, values.list[i], NULL},
                      tree, error);
    return r < 0 ? r : 0;
}
