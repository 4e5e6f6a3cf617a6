// SPDX-License-Identifier: Apache-2.0
// Runtimes of the processes on this machine: see runtimes.h.

#include "capture/runtimes.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/record/processes.h"
#include "profile/naming.h"

/* Names of files that hold runtimes whose frames are not read, or not of this build. */
static const struct {
    const char *begins, *name, *meaning;
} others[] = {
    {"node", "node",
     "Native frames only: this build does not export V8's constants for debuggers. Its functions "
     "have names with --perf-basic-prof."},
    {"libnode.so", "node",
     "Native frames only: this build does not export V8's constants for debuggers. Its functions "
     "have names with --perf-basic-prof."},
    {"perl", "perl", "Native frames only: assay does not read Perl's frames."},
    {"libperl.so", "perl", "Native frames only: assay does not read Perl's frames."},
    {"beam.smp", "beam",
     "Native frames only: assay does not read BEAM's frames. Its functions have names with +JPperf "
     "true."},
    {"libcoreclr.so", "dotnet",
     "Native frames only: assay does not read .NET's frames. Its functions have names with "
     "DOTNET_PerfMapEnabled=1."},
    {"luajit", "luajit", "Native frames only: assay does not read LuaJIT's frames."},
    {"libluajit", "luajit", "Native frames only: assay does not read LuaJIT's frames."},
    {"libj9vm", "openj9",
     "Native frames only: assay reads HotSpot, not OpenJ9. Its functions have names with "
     "-XX:+PerfTool."},
};

static const char *meaning_of(const struct interpreter *interpreter, bool bpf,
                              enum ability_state *ret_state)
{
    *ret_state = ABILITY_OK;
    if (bpf && interpreter_evaluates_anywhere(interpreter)) {
        *ret_state = ABILITY_LIMITED;
        return "Functions are shown by stacks, and by record if it uses ptrace: this build has an "
               "interpreter with tail calls, which BPF does not walk.";
    }
    switch (interpreter->kind) {
    case BPF_RUNTIME_HOTSPOT:
        return "Functions are shown by record, top, the agent and stacks.";
    case BPF_RUNTIME_PYTHON:
    case BPF_RUNTIME_V8:
        if (bpf)
            return "Functions are shown by record, top, the agent and stacks.";
        *ret_state = ABILITY_LIMITED;
        return "Functions are shown by stacks, and by record if it uses ptrace; elsewhere they "
               "require BPF.";
    default:
        if (bpf) {
            *ret_state = ABILITY_LIMITED;
            return "Functions are shown by record, top and the agent; stacks has native frames.";
        }
        *ret_state = ABILITY_NO;
        return "Native frames only: its functions require BPF.";
    }
}

static void add(struct found_runtimes *runtimes, const struct found_runtime *found,
                const char *binary)
{
    for (size_t i = 0; i < runtimes->count; i++) {
        struct found_runtime *known = &runtimes->list[i];
        if (!strcmp(known->name, found->name) && !strcmp(known->version, found->version) &&
            !strcmp(known->meaning, found->meaning) && !strcmp(known->binary, binary)) {
            known->processes++;
            return;
        }
    }
    if (runtimes->count == RUNTIMES_MAX) {
        runtimes->refused++;
        return;
    }
    struct found_runtime *added = &runtimes->list[runtimes->count++];
    *added = *found;
    added->binary = memory_strdup(binary);
    added->processes = 1;
}

static const struct module *other_runtime(const struct process *process, size_t *ret_which)
{
    for (size_t i = 0; i < process->count; i++) {
        const struct module *module = process->mappings[i].module;
        const char *base = module ? path_base(module->path) : "";
        for (size_t k = 0; k < ARRAY_LENGTH(others); k++)
            if (!strncmp(base, others[k].begins, strlen(others[k].begins))) {
                *ret_which = k;
                return module;
            }
    }
    return NULL;
}

static void look_at(struct found_runtimes *runtimes, bool bpf, struct interpreters *interpreters,
                    struct process *process)
{
    const char *name, *version;
    const struct module *module = interpreters_binary(process);
    struct found_runtime found = {.pid = process->pid};
    size_t which;
    if (module) {
        interpreters_look(interpreters, process, monotonic_ns());
        interpreters_describe(process, &name, &version);
        found.state = ABILITY_NO;
        if (process->interpreter)
            snprintf(found.meaning, sizeof(found.meaning), "%s",
                     meaning_of(process->interpreter, bpf, &found.state));
        else
            snprintf(found.meaning, sizeof(found.meaning), "Native frames only: %s.",
                     interpreters->reason ? interpreters->reason : "it is just starting");
        snprintf(found.name, sizeof(found.name), "%s", name);
        snprintf(found.version, sizeof(found.version), "%s", version);
    } else if ((module = other_runtime(process, &which))) {
        found.state = ABILITY_NO;
        snprintf(found.meaning, sizeof(found.meaning), "%s", others[which].meaning);
        snprintf(found.name, sizeof(found.name), "%s", others[which].name);
    }
    if (module)
        add(runtimes, &found, module->path);
}

/* Whether it has memory that this user may read, which takes what attaching a debugger takes.
 * Threads of the kernel and processes that have ended have none: -ESRCH. */
static int may_read(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == EACCES || errno == EPERM ? -EACCES : -ESRCH;
    int r = fgetc(file) == EOF ? -ESRCH : 0;
    fclose(file);
    return r;
}

static int compare(const void *a, const void *b)
{
    const struct found_runtime *x = a, *y = b;
    int names = strcmp(x->name, y->name), versions = strcmp(x->version, y->version);
    int binaries = strcmp(x->binary, y->binary);
    return names      ? names
           : versions ? versions
           : binaries ? binaries
                      : (int)x->state - (int)y->state;
}

void found_runtimes_find(bool bpf, struct found_runtimes *ret_runtimes)
{
    struct found_runtimes runtimes = {
        .list = memory_zalloc(RUNTIMES_MAX, sizeof(*runtimes.list)),
    };
    struct modules modules;
    struct processes processes;
    struct interpreters *interpreters = memory_zalloc(1, sizeof(*interpreters));
    interpreters_init(interpreters);
    modules_init(&modules);
    processes_init(&processes, &modules);
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        int pid = atoi(entry->d_name), r;
        if (pid <= 0 || pid == getpid() || (r = may_read(pid)) == -ESRCH)
            continue;
        runtimes.processes++;
        runtimes.unreadable += r < 0;
        if (r < 0)
            continue;
        struct process *process = processes_get(&processes, (uint32_t)pid);
        if (!process)
            break;
        process_catch_up(&processes, process);
        look_at(&runtimes, bpf, interpreters, process);
    }
    if (folder)
        closedir(folder);
    qsort(runtimes.list, runtimes.count, sizeof(*runtimes.list), compare);
    processes_release(&processes);
    modules_release(&modules);
    interpreters_release(interpreters);
    free(interpreters);
    *ret_runtimes = runtimes;
}

void found_runtimes_release(struct found_runtimes *runtimes)
{
    for (size_t i = 0; i < runtimes->count; i++)
        free(runtimes->list[i].binary);
    free(runtimes->list);
    *runtimes = (struct found_runtimes){0};
}
