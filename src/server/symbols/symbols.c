// SPDX-License-Identifier: Apache-2.0
// The symbol service: see symbols.h.

#include "server/symbols/symbols.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/settings.h"
#include "query/naming/names.h"
#include "server/symbols/lookup_queue.h"
#include "store/store.h"

#define FOLDER ".symbols" /* no tenant begins with a point */
#define DAY_NS 86400000000000ll
#define SURVEY_S 60              /* how often what is missing is counted, */
#define SURVEY_LOCAL_S 10        /* and looked for where that is near; */
#define SURVEY_FIRST_S 5         /* sooner at first: a new user is waiting */
#define SURVEY_NS 300000000000ll /* what it looks at: the last five minutes */
#define SURVEY_BYTES (32u << 20)
#define MAINTAIN_S 600
#define WAIT_NS 2000000000ll

struct symbols {
    struct symbols_options options;
    struct symbol_store *store;
    struct source_store *sources;
    struct symbol_maps *maps;
    struct store *profiles;
    struct symbols_upstream *upstream; /* NULL: none */
    char *folder;
    bool temporary;

    pthread_t worker;
    bool runs;
    atomic_bool stopping;
    struct lookup_queue *lookups;
    pthread_mutex_t lock;         /* over what follows, up to the requests */
    struct symbols_survey survey; /* the last */
    uint64_t found, not_found;
    struct symbol_requests symbol_requests;
};

static int64_t seconds_now(void)
{
    return monotonic_ns() / 1000000000;
}

void symbols_options_read(struct symbols_options *options, struct settings *settings)
{
    struct settings section;
    settings_open(&section, settings->problems, settings_map(settings, "symbols"), "symbols");
    settings_bool(&section, "local_files", &options->local_files);
    settings_bool(&section, "debuginfod_open", &options->open);
    settings_size(&section, "file_limit", 1u << 20, 1ull << 40, &options->file_bytes);
    settings_size(&section, "disk_limit", 1u << 20, 1ull << 50, &options->disk_bytes);
    settings_size(&section, "source_file_limit", 64u << 10, 256u << 20,
                  &options->source_file_bytes);
    settings_size(&section, "source_disk_limit", 1u << 20, 1ull << 50, &options->source_disk_bytes);
    settings_size(&section, "maps_limit", 1u << 20, 1ull << 50, &options->maps_bytes);
    settings_duration(&section, "unused", 0, DAY_NS * 36500, &options->unused_ns);
    const struct yaml_node *urls = settings_strings(&section, "upstream");
    for (size_t i = 0; urls && i < urls->count; i++) {
        const char *url = urls->values[i]->text;
        if (options->upstream_count == SYMBOLS_UPSTREAM_MAX)
            problems_add(settings->problems, urls, "The limit of symbols.upstream is %d servers",
                         SYMBOLS_UPSTREAM_MAX);
        else if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
            problems_add(settings->problems, urls->values[i],
                         "symbols.upstream must be a list of http:// or https:// URLs");
        if (options->upstream_count < SYMBOLS_UPSTREAM_MAX)
            options->upstream[options->upstream_count++] = url;
        else
            break;
    }
    settings_close(&section);
}

/* ---- looking for a build ---- */

/* A path as some process sees it, which may be in another root than ours. */
static bool index_elsewhere(struct symbols *symbols, const struct lookup *wanted)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    bool done = false;
    char path[PATH_MAX];
    while (processes && !done && !atomic_load(&symbols->stopping) && (entry = readdir(processes))) {
        uint64_t pid;
        if (!text_to_u64(entry->d_name, strlen(entry->d_name), &pid))
            continue;
        int length = snprintf(path, sizeof(path), "/proc/%s/root%s", entry->d_name, wanted->file);
        done =
            length < (int)sizeof(path) && access(path, R_OK) == 0 &&
            symbol_store_index_path(symbols->store, wanted->tenant, path, wanted->key, NULL) == 0;
    }
    if (processes)
        closedir(processes);
    return done;
}

static bool find_local(struct symbols *symbols, const struct lookup *wanted)
{
    if (wanted->file[0] != '/')
        return false;
    return symbol_store_index_path(symbols->store, wanted->tenant, wanted->file, wanted->key,
                                   NULL) == 0 ||
           index_elsewhere(symbols, wanted);
}

static void look_for(struct symbols *symbols, const struct lookup *wanted)
{
    struct error error = {0};
    bool found = symbols->options.local_files && find_local(symbols, wanted);
    if (!found && symbols->upstream) {
        int r = symbols_upstream_fetch(symbols->upstream, symbols->store, wanted->tenant,
                                       wanted->key, &error);
        found = r == 0;
        if (r < 0 && r != -ENOENT)
            log_warning("%s", error.text);
    }
    if (!found && wanted->file[0] == '/')
        symbol_requests_add(&symbols->symbol_requests, wanted->tenant, wanted->key, seconds_now());
    pthread_mutex_lock(&symbols->lock);
    symbols->found += found;
    symbols->not_found += !found;
    pthread_mutex_unlock(&symbols->lock);
}

static int add_tenant(void *context, const char *text)
{
    struct buffer *names = context;
    buffer_add(names, text, strlen(text) + 1);
    return 0;
}

static void take_survey(struct symbols *symbols)
{
    _cleanup_buffer_ struct buffer tenants = {0};
    struct symbols_survey survey = {0};
    struct store_limits limits = {.cancelled = &symbols->stopping, .memory_bytes = SURVEY_BYTES};
    int64_t now = clock_ns(CLOCK_REALTIME);
    store_tenants(symbols->profiles, add_tenant, &tenants, NULL);
    for (size_t at = 0; at < tenants.length; at += strlen(tenants.data + at) + 1)
        symbols_survey_add(symbols, symbols->profiles, tenants.data + at, "", now - SURVEY_NS, now,
                           &limits, &survey, NULL);
    for (size_t i = 0; i < survey.missing_count; i++) {
        const struct symbols_missing *missing = &survey.missing[i];
        char key[SYMBOL_KEY_BYTES];
        if (symbol_key(missing->build_id, key))
            symbol_requests_set_value(&symbols->symbol_requests,
                                      survey.services[missing->service].tenant, key,
                                      missing->value);
    }
    pthread_mutex_lock(&symbols->lock);
    struct symbols_survey old = symbols->survey;
    symbols->survey = survey;
    pthread_mutex_unlock(&symbols->lock);
    symbols_survey_release(&old);
}

static void *work(void *userdata)
{
    struct symbols *symbols = userdata;
    pthread_setname_np(pthread_self(), "symbols");
    int64_t maintained = 0, surveyed = monotonic_ns(), every_s = SURVEY_FIRST_S;
    while (!atomic_load(&symbols->stopping)) {
        int64_t now = monotonic_ns();
        if (!maintained || now - maintained > MAINTAIN_S * 1000000000ll) {
            symbol_store_maintain(symbols->store);
            source_store_maintain(symbols->sources);
            symbol_maps_maintain(symbols->maps);
            maintained = now;
        }
        if (now - surveyed > every_s * 1000000000ll) {
            take_survey(symbols);
            surveyed = now;
            every_s = MIN(2 * every_s, symbols->options.local_files ? SURVEY_LOCAL_S : SURVEY_S);
        }
        struct lookup wanted;
        if (!lookup_queue_take(symbols->lookups, symbols->options.local_files, WAIT_NS, &wanted))
            continue;
        if (!atomic_load(&symbols->stopping))
            look_for(symbols, &wanted);
        free(wanted.file);
    }
    return NULL;
}

struct asking {
    struct symbols *symbols;
    const char *tenant;
};

/* Queues a build for the worker. Without a place to look it up, agents are asked at once, for files
 * only: [vdso] isn't one. */
static void want(void *context, const char *key, const char *file)
{
    struct asking *asking = context;
    struct symbols *symbols = asking->symbols;
    if (!symbols->options.local_files && !symbols->upstream) {
        if (file[0] == '/')
            symbol_requests_add(&symbols->symbol_requests, asking->tenant, key, seconds_now());
        return;
    }
    lookup_queue_add(symbols->lookups, asking->tenant, key, file, seconds_now());
}

/* ---- the service ---- */

const struct symbols_options *symbols_options(const struct symbols *symbols)
{
    return &symbols->options;
}

struct symbol_store *symbols_store(struct symbols *symbols)
{
    return symbols->store;
}

struct source_store *symbols_sources(struct symbols *symbols)
{
    return symbols->sources;
}

struct symbol_maps *symbols_maps(struct symbols *symbols)
{
    return symbols ? symbols->maps : NULL;
}

int symbols_name(struct symbols *symbols, const char *tenant, struct profile *profile,
                 struct error *error)
{
    struct asking asking = {symbols, tenant};
    return symbols ? query_name(profile, symbols->store, tenant, want, &asking, error) : 0;
}

struct symbol_requests *symbols_requests(struct symbols *symbols)
{
    return &symbols->symbol_requests;
}

/* A file that arrived in another way in the meantime is no longer requested. */
void symbols_hear_agent(struct symbols *symbols, const char *tenant, const char *agent,
                        const struct symbol_request_word *words, size_t count, struct buffer *out)
{
    struct symbol_entry entry;
    for (size_t i = 0; i < count; i++)
        if (words[i].state == SYMBOL_REQUEST_HAVE &&
            symbol_store_find(symbols->store, tenant, words[i].key, &entry))
            symbol_requests_fulfil(&symbols->symbol_requests, tenant, words[i].key);
    symbol_requests_hear(&symbols->symbol_requests, tenant, agent, words, count, seconds_now());
    symbol_requests_write(&symbols->symbol_requests, tenant, agent, seconds_now(), out);
}

static struct source_store *open_sources(const struct symbols *symbols)
{
    _cleanup_buffer_ struct buffer folder = {0};
    buffer_printf(&folder, "%s/sources", symbols->folder);
    return source_store_open(
        &(struct source_store_options){.directory = buffer_text(&folder),
                                       .file_bytes_max = symbols->options.source_file_bytes,
                                       .total_bytes_max = symbols->options.source_disk_bytes,
                                       .unused_ns = symbols->options.unused_ns});
}

static int open_maps(struct symbols *symbols, struct error *error)
{
    _cleanup_buffer_ struct buffer folder = {0};
    buffer_printf(&folder, "%s/maps", symbols->folder);
    return symbol_maps_open(
        &(struct symbol_maps_options){.directory = buffer_text(&folder),
                                      .total_bytes_max = symbols->options.maps_bytes,
                                      .unused_ns = symbols->options.unused_ns},
        &symbols->maps, error);
}

int symbols_open(const struct symbols_options *options, const char *data, struct store *store,
                 struct symbols **ret_symbols, struct error *error)
{
    struct buffer folder = {0};
    const char *temporary = getenv("TMPDIR");
    if (data)
        buffer_printf(&folder, "%s/" FOLDER, data);
    else
        buffer_printf(&folder, "%s/assay-symbols-XXXXXX", temporary ? temporary : "/tmp");
    buffer_text(&folder);
    if (!data && !mkdtemp(folder.data)) {
        int r = error_set_errno(error, -errno, "Failed to create the directory for symbols, %s",
                                folder.data);
        buffer_release(&folder);
        return r;
    }
    struct symbols *symbols = memory_zalloc(1, sizeof(*symbols));
    symbols->options = *options;
    symbols->folder = folder.data;
    symbols->temporary = !data;
    symbols->profiles = store;
    symbols->sources = open_sources(symbols);
    pthread_mutex_init(&symbols->lock, NULL);
    symbols->lookups = lookup_queue_new();
    symbol_requests_init(&symbols->symbol_requests);
    int r =
        symbol_store_open(&(struct symbol_store_options){.directory = symbols->folder,
                                                         .file_bytes_max = options->file_bytes,
                                                         .total_bytes_max = options->disk_bytes,
                                                         .unused_ns = options->unused_ns,
                                                         .mapped_bytes_max = options->mapped_bytes,
                                                         .memory = options->memory},
                          &symbols->store, error);
    if (!r)
        r = open_maps(symbols, error);
    if (!r && options->upstream_count)
        symbols->upstream = symbols_upstream_new(options);
    if (!r)
        r = -pthread_create(&symbols->worker, NULL, work, symbols);
    symbols->runs = !r;
    if (r < 0) {
        symbols_close(symbols);
        return r;
    }
    *ret_symbols = symbols;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    atomic_store(&symbols->stopping, true);
    if (symbols->upstream)
        symbols_upstream_cancel(symbols->upstream);
    lookup_queue_wake(symbols->lookups);
    if (symbols->runs)
        pthread_join(symbols->worker, NULL);
    if (symbols->temporary) /* that of a server in memory goes with it */
        nftw(symbols->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    symbol_maps_close(symbols->maps);
    symbol_store_close(symbols->store);
    source_store_close(symbols->sources);
    symbols_upstream_free(symbols->upstream);
    symbols_survey_release(&symbols->survey);
    symbol_requests_release(&symbols->symbol_requests);
    lookup_queue_free(symbols->lookups);
    pthread_mutex_destroy(&symbols->lock);
    free(symbols->folder);
    free(symbols);
}

/* ---- stats ---- */

static void metric(struct buffer *out, const char *name, const char *kind, const char *help,
                   uint64_t value)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, kind, name,
                  (unsigned long long)value);
}

void symbols_write_metrics(struct symbols *symbols, const char *tenant, struct buffer *out)
{
    struct symbol_store_stats stats = symbol_store_stats(symbols->store);
    struct source_store_stats sources = source_store_stats(symbols->sources);
    metric(out, "assay_symbols_builds", "gauge", "Builds with symbols.", stats.builds);
    metric(out, "assay_symbols_bytes", "gauge", "Disk space of symbols.", stats.bytes);
    metric(out, "assay_symbols_open", "gauge", "Open indexes.", stats.open);
    metric(out, "assay_symbols_mapped_bytes", "gauge", "Size of the open indexes.",
           stats.mapped_bytes);
    metric(out, "assay_symbols_made_total", "counter", "Indexes built.", stats.made);
    metric(out, "assay_symbols_refused_total", "counter", "Rejected files.", stats.refused);
    metric(out, "assay_symbols_no_better_total", "counter",
           "Uploaded files that were not better than the stored ones.", stats.kept_out);
    metric(out, "assay_symbols_removed_total", "counter",
           "Builds deleted because they were unused or to free space.", stats.removed);
    metric(out, "assay_sources_builds", "gauge", "Builds with sources, at the last check.",
           sources.builds);
    metric(out, "assay_sources_files", "gauge", "Source files, each content once.", sources.files);
    metric(out, "assay_sources_bytes", "gauge", "Disk space of symbols.", sources.bytes);
    metric(out, "assay_sources_removed_total", "counter",
           "Builds whose sources were deleted because they were unused or to free space.",
           sources.removed);
    struct symbol_maps_stats maps = symbol_maps_stats(symbols->maps);
    metric(out, "assay_maps", "gauge", "Source maps and mapping files.", maps.entries);
    metric(out, "assay_maps_bytes", "gauge", "Disk space of symbols.", maps.bytes);
    metric(out, "assay_maps_open", "gauge", "Open source maps and mapping files.", maps.open);
    metric(out, "assay_maps_stored_total", "counter", "Accepted source maps and mapping files.",
           maps.stored);
    metric(out, "assay_maps_refused_total", "counter", "Rejected source maps and mapping files.",
           maps.refused);
    metric(out, "assay_maps_removed_total", "counter",
           "Source maps and mapping files deleted, by age, size or request.", maps.removed);
    symbol_requests_write_metrics(&symbols->symbol_requests, seconds_now(), out);
    pthread_mutex_lock(&symbols->lock);
    metric(out, "assay_symbols_found_total", "counter", "Builds found on this host or upstream.",
           symbols->found);
    metric(out, "assay_symbols_not_found_total", "counter", "Builds not found locally or upstream.",
           symbols->not_found);
    metric(out, "assay_symbols_not_sought_total", "counter",
           "Builds skipped because the lookup queue was full.",
           lookup_queue_dropped(symbols->lookups));
    buffer_add_text(out,
                    "# HELP assay_symbols_named_ratio Share of resolved frames in the last "
                    "minutes' CPU samples, by service.\n# TYPE assay_symbols_named_ratio gauge\n");
    for (size_t i = 0; i < symbols->survey.service_count; i++) {
        const struct symbols_service *service = &symbols->survey.services[i];
        if (tenant && strcmp(tenant, service->tenant))
            continue;
        buffer_add_text(out, "assay_symbols_named_ratio{tenant=\"");
        text_escape_metric(out, service->tenant);
        buffer_add_text(out, "\",service_name=\"");
        text_escape_metric(out, service->name);
        buffer_printf(out, "\"} %.6g\n", service->named_share);
    }
    pthread_mutex_unlock(&symbols->lock);
}
