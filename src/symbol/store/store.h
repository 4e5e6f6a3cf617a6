/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbol store: binaries and debug files that were sent or found, and a symbol index of each
 * (index.h), by tenant and build ID. Tenants see nothing of each other; files of equal content are
 * on disk once, whoever sent them. A better file replaces a worse one, never the other way.
 * docs/symbols.md describes the directory.
 *
 * A key is a build ID in lower-case hexadecimal: a GNU build ID's bytes, the text of Go's, or, for
 * a file that has neither, OpenTelemetry's hash of its content.
 *
 * Any thread may call anything but close. Confined children make indexes, one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "symbol/index/index.h"

#define SYMBOL_KEY_BYTES 257 /* with its NUL */
#define SYMBOL_NAME_BYTES 256
#define SYMBOL_TENANT_BYTES 65 /* with its NUL */

struct budget;
struct elf_file;
struct symbol_store;

struct symbol_store_options {
    const char *directory;     /* made when missing */
    uint64_t file_bytes_max;   /* of one file; 0: 2 GiB */
    uint64_t total_bytes_max;  /* 0: 20 GiB. Of the tenant that has most, what was used longest
                                  ago makes room. */
    int64_t unused_ns;         /* builds that were unused for this long are removed; 0: never */
    uint64_t mapped_bytes_max; /* of indexes that are open and not in use; 0: 256 of any size */
    struct budget *memory;     /* charged for an index until it is written; NULL: not counted */
};

int symbol_store_open(const struct symbol_store_options *options, struct symbol_store **ret_store,
                      struct error *error);
void symbol_store_close(struct symbol_store *store); /* takes NULL */

/* ---- keys (store_key.c) ---- */

/* Of a build ID as profiles and people write it: hexadecimal, or Go's text. False: it is
 * neither. */
bool symbol_key(const char *build_id, char ret_key[SYMBOL_KEY_BYTES]);

struct symbol_identity {
    char key[SYMBOL_KEY_BYTES];
    char other[SYMBOL_KEY_BYTES]; /* Go's, beside a GNU one; else "" */
    bool has_code;                /* false: a debug file alone */
    bool has_debug_information;
    bool is_package; /* its key isn't a build's: a package doesn't name its program */
};
int symbol_identify(struct elf_file *file, struct symbol_identity *ret_identity,
                    struct error *error);

/* ---- putting files in (store_put.c) ---- */

/* A file on its way in. Zero-initialised is nothing. */
struct symbol_upload {
    struct symbol_store *store;
    int fd;
    char *path; /* NULL: nothing was begun */
    uint64_t bytes;
    char alias[SYMBOL_KEY_BYTES]; /* by which its sender's profiles know it, too; or "" */
};
int symbol_upload_begin(struct symbol_store *store, struct symbol_upload *ret_upload,
                        struct error *error);
/* -E2BIG beyond the limit. */
int symbol_upload_write(struct symbol_upload *upload, const void *bytes, size_t length,
                        struct error *error);
void symbol_upload_release(struct symbol_upload *upload); /* and forgets it unless it was stored */
#define _cleanup_symbol_upload_ __attribute__((cleanup(symbol_upload_release)))

struct symbol_stored {
    char key[SYMBOL_KEY_BYTES];
    bool stored; /* false: what there is, is as good or better */
    enum symbol_index_quality quality;
};

/* Makes the index, with what there is of the same build ID, and keeps both. `expected`, a key, may
 * be NULL: a file with another is refused with -EINVAL. -EBADMSG: it can't be read. A package needs
 * it, and its program has to be there (-ENOENT). `name` is for people. */
int symbol_upload_finish(struct symbol_upload *upload, const char *tenant, const char *expected,
                         const char *name, struct symbol_stored *ret_stored, struct error *error);

/* The index of a file of this machine, which has to have that key; no copy of the file is kept. */
int symbol_store_index_path(struct symbol_store *store, const char *tenant, const char *path,
                            const char *key, struct error *error);

/* ---- what there is (store_keep.c) ---- */

/* A package (.dwp) has the units that a program was split into. */
enum symbol_file { SYMBOL_EXECUTABLE, SYMBOL_DEBUGINFO, SYMBOL_PACKAGE, SYMBOL_FILES };

struct symbol_entry {
    char key[SYMBOL_KEY_BYTES];
    char name[SYMBOL_NAME_BYTES];
    enum symbol_index_quality quality;
    unsigned sources;
    uint64_t code_bytes, named_bytes, line_bytes;
    uint64_t file_bytes[SYMBOL_FILES]; /* 0: not there */
    uint64_t index_bytes;
    int64_t added, used; /* seconds since 1970; use is noted once an hour */
};

bool symbol_store_find(struct symbol_store *store, const char *tenant, const char *key,
                       struct symbol_entry *ret_entry);
/* A tenant's, in no order, until `fn` returns other than 0. */
int symbol_store_list(struct symbol_store *store, const char *tenant,
                      int (*fn)(void *context, const struct symbol_entry *entry), void *context,
                      struct error *error);
/* -ENOENT: the tenant doesn't have it. */
int symbol_store_delete(struct symbol_store *store, const char *tenant, const char *key,
                        struct error *error);
/* A descriptor, or -1. */
int symbol_store_open_file(struct symbol_store *store, const char *tenant, const char *key,
                           enum symbol_file which, uint64_t *ret_bytes);
/* Removes what is unused for too long, and what is beyond the limit; a round in minutes. */
void symbol_store_maintain(struct symbol_store *store);

struct symbol_store_stats {
    uint64_t builds, bytes;                    /* of all tenants; bytes as they are on disk, more
                                                  or less, between rounds */
    uint64_t made, refused, kept_out, removed; /* since opened: indexes made, files refused, files
                                                  no better than what there was, builds removed */
    uint64_t open, mapped_bytes;               /* indexes, and their size */
};
struct symbol_store_stats symbol_store_stats(struct symbol_store *store);

/* ---- asking (store_cache.c) ---- */

/* An index that stays open until it is given back, also when a better one comes; NULL: not
 * stored. */
struct symbol_source;
struct symbol_source *symbol_store_source(struct symbol_store *store, const char *tenant,
                                          const char *key);
void symbol_source_release(struct symbol_store *store, struct symbol_source *source);

/* As symbol_index_look_up, for an offset in the binary's file. Start and length of the file's
 * mapped part around it (0 when not known) help where only a debug file is known, which says at
 * which address its code was and not where in the file. With SYMBOL_BY_ADDRESS as the start,
 * `offset` is an address as the linker gave it. */
#define SYMBOL_BY_ADDRESS UINT64_MAX
size_t symbol_source_look_up(const struct symbol_source *source, uint64_t offset,
                             uint64_t mapped_offset, uint64_t mapped_bytes,
                             struct symbol_frame *frames, size_t most);
