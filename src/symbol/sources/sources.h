/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files of builds, as their senders uploaded them: for each tenant and build a list of paths
 * with the SHA-256 of each content, and each content once, compressed. Paths are only keys: no path
 * of a request is ever opened. docs/symbols.md describes the directory.
 *
 * Sources reveal more than names do, so tenants share nothing: a list that names the hash of
 * another tenant's file doesn't give access to it.
 *
 * Any thread may call anything but close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#define SOURCE_HASH_DIGITS 64
#define SOURCE_PATH_BYTES_MAX 4096
#define SOURCE_LIST_BYTES_MAX (16u << 20)
#define SOURCE_LIST_FILES_MAX 100000
#define SOURCE_FILE_BYTES_DEFAULT (16u << 20)

/* ---- paths and lists (source_list.c) ---- */

/* Without "." and double slashes, and with ".." resolved by name, as debuginfod does. False for
 * invalid paths: empty, too long, with control characters, or above their own root. */
bool source_path(const char *path, size_t length, struct buffer *ret_path);

struct source_item {
    char hash[SOURCE_HASH_DIGITS + 1];
    uint32_t order;   /* of two with one path the last counts */
    const char *path; /* in the list's arena */
};

/* Zero-initialised is empty. */
struct source_list {
    struct source_item *items;
    size_t count, capacity;
    struct arena text;
};
void source_list_release(struct source_list *list);
#define _cleanup_source_list_ __attribute__((cleanup(source_list_release)))

/* Adds lines as sha256sum(1) writes them: a hash, two blanks, a path. -EINVAL, -E2BIG. */
int source_list_read(struct source_list *list, const char *text, size_t length,
                     struct error *error);
/* In the order of paths, each once. */
void source_list_sort(struct source_list *list);
void source_list_write(const struct source_list *list, struct buffer *out);
/* Of a sorted list, by a path of source_path(); NULL: not in the list. */
const struct source_item *source_list_find(const struct source_list *list, const char *path);

bool source_is_hash(const char *text);
/* Of bytes in memory. False: the library failed. */
bool source_hash(const void *bytes, size_t length, char ret_hash[SOURCE_HASH_DIGITS + 1]);

/* ---- the store (source_store.c) ---- */

struct source_store;

struct source_store_options {
    const char *directory;    /* made when something comes */
    uint64_t file_bytes_max;  /* of one file as it is; 0: 16 MiB */
    uint64_t total_bytes_max; /* on disk; 0: 5 GiB. The least recently used ones make room. */
    int64_t unused_ns;        /* lists that were unused for this long are removed; 0: never */
};

struct source_store *source_store_open(const struct source_store_options *options);
void source_store_close(struct source_store *store); /* takes NULL */

/* Adds a list to what is known of the build. *ret_missing gets the hashes, each once and each with
 * a newline, of contents that the store lacks. `key` is one of symbol_key(). */
int source_store_put_list(struct source_store *store, const char *tenant, const char *key,
                          const struct buffer *text, struct buffer *ret_missing, size_t *ret_files,
                          struct error *error);

/* One content on its way in. Zero-initialised is nothing. */
struct source_upload {
    struct source_store *store;
    struct source_packer *packer;
    int fd;
    char *path; /* NULL: nothing was begun */
    uint64_t bytes;
};
int source_upload_begin(struct source_store *store, struct source_upload *ret_upload,
                        struct error *error);
/* -E2BIG beyond the limit. */
int source_upload_write(struct source_upload *upload, const void *bytes, size_t length,
                        struct error *error);
/* -EINVAL: it has another hash. */
int source_upload_finish(struct source_upload *upload, const char *tenant, const char *hash,
                         struct error *error);
void source_upload_release(struct source_upload *upload);
#define _cleanup_source_upload_ __attribute__((cleanup(source_upload_release)))

/* The text of a file. -ENOENT: it wasn't sent, or what was kept of it is damaged and gone now. An
 * absolute path may lack its slash, as addresses do. */
int source_store_read(struct source_store *store, const char *tenant, const char *key,
                      const char *path, struct buffer *ret_text, struct error *error);

/* All that is known of a build; for a query about many files of it. -ENOENT. */
int source_store_list(struct source_store *store, const char *tenant, const char *key,
                      struct source_list *ret_list, struct error *error);

/* -ENOENT: unknown list. Contents are removed with the last list that names them. */
int source_store_delete(struct source_store *store, const char *tenant, const char *key,
                        struct error *error);

/* ---- what has to go (source_keep.c) ---- */

/* Removes what is unused for too long, what is beyond the limit, and what no list names. */
void source_store_maintain(struct source_store *store);

struct source_store_stats {
    uint64_t builds, files, bytes; /* at the last look */
    uint64_t removed;              /* builds, since opened */
};
struct source_store_stats source_store_stats(struct source_store *store);
