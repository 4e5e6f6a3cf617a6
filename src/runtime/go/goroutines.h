/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The goroutines of a running Go program, read from its memory: what each does, why it waits, and
 * its stack by frame pointers. Reads are bounded, and nothing that is read is believed: a goroutine
 * that goes on meanwhile has a short stack or none.
 */
#pragma once

#include "runtime/go/binary.h"
#include "runtime/memory.h"

#define GO_REASON_BYTES 40
#define GO_FRAMES_MAX 128
#define GO_GOROUTINES_MAX (16u << 20) /* a list that is longer is not one */

struct go_layout;

struct go_process {
    struct go_binary binary; /* addresses are the process's */
    const struct go_layout *layout;
    char version[32];
    char reasons[GO_REASONS_MAX][GO_REASON_BYTES];
};

enum go_status {
    GO_RUNNABLE = 1, /* as the runtime numbers them */
    GO_RUNNING = 2,
    GO_SYSCALL = 3,
    GO_WAITING = 4,
    GO_PREEMPTED = 9,
};

struct goroutine {
    uint64_t id;
    enum go_status status;
    const char *reason;                /* "chan receive": of the process, "" when it doesn't wait */
    uint64_t addresses[GO_FRAMES_MAX]; /* innermost first */
    size_t count;                      /* 0: it runs, or its stack can't be read */
    bool cut;                          /* there are more */
};

/* False, with the reason in a few words, when the process can't be read or its version is not known
 * (1.17 to 1.26 are). A program that is starting can be read later. */
bool go_attach(const struct go_binary *binary, uint64_t bias, const struct runtime_memory *memory,
               struct go_process *ret_process, const char **ret_reason);

/* How many there are, those that have ended included, and where their list is. */
size_t go_list(const struct go_process *process, const struct runtime_memory *memory,
               uint64_t *ret_list);

/* One of them. False when it has ended, or can't be read. */
bool go_read(const struct go_process *process, const struct runtime_memory *memory, uint64_t list,
             size_t at, struct goroutine *ret_goroutine);

/* Its state of wall-clock time: "running", "runnable", "syscall", "lock", "network",
 * "sleep", "channel", "idle" (of the runtime's own that wait for work), "other". */
const char *go_state(const struct goroutine *goroutine);
