// SPDX-License-Identifier: Apache-2.0
// The dictionary of an OTLP message that is being written: see otlp_tables.h.

#include "format/otlp/tables.h"
#include "profile/address.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define OTLP_DICTIONARY 2 /* field of a request */
#define STREAM_BYTES (64u << 10)

static void list_add(struct otlp_table_list *list, uint32_t value)
{
    array_reserve(list->data, list->capacity, list->count + 1);
    list->data[list->count++] = value;
}

/* Fields of AnyValue that are written even when they are zero: which one is set is the type. */
void otlp_put_any_text(struct buffer *out, const char *text, size_t length)
{
    wire_put_bytes(out, 1, text, length);
}

void otlp_put_any_label(struct buffer *out, const struct profile *profile,
                        const struct profile_label *label)
{
    const struct profile_string *text = &profile->strings[label->text];
    if (label->text) {
        otlp_put_any_text(out, text->data, text->length);
    } else {
        wire_put_tag(out, 3, WIRE_VARINT);
        wire_put_varint(out, (uint64_t)label->number);
    }
}

/* Adds `entry` to a table and gives its index. */
static uint32_t add_entry(struct otlp_tables *tables, enum otlp_table table, const void *data,
                          size_t length)
{
    struct buffer *encoded = &tables->encoded[table];
    wire_put_bytes(encoded, table, data, length);
    if (tables->stream && encoded->length >= STREAM_BYTES) {
        wire_put_bytes(tables->stream, OTLP_DICTIONARY, encoded->data, encoded->length);
        encoded->length = 0;
        buffer_pass(tables->stream);
    }
    return tables->counts[table]++;
}

void otlp_tables_stream(struct otlp_tables *tables, struct buffer *out)
{
    tables->stream = out;
}

void otlp_tables_init(struct otlp_tables *tables, const struct profile *profile)
{
    *tables = (struct otlp_tables){
        .profile = profile,
        .strings = memory_zalloc(profile->string_count, sizeof(uint32_t)),
        .functions = memory_zalloc(profile->function_count, sizeof(uint32_t)),
        .mappings = memory_zalloc(profile->mapping_count, sizeof(uint32_t)),
        .stacks = memory_zalloc(profile->node_count, sizeof(uint32_t)),
        .build_ids = memory_zalloc(profile->string_count, sizeof(uint32_t)),
        .frame_locations = memory_zalloc(profile->frame_count, sizeof(uint32_t)),
        .label_sets =
            memory_zalloc(profile_label_set_count(profile), sizeof(struct otlp_table_list)),
        .label_sets_known = memory_zalloc(profile_label_set_count(profile), sizeof(bool)),
    };
    for (int table = OTLP_MAPPINGS; table <= OTLP_STACKS; table++)
        if (table != OTLP_LINKS)
            add_entry(tables, table, "", 0);
    array_reserve(tables->attributes, tables->attribute_capacity, 1);
    list_add(&tables->location_ends, 0);
    /* Links keep their numbers; the zero one has ids of full length, for strict decoders. */
    for (uint32_t i = 0; i < profile->link_count; i++) {
        tables->scratch.length = 0;
        wire_put_bytes(&tables->scratch, 1, profile->links[i].trace_id, 16);
        wire_put_bytes(&tables->scratch, 2, profile->links[i].span_id, 8);
        add_entry(tables, OTLP_LINKS, tables->scratch.data, tables->scratch.length);
    }
}

void otlp_tables_release(struct otlp_tables *tables)
{
    for (int table = 0; table <= OTLP_STACKS; table++)
        buffer_release(&tables->encoded[table]);
    for (uint32_t i = 0; i < profile_label_set_count(tables->profile); i++)
        free(tables->label_sets[i].data);
    free(tables->label_sets);
    free(tables->label_sets_known);
    free(tables->strings);
    free(tables->functions);
    free(tables->mappings);
    free(tables->stacks);
    free(tables->frame_locations);
    free(tables->location_frames.data);
    free(tables->location_ends.data);
    free(tables->build_ids);
    free(tables->attributes);
    free(tables->group.data);
    id_table_release(&tables->location_index);
    id_table_release(&tables->attribute_index);
    buffer_release(&tables->scratch);
    buffer_release(&tables->stack_scratch);
    buffer_release(&tables->indexes);
}

uint32_t otlp_tables_string(struct otlp_tables *tables, uint32_t string)
{
    const struct profile_string *text = &tables->profile->strings[string];
    if (string && !tables->strings[string])
        tables->strings[string] = add_entry(tables, OTLP_STRINGS, text->data, text->length);
    return tables->strings[string];
}

uint32_t otlp_tables_text(struct otlp_tables *tables, const char *text)
{
    for (unsigned i = 0; i < tables->extra_count; i++)
        if (tables->extras[i].text == text || !strcmp(tables->extras[i].text, text))
            return tables->extras[i].index;
    uint32_t index = add_entry(tables, OTLP_STRINGS, text, strlen(text));
    if (tables->extra_count < OTLP_EXTRAS) {
        tables->extras[tables->extra_count].text = text;
        tables->extras[tables->extra_count++].index = index;
    }
    return index;
}

static uint32_t add_attribute(struct otlp_tables *tables, uint32_t key, const struct buffer *any,
                              uint32_t unit)
{
    struct buffer *entry = &tables->scratch;
    entry->length = 0;
    wire_put_u64(entry, 1, key);
    wire_put_bytes(entry, 2, any->data, any->length);
    wire_put_u64(entry, 3, unit);
    return add_entry(tables, OTLP_ATTRIBUTES, entry->data, entry->length);
}

uint32_t otlp_tables_attribute(struct otlp_tables *tables, const char *key,
                               const struct buffer *any)
{
    return add_attribute(tables, otlp_tables_text(tables, key), any, 0);
}

static uint32_t text_attribute(struct otlp_tables *tables, const char *key, const char *value,
                               size_t length)
{
    _cleanup_buffer_ struct buffer any = {0};
    otlp_put_any_text(&any, value, length);
    return otlp_tables_attribute(tables, key, &any);
}

static uint32_t label_attribute(struct otlp_tables *tables, const struct profile_label *label)
{
    uint64_t hash = XXH3_64bits(label, sizeof(*label));
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->attribute_index, &probe)) != ID_NONE)
        if (!memcmp(&tables->attributes[id], label, sizeof(*label)))
            return id;
    uint32_t key = otlp_tables_string(tables, label->key);
    uint32_t unit = otlp_tables_string(tables, label->unit);
    _cleanup_buffer_ struct buffer any = {0};
    otlp_put_any_label(&any, tables->profile, label);
    id = add_attribute(tables, key, &any, unit);
    array_reserve(tables->attributes, tables->attribute_capacity, (size_t)id + 1);
    tables->attributes[id] = *label;
    id_table_insert(&tables->attribute_index, hash, id);
    return id;
}

const struct otlp_table_list *otlp_tables_labels(struct otlp_tables *tables, uint32_t label_set)
{
    struct otlp_table_list *list = &tables->label_sets[label_set];
    if (tables->label_sets_known[label_set])
        return list;
    tables->label_sets_known[label_set] = true;
    size_t count, shared = 0;
    const struct profile_label *labels = profile_labels(tables->profile, label_set, &count);
    for (size_t i = 0; i < count; i++) {
        /* Both are in the same order, and every shared label is in every set. */
        if (shared < tables->shared_count &&
            !memcmp(&labels[i], &tables->shared[shared], sizeof(*labels)))
            shared++;
        else if (labels[i].key)
            list_add(list, label_attribute(tables, &labels[i]));
    }
    return list;
}

static uint32_t function_index(struct otlp_tables *tables, uint32_t function)
{
    const struct profile_function *known = &tables->profile->functions[function];
    if (!tables->functions[function]) {
        struct buffer *entry = &tables->scratch;
        uint32_t name = otlp_tables_string(tables, known->name);
        uint32_t system_name = otlp_tables_string(tables, known->system_name);
        uint32_t file = otlp_tables_string(tables, known->file);
        entry->length = 0;
        wire_put_u64(entry, 1, name);
        wire_put_u64(entry, 2, system_name);
        wire_put_u64(entry, 3, file);
        wire_put_u64(entry, 4, known->start_line);
        tables->functions[function] = add_entry(tables, OTLP_FUNCTIONS, entry->data, entry->length);
    }
    return tables->functions[function];
}

/* The model doesn't keep what kind of id it is; Go's have slashes and other letters. */
static uint32_t build_id_attribute(struct otlp_tables *tables, uint32_t build_id)
{
    const struct profile_string *text = &tables->profile->strings[build_id];
    if (build_id && !tables->build_ids[build_id]) {
        bool hexadecimal = strspn(text->data, "0123456789abcdefABCDEF") == text->length;
        tables->build_ids[build_id] = text_attribute(tables,
                                                     hexadecimal ? "process.executable.build_id.gnu"
                                                                 : "process.executable.build_id.go",
                                                     text->data, text->length);
    }
    return tables->build_ids[build_id];
}

static void put_packed(struct buffer *out, uint32_t number, struct buffer *indexes)
{
    if (indexes->length)
        wire_put_bytes(out, number, indexes->data, indexes->length);
    indexes->length = 0;
}

static uint32_t mapping_index(struct otlp_tables *tables, uint32_t mapping)
{
    const struct profile_mapping *known = &tables->profile->mappings[mapping];
    if (mapping && !tables->mappings[mapping]) {
        struct buffer *entry = &tables->scratch;
        uint32_t file = otlp_tables_string(tables, known->file);
        uint32_t build_id = build_id_attribute(tables, known->build_id);
        if (build_id)
            wire_put_varint(&tables->indexes, build_id);
        entry->length = 0;
        bool by_address = profile_by_address(known);
        wire_put_u64(entry, 1, by_address ? 0 : known->start);
        wire_put_u64(entry, 2, known->limit);
        wire_put_u64(entry, 3, by_address ? 0 : known->offset);
        wire_put_u64(entry, 4, file);
        put_packed(entry, 5, &tables->indexes);
        tables->mappings[mapping] = add_entry(tables, OTLP_MAPPINGS, entry->data, entry->length);
    }
    return tables->mappings[mapping];
}

/* Attributes of a frame, into `indexes`. */
static void frame_attributes(struct otlp_tables *tables, const struct profile_frame *frame)
{
    if (frame->kind && frame->kind < FRAME_KINDS) {
        uint32_t *kind = &tables->kinds[frame->kind];
        const char *name = otlp_kind_names[frame->kind];
        if (!*kind)
            *kind = text_attribute(tables, "profile.frame.type", name, strlen(name));
        wire_put_varint(&tables->indexes, *kind);
    }
    if (frame->folded) {
        if (!tables->folded) {
            _cleanup_buffer_ struct buffer any = {0};
            wire_put_u64(&any, 2, 1);
            tables->folded = otlp_tables_attribute(tables, "pprof.location.is_folded", &any);
        }
        wire_put_varint(&tables->indexes, tables->folded);
    }
}

/* The frames in `group`, innermost first; the last one is the function that holds the others. */
static uint32_t add_location(struct otlp_tables *tables)
{
    const struct profile *profile = tables->profile;
    const struct otlp_table_list *group = &tables->group;
    const struct profile_frame *base = &profile->frames[group->data[group->count - 1]];
    _cleanup_buffer_ struct buffer entry = {0};
    wire_put_u64(&entry, 1, mapping_index(tables, base->mapping));
    wire_put_u64(&entry, 2, base->address ? profile_frame_address(profile, base) : 0);
    for (size_t i = 0; i < group->count; i++) {
        const struct profile_frame *frame = &profile->frames[group->data[i]];
        if (!frame->function)
            continue;
        uint32_t function = function_index(tables, frame->function);
        size_t mark = wire_begin(&entry, 3);
        wire_put_u64(&entry, 1, function);
        wire_put_u64(&entry, 2, frame->line);
        wire_put_u64(&entry, 3, frame->column);
        wire_end(&entry, mark);
    }
    frame_attributes(tables, base);
    put_packed(&entry, 4, &tables->indexes);
    return add_entry(tables, OTLP_LOCATIONS, entry.data, entry.length);
}

static uint32_t group_location(struct otlp_tables *tables)
{
    const struct otlp_table_list *group = &tables->group;
    uint32_t *alone = group->count == 1 ? &tables->frame_locations[group->data[0]] : NULL;
    if (alone) {
        if (!*alone) {
            *alone = add_location(tables);
            list_add(&tables->location_ends, (uint32_t)tables->location_frames.count);
        }
        return *alone;
    }
    size_t bytes = group->count * sizeof(*group->data);
    uint64_t hash = XXH3_64bits(group->data, bytes);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->location_index, &probe)) != ID_NONE) {
        uint32_t start = tables->location_ends.data[id - 1];
        if (tables->location_ends.data[id] - start == group->count &&
            !memcmp(tables->location_frames.data + start, group->data, bytes))
            return id;
    }
    id = add_location(tables);
    for (size_t i = 0; i < group->count; i++)
        list_add(&tables->location_frames, group->data[i]);
    list_add(&tables->location_ends, (uint32_t)tables->location_frames.count);
    id_table_insert(&tables->location_index, hash, id);
    return id;
}

uint32_t otlp_tables_stack(struct otlp_tables *tables, uint32_t node)
{
    const struct profile *profile = tables->profile;
    if (!node || tables->stacks[node])
        return tables->stacks[node];
    struct buffer *locations = &tables->stack_scratch;
    locations->length = 0;
    tables->group.count = 0;
    for (uint32_t at = node; at; at = profile->nodes[at].parent) {
        list_add(&tables->group, profile->nodes[at].frame);
        /* Frames that were inlined share the location of what they were inlined into. */
        if (profile->frames[profile->nodes[at].frame].inlined && profile->nodes[at].parent)
            continue;
        wire_put_varint(locations, group_location(tables));
        tables->group.count = 0;
    }
    struct buffer *entry = &tables->scratch;
    entry->length = 0;
    put_packed(entry, 1, locations);
    return tables->stacks[node] = add_entry(tables, OTLP_STACKS, entry->data, entry->length);
}

void otlp_tables_write(struct otlp_tables *tables, struct buffer *out)
{
    _cleanup_buffer_ struct buffer content = {0};
    for (int table = OTLP_MAPPINGS; table <= OTLP_STACKS; table++)
        buffer_add(&content, tables->encoded[table].data, tables->encoded[table].length);
    wire_put_bytes(out, OTLP_DICTIONARY, content.data, content.length);
}
