/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the process when one of its threads is stuck: who watches over it (systemd, `assay up`)
 * starts another. Threads say that they are alive; a thread that only watches counts the seconds in
 * which they didn't. It counts its own, so that a process that was stopped as a whole, or a machine
 * that slept, is not taken for one that hangs. Nor does it count time in which the thread waited
 * for a CPU: on a busy machine a few seconds of work take minutes, and would again after a restart.
 * To systemd it says the same, where that asks.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum watchdog_who { WATCHDOG_CAPTURE, WATCHDOG_WINDOWS, WATCHDOG_THREADS };

struct watchdog;

/* A thread that is busy and silent for `limit_ns` ends the process; 0: only reports to systemd. */
int watchdog_start(int64_t limit_ns, struct watchdog **ret_watchdog, struct error *error);
void watchdog_stop(struct watchdog *watchdog); /* takes NULL */

/* The calling thread is `who`. Without this, waits for a CPU count as silence. Takes NULL. */
void watchdog_join(struct watchdog *watchdog, enum watchdog_who who);

/* All take NULL. Alive and at work; and nothing to do, for as long as it takes. */
void watchdog_beat(struct watchdog *watchdog, enum watchdog_who who);
void watchdog_idle(struct watchdog *watchdog, enum watchdog_who who);

/* Tells systemd that all has begun. */
void watchdog_ready(struct watchdog *watchdog);
