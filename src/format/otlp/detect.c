// SPDX-License-Identifier: Apache-2.0
// Recognising OTLP profiles by their first bytes. Protobuf has no magic number, and pprof begins
// with the same byte, so what is nested must have the right fields of the right wire types.

#include <string.h>

#include "format/otlp/model.h"

enum message {
    REQUEST,
    RESOURCE_PROFILES,
    RESOURCE,
    KEY_VALUE,
    SCOPE_PROFILES,
    SCOPE,
    PROFILE,
    DICTIONARY,
    MAPPING,
    LOCATION,
    LINE,
    FUNCTION,
    LINK,
    ATTRIBUTE,
    STACK,
};

/* The shapes of each message's fields, from field 1 on: 'v' a number, 's' bytes, 'n' a list of
 * numbers, '*' whatever, a capital the message at that place of the list above. Old layouts, which
 * the reader refuses with a better sentence than "unknown format", fit as well. */
static const char *const shapes[] = {
    [REQUEST] = "BHssssss",
    [RESOURCE_PROFILES] = "CEs",
    [RESOURCE] = "Dvs",
    [KEY_VALUE] = "ssv",
    [SCOPE_PROFILES] = "FGs",
    [SCOPE] = "ssDv",
    [PROFILE] = "ss******************",
    [DICTIONARY] = "IJLMsN*",
    [MAPPING] = "vvvvnvvvv",
    [LOCATION] = "vvKnn",
    [LINE] = "vvv",
    [FUNCTION] = "vvvv",
    [LINK] = "ss",
    [ATTRIBUTE] = "*sv",
    [STACK] = "n",
};

static bool allowed(char shape, enum wire_type type)
{
    switch (shape) {
    case 0:
        return false;
    case 'v':
        return type == WIRE_VARINT;
    case 'n':
        return type == WIRE_VARINT || type == WIRE_BYTES;
    case '*':
        return type == WIRE_VARINT || type == WIRE_BYTES || type == WIRE_FIXED64;
    default:
        return type == WIRE_BYTES;
    }
}

/*
 * How many nested messages there are, or -1 when something doesn't fit. `cut` says that the sniff
 * ends inside this message. Goes no deeper than the messages above nest.
 */
static int count_fitting(enum message kind, struct wire wire, bool cut)
{
    int found = 0;
    while (wire.at < wire.end) {
        struct wire before = wire;
        uint64_t tag, length;
        if (!wire_varint(&wire, &tag))
            return cut ? found : -1;
        char shape =
            tag >> 3 && tag >> 3 <= strlen(shapes[kind]) ? shapes[kind][(tag >> 3) - 1] : 0;
        if (!allowed(shape, tag & 7))
            return -1;
        if ((tag & 7) != WIRE_BYTES) {
            if (wire_next(&before, &(struct wire_field){0}) < 0)
                return cut ? found : -1;
            wire = before;
            continue;
        }
        if (!wire_varint(&wire, &length))
            return cut ? found : -1;
        size_t available = (size_t)(wire.end - wire.at);
        bool longer = length > available;
        if (longer && !cut)
            return -1;
        struct wire inside = wire_of(wire.at, longer ? available : (size_t)length);
        if (shape >= 'A' && shape <= 'Z') {
            int more = count_fitting((enum message)(shape - 'A'), inside, longer);
            if (more < 0)
                return -1;
            found += more + 1;
        }
        wire.at = inside.end;
    }
    return found;
}

int otlp_detect(const uint8_t *bytes, size_t length)
{
    if (!length || (bytes[0] != 0x0a && bytes[0] != 0x12))
        return 0;
    int found = count_fitting(REQUEST, wire_of(bytes, length), true);
    /* A pprof whose samples come first can look like dictionaries; there is one in a request. */
    int dictionaries = 0;
    struct wire wire = wire_of(bytes, length);
    struct wire_field field;
    while (wire_next(&wire, &field) > 0)
        dictionaries += field.number == 2;
    if (found < 0 || dictionaries > 1)
        return 0;
    int enough = bytes[0] == 0x12 ? 5 : 3;
    return found >= enough ? 3 : found >= 2 ? 2 : 1;
}
