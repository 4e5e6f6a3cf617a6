// SPDX-License-Identifier: Apache-2.0
// Group commit. One thread takes the batches that have come, puts them into their files, one
// transaction for each file, and lets the senders go on. A batch that goes into several files is
// marked unsure in all but the last, and is there when the last has it: see docs/formats/store.md.

#include "store/embedded/write.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/memory.h"

#define ENOUGH_BYTES (4u << 20) /* that a commit doesn't wait for more */
/* Left free on the disk: opening the store after a crash, and dropping what is old, need room too.
 */
#define RESERVE_BYTES (16u << 20)

static int bind_and_run(struct file *file, enum sql which, const void *id, const char *text,
                        struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, which, error);
    if (!statement)
        return error->code;
    sqlite3_bind_blob(statement, 1, id, 16, SQLITE_STATIC);
    if (text)
        sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
    return file_step(file, statement, error);
}

static int add_exemplar(struct file *file, const struct parcel_exemplar *exemplar,
                        const void *unsure, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_ADD_EXEMPLAR, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, exemplar->series);
    sqlite3_bind_int64(statement, 2, exemplar->start_ns);
    sqlite3_bind_int64(statement, 3, exemplar->exemplar.time_ns);
    sqlite3_bind_int64(statement, 4, exemplar->exemplar.node);
    sqlite3_bind_int64(statement, 5, exemplar->exemplar.value);
    sqlite3_bind_blob(statement, 6, &exemplar->exemplar.link, sizeof(exemplar->exemplar.link),
                      SQLITE_STATIC);
    if (unsure)
        sqlite3_bind_blob(statement, 7, unsure, 16, SQLITE_STATIC);
    return file_step(file, statement, error);
}

static int add_parcel(struct request *request, size_t index, struct error *error)
{
    struct parcel *parcel = &request->parcels[index];
    struct file *file = parcel->file;
    bool last = index + 1 == request->parcel_count;
    const void *unsure = last ? NULL : request->unsure;
    int r = 0;
    for (size_t i = 0; !r && i < parcel->block_count; i++) {
        const struct parcel_block *block = &parcel->blocks[i];
        r = file_add_block(file,
                           &(struct file_block){.series = block->series,
                                                .start_ns = block->start_ns,
                                                .last_ns = block->start_ns,
                                                .windows = 1,
                                                .rows = block->rows,
                                                .total = block->total,
                                                .data = parcel->data.data + block->at,
                                                .length = block->length,
                                                .unsure = unsure},
                           error);
        if (!r)
            r = file_note_late(file, block->start_ns, error);
    }
    for (size_t i = 0; !r && i < parcel->exemplar_count; i++)
        r = add_exemplar(file, &parcel->exemplars[i], unsure, error);
    if (!r && !last)
        r = bind_and_run(file, SQL_ADD_UNSURE, request->unsure,
                         request->parcels[request->parcel_count - 1].file->name, error);
    if (!r && last && request->parcel_count > 1)
        r = bind_and_run(file, SQL_ADD_DECIDED, request->unsure, NULL, error);
    if (!r && last && request->has_batch)
        r = bind_and_run(file, SQL_ADD_BATCH, request->batch, NULL, error);
    return r;
}

/* ---- batches that were there before ---- */

static bool has_batch(struct file *file, const uint8_t *id)
{
    struct error local = {0};
    struct connection *connection = file_borrow(file, &local);
    sqlite3_stmt *statement =
        connection ? file_sql(file, connection, SQL_FIND_BATCH, &local) : NULL;
    int r = 0;
    if (statement) {
        sqlite3_bind_blob(statement, 1, id, 16, SQLITE_STATIC);
        r = file_step(file, statement, &local);
        sqlite3_reset(statement);
    }
    file_return(file, connection);
    return r == 1;
}

/* A repeated batch has the times of the first, or times corrected by another offset: so its id is
 * in a file of the same day or of the ones beside it. */
static bool is_repeated(struct embedded *store, struct request *request, struct request *group)
{
    for (struct request *other = group; other != request; other = other->next)
        if (other->has_batch && !other->result && !strcmp(other->tenant, request->tenant) &&
            !memcmp(other->batch, request->batch, sizeof(request->batch))) {
            request->twin = other;
            return true;
        }
    int64_t from = INT64_MAX, to = INT64_MIN;
    for (size_t i = 0; i < request->parcel_count; i++) {
        from = MIN(from, request->parcels[i].file->from_ns - DAY_NS);
        to = MAX(to, request->parcels[i].file->to_ns + DAY_NS);
    }
    struct file_list list = embedded_files(store, request->tenant, from, to);
    bool found = false;
    for (size_t i = 0; !found && i < list.count; i++)
        found = list.files[i]->tier == STORE_RAW && has_batch(list.files[i], request->batch);
    embedded_release(store, &list);
    return found;
}

/* ---- a group ---- */

static void fail(struct request *request, int result, const struct error *error)
{
    request->result = result;
    request->error = *error;
}

static struct parcel *parcel_of(struct request *request, const struct file *file, size_t *ret_index)
{
    for (size_t i = 0; i < request->parcel_count; i++)
        if (request->parcels[i].file == file) {
            *ret_index = i;
            return &request->parcels[i];
        }
    return NULL;
}

static void note_settled(struct file *file, const uint8_t *id)
{
    array_reserve(file->settled, file->settled_capacity, file->settled_count + 1);
    memcpy(file->settled[file->settled_count++], id, 16);
}

/* A file that was removed or set aside since takes nothing any more: what it would take is lost. */
static int check_there(struct embedded *store, struct file *file, struct error *error)
{
    pthread_mutex_lock(&store->lock);
    bool gone = file->gone;
    pthread_mutex_unlock(&store->lock);
    return gone ? error_set(error, -EIO,
                            "%s was removed or set aside during the push; send it again.",
                            file->path)
                : 0;
}

static int commit_file(struct embedded *store, struct file *file, struct request *group,
                       struct error *error)
{
    size_t index;
    int r = check_there(store, file, error);
    if (r < 0 || (r = file_begin(file, error)) < 0)
        return r;
    for (struct request *request = group; !r && request; request = request->next)
        if (!request->result && parcel_of(request, file, &index))
            r = add_parcel(request, index, error);
    r = file_end(file, r, error);
    return r < 0 ? r : check_there(store, file, error);
}

/* Takes back what earlier files have of a batch that a later one refused. If that fails too, it is
 * done by the next transaction of the file, or when the store is opened next. */
static void take_back(struct request *request, size_t committed)
{
    for (size_t i = 0; i < committed; i++) {
        struct file *file = request->parcels[i].file;
        pthread_mutex_lock(&file->write_lock);
        array_reserve(file->lost, file->lost_capacity, file->lost_count + 1);
        memcpy(file->lost[file->lost_count++], request->unsure, 16);
        file_remove_lost(file);
        pthread_mutex_unlock(&file->write_lock);
    }
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp((*(struct file *const *)a)->path, (*(struct file *const *)b)->path);
}

static size_t files_of(struct request *group, struct file ***ret_files)
{
    size_t count = 0, distinct = 0, capacity = 0;
    struct file **files = NULL;
    for (struct request *request = group; request; request = request->next)
        for (size_t i = 0; !request->result && i < request->parcel_count; i++) {
            array_reserve(files, capacity, count + 1);
            files[count++] = request->parcels[i].file;
        }
    if (count)
        qsort(files, count, sizeof(*files), compare_paths);
    for (size_t i = 0; i < count; i++)
        if (!i || files[i] != files[distinct - 1])
            files[distinct++] = files[i];
    *ret_files = files;
    return distinct;
}

static void commit_group(struct embedded *store, struct request *group)
{
    const struct error repeated = {.code = -EALREADY, .text = "The batch is already stored."};
    for (struct request *request = group; request; request = request->next)
        if (request->has_batch && is_repeated(store, request, group))
            fail(request, -EALREADY, &repeated);
    _cleanup_free_ struct file **files = NULL;
    size_t count = files_of(group, &files);
    for (size_t i = 0; i < count; i++) {
        struct error error = {0};
        pthread_mutex_lock(&files[i]->write_lock);
        int r = commit_file(store, files[i], group, &error);
        pthread_mutex_unlock(&files[i]->write_lock);
        if (r == -EBADMSG)
            embedded_set_aside(store, files[i], error.text);
        size_t index;
        for (struct request *request = group; r < 0 && request; request = request->next)
            if (!request->result && parcel_of(request, files[i], &index)) {
                fail(request, r, &error);
                take_back(request, index);
            }
    }
    uint64_t rows = 0, batches = 0, repeats = 0;
    for (struct request *request = group; request; request = request->next) {
        if (request->twin && request->twin->result && request->twin->result != -EALREADY)
            fail(request, request->twin->result, &request->twin->error);
        for (size_t i = 0; !request->result && i + 1 < request->parcel_count; i++) {
            pthread_mutex_lock(&request->parcels[i].file->write_lock);
            note_settled(request->parcels[i].file, request->unsure);
            pthread_mutex_unlock(&request->parcels[i].file->write_lock);
        }
        rows += request->result ? 0 : request->rows;
        batches += !request->result;
        repeats += request->result == -EALREADY;
    }
    pthread_mutex_lock(&store->lock);
    store->stats.written_rows += rows;
    store->stats.written_batches += batches;
    store->stats.repeated_batches += repeats;
    store->stats.commits += count;
    pthread_mutex_unlock(&store->lock);
}

/* Whether other batches are likely to join the queue soon: some are being prepared, or the last
 * group had several. With the queue's lock held. */
static bool expects_company(const struct embedded *store)
{
    return store->had_company || (store->first && store->first->next) ||
           atomic_load(&store->writing) > 1;
}

/* Takes a batch that comes alone at once; else waits for a group until commit_ms after its first
 * batch came, or enough has come. */
static struct request *take_group(struct embedded *store)
{
    while (!store->first && !store->stopping)
        pthread_cond_wait(&store->queue_changed, &store->queue_lock);
    int64_t until = monotonic_ns() + store->commit_ms * 1000000ll;
    while (store->first && store->queued_bytes < ENOUGH_BYTES && !store->stopping &&
           expects_company(store))
        if (condition_wait_until(&store->queue_changed, &store->queue_lock, until))
            break;
    struct request *group = store->first;
    store->had_company = group && group->next;
    store->first = NULL;
    store->last = &store->first;
    store->queued_bytes = 0;
    return group;
}

static void *run_writer(void *context)
{
    struct embedded *store = context;
    pthread_setname_np(pthread_self(), "store-writer");
    pthread_mutex_lock(&store->queue_lock);
    for (;;) {
        struct request *group = take_group(store);
        if (!group && store->stopping)
            break;
        pthread_mutex_unlock(&store->queue_lock);
        if (group)
            commit_group(store, group);
        while (group) {
            struct request *next = group->next; /* the sender may be gone after the next line */
            sem_post(&group->answered);
            group = next;
        }
        pthread_mutex_lock(&store->queue_lock);
    }
    pthread_mutex_unlock(&store->queue_lock);
    return NULL;
}

int embedded_start_writer(struct embedded *store, struct error *error)
{
    int r = pthread_create(&store->writer, NULL, run_writer, store);
    if (r)
        return error_set_errno(error, -r, "Failed to start the writer thread");
    store->has_writer = true;
    return 0;
}

void embedded_stop_writer(struct embedded *store)
{
    if (!store->has_writer)
        return;
    pthread_mutex_lock(&store->queue_lock);
    store->stopping = true;
    pthread_cond_broadcast(&store->queue_changed);
    pthread_mutex_unlock(&store->queue_lock);
    pthread_join(store->writer, NULL);
}

int embedded_check_room(const struct embedded *store, struct error *error)
{
    struct statvfs space;
    if (statvfs(store->directory, &space) < 0 || !space.f_blocks)
        return 0;
    uint64_t left = (uint64_t)space.f_bavail * space.f_frsize;
    uint64_t all = (uint64_t)space.f_blocks * space.f_frsize;
    if (left >= MIN((uint64_t)RESERVE_BYTES, all / 16))
        return 0;
    return error_set(
        error, -ENOSPC,
        "The disk of %s is full: %llu KiB are left; free some space, or set a disk limit.",
        store->directory, (unsigned long long)left >> 10);
}

/* About as many at once as there are processors. More would take turns, with a file's lock held by
 * one whose turn is over, and all others woken by the next only to wait for it again. */
static int prepare(struct embedded *store, const struct store_batch *batch, struct request *request,
                   struct error *error)
{
    while (sem_wait(&store->preparing) < 0) /* only ever by a signal */
        ;
    int r = request_prepare(store, batch, request, error);
    for (size_t i = 0; request->grew && i < request->parcel_count; i++)
        embedded_count_catalog(store, request->parcels[i].file);
    sem_post(&store->preparing);
    return r;
}

int embedded_write(struct store *base, const struct store_batch *batch, struct error *error)
{
    struct embedded *store = embedded_of(base);
    if (store->read_only)
        return error_set(error, -EROFS, "The store is open read-only.");
    pthread_mutex_lock(&store->lock);
    bool full = store->disk_full;
    pthread_mutex_unlock(&store->lock);
    if (full)
        return error_set(error, -ENOSPC, STORE_DISK_FULL);
    struct request request = {0};
    atomic_fetch_add(&store->writing, 1);
    int r = embedded_check_room(store, error);
    if (!r)
        r = prepare(store, batch, &request, error);
    if (!r && batch->done_reading)
        batch->done_reading(batch->context);
    if (!r && request.parcel_count) {
        sem_init(&request.answered, 0, 0);
        pthread_mutex_lock(&store->queue_lock);
        bool first = !store->first;
        *store->last = &request;
        store->last = &request.next;
        store->queued_bytes += request.bytes;
        /* The writer need not be woken by each that joins a group. */
        if (first || store->queued_bytes >= ENOUGH_BYTES)
            pthread_cond_signal(&store->queue_changed);
        pthread_mutex_unlock(&store->queue_lock);
        while (sem_wait(&request.answered) < 0) /* only ever by a signal */
            ;
        sem_destroy(&request.answered);
        r = request.result;
        if (r < 0)
            *error = request.error;
    }
    atomic_fetch_sub(&store->writing, 1);
    request_release(store, &request);
    return r;
}
