/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: who did what to a server's data and keys. Lines of JSON in `audit.log` of the data
 * directory, only ever appended, on disk when audit_write returns, and rotated to audit.log.1 and
 * so on. It holds names, never tokens or keys, and is bounded by AUDIT_BYTES * (AUDIT_FILES + 1).
 *
 * Several processes may have it open, as a server and `assay token`. Any thread may call.
 */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

#define AUDIT_FILE "audit.log"
#define AUDIT_BYTES (8u << 20) /* of one file */
#define AUDIT_FILES 7          /* that are kept beside it */
#define AUDIT_TEXT_MAX 2048    /* of one field; the rest is cut off */

/* NULL is an empty text. */
struct audit_entry {
    const char *actor;   /* a token's name, or as audit_local_actor says */
    const char *tenant;  /* empty: of the whole server */
    const char *action;  /* "delete", "token create", ... */
    const char *target;  /* what it was done to */
    const char *outcome; /* "done", or what stood in the way */
    const char *remote;  /* address; empty: from this machine's command line */
};

struct audit;

int audit_open(const char *directory, struct audit **ret_audit, struct error *error);
void audit_close(struct audit *audit); /* writes what audit_note has; takes NULL */

/* `audit` may be NULL: then nothing is noted. A failure to write is logged as an error. */
void audit_write(struct audit *audit, const struct audit_entry *entry);

/* For what strangers can cause, such as refused logins: returns at once, is written by audit_flush,
 * and of more than a few a minute only the number is. */
void audit_note(struct audit *audit, const struct audit_entry *entry);
void audit_flush(struct audit *audit);

/* "local user NAME" */
#define AUDIT_ACTOR_BYTES 80
const char *audit_local_actor(char text[AUDIT_ACTOR_BYTES]);

/* The last `limit` lines, oldest first, of one tenant or of all (NULL). Without a log: no lines. */
int audit_read(const char *directory, const char *tenant, size_t limit, struct buffer *ret_lines,
               struct error *error);
