// SPDX-License-Identifier: Apache-2.0
// Reads messages of calls by tables of their fields.

#include "server/pyroscope/rpc.h"

#include <string.h>

#include "io/json.h"
#include "io/wire.h"

#define RPC_BYTES_MAX (4u << 20) /* decompressed */

void rpc_release(struct rpc_request *request)
{
    struct rpc_texts *texts[] = {&request->matchers, &request->label_names, &request->group_by,
                                 &request->spans,    &request->traces,      &request->profiles,
                                 &request->call_site};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        free(texts[i]->list);
    if (request->left)
        rpc_release(request->left);
    if (request->right)
        rpc_release(request->right);
    if (request->stack)
        rpc_release(request->stack);
    if (request->pgo)
        rpc_release(request->pgo);
    arena_release(&request->arena);
    *request = (struct rpc_request){0};
}

static void init(struct rpc_request *request)
{
    *request = (struct rpc_request){.profile_type = "",
                                    .label_selector = "",
                                    .name = "",
                                    .id = "",
                                    .other_id = "",
                                    .content = "",
                                    .gnu_build_id = "",
                                    .go_build_id = "",
                                    .file_id = ""};
}

/* The message in a member; made when it is first seen. */
static struct rpc_request *nested(struct rpc_request *request, struct rpc_request **member)
{
    if (!*member) {
        *member = arena_alloc(&request->arena, sizeof(**member));
        init(*member);
    }
    return *member;
}

static int set_text(struct rpc_request *request, const struct rpc_field *field, const char *text,
                    size_t length, struct error *error)
{
    void *member = (char *)request + field->offset;
    const char *copy = arena_strndup(&request->arena, text, length);
    if (field->kind == RPC_TEXT) { /* what a NUL is in is cut there */
        *(const char **)member = copy;
        return 0;
    }
    struct rpc_texts *texts = member;
    if (texts->count == RPC_TEXTS_MAX)
        return error_set(error, -E2BIG, "The request has more than %d %s.", RPC_TEXTS_MAX,
                         field->name);
    array_reserve(texts->list, texts->capacity, texts->count + 1);
    texts->list[texts->count++] = copy;
    return 0;
}

/* ---- protobuf ---- */

static int set_named(struct rpc_request *request, const struct rpc_field *field,
                     const struct wire_field *message, struct error *error)
{
    struct wire wire = wire_of_field(message);
    struct wire_field got, name = {0};
    int r;
    while ((r = wire_next(&wire, &got)) > 0)
        if (got.number == 1 && got.type == WIRE_BYTES)
            name = got;
    return r < 0 ? r
                 : set_text(request, field, name.length ? (const char *)name.data : "", name.length,
                            error);
}

static int read_wire(struct wire wire, const struct rpc_field *fields, struct rpc_request *request,
                     struct error *error)
{
    struct wire_field got;
    int r;
    while ((r = wire_next(&wire, &got)) > 0) {
        const struct rpc_field *field = fields;
        while (field->number && field->number != got.number)
            field++;
        char *member = (char *)request + field->offset;
        bool bytes = got.type == WIRE_BYTES;
        if (!field->number)
            continue;
        if ((field->kind == RPC_TEXT || field->kind == RPC_TEXTS) && bytes)
            r = set_text(request, field, (const char *)got.data, got.length, error);
        else if ((field->kind == RPC_NUMBER || field->kind == RPC_ENUM) && got.type == WIRE_VARINT)
            *(int64_t *)member = (int64_t)got.value;
        else if (field->kind == RPC_BOOL && got.type == WIRE_VARINT)
            *(int64_t *)member = got.value != 0;
        else if (field->kind == RPC_DOUBLE && got.type == WIRE_FIXED64)
            *(double *)member = wire_double(got.value);
        else if (field->kind == RPC_MESSAGE && bytes)
            r = read_wire(wire_of_field(&got), field->fields,
                          nested(request, (struct rpc_request **)member), error);
        else if (field->kind == RPC_NAMED && bytes)
            r = set_named(request, field, &got, error);
        if (r == -EBADMSG)
            break;
        if (r < 0)
            return r;
    }
    return r < 0 ? error_set(error, -EBADMSG, "The request is not a valid protobuf message.") : 0;
}

/* ---- JSON ---- */

/* Connect's servers ignore unknown values of newer clients; here they are -1. */
static int read_enum(struct json *json, const struct rpc_field *field, int64_t *member)
{
    struct json_string text;
    if (json_kind(json) != JSON_STRING)
        return json_i64(json, member);
    int r = json_string(json, &text);
    if (r < 0)
        return r;
    *member = -1;
    for (int64_t i = 0; *member < 0 && field->words[i]; i++)
        if (json_is(&text, field->words[i]))
            *member = i;
    return 0;
}

static int read_json(struct json *json, const struct rpc_field *fields, struct rpc_request *request,
                     struct error *error);

/* [{"name":"a"},...] */
static int read_named(struct json *json, const struct rpc_field *field, struct rpc_request *request,
                      struct error *error)
{
    struct json_string key, text;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "name") && (r = json_string(json, &text)) >= 0)
                r = set_text(request, field, text.data, text.length, error);
    }
    return r;
}

static int read_json_field(struct json *json, const struct rpc_field *field,
                           struct rpc_request *request, struct error *error)
{
    char *member = (char *)request + field->offset;
    struct json_string text;
    bool truth;
    int r;
    if (json_null(json))
        return 0;
    switch (field->kind) {
    case RPC_TEXT:
        r = json_string(json, &text);
        return r < 0 ? r : set_text(request, field, text.data, text.length, error);
    case RPC_TEXTS:
        r = json_array(json);
        while (r >= 0 && (r = json_next_element(json)) > 0)
            if ((r = json_string(json, &text)) >= 0)
                r = set_text(request, field, text.data, text.length, error);
        return r;
    case RPC_NUMBER:
        return json_i64_or_text(json, (int64_t *)member);
    case RPC_BOOL:
        r = json_bool(json, &truth);
        *(int64_t *)member = r >= 0 && truth;
        return r;
    case RPC_DOUBLE:
        return json_double(json, (double *)member);
    case RPC_ENUM:
        return read_enum(json, field, (int64_t *)member);
    case RPC_MESSAGE:
        return read_json(json, field->fields, nested(request, (struct rpc_request **)member),
                         error);
    case RPC_NAMED:
        return read_named(json, field, request, error);
    }
    return 0;
}

/* As deep as the tables are: four messages in each other at most. */
static int read_json(struct json *json, const struct rpc_field *fields, struct rpc_request *request,
                     struct error *error)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        for (const struct rpc_field *field = fields; field->number; field++)
            if (json_is(&key, field->name) ||
                (field->other_name && json_is(&key, field->other_name))) {
                r = read_json_field(json, field, request, error);
                break;
            }
    return r;
}

static int parse(struct source *source, uint64_t limit_bytes, const struct rpc_field *fields,
                 struct rpc_request *request, struct error *error)
{
    if (!request->json) {
        int r = source_need_all(source, limit_bytes, error);
        return r < 0 ? r
                     : read_wire(wire_of(source_data(source), source_available(source)), fields,
                                 request, error);
    }
    _cleanup_json_ struct json json;
    json_init(&json, source, error);
    int r = read_json(&json, fields, request, error);
    return r < 0 ? r : json_end(&json);
}

int rpc_parse(const void *data, size_t length, const struct rpc_field *fields,
              struct rpc_request *request, struct error *error)
{
    struct source source;
    bool json = request->json;
    init(request);
    request->json = json;
    int r = source_open_memory(&source, "request", data, length, RPC_BYTES_MAX, error);
    if (r < 0)
        return r;
    r = parse(&source, RPC_BYTES_MAX, fields, request, error);
    source_release(&source);
    return r;
}

int rpc_read_large(struct http_request *http, uint64_t limit_bytes, const struct rpc_field *fields,
                   struct rpc_request *request, struct error *error)
{
    struct http_source *source = NULL;
    const struct http_identity *identity = http_request_identity(http);
    const char *tenant = http_request_header(http, "X-Scope-OrgID");
    init(request);
    /* Tokens decide whose data it is; a request for another tenant's must fail rather than get
     * ours. Without tokens there is one tenant, and the header is ignored. */
    if (identity->token_id && tenant && *tenant && strcmp(tenant, identity->tenant))
        return error_set(error, -EACCES,
                         "The token belongs to the tenant %s, not to that of X-Scope-OrgID.",
                         identity->tenant);
    request->json = http_request_is_type(http, "application/json");
    if (!request->json && !http_request_is_type(http, "application/proto"))
        return error_set(
            error, -ENOTSUP,
            "Calls must be application/proto or application/json; gRPC requires HTTP/2.");
    int r = http_source_open(http, limit_bytes, &source, error);
    if (!r)
        r = parse(http_source(source), limit_bytes, fields, request, error);
    http_source_close(source);
    return r;
}

int rpc_read(struct http_request *http, const struct rpc_field *fields, struct rpc_request *request,
             struct error *error)
{
    return rpc_read_large(http, RPC_BYTES_MAX, fields, request, error);
}

const char *rpc_method(const struct http_request *http)
{
    const char *slash = strrchr(http_request_path(http), '/');
    return slash ? slash + 1 : "";
}

const char *rpc_content_type(const struct rpc_request *request)
{
    return request->json ? "application/json" : "application/proto";
}

void rpc_respond(struct http_request *http, const struct rpc_request *request, struct buffer *out)
{
    http_respond(http, 200, rpc_content_type(request), out);
}
