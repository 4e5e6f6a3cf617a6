// SPDX-License-Identifier: Apache-2.0
// Reading pprof. Samples come before the tables they refer to, so the reader keeps each distinct
// stack and label set as the raw bytes it came in, adds up values by (stack, labels) while the file
// streams by, and gives them meaning at the end. A sample whose stack is known costs two hash
// lookups and no decoding of its location ids.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"
#include "format/pprof/reader.h"
#include "profile/address.h"

static void byte_set_release(struct byte_set *set)
{
    buffer_release(&set->bytes);
    free(set->entries);
    digest_table_release(&set->index);
}

void pprof_reader_free(struct pprof_reader *reader)
{
    if (!reader)
        return;
    buffer_release(&reader->text);
    free(reader->strings);
    free(reader->string_ids);
    free(reader->mappings);
    free(reader->functions);
    free(reader->locations);
    free(reader->lines);
    free(reader->location_frames);
    free(reader->stack_locations);
    free(reader->frames);
    free(reader->path);
    byte_set_release(&reader->stacks);
    byte_set_release(&reader->labels);
    free(reader->rows);
    id_table_release(&reader->row_index);
    free(reader->values);
    buffer_release(&reader->scratch);
    buffer_release(&reader->label_scratch);
    free(reader->comments);
    free(reader);
}

static uint32_t byte_set_find(struct byte_set *set, const void *bytes, size_t length, uint64_t seed,
                              uint64_t stream_offset)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, length, seed);
    struct digest digest = {.low = hash.low64, .high = hash.high64};
    uint32_t id = digest_table_find(&set->index, digest);
    if (id != ID_NONE)
        return id;
    array_reserve(set->entries, set->capacity, set->count + 1);
    id = (uint32_t)set->count++;
    set->entries[id] = (struct byte_entry){.offset = set->bytes.length,
                                           .seen_at = stream_offset,
                                           .length = (uint32_t)length,
                                           .row = ID_NONE};
    buffer_reserve(&set->bytes, length + 1); /* so that data is never NULL */
    buffer_add(&set->bytes, bytes, length);
    digest_table_insert(&set->index, digest, id);
    return id;
}

static size_t find_row(struct pprof_reader *reader, uint32_t stack, uint32_t labels)
{
    if (!reader->want_labels && stack < reader->row_count)
        return stack;
    struct byte_entry *entry = &reader->stacks.entries[stack];
    uint64_t hash = 0;
    uint32_t row;
    if (!labels) {
        if (entry->row != ID_NONE)
            return entry->row;
    } else {
        hash = hash_word((uint64_t)stack << 32 | labels);
        struct id_probe probe = id_probe_start(hash);
        while ((row = id_table_next(&reader->row_index, &probe)) != ID_NONE)
            if (reader->rows[row].stack == stack && reader->rows[row].labels == labels)
                return row;
    }
    array_reserve(reader->rows, reader->row_capacity, reader->row_count + 1);
    array_reserve(reader->values, reader->value_capacity, (reader->row_count + 1) * reader->width);
    row = (uint32_t)reader->row_count++;
    reader->rows[row] = (struct raw_row){.stack = stack, .labels = labels};
    memset(reader->values + row * reader->width, 0, reader->width * sizeof(*reader->values));
    if (labels)
        id_table_insert(&reader->row_index, hash, row);
    else
        entry->row = row;
    return row;
}

/* The content of one Sample message, still as raw bytes. */
struct raw_sample {
    const void *locations;
    size_t location_bytes;
    int64_t values[PROFILE_TYPES_MAX];
    size_t value_count;
    size_t label_count;
};

/* A field that is packed and alone needs no copy; otherwise its parts are put together. */
static void gather_locations(struct pprof_reader *reader, struct raw_sample *sample,
                             const struct wire_field *field)
{
    struct wire part = wire_repeated(field);
    size_t length = (size_t)(part.end - part.at);
    if (!sample->location_bytes) {
        sample->locations = part.at;
        sample->location_bytes = length;
        return;
    }
    if (sample->locations != reader->scratch.data || !reader->scratch.length) {
        reader->scratch.length = 0;
        buffer_add(&reader->scratch, sample->locations, sample->location_bytes);
    }
    buffer_add(&reader->scratch, part.at, length);
    sample->locations = reader->scratch.data;
    sample->location_bytes = reader->scratch.length;
}

static int parse_sample(struct pprof_reader *reader, const struct wire_field *message,
                        struct raw_sample *sample, struct error *error)
{
    struct wire wire = wire_of_field(message);
    struct wire_field field;
    int r;
    sample->location_bytes = sample->value_count = sample->label_count = 0;
    sample->locations = "";
    reader->scratch.length = reader->label_scratch.length = 0;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number == SAMPLE_LOCATION) {
            gather_locations(reader, sample, &field);
        } else if (field.number == SAMPLE_VALUE) {
            struct wire numbers = wire_repeated(&field);
            while (numbers.at < numbers.end) {
                uint64_t value;
                if (sample->value_count == PROFILE_TYPES_MAX)
                    return error_set(
                        error, -E2BIG, "The sample before offset %llu has more than %d values.",
                        (unsigned long long)source_offset(reader->source), PROFILE_TYPES_MAX);
                if (!wire_varint_near_end(&numbers, message->data, &value))
                    return wire_stream_malformed(&reader->stream, "The sample that ends", error);
                sample->values[sample->value_count++] = (int64_t)value;
            }
        } else if (field.number == SAMPLE_LABEL && field.type == WIRE_BYTES &&
                   reader->want_labels) {
            if (++sample->label_count > PROFILE_LABELS_MAX)
                return error_set(
                    error, -E2BIG, "The sample before offset %llu has more than %d labels.",
                    (unsigned long long)source_offset(reader->source), PROFILE_LABELS_MAX);
            wire_put_varint(&reader->label_scratch, field.length);
            buffer_add(&reader->label_scratch, field.data, field.length);
        }
    }
    return r < 0 ? wire_stream_malformed(&reader->stream, "The sample that ends", error) : 0;
}

static int take_sample(struct pprof_reader *reader, const struct wire_field *message,
                       struct error *error)
{
    struct raw_sample sample;
    int r = parse_sample(reader, message, &sample, error);
    if (r < 0)
        return r;
    if (!sample.value_count)
        return error_set(error, -EBADMSG, "The sample before offset %llu has no value.",
                         (unsigned long long)source_offset(reader->source));
    if (!reader->width)
        reader->width = sample.value_count;
    if (sample.value_count != reader->width)
        return error_set(error, -EBADMSG,
                         "The sample before offset %llu has %zu values where the others have %zu.",
                         (unsigned long long)source_offset(reader->source), sample.value_count,
                         reader->width);
    uint64_t offset = source_offset(reader->source);
    uint32_t stack = byte_set_find(&reader->stacks, sample.locations, sample.location_bytes,
                                   reader->seed, offset);
    uint32_t labels = 0;
    if (sample.label_count)
        labels = 1 + byte_set_find(&reader->labels, reader->label_scratch.data,
                                   reader->label_scratch.length, reader->seed, offset);
    if (reader->row_count >= PROFILE_IDS_MAX)
        return error_set(error, -E2BIG, "There are more than %u distinct samples.",
                         PROFILE_IDS_MAX);
    size_t row = find_row(reader, stack, labels);
    int64_t *cells = reader->values + row * reader->width;
    for (size_t i = 0; i < reader->width; i++)
        cells[i] = add_saturated(cells[i], sample.values[i]);
    return 0;
}

static uint32_t clamp_line(uint64_t value)
{
    return value > INT32_MAX ? 0 : (uint32_t)value; /* negative lines mean "unknown" too */
}

static int take_value_type(const struct wire_field *message, struct value_type *ret_type)
{
    struct wire wire = wire_of_field(message);
    struct wire_field field;
    int r;
    *ret_type = (struct value_type){0};
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.number == VALUE_TYPE_TYPE)
            ret_type->type = field.value;
        else if (field.number == VALUE_TYPE_UNIT)
            ret_type->unit = field.value;
    }
    return r;
}

static int take_mapping(struct pprof_reader *reader, const struct wire_field *message)
{
    struct raw_mapping raw = {.resolved = ID_NONE};
    uint64_t file = 0, build_id = 0;
    struct wire wire = wire_of_field(message);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        switch (field.number) {
        case MAPPING_ID:
            raw.id = field.value;
            break;
        case MAPPING_START:
            raw.mapping.start = field.value;
            break;
        case MAPPING_LIMIT:
            raw.mapping.limit = field.value;
            break;
        case MAPPING_OFFSET:
            raw.mapping.offset = field.value;
            break;
        case MAPPING_FILE:
            file = field.value;
            break;
        case MAPPING_BUILD_ID:
            build_id = field.value;
            break;
        }
    }
    if (r < 0 || file > UINT32_MAX || build_id > UINT32_MAX)
        return -EBADMSG;
    if (build_id && profile_covers_all(raw.mapping.start, raw.mapping.limit, raw.mapping.offset))
        raw.mapping.start = raw.mapping.offset = PROFILE_BY_ADDRESS;
    raw.mapping.file = (uint32_t)file;
    raw.mapping.build_id = (uint32_t)build_id;
    array_reserve(reader->mappings, reader->mapping_capacity, reader->mapping_count + 1);
    reader->mappings[reader->mapping_count++] = raw;
    return 0;
}

/* Entries of the tables are filled in where they stay: a copy would be loaded in larger pieces than
 * it was just written in, for which the CPU has to wait each time. */
static int take_function(struct pprof_reader *reader, const struct wire_field *message)
{
    array_reserve(reader->functions, reader->function_capacity, reader->function_count + 1);
    struct raw_function *raw = &reader->functions[reader->function_count];
    struct wire wire = wire_of_field(message);
    struct wire_field field;
    int r;
    *raw = (struct raw_function){.resolved = ID_NONE};
    while ((r = wire_next(&wire, &field)) > 0) {
        switch (field.number) {
        case FUNCTION_ID:
            raw->id = field.value;
            break;
        case FUNCTION_NAME:
            raw->name = field.value;
            break;
        case FUNCTION_SYSTEM_NAME:
            raw->system_name = field.value;
            break;
        case FUNCTION_FILE:
            raw->file = field.value;
            break;
        case FUNCTION_START_LINE:
            raw->start_line = clamp_line(field.value);
            break;
        }
    }
    reader->function_count += r == 0;
    return r;
}

/* Field by field as any message; those that all writers send are known by their tags' bytes. */
static int take_line(struct pprof_reader *reader, struct wire wire)
{
    array_reserve(reader->lines, reader->line_capacity, reader->line_count + 1);
    struct raw_line *raw = &reader->lines[reader->line_count];
    struct wire_field field;
    uint64_t value;
    int r = 0;
    *raw = (struct raw_line){0};
    while (r >= 0 && wire.at < wire.end) {
        if (*wire.at == WIRE_TAG(LINE_FUNCTION, WIRE_VARINT)) {
            if (!wire_tagged(&wire, &value))
                return -EBADMSG;
            raw->function = value;
        } else if (*wire.at == WIRE_TAG(LINE_LINE, WIRE_VARINT)) {
            if (!wire_tagged(&wire, &value))
                return -EBADMSG;
            raw->line = clamp_line(value);
        } else if ((r = wire_next(&wire, &field)) > 0) {
            if (field.number == LINE_FUNCTION)
                raw->function = field.value;
            else if (field.number == LINE_LINE)
                raw->line = clamp_line(field.value);
            else if (field.number == LINE_COLUMN)
                raw->column = MIN(clamp_line(field.value), (1u << 24) - 1);
        }
    }
    if (r < 0)
        return r;
    reader->line_count++;
    return 0;
}

static int take_location_field(struct pprof_reader *reader, const struct wire_field *field,
                               struct raw_location *raw)
{
    switch (field->number) {
    case LOCATION_ID:
        raw->id = field->value;
        break;
    case LOCATION_MAPPING:
        raw->mapping = field->value;
        break;
    case LOCATION_ADDRESS:
        raw->address = field->value;
        break;
    case LOCATION_FOLDED:
        raw->folded = field->value;
        break;
    case LOCATION_LINE:
        if (field->type != WIRE_BYTES || take_line(reader, wire_of_field(field)) < 0)
            return -EBADMSG;
        raw->line_count++;
        break;
    }
    return 0;
}

static int take_location(struct pprof_reader *reader, const struct wire_field *message)
{
    array_reserve(reader->locations, reader->location_capacity, reader->location_count + 1);
    struct raw_location *raw = &reader->locations[reader->location_count];
    struct wire wire = wire_of_field(message);
    struct wire_field field;
    int r = 0;
    *raw = (struct raw_location){.first_line = (uint32_t)reader->line_count};
    while (r >= 0 && wire.at < wire.end) {
        uint64_t *number = *wire.at == WIRE_TAG(LOCATION_ID, WIRE_VARINT)        ? &raw->id
                           : *wire.at == WIRE_TAG(LOCATION_MAPPING, WIRE_VARINT) ? &raw->mapping
                           : *wire.at == WIRE_TAG(LOCATION_ADDRESS, WIRE_VARINT) ? &raw->address
                                                                                 : NULL;
        if (number)
            r = wire_tagged(&wire, number) ? 0 : -EBADMSG;
        else if ((r = wire_next(&wire, &field)) > 0)
            r = take_location_field(reader, &field, raw);
    }
    if (r < 0 || reader->line_count > PROFILE_IDS_MAX)
        return -EBADMSG;
    reader->location_count++;
    return 0;
}

/* Comments are looked up one by one when profiles are merged; files have a few at most. */
#define COMMENTS_MAX 4096

static int take_comments(struct pprof_reader *reader, const struct wire_field *field,
                         struct error *error)
{
    struct wire numbers = wire_repeated(field);
    while (numbers.at < numbers.end) {
        if (reader->comment_count == COMMENTS_MAX)
            return error_set(error, -E2BIG, "There are more than %d comments before offset %llu.",
                             COMMENTS_MAX, (unsigned long long)source_offset(reader->source));
        array_reserve(reader->comments, reader->comment_capacity, reader->comment_count + 1);
        if (!wire_varint(&numbers, &reader->comments[reader->comment_count]))
            return wire_stream_malformed(&reader->stream, "The comment that ends", error);
        reader->comment_count++;
    }
    return 0;
}

static int take_message(struct pprof_reader *reader, const struct wire_field *field,
                        struct error *error)
{
    int r = 0;
    const char *what = "The value type that ends";
    switch (field->number) {
    case PPROF_SAMPLE:
        return take_sample(reader, field, error);
    case PPROF_STRING:
        array_reserve(reader->strings, reader->string_capacity, reader->string_count + 1);
        reader->strings[reader->string_count++] =
            (struct raw_string){.offset = reader->text.length, .length = field->length};
        buffer_add(&reader->text, field->data, field->length);
        return 0;
    case PPROF_SAMPLE_TYPE:
        if (reader->type_count == PROFILE_TYPES_MAX)
            return error_set(error, -E2BIG, "There are more than %d sample types.",
                             PROFILE_TYPES_MAX);
        r = take_value_type(field, &reader->types[reader->type_count++]);
        break;
    case PPROF_PERIOD_TYPE:
        r = take_value_type(field, &reader->period_type);
        break;
    case PPROF_MAPPING:
        what = "The mapping that ends";
        r = take_mapping(reader, field);
        break;
    case PPROF_LOCATION:
        what = "The location that ends";
        r = take_location(reader, field);
        break;
    case PPROF_FUNCTION:
        what = "The function that ends";
        r = take_function(reader, field);
        break;
    case PPROF_COMMENT:
        return take_comments(reader, field, error);
    }
    return r < 0 ? wire_stream_malformed(&reader->stream, what, error) : 0;
}

static void take_number(struct pprof_reader *reader, const struct wire_field *field)
{
    switch (field->number) {
    case PPROF_DROP_FRAMES:
        reader->drop_frames = field->value;
        break;
    case PPROF_KEEP_FRAMES:
        reader->keep_frames = field->value;
        break;
    case PPROF_TIME_NANOS:
        reader->time_ns = (int64_t)field->value;
        break;
    case PPROF_DURATION_NANOS:
        reader->duration_ns = (int64_t)field->value;
        break;
    case PPROF_PERIOD:
        reader->period = (int64_t)field->value;
        break;
    case PPROF_DEFAULT_SAMPLE_TYPE:
        reader->default_type = field->value;
        break;
    case PPROF_DOC_URL:
        reader->doc_url = field->value;
        break;
    }
}

static bool known_message(uint32_t number)
{
    return (number >= PPROF_SAMPLE_TYPE && number <= PPROF_STRING) || number == PPROF_PERIOD_TYPE ||
           number == PPROF_COMMENT;
}

/* The next field, whole when it is one that is wanted. */
static int next_field(struct pprof_reader *reader, struct wire_field *field, struct error *error)
{
    if (likely(wire_stream_quick(&reader->stream, field)))
        return 1;
    int r = wire_stream_next(&reader->stream, field, error);
    if (r <= 0 || field->type != WIRE_BYTES || !known_message(field->number))
        return r;
    r = wire_stream_bytes(&reader->stream, field, error);
    return r < 0 ? r : 1;
}

/* Room for what is likely to be in the bytes that are there already: tables that grow step by step
 * are copied at each. */
static void reserve(struct pprof_reader *reader, size_t bytes)
{
    array_reserve(reader->locations, reader->location_capacity, bytes / 40);
    array_reserve(reader->lines, reader->line_capacity, bytes / 40);
    array_reserve(reader->functions, reader->function_capacity, bytes / 128);
    array_reserve(reader->strings, reader->string_capacity, bytes / 128);
    array_reserve(reader->rows, reader->row_capacity, bytes / 128);
    array_reserve(reader->values, reader->value_capacity, bytes / 128);
    array_reserve(reader->stacks.entries, reader->stacks.capacity, bytes / 128);
    digest_table_reserve(&reader->stacks.index, bytes / 128);
    buffer_reserve(&reader->stacks.bytes, bytes / 2);
    buffer_reserve(&reader->text, bytes / 4);
}

static int read_stream(struct pprof_reader *reader, struct error *error)
{
    struct wire_field field;
    int r = source_need(reader->source, 1, error);
    if (r < 0)
        return r;
    reserve(reader, source_available(reader->source));
    wire_stream_init(&reader->stream, reader->source);
    while ((r = next_field(reader, &field, error)) > 0) {
        if (field.type == WIRE_BYTES) {
            if (known_message(field.number))
                r = take_message(reader, &field, error);
        } else if (field.number == PPROF_COMMENT) {
            r = take_comments(reader, &field, error);
        } else if (known_message(field.number)) {
            return wire_stream_malformed(&reader->stream, "A message that is a plain number",
                                         error);
        } else {
            take_number(reader, &field);
        }
        if (r >= 0)
            r = source_check_memory(error);
        if (r < 0)
            return r;
    }
    reader->end_offset = source_offset(reader->source);
    return r;
}

static void *collect(struct source *source, enum profile_detail detail, struct error *error)
{
    struct pprof_reader *reader = memory_zalloc(1, sizeof(*reader));
    reader->source = source;
    reader->want_labels = detail & PROFILE_LABELS;
    reader->seed = random_bits();
    if (read_stream(reader, error) < 0 || pprof_link(reader, error) < 0) {
        pprof_reader_free(reader);
        return NULL;
    }
    return reader;
}

static int resolve(void *collected, struct profile *profile, struct error *error)
{
    return pprof_resolve(collected, profile, error);
}

static void discard(void *collected)
{
    pprof_reader_free(collected);
}

int pprof_read_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                          struct error *error)
{
    struct pprof_reader *reader = collect(source, profile->detail, error);
    if (!reader)
        return error->code;
    int r = pprof_resolve_unresolved(reader, seed, profile, error);
    if (r < 0)
        pprof_reader_free(reader);
    return r;
}

const struct format_phases pprof_phases = {
    .collect = collect,
    .resolve = resolve,
    .discard = discard,
};
