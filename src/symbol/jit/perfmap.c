// SPDX-License-Identifier: Apache-2.0
// Maps of just-in-time compiled code: see perfmap.h.

#include "symbol/jit/perfmap.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"

#define PIECE_BYTES (256u << 10)
#define LINE_MAX_BYTES (JIT_NAME_MAX + 64)

/* ---- lines ---- */

static bool take_hex(const char **at, const char *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    unsigned digits = 0;
    if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 32) == 'x')
        *at += 2;
    for (; *at < end; ++*at) {
        int digit = hex_digit(**at);
        if (digit < 0)
            break;
        if (value >> 60)
            return false;
        value = value << 4 | (unsigned)digit;
        digits++;
    }
    *ret_value = value;
    return digits;
}

static bool take_space(const char **at, const char *end)
{
    const char *start = *at;
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
    return *at > start;
}

static void parse_line(struct jit_codes *codes, const char *at, const char *end)
{
    struct jit_code code = {0};
    uint64_t size;
    while (end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (!take_hex(&at, end, &code.start) || !take_space(&at, end) || !take_hex(&at, end, &size) ||
        !take_space(&at, end) || at == end || !size ||
        __builtin_add_overflow(code.start, size, &code.end))
        return;
    if (!jit_codes_want(codes, code.start, code.end))
        return;
    code.compiled = code.start;
    code.name = jit_codes_text(codes, at, (size_t)(end - at));
    jit_codes_add(codes, &code);
}

size_t perf_map_parse(struct perf_map *map, const char *bytes, size_t length, bool final,
                      struct jit_codes *codes)
{
    const char *at = bytes, *end = bytes + length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        bool too_long = (size_t)((newline ? newline : end) - at) > LINE_MAX_BYTES;
        if (too_long && !map->in_line)
            codes->refused++;
        if (!newline && !final && !too_long && !map->in_line)
            break;
        if (!too_long && !map->in_line)
            parse_line(codes, at, newline ? newline : end);
        map->in_line = !newline;
        at = newline ? newline + 1 : end;
    }
    return (size_t)(at - bytes);
}

/* ---- files ---- */

static ssize_t read_at(int fd, char *bytes, size_t length, uint64_t offset)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got = pread(fd, bytes + done, length - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (!got)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* Some compilers write the whole map anew each time they are asked to. */
static void check_tail(struct perf_map *map, int fd, uint64_t size_bytes)
{
    char tail[PERF_MAP_TAIL];
    if (map->offset <= size_bytes &&
        read_at(fd, tail, map->tail_length, map->offset - map->tail_length) ==
            (ssize_t)map->tail_length &&
        !memcmp(tail, map->tail, map->tail_length))
        return;
    *map = (struct perf_map){.allowance = map->allowance};
}

static void keep_tail(struct perf_map *map, const char *bytes, size_t length)
{
    map->offset += length;
    if (length >= PERF_MAP_TAIL) {
        map->tail_length = PERF_MAP_TAIL;
        memcpy(map->tail, bytes + length - PERF_MAP_TAIL, PERF_MAP_TAIL);
    } else if (length) {
        size_t kept = MIN(map->tail_length, PERF_MAP_TAIL - length);
        memmove(map->tail, map->tail + map->tail_length - kept, kept);
        memcpy(map->tail + kept, bytes, length);
        map->tail_length = kept + length;
    }
}

int perf_map_read(struct perf_map *map, int fd, bool final, struct jit_codes *codes)
{
    struct stat found;
    if (fstat(fd, &found) < 0)
        return -errno;
    uint64_t size = MIN((uint64_t)found.st_size, PERF_MAP_BYTES_MAX);
    codes->refused += (uint64_t)found.st_size > size;
    check_tail(map, fd, size);
    _cleanup_free_ char *piece = memory_alloc(PIECE_BYTES);
    uint64_t left = map->allowance ? MAX(map->allowance, PERF_MAP_LEAST_BYTES) : UINT64_MAX;
    while (map->offset < size) {
        if (left < MIN(PERF_MAP_LEAST_BYTES, size - map->offset))
            return 1;
        ssize_t got = read_at(fd, piece, (size_t)MIN(MIN(PIECE_BYTES, left), size - map->offset),
                              map->offset);
        if (got <= 0)
            return (int)got;
        bool end = final && map->offset + (uint64_t)got >= size;
        size_t done = perf_map_parse(map, piece, (size_t)got, end, codes);
        if (!done)
            break;
        keep_tail(map, piece, done);
        left -= MIN(left, done);
    }
    return 0;
}
