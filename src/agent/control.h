/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capture switch, and the server's orders. Capture is off while any of three switches is off: a
 * signal (SIGUSR1; SIGUSR2 turns it on), a file that exists, or the server. The states set by a
 * signal and the server are kept in the data directory and persist across restarts.
 *
 * A thread reports to the server every ten seconds and polls for new orders in between. Recordings
 * are separate captures beside the continuous one, each in a thread, within limits that only this
 * host's configuration can change.
 */
#pragma once

#include <stdbool.h>

#include "agent/sampling.h"
#include "base/buffer.h"
#include "base/error.h"
#include "io/json_write.h"

struct agent;
struct agent_control;

#define AGENT_CONTROL_REASON_BYTES 400

/* SIGUSR1, SIGUSR2 and SIGHUP are this from now on. For the beginning of the program: before that,
 * each of them ends it. */
void agent_control_catch_signals(void);

/* Reads the saved state, and looks at the file: agent_control_off() is right from here on. */
int agent_control_open(struct agent *agent, struct agent_control **ret_control,
                       struct error *error);
/* From here on the server is heard. */
int agent_control_start(struct agent_control *control, struct error *error);
/* Ends recordings and the thread: before the spool and the encoder are. Takes NULL. */
void agent_control_stop(struct agent_control *control);
void agent_control_free(struct agent_control *control); /* takes NULL */

/* The capturing thread's, several times a second: takes note of signals and the file, and returns
 * whether capture is to be off. */
bool agent_control_off(struct agent_control *control);
/* Likewise: the server's order for rates and collectors, as kept in the data directory. */
void agent_control_sampling(struct agent_control *control, struct sampling_order *ret_order);
/* Whether SIGHUP has come since the last call. */
bool agent_control_reload(void);
/* Applies this state, and reports it to the server at once. */
void agent_control_switched(struct agent_control *control, bool off);

/* From any thread: why capture is off; "" while it isn't to be. */
void agent_control_reason(struct agent_control *control,
                          char ret_reason[AGENT_CONTROL_REASON_BYTES]);

/* The agent's id; lives as long as the control. */
const char *agent_control_id(const struct agent_control *control);
/* From any thread: the server is to be told at once of something new. */
void agent_control_urge(struct agent_control *control);

/* Members for the agent's status: "agent", "capture", "capture_reason" and "recordings". */
void agent_control_write(struct agent_control *control, struct json_writer *json);
