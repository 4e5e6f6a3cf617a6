// SPDX-License-Identifier: Apache-2.0
// Parca's protocol for uploading debug information: ask whether it is needed, announce it, send it
// as a stream of messages, finish. It is stored when the stream ends, so that an announcement keeps
// nothing, and the last step has nothing left to do. The files go to the same store as all others.

#include <stdio.h>
#include <string.h>

#include "io/wire.h"
#include "server/admission/admission.h"
#include "server/parca/parca.h"
#include "server/pyroscope/rpc.h"
#include "server/symbols/api/symbols_api.h"

#define MESSAGE_BYTES_MAX (8u << 20)
/* Of an upload: a message, and the same compressed. */
#define MEMORY_BYTES (2 * MESSAGE_BYTES_MAX)
#define MEMORY_WAIT_MS 2000
#define STRATEGY_GRPC 1

enum debuginfo_type { TYPE_DEBUGINFO, TYPE_EXECUTABLE, TYPE_SOURCES };

static const char *const type_words[] = {"DEBUGINFO_TYPE_DEBUGINFO_UNSPECIFIED",
                                         "DEBUGINFO_TYPE_EXECUTABLE", "DEBUGINFO_TYPE_SOURCES",
                                         NULL};

#define BUILD_ID                                                                                   \
    {                                                                                              \
        1, "buildId", "build_id", RPC_TEXT, offsetof(struct rpc_request, gnu_build_id)             \
    }
#define TYPE(number)                                                                               \
    {                                                                                              \
        number, "type", "type", RPC_ENUM, offsetof(struct rpc_request, format), type_words         \
    }
#define FORCE(number)                                                                              \
    {                                                                                              \
        number, "force", "force", RPC_BOOL, offsetof(struct rpc_request, aggregate_callees)        \
    }

static const struct rpc_field should_fields[] = {BUILD_ID, FORCE(3), TYPE(4), {0}};
static const struct rpc_field initiate_fields[] = {BUILD_ID, FORCE(4), TYPE(5), {0}};
static const struct rpc_field finished_fields[] = {BUILD_ID, TYPE(3), {0}};

/* Whether a file is needed, with the reason. */
static bool is_wanted(struct server *server, const char *tenant, const char *key,
                      const struct rpc_request *call, const char **ret_reason)
{
    struct symbol_entry entry;
    bool known = symbol_store_find(symbols_store(server->symbols), tenant, key, &entry);
    if (call->format != TYPE_DEBUGINFO && call->format != TYPE_EXECUTABLE) {
        *ret_reason = "The server takes executables and debug files only.";
        return false;
    }
    *ret_reason = !known ? "The server has no symbols of this build."
                  : entry.quality < SYMBOL_INDEX_INLINES
                      ? "The server has only partial symbols of this build."
                      : "The server has this build with lines and inlined functions.";
    return !known || entry.quality < SYMBOL_INDEX_INLINES || call->aggregate_callees;
}

static void put_text(struct buffer *out, uint32_t number, const char *text)
{
    wire_put_bytes(out, number, text, strlen(text));
}

static int should_initiate(struct server *server, const char *tenant, const char *key,
                           const struct rpc_request *call, struct buffer *out)
{
    const char *reason;
    bool wanted = is_wanted(server, tenant, key, call, &reason);
    if (call->json) {
        buffer_printf(out, "{\"shouldInitiateUpload\":%s,\"reason\":\"%s\"}",
                      wanted ? "true" : "false", reason);
        return 0;
    }
    if (wanted)
        wire_put_u64(out, 1, 1);
    put_text(out, 2, reason);
    return 0;
}

static int initiate(struct server *server, const char *tenant, const char *key,
                    const struct rpc_request *call, struct buffer *out, struct error *error)
{
    const char *reason;
    if (!is_wanted(server, tenant, key, call, &reason))
        return error_set(error, -EEXIST, "%s", reason);
    if (call->json) {
        buffer_add_text(out, "{\"uploadInstructions\":{\"buildId\":");
        json_put_text(out, call->gnu_build_id);
        buffer_printf(out,
                      ",\"uploadId\":\"%s\",\"uploadStrategy\":\"UPLOAD_STRATEGY_GRPC\","
                      "\"type\":\"%s\"}}",
                      key, type_words[call->format]);
        return 0;
    }
    _cleanup_buffer_ struct buffer instructions = {0};
    put_text(&instructions, 1, call->gnu_build_id);
    put_text(&instructions, 2, key);
    wire_put_u64(&instructions, 3, STRATEGY_GRPC);
    if (call->format)
        wire_put_u64(&instructions, 5, (uint64_t)call->format);
    wire_put_bytes(out, 1, instructions.data, instructions.length);
    return 0;
}

static int finish(struct server *server, const char *tenant, const char *key,
                  const struct rpc_request *call, struct buffer *out, struct error *error)
{
    struct symbol_entry entry;
    if (!symbol_store_find(symbols_store(server->symbols), tenant, key, &entry))
        return error_set(error, -ENOENT, "No symbols of the build %.120s were uploaded.", key);
    if (call->json)
        buffer_add_text(out, "{}");
    return 0;
}

void parca_debuginfo(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    const char *method = http_request_rest(request);
    const char *tenant = http_request_identity(request)->tenant;
    _cleanup_rpc_ struct rpc_request call = {0};
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    char key[SYMBOL_KEY_BYTES];
    bool asks = !strcmp(method, "ShouldInitiateUpload"), begins = !strcmp(method, "InitiateUpload");
    if (!asks && !begins && strcmp(method, "MarkUploadFinished")) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Unknown method %.60s.", method);
        return;
    }
    int r = rpc_read(request,
                     asks     ? should_fields
                     : begins ? initiate_fields
                              : finished_fields,
                     &call, &error);
    if (!r)
        r = symbols_asked_key(call.gnu_build_id, key, &error);
    if (!r)
        r = asks     ? should_initiate(server, tenant, key, &call, &out)
            : begins ? initiate(server, tenant, key, &call, &out, &error)
                     : finish(server, tenant, key, &call, &out, &error);
    if (r == -EEXIST)
        http_respond_code(request, HTTP_ALREADY_EXISTS, "%s", error.text);
    else if (r < 0)
        http_respond_failure(request, &error);
    else
        rpc_respond(request, &call, &out);
}

/* ---- the stream ---- */

struct upload {
    struct symbol_upload file;
    char build_id[128], key[SYMBOL_KEY_BYTES];
    bool named;
};

static int take_info(struct upload *upload, const struct wire_field *info, struct error *error)
{
    struct wire wire = wire_of_field(info);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.number == 1 && field.type == WIRE_BYTES &&
            field.length < sizeof(upload->build_id)) {
            memcpy(upload->build_id, field.data, field.length);
            upload->build_id[field.length] = 0;
        }
    if (r < 0)
        return error_set(error, -EBADMSG, "The request is not a valid protobuf message.");
    upload->named = true;
    return symbols_asked_key(upload->build_id, upload->key, error);
}

static int take_message(struct upload *upload, const struct buffer *message, struct error *error)
{
    struct wire wire = wire_of(message->data, message->length);
    struct wire_field field;
    int r, taken = 0;
    while (!taken && (r = wire_next(&wire, &field)) > 0) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1)
            taken = take_info(upload, &field, error);
        else if (field.number == 2 && !upload->named)
            taken = error_set(error, -EINVAL, "The first message must have the build ID.");
        else if (field.number == 2)
            taken = symbol_upload_write(&upload->file, field.data, field.length, error);
    }
    if (taken < 0)
        return taken;
    return r < 0 ? error_set(error, -EBADMSG, "The request is not a valid protobuf message.") : 0;
}

static int take_upload(struct http_request *request, struct server *server, struct upload *upload,
                       struct error *error)
{
    _cleanup_buffer_ struct buffer message = {0};
    struct symbol_stored stored;
    const char *tenant = http_request_identity(request)->tenant;
    int got = 0, r = symbol_upload_begin(symbols_store(server->symbols), &upload->file, error);
    while (!r && (got = http_message_read(request, MESSAGE_BYTES_MAX, &message, error)) > 0)
        r = take_message(upload, &message, error);
    if (!r && got < 0)
        r = got;
    if (!r && (http_request_cancelled(request) || !upload->named || !upload->file.bytes))
        r = error_set(error, -EINVAL, "The upload is empty or incomplete.");
    if (!r)
        r = symbol_upload_finish(&upload->file, tenant, upload->key, "", &stored, error);
    if (!r)
        symbol_requests_fulfil(symbols_requests(server->symbols), tenant, stored.key);
    return r;
}

void parca_debuginfo_upload(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct budget *memory = &server->admissions->memory;
    struct upload upload = {0};
    struct error error = {0};
    struct buffer out = {0};
    if (!http_request_is_grpc(request)) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Upload requires gRPC.");
        return;
    }
    size_t taken = budget_fit(memory, MEMORY_BYTES);
    if (!budget_wait(memory, taken, MEMORY_WAIT_MS, http_request_cancel_flag(request))) {
        http_respond_header(request, "Retry-After", "5");
        http_respond_error(request, 503, "The server has no memory for an upload now; try again.");
        return;
    }
    int r = take_upload(request, server, &upload, &error);
    uint64_t bytes = upload.file.bytes;
    symbol_upload_release(&upload.file);
    budget_give(memory, taken);
    if (r < 0) {
        handler_respond_failure(request, &error);
        return;
    }
    put_text(&out, 1, upload.build_id);
    wire_put_u64(&out, 2, bytes);
    http_respond(request, 200, "application/proto", &out);
}

void parca_unknown(struct http_request *request, void *userdata)
{
    (void)userdata;
    http_respond_code(request, HTTP_UNIMPLEMENTED, "Unknown method %.60s.",
                      http_request_rest(request));
}
