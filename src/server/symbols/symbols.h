/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's symbol service: the symbol store, names for what is asked, and a thread that looks
 * for builds that were asked for and aren't known: among this host's files, and at other debuginfod
 * servers, where settings allow it.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "profile/profile.h"
#include "server/symbols/requests.h"
#include "symbol/maps/store.h"
#include "symbol/sources/sources.h"
#include "symbol/store/store.h"

#define SYMBOLS_UPSTREAM_MAX 8

struct budget;
struct settings;
struct store;

/* Texts are the caller's. */
struct symbols_options {
    uint64_t file_bytes, disk_bytes; /* 0: the store's own limits */
    uint64_t source_file_bytes, source_disk_bytes;
    uint64_t maps_bytes; /* of name maps; 0: their store's own limit */
    int64_t unused_ns;
    bool local_files;      /* names from this host's files, by build ID */
    bool open;             /* debuginfod's addresses need no token */
    uint64_t mapped_bytes; /* of indexes that are open and not in use */
    struct budget *memory; /* that indexes are made within */
    const char *upstream[SYMBOLS_UPSTREAM_MAX];
    size_t upstream_count;
};

void symbols_options_read(struct symbols_options *options, struct settings *settings);

struct symbols;

/* `data` is the server's directory; NULL: a temporary one, gone at the end. `store` is borrowed. */
int symbols_open(const struct symbols_options *options, const char *data, struct store *store,
                 struct symbols **ret_symbols, struct error *error);
void symbols_close(struct symbols *symbols); /* takes NULL */

const struct symbols_options *symbols_options(const struct symbols *symbols);
struct symbol_store *symbols_store(struct symbols *symbols);
struct source_store *symbols_sources(struct symbols *symbols);
struct symbol_maps *symbols_maps(struct symbols *symbols); /* NULL without a service */

/* Names what can be named, and has the rest looked for, at last with the tenant's agents. Without a
 * service, nothing. */
int symbols_name(struct symbols *symbols, const char *tenant, struct profile *profile,
                 struct error *error);

/* ---- files that agents are asked for (symbol requests.h) ---- */

/* An agent's words, and what its answer is to say. */
void symbols_hear_agent(struct symbols *symbols, const char *tenant, const char *agent,
                        const struct symbol_request_word *words, size_t count, struct buffer *out);
struct symbol_requests *symbols_requests(struct symbols *symbols);

/* Prometheus text, with the share of named frames by service: of one tenant, or of all (NULL). */
void symbols_write_metrics(struct symbols *symbols, const char *tenant, struct buffer *out);

/* ---- which services lack names (symbols_survey.c) ---- */

struct query;
struct store_limits;

struct symbols_survey {
    struct symbols_service {
        char *tenant, *name;
        char *type;
        double named_share; /* of all frames of all samples */
        double total;       /* value of its samples */
    } * services;
    size_t service_count, service_capacity;
    struct symbols_missing {
        size_t service;
        char *build_id, *file;
        double value; /* of samples with such a frame */
        uint64_t frames;
    } * missing; /* most expensive first */
    size_t missing_count, missing_capacity;
    bool cut; /* there are more services than were looked at */
};
void symbols_survey_release(struct symbols_survey *survey);
#define _cleanup_symbols_survey_ __attribute__((cleanup(symbols_survey_release)))

/* Adds what a tenant's services have of the query, which may lack a type: then of the CPU's. */
int symbols_survey_add(struct symbols *symbols, struct store *store, const char *tenant,
                       const char *query, int64_t from_ns, int64_t to_ns,
                       const struct store_limits *limits, struct symbols_survey *survey,
                       struct error *error);

/* ---- private to src/server/symbols*.c ---- */

/* Fetches a build from the servers upstream for a tenant (symbols_upstream.c). 0; -ENOENT: they
 * don't have it; anything else: they can't be asked now. */
struct symbols_upstream;
struct symbols_upstream *symbols_upstream_new(const struct symbols_options *options);
void symbols_upstream_free(struct symbols_upstream *upstream);
void symbols_upstream_cancel(struct symbols_upstream *upstream);
int symbols_upstream_fetch(struct symbols_upstream *upstream, struct symbol_store *store,
                           const char *tenant, const char *key, struct error *error);
