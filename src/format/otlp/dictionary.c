// SPDX-License-Identifier: Apache-2.0
// OTLP's dictionary as it is sent: entries are taken apart and kept by raw index, because tables
// may refer to tables that come later. otlp_resolve.c turns them into the model's things.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "format/otlp/model.h"
#include "profile/address.h"

int otlp_malformed(const struct otlp_model *model, const char *what, struct error *error)
{
    return error_set(error, -EBADMSG, "The %s that ends at offset %llu is malformed.", what,
                     (unsigned long long)model->offset);
}

int otlp_absurd_index(const struct otlp_model *model, uint64_t value, const char *what,
                      struct error *error)
{
    return error_set(error, -EBADMSG, "The %s that ends at offset %llu has the invalid index %lld.",
                     what, (unsigned long long)model->offset, (long long)value);
}

int otlp_bad_index(struct error *error, const char *user, const char *table, uint64_t index,
                   size_t count)
{
    return error_set(error, -EBADMSG,
                     "%s refers to entry %llu of the %s table, which has %zu entries.", user,
                     (unsigned long long)index, table, count);
}

int otlp_spend(const struct otlp_model *model, uint64_t *budget, uint64_t amount, const char *what,
               struct error *error)
{
    if (unlikely(amount > *budget))
        return error_set(error, -E2BIG, "The %s exceed the limit for an input of %llu bytes.", what,
                         (unsigned long long)model->offset);
    *budget -= amount;
    return 0;
}

void otlp_blobs_release(struct otlp_blobs *blobs)
{
    free(blobs->items);
    id_table_release(&blobs->index);
    arena_release(&blobs->bytes);
}

uint32_t otlp_blob(struct otlp_blobs *blobs, const void *data, size_t length)
{
    if (!blobs->count) {
        array_reserve(blobs->items, blobs->capacity, 16);
        blobs->items[blobs->count++] = (struct otlp_blob){.data = (const uint8_t *)""};
    }
    if (!length)
        return 0;
    uint64_t hash = XXH3_64bits_withSeed(data, length, blobs->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&blobs->index, &probe)) != ID_NONE)
        if (blobs->items[id].length == length && !memcmp(blobs->items[id].data, data, length))
            return id;
    array_reserve(blobs->items, blobs->capacity, blobs->count + 1);
    id = (uint32_t)blobs->count++;
    blobs->items[id].data =
        (const uint8_t *)arena_strndup(&blobs->bytes, (const char *)data, length);
    blobs->items[id].length = length;
    id_table_insert(&blobs->index, hash, id);
    return id;
}

void otlp_dictionary_release(struct otlp_dictionary *dictionary)
{
    free(dictionary->strings);
    free(dictionary->functions);
    free(dictionary->mappings);
    free(dictionary->locations);
    free(dictionary->lines);
    free(dictionary->links);
    free(dictionary->attributes);
    free(dictionary->stacks);
    free(dictionary->indices);
    free(dictionary->function_ids);
    free(dictionary->mapping_ids);
    free(dictionary->stack_nodes);
    free(dictionary->link_ids);
    free(dictionary->labels);
    free(dictionary->location_frames);
    free(dictionary->frames);
    free(dictionary->stack_frames);
    free(dictionary->function_hashes);
    free(dictionary->mapping_hashes);
    free(dictionary->location_digests);
    free(dictionary->single_digests);
    free(dictionary->frame_digests);
    free(dictionary->frame_origins);
    free(dictionary->stack_digests);
}

/* Appends one zeroed entry to a table. */
#define table_add(dictionary, plural, singular)                                                    \
    ({                                                                                             \
        array_reserve((dictionary)->plural, (dictionary)->singular##_capacity,                     \
                      (dictionary)->singular##_count + 1);                                         \
        memset(&(dictionary)->plural[(dictionary)->singular##_count], 0,                           \
               sizeof(*(dictionary)->plural));                                                     \
        &(dictionary)->plural[(dictionary)->singular##_count++];                                   \
    })

/* Lines and columns are signed on the wire; what doesn't fit is unknown anyway. */
static uint32_t clamp_line(uint64_t value)
{
    return (int64_t)value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Numbers of one and two bytes, up to the first that is longer or the last: stacks are made of
 * these. Returns how many. */
static inline size_t take_small(struct wire *values, uint32_t *numbers)
{
    if (values->at == values->end)
        return 0;
    const uint8_t *at = values->at, *const last = values->end - 1;
    uint32_t *next = numbers;
    while (at < last) {
        uint32_t number = at[0];
        if (number >= 0x80) {
            if (unlikely(at[1] >= 0x80))
                break;
            number += ((uint32_t)at[1] << 7) - 0x80;
            at++;
        }
        *next++ = number;
        at++;
    }
    values->at = at;
    return (size_t)(next - numbers);
}

/* Appends the values of a repeated index field to `indices`; `range` starts where the message's
 * first ones went, and nothing else is appended in between. */
static int add_indices(struct otlp_model *model, const struct wire_field *field, const char *what,
                       struct otlp_range *range, struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    if (field->type != WIRE_BYTES && field->type != WIRE_VARINT)
        return 0;
    struct wire values = wire_repeated(field);
    array_reserve(dictionary->indices, dictionary->index_capacity,
                  dictionary->index_count + (size_t)(values.end - values.at));
    if (values.end - values.at == 1 && values.at[0] < 0x80) { /* what locations have most often */
        dictionary->indices[dictionary->index_count++] = values.at[0];
        range->count++;
        return 0;
    }
    size_t before = dictionary->index_count;
    dictionary->index_count += take_small(&values, dictionary->indices + before);
    range->count += (uint32_t)(dictionary->index_count - before);
    while (values.at < values.end) {
        uint64_t value;
        if (!wire_varint(&values, &value))
            return otlp_malformed(model, what, error);
        uint32_t *index = &dictionary->indices[dictionary->index_count];
        if (otlp_index(model, value, what, index, error) < 0)
            return error->code;
        dictionary->index_count++;
        range->count++;
    }
    return 0;
}

/* Room for what a dictionary of so many bytes is likely to hold: tables that grow step by step are
 * copied at each. What is said of the length need not be true, so there is an end to it. */
void otlp_dictionary_reserve(struct otlp_dictionary *dictionary, uint64_t length)
{
    size_t bytes = (size_t)MIN(length, (uint64_t)(1u << 20));
    array_reserve(dictionary->locations, dictionary->location_capacity, bytes / 40);
    array_reserve(dictionary->lines, dictionary->line_capacity, bytes / 40);
    array_reserve(dictionary->indices, dictionary->index_capacity, bytes / 3);
    array_reserve(dictionary->strings, dictionary->string_capacity, bytes / 128);
    array_reserve(dictionary->functions, dictionary->function_capacity, bytes / 128);
    array_reserve(dictionary->stacks, dictionary->stack_capacity, bytes / 128);
}

static int add_mapping(struct otlp_model *model, struct wire wire, struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    struct otlp_mapping *mapping = table_add(dictionary, mappings, mapping);
    mapping->attributes.first = (uint32_t)dictionary->index_count;
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        r = 0;
        if (field.number == 5)
            r = add_indices(model, &field, "Mapping", &mapping->attributes, error);
        else if (field.type != WIRE_VARINT)
            continue;
        else if (field.number == 1)
            mapping->start = field.value;
        else if (field.number == 2)
            mapping->limit = field.value;
        else if (field.number == 3)
            mapping->offset = field.value;
        else if (field.number == 4)
            r = otlp_index(model, field.value, "Mapping", &mapping->file, error);
        if (r < 0)
            return r;
    }
    if (mapping->attributes.count &&
        profile_covers_all(mapping->start, mapping->limit, mapping->offset))
        mapping->start = mapping->offset = PROFILE_BY_ADDRESS;
    return r < 0 ? otlp_malformed(model, "Mapping", error) : 0;
}

enum {
    TAG_1 = WIRE_TAG(1, WIRE_VARINT),
    TAG_2 = WIRE_TAG(2, WIRE_VARINT),
    TAG_3 = WIRE_TAG(3, WIRE_VARINT),
    TAG_3_BYTES = WIRE_TAG(3, WIRE_BYTES),
};

/* Locations and their lines are most of a dictionary: they are put together here, and stored once
 * they are whole. */
static int read_line(struct otlp_model *model, struct wire wire, struct otlp_line *line,
                     struct error *error)
{
    struct wire_field field;
    uint64_t value;
    int r = 0;
    while (r >= 0 && wire.at < wire.end) {
        uint8_t tag = *wire.at;
        if (tag == TAG_1) {
            if (!wire_tagged(&wire, &value))
                return otlp_malformed(model, "Line", error);
            if ((r = otlp_index(model, value, "Line", &line->function, error)) < 0)
                return r;
        } else if (tag == TAG_2 || tag == TAG_3) {
            if (!wire_tagged(&wire, &value))
                return otlp_malformed(model, "Line", error);
            if (tag == TAG_2)
                line->line = clamp_line(value);
            else
                line->column = clamp_line(value);
        } else {
            r = wire_next(&wire, &field); /* nothing that is known */
        }
    }
    return r < 0 ? otlp_malformed(model, "Line", error) : 0;
}

static int add_line(struct otlp_model *model, const uint8_t *data, size_t length,
                    struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    struct otlp_line line = {0};
    int r = read_line(model, wire_of(data, length), &line, error);
    array_reserve(dictionary->lines, dictionary->line_capacity, dictionary->line_count + 1);
    dictionary->lines[dictionary->line_count++] = line;
    return r;
}

static int read_location(struct otlp_model *model, struct wire wire, struct otlp_location *location,
                         struct error *error)
{
    struct wire_field field;
    uint64_t value;
    int r = 0;
    while (r >= 0 && wire.at < wire.end) {
        uint8_t tag = *wire.at;
        if (tag == TAG_1 || tag == TAG_2) {
            if (!wire_tagged(&wire, &value))
                return otlp_malformed(model, "Location", error);
            if (tag == TAG_2)
                location->address = value;
            else if ((r = otlp_index(model, value, "Location", &location->mapping, error)) < 0)
                return r;
        } else if (tag == TAG_3_BYTES) {
            if (!wire_tagged(&wire, &value) || value > (size_t)(wire.end - wire.at))
                return otlp_malformed(model, "Location", error);
            if ((r = add_line(model, wire.at, (size_t)value, error)) < 0)
                return r;
            wire.at += value;
            location->lines.count++;
        } else if ((r = wire_next(&wire, &field)) > 0 && field.number == 4) {
            if ((r = add_indices(model, &field, "Location", &location->attributes, error)) < 0)
                return r;
        }
    }
    return r < 0 ? otlp_malformed(model, "Location", error) : 0;
}

static int add_location(struct otlp_model *model, struct wire wire, struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    struct otlp_location location = {.lines.first = (uint32_t)dictionary->line_count,
                                     .attributes.first = (uint32_t)dictionary->index_count};
    int r = read_location(model, wire, &location, error);
    array_reserve(dictionary->locations, dictionary->location_capacity,
                  dictionary->location_count + 1);
    dictionary->locations[dictionary->location_count++] = location;
    return r;
}

static int add_function(struct otlp_model *model, struct wire wire, struct error *error)
{
    struct otlp_function *function = table_add(&model->dictionary, functions, function);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        uint32_t *index = field.number == 1   ? &function->name
                          : field.number == 2 ? &function->system_name
                          : field.number == 3 ? &function->file
                                              : NULL;
        if (field.type != WIRE_VARINT)
            continue;
        if (field.number == 4)
            function->start_line = clamp_line(field.value);
        if (index && (r = otlp_index(model, field.value, "Function", index, error)) < 0)
            return r;
    }
    return r < 0 ? otlp_malformed(model, "Function", error) : 0;
}

static int add_link(struct otlp_model *model, struct wire wire, struct error *error)
{
    struct profile_link *link = table_add(&model->dictionary, links, link);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        /* Ids of other lengths are invalid by the specification, which is to say: no ids. */
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1 && field.length == sizeof(link->trace_id))
            memcpy(link->trace_id, field.data, field.length);
        else if (field.number == 2 && field.length == sizeof(link->span_id))
            memcpy(link->span_id, field.data, field.length);
    }
    return r < 0 ? otlp_malformed(model, "Link", error) : 0;
}

static int add_attribute(struct otlp_model *model, struct wire wire, struct error *error)
{
    struct otlp_attribute *attribute = table_add(&model->dictionary, attributes, attribute);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        r = 0;
        if (field.number == 1 && field.type == WIRE_VARINT)
            r = otlp_index(model, field.value, "KeyValueAndUnit", &attribute->key, error);
        else if (field.number == 2 && field.type == WIRE_BYTES)
            attribute->value = otlp_blob(&model->blobs, field.data, field.length);
        else if (field.number == 3 && field.type == WIRE_VARINT)
            r = otlp_index(model, field.value, "KeyValueAndUnit", &attribute->unit, error);
        if (r < 0)
            return r;
    }
    return r < 0 ? otlp_malformed(model, "KeyValueAndUnit", error) : 0;
}

static int add_stack(struct otlp_model *model, struct wire wire, struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    struct otlp_range *stack = table_add(dictionary, stacks, stack);
    stack->first = (uint32_t)dictionary->index_count;
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        /* Until 1.7 this table held units of attributes: two plain numbers. */
        if (field.number == 2 && field.type == WIRE_VARINT)
            return error_set(error, -ENOTSUP,
                             "The dictionary before offset %llu has the layout of OTLP profiles "
                             "1.7; supported are 1.8 to 1.11: update the sender.",
                             (unsigned long long)model->offset);
        if (field.number == 1 && (r = add_indices(model, &field, "Stack", stack, error)) < 0)
            return r;
    }
    return r < 0 ? otlp_malformed(model, "Stack", error) : 0;
}

/* Of a dictionary whose stacks stay unresolved, most strings are never looked at by name. */
static void add_string(struct otlp_model *model, const char *text, size_t length)
{
    struct otlp_string *string = table_add(&model->dictionary, strings, string);
    string->length = length;
    if (model->unresolved) {
        string->data = arena_strndup(&model->blobs.bytes, text, length);
        string->id = UINT32_MAX;
    } else {
        string->id = profile_string(model->profile, text, length);
    }
}

int otlp_dictionary_entry(struct otlp_model *model, unsigned table, const void *data, size_t length,
                          struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    struct wire wire = wire_of(data, length);
    if (unlikely(dictionary->index_count > PROFILE_IDS_MAX ||
                 dictionary->line_count > PROFILE_IDS_MAX || memory_full() ||
                 (!model->unresolved && profile_full(model->profile))))
        return error_set(error, -E2BIG, "The dictionary before offset %llu is too large.",
                         (unsigned long long)model->offset);
    switch (table) {
    case OTLP_MAPPINGS:
        return add_mapping(model, wire, error);
    case OTLP_LOCATIONS:
        return add_location(model, wire, error);
    case OTLP_FUNCTIONS:
        return add_function(model, wire, error);
    case OTLP_LINKS:
        return add_link(model, wire, error);
    case OTLP_STRINGS:
        add_string(model, data, length);
        return 0;
    case OTLP_ATTRIBUTES:
        return add_attribute(model, wire, error);
    case OTLP_STACKS:
        return add_stack(model, wire, error);
    default:
        return 0; /* a table that later versions add */
    }
}
