/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two files of agent/symbols. */
#pragma once

#include <pthread.h>

#include "agent/symbols.h"
#include "http/client/client.h"
#include "symbol/store/store.h"

#define SYMBOLS_WANTED_MAX 512
#define SYMBOLS_HELD_MAX 12 /* files that are open for this; a report can speak of 16 */
#define SYMBOLS_REFUSED_MAX 64
#define SYMBOLS_REASON_BYTES 200

struct wanted_build {
    char key[SYMBOL_KEY_BYTES];
    int64_t said_ns;
};

struct refused_build {
    char key[SYMBOL_KEY_BYTES];
    int64_t until_ns;
};

/* HELD_REFUSED: it can't be sent, and the server is still to be told why. */
enum held_state { HELD_NONE, HELD_OFFERED, HELD_ORDERED, HELD_SENDING, HELD_REFUSED };

struct held_file {
    enum held_state state;
    char key[SYMBOL_KEY_BYTES];
    int fd;     /* -1: none */
    char *path; /* where it was opened, for its debug file */
    char *name; /* for people */
    int64_t since_ns;
    char reason[SYMBOLS_REASON_BYTES];
};

struct agent_symbols {
    const struct agent_settings *settings;
    const char *agent_id;
    struct agent_control *control; /* NULL: no notification */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t wake;
    bool stop;
    struct http_client *client; /* of the upload under way; NULL between uploads */
    struct wanted_build wanted[SYMBOLS_WANTED_MAX];
    size_t wanted_count;
    struct held_file held[SYMBOLS_HELD_MAX];
    struct refused_build refused[SYMBOLS_REFUSED_MAX]; /* a ring */
    size_t refusal_count;
    struct agent_symbols_stats stats;
};

/* With the lock held. */
void held_file_release(struct held_file *held);
void symbols_note_refusal(struct agent_symbols *symbols, const char *key, bool final);

/* The thread. */
void *symbols_send_files(void *symbols);
