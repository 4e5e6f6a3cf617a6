// SPDX-License-Identifier: Apache-2.0
// The part of a write that many threads do at once: a batch as rows of ClickHouse's tables. Frames,
// stacks and series that are known to be stored are left out.

#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/number.h"
#include "profile/unresolved.h"
#include "store/clickhouse/internal.h"
#include "store/file/catalog.h"

#define DAY_AHEAD_NS DAY_NS

/* A row of a window, before those of one stack are added up. */
struct encoded_row {
    uint64_t stack;
    int64_t value;
};

/* A stack that has to be announced. */
struct missing {
    uint32_t node; /* of the profile, or an unresolved stack */
    uint64_t stream, stack;
    uint16_t period;
};

struct encoder {
    struct clickhouse *store;
    struct pending *pending;
    const char *tenant;
    uint64_t tenant_hash;
    const struct profile *profile;
    struct stack_finder finder;
    struct digest_table seen; /* of this batch; ids are not used */
    struct encoded_row *rows;
    struct missing *missing;
    uint16_t day; /* of the partition of all rows, if there is one */
    bool one_day;
    size_t row_capacity, missing_count, missing_capacity;
};

static void encoder_release(struct encoder *encoder)
{
    stack_finder_release(&encoder->finder);
    digest_table_release(&encoder->seen);
    free(encoder->rows);
    free(encoder->missing);
}

/* ---- ids ---- */

static uint64_t text_hash(const struct clickhouse *store, const char *text)
{
    return XXH3_64bits_withSeed(text, strlen(text), store->store.seed);
}

uint64_t stream_id(const struct clickhouse *store, const char *service, const char *type)
{
    uint64_t parts[2] = {text_hash(store, service), text_hash(store, type)};
    return XXH3_64bits_withSeed(parts, sizeof(parts), store->store.seed);
}

uint64_t series_id(const struct clickhouse *store, const struct labels *labels, const char *type)
{
    uint64_t id = text_hash(store, type);
    for (size_t i = 0; i < labels->count; i++) {
        uint64_t parts[3] = {id, text_hash(store, labels->list[i].name),
                             text_hash(store, labels->list[i].value)};
        id = XXH3_64bits_withSeed(parts, sizeof(parts), store->store.seed);
    }
    return id;
}

static uint64_t stack_id(struct digest digest)
{
    return !digest.high ? 0 : digest.low ? digest.low : 1;
}

/* ---- what is stored already ---- */

enum announced { ANNOUNCED_SERIES, ANNOUNCED_STACK, ANNOUNCED_FRAME };

/* Whether it must be announced; then it is noted as part of this batch. */
static bool is_news(struct encoder *encoder, enum announced what, uint16_t period, uint64_t stream,
                    uint64_t id)
{
    uint64_t key[4] = {encoder->tenant_hash, stream, id, (uint64_t)period << 8 | what};
    XXH128_hash_t hash = XXH3_128bits_withSeed(key, sizeof(key), encoder->store->store.seed);
    struct digest digest = {.low = hash.low64, .high = hash.high64};
    struct pending *pending = encoder->pending;
    if (digest_table_find(&encoder->seen, digest) != ID_NONE ||
        known_has(&encoder->store->known, digest))
        return false;
    digest_table_insert(&encoder->seen, digest, 0);
    array_reserve(pending->known, pending->known_capacity, pending->known_count + 1);
    pending->known[pending->known_count++] = digest;
    return true;
}

static void announce_series(struct encoder *encoder, const struct store_profile *window,
                            const char *service, uint64_t stream, uint64_t series)
{
    struct buffer *out = &encoder->pending->series;
    const struct labels *labels = window->labels;
    row_u16(out, period_of(window->time_ns));
    row_text(out, encoder->tenant);
    row_u64(out, stream);
    row_u64(out, series);
    row_text(out, service);
    row_text(out, window->type);
    row_length(out, labels->count);
    for (size_t i = 0; i < labels->count; i++)
        row_text(out, labels->list[i].name);
    row_length(out, labels->count);
    for (size_t i = 0; i < labels->count; i++)
        row_text(out, labels->list[i].value);
}

static void row_string(struct buffer *out, const struct profile *profile, uint32_t string)
{
    row_bytes(out, profile->strings[string].data, profile->strings[string].length);
}

static void announce_frame(struct encoder *encoder, uint16_t period, uint32_t id, uint64_t digest)
{
    const struct profile *profile = encoder->profile;
    const struct profile_frame *frame = &profile->frames[id];
    const struct profile_function *function = &profile->functions[frame->function];
    const struct profile_mapping *mapping = &profile->mappings[frame->mapping];
    struct buffer *out = &encoder->pending->frames;
    row_u16(out, period);
    row_text(out, encoder->tenant);
    row_u64(out, digest);
    row_u64(out, frame->address);
    row_u32(out, frame->line);
    row_u32(out, frame->column);
    row_u32(out, function->start_line);
    row_u8(out, frame->kind);
    row_u8(out, frame->inlined);
    row_u8(out, frame->folded);
    row_string(out, profile, function->name);
    row_string(out, profile, function->system_name);
    row_string(out, profile, function->file);
    row_u64(out, mapping->start);
    row_u64(out, mapping->limit);
    row_u64(out, mapping->offset);
    row_string(out, profile, mapping->file);
    row_string(out, profile, mapping->build_id);
}

static void announce_stack(struct encoder *encoder, const struct missing *missing, uint32_t node)
{
    const struct profile *profile = encoder->profile;
    struct buffer *out = &encoder->pending->stacks;
    uint32_t depth = 0;
    stack_finder_digest(&encoder->finder, node); /* finds those of its frames */
    for (uint32_t at = node; at; at = profile->nodes[at].parent)
        depth++;
    row_u16(out, missing->period);
    row_text(out, encoder->tenant);
    row_u64(out, missing->stream);
    row_u64(out, missing->stack);
    row_length(out, depth);
    /* Innermost first, as stacks are written in most tools. */
    for (uint32_t at = node; at; at = profile->nodes[at].parent) {
        uint32_t frame = profile->nodes[at].frame;
        uint64_t id = stack_id(encoder->finder.frame[frame]);
        row_u64(out, id);
        if (is_news(encoder, ANNOUNCED_FRAME, missing->period, 0, id))
            announce_frame(encoder, missing->period, frame, id);
    }
}

/* At the end of a profile's windows: its unresolved stacks, of those only that are missing, become
 * nodes, and then the tables no longer grow. */
static void announce_missing(struct encoder *encoder)
{
    struct unresolved_stacks *unresolved = encoder->profile ? encoder->profile->unresolved : NULL;
    if (!encoder->missing_count)
        return;
    if (unresolved) {
        _cleanup_free_ uint32_t *scratch =
            memory_alloc((unresolved->deepest + 1ul) * sizeof(*scratch));
        for (size_t i = 0; i < encoder->missing_count; i++)
            encoder->missing[i].node =
                unresolved_node(unresolved, encoder->missing[i].node, scratch);
        stack_finder_init(&encoder->finder, encoder->profile, encoder->store->store.seed);
    }
    for (size_t i = 0; i < encoder->missing_count; i++)
        announce_stack(encoder, &encoder->missing[i], encoder->missing[i].node);
    encoder->missing_count = 0;
}

static uint64_t find_stack(struct encoder *encoder, uint32_t node, uint64_t stream, uint16_t period)
{
    const struct unresolved_stacks *unresolved = encoder->profile->unresolved;
    struct digest digest =
        unresolved ? unresolved->digests[node] : stack_finder_digest(&encoder->finder, node);
    uint64_t stack = stack_id(digest);
    if (stack && is_news(encoder, ANNOUNCED_STACK, period, stream, stack)) {
        array_reserve(encoder->missing, encoder->missing_capacity, encoder->missing_count + 1);
        encoder->missing[encoder->missing_count++] =
            (struct missing){.node = node, .stream = stream, .stack = stack, .period = period};
    }
    return stack;
}

/* ---- windows ---- */

/* A batch goes into one partition, of its last day, so that it is one insert; unless it reaches
 * back for more than the day that queries look ahead. */
static void choose_day(struct encoder *encoder, const struct store_batch *batch)
{
    uint16_t first = DAY_LAST, last = 0;
    for (size_t i = 0; i < batch->count; i++) {
        uint16_t day = day_of(batch->profiles[i].time_ns);
        first = MIN(first, day);
        last = MAX(last, day);
    }
    encoder->day = last;
    encoder->one_day = last - first <= DAYS_AHEAD;
}

static struct day_rows *find_day(struct pending *pending, uint16_t day)
{
    for (size_t i = 0; i < pending->day_count; i++)
        if (pending->days[i].day == day)
            return &pending->days[i];
    pending->days = memory_resize(pending->days, pending->day_count + 1, sizeof(*pending->days));
    pending->days[pending->day_count] = (struct day_rows){.day = day};
    return &pending->days[pending->day_count++];
}

static int compare_rows(const void *a, const void *b)
{
    const struct encoded_row *x = a, *y = b;
    return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* The columns of `samples`, in the order of the insert in write.c. */
struct sample_row {
    enum row_kind kind;
    uint16_t day;
    uint64_t stream, series, stack;
    int64_t time_ns, value, duration_ns;
    uint32_t rows;
    uint64_t batch;
    const struct store_exemplar *exemplar;
};

static void add_row(struct buffer *out, const char *tenant, const struct sample_row *row)
{
    row_u16(out, row->day);
    row_text(out, tenant);
    row_u8(out, (uint8_t)row->kind);
    row_u64(out, row->stream);
    row_u32(out, hour_of(row->time_ns));
    row_u64(out, row->series);
    row_u64(out, row->stack);
    row_i64(out, row->time_ns);
    row_i64(out, row->value);
    row_i64(out, row->duration_ns);
    row_u32(out, row->rows);
    row_u64(out, row->batch);
    if (!row->exemplar) {
        row_u8(out, 0);
        return;
    }
    row_length(out, sizeof(row->exemplar->link) + sizeof(row->exemplar->time_ns));
    buffer_add(out, &row->exemplar->link, sizeof(row->exemplar->link));
    row_i64(out, row->exemplar->time_ns);
}

static void encode_window(struct encoder *encoder, const struct store_profile *window)
{
    struct pending *pending = encoder->pending;
    const char *service = labels_get(window->labels, LABEL_SERVICE_NAME);
    uint16_t period = period_of(window->time_ns);
    struct sample_row row = {.stream = stream_id(encoder->store, service, window->type),
                             .series = series_id(encoder->store, window->labels, window->type),
                             .time_ns = window->time_ns,
                             .day = encoder->one_day ? encoder->day : day_of(window->time_ns)};
    if (is_news(encoder, ANNOUNCED_SERIES, period, row.stream, row.series))
        announce_series(encoder, window, service, row.stream, row.series);
    array_reserve(encoder->rows, encoder->row_capacity, window->row_count);
    for (size_t i = 0; i < window->row_count; i++)
        encoder->rows[i] = (struct encoded_row){
            .stack = find_stack(encoder, window->rows[i].node, row.stream, period),
            .value = window->rows[i].value};
    if (window->row_count)
        qsort(encoder->rows, window->row_count, sizeof(*encoder->rows), compare_rows);
    size_t kept = 0;
    int64_t total = 0;
    for (size_t i = 0; i < window->row_count; i++) {
        total = add_saturated(total, encoder->rows[i].value);
        if (kept && encoder->rows[kept - 1].stack == encoder->rows[i].stack)
            encoder->rows[kept - 1].value =
                add_saturated(encoder->rows[kept - 1].value, encoder->rows[i].value);
        else
            encoder->rows[kept++] = encoder->rows[i];
    }
    struct day_rows *day = find_day(pending, row.day);
    if (!day->rows.length) {
        day->stream = row.stream;
        day->series = row.series;
        day->time_ns = row.time_ns;
    }
    struct sample_row head = row;
    head.kind = ROW_WINDOW;
    head.value = total;
    head.duration_ns = window->duration_ns;
    head.rows = (uint32_t)kept;
    head.batch = pending->batch;
    add_row(&day->rows, encoder->tenant, &head);
    row.kind = ROW_SAMPLE;
    for (size_t i = 0; i < kept; i++) {
        row.stack = encoder->rows[i].stack;
        row.value = encoder->rows[i].value;
        add_row(&day->rows, encoder->tenant, &row);
    }
    row.kind = ROW_EXEMPLAR;
    for (size_t i = 0; i < window->exemplar_count; i++) {
        row.exemplar = &window->exemplars[i];
        row.stack = find_stack(encoder, row.exemplar->node, row.stream, period);
        row.value = row.exemplar->value;
        add_row(&day->rows, encoder->tenant, &row);
    }
    pending->rows += window->row_count;
    pending->windows++;
}

static int check_window(struct clickhouse *store, const struct store_profile *window,
                        struct error *error)
{
    const char *service = labels_get(window->labels, LABEL_SERVICE_NAME);
    unsigned days = clickhouse_raw_days(store, service);
    int64_t now = store->now(store->now_context), time_ns = window->time_ns;
    const struct unresolved_stacks *unresolved = window->profile->unresolved;
    if (unresolved && unresolved->seed != store->store.seed)
        return error_set(error, -EINVAL, "Stacks were digested with the seed of another store.");
    if (time_ns > now + DAY_AHEAD_NS)
        return error_set(error, -ERANGE,
                         "A profile is more than a day ahead of this machine's clock; check the "
                         "sender's clock.");
    if (days && time_ns < now - days * DAY_NS)
        return error_set(error, -ERANGE, "A profile is older than the retention period of %u days.",
                         days);
    return 0;
}

int clickhouse_encode(struct clickhouse *store, const struct store_batch *batch,
                      struct pending *pending, struct error *error)
{
    _cleanup_(encoder_release) struct encoder encoder = {.store = store,
                                                         .pending = pending,
                                                         .tenant = batch->tenant,
                                                         .tenant_hash =
                                                             text_hash(store, batch->tenant)};
    for (size_t i = 0; i < batch->count; i++) {
        int r = check_window(store, &batch->profiles[i], error);
        if (r < 0)
            return r;
    }
    choose_day(&encoder, batch);
    for (size_t i = 0; i < batch->count; i++) {
        const struct profile *profile = batch->profiles[i].profile;
        if (profile != encoder.profile) {
            announce_missing(&encoder);
            stack_finder_release(&encoder.finder);
            encoder.profile = profile;
            if (!profile->unresolved)
                stack_finder_init(&encoder.finder, profile, store->store.seed);
        }
        encode_window(&encoder, &batch->profiles[i]);
    }
    announce_missing(&encoder);
    return 0;
}
