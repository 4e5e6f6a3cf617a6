// SPDX-License-Identifier: Apache-2.0
// Routes for admins: deleting, acknowledging damage, resuming retention, and reading the audit log.

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/json_write.h"
#include "query/spans.h"
#include "server/audit/audit.h"
#include "server/handler/parameters.h"
#include "server/ingest/recorded.h"
#include "server/internal.h"
#include "server/query/context.h"

#define CONFIRM_HEADER "X-Assay-Confirm"
#define AUDIT_LINES 1000
#define AUDIT_LINES_MAX 100000

/* A page elsewhere can make a browser post to us, but not with a header of its own. */
static int check_confirmed(struct http_request *request, const char *word, struct error *error)
{
    const char *confirm = http_request_header(request, CONFIRM_HEADER);
    if (!confirm || strcmp(confirm, word))
        return error_set(error, -EINVAL, "This can't be undone; confirm it with the header %s: %s.",
                         CONFIRM_HEADER, word);
    return 0;
}

static int check_request(struct http_request *request, struct error *error)
{
    const char *const needed[] = {"query", "from", "to"};
    int r = check_confirmed(request, "delete", error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LENGTH(needed); i++) {
        const char *value = http_request_query(request, needed[i]);
        if (!value || !*value)
            return error_set(error, -EINVAL,
                             "Deleting requires query, from and to, but %s is missing; the query "
                             "{} selects everything.",
                             needed[i]);
    }
    return 0;
}

/* Spans of the query's services, where it selects by labels alone. */
static int delete_spans(struct server *server, const struct query_context *query_context,
                        const char *text, bool dry_run, uint64_t *ret_spans, struct error *error)
{
    const struct store_selection *selection = &query_context->selection;
    struct span_query range = {
        .tenant = selection->tenant, .from_ns = selection->from_ns, .to_ns = selection->to_ns};
    _cleanup_query_ struct query query = {0};
    int r = server->spans ? query_parse(text, &query, error) : 0;
    return r || !server->spans
               ? r
               : query_spans_delete(server->spans, &query, &range, dry_run, ret_spans, error);
}

static void respond_deleted(struct http_request *request, const struct store_deleted *deleted,
                            uint64_t spans, bool dry_run, int r, const struct error *error)
{
    struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    json_member_unsigned(&json, "windows", deleted->windows);
    json_member_unsigned(&json, "samples", deleted->rows);
    json_member_unsigned(&json, "spans", spans);
    json_member_bool(&json, "dry_run", dry_run);
    json_member_bool(&json, "pending", deleted->pending);
    json_member_unsigned(&json, "left_windows", deleted->left_windows);
    if (r < 0)
        json_member_text(&json, "message", error->text);
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    http_respond(request, r < 0 ? 409 : 200, "application/json", &out);
    buffer_release(&out);
}

void admin_delete(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_query_context_ struct query_context query_context = {0};
    struct store_deleted deleted = {0};
    struct error error = {0}, spans_error = {0};
    uint64_t spans = 0;
    const char *dry = http_request_query(request, "dry_run");
    bool dry_run = dry && strcmp(dry, "false") && strcmp(dry, "0");
    if (!parameters_known(request, "/api/v1/admin/delete"))
        return;
    int r = check_request(request, &error);
    if (!r)
        r = query_context_read(&query_context, request, server, "", false, &error);
    query_context.matching.cancelled = NULL; /* half of it would be worse */
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    char target[AUDIT_TEXT_MAX], outcome[ERROR_TEXT_BYTES + 96];
    snprintf(target, sizeof(target), "%s from %s to %s", http_request_query(request, "query"),
             http_request_query(request, "from"), http_request_query(request, "to"));
    r = store_delete(server->store, &query_context.selection, dry_run, &deleted, &error);
    if (!r || r == -ENOTSUP) {
        int failed = delete_spans(server, &query_context, http_request_query(request, "query"),
                                  dry_run, &spans, &spans_error);
        if (failed < 0) {
            r = failed;
            error = spans_error;
        }
    }
    /* What is kept of recordings can't be told apart by labels: all of it goes. */
    if (!dry_run)
        recorded_forget(server->data, query_context.selection.tenant);
    snprintf(outcome, sizeof(outcome), "%llu windows, %llu samples, %llu spans%s%s",
             (unsigned long long)deleted.windows, (unsigned long long)deleted.rows,
             (unsigned long long)spans, r < 0 ? "; " : "", r < 0 ? error.text : "");
    if (!dry_run)
        server_audit(server, request, "delete", target, outcome);
    if (r < 0 && r != -ENOTSUP)
        http_respond_failure(request, &error);
    else
        respond_deleted(request, &deleted, spans, dry_run, r, &error);
}

static void respond_done(struct http_request *request)
{
    http_respond_text(request, 200, "application/json", "{}\n");
}

/* The tenant whose files an admin may act on; NULL: all tenants. */
static const char *scope_of(struct http_request *request)
{
    const char *tenant = http_request_identity(request)->tenant;
    return strcmp(tenant, TOKEN_DEFAULT_TENANT) ? tenant : NULL;
}

/* The parameter, which must be there; NULL: the request is answered. */
static const char *need(struct http_request *request, const char *name)
{
    const char *value = http_request_query(request, name);
    if (value && *value)
        return value;
    http_respond_error(request, 400, "The parameter %s is missing.", name);
    return NULL;
}

void admin_acknowledge(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    const char *file, *reason;
    char path[PATH_MAX] = "";
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/admin/acknowledge") ||
        !(file = need(request, "file")) || !(reason = need(request, "reason")))
        return;
    if (check_confirmed(request, "acknowledge", &error) < 0 ||
        store_acknowledge(server->store, scope_of(request), file, path, &error) < 0) {
        http_respond_failure(request, &error);
        return;
    }
    server_audit(server, request, "acknowledge", path, reason);
    respond_done(request);
}

void admin_resume_retention(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    const char *reason = http_request_query(request, "reason");
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/admin/retention/resume"))
        return;
    int r = check_confirmed(request, "resume", &error);
    if (!r && scope_of(request))
        r = error_set(&error, -EACCES,
                      "Retention requires an admin of the tenant " TOKEN_DEFAULT_TENANT ".");
    if (r < 0 || store_resume_retention(server->store, &error) < 0) {
        http_respond_failure(request, &error);
        return;
    }
    if (server->spans)
        span_index_resume(server->spans);
    server_audit(server, request, "retention resume", "store", reason && *reason ? reason : "done");
    respond_done(request);
}

/* Lines as an array. Lines about the whole server are for admins of its first tenant. */
void admin_audit(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    _cleanup_buffer_ struct buffer lines = {0};
    struct buffer out = {0};
    uint64_t limit = AUDIT_LINES;
    if (!parameters_known(request, "/api/v1/audit"))
        return;
    int r = parameter_number(request, "limit", 1, AUDIT_LINES_MAX, &limit, &error);
    if (!r && server->data)
        r = audit_read(server->data, scope_of(request), limit, &lines, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    for (size_t i = 0; i < lines.length; i++)
        if (lines.data[i] == '\n' && i + 1 < lines.length)
            lines.data[i] = ',';
    buffer_add_char(&out, '[');
    buffer_add(&out, lines.data, lines.length ? lines.length - 1 : 0);
    buffer_add_text(&out, "]\n");
    http_respond_header(request, "Cache-Control", "no-store");
    http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
}
