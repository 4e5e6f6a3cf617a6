// SPDX-License-Identifier: Apache-2.0
// Records of requests: the access log, the audit log, and refused pushes.

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "io/json_write.h"
#include "server/audit/audit.h"
#include "server/internal.h"

#define REFUSAL_LOG_NS (60 * 1000000000ll)

void observe_access(void *userdata, const struct http_access *access)
{
    struct server_process *process = userdata;
    _cleanup_buffer_ struct buffer line = {0};
    if (!process->options.access_log)
        return;
    if (log_is_json()) {
        log_begin_json(LOG_INFO, &line);
        struct json_writer json = {.out = &line, .comma = true};
        json_member_text(&json, "message", "request");
        json_member_text(&json, "peer", access->peer);
        json_member_text(&json, "method", access->method);
        json_member_text(&json, "path", access->path);
        if (access->identity && access->identity->token_name)
            json_member_text(&json, "token", access->identity->token_name);
        json_member_unsigned(&json, "status", access->status);
        json_member_unsigned(&json, "received", access->bytes_received);
        json_member_unsigned(&json, "sent", access->bytes_sent);
        json_member_signed(&json, "us", access->duration_us);
        json_write_object_end(&json);
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

/* Reasons that say something about a sender or the load. Wrong tokens are in the audit log; idle
 * connections end as a matter of course; HTTP/2 has sentences of its own about floods. */
static const char *const refusal_texts[HTTP_REFUSAL_COUNT] = {
    [HTTP_REFUSED_CONNECTIONS] = "Refused connections: their number is at its limit",
    [HTTP_REFUSED_SLOW_BODY] = "Ended requests whose bodies arrived too slowly",
    [HTTP_REFUSED_SLOW_READER] = "Ended answers that were read too slowly",
    [HTTP_REFUSED_OVERLOAD] = "Refused requests: too many at once",
    [HTTP_REFUSED_MALFORMED] = "Refused malformed requests",
    [HTTP_REFUSED_HALF_CLOSED] = "Closed HTTP/2 connections that were half closed during requests",
};

/* One line for each reason, at most so often. */
static void log_refusal(enum http_refusal reason, const char *peer)
{
    static struct {
        atomic_uint_least64_t count;
        atomic_int_least64_t logged_ns; /* 0: never */
    } seen[HTTP_REFUSAL_COUNT];
    int64_t now_ns = monotonic_ns();
    int64_t before_ns = atomic_load(&seen[reason].logged_ns);
    if (!refusal_texts[reason])
        return;
    atomic_fetch_add(&seen[reason].count, 1);
    if ((before_ns && now_ns - before_ns < REFUSAL_LOG_NS) ||
        !atomic_compare_exchange_strong(&seen[reason].logged_ns, &before_ns, now_ns))
        return;
    unsigned long long count = atomic_exchange(&seen[reason].count, 0);
    if (before_ns)
        log_warning("%s: %llu since the last message, the latest from %s.", refusal_texts[reason],
                    count, peer);
    else
        log_warning("%s: the first from %s.", refusal_texts[reason], peer);
}

void observe_refusal(void *userdata, enum http_refusal reason, const char *peer,
                     const struct http_identity *identity, const struct http_request *request)
{
    struct server_process *process = userdata;
    log_refusal(reason, peer);
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
