// SPDX-License-Identifier: Apache-2.0
// The API's lists: types, labels, series, senders; how the server is; and what the API is.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/access/tokens.h"
#include "label/quote.h"
#include "server/api/api.h"
#include "server/api/series_list.h"
#include "server/handler/answer.h"
#include "server/handler/parameters.h"
#include "server/ingest/ingest.h"
#include "server/query/context.h"

/* A JSON array in the making. */
struct list {
    struct buffer *out;
    const char *comma;
};

static int list_text(void *context, const char *text)
{
    struct list *list = context;
    buffer_add_text(list->out, list->comma);
    json_put_text(list->out, text);
    list->comma = ",";
    return buffer_pass(list->out) ? 0 : list->out->drain->failure;
}

static int list_type(void *context, const char *id)
{
    static const char *const keys[] = {"name", "sample_type", "sample_unit", "period_type",
                                       "period_unit"};
    struct list *list = context;
    buffer_printf(list->out, "%s{\"id\":", list->comma);
    json_put_text(list->out, id);
    for (unsigned i = 0; i < ARRAY_LENGTH(keys); i++) {
        size_t length;
        const char *part = query_type_part(id, i, &length);
        buffer_printf(list->out, ",\"%s\":", keys[i]);
        text_escape_json(list->out, part, length);
    }
    buffer_add_char(list->out, '}');
    list->comma = ",";
    return 0;
}

static int list_series(void *context, const struct labels *labels, const char *type,
                       int64_t first_ns, int64_t last_ns)
{
    struct list *list = context;
    buffer_printf(list->out, "%s{\"type\":", list->comma);
    json_put_text(list->out, type);
    buffer_printf(list->out, ",\"first\":%.3f,\"last\":%.3f,\"labels\":", (double)first_ns / 1e9,
                  (double)last_ns / 1e9);
    labels_write_json(labels, &(struct json_writer){.out = list->out});
    const char *source = labels_get(labels, LABEL_SOURCE);
    buffer_add_text(list->out, ",\"source\":");
    json_put_text(list->out, source ? source : "");
    buffer_add_char(list->out, '}');
    list->comma = ",";
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
    struct list list = {.out = &answer.out, .comma = ""};
    answer_init(&answer, request, "application/json");
    buffer_add_char(list.out, '[');
    int r = query_context_read(&query_context, request, server, "", false, &error);
    const struct store_selection *selection = &query_context.selection;
    if (!r && listing == LIST_TYPES)
        r = store_types(server->store, selection, list_type, &list, &error);
    else if (!r && listing == LIST_NAMES)
        r = store_label_names(server->store, selection, list_text, &list, &error);
    else if (!r && listing == LIST_VALUES)
        r = store_label_values(server->store, selection,
                               strcmp(http_request_rest(request), "service")
                                   ? http_request_rest(request)
                                   : LABEL_SERVICE_NAME,
                               list_text, &list, &error);
    else if (!r)
        r = series_list(server->store, selection, list.out, list_series, &list, &error);
    buffer_add_text(list.out, "]\n");
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
