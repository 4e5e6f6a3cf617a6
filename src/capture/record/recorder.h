/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to a profile: processes are followed, copied stacks are walked by their binaries'
 * unwind rows as they come, and everything is added up. Frames are addresses; naming is the
 * caller's (symbol/naming/naming.h).
 */
#pragma once

#include "capture/perf/perf_event.h"
#include "capture/record/processes.h"
#include "capture/record/sample_context.h"
#include "capture/record/segments.h"
#include "elf/unwind/unwind.h"
#include "profile/profile.h"

/* Of one part of a stack: what the kernel walks, methods inlined into the innermost, and marks. */
#define RECORDER_FRAMES_MAX (1032 + HOTSPOT_INLINED_MAX)

struct capture_process;
typedef uint32_t (*recorder_label_fn)(void *context, const struct capture_process *process,
                                      struct profile *profile);

/* Told of an interpreter that was found in a process. */
typedef void (*recorder_runtime_fn)(void *context, uint32_t pid,
                                    const struct interpreter *interpreter);

struct recorder {
    struct profile *profile; /* NULL: samples are dropped */
    uint32_t epoch;          /* counts profiles: what was interned in another is worth nothing */
    struct modules modules;
    struct processes processes;
    struct segments segments;
    struct interpreters interpreters;
    struct contexts contexts;
    bool interpreter_frames; /* native frames of interpreters are kept */
    bool checking;           /* walks show native frames only, all of them: to compare */
    int64_t epoch_ns;        /* of CLOCK_MONOTONIC's zero */
    int64_t period_ns, old_period_ns;
    uint64_t changed_ns; /* when the old one ended; 0: there was none */
    bool period_set;     /* the kernel goes on saying the first one, so this is what counts, but for
                            events that threads have inherited: these say what they do */
    bool no_cpu;         /* CPU time is not asked for: its types are left out */
    unsigned samples_type, cpu_type;
    const struct perf_events *events; /* that are sampled, too; NULL: none */
    unsigned event_types[PERF_EVENTS_MAX];
    uint32_t kernel_mapping;
    bool root_by_process;    /* stacks begin with a frame that is called as the process is */
    bool only_known;         /* events of processes that nobody asked for are left alone */
    recorder_label_fn label; /* NULL: samples are labelled by comm, pid and tid */
    void *label_context;
    /* NULL: copied stacks come without the frames of Python and JavaScript */
    recorder_runtime_fn read_runtime;
    void *runtime_context;
    bool thread_labels; /* beside those of the process */
    uint64_t numbers;   /* of processes that were labelled */

    uint64_t samples;
    int64_t cpu_ns; /* that they stand for */
    uint64_t sampled_processes;
    uint64_t unwanted;               /* samples that nobody wanted to label */
    uint64_t lost_events;            /* that the kernel had no room for */
    uint64_t ends[UNWIND_END_KINDS]; /* how walks of user stacks ended */
    uint64_t walks;
    uint64_t unread;        /* frames of interpreters whose code object could not be read */
    uint32_t unplaced_mark; /* the frame RECORDER_UNPLACED in this profile; 0: it has none */
    uint64_t unplaced;      /* samples with such a frame */
    uint64_t from_ns;       /* samples before it don't count, */
    uint64_t until_ns;      /* nor those after it; 0: there is no end */
};

void recorder_init(struct recorder *recorder, unsigned frequency_hz);
void recorder_release(struct recorder *recorder);

/* Samples that were taken after `now_ns` stand for so much CPU time, where they don't say so
 * themselves. All that were taken before the last change must have been read. */
void recorder_set_rate(struct recorder *recorder, unsigned frequency_hz, uint64_t now_ns);

/* Samples go there from now on; samples/count and cpu/nanoseconds are added to it. */
void recorder_into(struct recorder *recorder, struct profile *profile);

/* A perf_record_fn: samples with copied stacks, and what happens to processes. */
void recorder_take(void *recorder, const struct perf_record *record);

/* Everything about binaries is learned anew: there were too many of them. */
void recorder_forget_modules(struct recorder *recorder);

/* ---- for other sources of samples ---- */

/* Whether a sample of this moment counts, and the CPU time that it stands for. */
bool recorder_wants(const struct recorder *recorder, uint64_t time_ns);
int64_t recorder_weight_ns(const struct recorder *recorder, uint64_t time_ns);
/* The process of a sample, which is looked up where it is not known. NULL beyond the limits. */
struct process *recorder_process(struct recorder *recorder, uint32_t pid, bool has_user);

/* Frames of the profile: of a file's segment, of an address of a process (NULL: it is not known),
 * of the kernel, and a word. An address where nothing is known to be mapped is RECORDER_UNPLACED.
 */
#define RECORDER_UNPLACED "[unknown mapping]"
uint32_t recorder_segment_frame(struct recorder *recorder, uint32_t segment, uint64_t offset);
uint32_t recorder_address_frame(struct recorder *recorder, const struct process *process,
                                uint64_t address);
uint32_t recorder_kernel_frame(struct recorder *recorder, uint64_t address);
uint32_t recorder_mark(struct recorder *recorder, const char *word);
#define RECORDER_NO_FRAME UINT32_MAX
#define RECORDER_UNREAD "[python frames not read]"
#define RECORDER_JAVA_UNREAD "[java frame not read]"
#define RECORDER_SCRIPT_UNREAD "[javascript frame not read]"
#define RECORDER_PHP_UNREAD "[php frame not read]"
#define RECORDER_RUBY_UNREAD "[ruby frame not read]"
/* Of a word of a runtime (BPF_FRAME_PYTHON), outermost first: none where it stands for none, up to
 * HOTSPOT_INLINED_MAX where methods were inlined. */
size_t recorder_runtime_frames(struct recorder *recorder, uint64_t word, uint32_t *ret_frames);
/* A thread ran at `address` at that time, so there is code: if we don't know it, events were lost
 * or come late, and /proc is asked, unless it was after that time. */
void recorder_repair(struct recorder *recorder, struct process *process, uint64_t address,
                     uint64_t time_ns);
/* The word for a walk that did not reach the end; NULL when it did. */
const char *recorder_end_mark(enum unwind_end end);

/* Walks a copied stack with the process that `find` knows; frames outermost first. Returns how many
 * of at most RECORDER_FRAMES_MAX. */
size_t recorder_walk(struct recorder *recorder, struct unwind_input *input, struct process *process,
                     uint32_t *ret_frames);

struct recorder_sample {
    uint32_t pid, tid;
    const char *comm;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    int64_t cpu_ns;
    const uint32_t *frames; /* outermost first */
    size_t frame_count;
    const uint32_t *second_frames; /* of another thread that has to do with it: likewise */
    size_t second_count;
    const struct sample_context *context; /* NULL: it has none */
};
void recorder_add(struct recorder *recorder, const struct recorder_sample *sample);
/* A sample of events->list[event], which stands for so many. Returns its row, or RECORDER_NO_ROW.
 */
#define RECORDER_NO_ROW SIZE_MAX
size_t recorder_add_event(struct recorder *recorder, const struct recorder_sample *sample,
                          size_t event, uint64_t count);
/* The label set of such a sample, or CAPTURE_UNWANTED. */
uint32_t recorder_labels(struct recorder *recorder, const struct recorder_sample *sample);
