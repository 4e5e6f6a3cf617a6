// SPDX-License-Identifier: Apache-2.0
// The code of one process, and what has which address: see jit_code.h.

#include "symbol/jit/code.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"

void jit_codes_init(struct jit_codes *codes, bool has_times)
{
    *codes = (struct jit_codes){.has_times = has_times};
    codes->seed = random_bits();
}

void jit_codes_release(struct jit_codes *codes)
{
    free(codes->list);
    free(codes->lines);
    free(codes->texts);
    free(codes->stretches);
    free(codes->by_start);
    free(codes->reach);
    id_table_release(&codes->text_index);
    arena_release(&codes->arena);
    *codes = (struct jit_codes){0};
}

/* ---- what is wanted ---- */

void jit_wanted_release(struct jit_wanted *wanted)
{
    free(wanted->list);
    *wanted = (struct jit_wanted){0};
}

/* Of the first that is not below. */
static size_t wanted_from(const struct jit_wanted *wanted, uint64_t address)
{
    size_t low = 0, high = wanted->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wanted->list[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool jit_wanted_add(struct jit_wanted *wanted, uint64_t address)
{
    size_t at = wanted_from(wanted, address);
    if (at < wanted->count && wanted->list[at] == address)
        return false;
    if (wanted->count == JIT_WANTED_MAX)
        at = wanted->count = 0;
    array_reserve(wanted->list, wanted->capacity, wanted->count + 1);
    memmove(wanted->list + at + 1, wanted->list + at, (wanted->count - at) * sizeof(*wanted->list));
    wanted->list[at] = address;
    wanted->count++;
    return true;
}

bool jit_codes_want(const struct jit_codes *codes, uint64_t start, uint64_t end)
{
    const struct jit_wanted *wanted = codes->wanted;
    if (!wanted)
        return true;
    size_t at = wanted_from(wanted, start);
    return at < wanted->count && wanted->list[at] < end;
}

static bool has_room(const struct jit_codes *codes, size_t more)
{
    return !codes->bytes_max || jit_codes_bytes(codes) + more <= codes->bytes_max;
}

size_t jit_codes_bytes(const struct jit_codes *codes)
{
    size_t bytes = codes->capacity * sizeof(*codes->list) +
                   codes->line_capacity * sizeof(*codes->lines) +
                   codes->text_capacity * sizeof(*codes->texts) + codes->arena.total_bytes +
                   codes->text_index.mask * sizeof(*codes->text_index.slots);
    if (codes->stretches)
        bytes += (2 * codes->ordered + 1) * sizeof(*codes->stretches);
    if (codes->by_start)
        bytes += codes->ordered * (sizeof(*codes->by_start) + sizeof(*codes->reach));
    return bytes;
}

/* ---- who has an address last ---- */

static int compare_starts(const void *left, const void *right, void *context)
{
    const struct jit_code *list = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (list[a].start != list[b].start)
        return list[a].start < list[b].start ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Code that has begun, as a heap: the one that was added last on top. */
struct begun {
    uint32_t *heap;
    size_t count;
};

static void begun_push(struct begun *begun, uint32_t code)
{
    size_t at = begun->count++;
    for (; at && begun->heap[(at - 1) / 2] < code; at = (at - 1) / 2)
        begun->heap[at] = begun->heap[(at - 1) / 2];
    begun->heap[at] = code;
}

static void begun_pop(struct begun *begun)
{
    uint32_t last = begun->heap[--begun->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= begun->count)
            break;
        child += child + 1 < begun->count && begun->heap[child + 1] > begun->heap[child];
        if (begun->heap[child] < last)
            break;
        begun->heap[at] = begun->heap[child];
        at = child;
    }
    begun->heap[at] = last;
}

static void add_stretch(struct jit_codes *codes, uint64_t start, uint32_t code)
{
    uint32_t before =
        codes->stretch_count ? codes->stretches[codes->stretch_count - 1].code : JIT_TEXT_NONE;
    if (code != before)
        codes->stretches[codes->stretch_count++] = (struct jit_stretch){start, code};
}

/* Goes up through the addresses: each step takes at least one piece of code up or drops one, so
 * there are at most two for each. */
static void make_stretches(struct jit_codes *codes, const uint32_t *by_start)
{
    const struct jit_code *list = codes->list;
    _cleanup_free_ uint32_t *heap = memory_zalloc(codes->count + 1, sizeof(*heap));
    struct begun begun = {.heap = heap};
    size_t next = 0;
    uint64_t at = 0;
    free(codes->stretches);
    codes->stretches = memory_zalloc(2 * codes->count + 1, sizeof(*codes->stretches));
    codes->stretch_count = 0;
    while (next < codes->count || begun.count) {
        while (begun.count && list[begun.heap[0]].end <= at)
            begun_pop(&begun);
        if (!begun.count) {
            add_stretch(codes, at, JIT_TEXT_NONE);
            if (next == codes->count)
                break;
            at = MAX(at, list[by_start[next]].start);
        }
        while (next < codes->count && list[by_start[next]].start <= at)
            begun_push(&begun, by_start[next++]);
        while (begun.count && list[begun.heap[0]].end <= at)
            begun_pop(&begun);
        if (!begun.count)
            continue;
        add_stretch(codes, at, begun.heap[0]);
        at = list[begun.heap[0]].end;
        if (next < codes->count)
            at = MIN(at, list[by_start[next]].start);
    }
}

/* Code that no address leads to any more is dropped, so that a map that is written over and over
 * takes no more room than the code that it tells of. */
static void drop_hidden(struct jit_codes *codes)
{
    _cleanup_free_ uint32_t *number = memory_zalloc(codes->count + 1, sizeof(*number));
    for (size_t i = 0; i < codes->stretch_count; i++)
        if (codes->stretches[i].code != JIT_TEXT_NONE)
            number[codes->stretches[i].code] = 1;
    uint32_t kept = 0;
    for (size_t i = 0; i < codes->count; i++)
        if (number[i]) {
            codes->list[kept] = codes->list[i];
            number[i] = kept++;
        }
    for (size_t i = 0; i < codes->stretch_count; i++)
        if (codes->stretches[i].code != JIT_TEXT_NONE)
            codes->stretches[i].code = number[codes->stretches[i].code];
    codes->count = kept;
}

static void order(struct jit_codes *codes)
{
    uint32_t *by_start = memory_zalloc(codes->count + 1, sizeof(*by_start));
    for (size_t i = 0; i < codes->count; i++)
        by_start[i] = (uint32_t)i;
    if (codes->count)
        qsort_r(by_start, codes->count, sizeof(*by_start), compare_starts, codes->list);
    make_stretches(codes, by_start);
    free(codes->by_start);
    free(codes->reach);
    codes->by_start = NULL;
    codes->reach = NULL;
    if (codes->has_times) {
        uint64_t furthest = 0;
        codes->reach = memory_zalloc(codes->count + 1, sizeof(*codes->reach));
        for (size_t i = 0; i < codes->count; i++)
            codes->reach[i] = furthest = MAX(furthest, codes->list[by_start[i]].end);
        codes->by_start = by_start;
    } else {
        free(by_start);
        drop_hidden(codes);
    }
    codes->ordered = codes->count;
}

/* ---- adding ---- */

uint32_t jit_codes_text(struct jit_codes *codes, const char *text, size_t length)
{
    if (length > JIT_NAME_MAX || memchr(text, '\0', length)) {
        codes->refused++;
        return JIT_TEXT_NONE;
    }
    uint64_t hash = XXH3_64bits_withSeed(text, length, codes->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&codes->text_index, &probe)) != ID_NONE)
        if (!strncmp(codes->texts[id], text, length) && !codes->texts[id][length])
            return id;
    if (codes->text_bytes + length + 1 > JIT_TEXT_BYTES_MAX || !has_room(codes, length)) {
        codes->refused++;
        return JIT_TEXT_NONE;
    }
    codes->text_bytes += length + 1;
    array_reserve(codes->texts, codes->text_capacity, codes->text_count + 1);
    codes->texts[codes->text_count] = arena_strndup(&codes->arena, text, length);
    id_table_insert(&codes->text_index, hash, (uint32_t)codes->text_count);
    return (uint32_t)codes->text_count++;
}

/* Removes hidden code to make room. If that freed little, the list counts as full. */
static bool make_room(struct jit_codes *codes)
{
    bool grows = codes->count == codes->capacity;
    if (codes->count < JIT_CODES_MAX &&
        (!grows || has_room(codes, codes->capacity * sizeof(*codes->list))))
        return true;
    if (!codes->full && !codes->has_times)
        order(codes);
    codes->full = codes->count > MIN(codes->capacity, (size_t)JIT_CODES_MAX) / 4 * 3;
    return !codes->full;
}

int64_t jit_codes_add(struct jit_codes *codes, const struct jit_code *code)
{
    if (code->end <= code->start || code->name == JIT_TEXT_NONE)
        return -1;
    if (codes->full || !make_room(codes)) {
        codes->refused++;
        return -1;
    }
    array_reserve(codes->list, codes->capacity, codes->count + 1);
    codes->list[codes->count] = *code;
    return (int64_t)codes->count++;
}

bool jit_codes_add_line(struct jit_codes *codes, const struct jit_line *line)
{
    bool grows = codes->line_count == codes->line_capacity;
    if (codes->line_count == JIT_LINES_MAX || line->file == JIT_TEXT_NONE ||
        (grows && !has_room(codes, codes->line_capacity * sizeof(*codes->lines)))) {
        codes->refused++;
        return false;
    }
    array_reserve(codes->lines, codes->line_capacity, codes->line_count + 1);
    codes->lines[codes->line_count++] = *line;
    return true;
}

/* ---- finding ---- */

static const struct jit_code *find_last(const struct jit_codes *codes, uint64_t address)
{
    size_t low = 0, high = codes->stretch_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (codes->stretches[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t code = low ? codes->stretches[low - 1].code : JIT_TEXT_NONE;
    return code == JIT_TEXT_NONE ? NULL : &codes->list[code];
}

static const struct jit_code *find_at(const struct jit_codes *codes, uint64_t address,
                                      uint64_t time_ns)
{
    size_t low = 0, high = codes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (codes->list[codes->by_start[middle]].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct jit_code *before = NULL, *after = NULL;
    for (size_t steps = 0; low && codes->reach[low - 1] > address && steps < JIT_OVERLAPS_MAX;
         steps++) {
        const struct jit_code *code = &codes->list[codes->by_start[--low]];
        if (code->end <= address)
            continue;
        if (code->time_ns <= time_ns && (!before || code > before))
            before = code;
        if (code->time_ns > time_ns && (!after || code < after))
            after = code;
    }
    return before ? before : after;
}

const struct jit_code *jit_codes_find(struct jit_codes *codes, uint64_t address, uint64_t time_ns)
{
    if (codes->ordered != codes->count)
        order(codes);
    return time_ns && codes->by_start ? find_at(codes, address, time_ns)
                                      : find_last(codes, address);
}

const struct jit_line *jit_codes_line(const struct jit_codes *codes, const struct jit_code *code,
                                      uint64_t address)
{
    if (!code->line_count)
        return NULL;
    const struct jit_line *lines = codes->lines + code->line_start;
    uint64_t compiled = address - code->start + code->compiled;
    size_t low = 0, high = code->line_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lines[middle].address <= compiled)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &lines[low - 1] : NULL;
}
