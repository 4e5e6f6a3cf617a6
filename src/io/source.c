// SPDX-License-Identifier: Apache-2.0
// Byte sources: reading, decompressing and the sliding window. See source.h.
//
// gzip goes through ISA-L's streaming inflater, whose output stays in the cache until it is parsed.
// Small input that is already in memory is decoded at once: by libdeflate, which is a seventh
// faster then, or by zstd without buffers of its own.

#include "io/source.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"

#define INPUT_BYTES (128u << 10)
#define WINDOW_BYTES (256u << 10)
#define WHOLE_BYTES (1u << 20) /* most that is inflated at once */
#define LINE_LIMIT_BYTES (16u << 20)
#define WINDOW_LOG_MAX 27 /* of zstd */
#define WINDOW_LOG_MIN 20
#define DECODER_KEPT_BYTES (256u << 10)

enum compression { COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD };

struct source_decoder {
    int fd; /* -1: reading from memory, or through `reader` */
    bool close_fd;
    source_reader *reader; /* NULL: none */
    void *userdata;
    void (*release)(void *userdata); /* NULL: the userdata is somebody else's */
    enum compression compression;

    /* Compressed or raw bytes that wait to be decoded. */
    uint8_t *input_buffer; /* NULL when reading from memory */
    const uint8_t *input;
    size_t input_length;
    bool input_ended;
    uint64_t input_consumed; /* bytes of the file before `input` */

    uint8_t *window;
    size_t window_capacity;
    uint64_t produced; /* bytes decoded so far */

    struct inflate_state *gzip;
    bool gzip_done; /* the current member has ended */
    ZSTD_DStream *zstd;
    size_t zstd_bytes; /* that were noted of what it takes */
    bool zstd_done;
};

static atomic_uint_fast64_t bytes_read;

/* Making a zstd decoder takes about as long as decoding 10 kB, and a server needs one for each
 * push: some are kept. */
static struct {
    pthread_mutex_t lock;
    ZSTD_DStream *idle[4];
    size_t count;
} decoders = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A frame says how much of what was decoded is to be kept, and the decoder takes as much before it
 * has seen any of it: more than the whole may be makes no sense. */
static ZSTD_DStream *zstd_decoder(uint64_t expansion_limit)
{
    int window_log = WINDOW_LOG_MAX;
    while (window_log > WINDOW_LOG_MIN && 1ull << (window_log - 1) >= expansion_limit)
        window_log--;
    ZSTD_DStream *decoder = NULL;
    pthread_mutex_lock(&decoders.lock);
    if (decoders.count)
        decoder = decoders.idle[--decoders.count];
    pthread_mutex_unlock(&decoders.lock);
    if (!decoder)
        decoder = memory_create(ZSTD_createDStream());
    ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, window_log);
    return decoder;
}

/* Those that have taken memory for a frame of unknown or large size are not worth keeping it. */
static void zstd_decoder_return(ZSTD_DStream *decoder)
{
    if (!decoder)
        return;
    ZSTD_DCtx_reset(decoder, ZSTD_reset_session_only);
    pthread_mutex_lock(&decoders.lock);
    if (decoders.count < ARRAY_LENGTH(decoders.idle) &&
        ZSTD_sizeof_DStream(decoder) <= DECODER_KEPT_BYTES) {
        decoders.idle[decoders.count++] = decoder;
        decoder = NULL;
    }
    pthread_mutex_unlock(&decoders.lock);
    ZSTD_freeDStream(decoder);
}

uint64_t source_bytes_read(void)
{
    return atomic_load_explicit(&bytes_read, memory_order_relaxed);
}

/* At least one byte unless the input has ended. */
static int read_some(struct source *source, uint8_t *bytes, size_t room, size_t *ret_got,
                     struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    ssize_t got;
    if (decoder->reader) {
        got = decoder->reader(decoder->userdata, bytes, room, error);
        if (got < 0)
            return (int)got;
    } else {
        do
            got = read(decoder->fd, bytes, room);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return error_set_errno(error, -errno, "%s cannot be read", source->name);
        atomic_fetch_add_explicit(&bytes_read, (uint64_t)got, memory_order_relaxed);
    }
    *ret_got = (size_t)got;
    return 0;
}

static int read_input(struct source *source, struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    if (decoder->input_length || decoder->input_ended)
        return 0;
    int r = read_some(source, decoder->input_buffer, INPUT_BYTES, &decoder->input_length, error);
    if (r < 0)
        return r;
    decoder->input = decoder->input_buffer;
    decoder->input_ended = decoder->input_length == 0;
    return 0;
}

static void take_input(struct source_decoder *decoder, size_t count)
{
    decoder->input += count;
    decoder->input_length -= count;
    decoder->input_consumed += count;
}

static int truncated(const struct source *source, const char *what, struct error *error)
{
    return error_set(error, -EBADMSG,
                     "%s ends in the middle of its %s data (after %llu compressed bytes): the file "
                     "is truncated; fetch or record it again.",
                     source->name, what, (unsigned long long)source->decoder->input_consumed);
}

/* Decodes into `out`; *ret_got 0 means the end. */
static int decode_gzip(struct source *source, uint8_t *out, size_t room, size_t *ret_got,
                       struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    for (;;) {
        int r = read_input(source, error);
        if (r < 0)
            return r;
        if (decoder->gzip_done) {
            /* Members may follow each other; zero padding at the end is harmless. */
            while (decoder->input_length && !decoder->input[0])
                take_input(decoder, 1);
            if (!decoder->input_length) {
                if (!decoder->input_ended)
                    continue;
                *ret_got = 0;
                return 0;
            }
            isal_inflate_reset(decoder->gzip);
            decoder->gzip->crc_flag = ISAL_GZIP;
            decoder->gzip_done = false;
        }
        struct inflate_state *state = decoder->gzip;
        size_t offered = MIN(decoder->input_length, (size_t)UINT32_MAX);
        state->next_in = (uint8_t *)decoder->input;
        state->avail_in = (uint32_t)offered;
        state->next_out = out;
        state->avail_out = (uint32_t)MIN(room, (size_t)UINT32_MAX);
        uint32_t room_offered = state->avail_out;
        int status = isal_inflate(state);
        /* After an error ISA-L may count below zero. */
        take_input(decoder, offered - MIN((size_t)state->avail_in, offered));
        size_t got = room_offered - state->avail_out;
        if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT)
            return error_set(error, -EBADMSG,
                             "%s has damaged gzip data near compressed byte %llu%s.", source->name,
                             (unsigned long long)decoder->input_consumed,
                             status == ISAL_INCORRECT_CHECKSUM ? " (the checksum is wrong)" : "");
        if (state->block_state == ISAL_BLOCK_FINISH)
            decoder->gzip_done = true;
        else if (!got && decoder->input_ended)
            return truncated(source, "gzip", error);
        if (got) {
            *ret_got = got;
            return 0;
        }
    }
}

static int note_zstd(struct source_decoder *decoder, struct error *error)
{
    size_t bytes = ZSTD_sizeof_DStream(decoder->zstd);
    if (bytes <= decoder->zstd_bytes)
        return 0;
    memory_note(bytes - decoder->zstd_bytes);
    decoder->zstd_bytes = bytes;
    return source_check_memory(error);
}

static int decode_zstd(struct source *source, uint8_t *out, size_t room, size_t *ret_got,
                       struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    for (;;) {
        int r = read_input(source, error);
        if (r < 0)
            return r;
        if (decoder->zstd_done && !decoder->input_length && decoder->input_ended) {
            *ret_got = 0;
            return 0;
        }
        ZSTD_inBuffer in = {.src = decoder->input, .size = decoder->input_length};
        ZSTD_outBuffer output = {.dst = out, .size = room};
        size_t hint = ZSTD_decompressStream(decoder->zstd, &output, &in);
        take_input(decoder, in.pos);
        if (ZSTD_getErrorCode(hint) == ZSTD_error_frameParameter_windowTooLarge)
            return error_set(
                error, -E2BIG,
                "Memory limit exceeded while decompressing %s; compress it with a smaller window.",
                source->name);
        if (ZSTD_isError(hint))
            return error_set(error, -EBADMSG,
                             "%s has damaged zstd data near compressed byte %llu: "
                             "%s.",
                             source->name, (unsigned long long)decoder->input_consumed,
                             ZSTD_getErrorName(hint));
        decoder->zstd_done = hint == 0;
        r = note_zstd(decoder, error);
        if (r < 0)
            return r;
        if (output.pos) {
            *ret_got = output.pos;
            return 0;
        }
        if (!decoder->input_length && decoder->input_ended && !decoder->zstd_done)
            return truncated(source, "zstd", error);
    }
}

static int decode_none(struct source *source, uint8_t *out, size_t room, size_t *ret_got,
                       struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    int r = read_input(source, error);
    if (r < 0)
        return r;
    size_t got = MIN(room, decoder->input_length);
    if (got)
        memcpy(out, decoder->input, got);
    take_input(decoder, got);
    *ret_got = got;
    return 0;
}

static int decode(struct source *source, uint8_t *out, size_t room, size_t *ret_got,
                  struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    int r;
    switch (decoder->compression) {
    case COMPRESSION_GZIP:
        r = decode_gzip(source, out, room, ret_got, error);
        break;
    case COMPRESSION_ZSTD:
        r = decode_zstd(source, out, room, ret_got, error);
        break;
    default:
        return decode_none(source, out, room, ret_got, error);
    }
    if (r < 0)
        return r;
    decoder->produced += *ret_got;
    if (decoder->produced > source->expansion_limit)
        return error_set(error, -E2BIG,
                         "%s expands to more than %llu bytes; if you trust it, raise the limit "
                         "with --max-expand.",
                         source->name, (unsigned long long)source->expansion_limit);
    return 0;
}

int source_overfull(struct error *error)
{
    return error_set(error, -E2BIG, "Memory limit exceeded.");
}

int source_fill(struct source *source, size_t needed, struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    if (source->ended || source_available(source) >= needed)
        return 0;
    size_t left = source_available(source);
    if (source->position) {
        memmove(decoder->window, decoder->window + source->position, left);
        source->window_offset += source->position;
        source->position = 0;
        source->length = left;
    }
    while (source->length < needed && !source->ended) {
        /* Grown by doubling as bytes arrive: a length that lies costs no memory. */
        if (source->length == decoder->window_capacity) {
            size_t capacity =
                decoder->window_capacity ? decoder->window_capacity * 2 : WINDOW_BYTES;
            memory_note(capacity - decoder->window_capacity);
            decoder->window = memory_resize(decoder->window, capacity, 1);
            decoder->window_capacity = capacity;
        }
        size_t got = 0;
        int r = source_check_memory(error);
        if (r < 0)
            return r;
        r = decode(source, decoder->window + source->length,
                   decoder->window_capacity - source->length, &got, error);
        source->window = decoder->window;
        if (r < 0)
            return r;
        if (!got)
            source->ended = true;
        source->length += got;
    }
    return 0;
}

ssize_t source_read_at(struct source *source, uint64_t offset, void *bytes, size_t length)
{
    const struct source_decoder *decoder = source->decoder;
    if (source->ended && offset >= source->window_offset) {
        uint64_t at = offset - source->window_offset;
        size_t got = at < source->length ? MIN(length, source->length - (size_t)at) : 0;
        if (got)
            memcpy(bytes, source->window + at, got);
        return (ssize_t)got;
    }
    if (!decoder || decoder->fd < 0 || decoder->compression != COMPRESSION_NONE ||
        offset > INT64_MAX)
        return -ENOTSUP;
    size_t got = 0;
    while (got < length) {
        ssize_t r = pread(decoder->fd, (char *)bytes + got, length - got, (off_t)(offset + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return errno == ESPIPE ? -ENOTSUP : -errno;
        if (!r)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

int source_need_all(struct source *source, size_t limit_bytes, struct error *error)
{
    for (size_t needed = WINDOW_BYTES; source_available(source) <= limit_bytes; needed *= 2) {
        if (source->ended)
            return 0;
        int r = source_need(source, needed, error);
        if (r < 0)
            return r;
    }
    return error_set(error, -E2BIG, "%s is larger than %zu bytes, the limit of its format.",
                     source->name, limit_bytes);
}

int source_line(struct source *source, const char **ret_line, size_t *ret_length,
                struct error *error)
{
    size_t searched = 0;
    for (;;) {
        int r = source_need(source, searched + 1, error);
        if (r < 0)
            return r;
        const char *line = (const char *)source_data(source);
        size_t available = source_available(source);
        if (!available)
            return 0;
        const char *newline = memchr(line + searched, '\n', available - searched);
        size_t length = newline ? (size_t)(newline - line) : available;
        if (length > LINE_LIMIT_BYTES)
            return error_set(error, -E2BIG, "%s has a line longer than %u MiB at offset %llu.",
                             source->name, LINE_LIMIT_BYTES >> 20,
                             (unsigned long long)source_offset(source));
        if (newline || source->ended) {
            source_skip(source, length + (newline ? 1 : 0));
            if (length && line[length - 1] == '\r')
                length--;
            *ret_line = line;
            *ret_length = length;
            return 1;
        }
        searched = available;
    }
}

static enum compression compression_of(const uint8_t *bytes, size_t length)
{
    static const uint8_t gzip_magic[] = {0x1f, 0x8b}, zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (length >= sizeof(gzip_magic) && !memcmp(bytes, gzip_magic, sizeof(gzip_magic)))
        return COMPRESSION_GZIP;
    if (length >= sizeof(zstd_magic) && !memcmp(bytes, zstd_magic, sizeof(zstd_magic)))
        return COMPRESSION_ZSTD;
    return COMPRESSION_NONE;
}

bool source_is_compressed(const struct source *source)
{
    return compression_of(source_data(source), source_available(source)) != COMPRESSION_NONE;
}

/* The decompressed size that the trailer of a gzip member gives, or 0. */
static uint64_t gzip_size(const uint8_t *data, size_t length)
{
    if (length < 18) /* the least that a header and a trailer have */
        return 0;
    const uint8_t *size = data + length - 4;
    return size[0] | size[1] << 8 | size[2] << 16 | (uint32_t)size[3] << 24;
}

static bool inflate(const uint8_t *data, size_t length, uint8_t *out, size_t size)
{
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    size_t taken, got;
    bool whole = inflater &&
                 libdeflate_gzip_decompress_ex(inflater, data, length, out, size, &taken, &got) ==
                     LIBDEFLATE_SUCCESS &&
                 taken == length && got == size;
    libdeflate_free_decompressor(inflater);
    return whole;
}

/* The decompressed size in the header of a zstd frame, or 0: none, too large, or not the only
 * frame. */
static uint64_t zstd_size(const uint8_t *data, size_t length)
{
    unsigned long long size = ZSTD_getFrameContentSize(data, length);
    return size <= WHOLE_BYTES && ZSTD_findFrameCompressedSize(data, length) == length ? size : 0;
}

static bool expand(const uint8_t *data, size_t length, uint8_t *out, size_t size)
{
    ZSTD_DStream *decoder = zstd_decoder(size);
    bool whole = ZSTD_decompressDCtx(decoder, out, size, data, length) == size;
    zstd_decoder_return(decoder);
    return whole;
}

/* Decodes memory that is one gzip member or zstd frame and says how small it is. False when it
 * isn't so, or when anything is wrong with it, which is for the streaming decoders to say then. */
static bool decode_whole(struct source *source)
{
    struct source_decoder *decoder = source->decoder;
    const uint8_t *data = decoder->input;
    size_t length = decoder->input_length;
    bool gzip = decoder->compression == COMPRESSION_GZIP;
    uint64_t size = gzip ? gzip_size(data, length) : zstd_size(data, length);
    if (!size || size > WHOLE_BYTES || size > source->expansion_limit)
        return false;
    uint8_t *window = memory_alloc(size);
    if (!(gzip ? inflate : expand)(data, length, window, size)) {
        free(window);
        return false;
    }
    take_input(decoder, length);
    decoder->window = window;
    decoder->window_capacity = size;
    decoder->produced = size;
    source->window = window;
    source->length = size;
    source->ended = true;
    return true;
}

static int start_decoding(struct source *source, struct error *error)
{
    struct source_decoder *decoder = source->decoder;
    int r = read_input(source, error);
    if (r < 0)
        return r;
    /* A pipe may give its first bytes one by one. */
    while (decoder->input_buffer && decoder->input_length < SOURCE_MAGIC_BYTES &&
           !decoder->input_ended) {
        size_t got;
        r = read_some(source, decoder->input_buffer + decoder->input_length,
                      INPUT_BYTES - decoder->input_length, &got, error);
        if (r < 0)
            return r;
        if (!got)
            break;
        decoder->input_length += got;
    }
    decoder->compression = compression_of(decoder->input, decoder->input_length);
    if (decoder->compression != COMPRESSION_NONE && !decoder->input_buffer && decode_whole(source))
        return 0;
    if (decoder->compression == COMPRESSION_GZIP) {
        decoder->gzip = memory_alloc(sizeof(*decoder->gzip));
        isal_inflate_init(decoder->gzip);
        decoder->gzip->crc_flag = ISAL_GZIP;
    } else if (decoder->compression == COMPRESSION_ZSTD) {
        decoder->zstd = zstd_decoder(source->expansion_limit);
        decoder->zstd_bytes = ZSTD_sizeof_DStream(decoder->zstd);
    } else if (!decoder->input_buffer) {
        /* Plain memory is its own window. */
        source->window = decoder->input;
        source->length = decoder->input_length;
        source->ended = true;
    }
    return 0;
}

static void source_start(struct source *source, const char *name, uint64_t expansion_limit)
{
    *source = (struct source){
        .name = name,
        .window = (const uint8_t *)"",
        .expansion_limit = expansion_limit ? expansion_limit : SOURCE_DEFAULT_EXPANSION,
        .decoder = memory_zalloc(1, sizeof(struct source_decoder)),
    };
    source->decoder->fd = -1;
}

int source_open(struct source *source, const char *path, uint64_t expansion_limit,
                struct error *error)
{
    bool standard_input = !strcmp(path, "-");
    int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, -errno, "%s cannot be opened", path);
    source_start(source, standard_input ? "standard input" : path, expansion_limit);
    source->decoder->fd = fd;
    source->decoder->close_fd = !standard_input;
    source->decoder->input_buffer = memory_alloc(INPUT_BYTES);
    int r = start_decoding(source, error);
    if (r < 0)
        source_release(source);
    return r;
}

int source_open_memory(struct source *source, const char *name, const void *data, size_t length,
                       uint64_t expansion_limit, struct error *error)
{
    source_start(source, name, expansion_limit);
    source->decoder->input = data;
    source->decoder->input_length = length;
    source->decoder->input_ended = true;
    int r = start_decoding(source, error);
    if (r < 0)
        source_release(source);
    return r;
}

int source_open_reader(struct source *source, const char *name, source_reader *read, void *userdata,
                       uint64_t expansion_limit, struct error *error)
{
    source_start(source, name, expansion_limit);
    source->decoder->reader = read;
    source->decoder->userdata = userdata;
    source->decoder->input_buffer = memory_alloc(INPUT_BYTES);
    int r = start_decoding(source, error);
    if (r < 0)
        source_release(source);
    return r;
}

void source_own(struct source *source, void (*release)(void *userdata))
{
    source->decoder->release = release;
}

void source_note_skipped(struct source *source, uint64_t lines, uint64_t first_line)
{
    if (lines == 1)
        snprintf(source->warning, sizeof(source->warning), "Skipped line %llu, which is malformed.",
                 (unsigned long long)first_line);
    else if (lines)
        snprintf(source->warning, sizeof(source->warning),
                 "Skipped %llu malformed lines, the first of them line %llu.",
                 (unsigned long long)lines, (unsigned long long)first_line);
}

void source_release(struct source *source)
{
    struct source_decoder *decoder = source->decoder;
    if (!decoder)
        return;
    if (decoder->close_fd)
        close(decoder->fd);
    if (decoder->release)
        decoder->release(decoder->userdata);
    free(decoder->input_buffer);
    free(decoder->window);
    free(decoder->gzip);
    zstd_decoder_return(decoder->zstd);
    free(decoder);
    *source = (struct source){0};
}

const char *source_compression(const struct source *source)
{
    static const char *const names[] = {"none", "gzip", "zstd"};
    return names[source->decoder->compression];
}
