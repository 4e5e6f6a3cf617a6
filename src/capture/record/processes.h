/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and what they have mapped: learned from events, and from /proc to catch up with those
 * that were there before. A pid that comes again is another process. One thread at a time.
 */
#pragma once

#include <sys/types.h>

#include "base/limits/shares.h"
#include "capture/record/contexts.h"
#include "capture/record/interpreters.h"
#include "capture/record/modules.h"
#include "elf/unwind/unwind.h"

struct mapping {
    uint64_t start, end, offset;
    uint64_t bias;         /* address in the process - address in the file */
    struct module *module; /* NULL: no file, or one beyond the limits */
    uint32_t segment;      /* for the owner of the table; 0 at first */
    bool generated;        /* no file: code that a JIT has written */
};

struct pool_list;

struct process {
    uint32_t pid;
    char name[16];            /* of its main thread */
    struct mapping *mappings; /* executable ones, by start */
    size_t count, capacity;
    size_t at;              /* in the table's list */
    bool known;             /* its mappings are those below; else /proc has to be asked */
    bool sampled;           /* it has been seen in a sample */
    uint32_t samples;       /* since somebody asked for the busiest */
    bool changed;           /* its mappings have, since somebody cleared this */
    uint64_t replaced_ns;   /* when code last made way for other code at the same place, */
    uint64_t churned_ns;    /* other than by executing another program */
    int64_t caught_up_ns;   /* when /proc was last asked, */
    uint64_t read_ns;       /* and when it last had the mappings: all until then is in them */
    int64_t ended_ns;       /* when it seemed to have ended; 0: it has not */
    struct module *program; /* the first that it mapped: what it runs; NULL: not known */
    uint64_t number;        /* another with each program that it runs; 0: nobody asked yet */
    uint64_t parent;        /* the number of whom it came from, or of what it ran before; or 0 */
    uint32_t ancestors[MODULE_ANCESTORS]; /* pids, its parent's first; 0: not known */
    uint32_t labels;                      /* its samples' labels in the profile of `labels_epoch` */
    uint32_t labels_epoch;
    uint64_t started;                 /* when, as the kernel says it with samples; 0: it has not */
    uint32_t user;                    /* whom it belongs to; PROCESS_USER_UNKNOWN */
    int64_t user_ns;                  /* when that was last read */
    uint32_t charged_user;            /* whose share its mappings are of, */
    uint32_t charged;                 /* and how many of them */
    int64_t lookup_ns;                /* CPU time that asking /proc took the last time */
    int64_t search_ns;                /* likewise for processes_may_search */
    uint64_t lookup_bytes;            /* of /proc that may be read the next time; 0: as at first */
    struct interpreter *interpreter;  /* NULL: it has none, or none was found yet */
    int64_t interpreter_next_ns;      /* when to look for it again, */
    unsigned interpreter_looks;       /* after so many times */
    struct process_contexts contexts; /* of its threads */
    bool began_here;                  /* its program began while somebody looked */
    uint64_t mapped;                  /* counts changes of its mappings */
    /* For the owner of the table: what the kernel knows of its mappings, */
    struct pool_list *list;
    uint64_t told_ns;    /* when it was told that, */
    uint32_t first_list; /* and the number of the first one since `replaced_ns`; 0: none */
};

/* A thread that has a name of its own. */
struct thread {
    uint32_t tid;
    char name[16];
};

#define PROCESSES_MAX 65536
#define THREADS_MAX 262144
#define MAPPINGS_MAX 65536  /* of one process; the kernel's own limit is near it */
#define PIDS_MAX (1u << 22) /* the kernel's limit */
#define PIDS_PER_PAGE 1024u

#define PROCESS_USER_UNKNOWN UINT32_MAX

/* For whoever looks at all processes of a machine all the time, and can't trust them. */
struct processes_limits {
    unsigned process_mappings; /* of one process */
    unsigned mappings;         /* of all, shared by their users (base/limits/shares.h) */
    int64_t lookup_ns;         /* of CPU time for reading /proc in ten seconds, likewise */
};

struct processes {
    struct process **list;
    size_t count, capacity;
    struct process **pages[PIDS_MAX / PIDS_PER_PAGE]; /* by pid */
    uint16_t page_users[PIDS_MAX / PIDS_PER_PAGE];    /* processes in each; without any it goes */
    struct thread *threads;
    size_t thread_count, thread_capacity;
    struct id_table thread_index; /* by tid */
    struct modules *modules;
    /* Called before a process is forgotten; may be NULL. */
    void (*forget)(void *context, struct process *process);
    void *context;
    bool no_thread_names; /* nobody asks for them */
    uint64_t refused;     /* mappings, processes and threads beyond the limits */

    struct processes_limits limits; /* all 0: MAPPINGS_MAX is all there is */
    struct shares mappings, lookups, searches;
    int64_t lookups_ns, searches_ns; /* since when `lookups` and `searches` count */
    int64_t tidied_ns;               /* when users who hold nothing were forgotten */
    uint64_t postponed;              /* times that /proc was not asked, to save CPU time */
    /* Where users are noted whose mappings were refused, once in a while; may be NULL. */
    struct excess_list *excess;
    int64_t excess_ns; /* when one was, last */
};

void processes_init(struct processes *processes, struct modules *modules);
void processes_release(struct processes *processes);
/* Before there is any process. */
void processes_limit(struct processes *processes, const struct processes_limits *limits);

/* The process, or NULL. */
struct process *processes_find(const struct processes *processes, uint32_t pid);
/* The process, added if it is new: NULL beyond the limit. */
struct process *processes_get(struct processes *processes, uint32_t pid);

/* A new process under this pid, whatever was there before, with what its parent (NULL: not known)
 * has mapped. */
void processes_start(struct processes *processes, uint32_t pid, const struct process *parent);
/* Its main thread has ended, and nearly always the rest of it. */
void processes_end(struct processes *processes, uint32_t pid, int64_t now_ns);
/* Forgets those that have ended a while ago. */
void processes_tidy(struct processes *processes, int64_t now_ns);
/* Events were lost: what was learned from them may be wrong, and some may have ended. */
void processes_doubt(struct processes *processes, int64_t now_ns);

/* Events don't come for a while: whether processes have ended is to be looked at. */
void processes_suspect(struct processes *processes, int64_t now_ns);

/* A thread calls itself something. */
void processes_name_thread(struct processes *processes, uint32_t tid, const char *name);

/* Name of a thread, or else of its process. */
const char *processes_thread_name(const struct processes *processes, const struct process *process,
                                  uint32_t tid);

/* Catches up with these processes, or with all that exist now, PROCESSES_LEARN_MAX at most. Others
 * are looked up when they are first sampled. */
#define PROCESSES_LEARN_MAX 8192
void processes_learn(struct processes *processes, const pid_t *pids, size_t count, bool all);

/* Whether somebody may read /proc to find something in the process that samples don't need. Its
 * user's share of that is smaller than that of catching up, and apart from it. Afterwards one says
 * how much CPU time it took. */
bool processes_may_search(struct processes *processes, struct process *process, int64_t now_ns);
void processes_searched(struct processes *processes, struct process *process, int64_t took_ns);

/* Its name and what it has mapped now, from /proc; as far as the limits allow. */
void process_catch_up(struct processes *processes, struct process *process);

/* It runs another program: all mappings go, and those that come are all there are. */
void process_execute(struct processes *processes, struct process *process, uint64_t time_ns);

/* Likewise, where the mappings are those of the new program already. */
void process_note_execution(struct process *process, uint64_t time_ns);

/* The kernel was told its mappings, as of `until_ns`, as a list with that number. Numbers grow. */
void process_note_list(struct process *process, uint32_t number, uint64_t until_ns);
/* Whether a walk by that list saw mappings that other code had replaced by then. A newer list
 * doesn't make the ones before it wrong: samples that were taken with them may still be on their
 * way, many where we are short of CPU time. */
bool process_list_is_stale(const struct process *process, uint32_t number, uint64_t time_ns);

/* A mapping and its source. */
struct mapping_event {
    uint64_t start, length, offset;
    uint64_t device, inode; /* 0 when not known */
    const char *path;
    uint64_t time_ns;
};

/* New executable memory, in place of what was there. */
void process_map(struct processes *processes, struct process *process,
                 const struct mapping_event *event);

struct mapping *process_find(const struct process *process, uint64_t address);

/* Mappings of a `struct process` for the walker: an unwind_find_fn. */
bool process_place(void *process, uint64_t address, struct unwind_place *ret_place);
