// SPDX-License-Identifier: Apache-2.0
// peer --stats                      keeps the kernel's statistics of BPF programs on
// peer OBJECT PROGRAM HZ PID|-a     attaches one program of peers.bpf.o to a process or to all
// Either says "ready" when it is so, and ends when its standard input does; the second then prints
// how many stacks were taken and how many frames they had. How long a program ran is in this
// process's /proc/PID/fdinfo.

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

static void wait_for_end(void)
{
    char byte;
    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
        errno = 0;
}

static int keep_statistics(void)
{
    /* They are off again when this descriptor is closed, however the process ends. */
    if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
        return fail("The kernel's statistics of BPF programs");
    wait_for_end();
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
    unsigned long long figures[2] = {0};
    unsigned zero = 0;
    int map = bpf_object__find_map_fd_by_name(object, ".bss");
    if (map >= 0 && !bpf_map_lookup_elem(map, &zero, figures))
        printf("%llu %llu\n", figures[0], figures[1]);
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
    wait_for_end();
    tell_frames(object);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--stats"))
        return keep_statistics();
    if (argc == 5)
        return run_program(argv + 1);
    fprintf(stderr, "usage: peer --stats | peer OBJECT PROGRAM HZ PID|-a\n");
    return 2;
}
