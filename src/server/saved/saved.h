/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things that people keep on a server for each other: named views of its page, notes at time
 * ranges, and pins, which keep raw data of a time range from retention. By tenant, bounded, in one
 * file that is replaced as a whole (docs/formats/saved.md). Any thread. Private to src/server.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "server/handler/handler.h"

#define SAVED_FILE "saved.json"
#define SAVED_FILE_BYTES_MAX (256u << 20)
#define SAVED_VIEWS_MAX 500 /* of a tenant, as the next */
#define SAVED_NOTES_MAX 1000
#define SAVED_BYTES_MAX (2u << 20) /* of all texts of a tenant */
#define SAVED_ID_BYTES 20
#define SAVED_NAME_BYTES 257     /* of a view or a service, with its NUL */
#define SAVED_TEXT_BYTES 1025    /* of a note, a reason or a cause, likewise */
#define SAVED_ADDRESS_BYTES 8193 /* of a view, likewise */
#define SAVED_PIN_DAYS_MAX 3660  /* until a pin ends */
#define SAVED_PINS_BYTES_DEFAULT (1ull << 30)
#define SAVED_PINS_COUNT_DEFAULT 100

/* Of one tenant's pins. */
struct saved_limits {
    uint64_t bytes, count;
};

enum saved_kind { SAVED_VIEW, SAVED_NOTE, SAVED_PIN, SAVED_KINDS };
extern const char *const saved_kind_names[SAVED_KINDS];

struct saved_item {
    char id[SAVED_ID_BYTES];
    enum saved_kind kind;
    char *text;    /* the name of a view, the text of a note, the reason of a pin */
    char *address; /* of a view: path and parameters; "" for the others */
    char *service; /* of a note; "": of all */
    char *by;
    int64_t saved_ns;
    int64_t from_ns, to_ns; /* of notes and pins */
    int64_t expires_ns;     /* of a pin */
    int64_t dropped_ns;     /* of a pin that no longer keeps anything; 0: it does */
    char *why;              /* it was dropped */
};

struct saved_tenant {
    char *name;
    struct saved_item *items; /* in the order in which they were saved */
    size_t count, capacity;
    size_t bytes; /* of their texts */
};

struct saved {
    struct saved_limits limits;
    char *path;             /* NULL: nothing outlasts the server */
    pthread_mutex_t saving; /* taken before `lock`; over the file */
    pthread_mutex_t lock;   /* over all that follows */
    struct saved_tenant *tenants;
    size_t tenant_count, tenant_capacity;
    bool unsaved;
    uint64_t dropped_pins; /* since the start */
    int64_t counted_ns;    /* monotonic: when the bytes of pins were; 0: not yet */
};

/* `directory` may be NULL. A file that can't be read is an error. */
int saved_open(const char *directory, const struct saved_limits *limits, struct saved **ret_saved,
               struct error *error);
void saved_close(struct saved *saved); /* takes NULL */

/* Writes the file if anything has changed; returns when it is on disk. */
int saved_save(struct saved *saved, struct error *error);

/* ---- with the lock held ---- */

struct saved_tenant *saved_tenant(struct saved *saved, const char *name);

/* Adds a copy, with an id of its own unless it has one. A view replaces the one of its name, and
 * keeps that one's id. -EDQUOT: there are too many, or too much text. */
int saved_add(struct saved *saved, struct saved_tenant *tenant, const struct saved_item *item,
              struct saved_item **ret_item, struct error *error);
/* -ENOENT: there is none with that id. */
int saved_remove(struct saved *saved, struct saved_tenant *tenant, enum saved_kind kind,
                 const char *id, struct error *error);
/* A pin stays in the list, with the reason why it keeps nothing any more. */
void saved_drop(struct saved *saved, struct saved_item *pin, int64_t now_ns, const char *why);

/* ---- saved_file.c, with the lock held ---- */

void saved_write(const struct saved *saved, struct buffer *out);
int saved_read(struct saved *saved, const char *text, size_t length, struct error *error);

/* ---- pins.c ---- */

/* Tells the store what is pinned. */
int pins_apply(struct server *server, struct error *error);

/* After a round of the store's maintenance: ends pins whose time is over, and drops those whose
 * data was deleted for the disk limit or has outgrown the quota. */
void pins_round(struct server *server, int64_t now_ns);

/* Bytes of raw data that all pins of a tenant keep, and `more` besides, which may be NULL. The lock
 * is held. */
uint64_t pins_bytes(struct server *server, const struct saved_tenant *tenant,
                    const struct saved_item *more);

/* ---- saved_api.c ---- */

server_handler views_list, views_post, views_delete, notes_list, notes_post, notes_delete;
server_handler pins_list, pins_post, pins_delete;
