// SPDX-License-Identifier: Apache-2.0
// Logs of just-in-time compiled code: see jitdump.h.

#include "symbol/jit/jitdump.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "elf/cursor.h"
#include "symbol/jit/name.h"

#define DUMP_MAGIC 0x4a695444u
#define DUMP_VERSION 1
#define HEADER_BYTES 40
#define FLAG_ARCH_TIMESTAMP 1
#define ELF_HEADER_BYTES 64

enum { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG_INFO, RECORD_CLOSE };
enum { RECORD_BYTES = 16, LOAD_BYTES = 40, MOVE_BYTES = 48, DEBUG_BYTES = 16, LINE_BYTES = 16 };

struct record {
    uint32_t kind;
    uint64_t time_ns;
    uint64_t at, end; /* of what follows its header */
};

void jit_dump_release(struct jit_dump *dump)
{
    id_table_release(&dump->by_index);
    free(dump->numbers);
    free(dump->window);
    *dump = (struct jit_dump){0};
}

/* ---- bytes ---- */

/* Up to `length` bytes at an offset, as far as the file has them; good until the next call. */
static struct cursor look(struct jit_dump *dump, uint64_t offset, size_t length)
{
    uint64_t end = dump->window_start + dump->window_length;
    if (offset < dump->window_start || offset > end || end - offset < length) {
        dump->window_start = offset;
        dump->window_length = 0;
        while (dump->window_length < JIT_DUMP_WINDOW_BYTES) {
            ssize_t got = dump->read(dump->context, offset + dump->window_length,
                                     dump->window + dump->window_length,
                                     JIT_DUMP_WINDOW_BYTES - dump->window_length);
            if (got == -EINTR)
                continue;
            if (got <= 0)
                break;
            dump->window_length += (size_t)got;
            dump->read_bytes += (size_t)got;
        }
    }
    size_t skip = (size_t)(offset - dump->window_start);
    return cursor_of(dump->window + skip, MIN(length, dump->window_length - skip));
}

/* The text at an offset, which must end before `end`. Its length, or -1. */
static int64_t take_text(struct jit_dump *dump, uint64_t offset, uint64_t end,
                         const char **ret_text)
{
    size_t room = (size_t)MIN(end - offset, JIT_NAME_MAX + 1);
    struct cursor cursor = look(dump, offset, room);
    const uint8_t *nul =
        cursor_left(&cursor) ? memchr(cursor.at, '\0', cursor_left(&cursor)) : NULL;
    if (!nul)
        return -1;
    *ret_text = (const char *)cursor.at;
    return nul - cursor.at;
}

/* ---- records ---- */

static struct jit_dump_number *find_number(struct jit_dump *dump, uint64_t hash, uint64_t index)
{
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&dump->by_index, &probe)) != ID_NONE)
        if (dump->numbers[id].index == index)
            return &dump->numbers[id];
    return NULL;
}

/* A number that comes again is another piece of code: the last one is meant. */
static void note_number(struct jit_dump *dump, const struct jit_codes *codes, int64_t code,
                        uint64_t index)
{
    uint64_t hash = hash_word(index ^ codes->seed);
    struct jit_dump_number *known = find_number(dump, hash, index);
    if (code < 0)
        return;
    if (known) {
        known->code = (uint32_t)code;
        return;
    }
    array_reserve(dump->numbers, dump->number_capacity, dump->number_count + 1);
    dump->numbers[dump->number_count] = (struct jit_dump_number){index, (uint32_t)code};
    id_table_insert(&dump->by_index, hash, (uint32_t)dump->number_count++);
}

static bool is_file_name(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if ((uint8_t)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return length && utf8_valid(text, length);
}

/*
 * The lines that came before, if they are this code's and make sense. V8 counts addresses as if an
 * ELF header stood before the code, since perf puts one there; and some of its versions write
 * memory that is no longer theirs in place of file names, and with it anything behind them.
 */
static void attach_lines(struct jit_dump *dump, const struct jit_codes *codes, const char *name,
                         struct jit_code *code)
{
    uint32_t count = dump->line_count;
    dump->line_count = 0;
    if (!count || dump->lines_of != code->start)
        return;
    const struct jit_line *lines = codes->lines + dump->line_start;
    uint64_t shift = 0, size = code->end - code->start;
    if (jit_name_is_v8(name) && lines[0].address >= code->start + ELF_HEADER_BYTES)
        shift = ELF_HEADER_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        bool same_file = i && lines[i].file == lines[i - 1].file;
        if (lines[i].address < code->start || lines[i].address - code->start > size + shift ||
            (!same_file && !is_file_name(codes->texts[lines[i].file])))
            return;
    }
    code->line_start = dump->line_start;
    code->line_count = count;
    code->compiled += shift;
}

/* Code that these lines describe was not wanted. */
static void drop_lines(struct jit_dump *dump, struct jit_codes *codes)
{
    if (dump->line_count && dump->line_start + dump->line_count == codes->line_count)
        codes->line_count = dump->line_start;
    dump->line_count = 0;
}

static bool read_load(struct jit_dump *dump, const struct record *record, struct jit_codes *codes)
{
    struct cursor cursor =
        look(dump, record->at, (size_t)MIN(LOAD_BYTES, record->end - record->at));
    struct jit_code code = {.time_ns = record->time_ns};
    const char *name;
    cursor_take(&cursor, 16); /* process, thread, and an unused address */
    code.start = code.compiled = cursor_u64(&cursor);
    uint64_t size = cursor_u64(&cursor), index = cursor_u64(&cursor);
    if (cursor.bad || __builtin_add_overflow(code.start, size, &code.end))
        return false;
    int64_t length = take_text(dump, record->at + LOAD_BYTES, record->end, &name);
    if (length < 0) {
        codes->refused++;
        return true;
    }
    if (!jit_codes_want(codes, code.start, code.end)) {
        drop_lines(dump, codes);
        return true;
    }
    attach_lines(dump, codes, name, &code);
    code.name = length ? jit_codes_text(codes, name, (size_t)length) : JIT_TEXT_NONE;
    note_number(dump, codes, jit_codes_add(codes, &code), index);
    return true;
}

static void note_move(struct jit_dump *dump, const struct jit_codes *codes, uint64_t from,
                      uint64_t to, uint64_t size)
{
    uint64_t end;
    if (codes->wanted && dump->moved_count < JIT_DUMP_MOVED_MAX &&
        !__builtin_add_overflow(to, size, &end) && jit_codes_want(codes, to, end))
        dump->moved_from[dump->moved_count++] = from;
}

static bool read_move(struct jit_dump *dump, const struct record *record, struct jit_codes *codes)
{
    struct cursor cursor =
        look(dump, record->at, (size_t)MIN(MOVE_BYTES, record->end - record->at));
    cursor_take(&cursor, 16);
    uint64_t from = cursor_u64(&cursor), to = cursor_u64(&cursor), size = cursor_u64(&cursor),
             index = cursor_u64(&cursor);
    if (cursor.bad)
        return false;
    const struct jit_dump_number *known = find_number(dump, hash_word(index ^ codes->seed), index);
    if (!known) {
        note_move(dump, codes, from, to, size);
        return true;
    }
    struct jit_code code = codes->list[known->code];
    if (code.start != from || __builtin_add_overflow(to, size, &code.end))
        return true;
    code.start = to;
    code.time_ns = record->time_ns;
    if (!jit_codes_want(codes, code.start, code.end))
        return true;
    note_number(dump, codes, jit_codes_add(codes, &code), index);
    return true;
}

static int compare_lines(const void *left, const void *right)
{
    const struct jit_line *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static void sort_lines(struct jit_codes *codes, size_t start, size_t count)
{
    if (!count)
        return;
    struct jit_line *lines = codes->lines + start;
    for (size_t i = 1; i < count; i++)
        if (lines[i - 1].address > lines[i].address) {
            qsort(lines, count, sizeof(*lines), compare_lines);
            return;
        }
}

/* A file's name of one byte 0xff stands for the one before. */
static bool read_lines(struct jit_dump *dump, const struct record *record, struct jit_codes *codes)
{
    struct cursor cursor =
        look(dump, record->at, (size_t)MIN(DEBUG_BYTES, record->end - record->at));
    uint64_t lines_of = cursor_u64(&cursor), count = cursor_u64(&cursor);
    uint64_t at = record->at + DEBUG_BYTES;
    uint32_t file = JIT_TEXT_NONE;
    size_t start = codes->line_count;
    if (cursor.bad)
        return false;
    for (uint64_t i = 0; i < count && at < record->end; i++) {
        cursor = look(dump, at, (size_t)MIN(LINE_BYTES, record->end - at));
        struct jit_line line = {.address = cursor_u64(&cursor), .line = cursor_u32(&cursor)};
        cursor_take(&cursor, 4);
        const char *name;
        int64_t length = cursor.bad ? -1 : take_text(dump, at + LINE_BYTES, record->end, &name);
        if (length < 0)
            break;
        if (length != 1 || (uint8_t)name[0] != 0xff)
            file = jit_codes_text(codes, name, (size_t)length);
        line.file = file;
        if (!jit_codes_add_line(codes, &line))
            break;
        at += LINE_BYTES + (uint64_t)length + 1;
    }
    dump->lines_of = lines_of;
    dump->line_start = (uint32_t)start;
    dump->line_count = (uint32_t)(codes->line_count - start);
    sort_lines(codes, start, dump->line_count);
    return true;
}

static bool read_record(struct jit_dump *dump, const struct record *record, struct jit_codes *codes)
{
    switch (record->kind) {
    case RECORD_LOAD:
        return read_load(dump, record, codes);
    case RECORD_MOVE:
        return read_move(dump, record, codes);
    case RECORD_DEBUG_INFO:
        return read_lines(dump, record, codes);
    case RECORD_CLOSE:
        dump->ended = true;
        return true;
    default: /* what it says about unwinding, and what came later */
        return true;
    }
}

/* ---- the file ---- */

/* 1, 0 when it is not there yet, or an error. */
static int read_header(struct jit_dump *dump)
{
    struct cursor cursor = look(dump, 0, HEADER_BYTES);
    uint32_t magic = cursor_u32(&cursor), version = cursor_u32(&cursor);
    uint32_t bytes = cursor_u32(&cursor);
    cursor_take(&cursor, 20); /* machine, padding, process, time */
    uint64_t flags = cursor_u64(&cursor);
    if (cursor.bad)
        return 0;
    if (magic != DUMP_MAGIC || version != DUMP_VERSION || bytes < HEADER_BYTES)
        return -EBADMSG;
    dump->other_clock = flags & FLAG_ARCH_TIMESTAMP;
    dump->offset = bytes;
    return 1;
}

/* Whether all of a record is there is seen by its last byte. */
static int next_record(struct jit_dump *dump, struct record *ret_record)
{
    struct cursor cursor = look(dump, dump->offset, RECORD_BYTES);
    struct record record = {.kind = cursor_u32(&cursor)};
    uint32_t bytes = cursor_u32(&cursor);
    record.time_ns = cursor_u64(&cursor);
    if (cursor.bad)
        return 0;
    if (bytes < RECORD_BYTES)
        return -EBADMSG;
    record.time_ns = dump->other_clock ? 0 : record.time_ns;
    record.at = dump->offset + RECORD_BYTES;
    record.end = dump->offset + bytes;
    uint8_t last;
    uint64_t window_end = dump->window_start + dump->window_length;
    if (record.end > window_end && dump->read(dump->context, record.end - 1, &last, 1) != 1)
        return 0;
    *ret_record = record;
    return 1;
}

int jit_dump_read(struct jit_dump *dump, struct jit_codes *codes)
{
    struct record record;
    uint64_t until = dump->allowance ? dump->offset + dump->allowance : UINT64_MAX;
    bool more = false;
    int r = dump->bad ? -EBADMSG : !dump->ended;
    dump->window = memory_alloc(JIT_DUMP_WINDOW_BYTES);
    dump->window_start = dump->window_length = 0;
    if (r > 0 && !dump->offset)
        r = read_header(dump);
    while (r > 0 && !dump->ended && !(more = dump->offset >= until) &&
           (r = next_record(dump, &record)) > 0) {
        if (!read_record(dump, &record, codes)) {
            r = -EBADMSG;
            break;
        }
        dump->offset = record.end;
        if (++dump->records == JIT_DUMP_RECORDS_MAX || dump->read_bytes > JIT_DUMP_BYTES_MAX) {
            codes->refused++;
            dump->ended = true;
        }
    }
    dump->ended |= r < 0;
    dump->bad |= r < 0;
    free(TAKE_PTR(dump->window));
    return r < 0 ? r : more;
}
