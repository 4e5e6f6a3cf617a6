// SPDX-License-Identifier: Apache-2.0
// /api/v1/baselines: saving, listing, reading and deleting baselines. A baseline is made of
// profiles that are sent, or of what a query selects.

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "format/format.h"
#include "http/access/tokens.h"
#include "server/api/api_files.h"
#include "server/compare/baselines.h"
#include "server/compare/compare_api.h"
#include "server/compare/replicates.h"
#include "server/handler/parameters.h"

/* A name that is taken is a conflict, and a quota that is used up is too much. */
static void respond_failure(struct http_request *request, const struct error *error)
{
    if (error->code == -EEXIST)
        http_respond_error(request, 409, "%s", error->text);
    else if (error->code == -EDQUOT)
        http_respond_error(request, 413, "%s", error->text);
    else if (error->code == -EPERM)
        http_respond_error(request, 403, "%s", error->text);
    else if (error->code == -ENOSYS)
        http_respond_error(request, 501, "%s", error->text);
    else
        http_respond_failure(request, error);
}

/* Refuses data that a gate couldn't use: otherwise the user would notice only on using it. */
static int check_content(const struct server *server, const struct buffer *content,
                         struct error *error)
{
    _cleanup_profile_ struct profile profile;
    const struct format *format = NULL;
    struct source source;
    int r = source_open_memory(&source, "The baseline", content->data, content->length,
                               files_expansion_limit(server), error);
    if (r < 0)
        return r;
    profile_init(&profile, PROFILE_TIMES | PROFILE_LABELS);
    r = files_read_profile(&source, &profile, &format, error);
    source_release(&source);
    if (!r && !profile.samples.count)
        r = error_set(error, -EINVAL, "The profile contains no samples.");
    return r;
}

static int select_content(struct http_request *request, struct server *server,
                          struct buffer *content, struct error *error)
{
    _cleanup_query_context_ struct query_context context = {0};
    _cleanup_profile_ struct profile profile;
    struct store_quality quality = {0};
    struct write_options options = {.type = -1};
    const char *label;
    profile_init(&profile, REPLICATES_DETAIL);
    int r = query_context_read(&context, request, server, "", true, error);
    if (!r)
        r = replicates_merge(&context, &profile, &quality, &label, error);
    return r < 0 ? r : format_otlp.write(content, &profile, &options, error);
}

static int save(struct http_request *request, struct server *server, struct error *error)
{
    static const char *const truths[] = {"false", "true", NULL};
    _cleanup_buffer_ struct buffer content = {0}, about = {0};
    uint64_t part = 0, parts = 1;
    unsigned replace;
    const char *name = http_request_query(request, "name");
    const char *query = http_request_query(request, "query");
    int r = parameter_number(request, "part", 0, BASELINE_PARTS_MAX - 1, &part, error);
    if (!r)
        r = parameter_number(request, "parts", 1, BASELINE_PARTS_MAX, &parts, error);
    if (!r)
        r = parameter_word(request, "replace", truths, 0, &replace, error);
    if (!r && !name)
        r = error_set(error, -EINVAL, "A baseline needs a `name`.");
    if (!r)
        r = http_request_read_all(request, &content, error);
    if (!r && query && content.length)
        r = error_set(error, -EINVAL, "Send a profile or a query, not both.");
    /* Whether anything is selected is in the answer, and what it is would be in the baseline. */
    if (!r && query && !(http_request_identity(request)->roles & HTTP_ROLE_READ))
        r = error_set(error, -EPERM,
                      "Saving what a query selects needs a token that may read, too.");
    if (!r)
        r = query ? select_content(request, server, &content, error)
                  : check_content(server, &content, error);
    if (r < 0)
        return r;
    const char *from = http_request_query(request, "from"), *to = http_request_query(request, "to");
    if (query)
        buffer_printf(&about, "%.800s from %.50s to %.50s", query, from ? from : "now-1h",
                      to ? to : "now");
    else
        buffer_printf(&about, "%llu file%s", (unsigned long long)parts, parts > 1 ? "s" : "");
    struct baseline_part saved = {.tenant = http_request_identity(request)->tenant,
                                  .name = name,
                                  .about = buffer_text(&about),
                                  .part = (unsigned)part,
                                  .parts = (unsigned)parts,
                                  .replace = replace,
                                  .data = content.data,
                                  .length = content.length};
    return baselines_save(server->baselines, &saved, error);
}

void baselines_save_one(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/baselines"))
        return;
    int r = save(request, server, &error);
    const char *name = http_request_query(request, "name");
    server_audit(server, request, "baseline save", name ? name : "", r < 0 ? error.text : "done");
    if (r < 0)
        respond_failure(request, &error);
    else
        http_respond_text(request, 200, "application/json", "{}\n");
}

static void put_baseline(void *context, const struct baseline *baseline)
{
    struct json_writer *json = context;
    json_write_object(json);
    json_member_text(json, "name", baseline->name);
    json_member_text(json, "about", baseline->about);
    json_member_fixed(json, "saved", (double)baseline->saved_ns / 1e9, 0);
    json_member_unsigned(json, "bytes", baseline->bytes);
    json_member_unsigned(json, "parts", baseline->parts);
    json_write_object_end(json);
}

void baselines_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    _cleanup_buffer_ struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    if (!parameters_known(request, "/api/v1/baselines"))
        return;
    json_write_array(&json);
    int r = baselines_each(server->baselines, http_request_identity(request)->tenant, put_baseline,
                           &json, &error);
    json_write_array_end(&json);
    buffer_add_char(&out, '\n');
    if (r < 0)
        respond_failure(request, &error);
    else
        api_respond(request, "application/json", &out);
}

void baselines_get(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    _cleanup_buffer_ struct buffer content = {0};
    uint64_t part = 0;
    unsigned parts;
    char text[16];
    if (!parameters_known(request, "/api/v1/baselines/*"))
        return;
    int r = parameter_number(request, "part", 0, BASELINE_PARTS_MAX - 1, &part, &error);
    if (!r)
        r = baselines_read(server->baselines, http_request_identity(request)->tenant,
                           http_request_rest(request), (unsigned)part, &content, &parts, &error);
    if (r < 0) {
        respond_failure(request, &error);
        return;
    }
    snprintf(text, sizeof(text), "%u", parts);
    http_respond_header(request, "X-Assay-Parts", text);
    api_respond(request, "application/octet-stream", &content);
}

void baselines_delete_one(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/baselines/*"))
        return;
    int r = baselines_delete(server->baselines, http_request_identity(request)->tenant,
                             http_request_rest(request), &error);
    server_audit(server, request, "baseline delete", http_request_rest(request),
                 r < 0 ? error.text : "done");
    if (r < 0)
        respond_failure(request, &error);
    else
        http_respond_text(request, 200, "application/json", "{}\n");
}
