// SPDX-License-Identifier: Apache-2.0
// Loading and draining the BPF sampler: see bpf_sampler.h.

#include "capture/bpf/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "capture/bpf/object.h"
#include "capture/bpf/sampler_parts.h"

#define POOL_SLOTS_MIN 16
/* Half a second of a busy machine of 64 CPUs at 99 Hz fits, and a hundred copied stacks. */
#define RING_BYTES_MIN (4u << 20)
#define RING_BYTES_PER_CPU (64u << 10)
#define WATERMARK_PART 8
#define DEEP_RING_TIMES 4

/* A table that user space has mapped. */
struct table {
    void *memory;
    size_t bytes;
};

enum {
    MAPPINGS,
    DIRECTORY,
    SLOTS,
    RULES,
    POOL,
    STACKS,
    FORKS,
    SCRATCHES,
    NARROW,
    DEADLINE,
    RUNTIMES,
    CODES,
    CONTEXTS,
    ATTRIBUTES,
    TABLES
};
static const char *const table_names[TABLES] = {
    [MAPPINGS] = "mappings",   [DIRECTORY] = "directory",
    [SLOTS] = "slots_used",    [RULES] = "rules",
    [POOL] = "pool",           [STACKS] = "known_stacks",
    [FORKS] = "fork_full",     [SCRATCHES] = "scratches",
    [NARROW] = "targets_only", [DEADLINE] = "deadline",
    [RUNTIMES] = "runtimes",   [CODES] = "known_codes",
    [CONTEXTS] = "contexts",   [ATTRIBUTES] = "known_attributes",
};

/* Events of processes. */
enum { LINK_FORK, LINK_EXEC, LINK_FREE, LINKS };

struct bpf_sampler {
    struct bpf_object *object;
    struct bpf_program *program;
    struct bpf_link *links[LINKS];
    struct ring_buffer *ring;
    struct table tables[TABLES];
    struct bpf_settings settings;
    uint32_t slot_count;
    int processes; /* descriptor of the map */
    int cpu_count;
    int *events;
    size_t event_count, event_capacity;
    bool cycles;
    int64_t read_until_ns;
    int measuring; /* while it is open, the kernel measures; -1: it doesn't for us */
    bpf_event_fn callback;
    void *context;
};

static int print_debug(enum libbpf_print_level level, const char *format, va_list arguments)
{
    char text[512];
    if (level == LIBBPF_DEBUG)
        return 0;
    vsnprintf(text, sizeof(text), format, arguments);
    log_debug("libbpf: %s", text);
    return 0;
}

/* ---- loading ---- */

bool bpf_sampler_without(const char *feature)
{
    const char *list = getenv("ASSAY_BPF_WITHOUT");
    size_t length = strlen(feature);
    for (const char *at = list; at && (at = strstr(at, feature)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

static uint32_t slots_of(uint64_t pool_bytes)
{
    uint64_t wanted = (pool_bytes ? pool_bytes : BPF_POOL_BYTES_DEFAULT) /
                      (BPF_SLOT_ROWS * sizeof(struct unwind_row));
    uint32_t slots = POOL_SLOTS_MIN;
    while (slots * 2 <= wanted && slots < BPF_SLOTS_MAX)
        slots *= 2;
    return slots;
}

static uint32_t ring_bytes_of(int cpu_count)
{
    uint32_t bytes = RING_BYTES_MIN;
    while (bytes < (uint32_t)cpu_count * RING_BYTES_PER_CPU)
        bytes *= 2;
    return bytes;
}

/* Sizes that depend on the machine and on what was asked for. */
static int set_sizes(struct bpf_sampler *sampler, const struct bpf_sampler_options *options)
{
    struct bpf_object *object = sampler->object;
    struct bpf_map *pool = bpf_object__find_map_by_name(object, "pool");
    struct bpf_map *ring = bpf_object__find_map_by_name(object, "events");
    struct bpf_map *scratches = bpf_object__find_map_by_name(object, "scratches");
    struct bpf_map *constants = bpf_object__find_map_by_name(object, ".rodata");
    if (!pool || !ring || !scratches || !constants)
        return -EINVAL;
    uint32_t ring_bytes =
        ring_bytes_of(sampler->cpu_count) * (options->deep_buffers ? DEEP_RING_TIMES : 1);
    sampler->settings = (struct bpf_settings){
        .row_mask = sampler->slot_count * BPF_SLOT_ROWS - 1,
        .watermark = ring_bytes / WATERMARK_PART,
        .crowded = ring_bytes / 2,
        .kernel = options->kernel,
        .user = options->user,
        .filter = options->pid_count > 0,
        .check = options->check,
        .interpreter = options->interpreter_frames || options->check,
        .copies = options->copies,
        .parts = options->deep_buffers ? BPF_COPY_PARTS_MAX : 1,
        .plain_loops = bpf_sampler_without("bpf_loop"),
    };
    uint32_t pool_bytes = sampler->slot_count * BPF_SLOT_ROWS * (uint32_t)sizeof(struct unwind_row);
    int r = bpf_map__set_initial_value(constants, &sampler->settings, sizeof(sampler->settings));
    if (!r)
        r = bpf_map__set_value_size(pool, pool_bytes);
    if (!r)
        r = bpf_map__set_max_entries(ring, ring_bytes);
    if (!r)
        r = bpf_map__set_max_entries(scratches, (uint32_t)sampler->cpu_count * BPF_SCRATCHES);
    return r;
}

static int map_tables(struct bpf_sampler *sampler)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < TABLES; i++) {
        struct bpf_map *map = bpf_object__find_map_by_name(sampler->object, table_names[i]);
        if (!map)
            return -EINVAL;
        size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
        bytes = (bytes + page - 1) / page * page;
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
        if (memory == MAP_FAILED)
            return -errno;
        madvise(memory, bytes, MADV_DONTFORK); /* not for children that read hostile files */
        sampler->tables[i] = (struct table){.memory = memory, .bytes = bytes};
    }
    return 0;
}

/* A sample without a context ends before it. */
static size_t sample_bytes(const struct bpf_sample_event *sample, size_t length)
{
    bool all = length >= BPF_SAMPLE_BYTES && sample->flags & BPF_SAMPLE_CONTEXT;
    return all ? sizeof(*sample) : BPF_SAMPLE_BYTES;
}

static bool is_whole(const void *data, size_t length)
{
    uint32_t kind;
    memcpy(&kind, data, sizeof(kind));
    const struct bpf_stack_event *stack = data;
    const struct bpf_copy_event *copy = data;
    const struct bpf_note *note = data;
    const struct bpf_attributes_event *attributes = data;
    return kind == BPF_EVENT_SAMPLE  ? length >= sample_bytes(data, length)
           : kind == BPF_EVENT_NOTE  ? length >= note->bytes
           : kind == BPF_EVENT_CODE  ? length >= sizeof(struct bpf_code_event)
           : kind == BPF_EVENT_STACK ? length >= sizeof(*stack) + stack->count * 8u
           : kind == BPF_EVENT_ATTRIBUTES
               ? length >= sizeof(*attributes) && length - sizeof(*attributes) >= attributes->bytes
           : kind == BPF_EVENT_COPY || kind == BPF_EVENT_PART
               ? length >= sizeof(*copy) && length - sizeof(*copy) >= copy->stack_bytes
               : false;
}

static int take_event(void *context, void *data, size_t length)
{
    struct bpf_sampler *sampler = context;
    if (length < sizeof(struct bpf_stack_event))
        return 0;
    bool whole = is_whole(data, length);
    if (whole && sampler->callback)
        sampler->callback(sampler->context, data);
    /* Events may come faster than they are read. */
    return monotonic_ns() > sampler->read_until_ns ? -EAGAIN : 0;
}

static int explain_load(int code, struct error *error)
{
    if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
        return error_set(error, -ENOTSUP,
                         "This kernel has no BTF (/sys/kernel/btf/vmlinux), which BPF programs "
                         "need; use a kernel built with CONFIG_DEBUG_INFO_BTF.");
    if (code == -EPERM || code == -EACCES)
        return error_set(error, code,
                         "Permission denied: cannot load BPF programs without root, or CAP_BPF and "
                         "CAP_PERFMON.");
    if (code == -ENOSYS)
        return error_set(error, code, "This kernel doesn't support BPF.");
    if (code == -ENOMEM)
        return error_set(error, code, "Not enough memory for the maps of the BPF programs.");
    return error_set_errno(error, code, "Failed to load the BPF programs");
}

static int load_object(struct bpf_sampler *sampler, const struct bpf_sampler_options *options)
{
    libbpf_set_print(print_debug);
    LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "assay");
    sampler->object =
        bpf_object__open_mem(bpf_sampler_object, bpf_sampler_object_length, &open_options);
    if (!sampler->object)
        return -errno;
    int r = set_sizes(sampler, options);
    if (!r)
        r = bpf_object__load(sampler->object);
    if (!r)
        r = map_tables(sampler);
    if (r < 0)
        return r;
    sampler->program = bpf_object__find_program_by_name(sampler->object, "assay_sample");
    sampler->processes = bpf_object__find_map_fd_by_name(sampler->object, "processes");
    int events = bpf_object__find_map_fd_by_name(sampler->object, "events");
    if (!sampler->program || sampler->processes < 0 || events < 0)
        return -EINVAL;
    sampler->ring = ring_buffer__new(events, take_event, sampler, NULL);
    return sampler->ring ? 0 : -errno;
}

static int set_targets(struct bpf_sampler *sampler, const struct bpf_sampler_options *options)
{
    int targets = bpf_object__find_map_fd_by_name(sampler->object, "targets");
    uint32_t state = options->enable_on_exec ? BPF_TARGET_WAITS : BPF_TARGET_SAMPLED;
    for (size_t i = 0; i < options->pid_count; i++) {
        uint32_t pid = (uint32_t)options->pids[i];
        if (bpf_map_update_elem(targets, &pid, &state, BPF_ANY) < 0)
            return -errno;
    }
    return 0;
}

static int attach_one(struct bpf_sampler *sampler, unsigned link)
{
    static const char *const names[LINKS] = {
        [LINK_FORK] = "assay_fork", [LINK_EXEC] = "assay_exec", [LINK_FREE] = "assay_free"};
    struct bpf_program *program = bpf_object__find_program_by_name(sampler->object, names[link]);
    sampler->links[link] = program ? bpf_program__attach(program) : NULL;
    return sampler->links[link] ? 0 : program ? -errno : -EINVAL;
}

static int attach_programs(struct bpf_sampler *sampler)
{
    int r = 0;
    for (unsigned link = 0; !r && link < LINKS; link++)
        r = attach_one(sampler, link);
    return r;
}

int bpf_sampler_follow_ends(struct bpf_sampler *sampler, bool follow)
{
    if (follow && !sampler->links[LINK_FREE])
        return attach_one(sampler, LINK_FREE);
    if (!follow) {
        bpf_link__destroy(sampler->links[LINK_FREE]);
        sampler->links[LINK_FREE] = NULL;
    }
    return 0;
}

/* ---- perf events ---- */

static int open_event(const struct bpf_sampler_options *options, bool cycles, pid_t pid, int cpu,
                      unsigned long flags)
{
    struct perf_event_attr attr = {
        .type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = options->frequency_hz,
        .disabled = 1,
        .exclude_idle = 1,
        .exclude_hv = 1,
        .exclude_kernel = !options->kernel && !options->user,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int add_event(struct bpf_sampler *sampler, const struct bpf_sampler_options *options,
                     pid_t pid, int cpu, unsigned long flags)
{
    int fd = open_event(options, sampler->cycles, pid, cpu, flags);
    if (sampler->cycles && !sampler->event_count &&
        (fd == -ENOENT || fd == -EOPNOTSUPP || fd == -EINVAL || fd == -ENODEV)) {
        sampler->cycles = false; /* as in most virtual machines */
        fd = open_event(options, false, pid, cpu, flags);
    }
    if (fd < 0)
        return fd;
    array_reserve(sampler->events, sampler->event_capacity, sampler->event_count + 1);
    sampler->events[sampler->event_count++] = fd;
    return ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(sampler->program)) < 0 ? -errno : 0;
}

static int open_events(struct bpf_sampler *sampler, const struct bpf_sampler_options *options)
{
    sampler->cycles = true;
    pid_t pid = options->cgroup; /* -1 is everything */
    unsigned long flags = options->cgroup < 0 ? 0 : PERF_FLAG_PID_CGROUP;
    for (int cpu = 0; cpu < sampler->cpu_count; cpu++) {
        int r = add_event(sampler, options, pid, cpu, flags);
        if (r < 0 && (r != -ENODEV || !sampler->event_count)) /* the CPU is offline */
            return r;
    }
    return 0;
}

static int explain_events(int code, const struct bpf_sampler_options *options, struct error *error)
{
    if (code == -EMFILE)
        return error_set(error, code,
                         "Too few file descriptors for an event per CPU: raise `ulimit -n`.");
    bool cgroup = options->cgroup >= 0;
    if (code == -EBADF && cgroup)
        return error_set(error, code, "Not a cgroup directory.");
    if (code == -EINVAL && cgroup)
        return error_set(error, code,
                         "This kernel can't sample the cgroup: perf events require a directory in "
                         "the hierarchy of cgroup 2, or of cgroup 1's perf_event.");
    return error_set_errno(error, code, "Failed to open perf events for the BPF sampler");
}

int bpf_sampler_new(const struct bpf_sampler_options *options, struct bpf_sampler **ret_sampler,
                    struct error *error)
{
    struct bpf_sampler *sampler = memory_zalloc(1, sizeof(*sampler));
    sampler->measuring = -1;
    sampler->slot_count = slots_of(options->pool_bytes);
    sampler->cpu_count = libbpf_num_possible_cpus();
    int r = sampler->cpu_count > 0 ? load_object(sampler, options) : -ENOSYS;
    if (!r)
        r = attach_programs(sampler);
    if (r < 0) {
        bpf_sampler_free(sampler);
        return explain_load(r, error);
    }
    r = set_targets(sampler, options);
    if (!r && options->ticks)
        r = open_events(sampler, options);
    if (r < 0) {
        bpf_sampler_free(sampler);
        return explain_events(r, options, error);
    }
    *ret_sampler = sampler;
    return 0;
}

int bpf_sampler_start(struct bpf_sampler *sampler, struct error *error)
{
    int r = bpf_sampler_pause(sampler, false);
    return r < 0 ? error_set_errno(error, r, "Failed to enable perf events for the BPF sampler")
                 : 0;
}

void bpf_sampler_free(struct bpf_sampler *sampler)
{
    if (!sampler)
        return;
    for (size_t i = 0; i < sampler->event_count; i++)
        close(sampler->events[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(sampler->links); i++)
        bpf_link__destroy(sampler->links[i]);
    ring_buffer__free(sampler->ring);
    for (int i = 0; i < TABLES; i++)
        if (sampler->tables[i].memory)
            munmap(sampler->tables[i].memory, sampler->tables[i].bytes);
    bpf_object__close(sampler->object);
    if (sampler->measuring >= 0)
        close(sampler->measuring);
    free(sampler->events);
    free(sampler);
}

/* ---- use ---- */

struct unwind_tables bpf_sampler_tables(const struct bpf_sampler *sampler)
{
    const struct table *tables = sampler->tables;
    return (struct unwind_tables){
        .mappings = tables[MAPPINGS].memory,
        .directory = tables[DIRECTORY].memory,
        .slots_used = tables[SLOTS].memory,
        .rules = tables[RULES].memory,
        .pool = tables[POOL].memory,
        .slot_count = sampler->slot_count,
    };
}

int bpf_sampler_set_process(struct bpf_sampler *sampler, uint32_t pid,
                            const struct bpf_process *process)
{
    return bpf_map_update_elem(sampler->processes, &pid, process, BPF_ANY) < 0 ? -errno : 0;
}

void bpf_sampler_forget_process(struct bpf_sampler *sampler, uint32_t pid)
{
    bpf_map_delete_elem(sampler->processes, &pid);
}

int bpf_sampler_cgroups(const struct bpf_sampler *sampler)
{
    return bpf_object__find_map_fd_by_name(sampler->object, "cgroups");
}

void bpf_sampler_forget_processes(struct bpf_sampler *sampler)
{
    uint32_t pid;
    while (bpf_map_get_next_key(sampler->processes, NULL, &pid) == 0)
        if (bpf_map_delete_elem(sampler->processes, &pid) < 0 && errno != ENOENT)
            break;
}

void bpf_sampler_forget_stacks(struct bpf_sampler *sampler)
{
    memset(sampler->tables[STACKS].memory, 0, sampler->tables[STACKS].bytes);
    memset(sampler->tables[CODES].memory, 0, sampler->tables[CODES].bytes);
    memset(sampler->tables[ATTRIBUTES].memory, 0, sampler->tables[ATTRIBUTES].bytes);
}

struct bpf_runtime *bpf_sampler_runtimes(const struct bpf_sampler *sampler)
{
    return sampler->tables[RUNTIMES].memory;
}

struct bpf_context *bpf_sampler_contexts(const struct bpf_sampler *sampler)
{
    return sampler->tables[CONTEXTS].memory;
}

int bpf_sampler_set_rate(struct bpf_sampler *sampler, unsigned frequency_hz)
{
    /* The CPU clock has periods only, also when it was opened with a frequency. */
    uint64_t value = sampler->cycles ? frequency_hz : 1000000000u / frequency_hz;
    int r = 0;
    for (size_t i = 0; i < sampler->event_count; i++)
        if (ioctl(sampler->events[i], PERF_EVENT_IOC_PERIOD, &value) < 0)
            r = -errno;
    return r;
}

int bpf_sampler_pause(struct bpf_sampler *sampler, bool pause)
{
    int r = 0;
    for (size_t i = 0; i < sampler->event_count; i++)
        if (ioctl(sampler->events[i], pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0) <
            0)
            r = -errno;
    return r;
}

void bpf_sampler_set_deadline(struct bpf_sampler *sampler, uint64_t until_ns)
{
    uint64_t *deadline = sampler->tables[DEADLINE].memory;
    __atomic_store_n(deadline, until_ns, __ATOMIC_RELAXED);
}

int bpf_sampler_narrow(struct bpf_sampler *sampler, const uint32_t *pids, size_t count)
{
    int targets = bpf_object__find_map_fd_by_name(sampler->object, "targets");
    uint32_t *only = sampler->tables[NARROW].memory, state = BPF_TARGET_SAMPLED, pid;
    __atomic_store_n(only, 0, __ATOMIC_RELAXED);
    while (bpf_map_get_next_key(targets, NULL, &pid) == 0)
        if (bpf_map_delete_elem(targets, &pid) < 0 && errno != ENOENT)
            return -errno;
    for (size_t i = 0; i < count; i++)
        if (bpf_map_update_elem(targets, &pids[i], &state, BPF_ANY) < 0)
            return -errno;
    __atomic_store_n(only, count > 0, __ATOMIC_RELAXED);
    return 0;
}

int bpf_sampler_measure_all(void)
{
    int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
    return fd < 0 ? -1 : fd;
}

void bpf_sampler_measure(struct bpf_sampler *sampler)
{
    if (sampler->measuring < 0)
        sampler->measuring = bpf_sampler_measure_all();
}

bool bpf_sampler_is_measuring(const struct bpf_sampler *sampler)
{
    /* Somebody else may have it measured. */
    return sampler->measuring >= 0 || bpf_sampler_cost(sampler).run_ns > 0;
}

struct bpf_cost bpf_sampler_cost(const struct bpf_sampler *sampler)
{
    return bpf_object_cost(sampler->object);
}

struct bpf_object *bpf_sampler_object_of(const struct bpf_sampler *sampler)
{
    return sampler->object;
}

struct bpf_settings bpf_sampler_settings(const struct bpf_sampler *sampler)
{
    return sampler->settings;
}

int bpf_sampler_descriptor(const struct bpf_sampler *sampler)
{
    return ring_buffer__epoll_fd(sampler->ring);
}

int bpf_sampler_read(struct bpf_sampler *sampler, int64_t limit_ns, bpf_event_fn callback,
                     void *context)
{
    sampler->callback = callback;
    sampler->context = context;
    sampler->read_until_ns = monotonic_ns() + limit_ns;
    int r = ring_buffer__consume(sampler->ring);
    return r == -EAGAIN ? 1 : MIN(r, 0);
}

void bpf_sampler_counters(const struct bpf_sampler *sampler, uint64_t ret_counters[BPF_COUNTERS])
{
    const char *scratches = sampler->tables[SCRATCHES].memory;
    memset(ret_counters, 0, BPF_COUNTERS * sizeof(*ret_counters));
    for (int at = 0; at < sampler->cpu_count * BPF_SCRATCHES; at++) {
        const struct bpf_scratch_head *head =
            (const void *)(scratches + (size_t)at * BPF_SCRATCH_BYTES);
        for (int i = 0; i < BPF_COUNTERS; i++)
            ret_counters[i] += head->counters[i];
    }
}

uint64_t bpf_sampler_fork_full(const struct bpf_sampler *sampler)
{
    return *(const uint64_t *)sampler->tables[FORKS].memory;
}

bool bpf_sampler_counts_cycles(const struct bpf_sampler *sampler)
{
    return sampler->cycles;
}
