/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten seconds of samples, from the capture that fills them to the body of one request: names,
 * OTLP with a resource for each service, zstd. Made by the thread that captures; encoded by
 * another, which needs nothing of the capture any more.
 */
#pragma once

#include "agent/naming.h"
#include "capture/capture.h"

#define WINDOW_NOTES_MAX 8
#define WINDOW_NOTE_BYTES 256

struct window_file;

#define WINDOW_SUFFIX_BYTES 28

struct window {
    struct profile profile; /* of addresses, its samples labelled */
    int64_t time_ns;        /* since 1970 */
    int64_t duration_ns;
    uint64_t samples;
    struct capture_loss losses[CAPTURE_LOSSES_MAX]; /* in this window */
    size_t loss_count;
    char notes[WINDOW_NOTES_MAX][WINDOW_NOTE_BYTES]; /* what else its readers have to know */
    size_t note_count;
    struct window_file *files;        /* by mapping */
    char suffix[WINDOW_SUFFIX_BYTES]; /* of its batch's id: "" but for recordings */
};

struct window *window_new(int64_t time_ns);
void window_free(struct window *window);

/* A comment that goes with it; beyond the limit, in place of the last one. */
void window_note(struct window *window, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Losses of the capture since the previous window; updates `last`. */
void window_note_losses(struct window *window, const struct capture *capture,
                        struct capture_loss *last, size_t *last_count);

/* Ends it: notes where the files of its frames can be opened, which only the capture knows.
 * `resolve`: of all files; otherwise, of those that only this host can name. */
void window_close(struct window *window, struct capture *capture, int64_t duration_ns,
                  bool resolve);

/* The body of a request, compressed with zstd. */
int window_encode(const struct window *window, struct namer *namer, struct buffer *ret_body,
                  struct error *error);
