// SPDX-License-Identifier: Apache-2.0
// A pprof message as protobuf's JSON: 64-bit numbers are texts, fields that have no value are left
// out. Tables say which fields there are; how deep messages nest is up to the tables.

#include "base/text.h"
#include "io/wire.h"
#include "server/pyroscope/querier.h"

enum kind { SIGNED, UNSIGNED, BOOLEAN, TEXT, MESSAGE };

struct field {
    unsigned number;
    const char *name;
    enum kind kind;
    bool repeated;
    const struct field *fields; /* of messages */
};

static const struct field value_type[] = {
    {1, "type", SIGNED, false}, {2, "unit", SIGNED, false}, {0}};
static const struct field label[] = {{1, "key", SIGNED, false},
                                     {2, "str", SIGNED, false},
                                     {3, "num", SIGNED, false},
                                     {4, "numUnit", SIGNED, false},
                                     {0}};
static const struct field sample[] = {{1, "locationId", UNSIGNED, true},
                                      {2, "value", SIGNED, true},
                                      {3, "label", MESSAGE, true, label},
                                      {0}};
static const struct field mapping[] = {{1, "id", UNSIGNED, false},
                                       {2, "memoryStart", UNSIGNED, false},
                                       {3, "memoryLimit", UNSIGNED, false},
                                       {4, "fileOffset", UNSIGNED, false},
                                       {5, "filename", SIGNED, false},
                                       {6, "buildId", SIGNED, false},
                                       {7, "hasFunctions", BOOLEAN, false},
                                       {8, "hasFilenames", BOOLEAN, false},
                                       {9, "hasLineNumbers", BOOLEAN, false},
                                       {10, "hasInlineFrames", BOOLEAN, false},
                                       {0}};
static const struct field line[] = {{1, "functionId", UNSIGNED, false},
                                    {2, "line", SIGNED, false},
                                    {3, "column", SIGNED, false},
                                    {0}};
static const struct field location[] = {
    {1, "id", UNSIGNED, false},      {2, "mappingId", UNSIGNED, false},
    {3, "address", UNSIGNED, false}, {4, "line", MESSAGE, true, line},
    {5, "isFolded", BOOLEAN, false}, {0}};
static const struct field function[] = {
    {1, "id", UNSIGNED, false},       {2, "name", SIGNED, false},
    {3, "systemName", SIGNED, false}, {4, "filename", SIGNED, false},
    {5, "startLine", SIGNED, false},  {0}};
static const struct field profile[] = {{1, "sampleType", MESSAGE, true, value_type},
                                       {2, "sample", MESSAGE, true, sample},
                                       {3, "mapping", MESSAGE, true, mapping},
                                       {4, "location", MESSAGE, true, location},
                                       {5, "function", MESSAGE, true, function},
                                       {6, "stringTable", TEXT, true},
                                       {7, "dropFrames", SIGNED, false},
                                       {8, "keepFrames", SIGNED, false},
                                       {9, "timeNanos", SIGNED, false},
                                       {10, "durationNanos", SIGNED, false},
                                       {11, "periodType", MESSAGE, false, value_type},
                                       {12, "period", SIGNED, false},
                                       {13, "comment", SIGNED, true},
                                       {14, "defaultSampleType", SIGNED, false},
                                       {0}};

static void put_number(struct buffer *out, enum kind kind, uint64_t value)
{
    if (kind == BOOLEAN) {
        buffer_add_text(out, value ? "true" : "false");
        return;
    }
    buffer_add_char(out, '"');
    if (kind == SIGNED)
        buffer_add_i64(out, (int64_t)value);
    else
        buffer_add_u64(out, value);
    buffer_add_char(out, '"');
}

static int put_message(struct wire wire, const struct field *fields, struct buffer *out);

/* All values of one field, which may come in any number of pieces. */
static int put_field(struct wire wire, const struct field *field, struct buffer *out,
                     const char **comma)
{
    struct wire_field got;
    size_t count = 0;
    int r;
    while ((r = wire_next(&wire, &got)) > 0) {
        if (got.number != field->number)
            continue;
        struct wire numbers = wire_repeated(&got);
        bool whole = field->kind == TEXT || field->kind == MESSAGE;
        if (whole && got.type != WIRE_BYTES)
            return -EBADMSG;
        for (bool more = true; more;) {
            uint64_t value = 0;
            if (!whole && numbers.at == numbers.end)
                break;
            if (!whole && !wire_varint(&numbers, &value))
                return -EBADMSG;
            if (!count++) {
                buffer_printf(out, "%s\"%s\":%s", *comma, field->name, field->repeated ? "[" : "");
                *comma = ",";
            } else {
                buffer_add_char(out, ',');
            }
            if (field->kind == TEXT)
                text_escape_json(out, (const char *)got.data, got.length);
            else if (field->kind == MESSAGE &&
                     (r = put_message(wire_of_field(&got), field->fields, out)) < 0)
                return r;
            else if (!whole)
                put_number(out, field->kind, value);
            more = !whole;
        }
        if (!buffer_pass(out))
            return 0;
        if (count && !field->repeated)
            break;
    }
    if (count && field->repeated)
        buffer_add_char(out, ']');
    return r < 0 ? r : 0;
}

static int put_message(struct wire wire, const struct field *fields, struct buffer *out)
{
    const char *comma = "";
    int r = 0;
    buffer_add_char(out, '{');
    for (; !r && fields->number; fields++)
        r = put_field(wire, fields, out, &comma);
    buffer_add_char(out, '}');
    return r;
}

int protojson_profile(const void *data, size_t length, struct buffer *out, struct error *error)
{
    int r = put_message(wire_of(data, length), profile, out);
    return r < 0 ? error_set(error, -EBADMSG, "The profile is not a pprof message.") : 0;
}
