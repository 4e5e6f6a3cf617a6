// SPDX-License-Identifier: Apache-2.0
// Pyroscope's protocol for uploading debug information: check whether it is needed, upload it,
// finish. An upload is stored when its body ends, so the last step has nothing left to do.

#include <stdio.h>
#include <string.h>

#include "http/access/tokens.h"
#include "io/wire.h"
#include "server/pyroscope/pyroscope.h"
#include "server/pyroscope/rpc.h"
#include "server/pyroscope/rpc_write.h"
#include "server/symbols/api/symbols_api.h"

#define FILE_FIELDS                                                                                 \
    {1, "gnuBuildId", "gnu_build_id", RPC_TEXT, offsetof(struct rpc_request, gnu_build_id), 0, 0},  \
        {2, "goBuildId", "go_build_id", RPC_TEXT, offsetof(struct rpc_request, go_build_id), 0, 0}, \
        {3, "otelFileId", "otel_file_id", RPC_TEXT, offsetof(struct rpc_request, file_id), 0, 0},   \
    {                                                                                               \
        0                                                                                           \
    }

static const struct rpc_field build_fields[] = {FILE_FIELDS};
static const struct rpc_field asked_fields[] = {
    {1, "file", "file", RPC_MESSAGE, offsetof(struct rpc_request, left), NULL, build_fields}, {0}};

static int asked_key(const struct rpc_request *request, char ret_key[SYMBOL_KEY_BYTES],
                     struct error *error)
{
    const char *const ids[] = {request->gnu_build_id, request->go_build_id, request->file_id};
    for (size_t i = 0; i < ARRAY_LENGTH(ids); i++)
        if (*ids[i])
            return symbols_asked_key(ids[i], ret_key, error);
    return error_set(error, -EINVAL, "The file has no build ID.");
}

/* Wanted is what isn't there, and what may be better than what is. */
static int should_initiate(struct server *server, const char *tenant,
                           const struct rpc_request *request, struct rpc_writer *answer,
                           struct error *error)
{
    struct symbol_entry entry;
    char key[SYMBOL_KEY_BYTES], reason[128];
    if (!request->left)
        return error_set(error, -EINVAL, "The request has no file.");
    int r = asked_key(request->left, key, error);
    if (r < 0)
        return r;
    bool known = symbol_store_find(symbols_store(server->symbols), tenant, key, &entry);
    bool wanted = !known || entry.quality < SYMBOL_INDEX_INLINES;
    snprintf(reason, sizeof(reason), "%s",
             !known   ? "The server has no symbols of this build."
             : wanted ? "The server has only partial symbols of this build."
                      : "The server has this build with lines and inlined functions.");
    rpc_put_bool(answer, 1, "shouldInitiateUpload", wanted);
    rpc_put_text(answer, 2, "reason", reason);
    return 0;
}

/* JSON has times as texts, which nobody has asked for. */
static void put_time(struct rpc_writer *answer, unsigned field, int64_t seconds)
{
    if (answer->is_json)
        return;
    size_t mark = rpc_begin(answer, field, NULL);
    rpc_put_i64(answer, 1, NULL, seconds);
    rpc_end(answer, mark);
}

static int list_object(void *context, const struct symbol_entry *entry)
{
    struct rpc_writer *answer = context;
    uint64_t bytes = entry->file_bytes[SYMBOL_EXECUTABLE] + entry->file_bytes[SYMBOL_DEBUGINFO] +
                     entry->file_bytes[SYMBOL_PACKAGE];
    size_t object = rpc_begin(answer, 1, NULL), file = rpc_begin(answer, 1, "file");
    rpc_put_text(answer, 1, "gnuBuildId", entry->key);
    rpc_put_text(answer, 4, "name", entry->name);
    rpc_end(answer, file);
    rpc_put_word(answer, 2, "state", 1, "STATE_UPLOADED");
    put_time(answer, 3, entry->added);
    put_time(answer, 4, entry->added);
    rpc_put_i64(answer, 5, "sizeBytes", (int64_t)bytes);
    rpc_end(answer, object);
    return 0;
}

static int list_all(struct server *server, const char *tenant, struct rpc_writer *answer,
                    struct error *error)
{
    rpc_list(answer, "object");
    int r = symbol_store_list(symbols_store(server->symbols), tenant, list_object, answer, error);
    rpc_list_end(answer);
    return r;
}

/* The role that uploads may not delete. */
static int delete_one(struct server *server, struct http_request *http,
                      const struct rpc_request *request, struct error *error)
{
    char key[SYMBOL_KEY_BYTES];
    if (!(http_request_identity(http)->roles & HTTP_ROLE_ADMIN))
        return error_set(error, -EACCES, "Deleting requires a token with the role admin.");
    int r = asked_key(request, key, error);
    if (!r)
        r = symbol_store_delete(symbols_store(server->symbols), http_request_identity(http)->tenant,
                                key, error);
    server_audit(server, http, "symbols delete", request->gnu_build_id,
                 r < 0 ? error->text : "done");
    return r;
}

static int finished(struct server *server, const char *tenant, const struct rpc_request *request,
                    struct error *error)
{
    char key[SYMBOL_KEY_BYTES];
    struct symbol_entry entry;
    int r = asked_key(request, key, error);
    if (!r && !symbol_store_find(symbols_store(server->symbols), tenant, key, &entry))
        r = error_set(error, -ENOENT, "No symbols of the build %.120s were uploaded.", key);
    return r;
}

static void take_upload(struct http_request *request, struct server *server, const char *id)
{
    struct symbol_stored stored;
    struct error error = {0};
    char key[SYMBOL_KEY_BYTES];
    int r = symbols_asked_key(id, key, &error);
    if (!r)
        r = symbols_take_body(request, server, key, "", &stored, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_respond_text(request, 200, "application/json", "{}\n");
}

void symbols_call(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    const char *method = http_request_rest(request);
    const char *tenant = http_request_identity(request)->tenant;
    _cleanup_rpc_ struct rpc_request call = {0};
    struct error error = {0};
    struct buffer out = {0};
    if (!strncmp(method, "Upload/", 7)) {
        take_upload(request, server, method + 7);
        return;
    }
    bool asks = !strcmp(method, "ShouldInitiateUpload");
    int r = rpc_read(request, asks ? asked_fields : build_fields, &call, &error);
    struct rpc_writer answer = rpc_writer(&out, call.json);
    rpc_open(&answer);
    if (!r && asks)
        r = should_initiate(server, tenant, &call, &answer, &error);
    else if (!r && !strcmp(method, "UploadFinished"))
        r = finished(server, tenant, &call, &error);
    else if (!r && !strcmp(method, "ListDebuginfo"))
        r = list_all(server, tenant, &answer, &error);
    else if (!r && !strcmp(method, "DeleteDebuginfo"))
        r = delete_one(server, request, &call, &error);
    else if (!r) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Unknown method %.60s.", method);
        buffer_release(&out);
        return;
    }
    rpc_close(&answer);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        rpc_respond(request, &call, &out);
    buffer_release(&out);
}
