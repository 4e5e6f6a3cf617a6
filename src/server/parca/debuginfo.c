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
#include "server/pyroscope/rpc_write.h"
#include "server/symbols/api/symbols_api.h"

#define UPLOAD_EXPANSION_MAX (1ull << 30) /* of a message */
/* Of an upload at first: a part of a message. Compressed ones can take more. */
#define MEMORY_BYTES (512u << 10)
#define MEMORY_WAIT_MS 2000
#define STRATEGY_GRPC 1

enum debuginfo_type { TYPE_DEBUGINFO, TYPE_EXECUTABLE, TYPE_SOURCES };

static const char *const type_words[] = {"DEBUGINFO_TYPE_DEBUGINFO_UNSPECIFIED",
                                         "DEBUGINFO_TYPE_EXECUTABLE", "DEBUGINFO_TYPE_SOURCES",
                                         NULL};

/* Of a build ID. Parca's agent has a hash of its own for files in which it finds none. */
enum id_type { ID_UNKNOWN, ID_GNU, ID_HASH, ID_GO };

static const char *const id_words[] = {"BUILD_ID_TYPE_UNKNOWN_UNSPECIFIED", "BUILD_ID_TYPE_GNU",
                                       "BUILD_ID_TYPE_HASH", "BUILD_ID_TYPE_GO", NULL};

/* The prefix of an upload's id if its build ID is a hash: the upload itself doesn't say so. */
#define HASH_PREFIX "hash-"

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

#define ID_TYPE(number)                                                                            \
    {                                                                                              \
        number, "buildIdType", "build_id_type", RPC_ENUM,                                          \
            offsetof(struct rpc_request, query_type), id_words                                     \
    }

static const struct rpc_field should_fields[] = {BUILD_ID, FORCE(3), TYPE(4), {0}};
static const struct rpc_field initiate_fields[] = {BUILD_ID, FORCE(4), TYPE(5), ID_TYPE(6), {0}};
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

static int should_initiate(struct server *server, const char *tenant, const char *key,
                           const struct rpc_request *call, struct rpc_writer *answer)
{
    const char *reason;
    bool wanted = is_wanted(server, tenant, key, call, &reason);
    rpc_put_bool(answer, 1, "shouldInitiateUpload", wanted);
    rpc_put_text(answer, 2, "reason", reason);
    return 0;
}

static int initiate(struct server *server, const char *tenant, const char *key,
                    const struct rpc_request *call, struct rpc_writer *answer, struct error *error)
{
    const char *reason;
    if (!is_wanted(server, tenant, key, call, &reason))
        return error_set(error, -EEXIST, "%s", reason);
    char upload_id[sizeof(HASH_PREFIX) + SYMBOL_KEY_BYTES];
    snprintf(upload_id, sizeof(upload_id), "%s%s", call->query_type == ID_HASH ? HASH_PREFIX : "",
             key);
    size_t mark = rpc_begin(answer, 1, "uploadInstructions");
    rpc_put_text(answer, 1, "buildId", call->gnu_build_id);
    rpc_put_text(answer, 2, "uploadId", upload_id);
    rpc_put_word(answer, 3, "uploadStrategy", STRATEGY_GRPC, "UPLOAD_STRATEGY_GRPC");
    rpc_put_word(answer, 5, "type", (unsigned)call->format, type_words[call->format]);
    rpc_end(answer, mark);
    return 0;
}

static int finish(struct server *server, const char *tenant, const char *key, struct error *error)
{
    struct symbol_entry entry;
    if (!symbol_store_find(symbols_store(server->symbols), tenant, key, &entry))
        return error_set(error, -ENOENT, "No symbols of the build %.120s were uploaded.", key);
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
    struct rpc_writer answer = rpc_writer(&out, call.json);
    rpc_open(&answer);
    if (!r)
        r = asks     ? should_initiate(server, tenant, key, &call, &answer)
            : begins ? initiate(server, tenant, key, &call, &answer, &error)
                     : finish(server, tenant, key, &error);
    rpc_close(&answer);
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
    bool named, hashed; /* hashed: the build ID is not the file's, but a hash of its sender's */
};

static int take_info(struct upload *upload, struct wire_stream *message, struct error *error)
{
    struct wire_field field;
    int r;
    while ((r = wire_stream_next(message, &field, error)) > 0) {
        if ((field.number != 1 && field.number != 2) || field.type != WIRE_BYTES ||
            field.length >= sizeof(upload->build_id))
            continue;
        if ((r = wire_stream_bytes(message, &field, error)) < 0)
            return r;
        if (field.number == 2) {
            upload->hashed = field.length > strlen(HASH_PREFIX) &&
                             !memcmp(field.data, HASH_PREFIX, strlen(HASH_PREFIX));
            continue;
        }
        memcpy(upload->build_id, field.data, field.length);
        upload->build_id[field.length] = 0;
    }
    upload->named = true;
    return r < 0 ? r : symbols_asked_key(upload->build_id, upload->key, error);
}

static int take_chunk(struct upload *upload, struct wire_stream *message, struct error *error)
{
    const uint8_t *data;
    size_t length;
    int r;
    if (!upload->named)
        return error_set(error, -EINVAL, "The first message must have the build ID.");
    while ((r = wire_stream_part(message, &data, &length, error)) > 0)
        if ((r = symbol_upload_write(&upload->file, data, length, error)) < 0)
            break;
    return r;
}

/* Of any length: what comes is written as it comes. */
static int take_message(struct upload *upload, struct source *source, struct error *error)
{
    struct wire_stream message;
    struct wire_field field;
    int r;
    wire_stream_init(&message, source);
    while ((r = wire_stream_next(&message, &field, error)) > 0) {
        if (field.type != WIRE_BYTES || (field.number != 1 && field.number != 2))
            continue;
        if (field.number == 2) {
            r = take_chunk(upload, &message, error);
        } else if (!(r = wire_stream_enter(&message, &field, error))) {
            r = take_info(upload, &message, error);
            wire_stream_leave(&message);
        }
        if (r < 0)
            break;
    }
    return r;
}

static int take_messages(struct http_request *request, struct upload *upload, struct error *error)
{
    int r;
    do {
        struct source source = {0};
        size_t before = admission_noted();
        r = http_message_open(request, UPLOAD_EXPANSION_MAX, &source, error);
        if (r <= 0)
            break;
        r = take_message(upload, &source, error);
        source_release(&source);
        admission_kept(before, 0);
    } while (!r);
    if (!r && (http_request_cancelled(request) || !upload->named || !upload->file.bytes))
        r = error_set(error, -EINVAL, "The upload is empty or incomplete.");
    return r;
}

/* The memory is that of a message, and is given back before the file is taken in: that waits for
 * its turn, and for memory of its own. */
static int take_upload(struct http_request *request, struct server *server, struct upload *upload,
                       struct error *error)
{
    struct admission admission;
    struct symbol_stored stored;
    const char *tenant = http_request_identity(request)->tenant;
    int r = symbol_upload_begin(symbols_store(server->symbols), &upload->file, error);
    if (r < 0)
        return r;
    if (!admission_begin(&admission, &server->admissions->memory, MEMORY_BYTES, MEMORY_WAIT_MS,
                         http_request_cancel_flag(request)))
        return error_set(error, -EAGAIN, "The server has no memory for an upload now; try again.");
    r = admission_explain(take_messages(request, upload, error), error);
    admission_end(&admission);
    if (!r && upload->hashed)
        strcpy(upload->file.alias, upload->key);
    if (!r)
        r = symbol_upload_finish(&upload->file, tenant, upload->hashed ? NULL : upload->key, "",
                                 &stored, error);
    if (!r)
        symbol_requests_fulfil(symbols_requests(server->symbols), tenant,
                               upload->hashed ? upload->key : stored.key);
    return r;
}

void parca_debuginfo_upload(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct upload upload = {0};
    struct error error = {0};
    struct buffer out = {0};
    if (!http_request_is_grpc(request)) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Upload requires gRPC.");
        return;
    }
    int r = take_upload(request, server, &upload, &error);
    uint64_t bytes = upload.file.bytes;
    symbol_upload_release(&upload.file);
    if (r < 0) {
        handler_respond_failure(request, &error);
        return;
    }
    wire_put_bytes(&out, 1, upload.build_id, strlen(upload.build_id));
    wire_put_u64(&out, 2, bytes);
    http_respond(request, 200, "application/proto", &out);
}

void parca_unknown(struct http_request *request, void *userdata)
{
    (void)userdata;
    http_respond_code(request, HTTP_UNIMPLEMENTED, "Unknown method %.60s.",
                      http_request_rest(request));
}
