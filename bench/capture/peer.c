// SPDX-License-Identifier: Apache-2.0
// peer --stats                      keeps the kernel's statistics of BPF programs on
// peer OBJECT PROGRAM HZ PID|-a     attaches one program of peers.bpf.o to a process or to all
// peer --counters MAP...            how many samples assay's sampler took so far, and sent as
//                                   copies, from that one of its maps (ids) which has its counters
// The first two say "ready" when it is so, and end when their standard input does; the second then
// prints how many stacks were taken and how many frames they had. How long a program ran is in this
// process's /proc/PID/fdinfo.

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/shared.h"

#define DRAIN_EVERY_MS 100

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

static int ignore_event(void *context, void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return 0;
}

/* Empties the ring buffer meanwhile, if there is one. */
static void wait_for_end(struct ring_buffer *ring)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int ready = poll(&input, 1, ring ? DRAIN_EVERY_MS : -1);
        if (ring)
            ring_buffer__consume(ring);
        if (ready > 0 && read(STDIN_FILENO, &byte, 1) <= 0)
            return;
    }
}

static int keep_statistics(void)
{
    /* They are off again when this descriptor is closed, however the process ends. */
    if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
        return fail("The kernel's statistics of BPF programs");
    wait_for_end(NULL);
    return 0;
}

struct counts {
    unsigned long long samples, copies;
};

static int add_counts(int map, unsigned scratches, struct counts *counts)
{
    static union {
        struct bpf_scratch_head head;
        char bytes[BPF_SCRATCH_BYTES];
    } scratch;
    for (unsigned at = 0; at < scratches; at++) { /* several of each CPU */
        if (bpf_map_lookup_elem(map, &at, &scratch))
            return fail("The sampler's counters");
        counts->samples += scratch.head.counters[BPF_COUNT_SAMPLES];
        counts->copies += scratch.head.counters[BPF_COUNT_COPIES];
    }
    return 0;
}

static int tell_counters(char **ids)
{
    struct counts counts = {0};
    for (; *ids; ids++) {
        struct bpf_map_info info = {0};
        unsigned size = sizeof(info);
        int map = bpf_map_get_fd_by_id((unsigned)atoi(*ids));
        if (map < 0)
            continue; /* it has gone */
        if (!bpf_obj_get_info_by_fd(map, &info, &size) && !strcmp(info.name, "scratches") &&
            add_counts(map, info.max_entries, &counts))
            return 1;
        close(map);
    }
    printf("%llu %llu\n", counts.samples, counts.copies);
    return 0;
}

/* The same event that assay opens. */
static int open_event(int pid, int cpu, unsigned hz)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .freq = 1,
                                   .sample_freq = hz,
                                   .disabled = 1,
                                   .inherit = pid > 0,
                                   .exclude_idle = 1,
                                   .exclude_hv = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0)
        return fd;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int attach(int program, int pid, int cpu, unsigned hz)
{
    int event = open_event(pid, cpu, hz);
    if (event < 0)
        return errno == ENODEV ? 0 : fail("perf_event_open"); /* the CPU is offline */
    if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) < 0 ||
        ioctl(event, PERF_EVENT_IOC_ENABLE, 0) < 0)
        return fail("The event");
    return 0;
}

static struct bpf_object *load(const char *path, const char *name)
{
    struct bpf_program *program;
    struct bpf_object *object = bpf_object__open_file(path, NULL);
    if (!object)
        return NULL;
    bpf_object__for_each_program(program, object)
        bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), name));
    return bpf_object__load(object) < 0 ? NULL : object;
}

static void tell_frames(struct bpf_object *object)
{
    unsigned long long stats[2] = {0};
    unsigned zero = 0;
    int map = bpf_object__find_map_fd_by_name(object, ".bss");
    if (map >= 0 && !bpf_map_lookup_elem(map, &zero, stats))
        printf("%llu %llu\n", stats[0], stats[1]);
}

static int run_program(char **argv)
{
    struct bpf_object *object = load(argv[0], argv[1]);
    if (!object)
        return fail(argv[0]);
    struct bpf_program *program = bpf_object__find_program_by_name(object, argv[1]);
    unsigned hz = (unsigned)atoi(argv[2]);
    int all = !strcmp(argv[3], "-a");
    if (!program)
        return fail(argv[1]);
    for (int cpu = 0; cpu < (all ? libbpf_num_possible_cpus() : 1); cpu++)
        if (attach(bpf_program__fd(program), all ? -1 : atoi(argv[3]), all ? cpu : -1, hz))
            return 1;
    int events = bpf_object__find_map_fd_by_name(object, "events");
    wait_for_end(events < 0 ? NULL : ring_buffer__new(events, ignore_event, NULL, NULL));
    tell_frames(object);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--stats"))
        return keep_statistics();
    if (argc > 1 && !strcmp(argv[1], "--counters"))
        return tell_counters(argv + 2);
    if (argc == 5)
        return run_program(argv + 1);
    fprintf(stderr, "usage: peer --stats | peer --counters MAP... | "
                    "peer OBJECT PROGRAM HZ PID|-a\n");
    return 2;
}
