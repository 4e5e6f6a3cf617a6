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
#include "store/catalog.h"

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

/* A matcher that isn't one label: each value is looked at once. */
struct value_test {
    const struct matcher *matcher;
    uint32_t name;
    bool without;  /* what it says of series that don't have the label */
    uint8_t *seen; /* by pair: 0 not yet, 1 no, 2 yes */
};

struct selecting {
    const struct catalog *catalog;
    uint32_t pairs[SELECTOR_MATCHERS_MAX + 1]; /* that a series must have */
    struct value_test tests[SELECTOR_MATCHERS_MAX];
    size_t pair_count, test_count;
    bool none; /* of the series can be meant */
};

static void need_pair(struct selecting *selecting, const char *name_text, const char *value)
{
    const struct label_index *index = &selecting->catalog->index;
    uint32_t name = label_index_name(index, name_text);
    uint32_t pair = name == ID_NONE ? ID_NONE : label_index_pair(index, name, value);
    if (pair == ID_NONE)
        selecting->none = true;
    else
        selecting->pairs[selecting->pair_count++] = pair;
}

static void need_match(struct selecting *selecting, const struct matcher *matcher)
{
    const struct label_index *index = &selecting->catalog->index;
    if (matcher->kind == MATCH_EQUAL && *matcher->value) {
        need_pair(selecting, matcher->name, matcher->value);
        return;
    }
    uint32_t name = label_index_name(index, matcher->name);
    bool without = matcher_matches(matcher, "");
    if (name == ID_NONE) {
        selecting->none |= !without;
        return;
    }
    selecting->tests[selecting->test_count++] = (struct value_test){
        .matcher = matcher,
        .name = name,
        .without = without,
        .seen = memory_zalloc(index->pair_count, sizeof(uint8_t)),
    };
}

static bool passes(const struct value_test *test, const struct label_index *index,
                   const struct catalog_series *series)
{
    const struct index_slot *slot = catalog_slots(series);
    for (size_t i = 0; i < series->labels.count; i++) {
        const struct index_pair *pair = &index->pairs[slot[i].pair];
        if (pair->name != test->name)
            continue;
        uint8_t *seen = &test->seen[slot[i].pair];
        if (!*seen)
            *seen = matcher_matches(test->matcher, pair->value) ? 2 : 1;
        return *seen == 2;
    }
    return test->without;
}

static bool is_meant(const struct selecting *selecting, const struct catalog_series *series,
                     size_t driver)
{
    const struct index_slot *slot = catalog_slots(series);
    for (size_t k = 0; k < selecting->pair_count; k++) {
        bool has = k == driver;
        for (size_t i = 0; !has && i <= series->labels.count; i++)
            has = slot[i].pair == selecting->pairs[k];
        if (!has)
            return false;
    }
    for (size_t k = 0; k < selecting->test_count; k++)
        if (!passes(&selecting->tests[k], &selecting->catalog->index, series))
            return false;
    return true;
}

uint32_t *catalog_select(const struct catalog *catalog, const char *type,
                         const struct selector *selector, size_t *ret_count)
{
    struct selecting selecting = {.catalog = catalog};
    if (type)
        need_pair(&selecting, "", type);
    for (size_t i = 0; !selecting.none && selector && i < selector->count; i++)
        need_match(&selecting, &selector->matchers[i]);
    /* The rarest label's list is gone through. */
    const struct index_pair *pairs = catalog->index.pairs;
    size_t driver = 0, most = catalog->series_count, count = 0;
    for (size_t i = 1; i < selecting.pair_count; i++)
        if (pairs[selecting.pairs[i]].count < pairs[selecting.pairs[driver]].count)
            driver = i;
    uint32_t pair = selecting.pair_count ? selecting.pairs[driver] : ID_NONE, id = 0;
    if (pair != ID_NONE) {
        id = pairs[pair].first;
        most = pairs[pair].count;
    }
    uint32_t *list = memory_alloc((most + 1) * sizeof(*list));
    while (!selecting.none && id < catalog->series_count) {
        if (is_meant(&selecting, &catalog->series[id], driver))
            list[count++] = id;
        id = pair == ID_NONE ? id + 1 : catalog_next_with(catalog, id, pair);
    }
    for (size_t i = 0; i < selecting.test_count; i++)
        free(selecting.tests[i].seen);
    *ret_count = count;
    return list;
}
