/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of rows of wall-clock time: the state, the thread's name, and who had the CPU instead.
 * Names are other people's text: each kind has a limit of distinct values, beyond which it is
 * "other". Private to capture/wall/.
 */
#pragma once

#include "capture/record/recorder.h"

#define WALL_THREAD_LABEL "thread"
#define WALL_INSTEAD_LABEL "ran_instead"               /* a service, or else a process */
#define WALL_INSTEAD_CGROUP_LABEL "ran_instead_cgroup" /* where its cgroup is another */

struct wall_names;
struct wall_names *wall_names_new(struct recorder *recorder);
void wall_names_free(struct wall_names *names); /* takes NULL */
/* The profile ends: label sets and names belong to it. */
void wall_names_clear(struct wall_names *names);

/* A process had a CPU: its name is looked up before it ends. */
void wall_names_note_other(struct wall_names *names, uint32_t pid);

/* Label sets with one or two labels more. */
uint32_t wall_names_add_state(struct wall_names *names, uint32_t labels, const char *state);
uint32_t wall_names_add_thread(struct wall_names *names, uint32_t labels, const char *comm);
uint32_t wall_names_add_other(struct wall_names *names, uint32_t labels, uint32_t pid);

/* "worker-12" is "worker-#": each run of digits is one #. */
void wall_fold_digits(const char *name, char *ret_folded, size_t bytes);
