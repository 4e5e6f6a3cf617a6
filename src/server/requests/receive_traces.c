// SPDX-License-Identifier: Apache-2.0
// Takes spans: OpenTelemetry's traces in protobuf and JSON, over HTTP and gRPC.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "io/wire.h"
#include "label/rules/rules.h"
#include "server/ingest/receive.h"
#include "server/requests/requests.h"
#include "spans/otlp.h"

/* The texts of a span that are labels, before and after the rules for labels. */
struct naming_rule {
    uint32_t service, name, method, route; /* as sent */
    uint32_t to_service, to_name, to_method, to_route;
    bool dropped;
};

/* Relabelling, limits and redaction, once for each combination of texts. */
struct renaming {
    struct receipt *receipt;
    struct span_batch *batch;
    struct naming_rule *list;
    size_t count, capacity;
    struct id_table index;
    uint64_t dropped;
};

static uint32_t after_rules(struct renaming *renaming, const struct labels *labels,
                            const char *name)
{
    const char *text = labels_get(labels, name);
    return text ? span_batch_text(renaming->batch, text, strlen(text)) : 0;
}

static void apply_rules(struct renaming *renaming, struct naming_rule *rule)
{
    struct ingest *ingest = renaming->receipt->server->ingest;
    const char **texts = renaming->batch->texts;
    _cleanup_labels_ struct labels labels = {0};
    unsigned reasons = 0;
    labels_set(&labels, LABEL_SERVICE_NAME, texts[rule->service]);
    labels_set(&labels, "span_name", texts[rule->name]);
    labels_set(&labels, "method", texts[rule->method]);
    labels_set(&labels, "route", texts[rule->route]);
    pthread_rwlock_rdlock(&ingest->rules_lock);
    rule->dropped = !label_rules_apply(&ingest->rules, renaming->receipt->batch.tenant,
                                       renaming->receipt->source.received_ns, &labels, &reasons);
    pthread_rwlock_unlock(&ingest->rules_lock);
    if (reasons & (1u << LABEL_TOO_MANY_VALUES | 1u << LABEL_TOO_MANY_NAMES))
        renaming->receipt->seen.capped++;
    rule->to_service = after_rules(renaming, &labels, LABEL_SERVICE_NAME);
    rule->to_name = after_rules(renaming, &labels, "span_name");
    rule->to_method = after_rules(renaming, &labels, "method");
    rule->to_route = after_rules(renaming, &labels, "route");
}

static const struct naming_rule *rule_of(struct renaming *renaming, const struct span *span)
{
    const uint32_t key[] = {span->service, span->name, span->method, span->route};
    uint64_t hash = XXH3_64bits(key, sizeof(key));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&renaming->index, &probe)) != ID_NONE)
        if (!memcmp(&renaming->list[id].service, key, sizeof(key)))
            return &renaming->list[id];
    array_reserve(renaming->list, renaming->capacity, renaming->count + 1);
    id = (uint32_t)renaming->count++;
    renaming->list[id] = (struct naming_rule){
        .service = span->service, .name = span->name, .method = span->method, .route = span->route};
    id_table_insert(&renaming->index, hash, id);
    apply_rules(renaming, &renaming->list[id]);
    return &renaming->list[id];
}

/* Returns how many spans the rules have dropped. */
static uint64_t rename_spans(struct receipt *receipt, struct span_batch *batch)
{
    struct renaming renaming = {.receipt = receipt, .batch = batch};
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct span span = batch->list[i];
        const struct naming_rule *rule = rule_of(&renaming, &span);
        span.service = rule->to_service;
        span.name = rule->to_name;
        span.method = rule->to_method;
        span.route = rule->to_route;
        if (!rule->dropped)
            batch->list[kept++] = span;
    }
    renaming.dropped = batch->count - kept;
    batch->count = kept;
    free(renaming.list);
    id_table_release(&renaming.index);
    return renaming.dropped;
}

struct traces {
    struct receipt *receipt;
    struct span_batch batch;
    struct span_reader reader;
    struct span_written written;
    uint64_t dropped;
};

static int read_traces(struct traces *traces, bool json, struct error *error)
{
    struct receipt *receipt = traces->receipt;
    struct http_source *source = NULL;
    const uint8_t *body;
    size_t length;
    int r = receipt_body(receipt, &source, &body, &length, error);
    uint64_t digest = r ? 0 : XXH3_64bits(body, length);
    if (!r)
        r = json ? span_read_otlp_json(&traces->reader, http_source(source), &traces->batch, error)
                 : span_read_otlp(&traces->reader, body, length, &traces->batch, error);
    http_source_close(source);
    if (r < 0)
        return r;
    traces->dropped = rename_spans(receipt, &traces->batch);
    return span_index_write(receipt->server->spans, receipt->batch.tenant, &traces->batch, digest,
                            receipt->batch.waits, receipt->batch.waits_context, &traces->written,
                            error);
}

/* Why spans were left out, as a sentence; "" when all were taken. */
static void explain(const struct traces *traces, struct buffer *out)
{
    const struct span_written *written = &traces->written;
    if (traces->reader.invalid)
        buffer_printf(out, "%llu spans are invalid: of the first, %s. ",
                      (unsigned long long)traces->reader.invalid, traces->reader.first_invalid);
    if (written->too_old)
        buffer_printf(out, "%llu spans are older than the retention period. ",
                      (unsigned long long)written->too_old);
    if (written->too_new)
        buffer_printf(out, "%llu spans start in the future. ",
                      (unsigned long long)written->too_new);
    while (out->length && out->data[out->length - 1] == ' ')
        out->length--;
}

/* OTLP's partial success: what is refused for good isn't sent again. */
static void answer(struct http_request *request, const struct traces *traces, bool json)
{
    uint64_t refused = traces->reader.invalid + traces->written.too_old + traces->written.too_new;
    _cleanup_buffer_ struct buffer body = {0}, why = {0};
    struct json_writer writer = json_writer(&body);
    explain(traces, &why);
    if (json) {
        json_write_object(&writer);
        if (refused) {
            json_write_key(&writer, "partialSuccess");
            json_write_object(&writer);
            json_member_unsigned(&writer, "rejectedSpans", refused);
            json_member_text(&writer, "errorMessage", buffer_text(&why));
            json_write_object_end(&writer);
        }
        json_write_object_end(&writer);
    } else if (refused) {
        size_t mark = wire_begin(&body, 1);
        wire_put_u64(&body, 1, refused);
        wire_put_bytes(&body, 2, why.data, why.length);
        wire_end(&body, mark);
    }
    http_respond(request, 200, json ? "application/json" : "application/x-protobuf", &body);
}

void receive_traces(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    struct traces traces = {.receipt = &receipt};
    if (!receipt_init(&receipt, request, server))
        return;
    traces.reader.rules = receipt.server->span_routes;
    bool json = http_request_is_type(request, "application/json");
    int r = 0;
    if (!receipt.server->spans)
        r = error_set(&error, -ENOTSUP, "This server doesn't keep spans (spans.enabled).");
    else if (!json && !http_request_is_type(request, "application/x-protobuf") &&
             !http_request_is_type(request, "application/protobuf") &&
             !http_request_is_type(request, "application/proto"))
        r = error_set(&error, -ENOTSUP,
                      "OTLP traces must be application/x-protobuf or application/json.");
    if (!r)
        r = read_traces(&traces, json, &error);
    if (receipt_finish(&receipt, r, &error))
        answer(request, &traces, json);
    span_batch_release(&traces.batch);
}
