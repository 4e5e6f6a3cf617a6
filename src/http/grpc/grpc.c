// SPDX-License-Identifier: Apache-2.0
// gRPC on the wire: see grpc.h.

#include "http/grpc/grpc.h"

#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "base/memory.h"
#include "io/base64.h"
#include "io/wire.h"

#define RETRY_INFO_TYPE "type.googleapis.com/google.rpc.RetryInfo"
#define TIMEOUT_DIGITS_MAX 8
#define DETAILS_BYTES_MAX 8192
#define RETRY_SECONDS_MAX 86400

enum grpc_protocol grpc_protocol_of(const char *content_type, bool *ret_json)
{
    static const struct {
        const char *type;
        enum grpc_protocol protocol;
    } types[] = {
        {"application/grpc-web-text", GRPC_WEB_TEXT},
        {"application/grpc-web", GRPC_WEB},
        {"application/grpc", GRPC_HTTP2},
    };
    *ret_json = false;
    for (size_t i = 0; content_type && i < ARRAY_LENGTH(types); i++) {
        size_t length = strlen(types[i].type);
        if (strncasecmp(content_type, types[i].type, length))
            continue;
        const char *rest = content_type + length;
        size_t rest_length = strcspn(rest, "; \t");
        *ret_json = rest_length == 5 && !strncasecmp(rest, "+json", 5);
        if (!rest_length || *rest == '+')
            return types[i].protocol;
    }
    return GRPC_NONE;
}

void grpc_put_prefix(uint8_t prefix[GRPC_PREFIX_BYTES], unsigned flags, uint32_t length)
{
    prefix[0] = (uint8_t)flags;
    for (int i = 0; i < 4; i++)
        prefix[1 + i] = (uint8_t)(length >> (24 - 8 * i));
}

uint32_t grpc_prefix_length(const uint8_t prefix[GRPC_PREFIX_BYTES])
{
    return (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 | (uint32_t)prefix[3] << 8 |
           prefix[4];
}

int64_t grpc_timeout_ms(const char *text)
{
    static const struct {
        char unit;
        int64_t microseconds;
    } units[] = {{'H', 3600000000ll}, {'M', 60000000}, {'S', 1000000}, {'m', 1000}, {'u', 1}};
    int64_t number = 0;
    size_t digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9'; digits++) {
        if (digits == TIMEOUT_DIGITS_MAX)
            return -1;
        number = number * 10 + (text[digits] - '0');
    }
    if (!digits || !text[digits] || text[digits + 1])
        return -1;
    if (text[digits] == 'n')
        return (number + 999999) / 1000000;
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++)
        if (units[i].unit == text[digits])
            return (number * units[i].microseconds + 999) / 1000;
    return -1;
}

enum http_code grpc_code_of(uint64_t number)
{
    return number >= 1 && number <= HTTP_UNAUTHENTICATED + 1 ? (enum http_code)(number - 1)
                                                             : HTTP_UNKNOWN;
}

void grpc_put_message(struct buffer *out, const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at >= ' ' && *at <= '~' && *at != '%')
            buffer_add_char(out, *at);
        else
            buffer_printf(out, "%%%02X", (unsigned)(uint8_t)*at);
    }
}

void grpc_message_decode(char *text)
{
    char *out = text;
    while (*text) {
        int high = text[0] == '%' ? hex_digit(text[1]) : -1;
        int low = high >= 0 ? hex_digit(text[2]) : -1;
        if (low >= 0 && (high || low)) {
            *out++ = (char)(high << 4 | low);
            text += 3;
        } else {
            *out++ = *text++;
        }
    }
    *out = 0;
}

/* ---- details ---- */

void grpc_put_details(struct buffer *out, enum http_code code, const char *message,
                      int64_t retry_ms)
{
    _cleanup_buffer_ struct buffer status = {0}, any = {0}, info = {0}, duration = {0}, text = {0};
    wire_put_u64(&status, 1, grpc_status_of(code));
    wire_put_bytes(&status, 2, message, strlen(message));
    if (retry_ms >= 0) {
        if (retry_ms / 1000)
            wire_put_u64(&duration, 1, (uint64_t)retry_ms / 1000);
        if (retry_ms % 1000)
            wire_put_u64(&duration, 2, (uint64_t)retry_ms % 1000 * 1000000);
        wire_put_bytes(&info, 1, duration.data, duration.length);
        wire_put_bytes(&any, 1, RETRY_INFO_TYPE, strlen(RETRY_INFO_TYPE));
        wire_put_bytes(&any, 2, info.data, info.length);
        wire_put_bytes(&status, 3, any.data, any.length);
    }
    base64_encode(status.data, status.length, &text);
    while (text.length && text.data[text.length - 1] == '=')
        text.length--;
    buffer_add(out, text.data, text.length);
}

/* The last field of that number and type, or one without data. */
static struct wire_field find_field(struct wire wire, uint32_t number, enum wire_type type)
{
    struct wire_field field, found = {0};
    while (wire_next(&wire, &field) > 0)
        if (field.number == number && field.type == type)
            found = field;
    return found;
}

static int64_t duration_ms(const struct wire_field *info)
{
    struct wire_field duration = find_field(wire_of_field(info), 1, WIRE_BYTES);
    if (!duration.data)
        return -1;
    uint64_t seconds = find_field(wire_of_field(&duration), 1, WIRE_VARINT).value;
    uint64_t nanoseconds = find_field(wire_of_field(&duration), 2, WIRE_VARINT).value;
    if (seconds > RETRY_SECONDS_MAX || nanoseconds >= 1000000000)
        return -1;
    return (int64_t)(seconds * 1000 + (nanoseconds + 999999) / 1000000);
}

int64_t grpc_retry_ms(const char *details, size_t length)
{
    _cleanup_buffer_ struct buffer status = {0};
    struct wire_field any;
    if (length > DETAILS_BYTES_MAX || !base64_decode(details, length, &status))
        return -1;
    struct wire wire = wire_of(status.data, status.length);
    while (wire_next(&wire, &any) > 0) {
        if (any.number != 3 || any.type != WIRE_BYTES)
            continue;
        struct wire_field type = find_field(wire_of_field(&any), 1, WIRE_BYTES);
        struct wire_field info = find_field(wire_of_field(&any), 2, WIRE_BYTES);
        if (info.data && type.length == strlen(RETRY_INFO_TYPE) &&
            !memcmp(type.data, RETRY_INFO_TYPE, type.length))
            return duration_ms(&info);
    }
    return -1;
}
