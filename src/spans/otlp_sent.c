// SPDX-License-Identifier: Apache-2.0
// From a span as it was sent to what is kept of it: its route, and whether it can be true.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "spans/otlp_parts.h"

#define YEAR_NS (365ull * 86400 * 1000000000)

enum span_attribute span_attribute_of(const char *key, size_t length)
{
    /* Old and new names of OpenTelemetry's conventions. */
    static const struct {
        const char *key;
        enum span_attribute attribute;
    } known[] = {{"http.route", SPAN_ATTRIBUTE_ROUTE},
                 {"url.path", SPAN_ATTRIBUTE_PATH},
                 {"http.target", SPAN_ATTRIBUTE_PATH},
                 {"url.full", SPAN_ATTRIBUTE_URL},
                 {"http.url", SPAN_ATTRIBUTE_URL},
                 {"http.request.method", SPAN_ATTRIBUTE_METHOD},
                 {"http.method", SPAN_ATTRIBUTE_METHOD},
                 {"http.response.status_code", SPAN_ATTRIBUTE_CODE},
                 {"http.status_code", SPAN_ATTRIBUTE_CODE},
                 {"rpc.service", SPAN_ATTRIBUTE_RPC_SERVICE},
                 {"rpc.method", SPAN_ATTRIBUTE_RPC_METHOD},
                 {"messaging.destination.name", SPAN_ATTRIBUTE_DESTINATION},
                 {"messaging.destination", SPAN_ATTRIBUTE_DESTINATION},
                 {"service.name", SPAN_ATTRIBUTE_SERVICE}};
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (strlen(known[i].key) == length && !memcmp(known[i].key, key, length))
            return known[i].attribute;
    return SPAN_ATTRIBUTES;
}

void span_text_set(struct span_text *to, const char *text, size_t length)
{
    to->length = MIN(length, (size_t)SPAN_TEXT_MAX);
    while (to->length < length && to->length && ((unsigned char)text[to->length] & 0xc0) == 0x80)
        to->length--;
    memcpy(to->text, text, to->length);
    to->text[to->length] = 0;
}

void span_text_number(struct span_text *to, int64_t number)
{
    to->length = (size_t)snprintf(to->text, sizeof(to->text), "%lld", (long long)number);
}

static uint32_t keep(struct span_batch *batch, const struct span_text *text)
{
    return span_batch_text(batch, text->text, text->length);
}

/* "GET /user/123": names of requests whose instrumentation knows no route. */
static const char *path_in_name(const struct span_text *name)
{
    const char *blank = strchr(name->text, ' ');
    const char *path = blank ? blank + 1 : name->text;
    return *path == '/' ? path : NULL;
}

/* A name with a path in it, as a template. */
static uint32_t keep_name(const struct span_reader *reader, struct span_batch *batch,
                          const struct span_text *name)
{
    char folded[TEMPLATE_BYTES], text[TEMPLATE_BYTES + SPAN_TEXT_MAX];
    const char *path = path_in_name(name);
    if (!path)
        return keep(batch, name);
    template_of(reader->rules, path, strlen(path), folded);
    int length =
        snprintf(text, sizeof(text), "%.*s%s", (int)(path - name->text), name->text, folded);
    return span_batch_text(batch, text, (size_t)MAX(length, 0));
}

/* By what the conventions have for it, the most certain first. */
static uint32_t keep_route(const struct span_reader *reader, const struct span_sent *sent,
                           struct span_batch *batch)
{
    const struct span_text *attributes = sent->attributes;
    const struct span_text *path = &attributes[SPAN_ATTRIBUTE_PATH];
    char text[TEMPLATE_BYTES + 2 * SPAN_TEXT_MAX];
    if (attributes[SPAN_ATTRIBUTE_ROUTE].length)
        return keep(batch, &attributes[SPAN_ATTRIBUTE_ROUTE]);
    if (!path->length)
        path = &attributes[SPAN_ATTRIBUTE_URL];
    const char *named = path_in_name(&sent->name);
    if (attributes[SPAN_ATTRIBUTE_RPC_METHOD].length)
        snprintf(text, sizeof(text), "%s%s%s", attributes[SPAN_ATTRIBUTE_RPC_SERVICE].text,
                 attributes[SPAN_ATTRIBUTE_RPC_SERVICE].length ? "/" : "",
                 attributes[SPAN_ATTRIBUTE_RPC_METHOD].text);
    else if (path->length)
        template_of(reader->rules, path->text, path->length, text);
    else if (attributes[SPAN_ATTRIBUTE_DESTINATION].length)
        return keep(batch, &attributes[SPAN_ATTRIBUTE_DESTINATION]);
    else if (named)
        template_of(reader->rules, named, strlen(named), text);
    else
        return keep(batch, &sent->name);
    return span_batch_text(batch, text, strlen(text));
}

/* NULL: nothing is wrong with it. */
static const char *wrong_with(const struct span_sent *sent)
{
    const struct span *span = &sent->span;
    if (sent->bad_trace || span_id_is_zero(span->trace_id, SPAN_TRACE_BYTES))
        return "its trace id is not 16 bytes, or zero";
    if (sent->bad_span || span_id_is_zero(span->span_id, SPAN_ID_BYTES))
        return "its span id is not 8 bytes, or zero";
    if (sent->bad_parent)
        return "its parent's id is not 8 bytes";
    if ((uint64_t)span->start_ns < YEAR_NS || (uint64_t)span->start_ns > INT64_MAX)
        return "its start is not a time";
    if (sent->end_ns < (uint64_t)span->start_ns || sent->end_ns > INT64_MAX)
        return "it ends before it starts, or has no end";
    return NULL;
}

int span_sent_add(struct span_reader *reader, const struct span_sent *sent,
                  struct span_batch *batch, struct error *error)
{
    const char *wrong = wrong_with(sent);
    if (wrong) {
        if (!reader->invalid++)
            snprintf(reader->first_invalid, sizeof(reader->first_invalid), "%s", wrong);
        return 0;
    }
    if (batch->count == SPANS_PER_PUSH_MAX)
        return error_set(error, -E2BIG, "The push has more than %d spans.", SPANS_PER_PUSH_MAX);
    uint64_t code;
    const struct span_text *code_text = &sent->attributes[SPAN_ATTRIBUTE_CODE];
    struct span span = sent->span;
    span.duration_ns = (int64_t)(sent->end_ns - (uint64_t)span.start_ns);
    if (text_to_u64(code_text->text, code_text->length, &code) && code < 1000)
        span.code = (uint16_t)code;
    span.name = keep_name(reader, batch, &sent->name);
    span.method = keep(batch, &sent->attributes[SPAN_ATTRIBUTE_METHOD]);
    if (span_is_request(&span))
        span.route = keep_route(reader, sent, batch);
    *span_batch_add(batch) = span;
    return source_check_memory(error);
}

void span_batch_set_service(struct span_batch *batch, size_t first, const struct span_text *name)
{
    static const char unknown[] = "unknown_service";
    uint32_t service =
        name->length ? keep(batch, name) : span_batch_text(batch, unknown, sizeof(unknown) - 1);
    for (size_t i = first; i < batch->count; i++)
        batch->list[i].service = service;
}
