// SPDX-License-Identifier: Apache-2.0
// Lists of series, in pieces: see series_list.h.

#include "server/api/series_list.h"

#include <string.h>

#include "label/selector.h"

#define PIECE_BYTES (1u << 20) /* written before the store is left */

struct names {
    char **list;
    size_t count, capacity;
};

static int keep_name(void *context, const char *text)
{
    struct names *names = context;
    array_reserve(names->list, names->capacity, names->count + 1);
    names->list[names->count++] = memory_strdup(text);
    return 0;
}

struct piece {
    struct buffer *out;
    store_series_fn *fn;
    void *context;
    uint64_t skip, seen; /* of the service's series, those that were given before */
};

static int give(void *context, const struct labels *labels, const char *type, int64_t first_ns,
                int64_t last_ns)
{
    struct piece *piece = context;
    if (piece->seen++ < piece->skip)
        return 0;
    int r = piece->fn(piece->context, labels, type, first_ns, last_ns);
    return r ? r : piece->out->length >= PIECE_BYTES;
}

/* A series that comes or goes meanwhile may be there twice, or make another be missed. */
static int list_service(struct store *store, const struct store_selection *selection,
                        struct piece *piece, struct error *error)
{
    int r;
    piece->skip = 0;
    do {
        piece->seen = 0;
        r = store_series(store, selection, give, piece, error);
        piece->skip = piece->seen;
        if (!buffer_pass(piece->out))
            return piece->out->drain->failure;
    } while (r > 0);
    return r;
}

int series_list(struct store *store, const struct store_selection *selection, struct buffer *out,
                store_series_fn *fn, void *context, struct error *error)
{
    struct names services = {0};
    struct piece piece = {.out = out, .fn = fn, .context = context};
    int r = store_label_values(store, selection, LABEL_SERVICE_NAME, keep_name, &services, error);
    size_t matchers = selection->selector ? selection->selector->count : 0;
    struct matcher *all = memory_zalloc(matchers + 1, sizeof(*all));
    if (matchers)
        memcpy(all, selection->selector->matchers, matchers * sizeof(*all));
    struct selector selector = {.matchers = all, .count = matchers + 1};
    struct store_selection one = *selection;
    one.selector = &selector;
    for (size_t i = 0; !r && i < services.count; i++) {
        all[matchers] = (struct matcher){
            .kind = MATCH_EQUAL, .name = LABEL_SERVICE_NAME, .value = services.list[i]};
        r = list_service(store, &one, &piece, error);
    }
    for (size_t i = 0; i < services.count; i++)
        free(services.list[i]);
    free(services.list);
    free(all);
    return r;
}
