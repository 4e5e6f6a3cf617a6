// SPDX-License-Identifier: Apache-2.0
// Symbols in and out by our own API: files that are sent, what there is, what is missing.

#include "server/symbols/api/symbols_api.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
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

/* From an agent that was asked for it: only while it is that one's to send. Who sent what of which
 * program is in the audit log. */
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
    buffer_printf(&out, "{\"build_id\":\"%s\",\"stored\":%s,\"quality\":\"%s\"}\n", stored.key,
                  stored.stored ? "true" : "false", symbols_quality_word(stored.quality));
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

/* ---- what there is ---- */

void symbols_put_entry(struct buffer *out, const struct symbol_entry *entry)
{
    buffer_printf(out, "\"build_id\":\"%s\",\"name\":", entry->key);
    json_put_text(out, entry->name);
    buffer_printf(
        out,
        ",\"quality\":\"%s\",\"executable_bytes\":%llu,\"debuginfo_bytes\":%llu,"
        "\"package_bytes\":%llu,\"index_bytes\":%llu,\"code_bytes\":%llu,\"named_bytes\":%llu,"
        "\"line_bytes\":%llu,\"added\":%lld,\"used\":%lld",
        symbols_quality_word(entry->quality),
        (unsigned long long)entry->file_bytes[SYMBOL_EXECUTABLE],
        (unsigned long long)entry->file_bytes[SYMBOL_DEBUGINFO],
        (unsigned long long)entry->file_bytes[SYMBOL_PACKAGE],
        (unsigned long long)entry->index_bytes, (unsigned long long)entry->code_bytes,
        (unsigned long long)entry->named_bytes, (unsigned long long)entry->line_bytes,
        (long long)entry->added, (long long)entry->used);
}

/* Whether a file is worth sending, for whoever is about to. */
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
    buffer_add_char(&out, '{');
    symbols_put_entry(&out, &entry);
    buffer_add_text(&out, "}\n");
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

struct listing {
    struct buffer out;
    uint64_t count, bytes;
};

static int list_entry(void *context, const struct symbol_entry *entry)
{
    struct listing *listing = context;
    buffer_add_text(&listing->out, listing->count++ ? ",\n{" : "\n{");
    symbols_put_entry(&listing->out, entry);
    buffer_add_char(&listing->out, '}');
    listing->bytes += entry->index_bytes;
    for (int i = 0; i < SYMBOL_FILES; i++)
        listing->bytes += entry->file_bytes[i];
    return 0;
}

void symbols_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct listing listing = {0};
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/symbols"))
        return;
    buffer_add_text(&listing.out, "{\"builds\":[");
    if (symbol_store_list(symbols_store(server->symbols), http_request_identity(request)->tenant,
                          list_entry, &listing, &error) < 0) {
        http_respond_failure(request, &error);
    } else {
        buffer_printf(&listing.out, "],\"bytes\":%llu}\n", (unsigned long long)listing.bytes);
        api_respond(request, "application/json", &listing.out);
    }
    buffer_release(&listing.out);
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

static void put_services(struct buffer *out, const struct symbols_survey *survey)
{
    buffer_add_text(out, "{\"services\":[");
    for (size_t i = 0; i < survey->service_count; i++) {
        const struct symbols_service *service = &survey->services[i];
        buffer_add_text(out, i ? ",\n{\"service\":" : "\n{\"service\":");
        json_put_text(out, service->name);
        buffer_add_text(out, ",\"type\":");
        json_put_text(out, service->type);
        buffer_printf(out, ",\"named_share\":%.6g,\"total\":%.17g}", service->named_share,
                      service->total);
    }
}

static void put_missing(struct buffer *out, const struct symbols_survey *survey,
                        struct symbols *symbols, uint64_t limit)
{
    struct symbol_store *store = symbols_store(symbols);
    buffer_add_text(out, "],\n\"missing\":[");
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
        buffer_add_text(out, i ? ",\n{\"build_id\":" : "\n{\"build_id\":");
        json_put_text(out, missing->build_id);
        buffer_add_text(out, ",\"file\":");
        json_put_text(out, missing->file);
        buffer_add_text(out, ",\"service\":");
        json_put_text(out, service->name);
        buffer_printf(out, ",\"value\":%.17g,\"share\":%.6g,\"frames\":%llu,\"quality\":",
                      missing->value, service->total > 0 ? missing->value / service->total : 0,
                      (unsigned long long)missing->frames);
        if (known)
            buffer_printf(out, "\"%s\"", symbols_quality_word(entry.quality));
        else
            buffer_add_text(out, "null");
        buffer_add_text(out, ",\"upload\":");
        json_put_text(out, buffer_text(&upload));
        buffer_add_char(out, '}');
    }
    buffer_printf(out, "],\"cut\":%s}\n",
                  survey->cut || survey->missing_count > limit ? "true" : "false");
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
    put_services(&out, &survey);
    put_missing(&out, &survey, server->symbols, limit);
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}
