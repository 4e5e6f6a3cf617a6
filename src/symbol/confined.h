/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running code that can't be trusted with its input, such as a library that reads debug information
 * of files from anywhere, in a child process that can do nothing but read what it was given and
 * write its answer: no files, no network, no processes, and limits on memory, time and output. What
 * it answers is as untrusted as its input was.
 *
 * A process with one thread forks. One with more has its children started afresh, from its own
 * file, if it called confined_enter first thing in main(): that costs several milliseconds each,
 * most of them for the dynamic linker, but it doesn't matter then which threads hold which locks.
 * Memory that is shared with the kernel or with others is the owner's to keep from children
 * (MADV_DONTFORK).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"

#define CONFINED_FILES_MAX 4
#define CONFINED_MEMORY_FLOOR (512ull << 20)

/* The child's input. Files are open for reading; -1 for a missing one. */
struct confined_input {
    const void *request; /* NULL when it is empty */
    size_t request_bytes;
    int files[CONFINED_FILES_MAX];
};

/* Writes a part of the answer; a failure ends the child. */
void confined_write(const void *bytes, size_t length);

struct confined_program {
    const char *name; /* the program that a fresh process executes; NULL: always forked */
    int (*run)(const struct confined_input *input); /* returns 0, or anything else for a failure */
    uint64_t memory_bytes; /* beyond what is there at first and what its files take, */
    unsigned memory_ratio; /* limit: CONFINED_MEMORY_FLOOR and this many times the size of its
                            * files; 0: no such limit */
    unsigned cpu_seconds;
    unsigned deadline_ms; /* from the start */
    size_t output_max_bytes;
};

enum confined_end {
    CONFINED_FINE,    /* the output is complete */
    CONFINED_FAILED,  /* it said so, or could not be started or confined */
    CONFINED_DIED,    /* by a signal: a crash, a limit, something that it may not do */
    CONFINED_LATE,    /* it was ended at the deadline */
    CONFINED_TOO_LONG /* it was ended because of the length of its output */
};

struct confined_job {
    const struct confined_program *program;
    void *context;                 /* the caller's */
    struct buffer request;         /* released with the job */
    int files[CONFINED_FILES_MAX]; /* closed with the job; -1 where there is none */

    struct buffer output;
    enum confined_end end;
    int status; /* as waitpid gives it */

    /* ---- inside ---- */
    pid_t pid;
    int from_child;
    int64_t deadline_ms;
};

/* Gives out jobs and takes results: called until `next` returns false. `done` may take the output;
 * the job is released after it. */
struct confined_jobs {
    bool (*next)(void *context, struct confined_job *job);
    void (*done)(void *context, struct confined_job *job);
    void *context;
    /* Asked a few times a second: when it says no, the jobs that run are late, and no more start.
     * NULL: always yes. */
    bool (*go_on)(void *context);
};

/* Runs all of them, one per CPU at a time, and returns when the last is done. */
void confined_run(const struct confined_jobs *jobs);

/* When this process was started to run one of the programs, does so and doesn't return. */
void confined_enter(int argc, char **argv, const struct confined_program *const programs[],
                    size_t count);

/* ---- inside (confined_child.c) ---- */

#define CONFINED_OUTPUT 3  /* descriptors in the child: the answer, */
#define CONFINED_REQUEST 4 /* the request, */
#define CONFINED_FILES 5   /* and the files; those beyond the last are closed */

/* In the child, with descriptors in place. Doesn't return. */
void confined_child_run(const struct confined_program *program) __attribute__((noreturn));
