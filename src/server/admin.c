// SPDX-License-Identifier: Apache-2.0
// What only an admin may ask for: deleting, and reading the audit log.

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "server/audit.h"
#include "server/question.h"

#define CONFIRM_HEADER "X-Assay-Confirm"
#define AUDIT_LINES 1000
#define AUDIT_LINES_MAX 100000

void server_audit(struct server *server, struct http_request *request, const char *action,
                  const char *target, const char *outcome)
{
    const struct http_identity *identity = http_request_identity(request);
    audit_write(server->audit,
                &(struct audit_entry){.actor = identity->token_name ? identity->token_name
                                                                    : "somebody without a token",
                                      .tenant = identity->tenant,
                                      .action = action,
                                      .target = target,
                                      .outcome = outcome,
                                      .remote = http_request_peer(request)});
}

/* A page elsewhere can make a browser post to us, but not with a header of its own. */
static int check_request(struct http_request *request, struct error *error)
{
    const char *confirm = http_request_header(request, CONFIRM_HEADER);
    const char *const needed[] = {"query", "from", "to"};
    if (!confirm || strcmp(confirm, "delete"))
        return error_set(error, -EINVAL,
                         "Deleting is for good; send the header " CONFIRM_HEADER ": delete.");
    for (size_t i = 0; i < ARRAY_LENGTH(needed); i++) {
        const char *value = http_request_query(request, needed[i]);
        if (!value || !*value)
            return error_set(error, -EINVAL,
                             "Deleting wants query, from and to, and %s is missing; the query {} "
                             "is everything.",
                             needed[i]);
    }
    return 0;
}

static void respond_deleted(struct http_request *request, const struct store_deleted *deleted,
                            bool dry_run, int r, const struct error *error)
{
    struct buffer out = {0};
    buffer_printf(&out,
                  "{\"windows\":%llu,\"samples\":%llu,\"dry_run\":%s,\"pending\":%s,"
                  "\"left_windows\":%llu",
                  (unsigned long long)deleted->windows, (unsigned long long)deleted->rows,
                  dry_run ? "true" : "false", deleted->pending ? "true" : "false",
                  (unsigned long long)deleted->left_windows);
    if (r < 0) {
        buffer_add_text(&out, ",\"message\":");
        json_put_text(&out, error->text);
    }
    buffer_add_text(&out, "}\n");
    http_respond(request, r < 0 ? 409 : 200, "application/json", &out);
    buffer_release(&out);
}

void admin_delete(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_question_ struct question question = {0};
    struct store_deleted deleted = {0};
    struct error error = {0};
    const char *dry = http_request_query(request, "dry_run");
    bool dry_run = dry && strcmp(dry, "false") && strcmp(dry, "0");
    if (!parameters_known(request, "/api/v1/admin/delete"))
        return;
    int r = check_request(request, &error);
    if (!r)
        r = question_read(&question, request, server, "", false, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    char target[AUDIT_TEXT_MAX], outcome[ERROR_TEXT_BYTES + 96];
    snprintf(target, sizeof(target), "%s from %s to %s", http_request_query(request, "query"),
             http_request_query(request, "from"), http_request_query(request, "to"));
    r = store_delete(server->store, &question.selection, dry_run, &deleted, &error);
    snprintf(outcome, sizeof(outcome), "%llu windows, %llu samples%s%s",
             (unsigned long long)deleted.windows, (unsigned long long)deleted.rows,
             r < 0 ? "; " : "", r < 0 ? error.text : "");
    if (!dry_run)
        server_audit(server, request, "delete", target, outcome);
    if (r < 0 && r != -ENOTSUP)
        http_respond_failure(request, &error);
    else
        respond_deleted(request, &deleted, dry_run, r, &error);
}

/* Lines as an array. What concerns the whole server is for admins of its first tenant. */
void admin_audit(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct error error = {0};
    _cleanup_buffer_ struct buffer lines = {0};
    struct buffer out = {0};
    uint64_t limit = AUDIT_LINES;
    const char *tenant = http_request_identity(request)->tenant;
    if (!parameters_known(request, "/api/v1/audit"))
        return;
    int r = question_number(request, "limit", 1, AUDIT_LINES_MAX, &limit, &error);
    if (!r && server->options.data)
        r = audit_read(server->options.data, strcmp(tenant, TOKEN_DEFAULT_TENANT) ? tenant : NULL,
                       limit, &lines, &error);
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
