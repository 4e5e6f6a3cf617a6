// SPDX-License-Identifier: Apache-2.0
// FlatBuffers: see flat.h. A table begins with the distance back to its vtable, which has its own
// length, the table's, and the offset of each field in the table (0: missing).

#include "io/arrow/flat.h"

#include <string.h>

static int64_t number_at(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;)
        value = value << 8 | bytes[i];
    if (width < 8 && value >> (8 * width - 1))
        value |= ~0ull << (8 * width);
    return (int64_t)value;
}

static uint32_t word_at(const uint8_t *bytes)
{
    return (uint32_t)number_at(bytes, 4);
}

static uint16_t half_at(const uint8_t *bytes)
{
    return (uint16_t)number_at(bytes, 2);
}

static bool open_table(const uint8_t *bytes, size_t length, size_t at, struct flat_table *ret_table)
{
    if (length < 4 || at > length - 4)
        return false;
    int64_t layout = (int64_t)at - number_at(bytes + at, 4);
    if (layout < 0 || (uint64_t)layout > length - 4)
        return false;
    size_t layout_bytes = half_at(bytes + layout), table_bytes = half_at(bytes + layout + 2);
    if (layout_bytes < 4 || layout_bytes > length - (size_t)layout || table_bytes < 4 ||
        table_bytes > length - at)
        return false;
    *ret_table = (struct flat_table){.bytes = bytes,
                                     .length = length,
                                     .at = at,
                                     .layout = (size_t)layout + 4,
                                     .layout_end = (size_t)layout + layout_bytes,
                                     .end = at + table_bytes};
    return true;
}

/* The target of the offset at a position, which is in the buffer. */
static bool follow(const uint8_t *bytes, size_t length, size_t at, size_t *ret_at)
{
    size_t distance = word_at(bytes + at);
    if (distance > length - at)
        return false;
    *ret_at = at + distance;
    return true;
}

bool flat_root(const uint8_t *bytes, size_t length, struct flat_table *ret_table)
{
    size_t at;
    return length >= 4 && follow(bytes, length, 0, &at) && open_table(bytes, length, at, ret_table);
}

/* Where a field is; 0: nowhere. */
static size_t field_at(const struct flat_table *table, unsigned field, size_t width)
{
    size_t entry = table->layout + 2 * (size_t)field;
    if (entry + 2 > table->layout_end)
        return 0;
    size_t offset = half_at(table->bytes + entry);
    return offset && offset + width <= table->end - table->at ? table->at + offset : 0;
}

int64_t flat_number(const struct flat_table *table, unsigned field, size_t width, int64_t otherwise)
{
    size_t at = field_at(table, field, width);
    return at ? number_at(table->bytes + at, width) : otherwise;
}

bool flat_child(const struct flat_table *table, unsigned field, struct flat_table *ret_table)
{
    size_t at = field_at(table, field, 4);
    return at && follow(table->bytes, table->length, at, &at) &&
           open_table(table->bytes, table->length, at, ret_table);
}

struct flat_vector flat_vector(const struct flat_table *table, unsigned field, size_t width)
{
    struct flat_vector vector = {.bytes = table->bytes, .length = table->length};
    size_t at = field_at(table, field, 4);
    if (!at || !follow(table->bytes, table->length, at, &at) || table->length - at < 4)
        return vector;
    size_t count = word_at(table->bytes + at);
    if (count > (table->length - at - 4) / width)
        return vector;
    vector.at = at + 4;
    vector.count = count;
    return vector;
}

const char *flat_text(const struct flat_table *table, unsigned field, size_t *ret_length)
{
    struct flat_vector text = flat_vector(table, field, 1);
    *ret_length = text.count;
    return text.count ? (const char *)text.bytes + text.at : "";
}

bool flat_element_table(const struct flat_vector *vector, size_t index,
                        struct flat_table *ret_table)
{
    size_t at;
    return follow(vector->bytes, vector->length, vector->at + 4 * index, &at) &&
           open_table(vector->bytes, vector->length, at, ret_table);
}

int64_t flat_element(const struct flat_vector *vector, size_t at, size_t width)
{
    return number_at(vector->bytes + vector->at + at, width);
}
