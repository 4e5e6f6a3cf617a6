// SPDX-License-Identifier: Apache-2.0
// What is written down about requests: the access log, the audit log, and refused pushes.

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "server/audit/audit.h"
#include "server/internal.h"

void observe_access(void *userdata, const struct http_access *access)
{
    struct server_process *process = userdata;
    _cleanup_buffer_ struct buffer line = {0};
    if (!process->options.access_log)
        return;
    if (log_is_json()) {
        log_begin_json(LOG_INFO, &line);
        buffer_add_text(&line, ",\"message\":\"request\",\"peer\":");
        text_escape_json(&line, access->peer, strlen(access->peer));
        buffer_add_text(&line, ",\"method\":");
        text_escape_json(&line, access->method, strlen(access->method));
        buffer_add_text(&line, ",\"path\":");
        text_escape_json(&line, access->path, strlen(access->path));
        if (access->identity && access->identity->token_name) {
            buffer_add_text(&line, ",\"token\":");
            text_escape_json(&line, access->identity->token_name,
                             strlen(access->identity->token_name));
        }
        buffer_printf(&line, ",\"status\":%u,\"received\":%llu,\"sent\":%llu,\"us\":%lld}",
                      access->status, (unsigned long long)access->bytes_received,
                      (unsigned long long)access->bytes_sent, (long long)access->duration_us);
    } else {
        http_access_line(&line, access);
    }
    log_line(&line);
}

/* Pushes that no handler has seen are refused pushes of their sender all the same. */
static void count_refused(struct server_process *process, enum http_refusal reason,
                          const char *peer, const struct http_identity *identity,
                          const struct http_request *request)
{
    if (!routes_is_push(process, request) || !identity || !identity->tenant)
        return;
    const char *agent = http_request_header(request, "User-Agent");
    struct sender seen = {.pushes = 1, .last_ns = clock_ns(CLOCK_REALTIME)};
    seen.refused[reason == HTTP_REFUSED_TOO_LARGE   ? REFUSED_TOO_LARGE
                 : reason == HTTP_REFUSED_RATE      ? REFUSED_RATE
                 : reason == HTTP_REFUSED_SLOW_BODY ? REFUSED_BROKEN_OFF
                                                    : REFUSED_STORE]++;
    snprintf(seen.tenant, SENDER_TEXT_BYTES, "%s", identity->tenant);
    snprintf(seen.name, SENDER_TEXT_BYTES, "%s",
             identity->token_name ? identity->token_name : peer);
    snprintf(seen.agent, SENDER_TEXT_BYTES, "%s", agent ? agent : "");
    senders_add(process->ingest.senders, &seen);
}

void observe_refusal(void *userdata, enum http_refusal reason, const char *peer,
                     const struct http_identity *identity, const struct http_request *request)
{
    struct server_process *process = userdata;
    if (reason == HTTP_REFUSED_OVERLOAD)
        refusals_note(&process->ingest.refusals, "The server is overloaded.", monotonic_ns());
    if (request && (reason == HTTP_REFUSED_TOO_LARGE || reason == HTTP_REFUSED_RATE ||
                    reason == HTTP_REFUSED_OVERLOAD || reason == HTTP_REFUSED_SLOW_BODY))
        count_refused(process, reason, peer, identity, request);
    if (reason != HTTP_REFUSED_UNAUTHENTICATED && reason != HTTP_REFUSED_FORBIDDEN)
        return;
    audit_note(process->parts.audit,
               &(struct audit_entry){.actor = identity ? identity->token_name : NULL,
                                     .tenant = identity ? identity->tenant : NULL,
                                     .action = "refused",
                                     .target = request ? http_request_path(request) : NULL,
                                     .outcome = http_refusal_name(reason),
                                     .remote = peer});
}
