// SPDX-License-Identifier: Apache-2.0
// Rows between their unit and the finished index, packed as runs: see index_builder.h.

#include "symbol/index/builder.h"

static void add_number(struct buffer *bytes, uint64_t value)
{
    char *out = buffer_reserve(bytes, 10);
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        out[length++] = (char)(value | 0x80);
    out[length++] = (char)value;
    bytes->length += length;
}

static void add_row(struct index_rows *rows, const struct index_row *row)
{
    add_number(&rows->bytes, row->address - rows->last.address);
    add_number(&rows->bytes, symbol_index_fold((int32_t)(row->node - rows->last.node)));
    add_number(&rows->bytes, symbol_index_fold((int32_t)(row->file - rows->last.file)));
    add_number(&rows->bytes, symbol_index_fold((int32_t)(row->line - rows->last.line)));
    rows->last = *row;
}

void index_rows_add(struct index_rows *rows, const struct index_row *row, uint64_t end)
{
    struct index_run *run = rows->run_count ? &rows->runs[rows->run_count - 1] : NULL;
    if (row->address >= end || (rows->is_open && row->address < run->end))
        return;
    if (rows->is_open && (run->end != row->address || run->has_nodes != (row->node != 0)))
        index_rows_close(rows);
    if (rows->is_open) {
        if (row->node != rows->last.node || row->file != rows->last.file ||
            row->line != rows->last.line)
            add_row(rows, row);
        run->end = end;
        return;
    }
    array_reserve(rows->runs, rows->run_capacity, rows->run_count + 1);
    rows->runs[rows->run_count++] = (struct index_run){.start = row->address,
                                                       .end = end,
                                                       .offset = rows->bytes.length,
                                                       .has_nodes = row->node != 0};
    rows->last = (struct index_row){.address = row->address};
    rows->is_open = true;
    add_row(rows, row);
}

void index_rows_close(struct index_rows *rows)
{
    /* No row has a distance of 0 but the first of a run, so that one is an end. */
    if (rows->is_open)
        add_number(&rows->bytes, 0);
    rows->is_open = false;
}

void index_rows_release(struct index_rows *rows)
{
    buffer_release(&rows->bytes);
    free(rows->runs);
}

/* ---- reading ---- */

static void read_row(struct index_run_reader *reader, uint64_t distance)
{
    struct index_row *row = &reader->next;
    row->address += distance;
    row->node += (uint32_t)symbol_index_unfold(cursor_uleb(&reader->cursor));
    row->file += (uint32_t)symbol_index_unfold(cursor_uleb(&reader->cursor));
    row->line += (uint32_t)symbol_index_unfold(cursor_uleb(&reader->cursor));
}

void index_run_start(const struct index_rows *rows, const struct index_run *run,
                     struct index_run_reader *ret_reader)
{
    *ret_reader = (struct index_run_reader){
        .cursor = cursor_of(rows->bytes.data + run->offset, rows->bytes.length - run->offset),
        .next = {.address = run->start},
        .end = run->start,
        .run_end = run->end,
    };
    read_row(ret_reader, cursor_uleb(&ret_reader->cursor));
}

bool index_run_next(struct index_run_reader *reader)
{
    if (reader->end == reader->run_end)
        return false;
    reader->row = reader->next;
    uint64_t distance = cursor_uleb(&reader->cursor);
    if (distance)
        read_row(reader, distance);
    reader->end = distance ? reader->next.address : reader->run_end;
    return true;
}
