// SPDX-License-Identifier: Apache-2.0
// The store's front: checks what is passed, and calls the implementation.

#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/level.h"
#include "profile/unresolved.h"
#include "store/internal.h"

void store_close(struct store *store)
{
    if (store)
        store->operations->close(store);
}

/* ---- engines ---- */

const char *store_engine(const struct store *store)
{
    return store->operations->name;
}

static int open_file(const char *rest, const struct store_options *options,
                     struct store **ret_store, struct error *error)
{
    struct store_options own = *options;
    own.directory = strncmp(rest, "//", 2) ? rest : rest + 2; /* file:///var/lib/assay */
    if (!*own.directory)
        return error_set(error, -EINVAL, "A store URL of the scheme file requires a directory.");
    return store_open_embedded(&own, ret_store, error);
}

static int open_memory(const char *rest, const struct store_options *options,
                       struct store **ret_store, struct error *error)
{
    if (*rest)
        return error_set(error, -EINVAL, "The URL of a store in memory is \"memory:\".");
    return store_open_memory(options, ret_store, error);
}

static const struct {
    const char *scheme;
    int (*open)(const char *rest, const struct store_options *options, struct store **ret_store,
                struct error *error);
} engines[] = {{"file", open_file}, {"memory", open_memory}, {"clickhouse", store_open_clickhouse}};

int store_open(const char *url, const struct store_options *options, struct store **ret_store,
               struct error *error)
{
    struct error local;
    error = error ? error : &local;
    size_t length = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    if (url[length] != ':')
        return open_file(url, options, ret_store, error);
    for (size_t i = 0; i < ARRAY_LENGTH(engines); i++)
        if (strlen(engines[i].scheme) == length && !strncmp(engines[i].scheme, url, length))
            return engines[i].open(url + length + 1, options, ret_store, error);
    return error_set(error, -ENOTSUP,
                     "No store engine has the scheme \"%.*s\"; use file:DIR, memory: or "
                     "clickhouse://HOST/DATABASE.",
                     (int)MIN(length, (size_t)40), url);
}

int store_init(const char *url, struct error *error)
{
    static const char scheme[] = "clickhouse:";
    struct error local;
    error = error ? error : &local;
    if (strncmp(url, scheme, sizeof(scheme) - 1))
        return error_set(
            error, -ENOTSUP,
            "Only stores on ClickHouse require this: %.100s is made when it is opened.", url);
    return store_init_clickhouse(url + sizeof(scheme) - 1, error);
}

static int check_tenant(const char *tenant, struct error *error)
{
    size_t length = tenant ? strlen(tenant) : 0;
    bool good = length && length <= STORE_TENANT_BYTES_MAX && tenant[0] != '.';
    for (size_t i = 0; good && i < length; i++)
        good = (tenant[i] >= 'a' && tenant[i] <= 'z') || (tenant[i] >= 'A' && tenant[i] <= 'Z') ||
               (tenant[i] >= '0' && tenant[i] <= '9') || strchr("-_.", tenant[i]);
    if (!good)
        return error_set(error, -EINVAL,
                         "The name of a tenant has 1 to %d letters, digits, '-', '_' and '.', and "
                         "doesn't begin with '.'.",
                         STORE_TENANT_BYTES_MAX);
    return 0;
}

static int check_type(const char *type, struct error *error)
{
    unsigned parts = 1;
    for (const char *c = type; *c; c++)
        parts += *c == ':';
    if (parts != 5 || strlen(type) > 1024)
        return error_set(error, -EINVAL,
                         "A profile type has five parts, as in "
                         "process_cpu:cpu:nanoseconds:cpu:nanoseconds, unlike %.100s.",
                         type);
    return 0;
}

static int check_labels(const struct labels *labels, struct error *error)
{
    size_t bytes = 0;
    for (size_t i = 0; i < labels->count; i++)
        bytes += strlen(labels->list[i].name) + strlen(labels->list[i].value) + 2;
    if (bytes > STORE_SERIES_BYTES_MAX)
        return error_set(error, -E2BIG, "The labels of one series are %zu bytes; the limit is %d.",
                         bytes, STORE_SERIES_BYTES_MAX);
    if (!labels_get(labels, LABEL_SERVICE_NAME))
        return error_set(error, -EINVAL, "A series requires the label service_name.");
    return 0;
}

static int check_rows(const struct store_profile *window, struct error *error)
{
    if (window->row_count > STORE_ROWS_MAX || window->exemplar_count > STORE_ROWS_MAX)
        return error_set(error, -E2BIG,
                         "A profile has %zu rows and %zu exemplars; the limit is %u.",
                         window->row_count, window->exemplar_count, STORE_ROWS_MAX);
    const struct unresolved_stacks *unresolved = window->profile->unresolved;
    uint32_t count = unresolved ? unresolved->count : window->profile->node_count;
    for (size_t i = 0; i < window->row_count; i++)
        if (window->rows[i].node >= count)
            return error_set(error, -EINVAL, "Row %zu refers to stack %u, which doesn't exist.", i,
                             window->rows[i].node);
    for (size_t i = 0; i < window->exemplar_count; i++)
        if (window->exemplars[i].node >= count)
            return error_set(error, -EINVAL,
                             "Exemplar %zu refers to stack %u, which doesn't exist.", i,
                             window->exemplars[i].node);
    return 0;
}

static int too_deep(struct error *error)
{
    return error_set(error, -E2BIG, "A stack has more than %d frames.", STORE_DEPTH_MAX);
}

/* How deep each node of a profile is, at most one more than may be. NULL when no stack is deep. */
static int find_depths(const struct profile *profile, uint16_t **ret_depths, struct error *error)
{
    if (profile->unresolved)
        return profile->unresolved->deepest <= STORE_DEPTH_MAX ? 0 : too_deep(error);
    uint16_t *depths = memory_zalloc(profile->node_count, sizeof(*depths)), deepest = 0;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        uint16_t depth = depths[profile->nodes[i].parent];
        depths[i] = depth > STORE_DEPTH_MAX ? depth : depth + 1;
        deepest = MAX(deepest, depths[i]);
    }
    if (deepest > STORE_DEPTH_MAX)
        *ret_depths = depths;
    else
        free(depths);
    return 0;
}

/* Only stacks that are to be stored count: a profile whose stacks were cut still has the nodes of
 * the whole ones. */
static int check_depths(const struct store_profile *window, const uint16_t *depths,
                        struct error *error)
{
    bool deep = false;
    for (size_t i = 0; depths && i < window->row_count; i++)
        deep |= depths[window->rows[i].node] > STORE_DEPTH_MAX;
    for (size_t i = 0; depths && i < window->exemplar_count; i++)
        deep |= depths[window->exemplars[i].node] > STORE_DEPTH_MAX;
    return deep ? too_deep(error) : 0;
}

int store_write(struct store *store, const struct store_batch *batch, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    int r = check_tenant(batch->tenant, error);
    if (r < 0)
        return r;
    if (batch->batch_id && strlen(batch->batch_id) > STORE_BATCH_ID_BYTES_MAX)
        return error_set(error, -EINVAL, "The limit of a batch id is %d bytes.",
                         STORE_BATCH_ID_BYTES_MAX);
    _cleanup_free_ uint16_t *depths = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_profile *window = &batch->profiles[i];
        if ((r = check_labels(window->labels, error)) < 0 ||
            (r = check_type(window->type, error)) < 0 || (r = check_rows(window, error)) < 0)
            return r;
        if (window->time_ns <= 0 || window->duration_ns < 0)
            return error_set(error, -EINVAL, "A profile has no time; each requires a start.");
        if (!i || window->profile != batch->profiles[i - 1].profile) {
            free(TAKE_PTR(depths));
            r = find_depths(window->profile, &depths, error);
        }
        if (r < 0 || (r = check_depths(window, depths, error)) < 0)
            return r;
    }
    return store->operations->write(store, batch, error);
}

uint64_t store_seed(const struct store *store)
{
    return store->seed;
}

int store_series(struct store *store, const struct store_selection *selection, store_series_fn *fn,
                 void *context, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    int r = check_tenant(selection->tenant, error);
    return r < 0 ? r : store->operations->series(store, selection, fn, context, error);
}

static int give_texts(struct store *store, const struct store_selection *selection,
                      enum store_texts what, const char *name, store_text_fn *fn, void *context,
                      struct error *error)
{
    struct error local;
    error = error ? error : &local;
    _cleanup_(text_set_release) struct text_set set = {0};
    int r = check_tenant(selection->tenant, error);
    if (!r)
        r = (store->operations->texts ? store->operations->texts : texts_from_series)(
            store, selection, what, name, &set, error);
    return r ? r : text_set_give(&set, fn, context);
}

struct shown {
    store_text_fn *fn;
    void *context;
};

static int give_shown(void *context, const char *name)
{
    struct shown *shown = context;
    return label_is_internal(name) ? 0 : shown->fn(shown->context, name);
}

int store_label_names(struct store *store, const struct store_selection *selection,
                      store_text_fn *fn, void *context, struct error *error)
{
    struct shown shown = {.fn = fn, .context = context};
    return give_texts(store, selection, TEXTS_NAMES, NULL, give_shown, &shown, error);
}

int store_label_values(struct store *store, const struct store_selection *selection,
                       const char *name, store_text_fn *fn, void *context, struct error *error)
{
    return give_texts(store, selection, TEXTS_VALUES, name, fn, context, error);
}

int store_types(struct store *store, const struct store_selection *selection, store_text_fn *fn,
                void *context, struct error *error)
{
    return give_texts(store, selection, TEXTS_TYPES, NULL, fn, context, error);
}

/* ---- the rest ---- */

static const struct store_limits no_limits;

/* The sample type that "name:type:unit:period_type:period_unit" says. */
static int add_type(struct profile *profile, const char *id, unsigned *ret_type,
                    struct error *error)
{
    int r = check_type(id, error);
    if (r < 0)
        return r;
    uint32_t part[5];
    for (unsigned i = 0; i < 5; i++) {
        size_t length = strcspn(id, ":");
        part[i] = profile_string(profile, id, length);
        id += length + (i < 4);
    }
    unsigned type = profile_type(profile, part[1], part[2]);
    if (type == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "The profile already has %d sample types.",
                         PROFILE_TYPES_MAX);
    profile_note_period(profile, part[3], part[4], 0);
    *ret_type = type;
    return 0;
}

static int need_type(const struct store_selection *selection, struct error *error)
{
    if (!selection->type)
        return error_set(error, -EINVAL, "The query has no profile type.");
    return check_type(selection->type, error);
}

unsigned store_damaged_files(struct store *store, const struct store_selection *selection)
{
    return store->operations->damaged_files ? store->operations->damaged_files(store, selection)
                                            : 0;
}

int store_merge(struct store *store, const struct store_selection *selection,
                const struct store_limits *limits, struct profile *profile,
                struct store_quality *ret_quality, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    struct store_quality quality = {0};
    unsigned type = 0;
    int r = check_tenant(selection->tenant, error);
    if (r < 0 || (r = need_type(selection, error)) < 0 ||
        (r = add_type(profile, selection->type, &type, error)) < 0)
        return r;
    r = store->operations->merge(store, selection, limits ? limits : &no_limits, profile, type,
                                 &quality, error);
    if (r < 0)
        return r;
    quality.damaged_files = store_damaged_files(store, selection);
    uint64_t sources = profile->source_count;
    profile_note_source(profile, quality.first_ns,
                        level_is_type(selection->type) ? quality.covered_ns : quality.per_ns);
    profile->source_count = sources + quality.windows;
    if (ret_quality)
        *ret_quality = quality;
    return r;
}

/* Points of the groups with the greatest sums, of more than are wanted. Two readings: to keep the
 * points of all takes more memory than a query has. */
static int choose_greatest(struct store *store, const struct store_selection *selection,
                           const struct store_timeseries_query *query,
                           const struct store_limits *limits, struct point_groups *groups,
                           struct store_quality *quality, struct error *error)
{
    struct store_quality ignored = {0};
    point_groups_rank(groups);
    int r = store->operations->timeseries(store, selection, query, limits, groups, &ignored, error);
    if (r < 0)
        return r;
    point_groups_choose(groups);
    *quality = (struct store_quality){0};
    r = store->operations->timeseries(store, selection, query, limits, groups, quality, error);
    quality->rest_groups = groups->rest_count;
    return r;
}

int store_timeseries(struct store *store, const struct store_selection *selection,
                     const struct store_timeseries_query *query, const struct store_limits *limits,
                     store_points_fn *fn, void *context, struct store_quality *ret_quality,
                     struct error *error)
{
    struct error local;
    error = error ? error : &local;
    struct store_quality quality = {0};
    int r = check_tenant(selection->tenant, error);
    if (r < 0 || (r = need_type(selection, error)) < 0)
        return r;
    if (query->step_ns < 1000000000)
        return error_set(error, -EINVAL, "The minimum step is one second.");
    _cleanup_(point_groups_release) struct point_groups groups;
    limits = limits ? limits : &no_limits;
    r = point_groups_init(&groups, selection, query, error);
    if (!r)
        r = store->operations->timeseries(store, selection, query, limits, &groups, &quality,
                                          error);
    if (r < 0 && groups.crowded && query->groups_most)
        r = choose_greatest(store, selection, query, limits, &groups, &quality, error);
    quality.damaged_files = store_damaged_files(store, selection);
    if (!r && ret_quality)
        *ret_quality = quality;
    return r ? r : point_groups_give(&groups, fn, context);
}

int store_frames(struct store *store, const struct store_selection *selection,
                 const struct store_timeseries_query *query, const struct store_limits *limits,
                 store_frame_fn *fn, void *context, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    int r = check_tenant(selection->tenant, error);
    return r < 0 ? r
                 : store->operations->frames(store, selection, query, limits ? limits : &no_limits,
                                             fn, context, error);
}

int store_exemplars(struct store *store, const struct store_selection *selection,
                    const struct store_function *function, const struct store_limits *limits,
                    store_exemplar_fn *fn, void *context, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    int r = check_tenant(selection->tenant, error);
    return r < 0 ? r
                 : store->operations->exemplars(store, selection, function,
                                                limits ? limits : &no_limits, fn, context, error);
}

int store_scan(struct store *store, const struct store_selection *selection,
               const struct store_limits *limits, store_window_fn *fn, void *context,
               struct error *error)
{
    struct error local;
    error = error ? error : &local;
    int r = check_tenant(selection->tenant, error);
    return r < 0 ? r
                 : store->operations->scan(store, selection, limits ? limits : &no_limits, fn,
                                           context, error);
}

int store_maintain(struct store *store, const atomic_bool *cancelled, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    return store->operations->maintain(store, cancelled, error);
}

void store_trim(struct store *store)
{
    if (store->operations->trim)
        store->operations->trim(store);
}

int store_set_retention(struct store *store, const struct store_options *options,
                        struct error *error)
{
    struct error local = {0};
    return store->operations->set_retention(store, options, error ? error : &local);
}

int store_delete(struct store *store, const struct store_selection *selection, bool dry_run,
                 struct store_deleted *ret_deleted, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    *ret_deleted = (struct store_deleted){0};
    int r = check_tenant(selection->tenant, error);
    return r < 0 ? r : store->operations->delete (store, selection, dry_run, ret_deleted, error);
}

int store_stats(struct store *store, struct store_stats *ret_stats, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    struct store_stats stats = {0};
    int r = store->operations->stats(store, &stats, error);
    if (!r)
        *ret_stats = stats;
    return r;
}

int store_export(struct store *store, const struct store_selection *selection,
                 const atomic_bool *cancelled, store_sink_fn *sink, void *context,
                 struct store_transfer *ret_transfer, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    *ret_transfer = (struct store_transfer){0};
    int r = selection->tenant ? check_tenant(selection->tenant, error) : 0;
    if (!r && !store->operations->export)
        r = error_set(error, -ENOTSUP, "This store doesn't support export.");
    struct store_limits limits = {.cancelled = cancelled};
    return r < 0 ? r
                 : store->operations->export(store, selection, &limits, sink, context, ret_transfer,
                                             error);
}

int store_import(struct store *store, store_source_fn *source, void *context, const char *tenant,
                 struct store_transfer *ret_transfer, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    *ret_transfer = (struct store_transfer){0};
    if (!store->operations->import)
        return error_set(error, -ENOTSUP, "This store doesn't support import.");
    return store->operations->import(store, source, context, tenant, ret_transfer, error);
}

int store_files(struct store *store, store_file_fn *fn, void *context, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    return store->operations->files ? store->operations->files(store, fn, context, error) : 0;
}

int store_writable(struct store *store, struct error *error)
{
    struct error local;
    return store->operations->writable ? store->operations->writable(store, error ? error : &local)
                                       : 0;
}

int store_acknowledge(struct store *store, const char *tenant, const char *name,
                      char ret_path[static PATH_MAX], struct error *error)
{
    struct error local;
    error = error ? error : &local;
    if (!store->operations->acknowledge)
        return error_set(error, -ENOENT, "%.300s is not a damaged file: this store has no files.",
                         name);
    return store->operations->acknowledge(store, tenant, name, ret_path, error);
}

int store_set_pins(struct store *store, const struct store_pin *pins, size_t count,
                   struct error *error)
{
    return store->operations->set_pins
               ? store->operations->set_pins(store, pins, count)
               : error_set(error, -ENOTSUP, "This store doesn't support pins.");
}

int store_lost_pins(struct store *store, store_text_fn *fn, void *context, struct error *error)
{
    (void)error;
    return store->operations->lost_pins ? store->operations->lost_pins(store, fn, context) : 0;
}

int store_resume_retention(struct store *store, struct error *error)
{
    struct error local;
    return store->operations->resume_retention
               ? store->operations->resume_retention(store, error ? error : &local)
               : 0;
}

int store_problems(struct store *store, store_text_fn *fn, void *context, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    return store->operations->problems ? store->operations->problems(store, fn, context, error) : 0;
}

int store_tenants(struct store *store, store_text_fn *fn, void *context, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    return store->operations->tenants(store, fn, context, error);
}

int store_check(struct store *store, store_text_fn *fn, void *context, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    return store->operations->check ? store->operations->check(store, fn, context, error) : 0;
}

static int compare_texts(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

int store_exclusion_compare(const struct store_exclusion *a, const struct store_exclusion *b)
{
    int order = compare_texts(a->service, b->service);
    order = order ? order : compare_texts(a->source, b->source);
    return order ? order : compare_texts(a->value, b->value);
}

/* The first exclusion that is not before this one. */
static const struct store_exclusion *find_exclusion(const struct store_selection *selection,
                                                    const struct store_exclusion *wanted)
{
    size_t low = 0, high = selection->excluded_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store_exclusion_compare(&selection->excluded[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < selection->excluded_count ? &selection->excluded[low] : NULL;
}

bool is_excluded(const struct store_selection *selection, const struct labels *labels)
{
    if (!selection->excluded_count)
        return false;
    struct store_exclusion wanted = {.service = labels_get(labels, LABEL_SERVICE_NAME),
                                     .source = labels_get(labels, LABEL_SOURCE)};
    const struct store_exclusion *found = find_exclusion(selection, &wanted);
    if (!found || compare_texts(found->service, wanted.service) ||
        compare_texts(found->source, wanted.source))
        return false;
    if (!found->label)
        return true;
    wanted.value = labels_get(labels, found->label);
    found = find_exclusion(selection, &wanted);
    return found && !store_exclusion_compare(found, &wanted);
}
