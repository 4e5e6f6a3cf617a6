// SPDX-License-Identifier: Apache-2.0
// Takes profiles: our own push, and OpenTelemetry's over HTTP.

#include "server/ingest/receive.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "format/jfr/labels.h"
#include "format/otlp/otlp.h"
#include "io/json_write.h"
#include "io/wire.h"
#include "query/query.h"
#include "server/admission/admission.h"
#include "server/ingest/quota.h"
#include "server/ingest/recorded.h"

/* Counts the request, and answers when it is one too many. */
static bool admit(struct receipt *receipt)
{
    struct sender *seen = &receipt->seen;
    const char *what = "";
    int64_t wait_ms;
    if (quotas_allow(receipt->server->ingest->quotas, seen->tenant, seen->name,
                     monotonic_ns() / 1000000, &wait_ms, &what))
        return true;
    char seconds[24];
    snprintf(seconds, sizeof(seconds), "%lld", (long long)((wait_ms + 999) / 1000));
    seen->refused[REFUSED_RATE]++;
    senders_add(receipt->server->ingest->senders, seen);
    http_respond_header(receipt->request, "Retry-After", seconds);
    http_respond_error(receipt->request, 429, "Rate limit of %s exceeded; try again in %s s.", what,
                       seconds);
    return false;
}

/* The sender's clock; answers when its header is invalid, since without it a profile may be stored
 * at a time where nobody looks for it. */
static bool take_clock(struct receipt *receipt)
{
    const char *sent = http_request_header(receipt->request, "X-Assay-Sent-At");
    struct error error;
    if (!sent || !query_time(sent, receipt->source.received_ns, &receipt->source.sent_ns, &error))
        return true;
    receipt->seen.refused[REFUSED_MALFORMED]++;
    senders_add(receipt->server->ingest->senders, &receipt->seen);
    http_respond_error(receipt->request, 400, "X-Assay-Sent-At: %s", error.text);
    return false;
}

static void waits(void *request)
{
    http_request_computed(request);
}

bool receipt_init(struct receipt *receipt, struct http_request *request, struct server *server)
{
    const struct http_identity *identity = http_request_identity(request);
    const char *agent = http_request_header(request, "User-Agent");
    *receipt = (struct receipt){.request = request, .server = server};
    receipt->source = (struct ingest_source){
        .labels = &receipt->labels, .factor = 1, .received_ns = clock_ns(CLOCK_REALTIME)};
    receipt->batch = (struct ingest_batch){
        .ingest = server->ingest,
        .tenant = identity->tenant,
        .seen = &receipt->seen,
        .waits = waits,
        .waits_context = request,
    };
    snprintf(receipt->seen.tenant, SENDER_TEXT_BYTES, "%s", identity->tenant);
    snprintf(receipt->seen.name, SENDER_TEXT_BYTES, "%s",
             identity->token_name ? identity->token_name : http_request_peer(request));
    snprintf(receipt->seen.agent, SENDER_TEXT_BYTES, "%s", agent ? agent : "");
    receipt->seen.last_ns = receipt->source.received_ns;
    receipt->seen.pushes = 1;
    return admit(receipt) && take_clock(receipt);
}

void receipt_release(struct receipt *receipt)
{
    ingest_batch_release(&receipt->batch);
    labels_release(&receipt->labels);
}

bool receipt_finish(struct receipt *receipt, int r, struct error *error)
{
    struct sender *seen = &receipt->seen;
    r = admission_explain(r, error);
    memory_meter = NULL; /* what is sent has been read */
    const char *batch_id = http_request_header(receipt->request, "X-Assay-Batch-Id");
    if (!batch_id && *receipt->batch_id)
        batch_id = receipt->batch_id;
    if (!r)
        r = ingest_batch_write(&receipt->batch, batch_id, error);
    if (r) /* nothing of it is stored */
        seen->windows = seen->rows = seen->exemplars = 0;
    if (r == -EALREADY)
        seen->repeats++;
    else if (r)
        seen->refused[ingest_refusal_of(r)]++;
    senders_add(receipt->server->ingest->senders, seen);
    quotas_charge(receipt->server->ingest->quotas, seen->tenant, seen->name,
                  http_request_received(receipt->request), seen->rows, monotonic_ns() / 1000000);
    if (!r || r == -EALREADY)
        return true;
    if (http_status_of_error(r) >= 500)
        refusals_note(&receipt->server->ingest->refusals, error->text, monotonic_ns());
    if (error->code == -ERANGE)
        http_respond_error(receipt->request, 422, "%s", error->text);
    else
        http_respond_failure(receipt->request, error);
    return false;
}

int receive_format(struct source *source, const struct format **format, struct profile *profile,
                   struct error *error)
{
    int r = *format ? 0 : format_detect(source, format, error);
    if (r < 0)
        return r;
    if (!format_readable(*format))
        return error_set(error, -ENOTSUP, "The server can't read profiles in the format %s.",
                         (*format)->name);
    if ((*format)->read)
        return (*format)->read(source, profile, error);
    const struct format_phases *phases = (*format)->phases;
    void *collected = phases->collect(source, profile->detail, error);
    if (!collected)
        return error->code;
    r = phases->resolve(collected, profile, error);
    phases->discard(collected);
    return r;
}

int receipt_read(struct receipt *receipt, struct source *source, const struct format *format,
                 struct error *error)
{
    _cleanup_profile_ struct profile profile;
    size_t noted = admission_noted();
    profile_init(&profile, INGEST_DETAIL);
    int r = format ? 0 : format_detect(source, &format, error);
    /* gRPC's "unimplemented", which stands for 415, is about a method and not about a profile. */
    if (r == -ENOTSUP && http_request_is_grpc(receipt->request))
        r = error->code = -EBADMSG;
    if (!r)
        r = format->read_unresolved
                ? format->read_unresolved(source, store_seed(receipt->server->store), &profile,
                                          error)
                : receive_format(source, &format, &profile, error);
    /* Senders of text would never see a warning, so one bad line fails the push. */
    if (!r && format == &format_folded && source->warning[0])
        r = error_set(error, -EBADMSG, "The body has malformed lines: %s", source->warning);
    if (!r && format == &format_jfr && receipt->context_labels)
        r = jfr_labels_apply(receipt->context_labels, receipt->context_labels_length, &profile,
                             error);
    receipt->source.recording = format == &format_jfr;
    if (!r && receipt->source.recording)
        ingest_cpu_of_wall(&profile);
    if (!r && receipt->scripts)
        ingest_name_scripts(&profile, receipt->scripts == SCRIPTS_ALL);
    if (!r && !profile.unresolved) /* unresolved stacks keep all that was read */
        admission_kept(noted, profile_memory(&profile));
    return r < 0 ? r : ingest_batch_add(&receipt->batch, &receipt->source, &profile, error);
}

int receipt_read_memory(struct receipt *receipt, const void *data, size_t length,
                        const struct format *format, struct error *error)
{
    struct source source;
    int r = source_open_memory(&source, "body", data, length,
                               ingest_limits(receipt->server->ingest).expansion_bytes, error);
    if (r < 0)
        return r;
    r = receipt_read(receipt, &source, format, error);
    source_release(&source);
    return r;
}

int receipt_body(struct receipt *receipt, struct http_source **ret_source, const uint8_t **ret_data,
                 size_t *ret_length, struct error *error)
{
    uint64_t limit = ingest_limits(receipt->server->ingest).expansion_bytes;
    int r = http_source_open(receipt->request, limit, ret_source, error);
    if (r < 0)
        return r;
    struct source *source = http_source(*ret_source);
    if ((r = source_need_all(source, limit, error)) < 0)
        return r;
    *ret_data = source_data(source);
    *ret_length = source_available(source);
    return 0;
}

/* Of our own push each parameter is a label, but for those that say something of the profile. */
static int push_parameters(struct receipt *receipt, const struct format **ret_format,
                           struct error *error)
{
    struct http_request *request = receipt->request;
    int64_t now = receipt->source.received_ns;
    int r = 0;
    for (size_t i = 0; !r && i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (!strcmp(name, "from"))
            r = query_time(value, now, &receipt->source.from_ns, error);
        else if (!strcmp(name, "to"))
            r = query_time(value, now, &receipt->source.to_ns, error);
        else if (!strcmp(name, "format")) {
            *ret_format = format_by_name(value);
            if (!*ret_format)
                r = error_set(error, -ENOTSUP, "Unknown format \"%.60s\".", value);
        } else if (!strcmp(name, "name"))
            receipt->source.name = value;
        else if (!strcmp(name, "service") || !strcmp(name, "service.name"))
            labels_set(&receipt->labels, LABEL_SERVICE_NAME, value);
        else if (strncmp(name, "__", 2))
            labels_set(&receipt->labels, name, value);
    }
    if (!r && !labels_get(&receipt->labels, LABEL_SERVICE_NAME))
        r = error_set(error, -EINVAL,
                      "The push has no service; add ?service_name=NAME to the URL.");
    return r;
}

void receive_push(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    const struct format *format = NULL;
    struct http_source *source = NULL;
    if (!receipt_init(&receipt, request, server))
        return;
    int r = push_parameters(&receipt, &format, &error);
    if (!r)
        r = http_source_open(request, ingest_limits(receipt.server->ingest).expansion_bytes,
                             &source, &error);
    if (!r)
        r = receipt_read(&receipt, http_source(source), format, &error);
    http_source_close(source);
    if (receipt_finish(&receipt, r, &error)) {
        struct buffer body = {0};
        struct json_writer json = json_writer(&body);
        json_write_object(&json);
        json_member_unsigned(&json, "windows", receipt.seen.windows);
        json_member_unsigned(&json, "samples", receipt.seen.rows);
        json_member_unsigned(&json, "exemplars", receipt.seen.exemplars);
        if (receipt.seen.repeats)
            json_member_bool(&json, "repeated", true);
        if (receipt.seen.capped)
            json_member_unsigned(&json, "capped_series", receipt.seen.capped);
        json_write_object_end(&json);
        buffer_add_char(&body, '\n');
        http_respond(request, 200, "application/json", &body);
        buffer_release(&body);
    }
}

/* Of an agent's recording the times of samples are kept beside the store. What can't be kept
 * doesn't fail the push. */
static int make_recorded(struct receipt *receipt, struct source *source, struct buffer *kept,
                         struct error *error)
{
    uint64_t limit = ingest_limits(receipt->server->ingest).expansion_bytes;
    struct error problem = {0};
    receipt->source.unkept = recorded_labels;
    int r = source_need_all(source, limit, error);
    if (!r && receipt->server->data &&
        recorded_make(receipt->server->ingest, source_data(source), source_available(source), limit,
                      kept, &problem) < 0)
        log_warning("The times of a recording are not kept: %s", problem.text);
    return r;
}

void receive_otlp(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    _cleanup_buffer_ struct buffer kept = {0};
    struct error error = {0};
    struct http_source *source = NULL;
    const char *batch_id = http_request_header(request, "X-Assay-Batch-Id");
    if (!receipt_init(&receipt, request, server))
        return;
    receipt.source.attributes = true;
    bool json = http_request_is_type(request, "application/json");
    int r = 0;
    if (!json && !http_request_is_type(request, "application/x-protobuf") &&
        !http_request_is_type(request, "application/protobuf") &&
        !http_request_is_type(request, "application/proto")) /* Connect's name, and gRPC's */
        r = error_set(&error, -ENOTSUP,
                      "OTLP profiles must be application/x-protobuf or application/json.");
    if (!r)
        r = http_source_open(request, ingest_limits(receipt.server->ingest).expansion_bytes,
                             &source, &error);
    if (!r && !json && recorded_is(batch_id))
        r = make_recorded(&receipt, http_source(source), &kept, &error);
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, INGEST_DETAIL);
    struct otlp_summary summary = {0};
    if (!r)
        r = (json ? otlp_read_json_unresolved : otlp_read_unresolved)(
            http_source(source), store_seed(receipt.server->store), &profile, &summary, &error);
    /* A request whose profiles all have ids, and which were there before, is one that was sent
     * again. */
    receipt.seen.repeats += summary.repeated;
    if (summary.identified && summary.identified + summary.repeated == summary.profiles)
        snprintf(receipt.batch_id, sizeof(receipt.batch_id), "otlp-%016llx%016llx",
                 (unsigned long long)summary.ids.high, (unsigned long long)summary.ids.low);
    /* A request without profiles is a way to ask whether we are there. */
    if (!r && profile.type_count)
        r = ingest_batch_add(&receipt.batch, &receipt.source, &profile, &error);
    http_source_close(source);
    if (!receipt_finish(&receipt, r, &error))
        return;
    if (receipt.seen.windows)
        recorded_keep(receipt.server->data, receipt.batch.tenant, batch_id, &kept,
                      receipt.source.received_ns);
    http_respond_text(request, 200, json ? "application/json" : "application/x-protobuf",
                      json ? "{}" : "");
}

void receive_refuse_memory(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    if (!receipt_init(&receipt, request, server))
        return;
    http_respond_header(request, "Retry-After", "1");
    receipt_finish(&receipt,
                   error_set(&error, -EAGAIN,
                             "Other pushes and queries have used up the server's memory limit; "
                             "try again later."),
                   &error);
}
