// SPDX-License-Identifier: Apache-2.0
// The index of a catalog's labels. Each label's text is there once, with a list of the series that
// have it, in order of their ids; a profile type counts as the value of a label without a name. A
// list goes from series to series: each knows the next one for each of its labels, so that an index
// of labels which only one series has, such as pods, takes little.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "store/file/catalog.h"

void label_index_release(struct label_index *index)
{
    arena_release(&index->texts);
    free(index->pairs);
    free(index->names);
    id_table_release(&index->pair_table);
    id_table_release(&index->name_table);
    *index = (struct label_index){0};
}

static size_t table_memory(const struct id_table *table)
{
    return table->slots ? (table->mask + 1) * sizeof(*table->slots) : 0;
}

size_t label_index_memory(const struct label_index *index)
{
    return index->texts.total_bytes + index->pair_capacity * sizeof(*index->pairs) +
           index->name_capacity * sizeof(*index->names) + table_memory(&index->pair_table) +
           table_memory(&index->name_table);
}

static uint64_t name_hash(const char *name)
{
    return XXH3_64bits(name, strlen(name));
}

uint32_t label_index_name(const struct label_index *index, const char *name)
{
    struct id_probe probe = id_probe_start(name_hash(name));
    uint32_t id;
    while ((id = id_table_next(&index->name_table, &probe)) != ID_NONE)
        if (!strcmp(index->names[id].text, name))
            break;
    return id;
}

static uint64_t pair_hash(uint32_t name, const char *value)
{
    return XXH3_64bits_withSeed(value, strlen(value), name);
}

uint32_t label_index_pair(const struct label_index *index, uint32_t name, const char *value)
{
    struct id_probe probe = id_probe_start(pair_hash(name, value));
    uint32_t id;
    while ((id = id_table_next(&index->pair_table, &probe)) != ID_NONE)
        if (index->pairs[id].name == name && !strcmp(index->pairs[id].value, value))
            break;
    return id;
}

static uint32_t add_name(struct label_index *index, const char *name)
{
    uint32_t id = label_index_name(index, name);
    if (id != ID_NONE)
        return id;
    id = (uint32_t)index->name_count++;
    array_reserve(index->names, index->name_capacity, index->name_count);
    index->names[id] = (struct index_name){.text = arena_strndup(&index->texts, name, strlen(name)),
                                           .first = ID_NONE,
                                           .last = ID_NONE};
    id_table_insert(&index->name_table, name_hash(name), id);
    return id;
}

static uint32_t add_pair(struct label_index *index, const char *name_text, const char *value)
{
    uint32_t name = add_name(index, name_text), id = label_index_pair(index, name, value);
    if (id != ID_NONE)
        return id;
    id = (uint32_t)index->pair_count++;
    array_reserve(index->pairs, index->pair_capacity, index->pair_count);
    index->pairs[id] =
        (struct index_pair){.value = arena_strndup(&index->texts, value, strlen(value)),
                            .name = name,
                            .first = ID_NONE,
                            .last = ID_NONE,
                            .next = ID_NONE};
    struct index_name *entry = &index->names[name];
    if (entry->last == ID_NONE)
        entry->first = id;
    else
        index->pairs[entry->last].next = id;
    entry->last = id;
    id_table_insert(&index->pair_table, pair_hash(name, value), id);
    return id;
}

uint32_t catalog_next_with(const struct catalog *catalog, uint32_t series, uint32_t pair)
{
    const struct catalog_series *entry = &catalog->series[series];
    const struct index_slot *slot = catalog_slots(entry);
    for (size_t i = 0; i <= entry->labels.count; i++)
        if (slot[i].pair == pair)
            return slot[i].next;
    return ID_NONE;
}

static void add_to_list(struct catalog *catalog, uint32_t pair, uint32_t series)
{
    struct index_pair *entry = &catalog->index.pairs[pair];
    if (entry->last == ID_NONE) {
        entry->first = series;
    } else {
        struct catalog_series *last = &catalog->series[entry->last];
        struct index_slot *slot = catalog_slots(last);
        for (size_t i = 0; i <= last->labels.count; i++)
            if (slot[i].pair == pair)
                slot[i].next = series;
    }
    entry->last = series;
    entry->count++;
}

void catalog_index_series(struct catalog *catalog, uint32_t id, const struct labels *labels,
                          const char *type)
{
    struct label_index *index = &catalog->index;
    struct catalog_series *series = &catalog->series[id];
    size_t count = labels->count;
    series->labels = (struct labels){.count = count};
    series->labels.list = arena_alloc(&index->texts, count * sizeof(struct label) +
                                                         (count + 1) * sizeof(struct index_slot));
    struct index_slot *slots = catalog_slots(series);
    for (size_t i = 0; i <= count; i++) {
        uint32_t pair = i < count ? add_pair(index, labels->list[i].name, labels->list[i].value)
                                  : add_pair(index, "", type);
        const char *value = index->pairs[pair].value;
        if (i < count)
            series->labels.list[i] =
                (struct label){.name = index->names[index->pairs[pair].name].text, .value = value};
        else
            series->type = value;
        slots[i] = (struct index_slot){.pair = pair, .next = ID_NONE};
        add_to_list(catalog, pair, id);
    }
}

/* ---- selecting ---- */

/* The series that are left. Expressions run without the lock, on values that stay where they are:
 * what is added meanwhile came after the query. */
struct selecting {
    const struct catalog *catalog;
    pthread_rwlock_t *lock; /* NULL: nobody adds anything */
    uint32_t *ids;
    size_t count;
};

static void lock_catalog(const struct selecting *selecting)
{
    if (selecting->lock)
        pthread_rwlock_rdlock(selecting->lock);
}

static void unlock_catalog(const struct selecting *selecting)
{
    if (selecting->lock)
        pthread_rwlock_unlock(selecting->lock);
}

/* Labels that a series must have. */
struct needed {
    uint32_t pairs[SELECTOR_MATCHERS_MAX + 1];
    size_t count;
    bool none; /* of the series has all of them */
};

static void need_pair(const struct label_index *index, const char *name_text, const char *value,
                      struct needed *needed)
{
    uint32_t name = label_index_name(index, name_text);
    uint32_t pair = name == ID_NONE ? ID_NONE : label_index_pair(index, name, value);
    if (pair == ID_NONE)
        needed->none = true;
    else
        needed->pairs[needed->count++] = pair;
}

static bool is_one_label(const struct matcher *matcher)
{
    return matcher->kind == MATCH_EQUAL && *matcher->value;
}

static bool has_pairs(const struct catalog_series *series, const struct needed *needed)
{
    const struct index_slot *slot = catalog_slots(series);
    bool has = true;
    for (size_t k = 0; has && k < needed->count; k++) {
        has = false;
        for (size_t i = 0; !has && i <= series->labels.count; i++)
            has = slot[i].pair == needed->pairs[k];
    }
    return has;
}

/* Begins with the series that have all labels which the selector names one value of. */
static void select_by_labels(struct selecting *selecting, const char *type,
                             const struct selector *selector)
{
    const struct catalog *catalog = selecting->catalog;
    const struct index_pair *pairs = catalog->index.pairs;
    struct needed needed = {0};
    if (type)
        need_pair(&catalog->index, "", type, &needed);
    for (size_t i = 0; selector && i < selector->count; i++)
        if (is_one_label(&selector->matchers[i]))
            need_pair(&catalog->index, selector->matchers[i].name, selector->matchers[i].value,
                      &needed);
    /* The rarest label's list is gone through. */
    size_t most = catalog->series_count;
    uint32_t pair = ID_NONE, id = 0;
    for (size_t i = 0; i < needed.count; i++)
        if (pair == ID_NONE || pairs[needed.pairs[i]].count < pairs[pair].count)
            pair = needed.pairs[i];
    if (pair != ID_NONE) {
        id = pairs[pair].first;
        most = pairs[pair].count;
    }
    selecting->ids = memory_alloc((most + 1) * sizeof(*selecting->ids));
    while (!needed.none && id < catalog->series_count) {
        if (has_pairs(&catalog->series[id], &needed))
            selecting->ids[selecting->count++] = id;
        id = pair == ID_NONE ? id + 1 : catalog_next_with(catalog, id, pair);
    }
}

/* One matcher and the values that it has to look at, each once. */
struct value_test {
    const struct matcher *matcher;
    uint32_t *value_of; /* by place in the selecting's list; ID_NONE: without the label */
    const char **values;
    bool *passes;
    size_t count, capacity;
};

static void value_test_release(struct value_test *test)
{
    free(test->value_of);
    free((void *)test->values);
    free(test->passes);
}

static void gather_values(const struct selecting *selecting, struct value_test *test)
{
    const struct catalog *catalog = selecting->catalog;
    const struct label_index *index = &catalog->index;
    uint32_t name = label_index_name(index, test->matcher->name);
    _cleanup_free_ uint32_t *by_pair = memory_alloc((index->pair_count + 1) * sizeof(*by_pair));
    memset(by_pair, 0xff, index->pair_count * sizeof(*by_pair)); /* ID_NONE */
    test->value_of = memory_alloc((selecting->count + 1) * sizeof(*test->value_of));
    for (size_t i = 0; i < selecting->count; i++) {
        const struct catalog_series *series = &catalog->series[selecting->ids[i]];
        const struct index_slot *slot = catalog_slots(series);
        size_t k = 0;
        while (k < series->labels.count && index->pairs[slot[k].pair].name != name)
            k++;
        test->value_of[i] = ID_NONE;
        if (k == series->labels.count)
            continue;
        uint32_t *value = &by_pair[slot[k].pair];
        if (*value == ID_NONE) {
            array_reserve(test->values, test->capacity, test->count + 1);
            *value = (uint32_t)test->count;
            test->values[test->count++] = index->pairs[slot[k].pair].value;
        }
        test->value_of[i] = *value;
    }
}

static int keep_matching(struct selecting *selecting, struct value_test *test,
                         struct match_budget *budget, struct error *error)
{
    struct matching matching;
    bool without = false;
    test->passes = memory_zalloc(test->count + 1, sizeof(bool));
    matching_begin(&matching, budget);
    int r = matching_test(&matching, test->matcher, "", &without, error);
    for (size_t i = 0; !r && i < test->count; i++)
        r = matching_test(&matching, test->matcher, test->values[i], &test->passes[i], error);
    matching_end(&matching);
    size_t kept = 0;
    for (size_t i = 0; i < selecting->count; i++)
        if (test->value_of[i] == ID_NONE ? without : test->passes[test->value_of[i]])
            selecting->ids[kept++] = selecting->ids[i];
    selecting->count = kept;
    return r;
}

int catalog_select(const struct catalog *catalog, pthread_rwlock_t *lock, const char *type,
                   const struct selector *selector, struct match_budget *budget, uint32_t **ret_ids,
                   size_t *ret_count, struct error *error)
{
    struct selecting selecting = {.catalog = catalog, .lock = lock};
    int r = 0;
    lock_catalog(&selecting);
    select_by_labels(&selecting, type, selector);
    unlock_catalog(&selecting);
    for (size_t i = 0; !r && selecting.count && selector && i < selector->count; i++) {
        struct value_test test = {.matcher = &selector->matchers[i]};
        if (is_one_label(test.matcher))
            continue;
        lock_catalog(&selecting);
        gather_values(&selecting, &test);
        unlock_catalog(&selecting);
        r = keep_matching(&selecting, &test, budget, error);
        value_test_release(&test);
    }
    if (r < 0) {
        free(selecting.ids);
        return r;
    }
    *ret_ids = selecting.ids;
    *ret_count = selecting.count;
    return 0;
}
