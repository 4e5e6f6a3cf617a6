// SPDX-License-Identifier: Apache-2.0
// Code that all handlers share: see handler.h.

#include "server/handler/handler.h"

#include <string.h>

#include "base/text.h"
#include "server/audit/audit.h"
#include "server/handler/parameters.h"

/* ---- bodies ---- */

bool handler_read_json(struct http_request *request, const char *pattern,
                       int (*read)(struct json *json, void *context), void *context)
{
    _cleanup_buffer_ struct buffer body = {0};
    struct error error = {0};
    struct source source;
    struct json json;
    if (!parameters_known(request, pattern))
        return false;
    if (!http_request_is_type(request, "application/json")) {
        http_respond_error(request, 415, "%s takes a body of the type application/json only.",
                           http_request_path(request));
        return false;
    }
    int r = http_request_read_all(request, &body, &error);
    if (!r)
        r = source_open_memory(&source, "the body", body.data, body.length, HANDLER_JSON_BYTES,
                               &error);
    if (!r) {
        json_init(&json, &source, &error);
        r = read(&json, context);
        if (r >= 0)
            r = json_end(&json);
        json_release(&json);
        source_release(&source);
    }
    if (r < 0)
        http_respond_failure(request, &error);
    return r >= 0;
}

int handler_read_text(struct json *json, char *to, size_t room)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r < 0)
        return r;
    if (text.length >= room)
        return json_fail(json, "A string is %zu bytes; the limit is %zu", text.length, room - 1);
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return json_fail(json, "A text has a control character in it");
    if (!utf8_valid(text.data, text.length))
        return json_fail(json, "A text is not UTF-8");
    memcpy(to, text.data, text.length);
    to[text.length] = 0;
    return 0;
}

void handler_respond_failure(struct http_request *request, const struct error *error)
{
    if (error->code == -EBUSY)
        http_respond_error(request, 409, "%s", error->text);
    else
        http_respond_failure(request, error);
}

const char *handler_actor(struct http_request *request)
{
    const struct http_identity *identity = http_request_identity(request);
    return identity->token_name ? identity->token_name : "an unauthenticated client";
}

/* ---- answers ---- */

void api_respond(struct http_request *request, const char *content_type, struct buffer *body)
{
    http_respond_header(request, "Cache-Control", "no-store");
    http_respond(request, 200, content_type, body);
}

void json_put_text(struct buffer *out, const char *text)
{
    text_escape_json(out, text, strlen(text));
}

void labels_write_json(const struct labels *labels, struct json_writer *json)
{
    json_write_object(json);
    for (size_t i = 0; i < labels->count; i++)
        if (!label_is_internal(labels->list[i].name))
            json_member_text(json, labels->list[i].name, labels->list[i].value);
    json_write_object_end(json);
}

/* ---- the audit log ---- */

void server_audit(struct server *server, struct http_request *request, const char *action,
                  const char *target, const char *outcome)
{
    audit_write(server->audit,
                &(struct audit_entry){.actor = handler_actor(request),
                                      .tenant = http_request_identity(request)->tenant,
                                      .action = action,
                                      .target = target,
                                      .outcome = outcome,
                                      .remote = http_request_peer(request)});
}
