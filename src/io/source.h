/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a reader gets its bytes: a file, standard input or memory, decompressed on the way when it
 * is gzip or zstd. A source shows a window of the stream that slides forward; memory follows the
 * largest single item a reader asks for, not the file's size.
 *
 *     int r = source_need(source, 4, error);       // at least 4 bytes in the window, or the end
 *     if (r < 0) return r;
 *     if (source_available(source) < 4) ...        // the stream ended
 *     const uint8_t *bytes = source_data(source);  // valid until the next source_need
 *     source_skip(source, 4);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/memory.h"

#define SOURCE_DEFAULT_EXPANSION (4ull << 30)

struct source_decoder;

struct source {
    const char *name;         /* for messages; not owned */
    const uint8_t *window;    /* bytes of the uncompressed stream */
    size_t length;            /* in the window */
    size_t position;          /* of the next unread byte in the window */
    uint64_t window_offset;   /* of window[0] in the uncompressed stream */
    bool ended;               /* nothing comes after the window */
    uint64_t expansion_limit; /* most bytes a compressed input may expand to */
    struct source_decoder *decoder;
    char warning[160]; /* what a reader has left out, as a sentence; empty: nothing */
};

/* Opens a file, or standard input for "-". `expansion_limit` 0 means the default. */
int source_open(struct source *source, const char *path, uint64_t expansion_limit,
                struct error *error);

/* Reads from memory that the caller keeps until source_release. Also decompresses. */
int source_open_memory(struct source *source, const char *name, const void *data, size_t length,
                       uint64_t expansion_limit, struct error *error);

/* Reads what `read` gives: at most `room` bytes, 0 at the end, or a negative code with `error`
 * filled. It may give less than asked for, and may block. Also decompresses. */
typedef ssize_t source_reader(void *userdata, void *bytes, size_t room, struct error *error);
int source_open_reader(struct source *source, const char *name, source_reader *read, void *userdata,
                       uint64_t expansion_limit, struct error *error);
/* Has `release` called with the userdata at the end. */
void source_own(struct source *source, void (*release)(void *userdata));
void source_release(struct source *source);
#define _cleanup_source_ __attribute__((cleanup(source_release)))

/* At the beginning of the stream: text in UTF-16 that begins with a byte order mark comes as UTF-8
 * from now on, and the mark of UTF-8 is skipped. Does nothing to anything else. */
int source_decode_text(struct source *source, struct error *error);

/* Notes lines that a reader of text has skipped: how many, and the first of them. */
void source_note_skipped(struct source *source, uint64_t lines, uint64_t first_line);

/* Whether what comes next looks as if it were compressed (once more): its first
 * SOURCE_MAGIC_BYTES are in the window, or all there is. */
#define SOURCE_MAGIC_BYTES 4
bool source_is_compressed(const struct source *source);

/* "gzip", "zstd" or "none": how the input was compressed. */
const char *source_compression(const struct source *source);

/* Bytes that all sources of this program have read from files so far: for progress lines. Any
 * thread may call it. */
uint64_t source_bytes_read(void);

int source_fill(struct source *source, size_t needed, struct error *error);

/* -E2BIG when what reading takes is more than it may: see memory_meter. Filling the window asks
 * this; readers whose input is whole in memory have to ask for themselves. */
int source_overfull(struct error *error);
static inline int source_check_memory(struct error *error)
{
    return likely(!memory_full()) ? 0 : source_overfull(error);
}

/* Makes at least `needed` unread bytes contiguous in the window unless the stream ends before.
 * Returns 0 or an error of reading or decompressing. */
static inline int source_need(struct source *source, size_t needed, struct error *error)
{
    if (__builtin_expect(source->length - source->position >= needed || source->ended, 1))
        return 0;
    return source_fill(source, needed, error);
}

static inline size_t source_available(const struct source *source)
{
    return source->length - source->position;
}

static inline const uint8_t *source_data(const struct source *source)
{
    return source->window + source->position;
}

/* `count` is at most source_available(). */
static inline void source_skip(struct source *source, size_t count)
{
    source->position += count;
}

/* Position in the uncompressed stream: what error messages call the offset. */
static inline uint64_t source_offset(const struct source *source)
{
    return source->window_offset + source->position;
}

/* Bytes of the uncompressed stream wherever they are, ahead of the window too: where the input is
 * a file that is not compressed, or all of it is in the window. Returns how many, fewer at the end,
 * or -ENOTSUP. */
ssize_t source_read_at(struct source *source, uint64_t offset, void *bytes, size_t length);

/* The whole rest of the stream in the window, at most `limit_bytes` (-E2BIG beyond). */
int source_need_all(struct source *source, size_t limit_bytes, struct error *error);

/*
 * The next line without its newline (and without a carriage return before it). Returns 1 and sets
 * the outputs, 0 at the end of the stream, or an error; a line longer than 16 MiB is one.
 */
int source_line(struct source *source, const char **ret_line, size_t *ret_length,
                struct error *error);
