// SPDX-License-Identifier: Apache-2.0
// Exporting a store by scanning it, an hour of a service at a time: for engines that have no files
// of their own. Batches are those of an export of the embedded store with the same windows.

#include <stdlib.h>

#include "base/memory.h"
#include "store/internal.h"
#include "store/transfer/export_file.h"

#define HOUR_NS 3600000000000ll
#define BATCH_ROWS_MAX (1u << 20)

struct part { /* of a service: when it has windows */
    char *service;
    int64_t first_ns, last_ns;
};

struct scanning {
    struct store *store;
    const struct store_selection *selection;
    const struct store_limits *limits;
    struct export_writer writer;
    struct block_codec *codec;
    struct export_batch batch;
    struct buffer content;
    struct part *parts;
    size_t part_count, part_capacity;
    const char *tenant, *service; /* of the batch */
    /* From the scan's profile to the batch's tables. */
    struct frame_map frames;
    struct node_map nodes;
    uint64_t generation;
    bool mapped;
    uint32_t *row_nodes;
    int64_t *row_values;
    size_t row_capacity, value_capacity;
    struct error *error;
};

static void forget_maps(struct scanning *scanning)
{
    if (scanning->mapped) {
        frame_map_release(&scanning->frames);
        node_map_release(&scanning->nodes);
    }
    scanning->mapped = false;
}

static void begin_batch(struct scanning *scanning)
{
    export_batch_init(&scanning->batch, scanning->tenant, STORE_RAW);
    catalog_service(&scanning->batch.catalog, scanning->service);
}

static int flush_batch(struct scanning *scanning)
{
    int r = 0;
    if (scanning->batch.windows) {
        scanning->content.length = 0;
        export_batch_encode(&scanning->batch, scanning->codec, &scanning->content);
        r = export_writer_batch(&scanning->writer, &scanning->content, &scanning->batch);
    }
    forget_maps(scanning);
    export_batch_release(&scanning->batch);
    scanning->batch = (struct export_batch){0};
    return r;
}

static int take_window(void *context, const struct store_profile *window)
{
    struct scanning *scanning = context;
    struct export_batch *batch = &scanning->batch;
    if (!batch->tenant)
        begin_batch(scanning);
    if (!scanning->mapped || scanning->generation != window->generation) {
        forget_maps(scanning);
        frame_map_init(&scanning->frames, window->profile, &batch->catalog.tables);
        node_map_init(&scanning->nodes, &scanning->frames, window->profile->nodes,
                      window->profile->node_count, &batch->catalog.services[0].tree, NULL);
        scanning->mapped = true;
        scanning->generation = window->generation;
    }
    array_reserve(scanning->row_nodes, scanning->row_capacity, window->row_count + 1);
    array_reserve(scanning->row_values, scanning->value_capacity, window->row_count + 1);
    for (size_t i = 0; i < window->row_count; i++) {
        scanning->row_nodes[i] = node_map_node(&scanning->nodes, window->rows[i].node);
        scanning->row_values[i] = window->rows[i].value;
    }
    struct export_series *series = export_batch_series(batch, window->labels, window->type);
    struct block_window head = {.start_ns = window->time_ns,
                                .duration_ns = window->duration_ns,
                                .first_ns = window->time_ns,
                                .last_ns = window->time_ns,
                                .windows = 1};
    block_rows_add(&series->rows, &head, scanning->row_nodes, scanning->row_values,
                   window->row_count);
    for (size_t i = 0; i < window->exemplar_count; i++) {
        struct export_exemplar exemplar = {.start_ns = window->time_ns,
                                           .exemplar = window->exemplars[i]};
        exemplar.exemplar.node = node_map_node(&scanning->nodes, window->exemplars[i].node);
        array_reserve(series->exemplars, series->exemplar_capacity, series->exemplar_count + 1);
        series->exemplars[series->exemplar_count++] = exemplar;
    }
    batch->windows++;
    batch->rows += series->rows.windows[series->rows.window_count - 1].row_count;
    return batch->rows > BATCH_ROWS_MAX ? flush_batch(scanning) : 0;
}

/* ---- what there is ---- */

static int take_series(void *context, const struct labels *labels, const char *type,
                       int64_t first_ns, int64_t last_ns)
{
    struct scanning *scanning = context;
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    struct part *part = NULL;
    (void)type;
    for (size_t i = 0; service && !part && i < scanning->part_count; i++)
        if (!strcmp(scanning->parts[i].service, service))
            part = &scanning->parts[i];
    if (!service)
        return 0;
    if (!part) {
        array_reserve(scanning->parts, scanning->part_capacity, scanning->part_count + 1);
        part = &scanning->parts[scanning->part_count++];
        *part = (struct part){
            .service = memory_strdup(service), .first_ns = first_ns, .last_ns = last_ns};
    }
    part->first_ns = MIN(part->first_ns, first_ns);
    part->last_ns = MAX(part->last_ns, last_ns);
    return 0;
}

static int compare_parts(const void *a, const void *b)
{
    return strcmp(((const struct part *)a)->service, ((const struct part *)b)->service);
}

static void forget_parts(struct scanning *scanning)
{
    for (size_t i = 0; i < scanning->part_count; i++)
        free(scanning->parts[i].service);
    free(scanning->parts);
    scanning->parts = NULL;
    scanning->part_count = scanning->part_capacity = 0;
}

static int export_part(struct scanning *scanning, const struct part *part,
                       const struct store_selection *whole)
{
    _cleanup_selector_ struct selector selector = {0};
    _cleanup_buffer_ struct buffer text = {0};
    struct error *error = scanning->error;
    struct store_selection selection = *whole;
    int64_t from = MAX(whole->from_ns, part->first_ns),
            to = MIN(whole->to_ns, part->last_ns == INT64_MAX ? INT64_MAX : part->last_ns + 1);
    if (whole->selector)
        selector_write(&text, whole->selector);
    int r = selector_parse(buffer_text(&text), text.length, &selector, error);
    if (!r)
        r = selector_add(&selector, MATCH_EQUAL, LABEL_SERVICE_NAME, part->service, error);
    selection.selector = &selector;
    scanning->service = part->service;
    for (int64_t at = from; !r && at < to;) {
        int64_t next = MIN(to, (at / HOUR_NS + 1) * HOUR_NS);
        selection.from_ns = at;
        selection.to_ns = next;
        if (is_cancelled(scanning->limits))
            r = error_set(error, -ECANCELED, "The export was stopped.");
        if (!r)
            r = store_scan(scanning->store, &selection, scanning->limits, take_window, scanning,
                           error);
        if (!r)
            r = flush_batch(scanning);
        at = next;
    }
    return r;
}

static int export_tenant(void *context, const char *tenant)
{
    struct scanning *scanning = context;
    struct store_selection selection = *scanning->selection;
    selection.tenant = scanning->tenant = tenant;
    forget_parts(scanning);
    int r = store_series(scanning->store, &selection, take_series, scanning, scanning->error);
    if (scanning->part_count)
        qsort(scanning->parts, scanning->part_count, sizeof(*scanning->parts), compare_parts);
    for (size_t i = 0; !r && i < scanning->part_count; i++)
        r = export_part(scanning, &scanning->parts[i], &selection);
    return r;
}

int transfer_export(struct store *store, const struct store_selection *selection,
                    const struct store_limits *limits, store_sink_fn *sink, void *context,
                    struct store_transfer *transfer, struct error *error)
{
    struct scanning scanning = {.store = store,
                                .selection = selection,
                                .limits = limits,
                                .writer = {.sink = sink, .context = context},
                                .codec = block_codec_new(),
                                .error = error};
    int r = export_writer_begin(&scanning.writer);
    if (!r)
        r = selection->tenant ? export_tenant(&scanning, selection->tenant)
                              : store_tenants(store, export_tenant, &scanning, error);
    if (!r)
        r = export_writer_end(&scanning.writer);
    forget_maps(&scanning);
    forget_parts(&scanning);
    export_batch_release(&scanning.batch);
    block_codec_free(scanning.codec);
    buffer_release(&scanning.content);
    free(scanning.row_nodes);
    free(scanning.row_values);
    *transfer = (struct store_transfer){.batches = scanning.writer.batches,
                                        .windows = scanning.writer.windows,
                                        .rows = scanning.writer.rows,
                                        .bytes = scanning.writer.bytes};
    return r;
}
