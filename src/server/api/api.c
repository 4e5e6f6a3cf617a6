// SPDX-License-Identifier: Apache-2.0
// The API's lists: types, labels, series, senders; how the server is; and what the API is.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/access/tokens.h"
#include "io/json_write.h"
#include "label/quote.h"
#include "server/api/api.h"
#include "server/api/series_list.h"
#include "server/handler/answer.h"
#include "server/handler/parameters.h"
#include "server/ingest/ingest.h"
#include "server/query/context.h"

/* A JSON array in the making. */
static int list_text(void *context, const char *text)
{
    struct json_writer *json = context;
    json_write_text(json, text);
    return buffer_pass(json->out) ? 0 : json->out->drain->failure;
}

static int list_type(void *context, const char *id)
{
    static const char *const keys[] = {"name", "sample_type", "sample_unit", "period_type",
                                       "period_unit"};
    struct json_writer *json = context;
    json_write_object(json);
    json_member_text(json, "id", id);
    for (unsigned i = 0; i < ARRAY_LENGTH(keys); i++) {
        size_t length;
        const char *part = query_type_part(id, i, &length);
        json_write_key(json, keys[i]);
        json_write_bytes(json, part, length);
    }
    json_write_object_end(json);
    return 0;
}

static int list_series(void *context, const struct labels *labels, const char *type,
                       int64_t first_ns, int64_t last_ns)
{
    struct json_writer *json = context;
    const char *source = labels_get(labels, LABEL_SOURCE);
    json_write_object(json);
    json_member_text(json, "type", type);
    json_member_fixed(json, "first", (double)first_ns / 1e9, 3);
    json_member_fixed(json, "last", (double)last_ns / 1e9, 3);
    json_write_key(json, "labels");
    labels_write_json(labels, json);
    json_member_text(json, "source", source ? source : "");
    json_write_object_end(json);
    return 0;
}

enum listing { LIST_TYPES, LIST_NAMES, LIST_VALUES, LIST_SERIES };

static void respond_list(struct http_request *request, struct server *server, enum listing listing)
{
    static const char *const patterns[] = {"/api/v1/types", "/api/v1/labels",
                                           "/api/v1/label/*/values", "/api/v1/series"};
    if (!parameters_known(request, patterns[listing]))
        return;
    _cleanup_query_context_ struct query_context query_context = {0};
    struct error error = {0};
    _cleanup_answer_ struct answer answer = {0};
    struct json_writer json = json_writer(&answer.out);
    answer_init(&answer, request, "application/json");
    json_write_array(&json);
    int r = query_context_read(&query_context, request, server, "", false, &error);
    const struct store_selection *selection = &query_context.selection;
    if (!r && listing == LIST_TYPES)
        r = store_types(server->store, selection, list_type, &json, &error);
    else if (!r && listing == LIST_NAMES)
        r = store_label_names(server->store, selection, list_text, &json, &error);
    else if (!r && listing == LIST_VALUES)
        r = store_label_values(server->store, selection,
                               strcmp(http_request_rest(request), "service")
                                   ? http_request_rest(request)
                                   : LABEL_SERVICE_NAME,
                               list_text, &json, &error);
    else if (!r)
        r = series_list(server->store, selection, json.out, list_series, &json, &error);
    json_write_array_end(&json);
    buffer_add_char(json.out, '\n');
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

void api_types(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_TYPES);
}

void api_labels(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_NAMES);
}

void api_label_values(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_VALUES);
}

void api_series(struct http_request *request, void *server)
{
    respond_list(request, server, LIST_SERIES);
}

void api_senders(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct buffer out = {0};
    if (!parameters_known(request, "/api/v1/senders"))
        return;
    senders_write(server->ingest->senders, http_request_identity(request)->tenant, &out);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

void api_build(struct http_request *request, void *userdata)
{
    (void)userdata;
    if (!parameters_known(request, "/api/v1/status/buildinfo"))
        return;
    http_respond_text(request, 200, "application/json",
                      "{\"status\":\"success\",\"data\":{\"version\":\"" ASSAY_VERSION
                      "\",\"revision\":\"\",\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\","
                      "\"goVersion\":\"\"}}\n");
}
