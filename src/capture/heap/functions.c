// SPDX-License-Identifier: Apache-2.0
// Uprobes at functions of allocators: see functions.h.

#include "capture/heap/functions.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arch/x86_64/registers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "capture/record/module_file.h"
#include "elf/usdt/usdt.h"

#define MAP_LINE_BYTES 4600
#define MEASURE_NS_MIN 50000000
#define TRIAL_CALLS 4000

/* Which arguments of a function are what; -1: none is. */
static const struct {
    const char *name;
    int size, factor, released, stored_at;
} kinds[] = {
    {"free", -1, -1, 0, -1},
    {"malloc", 0, -1, -1, -1},
    {"calloc", 0, 1, -1, -1},
    {"realloc", 1, -1, 0, -1},
    {"reallocarray", 1, 2, 0, -1},
    {"aligned_alloc", 1, -1, -1, -1},
    {"memalign", 1, -1, -1, -1},
    {"posix_memalign", 2, -1, -1, 0},
    {"valloc", 0, -1, -1, -1},
    {"pvalloc", 0, -1, -1, -1},
    /* In files that have malloc, too: elsewhere they call it. */
    {"_ZdlPv", -1, -1, 0, -1},
    {"_ZdaPv", -1, -1, 0, -1},
    {"_ZdlPvm", -1, -1, 0, -1},
    {"_ZdaPvm", -1, -1, 0, -1},
    {"_Znwm", 0, -1, -1, -1},
    {"_Znam", 0, -1, -1, -1},
};

static struct bpf_heap_argument argument(int number, long long otherwise)
{
    if (number < 0)
        return (struct bpf_heap_argument){
            .kind = BPF_HEAP_CONSTANT, .bytes = 8, .offset = otherwise};
    return (struct bpf_heap_argument){
        .kind = BPF_HEAP_REGISTER, .number = registers_arguments[number], .bytes = 8};
}

static bool attach_one(struct heap_attach *attach, const char *program, const char *path, pid_t pid,
                       uint64_t offset, bool at_return, const struct bpf_heap_place *place)
{
    unsigned at = 0;
    while (at < BPF_HEAP_PLACES && attach->taken[at])
        at++;
    if (at == BPF_HEAP_PLACES)
        return false;
    LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = at, .retprobe = at_return);
    attach->places[at] = *place;
    attach->links[at] = bpf_program__attach_uprobe_opts(bpf_probes_program(attach->probes, program),
                                                        pid, path, (size_t)offset, &options);
    attach->taken[at] = attach->links[at] != NULL;
    return attach->taken[at];
}

static bool attach_function(struct heap_attach *attach, size_t kind, const char *path, pid_t pid,
                            uint64_t offset)
{
    const struct bpf_heap_place place = {
        .arguments = {argument(kinds[kind].size, 0), argument(kinds[kind].factor, 1),
                      argument(kinds[kind].released, 0), argument(kinds[kind].stored_at, 0)}};
    if (kinds[kind].size < 0)
        return attach_one(attach, "assay_release", path, pid, offset, false, &place);
    /* The end first: a call that is seen to begin is seen to end. */
    return attach_one(attach, "assay_return", path, pid, offset, true, &place) &&
           attach_one(attach, "assay_enter", path, pid, offset, false, &place);
}

static bool offset_of(struct elf_file *file, const char *name, uint64_t *ret_offset)
{
    struct elf_symbol symbol;
    return elf_dynamic_symbol(file, name, &symbol) && symbol.address && !symbol.is_thread_local &&
           elf_address_to_offset(file, symbol.address, ret_offset);
}

/* Some names are the same function. */
static unsigned attach_file(struct heap_attach *attach, struct elf_file *file, const char *path,
                            pid_t pid)
{
    uint64_t offsets[ARRAY_LENGTH(kinds)], offset;
    unsigned attached = 0;
    size_t count = 0;
    if (!offset_of(file, "malloc", &offset) || !offset_of(file, "free", &offset))
        return 0;
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        size_t same = 0;
        if (!offset_of(file, kinds[i].name, &offset))
            continue;
        while (same < count && offsets[same] != offset)
            same++;
        if (same == count && attach_function(attach, i, path, pid, offset)) {
            offsets[count++] = offset;
            attached++;
        }
    }
    return attached;
}

/* ---- files of a process ---- */

typedef unsigned (*file_fn)(struct heap_attach *attach, struct elf_file *file, const char *path,
                            pid_t pid);

static unsigned each_file(struct heap_attach *attach, pid_t pid, file_fn look)
{
    char line[MAP_LINE_BYTES], last[MAP_LINE_BYTES] = "", path[64];
    unsigned found = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        struct elf_file file;
        struct error ignored = {0};
        char *name = strchr(line, '/');
        line[strcspn(line, "\n")] = 0;
        if (!name || !strcmp(name, last))
            continue;
        snprintf(last, sizeof(last), "%s", name);
        int fd = module_file_in_root((uint32_t)pid, name);
        if (fd < 0)
            continue;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (elf_open(path, &file, &ignored) == 0) {
            found += look(attach, &file, path, pid);
            elf_release(&file);
        }
        close(fd);
    }
    if (maps)
        fclose(maps);
    return found;
}

static unsigned count_probes(struct heap_attach *attach, struct elf_file *file, const char *path,
                             pid_t pid)
{
    struct usdt_probe probes[USDT_PROBES_MAX];
    (void)attach, (void)path, (void)pid;
    return (unsigned)usdt_find(file, "otel_memory", "alloc", probes);
}

bool heap_functions_needless(pid_t pid)
{
    return each_file(NULL, pid, count_probes) > 0;
}

/* ---- what a trap costs ---- */

__attribute__((noinline, used)) static void *trial(void *argument)
{
    __asm__ volatile("" : "+r"(argument)::"memory");
    return argument;
}

static double calls_ns(void)
{
    int64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < TRIAL_CALLS; i++)
        trial(NULL);
    return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns) / TRIAL_CALLS;
}

/* Where a function of ours is in our own file. */
static bool own_offset(uint64_t *ret_offset)
{
    char line[MAP_LINE_BYTES];
    uint64_t address = (uint64_t)(uintptr_t)trial;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof(line), maps)) {
        unsigned long long start, end, offset;
        found = sscanf(line, "%llx-%llx %*s %llx", &start, &end, &offset) == 3 &&
                address >= start && address < end;
        *ret_offset = offset + (address - start);
    }
    if (maps)
        fclose(maps);
    return found;
}

/* By a function of our own, with the same programs. */
static int measure_traps(struct heap_functions *functions, struct error *error)
{
    static const char *const path = "/proc/self/exe";
    struct heap_attach *attach = functions->attach;
    const struct bpf_heap_place place = {
        .arguments = {argument(-1, 0), argument(-1, 1), argument(-1, 0), argument(-1, 0)}};
    uint64_t offset;
    if (!own_offset(&offset))
        return error_set(error, -ENOTSUP, "Failed to measure the cost of uprobes.");
    double bare_ns = calls_ns();
    bool attached = attach_one(attach, "assay_release", path, getpid(), offset, false, &place);
    functions->release_ns = calls_ns() - bare_ns;
    unsigned at = 0;
    for (; at < BPF_HEAP_PLACES; at++)
        if (attach->taken[at]) {
            bpf_link__destroy(attach->links[at]);
            attach->links[at] = NULL;
            attach->taken[at] = false;
        }
    attached = attached &&
               attach_one(attach, "assay_return", path, getpid(), offset, true, &place) &&
               attach_one(attach, "assay_enter", path, getpid(), offset, false, &place);
    functions->call_ns = calls_ns() - bare_ns;
    for (at = 0; at < BPF_HEAP_PLACES; at++)
        if (attach->taken[at]) {
            bpf_link__destroy(attach->links[at]);
            attach->links[at] = NULL;
            attach->taken[at] = false;
        }
    return attached ? 0 : error_set_errno(error, -errno, "Cannot attach uprobes");
}

/* ---- the whole ---- */

static int64_t process_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time) < 0)
        return 0;
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t all_cpu_ns(const struct heap_functions *functions)
{
    int64_t sum = 0;
    for (size_t i = 0; i < functions->pid_count; i++)
        sum += process_cpu_ns(functions->pids[i]);
    return sum;
}

int heap_functions_attach(struct heap_functions *functions, struct heap_attach *attach,
                          struct bpf_heap_state *state, const pid_t *pids, size_t pid_count,
                          struct error *error)
{
    *functions = (struct heap_functions){
        .attach = attach, .state = state, .pids = pids, .pid_count = pid_count};
    int r = measure_traps(functions, error);
    for (size_t i = 0; !r && i < pid_count; i++)
        if (each_file(attach, pids[i], attach_file) < 2)
            r = error_set(error, -ENOENT,
                          "Process %d has neither otel_memory probes nor an allocator whose "
                          "functions can be found (it may be linked statically). Start it with "
                          "LD_PRELOAD=libassay_heap.so, or record it from its start: "
                          "`assay record --mode heap -- CMD`.",
                          (int)pids[i]);
    functions->calls = state->calls;
    functions->releases = state->releases;
    functions->looked_ns = monotonic_ns();
    functions->cpu_ns = all_cpu_ns(functions);
    return r;
}

bool heap_functions_measure(struct heap_functions *functions, int64_t now_ns,
                            struct heap_slowdown *ret)
{
    uint64_t calls = functions->state->calls, releases = functions->state->releases;
    int64_t cpu_ns = all_cpu_ns(functions), passed_ns = now_ns - functions->looked_ns;
    if (passed_ns < MEASURE_NS_MIN)
        return false;
    double ours_ns = (double)(calls - functions->calls) * functions->call_ns +
                     (double)(releases - functions->releases) * functions->release_ns;
    double rest_ns = (double)(cpu_ns - functions->cpu_ns) - ours_ns;
    *ret = (struct heap_slowdown){
        .calls = (double)(calls - functions->calls) * 1e9 / (double)passed_ns,
        .releases = (double)(releases - functions->releases) * 1e9 / (double)passed_ns,
        .call_ns = functions->call_ns,
        .release_ns = functions->release_ns,
        /* Of a process that does nothing else, next to nothing is left. */
        .share = ours_ns > 0 ? ours_ns / MAX(rest_ns, ours_ns / 100) : 0,
    };
    functions->calls = calls;
    functions->releases = releases;
    functions->looked_ns = now_ns;
    functions->cpu_ns = cpu_ns;
    return true;
}
