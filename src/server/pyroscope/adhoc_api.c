// SPDX-License-Identifier: Apache-2.0
// Pyroscope's ad hoc profiles (adhocprofiles.v1): a file is uploaded and answered with a flame
// graph, looked at again by its id, and compared with another.

#include <stddef.h>
#include <string.h>

#include "format/format.h"
#include "io/base64.h"
#include "server/admission/admission.h"
#include "server/handler/answer.h"
#include "server/pyroscope/adhoc.h"
#include "server/pyroscope/flamebearer.h"
#include "server/pyroscope/pyroscope.h"
#include "server/pyroscope/querier.h"

#define AT(member) offsetof(struct rpc_request, member)

static const struct rpc_field upload_fields[] = {
    {1, "name", NULL, RPC_TEXT, AT(name)},
    {2, "profile", NULL, RPC_TEXT, AT(content)},
    {3, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)},
    {0}};
static const struct rpc_field get_fields[] = {
    {1, "id", NULL, RPC_TEXT, AT(id)},
    {2, "profileType", "profile_type", RPC_TEXT, AT(profile_type)},
    {3, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)},
    {0}};
static const struct rpc_field diff_fields[] = {
    {1, "leftId", "left_id", RPC_TEXT, AT(id)},
    {2, "rightId", "right_id", RPC_TEXT, AT(other_id)},
    {3, "profileType", "profile_type", RPC_TEXT, AT(profile_type)},
    {4, "maxNodes", "max_nodes", RPC_NUMBER, AT(max_nodes)},
    {0}};
static const struct rpc_field no_fields[] = {{0}};

static void put_types(struct call *call, unsigned number, const struct profile *profile)
{
    rpc_list(&call->answer, "profileTypes");
    for (unsigned i = 0; i < profile->type_count; i++)
        rpc_put_text(&call->answer, number, NULL, profile_text(profile, profile->types[i].type));
    rpc_list_end(&call->answer);
}

/* ---- profiles ---- */

static int read_profile(struct call *call, const struct buffer *bytes, struct profile *profile,
                        struct error *error)
{
    struct read_options options = {.expansion_limit =
                                       atomic_load(&call->server->admissions->query_memory_bytes)};
    return format_read_memory("The profile", bytes->data ? bytes->data : "", bytes->length,
                              &options, profile, NULL, error);
}

static int load(struct call *call, const char *id, struct buffer *bytes, char **ret_name,
                int64_t *ret_uploaded_ms, struct error *error)
{
    const char *tenant = http_request_identity(call->http)->tenant;
    return adhoc_get(call->server->adhoc, tenant, id, bytes, ret_name, ret_uploaded_ms)
               ? 0
               : error_set(error, -ENOENT,
                           "No ad hoc profile \"%.64s\"; the server keeps only the latest.", id);
}

static int choose_type(const struct profile *profile, const char *name, unsigned *ret_type,
                       struct error *error)
{
    *ret_type = *name ? profile_find_type(profile, name) : profile_default_type(profile);
    return *ret_type < profile->type_count
               ? 0
               : error_set(error, -EINVAL, "The profile has no sample type \"%.64s\".", name);
}

/* Leaves the one type, as the first. */
static void keep_type(struct profile *profile, unsigned type)
{
    struct profile_type first = profile->types[type];
    int64_t *values = profile->samples.values[type];
    profile->samples.values[type] = profile->samples.values[0];
    profile->types[type] = profile->types[0];
    profile->types[0] = first;
    profile->samples.values[0] = values;
    for (unsigned i = 1; i < profile->type_count; i++)
        free(profile->samples.values[i]);
    profile->type_count = 1;
}

/* The flame graph as the text of a JSON document, which these messages have as a string. */
static void write_flame(struct call *call, struct calltree *tree, struct buffer *out)
{
    _cleanup_flamebearer_ struct flamebearer flame;
    _cleanup_buffer_ struct buffer type = {0};
    flamebearer_init(&flame, tree, call->request.max_nodes);
    buffer_printf(&type, "adhoc:%s:%s::", tree->types[0].name, tree->types[0].unit);
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_unsigned(&json, "version", 1);
    flamebearer_write_render(&flame, &json);
    render_put_metadata(&json, flame.diff ? "double" : "single", buffer_text(&type));
    if (flame.diff)
        flamebearer_write_ticks(&flame, &json);
    json_write_object_end(&json);
}

/* ---- methods ---- */

static int answer_profile(struct call *call, const char *id, const char *name, int64_t uploaded_ms,
                          struct profile *profile, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    _cleanup_buffer_ struct buffer flame = {0};
    unsigned type;
    calltree_init(&tree);
    int r = choose_type(profile, call->request.profile_type, &type, error);
    if (r < 0)
        return r;
    struct rpc_writer *answer = &call->answer;
    rpc_put_text(answer, 1, "id", id);
    rpc_put_text(answer, 2, "name", name);
    rpc_put_i64(answer, 3, "uploadedAt", uploaded_ms);
    rpc_put_text(answer, 4, "profileType", profile_text(profile, profile->types[type].type));
    put_types(call, 5, profile);
    keep_type(profile, type);
    r = calltree_add(&tree, profile, CALLTREE_NEW, error);
    if (r < 0)
        return r;
    write_flame(call, &tree, &flame);
    rpc_put_text(answer, 6, "flamebearerProfile", buffer_text(&flame));
    return 0;
}

static int upload(struct call *call, struct error *error)
{
    _cleanup_buffer_ struct buffer bytes = {0};
    _cleanup_profile_ struct profile profile;
    char id[ADHOC_ID_BYTES];
    int64_t uploaded_ms;
    profile_init(&profile, 0);
    if (!base64_decode(call->request.content, strlen(call->request.content), &bytes))
        return error_set(error, -EINVAL, "The profile is not valid base64.");
    int r = read_profile(call, &bytes, &profile, error);
    if (r < 0)
        return r;
    adhoc_put(call->server->adhoc, http_request_identity(call->http)->tenant, call->request.name,
              &bytes, atomic_load(&call->server->admissions->query_memory_bytes), id, &uploaded_ms);
    return answer_profile(call, id, call->request.name, uploaded_ms, &profile, error);
}

static int get(struct call *call, struct error *error)
{
    _cleanup_buffer_ struct buffer bytes = {0};
    _cleanup_profile_ struct profile profile;
    _cleanup_free_ char *name = NULL;
    int64_t uploaded_ms = 0;
    profile_init(&profile, 0);
    int r = load(call, call->request.id, &bytes, &name, &uploaded_ms, error);
    if (!r)
        r = read_profile(call, &bytes, &profile, error);
    return r < 0 ? r : answer_profile(call, call->request.id, name, uploaded_ms, &profile, error);
}

static void put_listed(void *context, const char *id, const char *name, int64_t uploaded_ms)
{
    struct call *call = context;
    struct rpc_writer *answer = &call->answer;
    size_t mark = rpc_begin(answer, 1, NULL);
    rpc_put_text(answer, 1, "id", id);
    rpc_put_text(answer, 2, "name", name);
    rpc_put_i64(answer, 3, "uploadedAt", uploaded_ms);
    rpc_end(answer, mark);
}

static int list(struct call *call, struct error *error)
{
    (void)error;
    rpc_list(&call->answer, "profiles");
    adhoc_list(call->server->adhoc, http_request_identity(call->http)->tenant, put_listed, call);
    rpc_list_end(&call->answer);
    return 0;
}

static int diff(struct call *call, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    _cleanup_buffer_ struct buffer flame = {0};
    const char *ids[CALLTREE_SIDES] = {
        [CALLTREE_NEW] = call->request.other_id, [CALLTREE_BASE] = call->request.id};
    int r = 0;
    calltree_init(&tree);
    for (int side = 0; !r && side < CALLTREE_SIDES; side++) {
        _cleanup_buffer_ struct buffer bytes = {0};
        _cleanup_profile_ struct profile profile;
        _cleanup_free_ char *name = NULL;
        int64_t uploaded_ms;
        unsigned type = 0;
        profile_init(&profile, 0);
        r = load(call, ids[side], &bytes, &name, &uploaded_ms, error);
        if (!r)
            r = read_profile(call, &bytes, &profile, error);
        if (!r)
            r = choose_type(&profile, call->request.profile_type, &type, error);
        if (r < 0)
            return r;
        if (!side)
            put_types(call, 1, &profile);
        keep_type(&profile, type);
        r = calltree_add(&tree, &profile, (enum calltree_side)side, error);
    }
    if (!r && tree.type_count > 1)
        r = error_set(error, -EINVAL, "Profiles of different types can't be compared.");
    if (r < 0)
        return r;
    write_flame(call, &tree, &flame);
    rpc_put_text(&call->answer, 2, "flamebearerProfile", buffer_text(&flame));
    return 0;
}

void adhoc_call(struct http_request *request, void *server)
{
    static const struct {
        const char *name;
        querier_method *run;
        const struct rpc_field *fields;
    } methods[] = {{"Upload", upload, upload_fields},
                   {"Get", get, get_fields},
                   {"List", list, no_fields},
                   {"Diff", diff, diff_fields}};
    size_t method = 0;
    while (method < ARRAY_LENGTH(methods) &&
           strcmp(methods[method].name, http_request_rest(request)))
        method++;
    if (method == ARRAY_LENGTH(methods)) {
        querier_unknown(request, server);
        return;
    }
    _cleanup_buffer_ struct buffer out = {0};
    struct call call = {.http = request, .server = server};
    struct error error = {0};
    int r = rpc_read_large(request, ADHOC_BODY_MAX, methods[method].fields, &call.request, &error);
    call.answer = rpc_writer(&out, call.request.json);
    rpc_open(&call.answer);
    if (!r)
        r = methods[method].run(&call, &error);
    rpc_close(&call.answer);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        rpc_respond(request, &call.request, &out);
    rpc_release(&call.request);
}
