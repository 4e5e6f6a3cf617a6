// SPDX-License-Identifier: Apache-2.0
// The server's settings: defaults, and the keys of its configuration file.

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "config/quantity.h"
#include "server/server.h"
#include "server/symbols/api/source_links.h"

#define DAY_NS 86400000000000ll

static const struct store_class default_class = {.name = "default", .days = {14, 30, 400, 1200}};

void server_options_defaults(struct server_options *options)
{
    *options = (struct server_options){
        .data = NULL,
        .memory_limit_bytes = 256u << 20,
        .classes = {default_class},
        .class_count = 1,
        .clock_limit_ns = 7 * DAY_NS,
        .limits = {.body_bytes = 64u << 20,
                   .expansion_bytes = 256u << 20,
                   .samples = 1000000,
                   .series = 10000,
                   .depth = 1024,
                   .clock_skew_ns = 600000000000ll},
        .rate = {.burst_ns = 10000000000ll},
        .watch = WATCH_OPTIONS_DEFAULT,
        .cost = {.currency = ""},
        .spans = {.enabled = true,
                  .retention_ns = SPAN_RETENTION_DEFAULT,
                  .disk_limit_bytes = SPAN_DISK_DEFAULT},
        .baselines = {.bytes = BASELINES_BYTES_DEFAULT, .count = BASELINES_COUNT_DEFAULT},
        .pins = {.bytes = SAVED_PINS_BYTES_DEFAULT, .count = SAVED_PINS_COUNT_DEFAULT},
    };
}

static void read_listen(struct server_options *options, struct settings *settings)
{
    const struct yaml_node *node = settings_node(settings, "listen");
    if (!node || node->kind == YAML_NULL)
        return;
    options->listen_count = 0;
    if (node->kind == YAML_SCALAR) {
        options->listen[options->listen_count++] = node->text;
        return;
    }
    for (size_t i = 0; node->kind == YAML_LIST && i < node->count; i++) {
        if (node->values[i]->kind != YAML_SCALAR || options->listen_count == SERVER_LISTEN_MAX) {
            problems_add(settings->problems, node,
                         "listen must be an address or at most %d of them", SERVER_LISTEN_MAX);
            return;
        }
        options->listen[options->listen_count++] = node->values[i]->text;
    }
    if (!options->listen_count)
        problems_add(settings->problems, node, "listen must be an address or a list of addresses");
}

static void read_limits(struct server_options *options, struct settings *settings)
{
    struct settings section;
    struct ingest_limits *limits = &options->limits;
    settings_open(&section, settings->problems, settings_map(settings, "limits"), "limits");
    settings_size(&section, "body", 1024, 256u << 20, &limits->body_bytes);
    settings_size(&section, "expansion", 1024, 4ull << 30, &limits->expansion_bytes);
    settings_u64(&section, "samples", 1, STORE_ROWS_MAX, &limits->samples);
    settings_u64(&section, "series", 1, 1000000, &limits->series);
    settings_u64(&section, "depth", 16, STORE_DEPTH_MAX, &limits->depth);
    settings_duration(&section, "clock_skew", 1000000000, DAY_NS * 365, &limits->clock_skew_ns);
    settings_duration(&section, "age", 1000000000, DAY_NS * 36500, &limits->age_ns);
    settings_u64(&section, "connections", 10, 1000000, &options->connections);
    settings_u64(&section, "connections_per_address", 1, 1000000,
                 &options->connections_per_address);
    settings_u64(&section, "requests_per_second", 1, 1000000, &options->requests_per_second);
    settings_duration(&section, "idle_timeout", 1000000000, DAY_NS, &options->idle_timeout_ns);
    settings_size(&section, "delta_memory", 1u << 20, 1ull << 40, &options->delta_memory_bytes);
    settings_size(&section, "query_memory", 1u << 20, 1ull << 40, &options->query_memory_bytes);
    settings_close(&section);
}

static void read_baselines(struct server_options *options, struct settings *settings)
{
    struct settings section;
    settings_open(&section, settings->problems, settings_map(settings, "baselines"), "baselines");
    settings_size(&section, "bytes", 1u << 20, 1ull << 40, &options->baselines.bytes);
    settings_u64(&section, "count", 1, 100000, &options->baselines.count);
    settings_close(&section);
}

static void read_pins(struct server_options *options, struct settings *settings)
{
    struct settings section;
    settings_open(&section, settings->problems, settings_map(settings, "pins"), "pins");
    settings_size(&section, "bytes", 1u << 20, 1ull << 50, &options->pins.bytes);
    settings_u64(&section, "count", 1, 10000, &options->pins.count);
    settings_close(&section);
}

/* {service: size}. */
static void read_memory_limits(struct server_options *options, struct settings *settings)
{
    const struct yaml_node *map = settings_map(settings, "memory_limits");
    size_t count = map ? map->count : 0;
    if (count > WATCH_LIMITS_MAX) {
        problems_add(settings->problems, map, "The limit is %d memory_limits", WATCH_LIMITS_MAX);
        return;
    }
    options->memory_limits = memory_zalloc(count + 1, sizeof(*options->memory_limits));
    for (size_t i = 0; i < count; i++) {
        struct watch_limit *limit = &options->memory_limits[i];
        limit->service = map->keys[i]->text;
        if (!quantity_size(map->values[i]->text, &limit->bytes) || !limit->bytes)
            problems_add(settings->problems, map->values[i],
                         "memory_limits needs a size for %s, such as 512MiB", limit->service);
    }
    options->watch.limits = options->memory_limits;
    options->watch.limit_count = count;
}

static void read_leaks(struct server_options *options, struct settings *settings)
{
    struct settings section;
    struct watch_options *watch = &options->watch;
    uint64_t rate = (uint64_t)watch->least_rate;
    settings_open(&section, settings->problems, settings_map(settings, "leaks"), "watch.leaks");
    settings_bool(&section, "enabled", &watch->leaks);
    settings_duration(&section, "interval", 1000000000, DAY_NS, &watch->leak_interval_ns);
    settings_duration(&section, "range", DAY_NS / 24, DAY_NS, &watch->leak_range_ns);
    settings_size(&section, "min_rate", 1, 1ull << 50, &rate);
    watch->least_rate = (double)rate;
    read_memory_limits(options, &section);
    settings_close(&section);
}

static void read_watch(struct server_options *options, struct settings *settings)
{
    struct settings section;
    struct watch_options *watch = &options->watch;
    settings_open(&section, settings->problems, settings_map(settings, "watch"), "watch");
    settings_bool(&section, "enabled", &watch->enabled);
    settings_duration(&section, "interval", 1000000000, DAY_NS, &watch->interval_ns);
    settings_duration(&section, "first_look", 10000000000, DAY_NS / 24, &watch->first_look_ns);
    settings_double(&section, "min_growth", 0, 100, &watch->min_growth);
    settings_double(&section, "min_share", 0, 1, &watch->min_share);
    settings_double(&section, "cpu", 0.001, 1, &watch->cpu);
    settings_bool(&section, "changes", &watch->changes);
    read_leaks(options, &section);
    settings_close(&section);
}

/* Shown as it is, also in metrics. */
static bool is_currency(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isalpha((unsigned char)text[i]))
            return false;
    return length && length <= 8;
}

static void read_cost(struct server_options *options, struct settings *settings)
{
    struct settings section;
    const struct yaml_node *map = settings_map(settings, "cost");
    settings_open(&section, settings->problems, map, "cost");
    settings_double(&section, "core_hour", 1e-9, 1e9, &options->cost.core_hour);
    settings_string(&section, "currency", &options->cost.currency);
    settings_close(&section);
    if (*options->cost.currency && !is_currency(options->cost.currency))
        problems_add(settings->problems, map, "cost.currency must be 1 to 8 letters, such as EUR");
    if (*options->cost.currency && !(options->cost.core_hour > 0))
        problems_add(settings->problems, map, "cost.currency requires cost.core_hour");
}

static void read_spans(struct server_options *options, struct settings *settings)
{
    struct settings section;
    struct error error = {0};
    settings_open(&section, settings->problems, settings_map(settings, "spans"), "spans");
    settings_bool(&section, "enabled", &options->spans.enabled);
    settings_duration(&section, "retention", 60000000000ll, DAY_NS * 3650,
                      &options->spans.retention_ns);
    settings_size(&section, "disk_limit", 1u << 20, 1ull << 50, &options->spans.disk_limit_bytes);
    const struct yaml_node *routes = settings_strings(&section, "routes");
    for (size_t i = 0; routes && i < routes->count; i++)
        if (template_rules_add(&options->spans.routes, routes->values[i]->text, &error) < 0)
            problems_add_error(settings->problems, routes->values[i], &error);
    settings_close(&section);
}

static void read_rates(struct server_options *options, struct settings *settings)
{
    static const char *const whose[] = {"sender", "tenant"};
    struct settings section;
    struct quota_limits *rate = &options->rate;
    unsigned per = 0;
    settings_open(&section, settings->problems, settings_map(settings, "rate_limits"),
                  "rate_limits");
    settings_choice(&section, "per", whose, ARRAY_LENGTH(whose), &per);
    rate->per_tenant = per == 1;
    settings_size(&section, "bytes", 1, 1ull << 40, &rate->bytes);
    settings_u64(&section, "requests", 1, 1000000, &rate->requests);
    settings_u64(&section, "samples", 1, 1ull << 40, &rate->samples);
    settings_duration(&section, "burst", 1000000, DAY_NS, &rate->burst_ns);
    settings_close(&section);
}

/* ---- how long things are kept ---- */

static void read_days(struct settings *section, const char *key, unsigned *days)
{
    int64_t ns;
    if (settings_duration(section, key, 0, DAY_NS * 36500, &ns))
        *days = (unsigned)((ns + DAY_NS - 1) / DAY_NS);
}

static void read_tiers(struct settings *section, struct store_class *class)
{
    read_days(section, "raw", &class->days[STORE_RAW]);
    read_days(section, "ten_minutes", &class->days[STORE_TEN_MINUTES]);
    read_days(section, "hour", &class->days[STORE_HOUR]);
    read_days(section, "day", &class->days[STORE_DAY]);
}

static bool is_class_name(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return length && length <= 32;
}

/* One of a list. `services` has room for all of them together. */
static void read_class(struct server_options *options, struct problems *problems,
                       const struct yaml_node *node, size_t *service_count)
{
    struct store_class class = default_class;
    struct settings section;
    class.name = NULL;
    settings_open(&section, problems, node, "A retention class");
    settings_string(&section, "name", &class.name);
    const struct yaml_node *services = settings_strings(&section, "services");
    read_tiers(&section, &class);
    settings_close(&section);
    if (!class.name)
        class.name = services ? "" : "default";
    if (!is_class_name(class.name))
        problems_add(problems, node,
                     "A retention class requires a name of at most 32 letters, digits and _");
    for (size_t i = 0; i < options->class_count; i++)
        if (!strcmp(options->classes[i].name, class.name))
            problems_add(problems, node, "Two retention classes have the name \"%s\"", class.name);
    if (services) {
        class.services = &options->class_services[*service_count];
        for (size_t i = 0; i < services->count; i++)
            options->class_services[(*service_count)++] = services->values[i]->text;
        options->class_services[(*service_count)++] = NULL;
    }
    if (options->class_count && !options->classes[options->class_count - 1].services)
        problems_add(
            problems, node,
            "The retention class without services is for all others, and must be the last");
    options->classes[options->class_count++] = class;
}

static void read_classes(struct server_options *options, struct problems *problems,
                         const struct yaml_node *list)
{
    size_t room = 0, count = 0;
    if (list->count >= SERVER_CLASSES_MAX) {
        problems_add(problems, list, "The limit is %d retention classes", SERVER_CLASSES_MAX - 1);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct yaml_node *services =
            list->values[i]->kind == YAML_MAP ? yaml_node_get(list->values[i], "services") : NULL;
        room += services ? services->count + 1 : 0;
    }
    options->class_services = memory_zalloc(room + 1, sizeof(char *));
    options->class_count = 0;
    for (size_t i = 0; i < list->count; i++)
        read_class(options, problems, list->values[i], &count);
    if (!options->class_count || options->classes[options->class_count - 1].services)
        options->classes[options->class_count++] = default_class;
}

static void read_retention(struct server_options *options, struct settings *settings)
{
    const struct yaml_node *node = settings_node(settings, "retention");
    if (node && node->kind == YAML_LIST) {
        read_classes(options, settings->problems, node);
        return;
    }
    struct settings section;
    settings_open(&section, settings->problems, node, "retention");
    read_tiers(&section, &options->classes[0]);
    settings_close(&section);
}

static void read_tls(struct server_options *options, struct settings *settings)
{
    struct settings section;
    const struct yaml_node *map = settings_map(settings, "tls");
    settings_open(&section, settings->problems, map, "tls");
    settings_string(&section, "certificate", &options->tls_certificate);
    settings_string(&section, "key", &options->tls_key);
    settings_string(&section, "client_ca", &options->tls_client_ca);
    settings_close(&section);
    if (!options->tls_certificate != !options->tls_key)
        problems_add(settings->problems, map, "tls requires both certificate and key");
}

void server_options_read(struct server_options *options, struct settings *settings)
{
    static const char *const log_formats[] = {"text", "json"};
    read_listen(options, settings);
    settings_string(settings, "otlp_listen", &options->otlp_listen);
    settings_string(settings, "data", &options->data);
    settings_bool(settings, "in_memory", &options->in_memory);
    settings_string(settings, "store", &options->store);
    settings_size(settings, "memory_limit", 32u << 20, 1ull << 50, &options->memory_limit_bytes);
    settings_size(settings, "disk_limit", 1u << 20, 1ull << 60, &options->disk_limit_bytes);
    settings_bool(settings, "insecure", &options->insecure);
    settings_string(settings, "tokens", &options->tokens_file);
    settings_string(settings, "cors_origin", &options->cors_origin);
    settings_choice(settings, "log_format", log_formats, ARRAY_LENGTH(log_formats),
                    &options->log_format);
    settings_bool(settings, "access_log", &options->access_log);
    settings_string(settings, "rules", &options->rules_file);
    read_tls(options, settings);
    read_limits(options, settings);
    read_baselines(options, settings);
    read_pins(options, settings);
    read_watch(options, settings);
    read_cost(options, settings);
    read_spans(options, settings);
    read_rates(options, settings);
    read_retention(options, settings);
    settings_duration(settings, "retention_clock_limit", 0, 3650 * DAY_NS,
                      &options->clock_limit_ns);
    symbols_options_read(&options->symbols, settings);
    options->source_links = source_links_read(settings, &options->source_link_count);
    options->scrape = scrape_jobs_read(settings);
}

void server_options_release(struct server_options *options)
{
    free(options->class_services);
    free(options->memory_limits);
    template_rules_release(&options->spans.routes);
    scrape_jobs_unref(options->scrape);
    free(options->source_links);
    options->class_services = NULL;
    options->memory_limits = NULL;
    options->source_links = NULL;
    options->scrape = NULL;
}
