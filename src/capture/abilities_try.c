// SPDX-License-Identifier: Apache-2.0
// Trying what recordings need: see abilities_try.h.

#include "capture/abilities_try.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/capture.h"
#include "capture/ptrace/sampler.h"

#define RING_PAGES 129 /* as perf_event.c asks for, the header's page among them */
#define CHILD_FAILED 255

const char *line_in_file(const char *path, char *line, size_t length)
{
    FILE *file = fopen(path, "re");
    if (!file || !fgets(line, (int)length, file))
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (file)
        fclose(file);
    return line;
}

long number_in_file(const char *path, long otherwise)
{
    char line[64], *end;
    line_in_file(path, line, sizeof(line));
    long number = strtol(line, &end, 10);
    return end == line ? otherwise : number;
}

uint64_t effective_capabilities(void)
{
    char line[256];
    uint64_t bits = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "CapEff: %" SCNx64, &bits) == 1)
            break;
    if (file)
        fclose(file);
    return bits;
}

/* ---- perf events ---- */

int try_perf_event(const struct perf_trial *trial)
{
    struct perf_event_attr attr = {
        .type = trial->cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = trial->cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = 1,
        .sample_type = PERF_SAMPLE_IP,
        .disabled = 1,
        .exclude_hv = 1,
        .exclude_kernel = !trial->kernel,
    };
    int fd = -1, r = -ENODEV;
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; fd < 0 && r == -ENODEV && cpu < cpus; cpu++) { /* the first may be offline */
        fd = (int)syscall(SYS_perf_event_open, &attr, trial->everybody ? -1 : 0, cpu, -1,
                          PERF_FLAG_FD_CLOEXEC);
        r = fd < 0 ? -errno : 0;
    }
    if (fd < 0)
        return r;
    if (trial->ring) {
        size_t bytes = RING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED)
            r = -errno;
        else
            munmap(memory, bytes);
    }
    close(fd);
    return r;
}

/* ---- BPF ---- */

static int bpf_call(enum bpf_cmd command, union bpf_attr *attributes)
{
    int fd = (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

int try_bpf_program(void)
{
    const struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof(attributes));
    attributes.prog_type = BPF_PROG_TYPE_PERF_EVENT;
    attributes.insns = (uintptr_t)program;
    attributes.insn_cnt = ARRAY_LENGTH(program);
    attributes.license = (uintptr_t) "Dual BSD/GPL";
    return bpf_call(BPF_PROG_LOAD, &attributes);
}

int try_bpf_ring_buffer(void)
{
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof(attributes));
    attributes.map_type = BPF_MAP_TYPE_RINGBUF;
    attributes.max_entries = (uint32_t)sysconf(_SC_PAGESIZE);
    return bpf_call(BPF_MAP_CREATE, &attributes);
}

static int try_capture(bool everybody, unsigned modes, struct error *error)
{
    struct capture *capture = NULL;
    pid_t self = getpid();
    struct capture_options options = {.all = everybody,
                                      .pids = &self,
                                      .pid_count = everybody ? 0 : 1,
                                      .frequency_hz = 1,
                                      .kernel = true,
                                      .user = true,
                                      .modes = modes,
                                      .backend = CAPTURE_BPF,
                                      .unwind_pool_bytes = 1};
    int r = capture_new(&options, &capture, error);
    if (!r)
        capture_free(capture);
    return r;
}

int try_bpf_sampler(bool everybody, struct error *error)
{
    return try_capture(everybody, CAPTURE_CPU, error);
}

int try_bpf_waits(struct error *error)
{
    return try_capture(true, CAPTURE_WALL, error);
}

bool kernel_has_tracepoint(const char *name)
{
    char typedef_name[128];
    snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", name);
    struct btf *types = btf__load_vmlinux_btf();
    bool found = types && btf__find_by_name_kind(types, typedef_name, BTF_KIND_TYPEDEF) > 0;
    btf__free(types);
    return found;
}

/* ---- ptrace ---- */

int try_ptrace_child(struct error *error)
{
    struct ptrace_sampler *sampler = NULL;
    pid_t child = fork();
    if (child < 0)
        return error_set_errno(error, -errno, "Failed to start a process");
    if (!child)
        for (;;)
            pause();
    int r = ptrace_sampler_new(child, 1, &sampler, error);
    ptrace_sampler_free(sampler);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return r;
}

/* The other way round: a child traces us, who are not its child. That stops nobody. */
int try_ptrace_other(void)
{
    int status;
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (!child)
        _exit(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0 ? MIN(errno, CHILD_FAILED) : 0);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EPERM;
}

/* ---- the kernel's symbols ---- */

int try_kernel_symbols(void)
{
    FILE *file = fopen("/proc/kallsyms", "re");
    if (!file)
        return -errno;
    char line[512];
    uint64_t address = 0;
    for (int i = 0; i < 1000 && !address && fgets(line, sizeof(line), file); i++)
        if (sscanf(line, "%" SCNx64, &address) != 1)
            address = 0;
    fclose(file);
    return address ? 0 : -EPERM;
}
