/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of other processes, as /proc shows them and as ptrace reads them while they are stopped:
 * what snapshots and the sampler without privilege have in common.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/x86_64/registers.h"

struct task_stat {
    char name[64];
    char state; /* the kernel's letter */
    unsigned flags;
    uint64_t ticks; /* of CPU time, user's and kernel's, by sysconf(_SC_CLK_TCK) */
};

/* 0, or -ESRCH or another code when the thread is not there. */
int task_stat_read(pid_t pid, pid_t tid, struct task_stat *ret_stat);

/* A number of /proc/PID/task/TID/status; -1 when there is none. */
long task_status_number(pid_t pid, pid_t tid, const char *key);

/* Of a thread that ptrace has stopped, by the thread that traces it. */
int stopped_registers(pid_t tid, struct thread_registers *ret_registers);

/* Copies memory from an address on, as far as it goes. Returns the bytes. */
size_t stopped_memory(pid_t tid, uint64_t address, void *to, size_t length);

/* kernel.yama.ptrace_scope: 0 without restriction, 3 when nobody may trace. */
int ptrace_scope(void);
