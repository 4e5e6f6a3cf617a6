/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole terminal for one command: the alternate screen, keys as they are pressed, and lines that
 * are written only where they changed. By escape sequences that every terminal of today knows.
 * However the program ends, the terminal is as it was before. One at a time, from one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* Contents of a screen: text with escape sequences for colour only, a buffer per line. */
struct screen {
    struct buffer *lines;
    size_t line_count;
    size_t rows, columns;
};

/* Makes the lines empty and as many as there are rows. */
void screen_reset(struct screen *screen, size_t rows, size_t columns);
void screen_release(struct screen *screen);

/* Keys that are no character. Characters are their bytes, UTF-8 a byte at a time. */
enum terminal_key {
    KEY_NONE = -1, /* none is waiting */
    KEY_ENTER = '\r',
    KEY_ESCAPE = 27,
    KEY_BACKSPACE = 127,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_UNKNOWN, /* a sequence that means nothing to us */
};

/* What terminal_wait woke up for, as bits. */
enum terminal_event {
    TERMINAL_KEY = 1 << 0,
    TERMINAL_SIZE = 1 << 1,  /* other rows and columns, or all has to be drawn again */
    TERMINAL_OTHER = 1 << 2, /* the caller's own file descriptor */
    TERMINAL_END = 1 << 3,   /* Ctrl-C, a signal that ends programs, or the terminal is gone */
};

struct terminal;

/*
 * Takes standard input and output, which have to be a terminal. From here on the signals that end,
 * stop, continue and resize programs are blocked in this thread, and in threads that it starts;
 * terminal_wait takes them. Ctrl-Z gives the terminal back and stops the program as usual.
 */
int terminal_new(struct terminal **ret_terminal, struct error *error);

/* Gives the terminal back as it was. A signal that was to end the program ends it now, unless it
 * was Ctrl-C. */
void terminal_free(struct terminal *terminal);

/* Waits for a key, a signal, `other_fd` (or -1) to be readable, or the timeout (-1: none). Returns
 * bits of enum terminal_event; 0 after the timeout. */
unsigned terminal_wait(struct terminal *terminal, int other_fd, int timeout_ms);

/* The next key that was pressed, without waiting. */
int terminal_read_key(struct terminal *terminal);

/* Always at least 1 and at most TERMINAL_SIDE_MAX. */
#define TERMINAL_SIDE_MAX 1000
void terminal_size(const struct terminal *terminal, size_t *ret_rows, size_t *ret_columns);

/* Shows the screen, writing only lines that differ from what is shown. */
void terminal_show(struct terminal *terminal, const struct screen *screen);

/* The key that begins at `bytes`, and how many it takes in *ret_length: 0 when more bytes must come
 * to tell, unless `complete` says that none will. For terminal_read_key, and tests. */
int terminal_parse_key(const char *bytes, size_t count, bool complete, size_t *ret_length);
