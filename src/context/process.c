// SPDX-License-Identifier: Apache-2.0
// Reading what a process publishes about itself: see process.h.

#include "context/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/wire.h"

#define SIGNATURE "OTEL_CTX"
#define VERSION_DEVELOPMENT 1
#define VERSION 2

void process_context_release(struct process_context *context)
{
    arena_release(&context->arena);
    *context = (struct process_context){0};
}

/* ---- the message ---- */

/* An AnyValue: a text, a number, or an array of texts. */
struct value {
    const uint8_t *text;
    size_t length;
    uint64_t number;
    struct wire array;
    bool has_text, has_number, has_array;
};

static bool parse_value(struct wire wire, struct value *ret_value)
{
    struct wire_field field;
    struct value value = {0};
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number == 1 && field.type == WIRE_BYTES) {
            value.text = field.data;
            value.length = field.length;
            value.has_text = true;
        } else if ((field.number == 2 || field.number == 3) && field.type == WIRE_VARINT) {
            value.number = field.value;
            value.has_number = true;
        } else if (field.number == 5 && field.type == WIRE_BYTES) {
            value.array = wire_of_field(&field);
            value.has_array = true;
        }
    }
    *ret_value = value;
    return r == 0;
}

/* A text of ours; NULL: it is too long, or none that can be shown. */
static const char *keep_text(struct process_context *context, const uint8_t *text, size_t length)
{
    if (!text || length > PROCESS_CONTEXT_TEXT_MAX || memchr(text, 0, length) ||
        !utf8_valid((const char *)text, length))
        return NULL;
    char *copy = arena_alloc(&context->arena, length + 1);
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static bool parse_keys(struct wire array, struct process_context *context)
{
    struct wire_field field;
    struct value value;
    int r;
    while ((r = wire_next(&array, &field)) > 0) {
        if (field.number != 1 || field.type != WIRE_BYTES)
            continue;
        if (!parse_value(wire_of_field(&field), &value))
            return false;
        if (context->key_count == PROCESS_CONTEXT_KEYS_MAX) {
            context->left_out++;
            continue;
        }
        /* Each has its number: one that can't be shown keeps its place. */
        const char *key = value.has_text ? keep_text(context, value.text, value.length) : NULL;
        context->left_out += !key;
        context->keys[context->key_count++] = key ? key : "";
    }
    return r == 0;
}

struct pair {
    const uint8_t *key;
    size_t key_length;
    struct value value;
};

static bool parse_pair(struct wire wire, struct pair *ret_pair)
{
    struct wire_field field;
    struct pair pair = {0};
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1) {
            pair.key = field.data;
            pair.key_length = field.length;
        } else if (field.number == 2 && !parse_value(wire_of_field(&field), &pair.value)) {
            return false;
        }
    }
    *ret_pair = pair;
    return r == 0;
}

static bool is_key(const struct pair *pair, const char *name)
{
    return pair->key_length == strlen(name) && !memcmp(pair->key, name, pair->key_length);
}

static bool is_value(const struct pair *pair, const char *text)
{
    return pair->value.has_text && pair->value.length == strlen(text) &&
           !memcmp(pair->value.text, text, pair->value.length);
}

static enum process_schema schema_of(const struct pair *pair)
{
    return is_value(pair, "tlsdesc_v1_dev") || is_value(pair, "tls_v1") ? PROCESS_SCHEMA_THREADS
           : is_value(pair, "go_pprof_labels_v1")                       ? PROCESS_SCHEMA_GO
                                                                        : PROCESS_SCHEMA_UNKNOWN;
}

/* Fields that aren't about the resource. */
static bool take_reference(const struct pair *pair, struct process_context *context)
{
    if (is_key(pair, "threadlocal.schema_version"))
        context->schema = schema_of(pair);
    else if (is_key(pair, "threadlocal.attribute_key_map") && pair->value.has_array)
        return parse_keys(pair->value.array, context);
    else if (is_key(pair, "assay.requests") && pair->value.has_number)
        context->requests = pair->value.number;
    return true;
}

static void take_attribute(const struct pair *pair, struct process_context *context)
{
    char number[24];
    const struct value *value = &pair->value;
    const char *key = keep_text(context, pair->key, pair->key_length), *text = NULL;
    if (value->has_text) {
        text = keep_text(context, value->text, value->length);
    } else if (value->has_number) {
        int length = snprintf(number, sizeof(number), "%" PRId64, (int64_t)value->number);
        text = keep_text(context, (const uint8_t *)number, (size_t)length);
    }
    if (!key || !*key || !text || context->attribute_count == PROCESS_CONTEXT_ATTRIBUTES_MAX) {
        context->left_out++;
        return;
    }
    context->attributes[context->attribute_count++] =
        (struct process_attribute){.key = key, .value = text};
}

static bool parse_resource(struct wire wire, struct process_context *context)
{
    struct wire_field field;
    struct pair pair;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number != 1 || field.type != WIRE_BYTES)
            continue;
        if (!parse_pair(wire_of_field(&field), &pair))
            return false;
        take_attribute(&pair, context);
    }
    return r == 0;
}

bool process_context_parse(const void *bytes, size_t length, struct process_context *ret_context)
{
    struct wire wire = wire_of(bytes, length);
    struct wire_field field;
    struct pair pair;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1 && !parse_resource(wire_of_field(&field), ret_context))
            return false;
        if (field.number == 2 &&
            (!parse_pair(wire_of_field(&field), &pair) || !take_reference(&pair, ret_context)))
            return false;
    }
    return r == 0;
}

const char *process_context_attribute(const struct process_context *context, const char *key)
{
    for (size_t i = context->attribute_count; i-- > 0;)
        if (!strcmp(context->attributes[i].key, key))
            return context->attributes[i].value;
    return NULL;
}

/* ---- the mapping ---- */

struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_bytes;
    uint64_t published_ns;
    uint64_t payload;
};

enum process_context_read process_context_update(const struct runtime_memory *memory,
                                                 uint64_t address, struct process_context *context)
{
    struct header header, after;
    if (!runtime_read(memory, address, &header, sizeof(header)) ||
        memcmp(header.signature, SIGNATURE, sizeof(header.signature)) != 0 ||
        (header.version != VERSION && header.version != VERSION_DEVELOPMENT))
        return PROCESS_CONTEXT_INVALID;
    if (!header.published_ns)
        return PROCESS_CONTEXT_CHANGING;
    if (header.published_ns == context->published_ns)
        return PROCESS_CONTEXT_SAME;
    if (header.payload_bytes > PROCESS_CONTEXT_BYTES_MAX)
        return PROCESS_CONTEXT_INVALID;
    _cleanup_free_ uint8_t *payload = memory_alloc(header.payload_bytes + 1);
    bool whole = runtime_read(memory, header.payload, payload, header.payload_bytes);
    if (!runtime_read(memory, address, &after, sizeof(after)) ||
        after.published_ns != header.published_ns || after.payload != header.payload)
        return PROCESS_CONTEXT_CHANGING;
    struct process_context read = {0};
    if (!whole || !process_context_parse(payload, header.payload_bytes, &read)) {
        process_context_release(&read);
        return PROCESS_CONTEXT_INVALID;
    }
    read.published_ns = header.published_ns;
    process_context_release(context);
    *context = read;
    return PROCESS_CONTEXT_READ;
}

bool process_context_of_mapping(const char *line, uint64_t *ret_address)
{
    static const char *const names[] = {"/memfd:" SIGNATURE, "[anon:" SIGNATURE "]",
                                        "[anon_shmem:" SIGNATURE "]"};
    uint64_t start;
    int name = 0;
    if (!strstr(line, SIGNATURE)) /* nearly all of them */
        return false;
    if (sscanf(line, "%" SCNx64 "-%*x %*4s %*x %*x:%*x %*u %n", &start, &name) < 1 || !name)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (!strncmp(line + name, names[i], strlen(names[i]))) {
            *ret_address = start;
            return true;
        }
    return false;
}
