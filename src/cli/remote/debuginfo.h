/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `assay debuginfo` that send files to a server. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"

struct http_client;
struct symbol_identity;

struct debuginfo_sending {
    const char *server, *token_file, *ca;
    uint64_t jobs;                   /* files at a time; 0: 4 */
    bool sources;                    /* source files, too: */
    struct option_list source_roots; /* below these, or else below the current directory */
    struct option_list source_maps;  /* OLD=NEW */
    char *real_roots[OPTION_LIST_MAX];
    const char *service, *version; /* whose maps are sent; NULL: binaries are */
};

/* Files, and all in directories. An exit code. */
int debuginfo_upload(struct debuginfo_sending *sending, const char *const *paths, int count);

/* The same for source maps and mapping files of a service and version. */
int debuginfo_upload_maps(const struct debuginfo_sending *sending, const char *const *paths,
                          int count);

/* From its file, or the environment: a command line can be read by everybody. */
int debuginfo_read_token(const struct debuginfo_sending *sending, struct buffer *token,
                         struct error *error);

/* ---- sources (debuginfo_sources.c) ---- */

struct debuginfo_source_counts {
    uint64_t named; /* by binaries, and found here */
    uint64_t sent;
    uint64_t absent;
    char *example; /* one that is absent; the caller frees it */
};

/* Checks what was said about directories, and works out where they are. */
int debuginfo_source_roots(struct debuginfo_sending *sending, struct error *error);
void debuginfo_source_roots_release(struct debuginfo_sending *sending);

/* The sources of one binary or debug file. From any thread. */
int debuginfo_send_sources(const struct debuginfo_sending *sending, struct http_client *client,
                           const char *url, const char *path,
                           const struct symbol_identity *identity,
                           struct debuginfo_source_counts *counts, struct error *error);
