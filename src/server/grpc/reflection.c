// SPDX-License-Identifier: Apache-2.0
// gRPC's server reflection: grpcurl and others learn the services and the types of their messages.
// It reveals no data, so it needs no token, like the API's document.

#include <string.h>

#include "base/memory.h"
#include "io/wire.h"
#include "server/grpc/descriptors.h"
#include "server/grpc/services.h"

#define REQUEST_BYTES_MAX (4u << 10)
#define REQUESTS_MAX 1000 /* of one call */
#define NOT_FOUND 5
#define UNIMPLEMENTED 12

enum { BY_FILE_NAME = 3, BY_SYMBOL = 4, BY_EXTENSION = 5, EXTENSIONS_OF = 6, LIST_SERVICES = 7 };
enum { ANSWER_FILES = 4, ANSWER_EXTENSIONS = 5, ANSWER_SERVICES = 6, ANSWER_ERROR = 7 };

static bool is_text(const struct wire_field *field, const char *text)
{
    return field->length == strlen(text) && !memcmp(field->data, text, field->length);
}

static bool has_name(const struct descriptor_file *file, const struct wire_field *name)
{
    for (const char *const *at = file->names; *at; at++)
        if (is_text(name, *at))
            return true;
    return false;
}

static void put_message(struct buffer *out, uint32_t number, const struct buffer *message)
{
    wire_put_bytes(out, number, message->data, message->length);
}

static void put_error(struct buffer *out, unsigned code, const char *message)
{
    _cleanup_buffer_ struct buffer error = {0};
    wire_put_u64(&error, 1, code);
    wire_put_bytes(&error, 2, message, strlen(message));
    put_message(out, ANSWER_ERROR, &error);
}

/* The file and what it needs. */
static void put_files(struct buffer *out, const struct descriptor_file *file)
{
    _cleanup_buffer_ struct buffer files = {0};
    wire_put_bytes(&files, 1, file->bytes, file->length);
    for (const unsigned char *at = file->needs; *at != 255; at++)
        wire_put_bytes(&files, 1, descriptor_files[*at].bytes, descriptor_files[*at].length);
    put_message(out, ANSWER_FILES, &files);
}

static void put_services(struct buffer *out)
{
    _cleanup_buffer_ struct buffer list = {0};
    for (unsigned long i = 0; i < descriptor_file_count; i++)
        for (const char *const *at = descriptor_files[i].services; *at; at++) {
            _cleanup_buffer_ struct buffer service = {0};
            wire_put_bytes(&service, 1, *at, strlen(*at));
            put_message(&list, 1, &service);
        }
    put_message(out, ANSWER_SERVICES, &list);
}

static void find_file(struct buffer *out, const struct wire_field *asked, bool by_name)
{
    for (unsigned long i = 0; i < descriptor_file_count; i++) {
        const struct descriptor_file *file = &descriptor_files[i];
        if (by_name ? is_text(asked, file->name) : has_name(file, asked)) {
            put_files(out, file);
            return;
        }
    }
    put_error(out, NOT_FOUND, by_name ? "Unknown file." : "Unknown symbol.");
}

static void put_no_extensions(struct buffer *out, const struct wire_field *asked)
{
    _cleanup_buffer_ struct buffer none = {0};
    wire_put_bytes(&none, 1, asked->data, asked->length);
    put_message(out, ANSWER_EXTENSIONS, &none);
}

void grpc_reflection_answer(const void *request, size_t length, struct buffer *out)
{
    struct wire wire = wire_of(request, length);
    struct wire_field field, asked = {0};
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.type == WIRE_BYTES && field.number == 1)
            wire_put_bytes(out, 1, field.data, field.length);
        else if (field.type == WIRE_BYTES)
            asked = field;
    wire_put_bytes(out, 2, request, length);
    if (r < 0)
        asked.number = 0;
    switch (asked.number) {
    case BY_FILE_NAME:
    case BY_SYMBOL:
        find_file(out, &asked, asked.number == BY_FILE_NAME);
        break;
    case BY_EXTENSION:
        put_error(out, NOT_FOUND, "No message has extensions.");
        break;
    case EXTENSIONS_OF:
        put_no_extensions(out, &asked);
        break;
    case LIST_SERVICES:
        put_services(out);
        break;
    default:
        put_error(out, UNIMPLEMENTED, "Unknown request.");
    }
}

void grpc_reflection(struct http_request *request, void *server)
{
    _cleanup_buffer_ struct buffer message = {0}, out = {0};
    struct error error = {0};
    int r = 0;
    (void)server;
    if (!http_request_is_grpc(request)) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Reflection requires gRPC.");
        return;
    }
    for (unsigned i = 0; i < REQUESTS_MAX; i++) {
        r = http_message_read(request, REQUEST_BYTES_MAX, &message, &error);
        if (r <= 0)
            break;
        out.length = 0;
        grpc_reflection_answer(message.data, message.length, &out);
        r = http_message_write(request, out.data, out.length);
        if (r == -EAGAIN)
            error_set(&error, r, "Too many streamed answers are in progress; try again later.");
        if (r < 0)
            break;
    }
    if (r < 0 && r != -ECANCELED)
        http_respond_failure(request, &error);
    else if (!r)
        http_message_end(request);
}
