/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC on the wire, without a transport: content types, message prefixes, timeouts, and how a
 * status is written into headers. Shared by the server, which takes calls, and the agent, which
 * makes them. docs/api.md lists what is spoken.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "http/status.h"

/* Before each message: a flag byte, and the length in four bytes, big end first. */
#define GRPC_PREFIX_BYTES 5
#define GRPC_COMPRESSED 1u
#define GRPC_WEB_TRAILERS 0x80u

enum grpc_protocol {
    GRPC_NONE, /* not gRPC: plain HTTP, or Connect */
    GRPC_HTTP2,
    GRPC_WEB,      /* trailers in the body, so that HTTP/1.1 carries it */
    GRPC_WEB_TEXT, /* the same as base64: recognised, not supported */
};

/* Protocol of a Content-Type; *ret_json: messages are JSON instead of protobuf. NULL is none. */
enum grpc_protocol grpc_protocol_of(const char *content_type, bool *ret_json);

void grpc_put_prefix(uint8_t prefix[GRPC_PREFIX_BYTES], unsigned flags, uint32_t length);
uint32_t grpc_prefix_length(const uint8_t prefix[GRPC_PREFIX_BYTES]);

/* Milliseconds of a grpc-timeout ("100m", "5S"), rounded up; -1: malformed. */
int64_t grpc_timeout_ms(const char *text);

/* The number of a code: 0 is OK, so all others are one more than their place in the enum. */
static inline unsigned grpc_status_of(enum http_code code)
{
    return (unsigned)code + 1;
}
/* The code of a number other than 0; HTTP_UNKNOWN for numbers without a code. */
enum http_code grpc_code_of(uint64_t number);

/* A status text as grpc-message has it: bytes that are not printable ASCII, and %, become %XX.
 * Appended. grpc_message_decode() undoes it in place. */
void grpc_put_message(struct buffer *out, const char *text);
void grpc_message_decode(char *text);

/* A google.rpc.Status as grpc-status-details-bin has it, base64 without padding. `retry_ms` is
 * sent as RetryInfo; -1: none. */
void grpc_put_details(struct buffer *out, enum http_code code, const char *message,
                      int64_t retry_ms);
/* Milliseconds of the RetryInfo in such a header; -1: none, or malformed. */
int64_t grpc_retry_ms(const char *details, size_t length);
