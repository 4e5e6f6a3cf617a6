// SPDX-License-Identifier: Apache-2.0
// Takes what is sent to Pyroscope and Parca: /ingest, push.v1 and WriteRaw.

#include <string.h>

#include "base/text.h"
#include "format/json.h"
#include "format/wire.h"
#include "query/query.h"
#include "server/receive.h"

/* ---- /ingest ---- */

static int ingest_times(struct receipt *receipt, struct error *error)
{
    const char *from = http_request_query(receipt->request, "from");
    const char *until = http_request_query(receipt->request, "until");
    int64_t now = receipt->source.received_ns;
    int r = 0;
    if (from && *from)
        r = query_time(from, now, &receipt->source.from_ns, error);
    if (!r && until && *until)
        r = query_time(until, now, &receipt->source.to_ns, error);
    return r;
}

static int ingest_format(const char *name, const struct format **ret_format, bool *ret_counts,
                         struct error *error)
{
    *ret_counts = false;
    *ret_format = NULL;
    if (!*name || !strcmp(name, "pprof")) {
        *ret_format = &format_pprof;
    } else if (!strcmp(name, "jfr")) {
        *ret_format = &format_jfr;
    } else if (!strcmp(name, "groups") || !strcmp(name, "lines")) {
        *ret_format = &format_folded;
        *ret_counts = true;
    } else if (!strcmp(name, "speedscope")) {
        *ret_format = &format_speedscope;
    } else {
        return error_set(error, -ENOTSUP,
                         "The format \"%.40s\" isn't taken; send pprof, jfr, groups, lines or "
                         "speedscope.",
                         name);
    }
    return 0;
}

static int ingest_form(struct receipt *receipt, const void *body, size_t length,
                       const struct format *format, struct error *error)
{
    struct multipart parts;
    struct multipart_part part;
    int r = multipart_init(&parts, http_request_header(receipt->request, "Content-Type"), body,
                           length, error);
    bool found = false;
    while (!r && (r = multipart_next(&parts, &part, error)) > 0) {
        r = 0;
        if (!strcmp(part.name, "prev_profile"))
            r = error_set(error, -ENOTSUP,
                          "Profiles with a previous one are of clients that are "
                          "too old; send deltas.");
        else if (!strcmp(part.name, "profile") || !strcmp(part.name, "jfr")) {
            found = true;
            r = receipt_read_memory(receipt, part.data, part.length, format, error);
        }
    }
    if (!r && !found)
        r = error_set(error, -EBADMSG, "The form has no part \"profile\" or \"jfr\".");
    return r;
}

/* One stack per line, each a sample: what folded is without its count. */
static void lines_to_folded(const char *text, size_t length, struct buffer *out)
{
    for (const char *end = text + length; text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text);
        size_t shown = line - (line && text[line - 1] == '\r');
        if (shown) {
            buffer_add(out, text, shown);
            buffer_add_text(out, " 1\n");
        }
        text += line + (newline != NULL);
    }
}

static int read_ingest(struct receipt *receipt, struct http_source **source, struct error *error)
{
    struct http_request *request = receipt->request;
    const char *given_name = http_request_query(request, "name");
    const char *format_name = http_request_query(request, "format");
    const char *rate_text = http_request_query(request, "sampleRate");
    const char *spy = http_request_query(request, "spyName");
    bool form = http_request_is_type(request, "multipart/form-data"), counts;
    const struct format *format;
    uint64_t rate = 0;
    if (!given_name)
        return error_set(error, -EINVAL,
                         "The parameter name is missing: name=service{label=value}.");
    /* Without a format it is a form's pprof, or what was there first: folded stacks. */
    if (!format_name || !*format_name)
        format_name = form ? "pprof" : "groups";
    int r = ingest_format(format_name, &format, &counts, error);
    if (!r)
        r = ingest_parse_name(given_name, &receipt->labels, error);
    if (!r)
        r = ingest_times(receipt, error);
    if (r < 0)
        return r;
    if (spy && *spy)
        labels_set(&receipt->labels, "pyroscope_spy", spy);
    if (rate_text)
        text_to_u64(rate_text, strlen(rate_text), &rate);
    _cleanup_free_ char *application =
        memory_strdup(labels_get(&receipt->labels, LABEL_SERVICE_NAME));
    if (counts || format == &format_speedscope) {
        receipt->source.type = ingest_suffix_type(application, rate, &receipt->source.factor);
        labels_set(&receipt->labels, LABEL_SERVICE_NAME, application);
        if (!counts) /* speedscope's values are in units already */
            receipt->source.type = NULL;
    }
    const uint8_t *body = NULL;
    size_t length = 0;
    if ((r = receipt_body(receipt, source, &body, &length, error)) < 0)
        return r;
    if (form)
        return ingest_form(receipt, body, length, format, error);
    if (strcmp(format_name, "lines"))
        return receipt_read_memory(receipt, body, length, format, error);
    _cleanup_buffer_ struct buffer folded = {0};
    lines_to_folded((const char *)body, length, &folded);
    return receipt_read_memory(receipt, folded.data, folded.length, format, error);
}

void receive_ingest(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    struct http_source *source = NULL;
    receipt_init(&receipt, request, server);
    int r = read_ingest(&receipt, &source, &error);
    if (receipt_finish(&receipt, r, &error))
        http_respond_text(request, 200, "text/plain", "");
    http_source_close(source);
}

/* ---- series of raw profiles ---- */

static void series_begin(struct receipt *receipt)
{
    labels_clear(&receipt->labels);
    receipt->source.name = NULL;
}

static void series_label(struct receipt *receipt, const char *name, size_t name_length,
                         const char *value, size_t value_length)
{
    if (name_length >= 2 && !memcmp(name, "__", 2) &&
        !(name_length == 8 && !memcmp(name, "__name__", 8)))
        return;
    labels_set_n(&receipt->labels, name, name_length, value, value_length);
}

/* The name is part of the type, no label of its own. */
static int series_profile(struct receipt *receipt, const void *data, size_t length,
                          struct error *error)
{
    struct labels all = {0}, *labels = &receipt->labels;
    labels_copy(&all, labels);
    receipt->source.name = labels_get(&all, "__name__");
    labels_remove(labels, "__name__");
    int r = receipt_read_memory(receipt, data, length, NULL, error);
    labels_copy(labels, &all);
    receipt->source.name = NULL;
    labels_release(&all);
    return r;
}

static int malformed(struct error *error)
{
    return error_set(error, -EBADMSG, "The request is no such protobuf message.");
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
        while ((r = wire_next(&inner, &field)) > 0)
            if (field.number == 1 && field.type == WIRE_BYTES &&
                (r = series_profile(receipt, field.data, field.length, error)) < 0)
                return r;
        if (r < 0)
            break;
    }
    return r < 0 ? malformed(error) : 0;
}

static int read_wire_series(struct receipt *receipt, const void *body, size_t length, bool parca,
                            struct error *error)
{
    struct wire wire = wire_of(body, length);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number != (parca ? 2 : 1) || field.type != WIRE_BYTES)
            continue;
        series_begin(receipt);
        if (wire_labels(receipt, &field, parca) < 0)
            return malformed(error);
        if ((r = wire_samples(receipt, &field, error)) < 0)
            return r;
    }
    return r < 0 ? malformed(error) : 0;
}

/* ---- the same as JSON ---- */

static int json_labels(struct receipt *receipt, struct json *json)
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

static int read_json_series(struct receipt *receipt, struct source *source, struct error *error)
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
    receipt_init(&receipt, request, server);
    int r = 0;
    if (json) {
        r = http_source_open(request, server->ingest.limits.expansion_bytes, &source, &error);
        if (!r)
            r = read_json_series(&receipt, http_source(source), &error);
    } else if (http_request_is_type(request, "application/grpc") ||
               http_request_is_type(request, "application/grpc+proto")) {
        r = error_set(&error, -ENOTSUP, "gRPC isn't served; use Connect or plain HTTP.");
    } else {
        r = receipt_body(&receipt, &source, &body, &length, &error);
        if (!r)
            r = read_wire_series(&receipt, body, length, parca, &error);
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
