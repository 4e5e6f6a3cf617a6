// SPDX-License-Identifier: Apache-2.0
// A chunk's description of its own types: a table of strings and a tree of elements, of which the
// classes and their fields matter. Types are known by name; their numbers differ from chunk to
// chunk. See jfr.h.

#include "format/jfr/jfr.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"

/* The trees that JVMs write are five levels deep. */
#define ELEMENT_DEPTH_MAX 16

enum element_kind { ELEMENT_OTHER, ELEMENT_CLASS, ELEMENT_FIELD };

struct element {
    enum element_kind kind;
    int32_t children_left;
};

static const struct {
    const char *name;
    enum jfr_op_kind kind;
} primitives[] = {
    {"boolean", JFR_BYTE}, {"byte", JFR_BYTE},     {"short", JFR_SHORT},
    {"char", JFR_SHORT},   {"int", JFR_INT},       {"long", JFR_LONG},
    {"float", JFR_FLOAT},  {"double", JFR_DOUBLE}, {"java.lang.String", JFR_STRING},
};

static const char *const role_names[JFR_ROLES] = {
    [JFR_STRINGS] = "java.lang.String",          [JFR_SYMBOLS] = "jdk.types.Symbol",
    [JFR_CLASSES] = "java.lang.Class",           [JFR_METHODS] = "jdk.types.Method",
    [JFR_STACK_TRACES] = "jdk.types.StackTrace", [JFR_FRAME_TYPES] = "jdk.types.FrameType",
    [JFR_THREADS] = "java.lang.Thread",          [JFR_THREAD_STATES] = "jdk.types.ThreadState",
};

static int malformed(struct error *error)
{
    return error_set(error, -EBADMSG, "its description of types is damaged");
}

static int read_strings(struct jfr_metadata *metadata, struct jfr_cursor *cursor,
                        struct error *error)
{
    int32_t count = jfr_read_int(cursor);
    if (cursor->failed || count < 0 || (size_t)count > jfr_left(cursor))
        return malformed(error);
    metadata->strings = memory_zalloc((size_t)count, sizeof(*metadata->strings));
    _cleanup_buffer_ struct buffer scratch = {0};
    for (int32_t i = 0; i < count; i++) {
        struct jfr_text text = jfr_read_text(cursor);
        scratch.length = 0;
        jfr_text_add(&scratch, &text);
        metadata->strings[i] =
            arena_strndup(&metadata->text, scratch.length ? scratch.data : "", scratch.length);
    }
    metadata->string_count = (size_t)count;
    return cursor->failed ? malformed(error) : 0;
}

/* Zero-based into the strings; NULL and a failed cursor when it is out of range. */
static const char *read_string_index(const struct jfr_metadata *metadata, struct jfr_cursor *cursor)
{
    int32_t index = jfr_read_int(cursor);
    if (cursor->failed || index < 0 || (size_t)index >= metadata->string_count) {
        cursor->failed = true;
        return NULL;
    }
    return metadata->strings[index];
}

/* Numbers in attributes are decimal, and may be negative. Many elements may share one text, so no
 * more of it is looked at than a number can have. */
static int64_t parse_id(const char *text)
{
    bool negative = *text == '-';
    uint64_t value = 0;
    const char *digits = text + negative;
    for (int i = 0; i < 20 && digits[i] >= '0' && digits[i] <= '9'; i++)
        value = value * 10 + (uint64_t)(digits[i] - '0');
    return (int64_t)(negative ? -value : value);
}

static void add_class(struct jfr_metadata *metadata, const char *name, const char *id)
{
    array_reserve(metadata->classes, metadata->class_capacity, metadata->class_count + 1);
    struct jfr_class *class = &metadata->classes[metadata->class_count++];
    *class = (struct jfr_class){
        .id = parse_id(id), .name = name, .first_field = (uint32_t)metadata->field_count};
    for (size_t i = 0; i < ARRAY_LENGTH(primitives); i++)
        if (!strcmp(name, primitives[i].name))
            class->primitive = primitives[i].kind;
    for (enum jfr_role role = JFR_NO_ROLE + 1; role < JFR_ROLES; role++)
        if (!strcmp(name, role_names[role]) && !metadata->role_taken[role]) {
            class->role = role;
            metadata->role_taken[role] = true;
        }
}

struct attributes {
    const char *name, *id, *class, *constant, *dimension;
};

static void read_attributes(const struct jfr_metadata *metadata, struct jfr_cursor *cursor,
                            struct attributes *ret)
{
    int32_t count = jfr_read_int(cursor);
    for (int32_t i = 0; i < count && !cursor->failed; i++) {
        const char *key = read_string_index(metadata, cursor);
        const char *value = cursor->failed ? NULL : read_string_index(metadata, cursor);
        if (cursor->failed)
            return;
        if (!strcmp(key, "name"))
            ret->name = value;
        else if (!strcmp(key, "id"))
            ret->id = value;
        else if (!strcmp(key, "class"))
            ret->class = value;
        else if (!strcmp(key, "constantPool"))
            ret->constant = value;
        else if (!strcmp(key, "dimension"))
            ret->dimension = value;
    }
}

/* One element without its children, which come next. */
static struct element read_element(struct jfr_metadata *metadata, struct jfr_cursor *cursor,
                                   enum element_kind parent)
{
    struct element element = {.kind = ELEMENT_OTHER};
    struct attributes attributes = {.name = "", .id = "0", .class = "0"};
    const char *tag = read_string_index(metadata, cursor);
    if (cursor->failed)
        return element;
    read_attributes(metadata, cursor, &attributes);
    element.children_left = jfr_read_int(cursor);
    if (cursor->failed)
        return element;
    if (!strcmp(tag, "class") && parent == ELEMENT_OTHER) {
        element.kind = ELEMENT_CLASS;
        add_class(metadata, attributes.name, attributes.id);
    } else if (!strcmp(tag, "field") && parent == ELEMENT_CLASS) {
        element.kind = ELEMENT_FIELD;
        array_reserve(metadata->fields, metadata->field_capacity, metadata->field_count + 1);
        metadata->fields[metadata->field_count++] = (struct jfr_field){
            .name = attributes.name,
            .class_id = parse_id(attributes.class),
            .constant = attributes.constant && !strcmp(attributes.constant, "true"),
            .array = attributes.dimension && strcmp(attributes.dimension, "0"),
        };
        metadata->classes[metadata->class_count - 1].field_count++;
    } else if (parent != ELEMENT_OTHER) {
        element.kind = ELEMENT_FIELD; /* below a class, but no part of its layout */
    }
    return element;
}

static int read_tree(struct jfr_metadata *metadata, struct jfr_cursor *cursor, struct error *error)
{
    struct element open[ELEMENT_DEPTH_MAX] = {{.kind = ELEMENT_OTHER, .children_left = 1}};
    int depth = 1;
    while (depth) {
        struct element *parent = &open[depth - 1];
        if (parent->children_left <= 0) {
            depth--;
            continue;
        }
        parent->children_left--;
        struct element child = read_element(metadata, cursor, parent->kind);
        if (cursor->failed)
            return malformed(error);
        if (child.children_left <= 0)
            continue;
        if (depth == ELEMENT_DEPTH_MAX)
            return error_set(error, -EBADMSG, "its description of types is nested too deep");
        open[depth++] = child;
    }
    return 0;
}

static uint64_t hash_id(const struct jfr_metadata *metadata, int64_t id)
{
    return hash_word((uint64_t)id ^ metadata->seed);
}

int jfr_metadata_read(struct jfr_metadata *metadata, struct jfr_cursor body, struct error *error)
{
    metadata->seed = random_bits();
    jfr_read_long(&body); /* start time */
    jfr_read_long(&body); /* duration */
    jfr_read_long(&body); /* number of this description */
    int r = read_strings(metadata, &body, error);
    if (r == 0)
        r = read_tree(metadata, &body, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < metadata->class_count; i++)
        if (!jfr_metadata_class(metadata, metadata->classes[i].id))
            id_table_insert(&metadata->by_id, hash_id(metadata, metadata->classes[i].id),
                            (uint32_t)i);
    return 0;
}

void jfr_metadata_release(struct jfr_metadata *metadata)
{
    arena_release(&metadata->text);
    free(metadata->strings);
    free(metadata->classes);
    free(metadata->fields);
    id_table_release(&metadata->by_id);
    free(metadata->ops);
    *metadata = (struct jfr_metadata){0};
}

struct jfr_class *jfr_metadata_class(const struct jfr_metadata *metadata, int64_t id)
{
    struct id_probe probe = id_probe_start(hash_id(metadata, id));
    uint32_t index;
    while ((index = id_table_next(&metadata->by_id, &probe)) != ID_NONE)
        if (metadata->classes[index].id == id)
            return &metadata->classes[index];
    return NULL;
}

struct jfr_class *jfr_metadata_class_by_name(const struct jfr_metadata *metadata, const char *name)
{
    for (size_t i = 0; i < metadata->class_count; i++)
        if (!strcmp(metadata->classes[i].name, name))
            return &metadata->classes[i];
    return NULL;
}
