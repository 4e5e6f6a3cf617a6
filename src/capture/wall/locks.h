/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that threads wait for: their names, and who has them. Private to capture/wall/. */
#pragma once

#include "bpf/wall.h"
#include "capture/record/recorder.h"

#define WALL_LOCK_BYTES 192

#define WALL_LOCKS_MAX 1024 /* with a name each, in one profile; others are "[lock]" */

/* The locks of one profile. */
struct wall_locks;
struct wall_locks *wall_locks_new(struct recorder *recorder);
void wall_locks_free(struct wall_locks *locks); /* takes NULL */
void wall_locks_clear(struct wall_locks *locks);

/* "[lock requests_mutex]" where the lock is a variable of a program or library, "[lock 0x7f...]"
 * elsewhere in memory, "[kernel lock]". NULL: it is not known which lock it is. Good until the next
 * call. */
const char *wall_locks_name(struct wall_locks *locks, const struct bpf_sample_event *event);

/* The thread that a mutex calls its owner, by the number that its process knows it by: 0 when this
 * is not another thread of the process. */
uint32_t wall_lock_owner(uint32_t pid, uint32_t waiter_tid, uint32_t owner);

/* "[thread NAME]", for a thread without a stack. */
void wall_thread_mark(uint32_t pid, uint32_t tid, char ret_mark[WALL_LOCK_BYTES]);
