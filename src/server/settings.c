// SPDX-License-Identifier: Apache-2.0
// The server's settings: defaults, and the keys of its configuration file.

#include <limits.h>

#include "base/memory.h"
#include "server/server.h"

#define DAY_NS 86400000000000ll

void server_options_defaults(struct server_options *options)
{
    *options = (struct server_options){
        .data = NULL,
        .memory_limit_bytes = 256u << 20,
        .retention_days = {14, 30, 400, 1200},
        .limits = {.body_bytes = 64u << 20,
                   .expansion_bytes = 256u << 20,
                   .samples = 1000000,
                   .series = 10000,
                   .clock_skew_ns = 600000000000ll},
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
            problems_add(settings->problems, node, "listen is an address or up to %d of them",
                         SERVER_LISTEN_MAX);
            return;
        }
        options->listen[options->listen_count++] = node->values[i]->text;
    }
    if (!options->listen_count)
        problems_add(settings->problems, node, "listen is an address or a list of addresses");
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
    settings_duration(&section, "clock_skew", 1000000000, DAY_NS * 365, &limits->clock_skew_ns);
    settings_duration(&section, "age", 1000000000, DAY_NS * 36500, &limits->age_ns);
    settings_size(&section, "query_memory", 1u << 20, 1ull << 40, &options->query_memory_bytes);
    settings_close(&section);
}

static void read_days(struct settings *section, const char *key, unsigned *days)
{
    int64_t ns;
    if (settings_duration(section, key, 0, DAY_NS * 36500, &ns))
        *days = (unsigned)((ns + DAY_NS - 1) / DAY_NS);
}

static void read_retention(struct server_options *options, struct settings *settings)
{
    struct settings section;
    settings_open(&section, settings->problems, settings_map(settings, "retention"), "retention");
    read_days(&section, "raw", &options->retention_days[STORE_RAW]);
    read_days(&section, "ten_minutes", &options->retention_days[STORE_TEN_MINUTES]);
    read_days(&section, "hour", &options->retention_days[STORE_HOUR]);
    read_days(&section, "day", &options->retention_days[STORE_DAY]);
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
        problems_add(settings->problems, map, "tls wants both certificate and key");
}

void server_options_read(struct server_options *options, struct settings *settings)
{
    static const char *const log_formats[] = {"text", "json"};
    read_listen(options, settings);
    settings_string(settings, "data", &options->data);
    settings_size(settings, "memory_limit", 32u << 20, 1ull << 50, &options->memory_limit_bytes);
    settings_size(settings, "disk_limit", 1u << 20, 1ull << 60, &options->disk_limit_bytes);
    settings_bool(settings, "insecure", &options->insecure);
    settings_string(settings, "tokens", &options->tokens_file);
    settings_string(settings, "cors_origin", &options->cors_origin);
    settings_choice(settings, "log_format", log_formats, ARRAY_LENGTH(log_formats),
                    &options->log_format);
    settings_bool(settings, "access_log", &options->access_log);
    read_tls(options, settings);
    read_limits(options, settings);
    read_retention(options, settings);
}
