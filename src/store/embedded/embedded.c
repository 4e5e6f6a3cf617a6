// SPDX-License-Identifier: Apache-2.0
// The embedded store: opening a directory, who may have it, and the list of its files.

#include "store/embedded/embedded.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"

/* ---- classes, codecs ---- */

const struct store_class *embedded_class_of(struct embedded *store, const char *service)
{
    const struct classes *classes = atomic_load(&store->classes);
    for (size_t i = 0; i < classes->count; i++)
        for (const char *const *name = classes->list[i].services; name && *name; name++)
            if (!strcmp(*name, service))
                return &classes->list[i];
    return &classes->list[classes->count - 1];
}

/* Files of a class that is no longer configured are kept as the last class is. */
const struct store_class *embedded_class(struct embedded *store, const char *name)
{
    const struct classes *classes = atomic_load(&store->classes);
    for (size_t i = 0; i < classes->count; i++)
        if (!strcmp(classes->list[i].name, name))
            return &classes->list[i];
    return &classes->list[classes->count - 1];
}

static void free_classes(struct classes *classes)
{
    while (classes) {
        struct classes *before = classes->before;
        for (size_t i = 0; i < classes->count; i++) {
            free((char *)classes->list[i].name);
            for (const char *const *name = classes->list[i].services; name && *name; name++)
                free((char *)*name);
            free((void *)classes->list[i].services);
        }
        free(classes->list);
        free(classes);
        classes = before;
    }
}

static bool is_class_name(const char *name)
{
    return *name && strlen(name) <= 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               strlen(name);
}

int embedded_set_retention(struct store *base, const struct store_options *options,
                           struct error *error)
{
    static const struct store_class usual = {.name = "default", .days = {14, 30, 400, 1200}};
    struct embedded *store = embedded_of(base);
    const struct store_class *given = options->class_count ? options->classes : &usual;
    size_t count = MAX(options->class_count, (size_t)1);
    for (size_t i = 0; i < count; i++)
        if (!is_class_name(given[i].name))
            return error_set(
                error, -EINVAL,
                "The name of a retention class consists of letters, digits and '_', unlike %.64s.",
                given[i].name);
    struct classes *classes = memory_zalloc(1, sizeof(*classes));
    classes->list = memory_zalloc(count, sizeof(*classes->list));
    for (; classes->count < count; classes->count++) {
        const struct store_class *from = &given[classes->count];
        size_t services = 0;
        while (from->services && from->services[services])
            services++;
        const char **list = memory_zalloc(services + 1, sizeof(*list));
        for (size_t k = 0; k < services; k++)
            list[k] = memory_strdup(from->services[k]);
        struct store_class *class = &classes->list[classes->count];
        *class = *from;
        class->name = memory_strdup(from->name);
        class->services = list;
    }
    classes->before = atomic_load(&store->classes); /* one thread sets */
    atomic_store(&store->classes, classes);
    atomic_store(&store->disk_limit_bytes, options->disk_limit_bytes);
    return 0;
}

struct block_codec *embedded_codec(struct embedded *store)
{
    struct block_codec *codec = NULL;
    pthread_mutex_lock(&store->lock);
    if (store->codec_count)
        codec = store->codecs[--store->codec_count];
    pthread_mutex_unlock(&store->lock);
    return codec ? codec : block_codec_new();
}

void embedded_codec_return(struct embedded *store, struct block_codec *codec)
{
    pthread_mutex_lock(&store->lock);
    if (codec && store->codec_count < ARRAY_LENGTH(store->codecs)) {
        store->codecs[store->codec_count++] = codec;
        codec = NULL;
    }
    pthread_mutex_unlock(&store->lock);
    block_codec_free(codec);
}

/* ---- files ---- */

static void folder_of(struct embedded *store, const char *tenant, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", store->directory, tenant);
}

static void add_file(struct embedded *store, struct file *file)
{
    array_reserve(store->files, store->file_capacity, store->file_count + 1);
    store->files[store->file_count++] = file;
}

static void forget_file(struct embedded *store, struct file *file)
{
    for (size_t i = 0; i < store->file_count; i++)
        if (store->files[i] == file) {
            store->files[i] = store->files[--store->file_count];
            break;
        }
    file->gone = true;
}

static struct file *find_file(struct embedded *store, const char *tenant, const char *class_name,
                              enum store_tier tier, int64_t time_ns)
{
    for (size_t i = 0; i < store->file_count; i++) {
        struct file *file = store->files[i];
        if (file->tier == tier && time_ns >= file->from_ns && time_ns < file->to_ns &&
            !strcmp(file->tenant, tenant) && !strcmp(file->class_name, class_name))
            return file;
    }
    return NULL;
}

/* Until when a tier has slots of a raw file's time; where that begins, when it has none. */
static int64_t rolled_end(struct embedded *store, const struct file *file, enum store_tier tier)
{
    int64_t end = file->from_ns;
    struct error local = {0};
    struct file *rollup =
        embedded_file(store, file->tenant, file->class_name, tier, file->from_ns, false, &local);
    struct connection *connection = rollup ? file_borrow(rollup, &local) : NULL;
    sqlite3_stmt *slots = connection ? file_sql(rollup, connection, SQL_SLOTS, &local) : NULL;
    if (slots) {
        sqlite3_bind_int64(slots, 1, file->from_ns);
        sqlite3_bind_int64(slots, 2, file->to_ns);
        while (file_step(rollup, slots, &local) == 1)
            end = sqlite3_column_int64(slots, 0) + tier_slot_ns[tier];
    }
    if (rollup) {
        file_return(rollup, connection);
        embedded_unref(store, rollup);
    }
    return end;
}

/* A raw file that is made anew, after it was dropped for the disk limit or set aside, must not
 * make rollups anew from the little that comes late: where they are, they are final. A coarser tier
 * may have them when a finer one is gone, too. */
static int set_floor(struct embedded *store, struct file *file, struct error *error)
{
    int64_t floor = file->from_ns;
    for (unsigned tier = STORE_TEN_MINUTES; tier < STORE_TIERS; tier++)
        floor = MAX(floor, rolled_end(store, file, tier));
    int r = file_begin(file, error);
    if (r < 0)
        return r;
    file->floor_ns = floor;
    r = file_set_meta(file, "floor", floor, error);
    if (!r)
        r = file_set_meta(file, "rolled_until", floor, error);
    file->rolled_until_ns = floor;
    return file_end(file, r, error);
}

static int make_file(struct embedded *store, struct file *file, struct error *error)
{
    char folder[PATH_MAX];
    folder_of(store, file->tenant, folder, sizeof(folder));
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, -errno, "Failed to create %s", folder);
    int r = file_create(file, error);
    if (!r)
        r = file_open(file, error);
    if (!r && file->tier == STORE_RAW)
        r = set_floor(store, file, error);
    return r;
}

/* Making a file takes fsyncs; `making` keeps two threads from making the same one. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

struct file *embedded_file(struct embedded *store, const char *tenant, const char *class_name,
                           enum store_tier tier, int64_t time_ns, bool create, struct error *error)
{
    pthread_mutex_lock(&store->lock);
    struct file *file = find_file(store, tenant, class_name, tier, time_ns);
    if (file) {
        file->references++;
        file->used_ns = monotonic_ns();
    }
    pthread_mutex_unlock(&store->lock);
    if (file || !create)
        return file;
    pthread_mutex_lock(&making);
    file = embedded_file(store, tenant, class_name, tier, time_ns, false, error);
    if (!file) {
        char folder[PATH_MAX];
        folder_of(store, tenant, folder, sizeof(folder));
        file = file_new(folder, tenant, class_name, tier, time_ns, false);
        file->references = 1;
        file->used_ns = monotonic_ns();
        if (make_file(store, file, error) < 0) {
            file_free(file);
            file = NULL;
        } else {
            pthread_mutex_lock(&store->lock);
            add_file(store, file);
            pthread_mutex_unlock(&store->lock);
        }
    }
    pthread_mutex_unlock(&making);
    return file;
}

void embedded_unref(struct embedded *store, struct file *file)
{
    if (!file)
        return;
    pthread_mutex_lock(&store->lock);
    bool last = !--file->references && file->gone;
    pthread_mutex_unlock(&store->lock);
    if (last)
        file_free(file);
}

static int compare_files(const void *a, const void *b)
{
    const struct file *x = *(struct file *const *)a, *y = *(struct file *const *)b;
    int order = strcmp(x->tenant, y->tenant);
    if (!order)
        order = strcmp(x->class_name, y->class_name);
    if (!order)
        order = (int)x->tier - (int)y->tier;
    return order ? order : x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

struct file_list embedded_files(struct embedded *store, const char *tenant, int64_t from_ns,
                                int64_t to_ns)
{
    struct file_list list = {0};
    pthread_mutex_lock(&store->lock);
    list.files = memory_zalloc(store->file_count + 1, sizeof(*list.files));
    for (size_t i = 0; i < store->file_count; i++) {
        struct file *file = store->files[i];
        if (file->from_ns < to_ns && file->to_ns > from_ns &&
            (!tenant || !strcmp(file->tenant, tenant))) {
            file->references++;
            if (tenant) /* else somebody counts or keeps house */
                file->used_ns = monotonic_ns();
            list.files[list.count++] = file;
        }
    }
    pthread_mutex_unlock(&store->lock);
    if (list.count)
        qsort(list.files, list.count, sizeof(*list.files), compare_files);
    return list;
}

void embedded_release(struct embedded *store, struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        embedded_unref(store, list->files[i]);
    free(list->files);
    *list = (struct file_list){0};
}

static const char *const companions[] = {"", "-wal", "-shm"};

bool embedded_is_damaged(struct embedded *store, const struct file *file, int code)
{
    if (code != -ENOENT && code != -EIO)
        return code == -EBADMSG;
    pthread_mutex_lock(&store->lock);
    bool gone = file->gone;
    pthread_mutex_unlock(&store->lock);
    return gone;
}

void embedded_set_aside(struct embedded *store, struct file *file, const char *why)
{
    pthread_mutex_lock(&store->lock);
    bool first = !file->gone;
    if (first)
        forget_file(store, file);
    pthread_mutex_unlock(&store->lock);
    if (!first)
        return;
    embedded_damaged(store, file, why);
    atomic_fetch_add(&store->set_aside, 1);
}

void embedded_remove(struct embedded *store, struct file *file)
{
    pthread_mutex_lock(&store->lock);
    bool first = !file->gone;
    if (first)
        forget_file(store, file);
    pthread_mutex_unlock(&store->lock);
    for (unsigned i = 0; first && i < ARRAY_LENGTH(companions); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s%s", file->path, companions[i]);
        unlink(path);
    }
}

/* ---- opening ---- */

static bool is_folder(const char *parent, const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof(path), "%s/%s", parent, name);
    return name[0] != '.' && !stat(path, &status) && S_ISDIR(status.st_mode);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

static int find_files(struct embedded *store, const char *tenant, struct error *error)
{
    char folder[PATH_MAX], path[PATH_MAX];
    folder_of(store, tenant, folder, sizeof(folder));
    DIR *listing = opendir(folder);
    if (!listing)
        return error_set_errno(error, -errno, "%s can't be read", folder);
    struct dirent *entry;
    int r = 0;
    while (!r && (entry = readdir(listing))) {
        enum store_tier tier;
        char *class_name;
        int64_t from_ns;
        if (ends_with(entry->d_name, FILE_SUFFIX ".new") && !store->read_only) {
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            unlink(path); /* a crash while it was being made */
        }
        embedded_remember_damaged(store, tenant, folder, entry->d_name);
        if (!file_parse_name(entry->d_name, &tier, &class_name, &from_ns))
            continue;
        struct file *file = file_new(folder, tenant, class_name, tier, from_ns, store->read_only);
        free(class_name);
        add_file(store, file);
        r = file_open(file, error);
        int64_t floor = file->from_ns;
        if (!r && (r = file_get_meta(file, file->writer, "floor", &floor, error)) >= 0) {
            file->floor_ns = floor;
            r = file_get_meta(file, file->writer, "scrub", &file->scrub, error);
            r = MIN(r, 0);
        }
        if (r == -EBADMSG) {
            embedded_set_aside(store, file, error->text);
            file_free(file);
            r = 0;
        }
    }
    closedir(listing);
    return r;
}

static bool is_decided(struct embedded *store, struct file *file, const char *decider,
                       const void *id)
{
    for (size_t i = 0; i < store->file_count; i++) {
        struct file *other = store->files[i];
        if (strcmp(other->tenant, file->tenant) || strcmp(other->name, decider))
            continue;
        struct error local = {0};
        sqlite3_stmt *statement = file_sql(other, other->writer, SQL_FIND_DECIDED, &local);
        if (!statement)
            return true;
        sqlite3_bind_blob(statement, 1, id, 16, SQLITE_STATIC);
        int r = file_step(other, statement, &local);
        sqlite3_reset(statement);
        return r != 0;
    }
    return true; /* that file is gone, and what it decided with it: keep what there is */
}

/* A batch that went into several files is there when the last of them has it: what others have of
 * a batch that never came so far is taken back. */
static int settle_file(struct embedded *store, struct file *file, struct error *error)
{
    uint8_t(*lost)[16] = NULL;
    size_t count = 0, capacity = 0, seen = 0;
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_UNSURE, error);
    if (!statement)
        return error->code;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        const void *id = sqlite3_column_blob(statement, 0);
        const char *decider = (const char *)sqlite3_column_text(statement, 1);
        seen++;
        if (id && sqlite3_column_bytes(statement, 0) == 16 && decider &&
            !is_decided(store, file, decider, id)) {
            array_reserve(lost, capacity, count + 1);
            memcpy(lost[count++], id, 16);
        }
    }
    if (!r && seen && !(r = file_begin(file, error))) {
        for (size_t i = 0; !r && i < count; i++)
            r = file_remove_unsure(file, lost[i], error);
        if (!r && sqlite3_exec(file->writer->db, "DELETE FROM unsure", NULL, NULL, NULL))
            r = error_set(error, -EIO, "%s: %s.", file->path, sqlite3_errmsg(file->writer->db));
        r = file_end(file, r, error);
    }
    free(lost);
    return r;
}

static int open_files(struct embedded *store, struct error *error)
{
    DIR *listing = opendir(store->directory);
    if (!listing)
        return error_set_errno(error, -errno, "%s can't be read", store->directory);
    struct dirent *entry;
    int r = 0;
    while (!r && (entry = readdir(listing)))
        if (is_folder(store->directory, entry->d_name) &&
            strlen(entry->d_name) <= STORE_TENANT_BYTES_MAX)
            r = find_files(store, entry->d_name, error);
    closedir(listing);
    for (size_t i = 0; !r && !store->read_only && i < store->file_count;) {
        struct file *file = store->files[i];
        r = file->tier == STORE_RAW ? settle_file(store, file, error) : 0;
        if (r == -EBADMSG) {
            embedded_set_aside(store, file, error->text);
            file_free(file);
            r = 0;
        } else {
            i++;
        }
    }
    for (size_t i = 0; i < store->file_count; i++)
        file_unload(store->files[i]); /* they are opened again when they are wanted */
    return r;
}

void embedded_close(struct store *base)
{
    struct embedded *store = embedded_of(base);
    embedded_stop_writer(store);
    helpers_release(&store->helpers);
    for (size_t i = 0; i < store->file_count; i++)
        file_free(store->files[i]);
    free(store->files);
    embedded_condition_release(store);
    embedded_pins_release(store);
    while (store->codec_count)
        block_codec_free(store->codecs[--store->codec_count]);
    free_classes(atomic_load(&store->classes));
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store->directory);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->queue_lock);
    sem_destroy(&store->preparing);
    pthread_mutex_destroy(&store->maintenance);
    pthread_rwlock_destroy(&store->gate);
    budget_release(&store->own_budget);
    pthread_cond_destroy(&store->queue_changed);
    free(store);
}

static int64_t wall_clock(void *context)
{
    (void)context;
    return clock_ns(CLOCK_REALTIME);
}

int store_open_embedded(const struct store_options *options, struct store **ret_store,
                        struct error *error)
{
    struct error local = {0};
    error = error ? error : &local;
    struct embedded *store = memory_zalloc(1, sizeof(*store));
    store->store.operations = &embedded_operations;
    store->directory = memory_strdup(options->directory);
    store->lock_fd = -1;
    store->read_only = options->read_only;
    store->memory_limit_bytes =
        MAX(options->memory_limit_bytes ? options->memory_limit_bytes : 256ul << 20, 16ul << 20);
    budget_init(&store->own_budget, store->memory_limit_bytes);
    /* Of all connections to all files: each could keep 2 MiB of pages. */
    sqlite3_soft_heap_limit64((sqlite3_int64)store->memory_limit_bytes / 8);
    store->budget = options->budget ? options->budget : &store->own_budget;
    store->commit_ms = options->commit_ms ? options->commit_ms : 50;
    store->late_ms = options->late_ms ? options->late_ms : 120000;
    store->now = options->now ? options->now : wall_clock;
    store->now_context = options->now_context;
    store->clock_limit_ns = options->clock_limit_ns;
    store->note = options->note;
    store->note_context = options->note_context;
    store->store.seed = random_bits();
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->queue_lock, NULL);
    sem_init(&store->preparing, 0, (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1) + 1);
    pthread_mutex_init(&store->maintenance, NULL);
    pace_init(&store->pace, options->maintenance_share, monotonic_ns());
    helpers_init(&store->helpers);
    pthread_rwlockattr_t gate;
    pthread_rwlockattr_init(&gate);
    pthread_rwlockattr_setkind_np(&gate, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&store->gate, &gate);
    pthread_rwlockattr_destroy(&gate);
    pthread_cond_init(&store->queue_changed, NULL);
    store->last = &store->first;
    int r = embedded_set_retention(&store->store, options, error);
    if (!r && !store->read_only)
        r = file_take_directory(store->directory, &store->lock_fd, error);
    if (!r && !store->read_only)
        embedded_use_reserve(store);
    if (!r)
        r = open_files(store, error);
    if (!r && !store->read_only)
        embedded_load_retention(store);
    if (!r && !store->read_only)
        embedded_keep_reserve(store);
    if (!r && !store->read_only)
        r = embedded_start_writer(store, error);
    if (r < 0) {
        embedded_close(&store->store);
        return r;
    }
    *ret_store = &store->store;
    return 0;
}
