// SPDX-License-Identifier: Apache-2.0
// Which series a selection means. ClickHouse gives the label sets of a tenant's streams, and
// selectors are matched here, so that expressions mean the same in every engine; what is read of
// samples is then chosen by ids.

#include <stdlib.h>

#include "base/memory.h"
#include "store/clickhouse/internal.h"
#include "store/witness.h"

void chosen_release(struct chosen *chosen)
{
    for (size_t i = 0; i < chosen->count; i++) {
        labels_release(&chosen->list[i].labels);
        free(chosen->list[i].type);
    }
    free(chosen->list);
    id_table_release(&chosen->index);
    *chosen = (struct chosen){0};
}

struct chosen_series *chosen_find(const struct chosen *chosen, uint64_t id)
{
    struct id_probe probe = id_probe_start(id);
    uint32_t found;
    while ((found = id_table_next(&chosen->index, &probe)) != ID_NONE)
        if (chosen->list[found].id == id)
            return &chosen->list[found];
    return NULL;
}

struct loading {
    struct chosen *chosen;
    struct row_text *texts; /* of a row: names, then values */
    size_t text_capacity;
};

static size_t read_texts(struct row_reader *row, struct loading *loading, size_t at)
{
    size_t count = row_get_length(row);
    for (size_t i = 0; i < count && !row->is_short; i++) {
        array_reserve(loading->texts, loading->text_capacity, at + i + 1);
        loading->texts[at + i] = row_get_text(row);
    }
    return count;
}

static int read_series(void *context, struct row_reader *row, struct error *error)
{
    struct loading *loading = context;
    struct chosen *chosen = loading->chosen;
    uint64_t stream = row_get_u64(row), id = row_get_u64(row);
    struct row_text type = row_get_text(row);
    size_t names = read_texts(row, loading, 0);
    size_t values = row->is_short ? 0 : read_texts(row, loading, names);
    if (row->is_short)
        return 0;
    if (names != values)
        return error_set(error, -EBADMSG, "The table series has labels without values.");
    if (chosen_find(chosen, id)) /* of another period */
        return 0;
    array_reserve(chosen->list, chosen->capacity, chosen->count + 1);
    struct chosen_series *series = &chosen->list[chosen->count];
    *series = (struct chosen_series){
        .stream = stream, .id = id, .type = memory_strndup(type.data, type.length)};
    for (size_t i = 0; i < names; i++)
        labels_set_n(&series->labels, loading->texts[i].data, loading->texts[i].length,
                     loading->texts[names + i].data, loading->texts[names + i].length);
    id_table_insert(&chosen->index, id, (uint32_t)chosen->count++);
    return 0;
}

static int is_selected(struct matching *matching, const struct store_selection *selection,
                       const struct labels *labels, bool *ret_selected, struct error *error)
{
    const struct selector *selector = selection->selector;
    bool selected = true;
    int r = 0;
    for (size_t i = 0; !r && selected && selector && i < selector->count; i++) {
        const char *value = labels_get(labels, selector->matchers[i].name);
        r = matching_test(matching, &selector->matchers[i], value ? value : "", &selected, error);
    }
    *ret_selected = !r && selected;
    return r;
}

/* A process has one service, so that witnesses are of the same. */
static void add_service(const struct store_selection *selection, struct buffer *sql)
{
    const struct selector *selector = selection->selector;
    for (size_t i = 0; selector && i < selector->count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (matcher->kind == MATCH_EQUAL && *matcher->value &&
            !strcmp(matcher->name, LABEL_SERVICE_NAME)) {
            buffer_add_text(sql, " AND service = ");
            sql_text(sql, matcher->value);
        }
    }
}

static void find_witnesses(struct chosen *chosen, const struct store_selection *selection)
{
    _cleanup_witnesses_ struct witnesses witnesses = {.selector = selection->selector};
    for (size_t i = 0; i < chosen->count; i++)
        if (chosen->list[i].selected)
            witnesses_note(&witnesses, &chosen->list[i].labels);
    for (size_t i = 0; witnesses.count && i < chosen->count; i++) {
        struct chosen_series *series = &chosen->list[i];
        series->witness = !series->selected && !is_excluded(selection, &series->labels) &&
                          witnesses_has(&witnesses, &series->labels);
    }
}

int chosen_load(struct clickhouse *store, const struct store_selection *selection,
                enum chosen_for purpose, const atomic_bool *cancelled, struct chosen *ret_chosen,
                struct error *error)
{
    _cleanup_statement_ struct statement statement = {.cancelled = cancelled};
    struct chosen chosen = {0};
    struct loading loading = {.chosen = &chosen};
    buffer_add_text(&statement.sql, "SELECT stream, series, toString(type), label_names, "
                                    "label_values FROM series WHERE tenant = ");
    sql_text(&statement.sql, selection->tenant);
    if (selection->type) {
        buffer_add_text(&statement.sql, " AND type = ");
        sql_text(&statement.sql, selection->type);
    }
    add_service(selection, &statement.sql);
    sql_periods(&statement.sql, selection->from_ns, selection->to_ns);
    int r = links_query(&store->links, &statement, read_series, &loading, error);
    free(loading.texts);
    struct matching matching;
    matching_begin(&matching, selection->matching);
    for (size_t i = 0; !r && i < chosen.count; i++) {
        struct chosen_series *series = &chosen.list[i];
        r = is_selected(&matching, selection, &series->labels, &series->selected, error);
        if (purpose != CHOSEN_FOR_LIST && is_excluded(selection, &series->labels))
            series->selected = false;
        chosen.selected += series->selected;
    }
    matching_end(&matching);
    if (!r && purpose == CHOSEN_FOR_COVER)
        find_witnesses(&chosen, selection);
    if (r < 0) {
        chosen_release(&chosen);
        return r;
    }
    *ret_chosen = chosen;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static size_t unique(uint64_t *list, size_t count)
{
    size_t kept = 0;
    qsort(list, count, sizeof(*list), compare_ids);
    for (size_t i = 0; i < count; i++)
        if (!kept || list[kept - 1] != list[i])
            list[kept++] = list[i];
    return kept;
}

void chosen_where(const struct chosen *chosen, const struct store_selection *selection,
                  bool witnesses, struct buffer *sql)
{
    _cleanup_free_ uint64_t *ids = memory_zalloc(chosen->count + 1, sizeof(*ids));
    size_t count = 0;
    buffer_add_text(sql, "tenant = ");
    sql_text(sql, selection->tenant);
    buffer_add_text(sql, " AND ");
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (size_t i = 0; i < chosen->count; i++) {
            const struct chosen_series *series = &chosen->list[i];
            if (series->selected || (witnesses && series->witness))
                ids[count++] = pass ? series->id : series->stream;
        }
        sql_in(sql, pass ? "series" : "stream", ids, unique(ids, count));
        if (!pass)
            buffer_add_text(sql, " AND ");
    }
    sql_range(sql, selection->from_ns, selection->to_ns);
}
