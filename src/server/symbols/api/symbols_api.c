// SPDX-License-Identifier: Apache-2.0
// Symbols in and out by our own API: files that are sent, what there is, what is missing.

#include "server/symbols/api/symbols_api.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/json_write.h"
#include "server/audit/audit.h"
#include "server/control/agents.h"
#include "server/query/context.h"

#define PIECE_BYTES (256u << 10)
#define MISSING_ROWS 100
#define MISSING_ROWS_MAX 10000

const char *symbols_quality_word(enum symbol_index_quality quality)
{
    static const char *const words[] = {"nothing", "starts", "dynamic",
                                        "symbols", "lines",  "inlines"};
    return words[quality];
}

int symbols_asked_key(const char *text, char ret_key[SYMBOL_KEY_BYTES], struct error *error)
{
    return symbol_key(text, ret_key)
               ? 0
               : error_set(error, -EINVAL,
                           "\"%.100s\" is not a build ID: use hexadecimal digits, or Go's text.",
                           text);
}

/* ---- files that are sent ---- */

int symbols_take_body(struct http_request *request, struct server *server, const char *key,
                      const char *name, struct symbol_stored *ret_stored, struct error *error)
{
    _cleanup_symbol_upload_ struct symbol_upload upload = {0};
    _cleanup_free_ char *piece = memory_alloc(PIECE_BYTES);
    const char *tenant = http_request_identity(request)->tenant;
    ssize_t got = 0;
    int r = symbol_upload_begin(symbols_store(server->symbols), &upload, error);
    while (!r && (got = http_request_read(request, piece, PIECE_BYTES, error)) > 0)
        r = symbol_upload_write(&upload, piece, (size_t)got, error);
    if (!r && got < 0)
        r = (int)got;
    if (!r && (http_request_cancelled(request) || !upload.bytes))
        r = error_set(error, -EINVAL, "The body is empty or incomplete.");
    if (!r)
        r = symbol_upload_finish(&upload, tenant, key, name, ret_stored, error);
    if (!r)
        symbol_requests_fulfil(symbols_requests(server->symbols), tenant, ret_stored->key);
    return r;
}

/* From an agent with a symbol request: accepted only while the agent holds its lease. The audit log
 * has who sent which file of which program. */
static int take_from_agent(struct http_request *request, struct server *server, const char *agent,
                           const char *key, const char *name, struct symbol_stored *ret_stored,
                           struct error *error)
{
    struct symbol_requests *symbol_requests = symbols_requests(server->symbols);
    const char *tenant = http_request_identity(request)->tenant;
    char target[AUDIT_TEXT_MAX];
    if (!key || !agent_id_valid(agent))
        return error_set(
            error, -EINVAL,
            "An upload with the parameter agent requires a valid agent id and build_id.");
    int r = symbol_requests_begin(symbol_requests, tenant, agent, key, monotonic_ns() / 1000000000,
                                  error);
    if (r < 0)
        return r;
    r = symbols_take_body(request, server, key, name, ret_stored, error);
    bool final = (r == -EINVAL || r == -EBADMSG || r == -E2BIG) && !http_request_cancelled(request);
    symbol_requests_end(symbol_requests, tenant, agent, key, r < 0 ? error->text : NULL, final,
                        monotonic_ns() / 1000000000);
    snprintf(target, sizeof(target), "%s (%.200s) from the agent %s", key, name ? name : "", agent);
    server_audit(server, request, "symbols upload", target, r < 0 ? error->text : "done");
    return r;
}

void symbols_upload(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct symbol_stored stored = {0};
    struct error error = {0};
    struct buffer out = {0};
    char key[SYMBOL_KEY_BYTES];
    const char *build_id = http_request_query(request, "build_id");
    const char *name = http_request_query(request, "name");
    const char *agent = http_request_query(request, "agent");
    if (!parameters_known(request, "/api/v1/debuginfo"))
        return;
    build_id = build_id && *build_id ? build_id : NULL;
    int r = build_id ? symbols_asked_key(build_id, key, &error) : 0;
    if (!r && agent)
        r = take_from_agent(request, server, agent, build_id ? key : NULL, name, &stored, &error);
    else if (!r)
        r = symbols_take_body(request, server, build_id ? key : NULL, name, &stored, &error);
    if (r < 0) {
        handler_respond_failure(request, &error);
        return;
    }
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    json_member_text(&json, "build_id", stored.key);
    json_member_bool(&json, "stored", stored.stored);
    json_member_text(&json, "quality", symbols_quality_word(stored.quality));
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

/* ---- what there is ---- */

static void put_entry(struct json_writer *json, const struct symbol_entry *entry)
{
    json_write_object(json);
    json_member_text(json, "build_id", entry->key);
    json_member_text(json, "name", entry->name);
    json_member_text(json, "quality", symbols_quality_word(entry->quality));
    json_member_unsigned(json, "executable_bytes", entry->file_bytes[SYMBOL_EXECUTABLE]);
    json_member_unsigned(json, "debuginfo_bytes", entry->file_bytes[SYMBOL_DEBUGINFO]);
    json_member_unsigned(json, "package_bytes", entry->file_bytes[SYMBOL_PACKAGE]);
    json_member_unsigned(json, "index_bytes", entry->index_bytes);
    json_member_unsigned(json, "code_bytes", entry->code_bytes);
    json_member_unsigned(json, "named_bytes", entry->named_bytes);
    json_member_unsigned(json, "line_bytes", entry->line_bytes);
    json_member_signed(json, "added", entry->added);
    json_member_signed(json, "used", entry->used);
    json_write_object_end(json);
}

/* Whether a file is worth sending; senders ask first. */
void symbols_known(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct symbol_entry entry;
    struct error error = {0};
    struct buffer out = {0};
    char key[SYMBOL_KEY_BYTES];
    if (!parameters_known(request, "/api/v1/debuginfo/*"))
        return;
    int r = symbols_asked_key(http_request_rest(request), key, &error);
    if (!r && !symbol_store_find(symbols_store(server->symbols),
                                 http_request_identity(request)->tenant, key, &entry))
        r = error_set(&error, -ENOENT, "No symbols of the build %.120s.", key);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    struct json_writer json = json_writer(&out);
    put_entry(&json, &entry);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

struct listing {
    struct json_writer json;
    uint64_t bytes;
};

static int list_entry(void *context, const struct symbol_entry *entry)
{
    struct listing *listing = context;
    json_write_line(&listing->json);
    put_entry(&listing->json, entry);
    listing->bytes += entry->index_bytes;
    for (int i = 0; i < SYMBOL_FILES; i++)
        listing->bytes += entry->file_bytes[i];
    return 0;
}

void symbols_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct buffer out = {0};
    struct listing listing = {.json = json_writer(&out)};
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/symbols"))
        return;
    json_write_object(&listing.json);
    json_write_key(&listing.json, "builds");
    json_write_array(&listing.json);
    if (symbol_store_list(symbols_store(server->symbols), http_request_identity(request)->tenant,
                          list_entry, &listing, &error) < 0) {
        http_respond_failure(request, &error);
    } else {
        json_write_array_end(&listing.json);
        json_member_unsigned(&listing.json, "bytes", listing.bytes);
        json_write_object_end(&listing.json);
        buffer_add_char(&out, '\n');
        api_respond(request, "application/json", &out);
    }
    buffer_release(&out);
}

void symbols_delete(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    char key[SYMBOL_KEY_BYTES];
    if (!parameters_known(request, "/api/v1/symbols/*"))
        return;
    int r = symbols_asked_key(http_request_rest(request), key, &error);
    if (!r) {
        const char *tenant = http_request_identity(request)->tenant;
        int sources = source_store_delete(symbols_sources(server->symbols), tenant, key, NULL);
        r = symbol_store_delete(symbols_store(server->symbols), tenant, key, &error);
        r = r == -ENOENT && !sources ? 0 : r;
    }
    server_audit(server, request, "symbols delete", http_request_rest(request),
                 r < 0 ? error.text : "done");
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_respond_text(request, 200, "application/json", "{}\n");
}

/* ---- what is missing ---- */

static void put_services(struct json_writer *json, const struct symbols_survey *survey)
{
    json_write_key(json, "services");
    json_write_array(json);
    for (size_t i = 0; i < survey->service_count; i++) {
        const struct symbols_service *service = &survey->services[i];
        json_write_line(json);
        json_write_object(json);
        json_member_text(json, "service", service->name);
        json_member_text(json, "type", service->type);
        json_member_number(json, "named_share", service->named_share);
        json_member_digits(json, "total", service->total, 17);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_missing(struct json_writer *json, const struct symbols_survey *survey,
                        struct symbols *symbols, uint64_t limit)
{
    struct symbol_store *store = symbols_store(symbols);
    json_write_key(json, "missing");
    json_write_array(json);
    for (size_t i = 0; i < survey->missing_count && i < limit; i++) {
        const struct symbols_missing *missing = &survey->missing[i];
        const struct symbols_service *service = &survey->services[missing->service];
        struct symbol_entry entry;
        _cleanup_buffer_ struct buffer upload = {0};
        char key[SYMBOL_KEY_BYTES] = "";
        bool known = symbol_key(missing->build_id, key) &&
                     symbol_store_find(store, service->tenant, key, &entry);
        symbol_requests_say(symbols_requests(symbols), service->tenant, key,
                            monotonic_ns() / 1000000000, &upload);
        json_write_line(json);
        json_write_object(json);
        json_member_text(json, "build_id", missing->build_id);
        json_member_text(json, "file", missing->file);
        json_member_text(json, "service", service->name);
        json_member_digits(json, "value", missing->value, 17);
        json_member_number(json, "share", service->total > 0 ? missing->value / service->total : 0);
        json_member_unsigned(json, "frames", missing->frames);
        if (known)
            json_member_text(json, "quality", symbols_quality_word(entry.quality));
        else
            json_member_null(json, "quality");
        json_member_text(json, "upload", buffer_text(&upload));
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void symbols_missing(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_query_context_ struct query_context query_context = {0};
    _cleanup_symbols_survey_ struct symbols_survey survey = {0};
    struct error error = {0};
    struct buffer out = {0};
    uint64_t limit = MISSING_ROWS;
    const char *query = http_request_query(request, "query");
    if (!parameters_known(request, "/api/v1/symbols/missing"))
        return;
    int r = parameter_number(request, "limit", 1, MISSING_ROWS_MAX, &limit, &error);
    if (!r)
        r = query_context_read(&query_context, request, server, "", false, &error);
    if (!r)
        r = symbols_survey_add(server->symbols, server->store, query_context.selection.tenant,
                               query ? query : "", query_context.selection.from_ns,
                               query_context.selection.to_ns, &query_context.limits, &survey,
                               &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    put_services(&json, &survey);
    put_missing(&json, &survey, server->symbols, limit);
    json_member_bool(&json, "cut", survey.cut || survey.missing_count > limit);
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}
