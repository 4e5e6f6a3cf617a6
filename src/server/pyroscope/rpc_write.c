// SPDX-License-Identifier: Apache-2.0
// Writing answers as protobuf or JSON: see rpc_write.h.

#include "server/pyroscope/rpc_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/wire.h"

static void put_name(struct rpc_writer *writer, const char *name)
{
    if (name)
        json_write_key(&writer->json, name);
}

void rpc_open(struct rpc_writer *writer)
{
    if (writer->is_json)
        json_write_object(&writer->json);
}

void rpc_close(struct rpc_writer *writer)
{
    if (writer->is_json)
        json_write_object_end(&writer->json);
}

size_t rpc_begin(struct rpc_writer *writer, uint32_t number, const char *name)
{
    if (!writer->is_json)
        return wire_begin(writer->out, number);
    put_name(writer, name);
    json_write_object(&writer->json);
    return 0;
}

void rpc_end(struct rpc_writer *writer, size_t mark)
{
    if (writer->is_json)
        json_write_object_end(&writer->json);
    else
        wire_end(writer->out, mark);
}

void rpc_list(struct rpc_writer *writer, const char *name)
{
    if (!writer->is_json)
        return;
    put_name(writer, name);
    json_write_array(&writer->json);
}

void rpc_list_end(struct rpc_writer *writer)
{
    if (writer->is_json)
        json_write_array_end(&writer->json);
}

void rpc_put_bytes(struct rpc_writer *writer, uint32_t number, const char *name, const char *text,
                   size_t length)
{
    if (writer->is_json) {
        put_name(writer, name);
        json_write_bytes(&writer->json, text, length);
    } else if (length || !name) {
        wire_put_bytes(writer->out, number, text, length);
    }
}

void rpc_put_text(struct rpc_writer *writer, uint32_t number, const char *name, const char *text)
{
    rpc_put_bytes(writer, number, name, text, strlen(text));
}

void rpc_put_i64(struct rpc_writer *writer, uint32_t number, const char *name, int64_t value)
{
    char text[24];
    if (!writer->is_json) {
        wire_put_i64(writer->out, number, value);
        return;
    }
    snprintf(text, sizeof(text), "%" PRId64, value);
    put_name(writer, name);
    json_write_text(&writer->json, text);
}

void rpc_put_bool(struct rpc_writer *writer, uint32_t number, const char *name, bool value)
{
    if (!writer->is_json) {
        wire_put_u64(writer->out, number, value);
        return;
    }
    put_name(writer, name);
    json_write_bool(&writer->json, value);
}

void rpc_put_double(struct rpc_writer *writer, uint32_t number, const char *name, double value)
{
    uint64_t bits;
    if (!writer->is_json) {
        memcpy(&bits, &value, sizeof(bits));
        wire_put_fixed64(writer->out, number, bits);
        return;
    }
    put_name(writer, name);
    json_write_digits(&writer->json, value, 17);
}

void rpc_put_doubles(struct rpc_writer *writer, uint32_t number, const char *name,
                     const double *values, size_t count)
{
    if (!writer->is_json) {
        wire_put_bytes(writer->out, number, values, count * sizeof(*values));
        return;
    }
    rpc_list(writer, name);
    for (size_t i = 0; i < count; i++)
        json_write_digits(&writer->json, values[i], 17);
    rpc_list_end(writer);
}

void rpc_put_counts(struct rpc_writer *writer, uint32_t number, const char *name,
                    const uint32_t *values, size_t count)
{
    rpc_list(writer, name);
    size_t mark = writer->is_json ? 0 : wire_begin(writer->out, number);
    for (size_t i = 0; i < count; i++) {
        if (writer->is_json)
            json_write_unsigned(&writer->json, values[i]);
        else
            wire_put_varint(writer->out, values[i]);
    }
    if (!writer->is_json)
        wire_end(writer->out, mark);
    rpc_list_end(writer);
}

void rpc_put_word(struct rpc_writer *writer, uint32_t number, const char *name, unsigned value,
                  const char *word)
{
    if (!writer->is_json) {
        wire_put_u64(writer->out, number, value);
        return;
    }
    put_name(writer, name);
    json_write_text(&writer->json, word);
}
