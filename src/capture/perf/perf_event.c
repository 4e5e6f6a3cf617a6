// SPDX-License-Identifier: Apache-2.0
// perf_event_open: one ring per CPU, drained into a batch that is sorted by time. See perf_event.h.

#include "capture/perf/perf_event.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "arch/x86_64/registers.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

/* Data pages per ring. Users without privilege may lock 516 KiB per CPU, the header page included.
 */
#define RING_PAGES_ROOT 2048
#define RING_PAGES_USER 128
#define RING_PAGES_EVENTS 64 /* without samples */
#define RING_PAGES_EVENTS_DEEP 512
#define CPUS_MAX 1024
#define BATCH_KEPT_BYTES (256u << 10)

struct ring {
    int fd;
    struct perf_event_mmap_page *header;
    size_t data_bytes;
};

/* A record in the batch: where it is, and its time. */
struct entry {
    uint64_t time_ns;
    size_t offset;
    size_t order;
};

/* The open event of one thread and CPU. */
struct opened {
    int fd;
    unsigned event;  /* as in struct perf_record */
    uint64_t number; /* the kernel's, which grows */
};

struct perf_sampler {
    struct ring *rings; /* one per CPU */
    struct pollfd *polls;
    size_t ring_count;
    struct opened *events; /* all, the rings' own among them */
    size_t event_count, event_capacity;
    unsigned hardware;                     /* bits of events by the CPU's counters */
    bool of_threads;                       /* not of everything */
    unsigned periods[PERF_EVENTS_MAX + 1]; /* of events that have a fixed one */
    uint64_t taken[PERF_EVENTS_MAX + 1];   /* how many of them samples stood for */
    bool kernel;
    bool counts_lost;           /* events say how many of their records were lost */
    struct buffer batch, spare; /* records; and room for those of them that stay */
    struct entry *entries;
    size_t entry_next; /* before it, all were delivered */
    size_t entry_count, entry_capacity;
};

/* Of samples and, at their end, of all other records. */
#define ALWAYS_SAID                                                                                \
    (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU)
#define TRAILER_BYTES 40

#define FORMAT_LOST 16 /* PERF_FORMAT_LOST, which kernels have since 6.0 */

/* Of events of the kernel's; the CPU clock is 0. The first of them also reports processes. */
static void choose_event(struct perf_event_attr *attr, const struct perf_options *options,
                         unsigned event, bool first)
{
    if (event) {
        const struct perf_event_choice *choice = &options->events->list[event - 1];
        attr->type = choice->type;
        attr->config = choice->config;
        attr->exclude_kernel |= choice->user_only;
        attr->exclude_user |= choice->kernel_only;
        attr->read_format |= PERF_EVENT_READ_FORMAT;
        if (choice->period) {
            attr->freq = 0;
            attr->sample_period = choice->period;
            attr->sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD; /* with it each event is sampled */
        }
    }
    if (!first)
        attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 0;
}

static int open_event(const struct perf_sampler *sampler, const struct perf_options *options,
                      unsigned event, bool first, pid_t thread, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = options->frequency_hz,
        .sample_type = PERF_SAMPLE_IP | ALWAYS_SAID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .disabled = 1,
        .inherit = 1,
        .exclude_hv = 1,
        .exclude_idle = 1,
        .exclude_kernel = !sampler->kernel,
        .exclude_callchain_user = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .sample_id_all = 1,
        .enable_on_exec = options->enable_on_exec,
        .watermark = 1,
        .wakeup_watermark = 64 << 10,
        .read_format = sampler->counts_lost ? FORMAT_LOST : 0,
        .sample_regs_user = REGISTERS_PERF,
        .sample_stack_user = options->stack_bytes,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    choose_event(&attr, options, event, first);
    if (!options->frequency_hz) {
        attr.config = PERF_COUNT_SW_DUMMY;
        attr.freq = 0;
        attr.sample_freq = 0;
        attr.sample_type = ALWAYS_SAID;
        attr.sample_regs_user = 0;
        attr.sample_stack_user = 0;
        attr.wakeup_watermark = 16 << 10;
    }
    int fd = (int)syscall(SYS_perf_event_open, &attr, thread, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int paranoid_level(void)
{
    int level = -2;
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    if (file) {
        if (fscanf(file, "%d", &level) != 1)
            level = -2;
        fclose(file);
    }
    return level;
}

/* The first of the threads that belongs to another user; 0: all are ours. */
static pid_t find_foreign(const struct perf_options *options)
{
    for (size_t i = 0; i < options->thread_count; i++) {
        char path[64];
        struct stat found;
        snprintf(path, sizeof(path), "/proc/%d", (int)options->threads[i]);
        if (stat(path, &found) == 0 && found.st_uid != geteuid())
            return options->threads[i];
    }
    return 0;
}

static int explain_refusal(int code, const struct perf_options *options, struct error *error)
{
    int level = paranoid_level();
    if (options->thread_count && options->threads[0] == -1)
        return error_set(error, code,
                         "Permission denied: only root can record all processes "
                         "(kernel.perf_event_paranoid is %d). Run it as root, or record your own "
                         "processes with --pid.",
                         level);
    pid_t foreign = find_foreign(options);
    if (foreign)
        return error_set(error, code,
                         "Permission denied: process %d belongs to another user, or gained "
                         "privileges when it started. Run it as root.",
                         (int)foreign);
    if (level > 2)
        return error_set(error, code,
                         "Permission denied: the kernel forbids sampling "
                         "(kernel.perf_event_paranoid is %d). Run it as root, or run `sysctl "
                         "kernel.perf_event_paranoid=2`.",
                         level);
    return error_set(error, code,
                     "Permission denied: perf_event_open is forbidden although "
                     "kernel.perf_event_paranoid is %d. Run it as root; in a container, allow "
                     "perf_event_open in its seccomp profile.",
                     level);
}

static int explain(int code, const struct perf_options *options, struct error *error)
{
    if (code == -EACCES || code == -EPERM)
        return explain_refusal(code, options, error);
    if (code == -ENOENT || code == -ENOSYS || code == -EOPNOTSUPP)
        return error_set(error, code, "This kernel has no perf events for sampling.");
    if (code == -EMFILE)
        return error_set(
            error, code,
            "Too few file descriptors for an event per thread and CPU: raise `ulimit -n`.");
    if (code == -ESRCH)
        return error_set(error, code, "No such process.");
    return error_set_errno(error, code, "Failed to start sampling");
}

static size_t ring_pages(const struct perf_options *options)
{
    if (!options->frequency_hz)
        return options->deep_buffers ? RING_PAGES_EVENTS_DEEP : RING_PAGES_EVENTS;
    return geteuid() == 0 ? RING_PAGES_ROOT : RING_PAGES_USER;
}

static int map_ring(struct ring *ring, size_t pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    ring->header = memory;
    ring->data_bytes = pages * page;
    return 0;
}

/* One thread's event on one CPU. The first on a CPU brings the ring that all write to. */
static int add_event(struct perf_sampler *sampler, const struct perf_options *options,
                     unsigned event, bool first, pid_t thread, int cpu, struct ring **ring)
{
    int fd = open_event(sampler, options, event, first, thread, cpu);
    if (fd == -EINVAL && sampler->counts_lost && !sampler->event_count) {
        sampler->counts_lost = false;
        fd = open_event(sampler, options, event, first, thread, cpu);
    }
    if (fd == -EACCES && sampler->kernel && !sampler->event_count) {
        sampler->kernel = false;
        fd = open_event(sampler, options, event, first, thread, cpu);
    }
    if (fd < 0)
        return fd;
    array_reserve(sampler->events, sampler->event_capacity, sampler->event_count + 1);
    struct opened *opened = &sampler->events[sampler->event_count++];
    *opened = (struct opened){.fd = fd, .event = event};
    int r = ioctl(fd, PERF_EVENT_IOC_ID, &opened->number) < 0 ? -errno : 0;
    if (r < 0)
        return r;
    if (*ring) {
        r = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (*ring)->fd) < 0 ? -errno : 0;
    } else {
        sampler->polls[sampler->ring_count] = (struct pollfd){.fd = fd, .events = POLLIN};
        *ring = &sampler->rings[sampler->ring_count++];
        (*ring)->fd = fd;
        r = map_ring(*ring, ring_pages(options));
    }
    if (!r && !options->enable_on_exec && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
        r = -errno;
    return r;
}

/* All events of one thread on one CPU. */
static int add_thread(struct perf_sampler *sampler, const struct perf_options *options,
                      pid_t thread, int cpu, struct ring **ring)
{
    const struct perf_events *events = options->events;
    unsigned first = events && events->count && !events->cpu;
    int r = 0;
    for (unsigned event = first; r >= 0 && event <= (events ? events->count : 0); event++)
        r = add_event(sampler, options, event, event == first, thread, cpu, ring);
    return r;
}

static int open_rings(struct perf_sampler *sampler, const struct perf_options *options)
{
    long cpus = MIN(sysconf(_SC_NPROCESSORS_CONF), CPUS_MAX);
    sampler->rings = memory_zalloc((size_t)cpus, sizeof(*sampler->rings));
    sampler->polls = memory_zalloc((size_t)cpus, sizeof(*sampler->polls));
    for (int cpu = 0; cpu < cpus; cpu++) {
        struct ring *ring = NULL;
        for (size_t i = 0; i < options->thread_count; i++) {
            int r = add_thread(sampler, options, options->threads[i], cpu, &ring);
            if (r == -ENODEV) /* the CPU is offline */
                break;
            if (r < 0 && r != -ESRCH) /* a thread may end meanwhile */
                return r;
        }
    }
    return sampler->ring_count ? 0 : -ESRCH;
}

int perf_sampler_new(const struct perf_options *options, struct perf_sampler **ret_sampler,
                     struct error *error)
{
    struct perf_sampler *sampler = memory_zalloc(1, sizeof(*sampler));
    sampler->kernel = options->kernel;
    sampler->counts_lost = true;
    sampler->of_threads = options->thread_count && options->threads[0] != -1;
    for (unsigned i = 0; options->events && i < options->events->count; i++) {
        sampler->periods[i + 1] = options->events->list[i].period;
        if (options->events->list[i].type != PERF_TYPE_SOFTWARE)
            sampler->hardware |= 1u << (i + 1);
    }
    int r = open_rings(sampler, options);
    if (r < 0) {
        perf_sampler_free(sampler);
        return explain(r, options, error);
    }
    *ret_sampler = sampler;
    return 0;
}

void perf_sampler_free(struct perf_sampler *sampler)
{
    if (!sampler)
        return;
    for (size_t i = 0; i < sampler->ring_count; i++) {
        struct ring *ring = &sampler->rings[i];
        if (ring->header)
            munmap(ring->header, ring->data_bytes + (size_t)sysconf(_SC_PAGESIZE));
    }
    for (size_t i = 0; i < sampler->event_count; i++)
        close(sampler->events[i].fd);
    free(sampler->events);
    free(sampler->rings);
    free(sampler->polls);
    buffer_release(&sampler->batch);
    buffer_release(&sampler->spare);
    free(sampler->entries);
    free(sampler);
}

int perf_threads_of(pid_t pid, pid_t **threads, size_t *count, size_t *capacity)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? -ESRCH : -errno;
    struct dirent *entry;
    size_t before = *count;
    while ((entry = readdir(folder))) {
        int thread = atoi(entry->d_name);
        if (thread <= 0)
            continue;
        array_reserve(*threads, *capacity, *count + 1);
        (*threads)[(*count)++] = thread;
    }
    closedir(folder);
    return *count > before ? 0 : -ESRCH;
}

int perf_sampler_set_rate(struct perf_sampler *sampler, unsigned frequency_hz)
{
    /* The CPU clock has periods only, also when it was opened with a frequency. */
    uint64_t period_ns = 1000000000u / frequency_hz, frequency = frequency_hz;
    int r = 0;
    for (size_t i = 0; i < sampler->event_count; i++)
        if (!sampler->periods[sampler->events[i].event] &&
            ioctl(sampler->events[i].fd, PERF_EVENT_IOC_PERIOD,
                  sampler->events[i].event ? &frequency : &period_ns) < 0)
            r = -errno;
    return r;
}

int perf_sampler_pause(struct perf_sampler *sampler, bool pause)
{
    int r = 0;
    for (size_t i = 0; i < sampler->event_count; i++)
        if (ioctl(sampler->events[i].fd, pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE,
                  0) < 0)
            r = -errno;
    return r;
}

/* Events of a thread are open on all CPUs, and count on the one where it runs: there the sum of the
 * times in which they did is to be compared with the time of one. */
static unsigned uncounted_percent(const struct perf_sampler *sampler, unsigned event)
{
    struct perf_event_times sum = {0};
    for (size_t i = 0; i < sampler->event_count; i++) {
        if (sampler->events[i].event != event)
            continue;
        struct perf_event_times times = perf_event_times(sampler->events[i].fd);
        sum.enabled_ns += times.enabled_ns / (sampler->of_threads ? sampler->ring_count : 1);
        sum.running_ns += times.running_ns;
    }
    return perf_event_uncounted_percent(sum);
}

unsigned perf_sampler_uncounted_percent(const struct perf_sampler *sampler)
{
    unsigned most = 0;
    for (unsigned event = 1; event <= PERF_EVENTS_MAX; event++)
        if (sampler->hardware & 1u << event)
            most = MAX(most, uncounted_percent(sampler, event));
    return most;
}

uint64_t perf_sampler_unsampled(const struct perf_sampler *sampler)
{
    uint64_t counted[PERF_EVENTS_MAX + 1] = {0}, taken[PERF_EVENTS_MAX + 1], sum = 0;
    memcpy(taken, sampler->taken, sizeof(taken));
    for (size_t i = 0; i < sampler->event_count; i++) {
        unsigned event = sampler->events[i].event;
        struct perf_event_times times = perf_event_times(sampler->events[i].fd);
        counted[event] += sampler->periods[event] ? times.count : 0;
        taken[event] += times.lost * sampler->periods[event];
    }
    for (unsigned event = 1; event <= PERF_EVENTS_MAX; event++) {
        uint64_t missing = counted[event] - MIN(counted[event], taken[event]);
        sum += missing * 100 >= counted[event] ? missing : 0;
    }
    return sum;
}

uint64_t perf_sampler_lost(const struct perf_sampler *sampler)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sampler->event_count && sampler->counts_lost; i++) {
        uint64_t words[5]; /* the last of those that are read */
        ssize_t length = read(sampler->events[i].fd, words, sizeof(words));
        if (length >= 16)
            sum += words[(size_t)length / 8 - 1];
    }
    return sum;
}

bool perf_sampler_sees_kernel(const struct perf_sampler *sampler)
{
    return sampler->kernel;
}

/* ---- decoding ---- */

/* Words of one record. The kernel writes them, so they are well-formed; the checks keep a kernel
 * that adds something from leading us astray. */
struct words {
    const char *at, *end;
    bool short_of;
};

static uint64_t take_u64(struct words *words)
{
    uint64_t value = 0;
    if (words->end - words->at < 8)
        words->short_of = true;
    else
        memcpy(&value, words->at, 8), words->at += 8;
    return value;
}

static uint32_t take_u32(struct words *words)
{
    uint32_t value = 0;
    if (words->end - words->at < 4)
        words->short_of = true;
    else
        memcpy(&value, words->at, 4), words->at += 4;
    return value;
}

static const void *take_bytes(struct words *words, uint64_t count)
{
    const char *bytes = words->at;
    if ((uint64_t)(words->end - words->at) < count) {
        words->short_of = true;
        return NULL;
    }
    words->at += count;
    return bytes;
}

/* Whose sample it is: of a kernel's number. Numbers were given in the order of opening. */
static unsigned find_event(const struct perf_sampler *sampler, uint64_t number)
{
    size_t low = 0, high = sampler->event_count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (sampler->events[middle].number <= number)
            low = middle;
        else
            high = middle;
    }
    return high ? sampler->events[low].event : 0;
}

static bool decode_sample(const struct perf_sampler *sampler, struct words *words, uint16_t misc,
                          struct perf_record *record)
{
    take_u64(words); /* ip: also in the registers or the chain */
    record->pid = take_u32(words);
    record->tid = take_u32(words);
    record->time_ns = take_u64(words);
    uint64_t opened = take_u64(words), own = take_u64(words);
    record->inherited = opened != own;
    record->event = find_event(sampler, opened);
    record->cpu = take_u32(words);
    take_u32(words);
    unsigned period = sampler->periods[record->event];
    record->period = period ? period : take_u64(words);
    record->kernel_count = (size_t)take_u64(words);
    if (record->kernel_count > 4096)
        return false;
    record->kernel_frames = take_bytes(words, record->kernel_count * 8);
    record->in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    if (take_u64(words) != PERF_SAMPLE_REGS_ABI_NONE) {
        record->has_user = true;
        uint64_t value[REGISTERS] = {0};
        for (size_t i = 0; i < sizeof(registers_perf_order); i++)
            value[registers_perf_order[i]] = take_u64(words);
        record->ip = value[REGISTER_IP];
        record->sp = value[REGISTER_SP];
        record->fp = value[REGISTER_FP];
        record->base = value[REGISTER_BASE];
        record->argument = value[REGISTER_ARGUMENT];
    }
    uint64_t size = take_u64(words);
    if (size) {
        record->stack = take_bytes(words, size);
        uint64_t copied = take_u64(words);
        record->stack_bytes = (size_t)MIN(copied, size);
    }
    return !words->short_of;
}

/* The end of every record that is no sample: pid, tid, time, the event's numbers, cpu. */
static void decode_trailer(const char *end, struct perf_record *record)
{
    struct words words = {.at = end - TRAILER_BYTES, .end = end};
    record->pid = take_u32(&words);
    record->tid = take_u32(&words);
    record->time_ns = take_u64(&words);
    take_bytes(&words, 16);
    record->cpu = take_u32(&words);
}

static bool decode(const struct perf_sampler *sampler, const struct perf_event_header *header,
                   struct perf_record *record)
{
    struct words words = {.at = (const char *)(header + 1),
                          .end = (const char *)header + header->size};
    *record = (struct perf_record){0};
    if (header->type == PERF_RECORD_SAMPLE) {
        record->kind = PERF_SAMPLE;
        return decode_sample(sampler, &words, header->misc, record);
    }
    if (words.end - words.at < TRAILER_BYTES)
        return false;
    decode_trailer(words.end, record);
    switch (header->type) {
    case PERF_RECORD_MMAP2:
        record->kind = PERF_MAPPED;
        record->pid = take_u32(&words);
        record->tid = take_u32(&words);
        record->start = take_u64(&words);
        record->length = take_u64(&words);
        record->offset = take_u64(&words);
        uint64_t major_number = take_u32(&words), minor_number = take_u32(&words);
        record->device = makedev(major_number, minor_number);
        record->inode = take_u64(&words);
        take_bytes(&words, 16); /* the inode's generation, protection */
        if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
            record->device = record->inode = 0;
        record->path = words.at;
        return !words.short_of && memchr(words.at, '\0', (size_t)(words.end - words.at));
    case PERF_RECORD_COMM:
        record->kind = PERF_NAMED;
        record->pid = take_u32(&words);
        record->tid = take_u32(&words);
        record->path = words.at;
        record->executed = header->misc & PERF_RECORD_MISC_COMM_EXEC;
        return memchr(words.at, '\0', (size_t)(words.end - words.at));
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        record->kind = header->type == PERF_RECORD_FORK ? PERF_STARTED : PERF_ENDED;
        record->pid = take_u32(&words);
        record->parent_pid = take_u32(&words);
        record->tid = take_u32(&words);
        return true;
    case PERF_RECORD_LOST:
        record->kind = PERF_LOST;
        take_u64(&words);
        record->lost = take_u64(&words);
        return true;
    }
    return false;
}

/* ---- draining ---- */

static void add_entry(struct perf_sampler *sampler, size_t offset)
{
    struct perf_record record;
    if (!decode(sampler, (const struct perf_event_header *)(sampler->batch.data + offset), &record))
        return;
    array_reserve(sampler->entries, sampler->entry_capacity, sampler->entry_count + 1);
    sampler->entries[sampler->entry_count] =
        (struct entry){.time_ns = record.time_ns, .offset = offset, .order = sampler->entry_count};
    sampler->entry_count++;
}

static void copy_from_ring(const struct ring *ring, uint64_t position, void *to, size_t length)
{
    const char *data = (const char *)ring->header + sysconf(_SC_PAGESIZE);
    size_t start = position % ring->data_bytes;
    size_t first = MIN(length, ring->data_bytes - start);
    memcpy(to, data + start, first);
    memcpy((char *)to + first, data, length - first);
}

static void drain(struct perf_sampler *sampler, struct ring *ring)
{
    uint64_t head =
        atomic_load_explicit((_Atomic uint64_t *)&ring->header->data_head, memory_order_acquire);
    uint64_t tail = ring->header->data_tail;
    while (tail < head) {
        struct perf_event_header header;
        copy_from_ring(ring, tail, &header, sizeof(header));
        if (header.size < sizeof(header) || header.size > head - tail)
            break;
        /* Records are aligned to 8 bytes in the batch as in the ring. */
        size_t offset = sampler->batch.length;
        copy_from_ring(ring, tail, buffer_reserve(&sampler->batch, header.size + 8u), header.size);
        sampler->batch.length += (header.size + 7u) & ~7u;
        add_entry(sampler, offset);
        tail += header.size;
    }
    atomic_store_explicit((_Atomic uint64_t *)&ring->header->data_tail, head, memory_order_release);
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Keeps what was not delivered, and only that. */
static void keep_rest(struct perf_sampler *sampler)
{
    if (!sampler->entry_next)
        return;
    struct buffer rest = sampler->spare;
    size_t count = 0;
    rest.length = 0;
    for (size_t i = sampler->entry_next; i < sampler->entry_count; i++) {
        const struct perf_event_header *header =
            (const struct perf_event_header *)(sampler->batch.data + sampler->entries[i].offset);
        size_t offset = rest.length;
        buffer_reserve(&rest, header->size + 8u);
        memcpy(rest.data + offset, header, header->size);
        rest.length += (header->size + 7u) & ~7u;
        sampler->entries[count] = (struct entry){
            .time_ns = sampler->entries[i].time_ns, .offset = offset, .order = count};
        count++;
    }
    sampler->entry_next = 0;
    sampler->entry_count = count;
    /* A storm needs room that nobody needs after it. */
    if (sampler->batch.capacity > BATCH_KEPT_BYTES)
        buffer_release(&sampler->batch);
    sampler->spare = sampler->batch;
    sampler->batch = rest;
}

void perf_sampler_collect(struct perf_sampler *sampler)
{
    keep_rest(sampler);
    for (size_t i = 0; i < sampler->ring_count; i++)
        drain(sampler, &sampler->rings[i]);
    if (sampler->entry_count)
        qsort(sampler->entries, sampler->entry_count, sizeof(*sampler->entries), compare_entries);
}

size_t perf_sampler_waiting(const struct perf_sampler *sampler)
{
    return sampler->entry_count - sampler->entry_next;
}

/* Whose doing a record is. */
static uint32_t cause_of(const struct perf_sampler *sampler, const struct entry *entry)
{
    struct perf_record record;
    decode(sampler, (const struct perf_event_header *)(sampler->batch.data + entry->offset),
           &record);
    return record.kind == PERF_STARTED || record.kind == PERF_ENDED ? record.parent_pid
                                                                    : record.pid;
}

size_t perf_sampler_discard(struct perf_sampler *sampler, uint32_t *ret_pid)
{
    size_t count = perf_sampler_waiting(sampler), votes = 0, own = 0;
    uint32_t most = 0;
    /* A majority vote: a value with more than half of the total remains at the end. */
    for (size_t i = sampler->entry_next; i < sampler->entry_count; i++) {
        uint32_t pid = cause_of(sampler, &sampler->entries[i]);
        if (!votes)
            most = pid;
        votes = pid == most ? votes + 1 : votes - 1;
    }
    for (size_t i = sampler->entry_next; i < sampler->entry_count; i++)
        own += cause_of(sampler, &sampler->entries[i]) == most;
    *ret_pid = own * 2 > count ? most : 0;
    for (size_t i = 0; i < sampler->ring_count; i++) {
        struct perf_event_mmap_page *header = sampler->rings[i].header;
        uint64_t head =
            atomic_load_explicit((_Atomic uint64_t *)&header->data_head, memory_order_acquire);
        atomic_store_explicit((_Atomic uint64_t *)&header->data_tail, head, memory_order_release);
    }
    sampler->entry_next = sampler->entry_count;
    return count;
}

uint64_t perf_sampler_next(const struct perf_sampler *sampler)
{
    return sampler->entry_next < sampler->entry_count
               ? sampler->entries[sampler->entry_next].time_ns
               : UINT64_MAX;
}

void perf_sampler_deliver(struct perf_sampler *sampler, uint64_t until_ns, perf_record_fn callback,
                          void *context)
{
    while (sampler->entry_next < sampler->entry_count &&
           sampler->entries[sampler->entry_next].time_ns <= until_ns) {
        const struct entry *entry = &sampler->entries[sampler->entry_next++];
        struct perf_record record;
        decode(sampler, (const struct perf_event_header *)(sampler->batch.data + entry->offset),
               &record);
        if (record.kind == PERF_SAMPLE)
            sampler->taken[record.event] += sampler->periods[record.event];
        callback(context, &record);
    }
}

size_t perf_sampler_descriptors(const struct perf_sampler *sampler, struct pollfd *ret_polls,
                                size_t limit)
{
    size_t count = MIN(sampler->ring_count, limit);
    memcpy(ret_polls, sampler->polls, count * sizeof(*ret_polls));
    return count;
}

int perf_sampler_read(struct perf_sampler *sampler, int timeout_ms, bool all,
                      perf_record_fn callback, void *context)
{
    int ready = poll(sampler->polls, sampler->ring_count, timeout_ms);
    if (ready < 0 && errno != EINTR)
        return -errno;
    size_t gone = 0;
    for (size_t i = 0; i < sampler->ring_count; i++)
        gone += (sampler->polls[i].revents & POLLHUP) != 0;
    /* Events before this moment are in the rings; later ones may lack their neighbours. */
    uint64_t complete_until = all ? UINT64_MAX : (uint64_t)monotonic_ns();
    perf_sampler_collect(sampler);
    perf_sampler_deliver(sampler, complete_until, callback, context);
    return gone == sampler->ring_count ? 1 : 0;
}
