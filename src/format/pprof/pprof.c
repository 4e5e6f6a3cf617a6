// SPDX-License-Identifier: Apache-2.0
// pprof's profile.proto: recognising it. pprof_read.c and pprof_write.c are the codec.

#include "format/pprof/pprof.h"

#include <string.h>

#include "io/wire.h"

/* The wire type each of Profile's fields must have; comments may come packed. */
static bool field_fits(const struct wire_field *field)
{
    switch (field->number) {
    case PPROF_SAMPLE_TYPE:
    case PPROF_SAMPLE:
    case PPROF_MAPPING:
    case PPROF_LOCATION:
    case PPROF_FUNCTION:
    case PPROF_STRING:
    case PPROF_PERIOD_TYPE:
        return field->type == WIRE_BYTES;
    case PPROF_COMMENT:
        return field->type == WIRE_BYTES || field->type == WIRE_VARINT;
    default:
        return field->number <= PPROF_DOC_URL && field->type == WIRE_VARINT;
    }
}

static bool is_value_type(const struct wire_field *field)
{
    struct wire inner = wire_of_field(field);
    struct wire_field part;
    int r;
    while ((r = wire_next(&inner, &part)) > 0)
        if (part.number > VALUE_TYPE_UNIT || part.type != WIRE_VARINT)
            return false;
    return r == 0;
}

/* Lengths and tags of a profile are small numbers, which texts don't have. */
static bool is_text(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!bytes[i] || (bytes[i] < ' ' && !strchr("\t\n\f\r", bytes[i])))
            return false;
    return true;
}

static int detect(const uint8_t *bytes, size_t length)
{
    if (is_text(bytes, length))
        return 0;
    struct wire wire = wire_of(bytes, length);
    struct wire_field field;
    unsigned fields = 0, value_types = 0;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (!field_fits(&field))
            return 0;
        if (field.number == PPROF_SAMPLE_TYPE || field.number == PPROF_PERIOD_TYPE) {
            if (!is_value_type(&field))
                return 0;
            value_types++;
        }
        fields++;
    }
    /* Cut off by the end of what was sniffed is fine; cut off by the end of the file is not ours
     * to judge. */
    if (r < 0 && (length < FORMAT_SNIFF_BYTES || !fields))
        return value_types ? 2 : 0;
    return value_types ? 3 : fields ? 1 : 0;
}

const struct format format_pprof = {
    .name = "pprof",
    .summary = "pprof protobuf, gzip or raw (Go, gperftools, Pyroscope, Parca)",
    .extensions = ".pb.gz .pb .pprof .prof .profile",
    .gzip = true,
    .detail = PROFILE_ALL & ~PROFILE_TIMES,
    .detect = detect,
    .phases = &pprof_phases,
    .read_unresolved = pprof_read_unresolved,
    .write = pprof_write,
};
