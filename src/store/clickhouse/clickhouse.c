// SPDX-License-Identifier: Apache-2.0
// The store on ClickHouse: opening and closing it. Nothing of it is on this machine, so that any
// number of servers can share one database.

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "store/clickhouse/internal.h"

/* ---- retention classes ---- */

void retention_free(struct retention_class *classes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (char **service = classes[i].services; service && *service; service++)
            free(*service);
        free(classes[i].services);
    }
    free(classes);
}

static char **copy_texts(const char *const *texts)
{
    size_t count = 0;
    while (texts && texts[count])
        count++;
    char **copy = texts ? memory_zalloc(count + 1, sizeof(*copy)) : NULL;
    for (size_t i = 0; i < count; i++)
        copy[i] = memory_strdup(texts[i]);
    return copy;
}

struct retention_class *retention_copy(const struct retention_class *classes, size_t count)
{
    struct retention_class *copy = memory_zalloc(count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = (struct retention_class){.services =
                                               copy_texts((const char *const *)classes[i].services),
                                           .raw_days = classes[i].raw_days};
    return copy;
}

static struct retention_class *read_classes(const struct store_options *options, size_t *ret_count)
{
    size_t count = MAX(options->class_count, (size_t)1);
    struct retention_class *classes = memory_zalloc(count, sizeof(*classes));
    classes->raw_days = 14;
    for (size_t i = 0; i < options->class_count; i++)
        classes[i] = (struct retention_class){.services = copy_texts(options->classes[i].services),
                                              .raw_days = options->classes[i].days[STORE_RAW]};
    *ret_count = count;
    return classes;
}

unsigned clickhouse_raw_days(struct clickhouse *store, const char *service)
{
    pthread_mutex_lock(&store->lock);
    unsigned days = store->classes[store->class_count - 1].raw_days;
    bool found = false;
    for (size_t i = 0; !found && i < store->class_count; i++)
        for (char **name = store->classes[i].services; !found && name && *name; name++)
            if (!strcmp(*name, service)) {
                days = store->classes[i].raw_days;
                found = true;
            }
    pthread_mutex_unlock(&store->lock);
    return days;
}

static int set_retention(struct store *base, const struct store_options *options,
                         struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    size_t count;
    struct retention_class *classes = read_classes(options, &count);
    (void)error;
    pthread_mutex_lock(&store->lock);
    retention_free(store->classes, store->class_count);
    store->classes = classes;
    store->class_count = count;
    store->retained_ns = 0;
    pthread_mutex_unlock(&store->lock);
    return 0;
}

/* ---- opening ---- */

static int64_t wall_clock(void *context)
{
    (void)context;
    return clock_ns(CLOCK_REALTIME);
}

static void close_store(struct store *base)
{
    struct clickhouse *store = clickhouse_of(base);
    links_release(&store->links);
    digest_table_release(&store->known.table);
    pthread_mutex_destroy(&store->known.lock);
    pthread_mutex_destroy(&store->commits.lock);
    pthread_cond_destroy(&store->commits.changed);
    pthread_mutex_destroy(&store->lock);
    retention_free(store->classes, store->class_count);
    free(store);
}

static void trim(struct store *base)
{
    struct clickhouse *store = clickhouse_of(base);
    pthread_mutex_lock(&store->known.lock);
    digest_table_release(&store->known.table);
    pthread_mutex_unlock(&store->known.lock);
}

static const struct store_operations operations = {
    .name = "clickhouse",
    .close = close_store,
    .write = clickhouse_write,
    .series = clickhouse_series,
    .merge = clickhouse_merge,
    .timeseries = clickhouse_timeseries,
    .frames = clickhouse_frames,
    .exemplars = clickhouse_exemplars,
    .scan = clickhouse_scan,
    .maintain = clickhouse_maintain,
    .set_retention = set_retention,
    .delete = clickhouse_delete,
    .stats = clickhouse_stats,
    .tenants = clickhouse_tenants,
    .trim = trim,
    .check = clickhouse_check,
    .export = transfer_export,
    .import = transfer_import,
};

int store_open_clickhouse(const char *rest, const struct store_options *options,
                          struct store **ret_store, struct error *error)
{
    struct clickhouse_address address;
    struct schema schema;
    int r = clickhouse_address_parse(rest, &address, error);
    if (r < 0)
        return r;
    struct clickhouse *store = memory_zalloc(1, sizeof(*store));
    size_t memory = options->memory_limit_bytes ? options->memory_limit_bytes : 256ul << 20;
    store->store.operations = &operations;
    store->owner = random_bits();
    store->now = options->now ? options->now : wall_clock;
    store->now_context = options->now_context;
    store->classes = read_classes(options, &store->class_count);
    store->known.limit_bytes = memory / 4;
    store->commits.limit_bytes = memory / 2;
    store->commits.end = &store->commits.first;
    links_init(&store->links, &address);
    pthread_mutex_init(&store->known.lock, NULL);
    pthread_mutex_init(&store->commits.lock, NULL);
    pthread_cond_init(&store->commits.changed, NULL);
    pthread_mutex_init(&store->lock, NULL);
    r = schema_read(&store->links, &schema, error);
    if (!r && schema.version < CLICKHOUSE_SCHEMA_VERSION)
        r = error_set(error, -ENOTSUP,
                      schema.version
                          ? "The database has an older schema; run `assay store init` to update it."
                          : "The database has no tables of assay; run `assay store init` with this "
                            "URL.");
    if (!r)
        r = schema_check_kind(&store->links, error);
    if (!r && store->links.address.cluster)
        r = links_survey(&store->links, true, error);
    if (r < 0) {
        close_store(&store->store);
        return r;
    }
    store->store.seed = schema.seed;
    *ret_store = &store->store;
    return 0;
}
