// SPDX-License-Identifier: Apache-2.0
// Flattening types into lists of plain reads, and running those. Every op but the end of an array
// takes at least one byte of input, so that running one is linear in the bytes read whatever the
// description of types says. See jfr.h.

#include "format/jfr/jfr.h"

#include <string.h>

#include "base/memory.h"

#define STRUCT_DEPTH_MAX 16
#define ARRAY_DEPTH_MAX 8
#define PATH_BYTES 128

/* Fields looked at for all layouts of a chunk together. Structs in structs multiply, even those
 * without any content; what a JVM's recording needs is about a thousand. */
#define STEPS_MAX 16384

struct level {
    const struct jfr_class *class;
    uint32_t next_field;
    uint32_t array; /* the op of the array that it is the element of, or NO_ARRAY */
    size_t path_length;
};

#define NO_ARRAY UINT32_MAX

struct maker {
    struct jfr_metadata *metadata;
    const struct jfr_binding *bindings;
    size_t binding_count;
    char path[PATH_BYTES];
    struct level levels[STRUCT_DEPTH_MAX];
    int depth;
    int array_depth;
};

static void add_op(struct maker *maker, struct jfr_op op)
{
    struct jfr_metadata *metadata = maker->metadata;
    array_reserve(metadata->ops, metadata->op_capacity, metadata->op_count + 1);
    metadata->ops[metadata->op_count++] = op;
}

static uint8_t slot_of(const struct maker *maker, const char *path)
{
    for (size_t i = 0; i < maker->binding_count; i++)
        if (!strcmp(maker->bindings[i].path, path))
            return maker->bindings[i].slot;
    return 0;
}

/* The path to a field of the innermost level. Names too long to be of interest get none. */
static size_t make_path(struct maker *maker, const char *name)
{
    size_t length = maker->levels[maker->depth - 1].path_length;
    size_t name_length = strnlen(name, PATH_BYTES);
    if (length + name_length + 2 > PATH_BYTES) {
        maker->path[0] = '?';
        maker->path[1] = '\0';
        return PATH_BYTES;
    }
    if (length)
        maker->path[length++] = '.';
    memcpy(maker->path + length, name, name_length + 1);
    return length + name_length;
}

static void end_array(struct maker *maker, uint32_t array)
{
    struct jfr_metadata *metadata = maker->metadata;
    add_op(maker, (struct jfr_op){
                      .kind = JFR_ARRAY_END, .slot = metadata->ops[array].slot, .jump = array + 1});
    metadata->ops[array].jump = (uint32_t)metadata->op_count;
    maker->array_depth--;
}

static int add_field(struct maker *maker, const struct jfr_field *field, struct error *error)
{
    struct jfr_metadata *metadata = maker->metadata;
    const struct jfr_class *class = jfr_metadata_class(metadata, field->class_id);
    if (!class)
        return error_set(error, -EBADMSG, "the field %.60s has a type that is not described",
                         field->name);
    size_t path_length = make_path(maker, field->name);
    uint8_t slot = slot_of(maker, maker->path);
    uint32_t array = NO_ARRAY;
    if (field->array) {
        if (maker->array_depth++ == ARRAY_DEPTH_MAX)
            return error_set(error, -EBADMSG, "arrays are nested too deep in its types");
        array = (uint32_t)metadata->op_count;
        add_op(maker, (struct jfr_op){.kind = JFR_ARRAY, .slot = slot});
        slot = 0;
    }
    if (!field->constant && class->primitive == JFR_STRUCT) {
        if (maker->depth == STRUCT_DEPTH_MAX)
            return error_set(error, -EBADMSG, "the type %.60s is nested too deep", class->name);
        maker->levels[maker->depth++] =
            (struct level){.class = class, .array = array, .path_length = path_length};
        return 0;
    }
    add_op(maker, (struct jfr_op){.kind = field->constant ? JFR_CONSTANT : class->primitive,
                                  .slot = slot,
                                  .role = class->role});
    if (array != NO_ARRAY)
        end_array(maker, array);
    return 0;
}

int jfr_layout_make(struct jfr_metadata *metadata, const struct jfr_class *class,
                    const struct jfr_binding *bindings, size_t binding_count,
                    struct jfr_layout *ret_layout, struct error *error)
{
    struct maker maker = {
        .metadata = metadata, .bindings = bindings, .binding_count = binding_count};
    struct jfr_layout layout = {.first = (uint32_t)metadata->op_count, .ready = true};
    if (class->primitive != JFR_STRUCT)
        add_op(&maker, (struct jfr_op){.kind = class->primitive, .slot = slot_of(&maker, "")});
    else
        maker.levels[maker.depth++] = (struct level){.class = class, .array = NO_ARRAY};
    while (maker.depth) {
        struct level *level = &maker.levels[maker.depth - 1];
        if (level->next_field == level->class->field_count) {
            if (level->array != NO_ARRAY)
                end_array(&maker, level->array);
            maker.depth--;
            continue;
        }
        const struct jfr_field *field =
            &metadata->fields[level->class->first_field + level->next_field++];
        int r = add_field(&maker, field, error);
        if (r < 0)
            return r;
        if (++metadata->layout_steps > STEPS_MAX)
            return error_set(error, -E2BIG, "its types have too many fields");
    }
    layout.count = (uint32_t)metadata->op_count - layout.first;
    *ret_layout = layout;
    return 0;
}

static void put_number(struct jfr_values *values, const struct jfr_op *op, int64_t number)
{
    if (!values || !op->slot)
        return;
    values->present |= 1u << op->slot;
    values->number[op->slot] = number;
    values->is_text[op->slot] = false;
    values->role[op->slot] = op->kind == JFR_CONSTANT ? op->role : JFR_NO_ROLE;
}

static void put_text(struct jfr_values *values, const struct jfr_op *op, struct jfr_text text)
{
    if (!values || !op->slot)
        return;
    values->present |= 1u << op->slot;
    values->number[op->slot] = 0;
    values->is_text[op->slot] = true;
    values->text[op->slot] = text;
}

static void run_plain(const struct jfr_op *op, struct jfr_cursor *cursor, struct jfr_values *values)
{
    switch (op->kind) {
    case JFR_BYTE:
        put_number(values, op, jfr_read_byte(cursor));
        break;
    case JFR_SHORT:
        put_number(values, op, jfr_read_short(cursor));
        break;
    case JFR_INT:
        put_number(values, op, jfr_read_int(cursor));
        break;
    case JFR_LONG:
    case JFR_CONSTANT:
        put_number(values, op, jfr_read_long(cursor));
        break;
    case JFR_FLOAT:
        jfr_skip(cursor, 4);
        break;
    case JFR_DOUBLE:
        jfr_skip(cursor, 8);
        break;
    case JFR_STRING:
        put_text(values, op, jfr_read_text(cursor));
        break;
    }
}

void jfr_layout_run(const struct jfr_metadata *metadata, const struct jfr_layout *layout,
                    struct jfr_cursor *cursor, struct jfr_values *values)
{
    int32_t left[ARRAY_DEPTH_MAX];
    int depth = 0;
    uint32_t end = layout->first + layout->count;
    for (uint32_t i = layout->first; i < end && !cursor->failed;) {
        const struct jfr_op *op = &metadata->ops[i++];
        if (op->kind == JFR_ARRAY) {
            int32_t count = jfr_read_int(cursor);
            bool empty_elements = op->jump == i + 1;
            /* An element takes a byte at least, unless it has no fields at all. */
            if (count < 0 || (!empty_elements && (size_t)count > jfr_left(cursor)))
                cursor->failed = true;
            if (count <= 0 || empty_elements)
                i = op->jump;
            else
                left[depth++] = count;
        } else if (op->kind == JFR_ARRAY_END) {
            if (op->slot == JFR_SLOT_FRAMES && values && values->element)
                values->element(values, values->context);
            if (--left[depth - 1])
                i = op->jump;
            else
                depth--;
        } else {
            run_plain(op, cursor, values);
        }
    }
}
