/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least privilege for the agent: a few capabilities, no way to gain more, optionally another user,
 * and after the start a filter of system calls. docs/agent.md explains each capability;
 * tests/agent/least-privilege.sh takes them away one by one.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * Keeps the needed capabilities of those that the process has, and gives the rest away for good.
 * With `user` the process is that user's from now on, and `directory`, where only root could write,
 * is too, with what is in it; NULL: it stays whose it is. For the one thread before there are
 * others.
 */
int privilege_drop(const char *user, const char *folder, struct error *error);

/* From now on all threads can only make the system calls that running takes: no program can be
 * started, no process looked into by ptrace. */
int privilege_filter(struct error *error);

/* The capabilities that are left, as CapEff in /proc/PID/status. */
uint64_t privilege_capabilities(void);
