// SPDX-License-Identifier: Apache-2.0
// Values of Arrow columns: see arrow.h. Indexes and offsets inside buffers come from the sender and
// are checked here, where they are used.

#include <string.h>

#include "base/memory.h"
#include "io/arrow/internal.h"

#define VIEW_BYTES 16
#define VIEW_INLINE_MAX 12

/* From a column to what it holds in the end. More are possible where a dictionary that came again
 * has values that refer to the one before, which nobody sends. */
#define STEPS_MAX (2 * ARROW_DEPTH_MAX)

bool arrow_is_named(const struct arrow_field *field, const char *name)
{
    return field->name_length == strlen(name) && !memcmp(field->name, name, field->name_length);
}

const struct arrow_array *arrow_child(const struct arrow_array *array, const char *name)
{
    for (unsigned step = 0; array && (array->values || array->field->kind != ARROW_STRUCT);
         step++) {
        if (step == STEPS_MAX)
            return NULL;
        if (array->values)
            array = array->values;
        else if (array->field->kind == ARROW_RUNS)
            array = &array->children[1];
        else
            array = array->field->child_count ? &array->children[0] : NULL;
    }
    for (unsigned i = 0; array && i < array->field->child_count; i++)
        if (arrow_is_named(&array->field->children[i], name))
            return &array->children[i];
    return NULL;
}

static uint64_t run_end(const struct arrow_array *ends, uint64_t run)
{
    return arrow_word(ends->data + run * ends->field->width, ends->field->width);
}

/* The run that an index is in; the number of runs, if it is in none. */
static uint64_t find_run(const struct arrow_array *array, uint64_t index)
{
    const struct arrow_array *ends = &array->children[0];
    uint64_t low = 0, high = ends->length;
    if (ends->field->kind != ARROW_INTEGER || ends->values)
        return high;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (run_end(ends, middle) > index)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t arrow_run_end(const struct arrow_array *array, uint64_t index)
{
    if (array->values || array->field->kind != ARROW_RUNS)
        return index + 1;
    uint64_t run = find_run(array, index);
    if (run >= array->children[0].length)
        return UINT64_MAX;
    return MAX(run_end(&array->children[0], run), index + 1);
}

struct arrow_cell arrow_cell(const struct arrow_array *array, uint64_t index)
{
    const struct arrow_cell null = {0};
    for (unsigned step = 0; array && index < array->length && step < STEPS_MAX; step++) {
        if (array->valid && !(array->valid[index / 8] >> index % 8 & 1))
            return null;
        if (array->values) {
            unsigned width = array->field->index_width;
            index = arrow_word(array->data + index * width, width);
            array = array->values;
        } else if (array->field->kind == ARROW_RUNS) {
            index = find_run(array, index);
            array = &array->children[1];
        } else if (array->field->kind == ARROW_NULL) {
            return null;
        } else {
            return (struct arrow_cell){array, index};
        }
    }
    return null;
}

static bool view_text(const struct arrow_array *array, const uint8_t *view, const char **ret_text,
                      size_t *ret_length)
{
    size_t length = (uint32_t)arrow_word(view, 4);
    if (length <= VIEW_INLINE_MAX) {
        *ret_text = (const char *)view + 4;
        *ret_length = length;
        return true;
    }
    uint64_t buffer = arrow_word(view + 8, 4), offset = arrow_word(view + 12, 4);
    if (buffer >= array->text_count || offset > array->texts[buffer].length ||
        length > array->texts[buffer].length - offset)
        return false;
    *ret_text = (const char *)array->texts[buffer].data + offset;
    *ret_length = length;
    return true;
}

bool arrow_text(struct arrow_cell cell, const char **ret_text, size_t *ret_length)
{
    const struct arrow_array *array = cell.array;
    if (!array)
        return false;
    if (array->field->kind == ARROW_TEXT_VIEW)
        return view_text(array, array->data + cell.index * VIEW_BYTES, ret_text, ret_length);
    if (array->field->kind == ARROW_FIXED) {
        *ret_text = (const char *)array->data + cell.index * array->field->width;
        *ret_length = array->field->width;
        return true;
    }
    if (array->field->kind != ARROW_TEXT)
        return false;
    unsigned width = array->field->width;
    uint64_t first = arrow_word(array->data + cell.index * width, width);
    uint64_t end = arrow_word(array->data + (cell.index + 1) * width, width);
    if (end < first || end > array->texts[0].length)
        return false;
    *ret_text = end > first ? (const char *)array->texts[0].data + first : "";
    *ret_length = (size_t)(end - first);
    return true;
}

bool arrow_number(struct arrow_cell cell, int64_t *ret_number)
{
    if (!cell.array || cell.array->field->kind != ARROW_INTEGER)
        return false;
    unsigned width = cell.array->field->width;
    uint64_t value = arrow_word(cell.array->data + cell.index * width, width);
    if (width < 8 && cell.array->field->is_signed && value >> (8 * width - 1))
        value |= ~0ull << (8 * width);
    *ret_number = (int64_t)value;
    return true;
}

bool arrow_list(struct arrow_cell cell, const struct arrow_array **ret_elements,
                uint64_t *ret_first, uint64_t *ret_count)
{
    const struct arrow_array *array = cell.array;
    uint64_t first, count;
    if (!array)
        return false;
    unsigned width = array->field->width;
    if (array->field->kind == ARROW_LIST) {
        first = arrow_word(array->data + cell.index * width, width);
        count = arrow_word(array->data + (cell.index + 1) * width, width) - first;
    } else if (array->field->kind == ARROW_LIST_VIEW) {
        first = arrow_word(array->data + cell.index * width, width);
        count = arrow_word(array->sizes + cell.index * width, width);
    } else if (array->field->kind == ARROW_FIXED_LIST) {
        first = cell.index * width;
        count = width;
    } else {
        return false;
    }
    uint64_t length = array->children[0].length;
    if (first > length || count > length - first)
        return false;
    *ret_elements = &array->children[0];
    *ret_first = first;
    *ret_count = count;
    return true;
}
