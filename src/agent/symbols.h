/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads of symbols that the server requests because it has addresses without names. The server
 * lists the builds it needs. When a window has samples of such a build, the agent opens the binary
 * and keeps the descriptor, so that the process and the path may go away. Several agents may have
 * the same build: the server picks one of them, and a thread of that agent uploads the file at a
 * limited rate. Only the sections that name addresses are sent, no code and no data
 * (elf/extract.h), unless the settings say otherwise.
 */
#pragma once

#include <stdint.h>

#include "agent/control.h"
#include "agent/settings/settings.h"
#include "base/buffer.h"
#include "capture/capture.h"
#include "io/json.h"
#include "io/json_write.h"

struct agent_symbols;

struct agent_symbols_stats {
    uint64_t asked;               /* builds that this agent was to send */
    uint64_t sent;                /* of them, those that the server took */
    uint64_t refused;             /* of them, those that it didn't, or that could not be sent */
    uint64_t bytes;               /* that were sent */
    uint64_t wanted;              /* builds that the server asks all for, now */
    char error[ERROR_TEXT_BYTES]; /* why the last one was not taken; "": it was */
};

/* Settings, id and control, which is woken after an upload (NULL: nothing is), are borrowed. NULL
 * in *ret_symbols when the settings forbid uploads: all functions accept that. */
int agent_symbols_start(const struct agent_settings *settings, const char *agent_id,
                        struct agent_control *control, struct agent_symbols **ret_symbols,
                        struct error *error);
void agent_symbols_stop(struct agent_symbols *symbols);

/* The capturing thread's, with what a window has; true: the server is to be told of something. */
bool agent_symbols_look(struct agent_symbols *symbols, struct capture *capture,
                        const struct profile *profile);

/* For the control thread: a report's member ,"symbols":[...], or nothing; */
void agent_symbols_write(struct agent_symbols *symbols, struct json_writer *json);
/* and what an answer says: {"wanted":[...],"send":[...]}. */
int agent_symbols_read(struct agent_symbols *symbols, struct json *json);

struct agent_symbols_stats agent_symbols_stats(struct agent_symbols *symbols);
