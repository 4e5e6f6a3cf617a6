// SPDX-License-Identifier: Apache-2.0
// The cost of frames, and the first look at a connection: see frames.h.

#include "http/server/h2/frames.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

enum frame_type {
    FRAME_DATA,
    FRAME_HEADERS,
    FRAME_PRIORITY,
    FRAME_RST_STREAM,
    FRAME_SETTINGS,
    FRAME_PUSH_PROMISE,
    FRAME_PING,
    FRAME_GOAWAY,
    FRAME_WINDOW_UPDATE,
    FRAME_CONTINUATION,
};
#define FLAG_END_STREAM 1u
#define FLAG_ACK 1u

#define COST_RESET 10
#define COST_SETTINGS 20
#define BYTES_PER_ALLOWANCE 256 /* of answers: clients open their windows as they read */

void h2_frames_init(struct h2_frames *frames, uint32_t block_limit_bytes, int64_t now_ms)
{
    *frames = (struct h2_frames){.block_limit_bytes = block_limit_bytes,
                                 .allowance = H2_ALLOWANCE_MAX,
                                 .refilled_ms = now_ms};
}

static void add_allowance(struct h2_frames *frames, int64_t more)
{
    frames->allowance = MIN(frames->allowance + more, (int64_t)H2_ALLOWANCE_MAX);
}

void h2_frames_request(struct h2_frames *frames)
{
    add_allowance(frames, H2_ALLOWANCE_PER_REQUEST);
}

void h2_frames_sent(struct h2_frames *frames, size_t bytes)
{
    frames->answered_bytes += bytes;
    add_allowance(frames, (int64_t)(frames->answered_bytes / BYTES_PER_ALLOWANCE));
    frames->answered_bytes %= BYTES_PER_ALLOWANCE;
}

static void refill(struct h2_frames *frames, int64_t now_ms)
{
    int64_t more = (now_ms - frames->refilled_ms) * H2_ALLOWANCE_PER_SECOND / 1000;
    if (more <= 0)
        return;
    add_allowance(frames, more);
    frames->refilled_ms = now_ms;
}

static int64_t cost_of(unsigned type, unsigned flags, uint32_t length)
{
    switch (type) {
    case FRAME_DATA:
        return length || flags & FLAG_END_STREAM ? 0 : 1;
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
        return 0; /* limited as blocks, and as requests */
    case FRAME_RST_STREAM:
        return COST_RESET;
    case FRAME_SETTINGS:
        return flags & FLAG_ACK ? 1 : COST_SETTINGS;
    default:
        return 1;
    }
}

static const char *begin_frame(struct h2_frames *frames)
{
    const uint8_t *head = frames->head;
    unsigned type = head[3], flags = head[4];
    frames->left = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    if (type == FRAME_CONTINUATION) {
        frames->block_frames++;
        frames->block_bytes += frames->left;
    } else {
        frames->block_frames = 0;
        frames->block_bytes = type == FRAME_HEADERS ? frames->left : 0;
    }
    if (frames->block_frames > H2_BLOCK_FRAMES_MAX ||
        frames->block_bytes > frames->block_limit_bytes)
        return "sent a block of headers that is too large";
    frames->allowance -= cost_of(type, flags, frames->left);
    if (frames->allowance < 0)
        return "sent too many frames that carry nothing";
    return NULL;
}

const char *h2_frames_scan(struct h2_frames *frames, const uint8_t *bytes, size_t length,
                           int64_t now_ms)
{
    refill(frames, now_ms);
    size_t skipped = MIN(length, H2_PREFACE_BYTES - frames->preface);
    frames->preface += skipped;
    for (size_t at = skipped; at < length;) {
        if (frames->left) {
            size_t step = MIN((size_t)frames->left, length - at);
            frames->left -= (uint32_t)step;
            at += step;
            continue;
        }
        frames->head[frames->head_length++] = bytes[at++];
        if (frames->head_length < H2_FRAME_HEAD_BYTES)
            continue;
        frames->head_length = 0;
        const char *problem = begin_frame(frames);
        if (problem)
            return problem;
    }
    return NULL;
}

/* ---- TLS ---- */

#define RECORD_HANDSHAKE 22
#define HANDSHAKE_HELLO 1
#define EXTENSION_ALPN 16

/* The bytes of handshake messages, which records may cut anywhere. */
struct hello {
    const uint8_t *bytes;
    size_t length, at;   /* of the stream of records */
    size_t record_left;  /* of the current one */
    size_t message_left; /* of the message */
    int failure;         /* -EAGAIN: it goes on; -EBADMSG */
};

static uint8_t next_byte(struct hello *hello)
{
    while (!hello->failure && !hello->record_left) {
        const uint8_t *head = hello->bytes + hello->at;
        size_t there = hello->length - hello->at;
        if (there && head[0] != RECORD_HANDSHAKE)
            hello->failure = -EBADMSG;
        else if (there < 5)
            hello->failure = -EAGAIN;
        else if (!(hello->record_left = (size_t)head[3] << 8 | head[4]))
            hello->failure = -EBADMSG;
        hello->at += 5;
    }
    if (!hello->failure && hello->at >= hello->length)
        hello->failure = -EAGAIN;
    if (hello->failure)
        return 0;
    hello->record_left--;
    return hello->bytes[hello->at++];
}

/* A number of so many bytes, of what is left of the message. */
static size_t next_number(struct hello *hello, size_t width)
{
    size_t number = 0;
    if (hello->message_left < width && !hello->failure)
        hello->failure = -EBADMSG;
    for (size_t i = 0; i < width && !hello->failure; i++) {
        number = number << 8 | next_byte(hello);
        hello->message_left--;
    }
    return hello->failure ? 0 : number;
}

static void skip(struct hello *hello, size_t count)
{
    while (count-- && !hello->failure)
        next_number(hello, 1);
}

static bool has_h2(struct hello *hello, size_t length)
{
    size_t list = next_number(hello, 2);
    if (list + 2 != length && !hello->failure)
        hello->failure = -EBADMSG;
    while (list && !hello->failure) {
        size_t name = next_number(hello, 1);
        if (name + 1 > list)
            return false;
        list -= name + 1;
        if (name != 2) {
            skip(hello, name);
            continue;
        }
        if (next_number(hello, 2) == ('h' << 8 | '2') && !hello->failure)
            return true;
    }
    return false;
}

int h2_hello_offers(const uint8_t *bytes, size_t length)
{
    struct hello hello = {.bytes = bytes, .length = length, .message_left = 4};
    if (next_number(&hello, 1) != HANDSHAKE_HELLO && !hello.failure)
        return 0;
    hello.message_left = next_number(&hello, 3);
    skip(&hello, 2 + 32);                 /* version, random */
    skip(&hello, next_number(&hello, 1)); /* session */
    skip(&hello, next_number(&hello, 2)); /* ciphers */
    skip(&hello, next_number(&hello, 1)); /* compression */
    size_t extensions = hello.message_left ? next_number(&hello, 2) : 0;
    while (extensions >= 4 && !hello.failure) {
        size_t type = next_number(&hello, 2), size = next_number(&hello, 2);
        if (size + 4 > extensions)
            return hello.failure == -EAGAIN ? -EAGAIN : 0;
        extensions -= size + 4;
        if (type == EXTENSION_ALPN && !hello.failure) {
            bool offered = has_h2(&hello, size);
            return offered ? 1 : hello.failure == -EAGAIN ? -EAGAIN : 0;
        }
        skip(&hello, size);
    }
    return hello.failure == -EAGAIN ? -EAGAIN : 0;
}
