// SPDX-License-Identifier: Apache-2.0
// From what the readers found to the bytes of a name map: see map.h and map_format.h.

#include "symbol/maps/build.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"

uint64_t symbol_map_checksum(const void *bytes, size_t length)
{
    struct symbol_map_header header;
    XXH3_state_t state;
    memcpy(&header, bytes, sizeof(header));
    header.checksum = 0;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &header, sizeof(header));
    XXH3_64bits_update(&state, (const char *)bytes + sizeof(header), length - sizeof(header));
    return XXH3_64bits_digest(&state);
}

uint32_t symbol_map_intern(struct symbol_map_builder *builder, const char *text, size_t length)
{
    length = strnlen(text, length);
    if (!length)
        return 0;
    uint64_t hash = XXH3_64bits(text, length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&builder->known, &probe)) != ID_NONE) {
        const char *known = builder->texts.data + builder->text_offsets[id];
        if (!strncmp(known, text, length) && !known[length])
            return builder->text_offsets[id];
    }
    id = (uint32_t)builder->text_count++;
    array_reserve(builder->text_offsets, builder->text_capacity, builder->text_count);
    builder->text_offsets[id] = (uint32_t)builder->texts.length;
    buffer_add(&builder->texts, text, length);
    buffer_add_char(&builder->texts, '\0');
    id_table_insert(&builder->known, hash, id);
    return builder->text_offsets[id];
}

static void builder_release(struct symbol_map_builder *builder)
{
    buffer_release(&builder->texts);
    buffer_release(&builder->file);
    id_table_release(&builder->known);
    free(builder->text_offsets);
    free(builder->places);
    free(builder->classes);
    free(builder->methods);
}

/* ---- order ---- */

static int by_place(const void *a, const void *b)
{
    const struct symbol_map_place *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->segment.column != y->segment.column)
        return x->segment.column < y->segment.column ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Nearly always they are in order already. */
static void sort_places(struct symbol_map_builder *builder)
{
    bool sorted = true;
    for (size_t i = 0; i < builder->place_count; i++) {
        builder->places[i].order = (uint32_t)i;
        sorted &= !i || by_place(&builder->places[i - 1], &builder->places[i]) < 0;
    }
    if (!sorted)
        qsort(builder->places, builder->place_count, sizeof(*builder->places), by_place);
}

/* qsort has no context, and offsets mean nothing without their texts. */
struct sorted_method {
    const char *name;
    uint32_t order;
};

static int by_method(const void *a, const void *b)
{
    const struct sorted_method *x = a, *y = b;
    int difference = strcmp(x->name, y->name);
    return difference ? difference : (x->order > y->order) - (x->order < y->order);
}

static void sort_methods(struct symbol_map_builder *builder)
{
    struct symbol_map_method *sorted = memory_zalloc(builder->method_count + 1, sizeof(*sorted));
    struct sorted_method *keys = memory_zalloc(builder->method_count + 1, sizeof(*keys));
    for (size_t i = 0; i < builder->method_count; i++)
        keys[i] = (struct sorted_method){.name = builder->texts.data + builder->methods[i].name,
                                         .order = (uint32_t)i};
    for (size_t i = 0; i < builder->class_count; i++) {
        const struct symbol_map_class *class = &builder->classes[i];
        if (class->method_count)
            qsort(keys + class->first_method, class->method_count, sizeof(*keys), by_method);
    }
    for (size_t i = 0; i < builder->method_count; i++)
        sorted[i] = builder->methods[keys[i].order];
    free(keys);
    free(builder->methods);
    builder->methods = sorted;
}

/* A class that is listed twice is the one that came last. */
static void sort_classes(struct symbol_map_builder *builder)
{
    struct symbol_map_class *sorted = memory_zalloc(builder->class_count + 1, sizeof(*sorted));
    struct sorted_method *keys = memory_zalloc(builder->class_count + 1, sizeof(*keys));
    size_t count = 0;
    for (size_t i = 0; i < builder->class_count; i++)
        keys[i] = (struct sorted_method){.name = builder->texts.data + builder->classes[i].name,
                                         .order = (uint32_t)i};
    if (builder->class_count)
        qsort(keys, builder->class_count, sizeof(*keys), by_method);
    for (size_t i = 0; i < builder->class_count; i++)
        if (i + 1 == builder->class_count || strcmp(keys[i].name, keys[i + 1].name) != 0)
            sorted[count++] = builder->classes[keys[i].order];
    free(keys);
    free(builder->classes);
    builder->classes = sorted;
    builder->class_count = count;
}

/* ---- bytes ---- */

static void add_part(struct buffer *out, struct symbol_map_header *header,
                     enum symbol_map_part part, const void *bytes, size_t length)
{
    static const char zeroes[8];
    buffer_add(out, zeroes, (8 - out->length % 8) % 8);
    header->parts[part].offset = out->length;
    header->parts[part].length = length;
    buffer_add(out, bytes, length);
}

static void add_segments(struct symbol_map_builder *builder, struct buffer *out,
                         struct symbol_map_header *header)
{
    size_t line_count =
        builder->place_count ? builder->places[builder->place_count - 1].line + 1 : 0;
    _cleanup_free_ uint32_t *lines = memory_zalloc(line_count + 1, sizeof(*lines));
    size_t at = 0;
    for (size_t line = 0; line < line_count; line++) {
        lines[line] = (uint32_t)at;
        while (at < builder->place_count && builder->places[at].line == line)
            at++;
    }
    lines[line_count] = (uint32_t)at;
    add_part(out, header, SYMBOL_MAP_LINES, lines, (line_count + 1) * sizeof(*lines));
    add_part(out, header, SYMBOL_MAP_SEGMENTS, NULL, 0);
    for (size_t i = 0; i < builder->place_count; i++)
        buffer_add(out, &builder->places[i].segment, sizeof(builder->places[i].segment));
    header->parts[SYMBOL_MAP_SEGMENTS].length =
        builder->place_count * sizeof(struct symbol_map_segment);
}

static int write_map(struct symbol_map_builder *builder, struct symbol_map_header *header,
                     struct buffer *ret_map, struct error *error)
{
    struct buffer out = {0};
    if (builder->texts.length > SYMBOL_MAP_TEXT_BYTES_MAX)
        return error_set(error, -E2BIG, "Names and paths exceed the limit of %u MiB.",
                         SYMBOL_MAP_TEXT_BYTES_MAX >> 20);
    buffer_add(&out, header, sizeof(*header));
    add_part(&out, header, SYMBOL_MAP_TEXTS, builder->texts.data, builder->texts.length);
    sort_places(builder);
    add_segments(builder, &out, header);
    sort_methods(builder);
    add_part(&out, header, SYMBOL_MAP_METHODS, builder->methods,
             builder->method_count * sizeof(*builder->methods));
    sort_classes(builder);
    add_part(&out, header, SYMBOL_MAP_CLASSES, builder->classes,
             builder->class_count * sizeof(*builder->classes));
    header->file_bytes = out.length;
    memcpy(out.data, header, sizeof(*header));
    header->checksum = symbol_map_checksum(out.data, out.length);
    memcpy(out.data, header, sizeof(*header));
    *ret_map = out;
    return 0;
}

static uint32_t intern_text(struct symbol_map_builder *builder, const char *text)
{
    return symbol_map_intern(builder, text, strlen(text));
}

/* Without a name in the key, what a source map says; that may be a path or an address. */
static int choose_name(struct symbol_map_builder *builder, const struct symbol_map_key *key,
                       const char **ret_name, struct error *error)
{
    *ret_name = *key->name ? key->name : buffer_text(&builder->file);
    if (!**ret_name || strlen(*ret_name) > SYMBOL_MAP_KEY_BYTES_MAX)
        return error_set(error, -EINVAL,
                         "A source map requires the name of the generated file, such as app.js: "
                         "give it with the upload, or in the map's field \"file\".");
    return 0;
}

int symbol_map_build(struct source *source, const struct symbol_map_key *key, int64_t added,
                     struct buffer *ret_map, struct error *error)
{
    _cleanup_(builder_release) struct symbol_map_builder builder = {0};
    const char *name = "";
    buffer_add_char(&builder.texts, '\0');
    int r = source_need(source, 4, error);
    if (r < 0)
        return r;
    const uint8_t *start = source_data(source);
    size_t length = source_available(source), blank = 0;
    if (length >= 3 && !memcmp(start, "\xef\xbb\xbf", 3))
        blank = 3;
    while (blank < length && strchr(" \t\r\n", start[blank]) && start[blank])
        blank++;
    bool is_json = blank < length && (start[blank] == '{' || start[blank] == ')');
    r = is_json ? sourcemap_read(source, &builder, error) : proguard_read(source, &builder, error);
    if (!r && is_json)
        r = choose_name(&builder, key, &name, error);
    if (r < 0)
        return r;
    struct symbol_map_header header = {
        .magic = {'a', 's', 's', 'a', 'y', 'm', 'a', 'p'},
        .version = SYMBOL_MAP_VERSION,
        .header_bytes = sizeof(header),
        .kind = is_json ? SYMBOL_MAP_JAVASCRIPT : SYMBOL_MAP_JVM,
        .tenant = intern_text(&builder, key->tenant),
        .service = intern_text(&builder, key->service),
        .service_version = intern_text(&builder, key->version),
        .name = intern_text(&builder, name),
        .source_bytes = source_offset(source),
        .added = added,
    };
    return write_map(&builder, &header, ret_map, error);
}
