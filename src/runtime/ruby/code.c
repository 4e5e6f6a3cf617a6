// SPDX-License-Identifier: Apache-2.0
// Reading Ruby's sequences of instructions: see code.h.

#include "runtime/ruby/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Objects: their flags, and what is behind their class. */
#define TYPE_MASK 0x1fu
#define TYPE_STRING 0x05u
#define TYPE_ARRAY 0x07u
#define TYPE_INTERNAL 0x1au
#define OUTSIDE (1u << 13)       /* a string's bytes are elsewhere */
#define EMBEDDED (1u << 13)      /* an array's members are in it */
#define EMBEDDED_LENGTH_SHIFT 14 /* of a string of 3.1 */
#define LENGTH 16
#define STRING_BYTES 24 /* or where they are; in 3.1, at LENGTH where they are in it */
#define ARRAY_MEMBERS 16
#define ARRAY_ADDRESS 32

/* Of a sequence's body. */
#define BODY 16
#define BODY_SIZE 4
#define BODY_FILE 64
#define BODY_NAME 80
#define INSTRUCTIONS_MAX 65536u /* words; what follows has no line */
#define LINES_MAX 4096u
#define LINE_BYTES 12 /* line, node, events */

/* The index of lines: for each of the first words a rank of 7 bits, nine in a word; behind them
 * blocks of 512 words, with ranks of 9 bits for each 64, and a bit for each word. */
#define INDEX_DIRECT 54u
#define INDEX_BLOCK 512u
struct index_block {
    uint32_t rank, unused;
    uint64_t small_ranks;
    uint64_t bits[INDEX_BLOCK / 64];
};

struct reader {
    const struct ruby_binary *ruby;
    const struct runtime_memory *memory;
    struct arena *arena;
};

static uint64_t word(const struct reader *reader, uint64_t address)
{
    return runtime_read_word(reader->memory, address);
}

/* Objects are aligned; small integers, symbols and nil are no addresses. */
static bool is_object(uint64_t value)
{
    return value > 0x1000 && !(value & 7);
}

static const char *read_string(const struct reader *reader, uint64_t string, size_t limit)
{
    uint64_t flags = is_object(string) ? word(reader, string) : 0, length = 0, bytes;
    if ((flags & TYPE_MASK) != TYPE_STRING)
        return NULL;
    if (reader->ruby->minor < 2 && !(flags & OUTSIDE)) {
        length = flags >> EMBEDDED_LENGTH_SHIFT & 31;
        return runtime_read_text(reader->memory, string + LENGTH, length, limit, reader->arena);
    }
    length = word(reader, string + LENGTH);
    bytes = flags & OUTSIDE ? word(reader, string + STRING_BYTES) : string + STRING_BYTES;
    return runtime_read_text(reader->memory, bytes, length, limit, reader->arena);
}

/* A path, or a pair of the path and the real path; the latter is missing for evaluated text. */
static const char *read_path(const struct reader *reader, uint64_t object)
{
    uint64_t flags = is_object(object) ? word(reader, object) : 0;
    if ((flags & TYPE_MASK) != TYPE_ARRAY)
        return read_string(reader, object, RUNTIME_FILE_MAX);
    uint64_t members =
        flags & EMBEDDED ? object + ARRAY_MEMBERS : word(reader, object + ARRAY_ADDRESS);
    if (!is_object(members))
        return NULL;
    const char *real = read_string(reader, word(reader, members + 8), RUNTIME_FILE_MAX);
    return real ? real : read_string(reader, word(reader, members), RUNTIME_FILE_MAX);
}

static bool is_same(const struct reader *reader, const struct runtime_mark *mark)
{
    const struct bpf_ruby *walk = &reader->ruby->walk;
    uint64_t first_line = word(reader, mark->lines + walk->code_first_line);
    return is_object(mark->address) && is_object(mark->lines) &&
           (word(reader, mark->address) & TYPE_MASK) == TYPE_INTERNAL &&
           word(reader, mark->address + BODY) == mark->lines &&
           word(reader, mark->lines + BODY_FILE) == mark->file &&
           word(reader, mark->lines + BODY_NAME) == mark->name &&
           (uint32_t)first_line >> (walk->first_line_shift & 1) == mark->first_line;
}

/* ---- lines ---- */

/* The number of the entry that a word belongs to, counted from 1. */
static uint32_t rank_of(const uint64_t *direct, const struct index_block *blocks, uint32_t at)
{
    if (at < INDEX_DIRECT)
        return direct[at / 9] >> at % 9 * 7 & 0x7f;
    at -= INDEX_DIRECT;
    const struct index_block *block = &blocks[at / INDEX_BLOCK];
    uint32_t part = at % INDEX_BLOCK / 64;
    uint64_t before = part ? block->small_ranks >> (part - 1) * 9 & 0x1ff : 0;
    uint64_t bits = block->bits[part] << (63 - at % 64);
    return block->rank + (uint32_t)before + (uint32_t)__builtin_popcountll(bits);
}

struct index {
    uint64_t direct[INDEX_DIRECT / 9];
    struct index_block *blocks;
};

static bool read_index(const struct reader *reader, uint64_t at, uint32_t words,
                       struct index *ret_index)
{
    struct index index = {0};
    /* A short one has only as many words as it needs. */
    size_t direct = words < INDEX_DIRECT ? (words + 8) / 9 * 8 : sizeof(index.direct);
    size_t count =
        words <= INDEX_DIRECT ? 0 : (words - INDEX_DIRECT + INDEX_BLOCK - 1) / INDEX_BLOCK;
    if (!is_object(at) || !runtime_read(reader->memory, at, index.direct, direct))
        return false;
    if (count) {
        index.blocks = memory_alloc(count * sizeof(*index.blocks));
        if (!runtime_read(reader->memory, at + sizeof(index.direct), index.blocks,
                          count * sizeof(*index.blocks))) {
            free(index.blocks);
            return false;
        }
    }
    *ret_index = index;
    return true;
}

static void add_line(struct runtime_line *lines, uint32_t *count, uint32_t line, uint32_t end)
{
    if (*count && lines[*count - 1].line == line)
        lines[*count - 1].end = end;
    else
        lines[(*count)++] = (struct runtime_line){.end = end, .line = line};
}

/* Functions without readable lines still have their names. A unit is the word behind the one that
 * is run. */
static void read_lines(const struct reader *reader, uint64_t body, struct runtime_code *code)
{
    const struct ruby_binary *ruby = reader->ruby;
    uint32_t size = 0, count = 0, used = 0;
    runtime_read(reader->memory, body + BODY_SIZE, &size, sizeof(size));
    runtime_read(reader->memory, body + ruby->code_line_count, &count, sizeof(count));
    if (!size || size > INSTRUCTIONS_MAX || !count || count > LINES_MAX)
        return;
    _cleanup_free_ uint8_t *entries = memory_alloc((size_t)count * LINE_BYTES);
    struct index index = {0};
    if (!runtime_read(reader->memory, word(reader, body + ruby->code_lines), entries,
                      (size_t)count * LINE_BYTES) ||
        (count > 1 &&
         !read_index(reader, word(reader, body + ruby->code_line_index), size, &index)))
        return;
    _cleanup_free_ struct runtime_line *lines = memory_zalloc(count + 1, sizeof(*lines));
    if (count == 1) { /* whatever the size is */
        uint32_t line;
        memcpy(&line, entries, sizeof(line));
        if (line <= INT32_MAX)
            add_line(lines, &used, line, size + 1);
    }
    for (uint32_t at = 0; count > 1 && at < size; at++) {
        uint32_t rank = rank_of(index.direct, index.blocks, at), line;
        if (!rank || rank > count || used > count)
            continue;
        memcpy(&line, entries + (size_t)(rank - 1) * LINE_BYTES, sizeof(line));
        if (line <= INT32_MAX && (used < count || lines[used - 1].line == line))
            add_line(lines, &used, line, at + 2);
    }
    free(index.blocks);
    if (!used)
        return;
    struct runtime_line *kept = arena_alloc(reader->arena, used * sizeof(*kept));
    memcpy(kept, lines, used * sizeof(*kept));
    code->lines = kept;
    code->line_count = used;
}

bool ruby_code_read(const void *context, const struct runtime_memory *memory,
                    const struct runtime_mark *mark, struct arena *arena,
                    struct runtime_code *ret_code)
{
    static const struct runtime_line no_lines[1];
    const struct reader reader = {.ruby = context, .memory = memory, .arena = arena};
    if (!is_same(&reader, mark))
        return false;
    const char *file = read_path(&reader, mark->file);
    const char *name = read_string(&reader, mark->name, RUNTIME_NAME_MAX);
    struct runtime_code code = {.first_line = mark->first_line, .lines = no_lines};
    if (!file || !name)
        return false;
    read_lines(&reader, mark->lines, &code);
    if (!is_same(&reader, mark))
        return false;
    code.file = file;
    code.function = runtime_name_in_file(arena, file, name);
    *ret_code = code;
    return true;
}
