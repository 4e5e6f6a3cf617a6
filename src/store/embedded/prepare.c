// SPDX-License-Identifier: Apache-2.0
// The part of a write that many threads do at once: finding each window's file, series and stacks,
// and encoding its rows. The writer thread only puts the result into the files.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "profile/unresolved.h"
#include "store/embedded/write.h"

/* State while windows of one profile are added to one file. */
struct preparation {
    struct embedded *store;
    struct request *request;
    const struct profile *profile;
    struct stack_finder finder;
    struct frame_map frames; /* of the profile in frames_file */
    struct node_map map;     /* of the profile in a service's tree */
    struct file *frames_file;
    struct block_rows rows;
    uint32_t *nodes; /* of the file, for each row */
    int64_t *values;
    struct digest *digests;
    uint32_t *missing; /* rows whose stack isn't known */
    uint32_t *known;   /* of frames_file, for each unresolved frame; 0: not yet */
    uint32_t *path;
    struct digest *marks; /* see MARK_FRAMES */
    size_t node_capacity, value_capacity, digest_capacity, missing_capacity, known_capacity,
        path_capacity, mark_capacity;
};

static void preparation_release(struct preparation *work)
{
    stack_finder_release(&work->finder);
    frame_map_release(&work->frames);
    node_map_release(&work->map);
    block_rows_release(&work->rows);
    free(work->nodes);
    free(work->values);
    free(work->digests);
    free(work->missing);
    free(work->known);
    free(work->path);
    free(work->marks);
}

void request_release(struct embedded *store, struct request *request)
{
    for (size_t i = 0; i < request->parcel_count; i++) {
        struct parcel *parcel = &request->parcels[i];
        embedded_unref(store, parcel->file);
        free(parcel->blocks);
        free(parcel->exemplars);
        buffer_release(&parcel->data);
    }
    free(request->parcels);
    request->parcels = NULL;
    request->parcel_count = 0;
}

static const struct store_class *class_of(struct embedded *store,
                                          const struct store_profile *window)
{
    return embedded_class_of(store, labels_get(window->labels, LABEL_SERVICE_NAME));
}

static int check_age(struct embedded *store, const struct store_profile *window,
                     struct error *error)
{
    const struct store_class *class = class_of(store, window);
    int64_t now = embedded_now(store), time_ns = window->time_ns;
    if (time_ns > now + DAY_NS)
        return error_set(error, -ERANGE,
                         "A profile is more than a day ahead of this machine's clock; check the "
                         "sender's clock.");
    if (class->days[STORE_RAW] && time_ns < now - class->days[STORE_RAW] * DAY_NS)
        return error_set(error, -ERANGE, "A profile is older than the retention period of %u days.",
                         class->days[STORE_RAW]);
    return 0;
}

static int find_parcel(struct preparation *work, const struct store_profile *window,
                       const char *tenant, struct parcel **ret_parcel, struct error *error)
{
    struct request *request = work->request;
    const struct store_class *class = class_of(work->store, window);
    for (size_t i = 0; i < request->parcel_count; i++) {
        struct file *file = request->parcels[i].file;
        if (window->time_ns >= file->from_ns && window->time_ns < file->to_ns &&
            !strcmp(file->class_name, class->name)) {
            *ret_parcel = &request->parcels[i];
            return 0;
        }
    }
    struct file *file =
        embedded_file(work->store, tenant, class->name, STORE_RAW, window->time_ns, true, error);
    if (!file)
        return error->code;
    request->parcels =
        memory_resize(request->parcels, request->parcel_count + 1, sizeof(*request->parcels));
    *ret_parcel = &request->parcels[request->parcel_count++];
    **ret_parcel = (struct parcel){.file = file};
    int r = file_load(file, error);
    if (r == -EBADMSG)
        embedded_set_aside(work->store, file, error->text);
    return r;
}

/* The series' id, with its service's tree in memory. Nearly always it is there already, and others
 * needn't wait. */
static int find_series(struct preparation *work, struct file *file,
                       const struct store_profile *window, uint32_t *ret_series,
                       uint32_t *ret_service, struct error *error)
{
    pthread_rwlock_rdlock(&file->lock);
    uint32_t series = catalog_find_series(&file->catalog, window->labels, window->type);
    if (series == ID_NONE) {
        pthread_rwlock_unlock(&file->lock);
        pthread_rwlock_wrlock(&file->lock);
        series = catalog_series(&file->catalog, window->labels, window->type);
        work->request->grew = true;
    }
    uint32_t service = file->catalog.series[series].service;
    bool loaded = file->catalog.services[service].loaded;
    pthread_rwlock_unlock(&file->lock);
    *ret_series = series;
    *ret_service = service;
    work->request->grew |= !loaded;
    return loaded ? 0 : file_load_tree(file, service, error);
}

static struct digest part_digest(uint64_t hash)
{
    return (struct digest){.low = hash, .high = hash << 32}; /* a hash of 64 bits has no more */
}

/* ID_NONE: not known. */
static uint32_t find_part(const struct digest_table *known, uint64_t hash)
{
    return hash ? digest_table_find(known, part_digest(hash)) : 0;
}

static void note_part(struct digest_table *known, uint64_t hash, uint32_t id)
{
    if (find_part(known, hash) == ID_NONE)
        digest_table_insert(known, part_digest(hash), id);
}

/* A frame that is new to the file. Mostly only its address is, so that nothing needs to be looked
 * up by name. */
static uint32_t new_frame(struct preparation *work, struct catalog *catalog, uint32_t frame)
{
    struct unresolved_stacks *unresolved = work->profile->unresolved;
    struct unresolved_parts parts;
    unresolved->parts(unresolved, frame, &parts);
    parts.frame.function = find_part(&catalog->functions, parts.function);
    parts.frame.mapping = find_part(&catalog->mappings, parts.mapping);
    if (parts.frame.function != ID_NONE && parts.frame.mapping != ID_NONE)
        return profile_frame(&catalog->tables, &parts.frame);
    uint32_t local = unresolved->frame(unresolved, frame);
    frame_map_refresh(&work->frames);
    uint32_t id = frame_map_frame(&work->frames, local);
    note_part(&catalog->functions, parts.function, catalog->tables.frames[id].function);
    note_part(&catalog->mappings, parts.mapping, catalog->tables.frames[id].mapping);
    return id;
}

/* The frame of the file that a unresolved one is: those that other stacks have are known by their
 * digest. */
static uint32_t known_frame(struct preparation *work, struct catalog *catalog, uint32_t frame)
{
    struct unresolved_stacks *unresolved = work->profile->unresolved;
    if (work->known[frame])
        return work->known[frame];
    uint32_t id = digest_table_find(&catalog->frames, unresolved->frames[frame]);
    if (id == ID_NONE) {
        id = new_frame(work, catalog, frame);
        digest_table_insert(&catalog->frames, unresolved->frames[frame], id);
    }
    return work->known[frame] = id;
}

/* Every so many frames a stack's callers are remembered by their digest, too: new stacks mostly
 * differ from others near their end, and are put together from there on. */
#define MARK_FRAMES 8

/* The longest marked part of the stack that the tree has: returns how many frames, and its node.
 * The digests of all its marks are in work->marks. */
static uint32_t find_callers(struct preparation *work, const struct tree *tree, uint32_t count,
                             uint32_t *ret_node)
{
    const struct unresolved_stacks *unresolved = work->profile->unresolved;
    struct digest digest = {0};
    for (uint32_t i = 0; i < count; i++) {
        digest = unresolved_digest_below(digest, unresolved->frames[work->path[i]]);
        if (!((i + 1) % MARK_FRAMES))
            work->marks[i / MARK_FRAMES] = digest;
    }
    for (uint32_t mark = count / MARK_FRAMES; mark; mark--) {
        uint32_t node = digest_table_find(&tree->stacks, work->marks[mark - 1]);
        if (node == ID_NONE)
            continue;
        *ret_node = node;
        return mark * MARK_FRAMES;
    }
    return 0;
}

static uint32_t add_unresolved(struct preparation *work, struct catalog *catalog, struct tree *tree,
                               uint32_t stack)
{
    struct unresolved_stacks *unresolved = work->profile->unresolved;
    uint32_t count = unresolved->stack(unresolved, stack, work->path), node = 0;
    for (uint32_t i = find_callers(work, tree, count, &node); i < count; i++) {
        node = tree_child(tree, node, known_frame(work, catalog, work->path[i]));
        if (!((i + 1) % MARK_FRAMES))
            digest_table_insert(&tree->stacks, work->marks[i / MARK_FRAMES], node);
    }
    return node;
}

static void begin_file(struct preparation *work, struct file *file)
{
    const struct unresolved_stacks *unresolved = work->profile->unresolved;
    frame_map_release(&work->frames);
    frame_map_init(&work->frames, work->profile, &file->catalog.tables);
    work->frames_file = file;
    node_map_release(&work->map);
    if (!unresolved) {
        node_map_init(&work->map, &work->frames, work->profile->nodes, work->profile->node_count,
                      NULL, NULL);
        return;
    }
    array_reserve(work->known, work->known_capacity, unresolved->frame_count + 1ul);
    memset(work->known, 0, unresolved->frame_count * sizeof(*work->known));
    array_reserve(work->path, work->path_capacity, unresolved->deepest + 1ul);
    array_reserve(work->marks, work->mark_capacity, unresolved->deepest / MARK_FRAMES + 1ul);
}

/* Puts rows' stacks into the service's tree. */
static void add_stacks(struct preparation *work, struct file *file, uint32_t service,
                       const struct store_profile *window, size_t missing)
{
    const struct profile *profile = window->profile;
    size_t rows = window->row_count;
    work->request->grew = true;
    pthread_rwlock_wrlock(&file->lock);
    struct tree *tree = &file->catalog.services[service].tree;
    if (work->frames_file != file)
        begin_file(work, file);
    if (!profile->unresolved)
        node_map_reuse(&work->map, tree);
    for (size_t i = 0; i < missing; i++) {
        size_t row = work->missing[i];
        uint32_t node = row < rows ? window->rows[row].node : window->exemplars[row - rows].node;
        work->nodes[row] = profile->unresolved ? add_unresolved(work, &file->catalog, tree, node)
                                               : node_map_node(&work->map, node);
        if (digest_table_find(&tree->stacks, work->digests[row]) == ID_NONE)
            digest_table_insert(&tree->stacks, work->digests[row], work->nodes[row]);
    }
    pthread_rwlock_unlock(&file->lock);
}

#define PREFETCHED 32 /* rows: the table is mostly out of the cache, and a row takes few steps */

/* Known stacks are found under a shared lock; only what is new needs the tree for itself. */
static void find_stacks(struct preparation *work, struct file *file, uint32_t service,
                        const struct store_profile *window)
{
    size_t rows = window->row_count, count = rows + window->exemplar_count, missing = 0;
    struct unresolved_stacks *unresolved = window->profile->unresolved;
    array_reserve(work->nodes, work->node_capacity, count);
    array_reserve(work->values, work->value_capacity, count);
    array_reserve(work->digests, work->digest_capacity, count);
    array_reserve(work->missing, work->missing_capacity, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t node = i < rows ? window->rows[i].node : window->exemplars[i - rows].node;
        work->digests[i] =
            unresolved ? unresolved->digests[node] : stack_finder_digest(&work->finder, node);
        work->values[i] = i < rows ? window->rows[i].value : 0;
    }
    pthread_rwlock_rdlock(&file->lock);
    const struct digest_table *known = &file->catalog.services[service].tree.stacks;
    for (size_t i = 0; i < count; i++) {
        if (known->slots && i + PREFETCHED < count)
            __builtin_prefetch(&known->slots[work->digests[i + PREFETCHED].low & known->mask]);
        work->nodes[i] =
            work->digests[i].high ? digest_table_find(known, work->digests[i]) : 0; /* no frames */
        if (work->nodes[i] == ID_NONE)
            work->missing[missing++] = (uint32_t)i;
    }
    pthread_rwlock_unlock(&file->lock);
    if (!missing)
        return;
    add_stacks(work, file, service, window, missing);
}

static int prepare_window(struct preparation *work, const struct store_profile *window,
                          const char *tenant, struct error *error)
{
    struct parcel *parcel = NULL;
    uint32_t series = 0, service = 0;
    int r = find_parcel(work, window, tenant, &parcel, error);
    if (r < 0 || (r = find_series(work, parcel->file, window, &series, &service, error)) < 0)
        return r;
    find_stacks(work, parcel->file, service, window);
    struct block_window meta = {.start_ns = window->time_ns,
                                .duration_ns = window->duration_ns,
                                .first_ns = window->time_ns,
                                .last_ns = window->time_ns,
                                .windows = 1};
    block_rows_clear(&work->rows);
    block_rows_add(&work->rows, &meta, work->nodes, work->values, window->row_count);
    work->rows.windows[0].raw_rows = work->rows.windows[0].row_count;
    array_reserve(parcel->blocks, parcel->block_capacity, parcel->block_count + 1);
    struct parcel_block *block = &parcel->blocks[parcel->block_count++];
    *block = (struct parcel_block){.series = series,
                                   .start_ns = window->time_ns,
                                   .total = work->rows.windows[0].total,
                                   .rows = work->rows.windows[0].row_count,
                                   .at = parcel->data.length};
    /* Only now, so that those who wait for the tree hold none: few are needed in all. */
    struct block_codec *codec = embedded_codec(work->store);
    block_encode(codec, &work->rows, 0, 1, &parcel->data);
    embedded_codec_return(work->store, codec);
    block->length = parcel->data.length - block->at;
    work->request->rows += block->rows;
    work->request->bytes += block->length;
    for (size_t i = 0; i < window->exemplar_count; i++) {
        array_reserve(parcel->exemplars, parcel->exemplar_capacity, parcel->exemplar_count + 1);
        struct parcel_exemplar *exemplar = &parcel->exemplars[parcel->exemplar_count++];
        *exemplar = (struct parcel_exemplar){
            .series = series, .start_ns = window->time_ns, .exemplar = window->exemplars[i]};
        exemplar->exemplar.node = work->nodes[window->row_count + i];
        work->request->bytes += 64;
    }
    return 0;
}

/* Series and stacks that are put into a catalog stay there, and a file is there once it is made: so
 * whatever can be said against any window is said before. */
static int check_windows(struct preparation *work, const struct store_batch *batch,
                         struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < batch->count; i++) {
        const struct profile *profile = batch->profiles[i].profile;
        if (profile->unresolved && profile->unresolved->seed != work->store->store.seed)
            return error_set(error, -EINVAL,
                             "Stacks were digested with the seed of another store.");
        r = check_age(work->store, &batch->profiles[i], error);
    }
    for (size_t i = 0; !r && i < batch->count; i++) {
        struct parcel *parcel = NULL;
        r = find_parcel(work, &batch->profiles[i], batch->tenant, &parcel, error);
        if (!r && batch->profiles[i].time_ns < parcel->file->floor_ns)
            r = error_set(error, -ERANGE,
                          "The raw data of the profile's time was deleted; data can no longer be "
                          "added to it.");
    }
    return r;
}

static int compare_parcels(const void *a, const void *b)
{
    const struct parcel *x = a, *y = b;
    return strcmp(x->file->path, y->file->path);
}

int request_prepare(struct embedded *store, const struct store_batch *batch,
                    struct request *request, struct error *error)
{
    _cleanup_(preparation_release) struct preparation work = {.store = store, .request = request};
    request->tenant = batch->tenant;
    if (batch->batch_id) {
        XXH128_hash_t hash = XXH3_128bits(batch->batch_id, strlen(batch->batch_id));
        request->has_batch = true;
        memcpy(request->batch, &hash, sizeof(request->batch));
    }
    int r = check_windows(&work, batch, error);
    for (size_t i = 0; !r && i < batch->count; i++) {
        const struct profile *profile = batch->profiles[i].profile;
        if (profile != work.profile) {
            stack_finder_release(&work.finder);
            if (!profile->unresolved)
                stack_finder_init(&work.finder, profile, store->store.seed);
            work.profile = profile;
            work.frames_file = NULL;
        }
        r = prepare_window(&work, &batch->profiles[i], batch->tenant, error);
    }
    if (r < 0)
        return r;
    if (request->parcel_count > 1) {
        qsort(request->parcels, request->parcel_count, sizeof(*request->parcels), compare_parcels);
        if (getrandom(request->unsure, sizeof(request->unsure), 0) < 0)
            return error_set_errno(error, -errno, "getrandom() failed");
    }
    return 0;
}
