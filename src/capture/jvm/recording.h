/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording by the flight recorder (JFR) of a JVM that runs already, which is asked for it as
 * jcmd asks: over the JVM's own socket, which SIGQUIT makes it open. Its files are in a directory
 * in the JVM's /tmp, which goes with the recording.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct jvm_recording;

/* Whether the process is a HotSpot JVM that waits for SIGQUIT: others would end by it. */
bool jvm_is_there(pid_t pid);

/* Its sampled allocations are recorded from then on. Takes JDK 16. */
int jvm_recording_start(pid_t pid, struct jvm_recording **ret_recording, struct error *error);

/* Ends it; *ret_fd is its file, for reading: the caller closes it. */
int jvm_recording_stop(struct jvm_recording *recording, int *ret_fd, struct error *error);

/* One that is still there is ended. Takes NULL. */
void jvm_recording_free(struct jvm_recording *recording);
