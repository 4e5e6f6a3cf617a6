// SPDX-License-Identifier: Apache-2.0
// The schema of an Arrow stream: what each column holds, and which of them have dictionaries.

#include <string.h>

#include "base/memory.h"
#include "io/arrow/internal.h"

enum schema_fields { SCHEMA_ENDIANNESS, SCHEMA_FIELDS };
enum field_fields {
    FIELD_NAME,
    FIELD_NULLABLE,
    FIELD_TYPE,
    FIELD_DETAILS,
    FIELD_DICTIONARY,
    FIELD_CHILDREN
};
enum dictionary_fields { DICTIONARY_ID, DICTIONARY_INDEX };
enum integer_fields { INTEGER_BITS, INTEGER_SIGNED };

/* Types that the metadata names. */
enum arrow_type {
    TYPE_NULL = 1,
    TYPE_INTEGER,
    TYPE_FLOAT,
    TYPE_BINARY,
    TYPE_TEXT,
    TYPE_BOOL,
    TYPE_DECIMAL,
    TYPE_DATE,
    TYPE_TIME,
    TYPE_TIMESTAMP,
    TYPE_INTERVAL,
    TYPE_LIST,
    TYPE_STRUCT,
    TYPE_UNION,
    TYPE_FIXED,
    TYPE_FIXED_LIST,
    TYPE_MAP,
    TYPE_DURATION,
    TYPE_LARGE_BINARY,
    TYPE_LARGE_TEXT,
    TYPE_LARGE_LIST,
    TYPE_RUNS,
    TYPE_BINARY_VIEW,
    TYPE_TEXT_VIEW,
    TYPE_LIST_VIEW,
    TYPE_LARGE_LIST_VIEW,
};

static bool is_width(unsigned width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

/* False: a width that can't be, or a type whose layout isn't known here. */
static bool set_kind(struct arrow_field *field, unsigned type, const struct flat_table *details)
{
    switch (type) {
    case TYPE_NULL:
        field->kind = ARROW_NULL;
        return true;
    case TYPE_BOOL:
        field->kind = ARROW_BOOL;
        return true;
    case TYPE_INTEGER:
        field->kind = ARROW_INTEGER;
        field->width = (unsigned)flat_number(details, INTEGER_BITS, 4, 0) / 8;
        field->is_signed = flat_number(details, INTEGER_SIGNED, 1, 0);
        return is_width(field->width);
    case TYPE_TIMESTAMP:
    case TYPE_DURATION:
        field->kind = ARROW_INTEGER;
        field->width = 8;
        field->is_signed = true;
        return true;
    case TYPE_FLOAT:
        field->kind = ARROW_FIXED;
        field->width = 2u << (flat_number(details, 0, 2, 0) & 3);
        return true;
    case TYPE_FIXED:
        field->kind = ARROW_FIXED;
        field->width = (unsigned)flat_number(details, 0, 4, 0);
        return field->width && field->width <= 65536;
    case TYPE_BINARY:
    case TYPE_TEXT:
    case TYPE_LARGE_BINARY:
    case TYPE_LARGE_TEXT:
        field->kind = ARROW_TEXT;
        field->width = type >= TYPE_LARGE_BINARY ? 8 : 4;
        return true;
    case TYPE_BINARY_VIEW:
    case TYPE_TEXT_VIEW:
        field->kind = ARROW_TEXT_VIEW;
        return true;
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_LARGE_LIST:
        field->kind = ARROW_LIST;
        field->width = type == TYPE_LARGE_LIST ? 8 : 4;
        return field->child_count == 1;
    case TYPE_LIST_VIEW:
    case TYPE_LARGE_LIST_VIEW:
        field->kind = ARROW_LIST_VIEW;
        field->width = type == TYPE_LARGE_LIST_VIEW ? 8 : 4;
        return field->child_count == 1;
    case TYPE_FIXED_LIST:
        field->kind = ARROW_FIXED_LIST;
        field->width = (unsigned)flat_number(details, 0, 4, 0);
        return field->child_count == 1 && field->width <= 65536;
    case TYPE_STRUCT:
        field->kind = ARROW_STRUCT;
        return true;
    case TYPE_RUNS:
        field->kind = ARROW_RUNS;
        return field->child_count == 2;
    default:
        return false;
    }
}

struct arrow_dictionary *arrow_find_dictionary(struct arrow_stream *stream, int64_t id)
{
    for (size_t i = 0; i < stream->dictionary_count; i++)
        if (stream->dictionaries[i].id == id)
            return &stream->dictionaries[i];
    return NULL;
}

/* The field itself becomes an index; what it would be without is the dictionary's. */
static bool set_dictionary(struct arrow_stream *stream, struct arrow_field *field,
                           const struct flat_table *encoding)
{
    struct flat_table index;
    struct arrow_field *values = arena_alloc(&stream->arena, sizeof(*values));
    *values = *field;
    field->has_dictionary = true;
    field->dictionary = flat_number(encoding, DICTIONARY_ID, 8, 0);
    field->index_width = 4;
    field->index_is_signed = true;
    if (flat_child(encoding, DICTIONARY_INDEX, &index)) {
        field->index_width = (unsigned)flat_number(&index, INTEGER_BITS, 4, 0) / 8;
        field->index_is_signed = flat_number(&index, INTEGER_SIGNED, 1, 0);
    }
    if (arrow_find_dictionary(stream, field->dictionary))
        return is_width(field->index_width);
    array_reserve(stream->dictionaries, stream->dictionary_capacity, stream->dictionary_count + 1);
    stream->dictionaries[stream->dictionary_count++] =
        (struct arrow_dictionary){.field = values, .id = field->dictionary};
    return is_width(field->index_width);
}

static int read_field(struct arrow_stream *stream, const struct flat_table *table, unsigned depth,
                      struct arrow_field *field, struct error *error);

static int read_children(struct arrow_stream *stream, const struct flat_vector *children,
                         unsigned depth, struct arrow_field *field, struct error *error)
{
    if (depth == ARROW_DEPTH_MAX || children->count > ARROW_FIELDS_MAX - stream->field_count)
        return error_set(
            error, -E2BIG,
            "The Arrow schema has more than %d fields, or is nested more than %d deep.",
            ARROW_FIELDS_MAX, ARROW_DEPTH_MAX);
    stream->field_count += (unsigned)children->count;
    field->child_count = (unsigned)children->count;
    field->children = arena_alloc(&stream->arena, (children->count + 1) * sizeof(*field->children));
    for (size_t i = 0; i < children->count; i++) {
        struct flat_table child;
        if (!flat_element_table(children, i, &child))
            return arrow_malformed(error);
        int r = read_field(stream, &child, depth + 1, &field->children[i], error);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_field(struct arrow_stream *stream, const struct flat_table *table, unsigned depth,
                      struct arrow_field *field, struct error *error)
{
    struct flat_table details, encoding;
    struct flat_vector children = flat_vector(table, FIELD_CHILDREN, 4);
    unsigned type = (unsigned)flat_number(table, FIELD_TYPE, 1, 0);
    *field = (struct arrow_field){0};
    field->name = flat_text(table, FIELD_NAME, &field->name_length);
    if (!flat_child(table, FIELD_DETAILS, &details))
        return arrow_malformed(error);
    int r = read_children(stream, &children, depth, field, error);
    if (r < 0)
        return r;
    if (!set_kind(field, type, &details))
        return error_set(error, -ENOTSUP,
                         "The Arrow column \"%.*s\" has a type that is not supported (%u).",
                         (int)MIN(field->name_length, (size_t)60), field->name, type);
    if (flat_child(table, FIELD_DICTIONARY, &encoding) && !set_dictionary(stream, field, &encoding))
        return arrow_malformed(error);
    return 0;
}

int arrow_read_schema(struct arrow_stream *stream, const struct flat_table *schema,
                      struct error *error)
{
    struct flat_vector fields = flat_vector(schema, SCHEMA_FIELDS, 4);
    if (flat_number(schema, SCHEMA_ENDIANNESS, 2, 0))
        return error_set(error, -ENOTSUP, "Arrow data in big-endian order is not supported.");
    stream->schema = (struct arrow_field){.kind = ARROW_STRUCT, .name = ""};
    return read_children(stream, &fields, 0, &stream->schema, error);
}
