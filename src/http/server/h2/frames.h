/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts for the cost of a client's frames. The bytes of a connection pass here before nghttp2
 * gets them: frames that make work and carry nothing (resets, settings, pings, empty data, tiny
 * windows) take from an allowance, requests and answers add to it, and blocks of headers have a
 * limit. It doesn't depend on which floods the installed nghttp2 knows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define H2_PREFACE_BYTES 24
#define H2_FRAME_HEAD_BYTES 9

#define H2_ALLOWANCE_MAX 2000
#define H2_ALLOWANCE_PER_SECOND 100
#define H2_ALLOWANCE_PER_REQUEST 8
#define H2_BLOCK_FRAMES_MAX 16 /* CONTINUATION frames of one block of headers */

struct h2_frames {
    size_t preface; /* bytes of it that have come */
    uint8_t head[H2_FRAME_HEAD_BYTES];
    uint8_t head_length;
    uint32_t left; /* of the payload */
    uint32_t block_bytes, block_frames;
    uint32_t block_limit_bytes;
    int64_t allowance, refilled_ms;
    uint64_t answered_bytes; /* that have not been turned into allowance */
};

void h2_frames_init(struct h2_frames *frames, uint32_t block_limit_bytes, int64_t now_ms);

/* Bytes that came, in any pieces. NULL, or what the client does wrong, as the end of a sentence
 * that begins with its name: the connection should end then. */
const char *h2_frames_scan(struct h2_frames *frames, const uint8_t *bytes, size_t length,
                           int64_t now_ms);

/* A request has ended regularly; bytes of answers were sent. */
void h2_frames_request(struct h2_frames *frames);
void h2_frames_sent(struct h2_frames *frames, size_t bytes);

/* Whether a TLS handshake offers HTTP/2 (the protocol "h2" by ALPN): 1 or 0; -EAGAIN: more bytes
 * are needed to know. What isn't a ClientHello offers nothing. */
int h2_hello_offers(const uint8_t *bytes, size_t length);
#define H2_HELLO_BYTES_MAX (16u << 10)
