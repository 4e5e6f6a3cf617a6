/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What BPF programs and user space share: the tables that user space writes and walks read, and the
 * events that come back. Plain C types, no pointers.
 *
 * Frames of user code travel as {segment, offset in its file}, which needs no process to be
 * understood and makes equal stacks of different processes equal; code of no file travels as its
 * address and belongs to the sample's process.
 */
#pragma once

#include <stddef.h>

#include "bpf/runtimes/context.h"
#include "bpf/runtimes/runtime.h"
#include "elf/unwind_rule.h"

/* ---- frames ---- */

#define BPF_FRAME_RAW (1ull << 63) /* an address of the process: code of no file */
#define BPF_FRAME_SEGMENT_SHIFT 40 /* files of up to 1 TiB */
#define BPF_FRAME_OFFSET_MASK ((1ull << BPF_FRAME_SEGMENT_SHIFT) - 1)

#define BPF_FRAMES_MAX 1024       /* callers in one user stack */
#define BPF_KERNEL_FRAMES_MAX 127 /* the kernel's own limit unless raised */

/* ---- tables: each is one value of a map that user space has mapped ---- */

/* Segments: what is mapped from one place of one file. Number 0 is code of no file. */
#define BPF_SEGMENTS_MAX 16384
enum bpf_segment_state {
    BPF_SEGMENT_EMPTY = 0, /* its rows are not there: the walk can't go on */
    BPF_SEGMENT_ROWS = 1,
    BPF_SEGMENT_NO_ROWS = 2, /* it has none: frame pointers are all there is */
};

/* Where a segment's rows are. */
struct bpf_rows {
    unsigned int state;
    unsigned int first_page; /* file address >> UNWIND_PAGE_SHIFT */
    unsigned int page_count;
    unsigned int directory; /* where its page_count entries in the directory begin */
};

/* Executable mappings of processes; each process has a list of its own, sorted by start. One is a
 * line of the cache, and has all that is needed of its segment. */
#define BPF_MAPPINGS_MAX 65536
struct bpf_mapping {
    unsigned long long start, end;
    unsigned long long bias;   /* address - file address */
    unsigned long long offset; /* address - offset in the file */
    unsigned int segment;
    unsigned int list; /* which list it belongs to: tells a walk that it was written over */
    struct bpf_rows rows;
    unsigned long long unused;
};

/*
 * The directory: for each page of code where in the pool its rows are, in groups of 8 rows: the
 * first group, and how many. Without any, the first says whether the page has no rows at all or
 * they are not in the pool. The last group is filled up with rows behind the page's end.
 *
 * User space clears the entries of rows before it writes over them, and walks look at an entry
 * again after they have read its rows.
 */
#define BPF_DIRECTORY_MAX (1u << 19) /* 2 GiB of code */
#define BPF_GROUP_ROWS 8
#define BPF_GROUPS_SHIFT 10
#define BPF_GROUPS_MASK ((1u << BPF_GROUPS_SHIFT) - 1)
#define BPF_PAGE_NOT_LOADED (1u << BPF_GROUPS_SHIFT)
#define BPF_ROW_BEHIND 0xffff /* an offset that no address has */

/* The pool: slots of a fixed size, each with the rows of pages that follow each other; a page's are
 * in one slot. For each slot when it was last read: time >> BPF_USED_SHIFT. */
#define BPF_SLOT_SHIFT 12
#define BPF_SLOT_ROWS (1u << BPF_SLOT_SHIFT)
#define BPF_SLOTS_MAX 8192 /* 128 MiB */
#define BPF_USED_SHIFT 27  /* 0.13 s */

#define BPF_RULES_MAX 16384

/* Steps of walks that were taken before, by list of mappings and return address: see walk.bpf.h.
 * Those of 2^BPF_STEPS_CODE_SHIFT bytes of code are in one page of memory. */
#define BPF_STEPS_PAGE 256
#define BPF_STEPS_PAGES_SHIFT 6
#define BPF_STEPS_MAX (BPF_STEPS_PAGE << BPF_STEPS_PAGES_SHIFT)
#define BPF_STEPS_CODE_SHIFT 14

/* Hashes of stacks that user space knows, each at the place that its bits give: one that is written
 * over is sent again. */
#define BPF_KNOWN_SHIFT 16
#define BPF_KNOWN_MAX (1u << BPF_KNOWN_SHIFT)

/* By pid, in a hash map. */
#define BPF_PROCESSES_MAX 16384
struct bpf_process {
    unsigned int first; /* of its list of mappings */
    unsigned int count;
    unsigned int list;
    unsigned int hint;          /* the mapping that the last walk began in; written by walks */
    unsigned long long started; /* when the process was, by the kernel's clock, and how many
                                   programs were executed: tells it from another process with its
                                   pid, and from what it runs later; 0: not known */
    unsigned int runtime;       /* its interpreter: see runtime.h */
    unsigned int context;       /* where its threads say what they work on: see context.h */
};

/* Processes that are sampled where not all are, by pid: what they start becomes one of them. */
#define BPF_TARGETS_MAX 65536
enum bpf_target { BPF_TARGET_WAITS = 1 /* for its next exec */, BPF_TARGET_SAMPLED = 2 };

/* Cgroups that have started processes or threads lately, by id. */
#define BPF_CGROUPS_MAX 1024
struct bpf_cgroup {
    unsigned long long forks; /* on this CPU, since user space last looked */
    unsigned int pid;         /* of the last that started one */
    unsigned int left_alone;  /* they are too many: children don't get their parents' lists */
};

/* ---- events, through the ring buffer ---- */

enum bpf_event_kind {
    BPF_EVENT_SAMPLE = 1, /* of a collector, with its stacks */
    BPF_EVENT_STACK = 2,
    BPF_EVENT_COPY = 3,       /* a sample with its stack as it is */
    BPF_EVENT_NOTE = 4,       /* of a collector, without stacks */
    BPF_EVENT_PART = 5,       /* of a stack that is longer than a copy: the copy follows */
    BPF_EVENT_ATTRIBUTES = 6, /* of the context of a thread: see context.h */
    BPF_EVENT_CODE = 16,      /* of an interpreter: see runtime.h */
};

/* Sender of an event: one for each directory of src/capture/ that has a struct collector_kind. */
enum bpf_collector {
    BPF_COLLECTOR_CPU, /* ticks of the CPU clock: the sampler itself */
    BPF_COLLECTOR_WALL,
    BPF_COLLECTOR_HEAP,
    BPF_COLLECTOR_EVENTS,
    BPF_COLLECTOR_FAULTS,
    BPF_COLLECTORS,
    BPF_COLLECTOR_NONE = 255, /* it has no programs in the kernel */
};

enum {
    BPF_SAMPLE_USER = 1,        /* it has a user stack */
    BPF_SAMPLE_KERNEL = 2,      /* it has a kernel stack */
    BPF_SAMPLE_SYSTEM_CALL = 4, /* the user's ip is behind a system call */
    BPF_SAMPLE_CHECK = 8,       /* a copy of a sample that was walked, to compare */
    BPF_SAMPLE_EXEC = 16,    /* with BPF_SAMPLE_SYSTEM_CALL: the ip may be a new program's first */
    BPF_SAMPLE_CONTEXT = 32, /* it has a context: without, the event ends before it */
};

/* A chain of callers without its innermost frame: sent once, known by its hash from then on. */
struct bpf_stack_event {
    unsigned int kind;
    unsigned short count;
    unsigned short end; /* enum unwind_end */
    unsigned long long hash;
    /* The frames follow, 8 bytes each, innermost first; plain addresses in a kernel stack. */
};

/* The thread's context. */
struct bpf_sample_context {
    unsigned char trace_id[16]; /* zeros: it is in no span */
    unsigned char span_id[8];
    unsigned long long attributes; /* a hash; 0: none */
};

#define BPF_DETAIL_WORDS 3
struct bpf_sample_event {
    unsigned int kind;
    unsigned short cpu;
    unsigned short flags;
    unsigned long long time_ns; /* CLOCK_MONOTONIC */
    unsigned int pid, tid;
    unsigned int list; /* of mappings that it was walked by */
    unsigned int end;  /* enum unwind_end */
    char comm[16];
    unsigned long long user_leaf;    /* of a copy: the address that the walk could not get beyond */
    unsigned long long user_callers; /* a hash; 0: no callers */
    unsigned long long kernel_leaf, kernel_callers;
    unsigned short collector; /* enum bpf_collector */
    unsigned short unused;
    unsigned int second_pid; /* whose the second stack is */
    /* A second stack of user code, of a thread that has to do with this one; 0: there is none. */
    unsigned long long second_leaf, second_callers;
    unsigned long long value;                    /* that it stands for: ns, bytes */
    unsigned long long id;                       /* of what: a lock's or an allocation's address */
    unsigned long long detail[BPF_DETAIL_WORDS]; /* the collector's own: see its header */
    struct bpf_sample_context context;           /* with BPF_SAMPLE_CONTEXT */
};
#define BPF_SAMPLE_BYTES offsetof(struct bpf_sample_event, context) /* of one without */

/* The beginning of any other event of a collector. */
struct bpf_note {
    unsigned int kind; /* BPF_EVENT_NOTE */
    unsigned short collector;
    unsigned short bytes; /* with this header */
};

/*
 * A sample that could not be walked in the kernel, with what user space needs to do it. A stack
 * that doesn't fit comes in parts, from the stack pointer on: each is an event of this form with
 * BPF_EVENT_PART, and the last one is the copy. Those of one sample have the same CPU, thread,
 * collector and time.
 */
#define BPF_COPY_PAGES 8
#define BPF_COPY_PARTS_MAX 8 /* 256 KiB */
#define BPF_COPY_BYTES (BPF_COPY_PAGES * 4096)
#define BPF_COPY_BELOW 128 /* the red zone, which no signal's handler touches */
struct bpf_copy_event {
    struct bpf_sample_event sample; /* with BPF_EVENT_COPY or BPF_EVENT_PART */
    unsigned long long registers[UNWIND_REGISTERS];
    unsigned long long stack_address;
    unsigned long long started; /* as in struct bpf_process */
    unsigned int stack_bytes;
    unsigned int unused;
    /* The stack follows: from BPF_COPY_BELOW bytes below the stack pointer on, where that memory is
     * there. */
};

/* ---- counters, of each CPU ---- */

enum bpf_counter {
    BPF_COUNT_SAMPLES,         /* the sampler ran for a task that is no idle one */
    BPF_COUNT_RING_FULL,       /* samples that found no room in the ring buffer */
    BPF_COUNT_STACK_LOST,      /* samples whose new stack found no room in it */
    BPF_COUNT_COPIES,          /* samples sent as copies */
    BPF_COUNT_COPY_REFUSED,    /* beyond the budget for copies: their stack is cut */
    BPF_COUNT_LEFT_OUT,        /* samples of processes that are none of the targets, for now */
    BPF_COUNT_NESTED,          /* samples that found no free scratch memory: see emit.bpf.h */
    BPF_COUNT_CONTEXTS,        /* samples with the context of a thread or goroutine */
    BPF_COUNT_CONTEXT_TORN,    /* that was being written: it is dropped */
    BPF_COUNT_CONTEXT_UNREAD,  /* whose memory isn't there, or isn't a record */
    BPF_COUNT_ATTRIBUTES_LOST, /* whose attributes found no room in the ring buffer, or are too long
                                */
    BPF_COUNTERS,
};

/* Set by user space before the programs are loaded: constants for the verifier. */
struct bpf_settings {
    unsigned int row_mask;  /* rows in the pool - 1: a power of two less one */
    unsigned int watermark; /* bytes in the ring buffer that are worth a wake-up */
    unsigned int crowded;   /* bytes in it that leave no room for copies */
    unsigned int kernel, user;
    unsigned int filter;      /* only processes among the targets */
    unsigned int check;       /* whole walks are sent as copies too, for user space to compare */
    unsigned int copies;      /* samples that may be sent as copies in each BPF_COPY_TURN_NS */
    unsigned int parts;       /* of one copy, at most */
    unsigned int interpreter; /* native frames between an interpreter's are wanted */
    unsigned int plain_loops; /* as on kernels without the helper bpf_loop */
};

/* The budget for copies. Programs fill it up themselves: user space may be short of CPU time just
 * when it is needed. */
#define BPF_COPY_TURN_NS 250000000
struct bpf_copy_budget {
    unsigned long long turn_ns; /* when it was last filled up */
    long long left;
};

/* Scratch memory of each CPU: as many as programs can interrupt each other, see emit.bpf.h. */
#define BPF_SCRATCHES 4

/* The beginning of each, which user space reads. */
#define BPF_SCRATCH_BYTES 65536
struct bpf_scratch_head {
    unsigned long long counters[BPF_COUNTERS];
    unsigned int taken; /* a program works in it */
    unsigned int unused;
};
