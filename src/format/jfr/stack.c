// SPDX-License-Identifier: Apache-2.0
// From constants to what a profile holds: stacks, function names, threads and classes. Each
// constant is decoded once, and what it became is kept with it. See jfr.h.

#include "format/jfr/jfr.h"

#include <string.h>

#include "base/memory.h"

#define KIND_INLINED 0x100u /* in the resolved value of a frame type, beside enum frame_kind */

const struct jfr_binding jfr_constant_bindings[] = {
    {"", JFR_SLOT_TEXT},            /* java.lang.String */
    {"string", JFR_SLOT_TEXT},      /* Symbol */
    {"description", JFR_SLOT_TEXT}, /* FrameType */
    {"name", JFR_SLOT_TEXT},        /* Class, Method, ThreadState */
    {"type", JFR_SLOT_CLASS},       /* Method */
    {"javaName", JFR_SLOT_JAVA_NAME},
    {"osName", JFR_SLOT_OS_NAME},
    {"truncated", JFR_SLOT_TRUNCATED},
    {"frames", JFR_SLOT_FRAMES},
    {"frames.method", JFR_SLOT_METHOD},
    {"frames.lineNumber", JFR_SLOT_LINE},
    {"frames.type", JFR_SLOT_FRAME_TYPE},
};
const size_t jfr_constant_binding_count = ARRAY_LENGTH(jfr_constant_bindings);

/* A constant's bound values. It was read over once before, so this cannot fail. */
static void read_constant(const struct jfr_chunk *chunk, enum jfr_role role,
                          const struct jfr_constant *constant, struct jfr_values *values)
{
    struct jfr_cursor cursor = jfr_constant_value(chunk, constant);
    values->present = 0;
    jfr_layout_run(&chunk->metadata, &chunk->pools[role].layout, &cursor, values);
}

static void add_text(struct jfr_chunk *chunk, const struct jfr_text *text, struct buffer *out)
{
    if (text->length > chunk->text_budget) {
        chunk->text_exhausted = true;
        return;
    }
    chunk->text_budget -= text->length;
    jfr_text_add(out, text);
}

void jfr_chunk_text(struct jfr_chunk *chunk, const struct jfr_values *values, unsigned slot,
                    struct buffer *out)
{
    if (!(values->present & 1u << slot))
        return;
    enum jfr_role role = values->role[slot];
    int64_t id = values->number[slot];
    if (values->is_text[slot]) {
        const struct jfr_text *text = &values->text[slot];
        if (text->kind != JFR_TEXT_CONSTANT) {
            add_text(chunk, text, out);
            return;
        }
        role = JFR_STRINGS;
        id = text->constant;
    }
    if (role != JFR_STRINGS && role != JFR_SYMBOLS)
        return;
    const struct jfr_constant *constant = jfr_pool_find(chunk, role, id);
    if (!constant)
        return;
    /* One step only: a constant that is again a reference is nonsense. */
    struct jfr_values inner = {0};
    read_constant(chunk, role, constant, &inner);
    if (inner.present & 1u << JFR_SLOT_TEXT && inner.is_text[JFR_SLOT_TEXT])
        add_text(chunk, &inner.text[JFR_SLOT_TEXT], out);
}

static uint32_t take_scratch(struct jfr_chunk *chunk)
{
    const struct buffer *scratch = &chunk->scratch;
    return scratch->length ? profile_string(chunk->profile, scratch->data, scratch->length) : 0;
}

uint32_t jfr_chunk_string(struct jfr_chunk *chunk, const struct jfr_values *values, unsigned slot)
{
    struct jfr_constant *constant = NULL;
    if (values->present & 1u << slot && values->is_text[slot] &&
        values->text[slot].kind == JFR_TEXT_CONSTANT)
        constant = jfr_pool_find(chunk, JFR_STRINGS, values->text[slot].constant);
    if (constant && constant->is_resolved)
        return constant->resolved;
    chunk->scratch.length = 0;
    jfr_chunk_text(chunk, values, slot, &chunk->scratch);
    uint32_t string = take_scratch(chunk);
    if (constant) {
        constant->resolved = string;
        constant->is_resolved = true;
    }
    return string;
}

/* Class names come as "java/util/Map" from the JVM. Hidden classes have a slash of their own before
 * their address, which is turned too: that is how stack traces in Java show them. */
static void add_class_name(struct jfr_chunk *chunk, int64_t id, struct buffer *out)
{
    const struct jfr_constant *constant = jfr_pool_find(chunk, JFR_CLASSES, id);
    if (!constant)
        return;
    struct jfr_values values = {0};
    read_constant(chunk, JFR_CLASSES, constant, &values);
    size_t start = out->length;
    jfr_chunk_text(chunk, &values, JFR_SLOT_TEXT, out);
    for (size_t i = start; i < out->length; i++)
        if (out->data[i] == '/')
            out->data[i] = '.';
}

static uint32_t named_function(struct profile *profile, uint32_t name)
{
    return profile_function(profile, &(struct profile_function){.name = name});
}

/* The function of a method; *ret_in_class tells Java methods from native symbols. */
static uint32_t resolve_method(struct jfr_chunk *chunk, int64_t id, bool *ret_in_class)
{
    struct jfr_constant *constant = jfr_pool_find(chunk, JFR_METHODS, id);
    if (!constant) {
        *ret_in_class = false;
        return named_function(chunk->profile, profile_cstring(chunk->profile, "[unknown]"));
    }
    if (!constant->is_resolved) {
        struct jfr_values values = {0};
        read_constant(chunk, JFR_METHODS, constant, &values);
        chunk->scratch.length = 0;
        add_class_name(chunk, jfr_number(&values, JFR_SLOT_CLASS), &chunk->scratch);
        constant->flag = chunk->scratch.length;
        if (constant->flag)
            buffer_add_char(&chunk->scratch, '.');
        jfr_chunk_text(chunk, &values, JFR_SLOT_TEXT, &chunk->scratch);
        uint32_t name = take_scratch(chunk);
        if (!name)
            name = profile_cstring(chunk->profile, "[unknown]");
        constant->resolved = named_function(chunk->profile, name);
        constant->is_resolved = true;
    }
    *ret_in_class = constant->flag;
    return constant->resolved;
}

static uint32_t resolve_frame_type(struct jfr_chunk *chunk, int64_t id)
{
    static const struct {
        const char *name;
        uint32_t resolved;
    } known[] = {
        {"Inlined", FRAME_JVM | KIND_INLINED},
        {"Native", FRAME_NATIVE},
        {"C++", FRAME_NATIVE},
        {"Kernel", FRAME_KERNEL},
    };
    struct jfr_constant *constant = jfr_pool_find(chunk, JFR_FRAME_TYPES, id);
    if (!constant)
        return FRAME_JVM;
    if (!constant->is_resolved) {
        struct jfr_values values = {0};
        read_constant(chunk, JFR_FRAME_TYPES, constant, &values);
        chunk->scratch.length = 0;
        jfr_chunk_text(chunk, &values, JFR_SLOT_TEXT, &chunk->scratch);
        const char *name = buffer_text(&chunk->scratch);
        constant->resolved = FRAME_JVM; /* interpreted, or compiled by one compiler or another */
        for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
            if (!strcmp(name, known[i].name))
                constant->resolved = known[i].resolved;
        constant->is_resolved = true;
    }
    return constant->resolved;
}

/* A frame of the stack trace that is being read, innermost first. */
static void add_frame(struct jfr_values *values, void *context)
{
    struct jfr_chunk *chunk = context;
    bool in_class;
    int64_t line = jfr_number(values, JFR_SLOT_LINE);
    uint32_t type = resolve_frame_type(chunk, jfr_number(values, JFR_SLOT_FRAME_TYPE));
    struct profile_frame frame = {
        .function = resolve_method(chunk, jfr_number(values, JFR_SLOT_METHOD), &in_class),
        .line = line > 0 ? (uint32_t)line : 0,
        .kind = type & 0xff,
        .inlined = type & KIND_INLINED ? 1 : 0,
    };
    /* The JVM calls Java methods that are declared `native` so; they are Java frames all the same.
     */
    if (frame.kind == FRAME_NATIVE && in_class)
        frame.kind = FRAME_JVM;
    array_reserve(chunk->frames, chunk->frame_capacity, chunk->frame_count + 1);
    chunk->frames[chunk->frame_count++] = profile_frame(chunk->profile, &frame);
}

/* The outermost frame has nothing to be inlined into when the stack was cut above it. */
static void settle_outermost(struct jfr_chunk *chunk, bool truncated)
{
    struct profile *profile = chunk->profile;
    if (chunk->frame_count) {
        uint32_t *outermost = &chunk->frames[chunk->frame_count - 1];
        struct profile_frame frame = profile->frames[*outermost];
        if (frame.inlined) {
            frame.inlined = 0;
            *outermost = profile_frame(profile, &frame);
        }
    }
    if (truncated) {
        struct profile_frame cut = {
            .function = named_function(profile, profile_cstring(profile, "[truncated]"))};
        array_reserve(chunk->frames, chunk->frame_capacity, chunk->frame_count + 1);
        chunk->frames[chunk->frame_count++] = profile_frame(profile, &cut);
    }
}

uint32_t jfr_chunk_stack(struct jfr_chunk *chunk, int64_t id)
{
    struct jfr_constant *constant = jfr_pool_find(chunk, JFR_STACK_TRACES, id);
    if (!constant)
        return 0;
    if (constant->is_resolved)
        return constant->resolved;
    struct jfr_values values = {.element = add_frame, .context = chunk};
    chunk->frame_count = 0;
    read_constant(chunk, JFR_STACK_TRACES, constant, &values);
    settle_outermost(chunk, jfr_number(&values, JFR_SLOT_TRUNCATED));
    for (size_t i = 0, j = chunk->frame_count; i + 1 < j; i++) {
        uint32_t frame = chunk->frames[i];
        chunk->frames[i] = chunk->frames[--j];
        chunk->frames[j] = frame;
    }
    constant->resolved = profile_stack(chunk->profile, chunk->frames, chunk->frame_count);
    constant->is_resolved = true;
    return constant->resolved;
}

uint32_t jfr_chunk_thread(struct jfr_chunk *chunk, int64_t id)
{
    struct jfr_constant *constant = jfr_pool_find(chunk, JFR_THREADS, id);
    if (!constant)
        return 0;
    if (!constant->is_resolved) {
        struct jfr_values values = {0};
        read_constant(chunk, JFR_THREADS, constant, &values);
        chunk->scratch.length = 0;
        jfr_chunk_text(chunk, &values, JFR_SLOT_JAVA_NAME, &chunk->scratch);
        if (!chunk->scratch.length)
            jfr_chunk_text(chunk, &values, JFR_SLOT_OS_NAME, &chunk->scratch);
        constant->resolved = take_scratch(chunk);
        constant->is_resolved = true;
    }
    return constant->resolved;
}

uint32_t jfr_chunk_thread_state(struct jfr_chunk *chunk, int64_t id)
{
    struct jfr_constant *constant = jfr_pool_find(chunk, JFR_THREAD_STATES, id);
    if (!constant)
        return 0;
    if (!constant->is_resolved) {
        struct jfr_values values = {0};
        read_constant(chunk, JFR_THREAD_STATES, constant, &values);
        chunk->scratch.length = 0;
        jfr_chunk_text(chunk, &values, JFR_SLOT_TEXT, &chunk->scratch);
        constant->resolved = take_scratch(chunk);
        constant->is_resolved = true;
    }
    return constant->resolved;
}

/* "[[I" is int[][] and "[Ljava.lang.String;" is java.lang.String[]; others stay as they are. */
static void make_source_name(struct buffer *name)
{
    static const char *const letters = "BCDFIJSZ";
    static const char *const words[] = {"byte", "char", "double", "float",
                                        "int",  "long", "short",  "boolean"};
    size_t dimensions = 0;
    while (dimensions < name->length && name->data[dimensions] == '[')
        dimensions++;
    size_t left = name->length - dimensions;
    /* The JVM has a limit of 255 dimensions. */
    if (!dimensions || dimensions > 255 || !left)
        return;
    const char *element = name->data + dimensions;
    _cleanup_buffer_ struct buffer source = {0};
    const char *letter = memchr(letters, *element, strlen(letters));
    if (left == 1 && letter)
        buffer_add_text(&source, words[letter - letters]);
    else if (left > 2 && *element == 'L' && element[left - 1] == ';')
        buffer_add(&source, element + 1, left - 2);
    else
        return;
    for (size_t i = 0; i < dimensions; i++)
        buffer_add_text(&source, "[]");
    name->length = 0;
    buffer_add(name, source.data, source.length);
}

uint32_t jfr_chunk_class(struct jfr_chunk *chunk, int64_t id)
{
    struct jfr_constant *constant = jfr_pool_find(chunk, JFR_CLASSES, id);
    if (!constant)
        return 0;
    if (!constant->is_resolved) {
        chunk->scratch.length = 0;
        add_class_name(chunk, id, &chunk->scratch);
        make_source_name(&chunk->scratch);
        constant->resolved = take_scratch(chunk);
        constant->is_resolved = true;
    }
    return constant->resolved;
}
