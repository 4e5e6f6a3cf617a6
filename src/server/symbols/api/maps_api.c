// SPDX-License-Identifier: Apache-2.0
// Source maps and mapping files in, and what there is of them. They belong to a tenant, as the
// profiles that they name do.

#include <string.h>

#include "base/memory.h"
#include "io/json_write.h"
#include "server/admission/admission.h"
#include "server/symbols/api/symbols_api.h"

#define PIECE_BYTES (256u << 10)
#define MEMORY_WAIT_MS 10000

static const char *parameter(struct http_request *request, const char *name)
{
    const char *value = http_request_query(request, name);
    return value ? value : "";
}

static int put_entry(void *context, const struct symbol_maps_entry *entry)
{
    struct json_writer *json = context;
    json_write_object(json);
    json_member_text(json, "id", entry->id);
    json_member_text(json, "kind", entry->kind == SYMBOL_MAP_JVM ? "jvm" : "javascript");
    json_member_text(json, "service", entry->service);
    json_member_text(json, "version", entry->version);
    json_member_text(json, "name", entry->name);
    json_member_unsigned(json, "bytes", entry->bytes);
    json_member_unsigned(json, "source_bytes", entry->source_bytes);
    json_member_signed(json, "added", entry->added);
    json_member_signed(json, "used", entry->used);
    json_write_object_end(json);
    return 0;
}

/* To a file first, so that a slow sender keeps nobody waiting. */
static int take_body(struct http_request *request, struct symbol_upload *upload, uint64_t limit,
                     struct error *error)
{
    _cleanup_free_ char *piece = memory_alloc(PIECE_BYTES);
    ssize_t got = 0;
    int r = 0;
    while (!r && (got = http_request_read(request, piece, PIECE_BYTES, error)) > 0) {
        r = symbol_upload_write(upload, piece, (size_t)got, error);
        if (!r && upload->bytes > limit)
            r = error_set(error, -E2BIG, "The map is larger than %llu MiB.",
                          (unsigned long long)limit >> 20);
    }
    if (!r && got < 0)
        r = (int)got;
    if (!r && (http_request_cancelled(request) || !upload->bytes))
        r = error_set(error, -EINVAL, "The body is empty or incomplete.");
    return r;
}

/* The limit of the decompressed size. */
static int store_map(struct http_request *request, struct server *server,
                     const struct symbol_upload *upload, const struct symbol_map_key *key,
                     struct buffer *out, struct error *error)
{
    struct symbol_maps *maps = symbols_maps(server->symbols);
    uint64_t limit = symbol_maps_file_limit(maps);
    struct json_writer json = json_writer(out);
    struct source source;
    int r = source_open(&source, upload->path, limit, error);
    if (r < 0)
        return r;
    source.name = "The map";
    bool is_plain = !strcmp(source_compression(&source), "none");
    size_t bytes = budget_fit(&server->admissions->memory,
                              symbol_maps_memory(is_plain ? upload->bytes : limit));
    if (budget_wait(&server->admissions->memory, bytes, MEMORY_WAIT_MS,
                    http_request_cancel_flag(request))) {
        r = symbol_maps_put(maps, &source, key, put_entry, &json, error);
        budget_give(&server->admissions->memory, bytes);
    } else {
        r = error_set(error, -EAGAIN,
                      "Queries and pushes have used up the server's memory limit; upload the map "
                      "again later.");
    }
    source_release(&source);
    return r;
}

static void note(struct server *server, struct http_request *request, const char *action,
                 const struct symbol_map_key *key, const char *outcome)
{
    _cleanup_buffer_ struct buffer target = {0};
    buffer_printf(&target, "service %s, version %s, %s", key->service, key->version, key->name);
    server_audit(server, request, action, buffer_text(&target), outcome);
}

void maps_upload(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_symbol_upload_ struct symbol_upload upload = {0};
    struct error error = {0};
    struct buffer out = {0};
    if (!parameters_known(request, "/api/v1/maps"))
        return;
    struct symbol_map_key key = {.tenant = http_request_identity(request)->tenant,
                                 .service = parameter(request, "service"),
                                 .version = parameter(request, "version"),
                                 .name = parameter(request, "name")};
    uint64_t limit = symbol_maps_file_limit(symbols_maps(server->symbols));
    int r = *key.service
                ? 0
                : error_set(&error, -EINVAL,
                            "A map requires the parameter service, and optionally version.");
    if (!r)
        r = symbol_upload_begin(symbols_store(server->symbols), &upload, &error);
    if (!r)
        r = take_body(request, &upload, limit, &error);
    if (!r)
        r = store_map(request, server, &upload, &key, &out, &error);
    note(server, request, "map upload", &key, r < 0 ? error.text : "done");
    if (r < 0) {
        http_respond_failure(request, &error);
    } else {
        buffer_add_char(&out, '\n');
        api_respond(request, "application/json", &out);
    }
    buffer_release(&out);
}

struct listing {
    const char *service, *version, *name; /* NULL: any */
    struct json_writer json;
    uint64_t bytes;
};

static int list_entry(void *context, const struct symbol_maps_entry *entry)
{
    struct listing *listing = context;
    if ((listing->service && strcmp(listing->service, entry->service) != 0) ||
        (listing->version && strcmp(listing->version, entry->version) != 0) ||
        (listing->name && strcmp(listing->name, entry->name) != 0))
        return 0;
    json_write_line(&listing->json);
    listing->bytes += entry->bytes;
    return put_entry(&listing->json, entry);
}

void maps_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct buffer out = {0};
    struct listing listing = {.json = json_writer(&out),
                              .service = http_request_query(request, "service"),
                              .version = http_request_query(request, "version"),
                              .name = http_request_query(request, "name")};
    if (!parameters_known(request, "/api/v1/maps"))
        return;
    json_write_object(&listing.json);
    json_write_key(&listing.json, "maps");
    json_write_array(&listing.json);
    symbol_maps_list(symbols_maps(server->symbols), http_request_identity(request)->tenant,
                     list_entry, &listing);
    json_write_array_end(&listing.json);
    json_member_unsigned(&listing.json, "bytes", listing.bytes);
    json_write_object_end(&listing.json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

void maps_delete(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/maps/*"))
        return;
    int r =
        symbol_maps_delete(symbols_maps(server->symbols), http_request_identity(request)->tenant,
                           http_request_rest(request), &error);
    server_audit(server, request, "map delete", http_request_rest(request),
                 r < 0 ? error.text : "done");
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_respond_text(request, 200, "application/json", "{}\n");
}
