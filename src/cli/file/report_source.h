/* SPDX-License-Identifier: Apache-2.0 */
/* The text of source files for `assay report --lines`: from this machine, or from a debuginfod
 * server that was named. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"

struct http_client;

/* Text split into lines; or none, and why. */
struct source_text {
    struct buffer content;
    const char **lines;
    size_t *lengths;
    size_t count;
    struct buffer why; /* a sentence without its end; empty when there is a text */
};

#define REPORT_SOURCES_KEPT 16

/* Where sources may be. Zero-initialised: only where the profile says. */
struct report_sources {
    struct option_list folders;
    const char *debuginfod; /* address; NULL: none */
    const char *token_file, *ca;
    struct http_client *client; /* once one was needed */
    struct error failure;       /* of the server: it isn't asked again */
    struct {
        char *path, *build_id;
        struct source_text text;
    } kept[REPORT_SOURCES_KEPT]; /* functions of one file come one after the other, not in a row */
    size_t kept_count, kept_next;
};
void report_sources_release(struct report_sources *sources);

/* The text of a file: from the directories, else the server, which has the very build's, else where
 * the profile says it is. `path` as the profile has it; `build_id` may be "". Valid until the next
 * call.
 */
const struct source_text *report_sources_find(struct report_sources *sources, const char *path,
                                              const char *build_id);
