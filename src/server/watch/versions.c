// SPDX-License-Identifier: Apache-2.0
// Versions of services: see versions.h.

#include "server/watch/versions.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/idtable.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/watch/book.h"

struct reading {
    struct version_list *list;
    struct id_table by_name;
};

static bool fits(const char *text)
{
    size_t length = strlen(text);
    return length < WATCH_NAME_BYTES && utf8_valid(text, length);
}

static struct version_span *find_or_add(struct reading *reading, const char *service,
                                        const char *version)
{
    struct version_list *list = reading->list;
    uint64_t hash =
        XXH3_64bits_withSeed(version, strlen(version), XXH3_64bits(service, strlen(service)));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&reading->by_name, &probe)) != ID_NONE)
        if (!strcmp(list->spans[id].service, service) && !strcmp(list->spans[id].version, version))
            return &list->spans[id];
    if (list->count >= VERSIONS_MAX)
        return NULL;
    array_reserve(list->spans, list->capacity, list->count + 1);
    id = (uint32_t)list->count++;
    list->spans[id] = (struct version_span){.service = memory_strdup(service),
                                            .version = memory_strdup(version),
                                            .first_ns = INT64_MAX};
    id_table_insert(&reading->by_name, hash, id);
    return &list->spans[id];
}

static int note_series(void *context, const struct labels *labels, const char *type,
                       int64_t first_ns, int64_t last_ns)
{
    struct reading *reading = context;
    const char *service = labels_get(labels, "service_name");
    const char *version = labels_get(labels, "version");
    (void)type;
    if (!service || !*service || !version || !*version || labels_get(labels, LABEL_RECORDING))
        return 0;
    struct version_span *span =
        fits(service) && fits(version) ? find_or_add(reading, service, version) : NULL;
    if (!span) {
        reading->list->left_out++;
        return 0;
    }
    span->first_ns = MIN(span->first_ns, first_ns);
    span->last_ns = MAX(span->last_ns, last_ns);
    return 0;
}

static int by_service(const void *a, const void *b)
{
    const struct version_span *x = a, *y = b;
    int order = strcmp(x->service, y->service);
    return order ? order : x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

int version_list_read(struct version_list *list, struct store *store, const char *tenant,
                      int64_t from_ns, int64_t to_ns, struct error *error)
{
    struct reading reading = {.list = list};
    struct store_selection selection = {.tenant = tenant, .from_ns = from_ns, .to_ns = to_ns};
    *list = (struct version_list){0};
    int r = store_series(store, &selection, note_series, &reading, error);
    id_table_release(&reading.by_name);
    if (list->count)
        qsort(list->spans, list->count, sizeof(*list->spans), by_service);
    return r;
}

void version_list_release(struct version_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->spans[i].service);
        free(list->spans[i].version);
    }
    free(list->spans);
    *list = (struct version_list){0};
}
