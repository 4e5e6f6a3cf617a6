/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf.data, in parts: file.c reads headers and features, stream.c takes records from the file,
 * unpacks and orders them, decode.c takes samples apart, processes.c follows processes and their
 * mappings, samples.c adds to the profile, branches.c what branch stacks say. See
 * docs/formats/perf-data.md.
 */
#pragma once

#include <linux/perf_event.h>
#include <string.h>

#include "base/idtable.h"
#include "format/format.h"
#include "format/perfdata/walker.h"

#define PERF_EVENTS_MAX 1024
#define PERF_IDS_MAX (1u << 22)
#define PERF_FILES_MAX (1u << 20)
#define PERF_PROCESSES_MAX (1u << 20)
#define PERF_THREADS_MAX (1u << 22)
#define PERF_MAPPINGS_MAX 16384          /* executable ones of one process */
#define PERF_ALL_MAPPINGS_MAX (1u << 22) /* of all */
#define PERF_QUEUE_BYTES (256u << 20)    /* records that wait for earlier ones */

/* Not in the headers of all kernels that this is built on. */
#define PERF_DATA_BRANCH_COUNTERS (1ull << 19)
#define PERF_DATA_FORMAT_LOST (1ull << 4)

struct perf_event_kind {
    struct perf_event_attr attr;
    uint32_t name; /* string of the profile; 0: by type and config */
    bool has_type; /* `type` below is set */
    bool clock;    /* counts nanoseconds of CPU */
    unsigned type; /* of the profile */
};

struct perf_id {
    uint64_t id;
    uint32_t event;
};

/* A binary that something was mapped from. */
struct perf_file {
    char *path;
    char build_id[41];
    bool kernel, generated;
};

struct perf_mapping {
    uint64_t start, end, offset, inode;
    uint32_t file;
    uint32_t interned; /* mapping of the profile; 0: not yet */
};

/* Shared by processes that were forked, until one of them maps something. */
struct perf_mapping_list {
    uint32_t users;
    size_t count, capacity;
    struct perf_mapping *items; /* by start, disjoint */
};

struct perf_process {
    uint32_t pid;
    uint32_t generated;                 /* the profile's mapping "[jit PID]"; 0: not yet */
    struct perf_mapping_list *mappings; /* NULL: none */
};

struct perf_thread {
    uint32_t tid;
    uint32_t comm; /* string of the profile */
};

/* Facts about the recording as a whole. */
struct perf_build_id {
    char *path;
    char build_id[41];
};

/* A function of the kernel that was announced: BPF programs, trampolines. */
struct perf_kernel_symbol {
    uint64_t start, end;
    uint32_t name;   /* string */
    uint32_t serial; /* the last one wins */
};

struct perf_sample {
    uint64_t ip, time, period, id;
    uint32_t pid, tid;
    bool has_ip, has_tid, has_time, has_period;
    const uint8_t *chain; /* words, for perf_load_u64() */
    uint64_t chain_count;
    uint64_t registers_abi;
    const uint8_t *registers; /* as many words as the mask has bits */
    const uint8_t *stack;
    uint64_t stack_bytes;
    const uint8_t *branches; /* each `branch_bytes` long; the latest first */
    uint64_t branch_count, branch_bytes;
};

/* A branch, or code that ran straight on: places in files. */
struct perf_pair {
    uint64_t from, to;
    uint32_t from_mapping, to_mapping; /* of the profile */
    uint64_t count;
};

struct perf_pairs {
    struct perf_pair *items;
    size_t count, capacity;
    struct id_table index;
};

/* Sample types, of unit "count", that branch stacks make. */
#define PERF_EXECUTIONS "executions"
#define PERF_BRANCHES "taken_branches"

struct perf_entry {
    uint64_t time;
    size_t offset;
    size_t order;
};

struct perf_data {
    struct source *source;
    struct profile *profile;
    struct error *error;

    uint64_t seed; /* of hashes of what the file holds */
    struct perf_event_kind *events;
    size_t event_count, event_capacity;
    struct perf_id *ids;
    size_t id_count, id_capacity;
    struct id_table id_index;

    struct perf_build_id *build_ids;
    size_t build_id_count, build_id_capacity;
    struct id_table build_id_index; /* by path */
    struct perf_file *files;
    size_t file_count, file_capacity;
    struct id_table file_index;
    struct perf_process *processes;
    size_t process_count, process_capacity;
    struct id_table process_index;
    struct perf_thread *threads;
    size_t thread_count, thread_capacity;
    struct id_table thread_index;
    size_t mapping_count; /* of all lists */
    struct perf_mapping_list kernel;
    uint32_t kernel_mapping; /* of the profile */
    uint64_t kernel_text;    /* where the kernel began; 0: not known */
    struct perf_kernel_symbol *kernel_symbols;
    size_t kernel_symbol_count, kernel_symbol_capacity;
    bool kernel_symbols_sorted;

    /* stream.c */
    uint64_t data_end;      /* offset behind the last record; UINT64_MAX for pipes */
    void *zstd;             /* ZSTD_DStream */
    struct buffer unpacked; /* of compressed records: what is not taken yet */
    uint64_t unpacked_total;
    struct buffer queue;
    struct perf_entry *entries;
    size_t entry_count, entry_capacity, entry_order;
    uint64_t round_time, round_limit; /* the newest record of this round, and of the one before */

    /* features */
    bool x86_64, has_architecture;
    bool has_clock;
    int64_t wall_offset_ns; /* from the recording's clock to the epoch */
    char hostname[65], release[65];

    /* samples.c */
    unsigned samples_type;
    bool chose_default;
    uint64_t clock; /* 1 + the config of the event that is "cpu"; 0: none yet */
    void *walker;
    uint32_t *frames;
    size_t frame_capacity;
    struct perf_walk_frame walked[PERF_WALK_FRAMES_MAX];
    uint64_t first_time, last_time, sample_count;

    /* what was left out */
    struct perf_pairs branches, ranges; /* branches.c */
    uint64_t lost_branches;
    bool unfinished; /* a file whose size perf did not fill in */
    uint64_t cut, lost, short_records, guest_samples, refused, unwalked, unordered;
};

static inline uint64_t perf_load_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint32_t perf_load_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

/* file.c */
int perf_add_attr(struct perf_data *data, const uint8_t *bytes, size_t length, uint32_t *ret_event);
int perf_add_id(struct perf_data *data, uint64_t id, uint32_t event);
void perf_add_build_id(struct perf_data *data, const uint8_t *record, size_t length);
int perf_take_feature(struct perf_data *data, unsigned feature, const uint8_t *bytes,
                      size_t length);

/* stream.c */
int perf_read_records(struct perf_data *data);
void perf_stream_release(struct perf_data *data);

/* decode.c */
uint32_t perf_find_event(const struct perf_data *data, uint64_t id);
/* The event of a record, and its time where it has one. */
uint32_t perf_record_event(const struct perf_data *data, const struct perf_event_header *header,
                           uint64_t *ret_time);
bool perf_decode_sample(const struct perf_data *data, const struct perf_event_kind *event,
                        const struct perf_event_header *header, struct perf_sample *ret_sample);

/* processes.c */
void perf_take_process_record(struct perf_data *data, const struct perf_event_header *header);
struct perf_process *perf_process(struct perf_data *data, uint32_t pid);
struct perf_mapping *perf_process_find(const struct perf_process *process, uint64_t address);
struct perf_mapping *perf_list_find(const struct perf_mapping_list *list, uint64_t address);
uint32_t perf_thread_comm(struct perf_data *data, uint32_t pid, uint32_t tid);
void perf_processes_release(struct perf_data *data);

/* samples.c */
int perf_samples_begin(struct perf_data *data);
int perf_take_sample(struct perf_data *data, const struct perf_event_header *header);
void perf_samples_end(struct perf_data *data);
uint32_t perf_file_mapping(struct perf_data *data, struct perf_mapping *mapping);

/* branches.c */
bool perf_wants_branches(const struct perf_data *data);
void perf_take_branches(struct perf_data *data, const struct perf_sample *sample);
/* Adds samples of all that was taken. */
int perf_add_branches(struct perf_data *data);
void perf_branches_release(struct perf_data *data);
