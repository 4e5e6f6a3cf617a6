// SPDX-License-Identifier: Apache-2.0
// Reading Go's table of functions, once it is in memory: see gopclntab.h.

#include "elf/go/gopclntab.h"

#include "base/memory.h"

/* ---- layouts ---- */

/* Where the fields of a function's record are; 0 for what a layout has not. */
static const struct record_layout {
    uint8_t entry_bytes; /* of an address in the list of functions, and in the record */
    uint8_t name, sp_values, file_values, line_values, value_tables, unit, start_line, flags;
    uint8_t data_tables;
    uint8_t bytes;
    uint8_t tree_record_bytes, tree_name, tree_parent, tree_start_line;
} record_layouts[] = {
    [GOPCLNTAB_1_2] = {.entry_bytes = 8,
                       .name = 8,
                       .sp_values = 20,
                       .file_values = 24,
                       .line_values = 28,
                       .value_tables = 32,
                       .bytes = 40},
    [GOPCLNTAB_1_16] = {.entry_bytes = 8,
                        .name = 8,
                        .sp_values = 20,
                        .file_values = 24,
                        .line_values = 28,
                        .value_tables = 32,
                        .unit = 36,
                        .flags = 41,
                        .bytes = 44},
    [GOPCLNTAB_1_18] = {.entry_bytes = 4,
                        .name = 4,
                        .sp_values = 16,
                        .file_values = 20,
                        .line_values = 24,
                        .value_tables = 28,
                        .unit = 32,
                        .flags = 37,
                        .data_tables = 39,
                        .bytes = 40,
                        .tree_record_bytes = 20,
                        .tree_name = 12,
                        .tree_parent = 16},
    [GOPCLNTAB_1_20] = {.entry_bytes = 4,
                        .name = 4,
                        .sp_values = 16,
                        .file_values = 20,
                        .line_values = 24,
                        .value_tables = 28,
                        .unit = 32,
                        .start_line = 36,
                        .flags = 41,
                        .data_tables = 43,
                        .bytes = 44,
                        .tree_record_bytes = 16,
                        .tree_name = 4,
                        .tree_parent = 8,
                        .tree_start_line = 12},
};

/* Of the tables that follow a record, those that lead to the inlined calls. */
enum { VALUES_INLINE = 2, DATA_INLINE_TREE = 3 };

static uint64_t number_at(struct gopclntab_part part, uint64_t offset, size_t length)
{
    uint64_t value = 0;
    if (offset <= part.length && length <= part.length - offset)
        memcpy(&value, part.bytes + offset, length);
    return value;
}

static struct gopclntab_part part_from(struct gopclntab_part part, uint64_t offset)
{
    if (offset >= part.length)
        return (struct gopclntab_part){0};
    return (struct gopclntab_part){part.bytes + offset, part.length - offset};
}

/* ---- parsing ---- */

static int bad(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, "Go's table of functions is damaged: %s.", what);
}

static bool layout_of(uint32_t magic, enum gopclntab_layout *ret_layout)
{
    switch (magic) {
    case 0xfffffffb:
        *ret_layout = GOPCLNTAB_1_2;
        return true;
    case 0xfffffffa:
        *ret_layout = GOPCLNTAB_1_16;
        return true;
    case 0xfffffff0:
        *ret_layout = GOPCLNTAB_1_18;
        return true;
    case 0xfffffff1:
        *ret_layout = GOPCLNTAB_1_20;
        return true;
    default:
        return false;
    }
}

static size_t list_entry_bytes(const struct gopclntab *table)
{
    return 2u * record_layouts[table->layout].entry_bytes;
}

static uint64_t entry_start(const struct gopclntab *table, uint64_t number)
{
    return table->text + number_at(table->functions, number * list_entry_bytes(table),
                                   record_layouts[table->layout].entry_bytes);
}

/* Up to Go 1.15 all is in one piece, and the list of files is behind that of functions. */
static void split_old(struct gopclntab *table, struct gopclntab_part all)
{
    table->names = table->values = all;
    table->functions = part_from(all, 16);
    uint64_t files = table->function_count * list_entry_bytes(table) + 8;
    table->units = part_from(all, number_at(table->functions, files, 4));
    table->files = all;
}

static void split(struct gopclntab *table, struct gopclntab_part all)
{
    /* The count of functions, that of files, and from Go 1.18 on where the code starts. */
    uint64_t at = table->layout == GOPCLNTAB_1_16 ? 24 : 32;
    table->names = part_from(all, number_at(all, at, 8));
    table->units = part_from(all, number_at(all, at + 8, 8));
    table->files = part_from(all, number_at(all, at + 16, 8));
    table->values = part_from(all, number_at(all, at + 24, 8));
    table->functions = part_from(all, number_at(all, at + 32, 8));
    if (table->layout >= GOPCLNTAB_1_18 && !table->text)
        table->text = number_at(all, 24, 8);
}

/* An instance of a generic function is called after the shapes of its types, which can be very
 * long. Go shows "[...]" instead, and so do we: written over the name, where it fits. */
static void shorten_name(char *name, size_t length)
{
    static const char shown[] = "...";
    char *open = memchr(name, '[', length);
    char *close = memrchr(name, ']', length);
    if (!open || !close || close <= open || (size_t)(close - open - 1) <= strlen(shown))
        return;
    memcpy(open + 1, shown, strlen(shown));
    size_t rest = (size_t)(name + length - close);
    memmove(open + 1 + strlen(shown), close, rest);
    open[1 + strlen(shown) + rest] = '\0';
}

static void shorten_names(const struct gopclntab *table, struct buffer *content)
{
    if (!table->names.bytes || table->units.bytes <= table->names.bytes)
        return;
    char *name = content->data + (table->names.bytes - (const uint8_t *)content->data);
    char *end = name + (table->units.bytes - table->names.bytes);
    while (name < end) {
        size_t length = strnlen(name, (size_t)(end - name));
        shorten_name(name, length);
        name += length + 1;
    }
}

static int check_list(const struct gopclntab *table, struct error *error)
{
    size_t entry = list_entry_bytes(table);
    uint64_t bytes = (uint64_t)table->function_count * entry + entry / 2;
    if (!table->function_count || bytes > table->functions.length)
        return bad(error, "its list of functions is longer than the table");
    uint64_t before = entry_start(table, 0);
    for (uint64_t i = 1; i <= table->function_count; i++) {
        uint64_t start = entry_start(table, i);
        if (start < before)
            return bad(error, "its functions are not in order");
        before = start;
    }
    return 0;
}

int gopclntab_parse(struct buffer *content, const struct gopclntab_place *place,
                    struct gopclntab *ret_table, struct error *error)
{
    struct gopclntab table = {.address = place->address};
    struct gopclntab_part all = {(const uint8_t *)content->data, content->length};
    if (all.length < 16 || !layout_of((uint32_t)number_at(all, 0, 4), &table.layout) ||
        number_at(all, 4, 2))
        return bad(error, "invalid header");
    table.quantum = (uint8_t)number_at(all, 6, 1);
    if (table.quantum != 1 || number_at(all, 7, 1) != 8)
        return error_set(error, -ENOTSUP, "Go's table of functions is not for x86-64.");
    uint64_t count = number_at(all, 8, 8);
    if (count > all.length / 8)
        return bad(error, "it has more functions than bytes");
    table.function_count = (uint32_t)count;
    if (table.layout >= GOPCLNTAB_1_18)
        table.text = place->text;
    buffer_add_char(content, '\0');
    content->length--;
    all.bytes = (const uint8_t *)content->data; /* it may have moved */
    if (table.layout == GOPCLNTAB_1_2)
        split_old(&table, all);
    else
        split(&table, all);
    if (table.layout >= GOPCLNTAB_1_18)
        shorten_names(&table, content);
    int r = check_list(&table, error);
    if (r < 0)
        return r;
    if (place->functions >= place->address)
        table.trees = part_from(all, place->functions - place->address);
    table.content = *content;
    *content = (struct buffer){0};
    *ret_table = table;
    return 0;
}

void gopclntab_release(struct gopclntab *table)
{
    if (!table)
        return;
    buffer_release(&table->content);
    buffer_release(&table->inlines);
    *table = (struct gopclntab){0};
}

size_t gopclntab_bytes(const struct gopclntab *table)
{
    return table->content.capacity + table->inlines.capacity;
}

/* ---- functions ---- */

static const char *text_at(struct gopclntab_part part, uint64_t offset)
{
    const char *text = offset < part.length ? (const char *)part.bytes + offset : "";
    return strnlen(text, GOPCLNTAB_NAME_MAX + 1) <= GOPCLNTAB_NAME_MAX ? text : "";
}

/* The inline tree, by the tables that follow the record. */
static void find_tree(struct gopclntab_part record, const struct record_layout *layout,
                      struct gopclntab_function *function)
{
    uint64_t values = number_at(record, layout->value_tables, 4);
    uint64_t datas = layout->data_tables ? number_at(record, layout->data_tables, 1) : 0;
    if (values <= VALUES_INLINE || datas <= DATA_INLINE_TREE)
        return;
    uint64_t at = layout->bytes + values * 4 + DATA_INLINE_TREE * 4;
    uint32_t tree = (uint32_t)number_at(record, at, 4);
    function->inline_values = (uint32_t)number_at(record, layout->bytes + VALUES_INLINE * 4, 4);
    function->tree = tree;
    function->has_tree = function->inline_values && at + 4 <= record.length && tree != UINT32_MAX;
}

bool gopclntab_function(const struct gopclntab *table, uint32_t number,
                        struct gopclntab_function *ret_function)
{
    const struct record_layout *layout = &record_layouts[table->layout];
    size_t entry = list_entry_bytes(table);
    if (number >= table->function_count)
        return false;
    uint64_t offset = number_at(table->functions, number * entry + entry / 2, entry / 2);
    struct gopclntab_part base = table->functions;
    if (table->layout == GOPCLNTAB_1_2)
        base = table->names; /* the whole table */
    struct gopclntab_part record = part_from(base, offset);
    if (record.length < layout->bytes)
        return false;
    struct gopclntab_function function = {
        .start = entry_start(table, number),
        .end = entry_start(table, (uint64_t)number + 1),
        .name = text_at(table->names, number_at(record, layout->name, 4)),
        .sp_values = (uint32_t)number_at(record, layout->sp_values, 4),
        .file_values = (uint32_t)number_at(record, layout->file_values, 4),
        .line_values = (uint32_t)number_at(record, layout->line_values, 4),
    };
    if (layout->unit)
        function.unit = (uint32_t)number_at(record, layout->unit, 4);
    if (layout->flags)
        function.flags = (uint32_t)number_at(record, layout->flags, 1);
    if (layout->start_line)
        function.start_line = (uint32_t)number_at(record, layout->start_line, 4);
    find_tree(record, layout, &function);
    *ret_function = function;
    return true;
}

bool gopclntab_find(const struct gopclntab *table, uint64_t address,
                    struct gopclntab_function *ret_function)
{
    uint32_t low = 0, high = table->function_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (entry_start(table, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && gopclntab_function(table, low - 1, ret_function) && address < ret_function->end;
}

/* ---- values ---- */

void gopclntab_run_start(struct gopclntab_run *run, const struct gopclntab *table,
                         const struct gopclntab_function *function, uint32_t values)
{
    struct gopclntab_part part = {0};
    if (values)
        part = part_from(table->values, values);
    *run = (struct gopclntab_run){.cursor = cursor_of(part.bytes, part.length),
                                  .start = function->start,
                                  .end = function->start,
                                  .limit = function->end,
                                  .value = -1,
                                  .quantum = table->quantum};
}

/* Each step is the difference to the value before, in zigzag form, and a distance. A difference of
 * 0 ends the table, unless it is the first. */
bool gopclntab_run_next(struct gopclntab_run *run)
{
    if (run->end >= run->limit || run->steps == GOPCLNTAB_STEPS_MAX)
        return false;
    uint32_t difference = (uint32_t)cursor_uleb(&run->cursor);
    uint64_t distance = (uint32_t)cursor_uleb(&run->cursor);
    if (run->cursor.bad || !distance || (run->steps && !difference))
        return false;
    difference = difference & 1 ? ~(difference >> 1) : difference >> 1;
    run->value = (int32_t)((uint32_t)run->value + difference);
    run->start = run->end;
    run->end = MIN(run->limit, run->start + distance * run->quantum);
    run->steps++;
    return true;
}

/* ---- names ---- */

/* A query for one address. The steps of all answers together are limited, since the table can claim
 * any place in the function as the caller of an inlined call. */
struct query_context {
    const struct gopclntab *table;
    struct gopclntab_function function;
    uint32_t steps;
};

static bool value_at(struct query_context *query_context, uint32_t values, uint64_t address,
                     int32_t *ret_value)
{
    struct gopclntab_run run;
    gopclntab_run_start(&run, query_context->table, &query_context->function, values);
    while (gopclntab_run_next(&run) && query_context->steps++ < GOPCLNTAB_STEPS_MAX)
        if (address < run.end) {
            *ret_value = run.value;
            return true;
        }
    return false;
}

static const char *file_of(struct query_context *query_context, uint64_t address)
{
    const struct gopclntab *table = query_context->table;
    int32_t number;
    if (!value_at(query_context, query_context->function.file_values, address, &number) ||
        number < 0)
        return NULL;
    uint64_t at = ((uint64_t)query_context->function.unit + (uint32_t)number) * 4;
    if (at + 4 > table->units.length)
        return NULL;
    uint32_t offset = (uint32_t)number_at(table->units, at, 4);
    const char *file = offset == UINT32_MAX ? "" : text_at(table->files, offset);
    return file[0] ? file : NULL;
}

/* The record of the inlined call at an address; false in the function's own code. */
static bool inlined_at(struct query_context *query_context, uint64_t address,
                       struct gopclntab_part *ret_record)
{
    const struct record_layout *layout = &record_layouts[query_context->table->layout];
    const struct gopclntab_function *function = &query_context->function;
    int32_t number;
    if (!function->has_tree ||
        !value_at(query_context, function->inline_values, address, &number) || number < 0)
        return false;
    uint64_t offset = function->tree + (uint64_t)number * layout->tree_record_bytes;
    *ret_record = part_from(query_context->table->trees, offset);
    return ret_record->length >= layout->tree_record_bytes;
}

size_t gopclntab_frames(const struct gopclntab *table, uint64_t address,
                        struct gopclntab_frame *frames, size_t limit)
{
    const struct record_layout *layout = &record_layouts[table->layout];
    struct query_context query_context = {.table = table};
    const struct gopclntab_function *function = &query_context.function;
    size_t count = 0;
    if (!limit || !gopclntab_find(table, address, &query_context.function))
        return 0;
    for (;;) {
        struct gopclntab_part record;
        int32_t line;
        if (!value_at(&query_context, function->line_values, address, &line) || line < 0)
            line = 0;
        struct gopclntab_frame *frame = &frames[count++];
        *frame = (struct gopclntab_frame){.name = function->name,
                                          .file = file_of(&query_context, address),
                                          .line = (uint32_t)line,
                                          .start_line = function->start_line};
        if (count == limit || !inlined_at(&query_context, address, &record))
            return count;
        frame->name = text_at(table->names, number_at(record, layout->tree_name, 4));
        frame->start_line = 0;
        if (layout->tree_start_line)
            frame->start_line = (uint32_t)number_at(record, layout->tree_start_line, 4);
        /* An instruction of the caller that is on the line of the call. */
        address = function->start + (uint32_t)number_at(record, layout->tree_parent, 4);
    }
}
