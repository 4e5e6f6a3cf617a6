// SPDX-License-Identifier: Apache-2.0
// Sets of texts: names and values of labels, and types, of many files.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "store/internal.h"

void text_set_release(struct text_set *set)
{
    free(set->list);
    id_table_release(&set->index);
    arena_release(&set->arena);
    *set = (struct text_set){0};
}

void text_set_add(struct text_set *set, const char *text)
{
    size_t length = strlen(text);
    uint64_t hash = XXH3_64bits(text, length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&set->index, &probe)) != ID_NONE)
        if (!strcmp(set->list[id], text))
            return;
    id = (uint32_t)set->count++;
    array_reserve(set->list, set->capacity, set->count);
    set->list[id] = arena_strndup(&set->arena, text, length);
    id_table_insert(&set->index, hash, id);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int text_set_give(struct text_set *set, store_text_fn *fn, void *context)
{
    if (set->count)
        qsort(set->list, set->count, sizeof(*set->list), compare_texts);
    int r = 0;
    for (size_t i = 0; !r && i < set->count; i++)
        r = fn(context, set->list[i]);
    return r;
}

struct collecting {
    enum store_texts what;
    const char *name;
    struct text_set *set;
};

static int collect(void *context, const struct labels *labels, const char *type, int64_t first_ns,
                   int64_t last_ns)
{
    struct collecting *collecting = context;
    (void)first_ns;
    (void)last_ns;
    if (collecting->what == TEXTS_TYPES) {
        text_set_add(collecting->set, type);
    } else if (collecting->what == TEXTS_VALUES) {
        const char *value = labels_get(labels, collecting->name);
        if (value)
            text_set_add(collecting->set, value);
    } else {
        for (size_t i = 0; i < labels->count; i++)
            text_set_add(collecting->set, labels->list[i].name);
    }
    return 0;
}

int texts_from_series(struct store *store, const struct store_selection *selection,
                      enum store_texts what, const char *name, struct text_set *set,
                      struct error *error)
{
    struct collecting collecting = {.what = what, .name = name, .set = set};
    return store->operations->series(store, selection, collect, &collecting, error);
}
