// SPDX-License-Identifier: Apache-2.0
// Takes series of raw profiles: Pyroscope's push.v1 and Parca's WriteRaw, as protobuf and JSON; and
// single ones as Coroot's agents send them.

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "io/base64.h"
#include "io/json.h"
#include "io/wire.h"
#include "server/ingest/receive.h"

static void series_begin(struct receipt *receipt)
{
    labels_clear(&receipt->labels);
    receipt->source.name = NULL;
    receipt->source.known_cumulative = false;
}

static void series_label(struct receipt *receipt, const char *name, size_t name_length,
                         const char *value, size_t value_length)
{
    bool kept = (name_length == 8 && !memcmp(name, "__name__", 8)) ||
                (name_length == 9 && !memcmp(name, "__delta__", 9));
    if (name_length >= 2 && !memcmp(name, "__", 2) && !kept)
        return;
    labels_set_n(&receipt->labels, name, name_length, value, value_length);
}

/* Go's allocations and waits count from the start of the process unless the sender says
 * otherwise. */
static bool counts_from_start(const struct labels *labels)
{
    static const char *const names[] = {"memory", "mutex", "block"};
    const char *name = labels_get(labels, "__name__"), *delta = labels_get(labels, "__delta__");
    bool known = false;
    for (size_t i = 0; name && i < ARRAY_LENGTH(names); i++)
        known |= !strcmp(name, names[i]);
    return known && !(delta && !strcmp(delta, "false"));
}

/* Parca has no services: those who scrape tell them apart by the job, its agent by the program. */
static const char *parca_service(const struct labels *labels)
{
    const char *job = labels_get(labels, "job");
    return labels_get(labels, LABEL_SERVICE_NAME) ? NULL : job ? job : labels_get(labels, "comm");
}

/* The name is part of the type, not a label. Types of Go's delta profiler get the name of the
 * profile that the deltas are of, and are not cumulative. */
static int series_profile(struct receipt *receipt, const void *data, size_t length,
                          struct error *error)
{
    struct labels all = {0}, *labels = &receipt->labels;
    labels_copy(&all, labels);
    const char *name = labels_get(&all, "__name__");
    bool delta = name && !strncmp(name, "godeltaprof_", strlen("godeltaprof_"));
    receipt->source.name = delta ? name + strlen("godeltaprof_") : name;
    receipt->source.known_cumulative =
        !receipt->parca && !delta && !receipt->files && counts_from_start(&all);
    labels_remove(labels, "__name__");
    labels_remove(labels, "__delta__");
    const char *service = receipt->parca ? parca_service(&all) : NULL;
    if (service)
        labels_set(labels, LABEL_SERVICE_NAME, service);
    int r = receipt_read_memory(receipt, data, length, NULL, error);
    labels_copy(labels, &all);
    receipt->source.name = NULL;
    labels_release(&all);
    return r;
}

static int malformed(struct error *error)
{
    return error_set(error, -EBADMSG, "The request is not a valid protobuf message.");
}

static int wire_label(struct receipt *receipt, const struct wire_field *pair)
{
    struct wire wire = wire_of_field(pair);
    struct wire_field field, name = {0}, value = {0};
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.type == WIRE_BYTES && field.number == 1)
            name = field;
        else if (field.type == WIRE_BYTES && field.number == 2)
            value = field;
    if (!r && name.length)
        series_label(receipt, (const char *)name.data, name.length, (const char *)value.data,
                     value.length);
    return r;
}

/* Labels of a series: Parca's are in a message of their own. */
static int wire_labels(struct receipt *receipt, const struct wire_field *series, bool wrapped)
{
    struct wire wire = wire_of_field(series);
    struct wire_field field, pair;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number != 1 || field.type != WIRE_BYTES)
            continue;
        struct wire inner = wire_of_field(&field);
        int inner_r = 0;
        if (!wrapped)
            inner_r = wire_label(receipt, &field);
        else
            while ((inner_r = wire_next(&inner, &pair)) > 0)
                if (pair.number == 1 && pair.type == WIRE_BYTES && wire_label(receipt, &pair) < 0)
                    return -EBADMSG;
        if (inner_r < 0)
            return inner_r;
    }
    return r;
}

static int wire_samples(struct receipt *receipt, const struct wire_field *series,
                        struct error *error)
{
    struct wire wire = wire_of_field(series);
    struct wire_field sample, field;
    int r;
    while ((r = wire_next(&wire, &sample)) > 0) {
        if (sample.number != 2 || sample.type != WIRE_BYTES)
            continue;
        struct wire inner = wire_of_field(&sample);
        bool named = false;
        while ((r = wire_next(&inner, &field)) > 0) {
            named |= field.number == 2 && field.type == WIRE_BYTES && field.length;
            if (field.number == 1 && field.type == WIRE_BYTES &&
                (r = series_profile(receipt, field.data, field.length, error)) < 0)
                return r;
        }
        receipt->unnamed |= !named;
        if (r < 0)
            break;
    }
    return r < 0 ? malformed(error) : 0;
}

int receipt_read_wire(struct receipt *receipt, const void *body, size_t length, struct error *error)
{
    struct wire wire = wire_of(body, length);
    struct wire_field field;
    int r;
    receipt->unnamed = receipt->parca;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number != (receipt->parca ? 2 : 1) || field.type != WIRE_BYTES)
            continue;
        series_begin(receipt);
        if (wire_labels(receipt, &field, receipt->parca) < 0)
            return malformed(error);
        if ((r = wire_samples(receipt, &field, error)) < 0)
            return r;
    }
    if (r < 0)
        return malformed(error);
    /* A profile whose id was in an earlier copy of this message is stored already: the sender
     * repeats it because it got no answer. */
    if (!receipt->unnamed) {
        XXH128_hash_t hash = XXH3_128bits(body, length);
        snprintf(receipt->batch_id, sizeof(receipt->batch_id), "push-%016llx%016llx",
                 (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    }
    return 0;
}

/* ---- the same as JSON ---- */

static int json_pairs(struct receipt *receipt, struct json *json)
{
    struct json_string key, text;
    struct buffer name = {0}, value = {0};
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        name.length = value.length = 0;
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
            struct buffer *to = json_is(&key, "name")    ? &name
                                : json_is(&key, "value") ? &value
                                                         : NULL;
            if (to && (r = json_string(json, &text)) >= 0)
                buffer_add(to, text.data, text.length);
        }
        if (r >= 0 && name.length)
            series_label(receipt, name.data, name.length, value.data ? value.data : "",
                         value.length);
    }
    buffer_release(&name);
    buffer_release(&value);
    return r;
}

/* Parca's labels are in a message of their own. */
static int json_labels(struct receipt *receipt, struct json *json)
{
    struct json_string key;
    if (!receipt->parca)
        return json_pairs(receipt, json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "labels"))
            r = json_pairs(receipt, json);
    return r;
}

/* Profiles are kept until the series' labels are known: either may come first. */
static int json_samples(struct json *json, struct buffer *profiles)
{
    struct json_string key, text;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
            if (!json_is(&key, "rawProfile") && !json_is(&key, "raw_profile"))
                continue;
            if ((r = json_string(json, &text)) < 0)
                break;
            size_t start = profiles->length, length = 0;
            buffer_add(profiles, &length, sizeof(length));
            if (!base64_decode(text.data, text.length, profiles))
                return json_fail(json, "The raw profile is not base64");
            length = profiles->length - start - sizeof(length);
            memcpy(profiles->data + start, &length, sizeof(length));
        }
    }
    return r;
}

static int json_one_series(struct receipt *receipt, struct json *json, struct error *error)
{
    _cleanup_buffer_ struct buffer profiles = {0};
    struct json_string key;
    series_begin(receipt);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "labels"))
            r = json_labels(receipt, json);
        else if (json_is(&key, "samples"))
            r = json_samples(json, &profiles);
    }
    for (size_t at = 0, length; r >= 0 && at < profiles.length; at += length) {
        memcpy(&length, profiles.data + at, sizeof(length));
        at += sizeof(length);
        r = series_profile(receipt, profiles.data + at, length, error);
    }
    return r;
}

int receipt_read_json(struct receipt *receipt, struct source *source, struct error *error)
{
    _cleanup_json_ struct json json;
    struct json_string key;
    json_init(&json, source, error);
    int r = json_object(&json);
    while (r >= 0 && (r = json_next_key(&json, &key)) > 0) {
        if (!json_is(&key, "series"))
            continue;
        r = json_array(&json);
        while (r >= 0 && (r = json_next_element(&json)) > 0)
            r = json_one_series(receipt, &json, error);
    }
    return r < 0 ? r : json_end(&json);
}

static void receive_series(struct http_request *request, struct server *server, bool parca)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    struct http_source *source = NULL;
    const uint8_t *body = NULL;
    size_t length = 0;
    bool json = http_request_is_type(request, "application/json");
    if (!receipt_init(&receipt, request, server))
        return;
    const char *agent = http_request_header(request, "User-Agent");
    receipt.parca = parca;
    /* profilecli uploads files, of which none has one before it. */
    receipt.files = agent && !strncmp(agent, "pyroscope/", strlen("pyroscope/"));
    int r = 0;
    if (json) {
        r = http_source_open(request, ingest_limits(server->ingest).expansion_bytes, &source,
                             &error);
        if (!r)
            r = receipt_read_json(&receipt, http_source(source), &error);
    } else if (http_request_is_type(request, "application/grpc") ||
               http_request_is_type(request, "application/grpc+proto")) {
        r = error_set(&error, -ENOTSUP,
                      "gRPC requires HTTP/2; over HTTP/1.1 use gRPC-Web, Connect "
                      "or plain HTTP.");
    } else {
        r = receipt_body(&receipt, &source, &body, &length, &error);
        if (!r)
            r = receipt_read_wire(&receipt, body, length, &error);
    }
    if (receipt_finish(&receipt, r, &error))
        http_respond_text(request, 200, json ? "application/json" : "application/proto",
                          json ? "{}" : "");
    http_source_close(source);
}

void receive_connect_push(struct http_request *request, void *server)
{
    receive_series(request, server, false);
}

void receive_parca(struct http_request *request, void *server)
{
    receive_series(request, server, true);
}

void receive_coroot(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    struct http_source *source = NULL;
    const uint8_t *body = NULL;
    size_t length = 0;
    if (!receipt_init(&receipt, request, server))
        return;
    for (size_t i = 0; i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        series_label(&receipt, strcmp(name, "service.name") ? name : LABEL_SERVICE_NAME,
                     strlen(strcmp(name, "service.name") ? name : LABEL_SERVICE_NAME), value,
                     strlen(value));
    }
    int r = receipt_body(&receipt, &source, &body, &length, &error);
    if (!r)
        r = series_profile(&receipt, body, length, &error);
    if (receipt_finish(&receipt, r, &error))
        http_respond_text(request, 200, "text/plain", "");
    http_source_close(source);
}
