/* SPDX-License-Identifier: Apache-2.0 */
/* The text of source files for `assay report --lines`: from this machine, or from a debuginfod
 * server that was named. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"

struct http_client;

/* Where sources may be. Zero-initialised: only where the profile says. */
struct report_sources {
    struct option_list folders;
    const char *debuginfod; /* address; NULL: none */
    const char *token_file, *ca;
    struct http_client *client; /* once one was needed */
    struct error failure;       /* of the server: it isn't asked again */
};
void report_sources_release(struct report_sources *sources);

/* Text split into lines; or none, and why. */
struct source_text {
    struct buffer content;
    const char **lines;
    size_t *lengths;
    size_t count;
    struct buffer why; /* a sentence; empty when there is a text */
};
void source_text_release(struct source_text *source);

/* `path` as the profile has it; `build_id` may be "". A file that has fewer lines than `last` is
 * another version, and not taken. */
void source_text_load(struct source_text *source, struct report_sources *sources, const char *path,
                      const char *build_id, uint32_t last);
