/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for comparisons that a server has: `baseline:NAME` and `query:SELECTION`, wherever a
 * command takes files. */
#pragma once

#include "cli/input.h"
#include "cli/remote/address.h"
#include "compare/table.h"

struct remote_inputs {
    struct server_link link;
    const char *query[COMPARE_SIDES]; /* a selection in place of files; NULL: none */
    const char *from[COMPARE_SIDES], *to[COMPARE_SIDES]; /* of selections */
};

#define REMOTE_INPUT_OPTIONS(remote)                                                               \
    SERVER_URL_OPTIONS((remote).link),                                                             \
        {"base-query",                                                                             \
         0,                                                                                        \
         OPTION_TEXT,                                                                              \
         "QUERY",                                                                                  \
         "the base is this selection of the server",                                               \
         &(remote).query[COMPARE_BASE]},                                                           \
        {"new-query",                                                                              \
         0,                                                                                        \
         OPTION_TEXT,                                                                              \
         "QUERY",                                                                                  \
         "the new side is this selection of the server",                                           \
         &(remote).query[COMPARE_NEW]},                                                            \
        {"base-from",                                                                              \
         0,                                                                                        \
         OPTION_TEXT,                                                                              \
         "T",                                                                                      \
         "start of the base's selections (now-1h)",                                                \
         &(remote).from[COMPARE_BASE]},                                                            \
        {"base-to",                                                                                \
         0,                                                                                        \
         OPTION_TEXT,                                                                              \
         "T",                                                                                      \
         "end of the base's selections (now)",                                                     \
         &(remote).to[COMPARE_BASE]},                                                              \
        {"new-from",                                                                               \
         0,                                                                                        \
         OPTION_TEXT,                                                                              \
         "T",                                                                                      \
         "start of the new side's selections (now-1h)",                                            \
         &(remote).from[COMPARE_NEW]},                                                             \
    {                                                                                              \
        "new-to", 0, OPTION_TEXT, "T", "end of the new side's selections (now)",                   \
            &(remote).to[COMPARE_NEW]                                                              \
    }

/* Whether a path names one of these. */
bool remote_input_is(const char *path);

/* How many profiles a path stands for: a baseline may have several. Returns 0 or an exit code. */
int remote_input_count(struct remote_inputs *remote, const char *path, unsigned *ret_count);

/* Reads one of them. Returns 0 or an exit code. */
int remote_input_read(struct remote_inputs *remote, const char *path, unsigned part,
                      enum compare_side side, uint64_t expansion_limit, struct profile *profile);

void remote_inputs_close(struct remote_inputs *remote);
