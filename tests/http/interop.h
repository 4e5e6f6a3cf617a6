/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.testing.TestService, which gRPC's own test clients call: for peer.c. Of all their fields,
 * those that the cases for servers without credentials and load reports need. */
#pragma once

#include <string.h>

#include "http/server/server.h"
#include "io/wire.h"
#include "routes.h"

#define INTEROP_PATH "/grpc.testing.TestService/"
#define INTEROP_MESSAGE_MAX (4u << 20)

struct interop_request {
    uint64_t response_size, payload_size;
    unsigned status; /* to answer with; 0: OK */
    char message[1024];
};

static inline void interop_parse_status(const struct wire_field *status,
                                        struct interop_request *out)
{
    struct wire wire = wire_of_field(status);
    struct wire_field field;
    while (wire_next(&wire, &field) > 0) {
        if (field.number == 1 && field.type == WIRE_VARINT)
            out->status = (unsigned)field.value;
        else if (field.number == 2 && field.type == WIRE_BYTES)
            snprintf(out->message, sizeof(out->message), "%.*s", (int)field.length,
                     (const char *)field.data);
    }
}

/* A SimpleRequest; of a StreamingInputCallRequest the payload is number 1. */
static inline struct interop_request interop_parse(const void *message, size_t length,
                                                   unsigned payload_number)
{
    struct interop_request out = {0};
    struct wire wire = wire_of(message, length);
    struct wire_field field;
    while (wire_next(&wire, &field) > 0) {
        if (field.number == payload_number && field.type == WIRE_BYTES) {
            struct wire payload = wire_of_field(&field);
            while (wire_next(&payload, &field) > 0)
                if (field.number == 2 && field.type == WIRE_BYTES)
                    out.payload_size += field.length;
        } else if (field.number == 2 && field.type == WIRE_VARINT) {
            out.response_size = field.value;
        } else if (field.number == 7 && field.type == WIRE_BYTES) {
            interop_parse_status(&field, &out);
        }
    }
    return out;
}

static inline void interop_put_payload(struct buffer *out, uint64_t size)
{
    _cleanup_buffer_ struct buffer payload = {0}, body = {0};
    size = MIN(size, (uint64_t)INTEROP_MESSAGE_MAX);
    memset(buffer_reserve(&body, size), 0, size);
    wire_put_bytes(&payload, 2, body.data, size);
    wire_put_bytes(out, 1, payload.data, payload.length);
}

static inline bool interop_fails(struct http_request *request, const struct interop_request *asked)
{
    if (asked->status)
        http_respond_code(request, (enum http_code)(asked->status - 1), "%s", asked->message);
    return asked->status;
}

static inline void interop_empty(struct http_request *request, void *userdata)
{
    struct buffer none = {0};
    (void)userdata;
    http_respond(request, 200, "application/proto", &none);
}

static inline void interop_unary(struct http_request *request, void *userdata)
{
    struct http_source *source = NULL;
    struct error error = {0};
    struct buffer out = {0};
    (void)userdata;
    int r = http_source_open(request, INTEROP_MESSAGE_MAX, &source, &error);
    if (!r)
        r = source_need_all(http_source(source), INTEROP_MESSAGE_MAX, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
    } else {
        const struct source *body = http_source(source);
        struct interop_request asked = interop_parse(source_data(body), source_available(body), 3);
        if (!interop_fails(request, &asked)) {
            interop_put_payload(&out, asked.response_size);
            http_respond(request, 200, "application/proto", &out);
        }
    }
    http_source_close(source);
}

static inline void interop_streaming_input(struct http_request *request, void *userdata)
{
    _cleanup_buffer_ struct buffer message = {0}, out = {0};
    struct error error = {0};
    uint64_t bytes = 0;
    int r;
    (void)userdata;
    while ((r = http_message_read(request, INTEROP_MESSAGE_MAX, &message, &error)) > 0)
        bytes += interop_parse(message.data, message.length, 1).payload_size;
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    wire_put_u64(&out, 1, bytes);
    http_message_write(request, out.data, out.length);
}

/* The answers that one message asks for. */
static inline int interop_answer(struct http_request *request, const struct buffer *message)
{
    struct wire wire = wire_of(message->data, message->length);
    struct wire_field field, inner;
    int r = 0;
    while (!r && wire_next(&wire, &field) > 0) {
        if (field.number != 2 || field.type != WIRE_BYTES)
            continue;
        _cleanup_buffer_ struct buffer out = {0};
        struct wire parameters = wire_of_field(&field);
        uint64_t size = 0, interval_us = 0;
        while (wire_next(&parameters, &inner) > 0) {
            if (inner.number == 1)
                size = inner.value;
            else if (inner.number == 2)
                interval_us = inner.value;
        }
        if (interval_us && !http_message_wait(request, (int)MIN(interval_us / 1000, 10000ull)))
            return -1;
        interop_put_payload(&out, size);
        r = http_message_write(request, out.data, out.length);
    }
    return r;
}

/* Both StreamingOutputCall, which has one message, and FullDuplexCall. */
static inline void interop_streaming_output(struct http_request *request, void *userdata)
{
    _cleanup_buffer_ struct buffer message = {0};
    struct error error = {0};
    int r;
    (void)userdata;
    while ((r = http_message_read(request, INTEROP_MESSAGE_MAX, &message, &error)) > 0) {
        struct interop_request asked = interop_parse(message.data, message.length, 3);
        if (interop_answer(request, &message) || interop_fails(request, &asked))
            return;
    }
    if (r < 0)
        http_respond_failure(request, &error);
    else
        http_message_end(request);
}

#define INTEROP_STREAM (HTTP_ROUTE_RPC | HTTP_ROUTE_MESSAGES)
static const struct http_route interop_routes[] = {
    {"POST", INTEROP_PATH "EmptyCall", HTTP_ROLE_ANY, interop_empty, MIB, HTTP_ROUTE_RPC},
    {"POST", INTEROP_PATH "UnaryCall", HTTP_ROLE_ANY, interop_unary, 4 * MIB, HTTP_ROUTE_RPC},
    {"POST", INTEROP_PATH "StreamingInputCall", HTTP_ROLE_ANY, interop_streaming_input, 4 * MIB,
     INTEROP_STREAM},
    {"POST", INTEROP_PATH "StreamingOutputCall", HTTP_ROLE_ANY, interop_streaming_output, 4 * MIB,
     INTEROP_STREAM},
    {"POST", INTEROP_PATH "FullDuplexCall", HTTP_ROLE_ANY, interop_streaming_output, 4 * MIB,
     INTEROP_STREAM},
};
