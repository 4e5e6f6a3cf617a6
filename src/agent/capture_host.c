// SPDX-License-Identifier: Apache-2.0
// Opens the capture: of the whole host if permitted, else of the processes that run as the same
// user, with their children.

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define STACKS_BYTES (8u << 20)
#define PIDS_MAX_OWN 256
/* Limits of what is tracked: a busy build makes a thousand events and starts a hundred processes in
 * a second on each CPU; a process has a few hundred mappings of code at the very most. */
#define EVENTS_PER_CPU 3000
#define FORKS_PER_CPU 500
#define PROCESS_MAPPINGS_MAX 1024
#define MAPPINGS_MAX_ALL (128u << 10)
#define LOOKUP_SPAN_NS 10000000000
/* Of what the agent may cost. There is all to learn when it starts, and when programs do. */
#define LEARNING_SHARE 0.25
/* Likewise: beyond that, fewer threads are followed for wall-clock time. */
#define WAITS_SHARE 0.3
#define RSS_EARLY_NS 1000000000ll /* windows don't end on time to the nanosecond */
#define DESCRIPTORS_KEPT 128      /* for everything but perf events */

/* Processes of this user, the newest first, as far as descriptors go: each thread takes one for
 * each CPU. */
static size_t own_processes(pid_t *pids, size_t room)
{
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    size_t count = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    size_t left = files.rlim_cur > DESCRIPTORS_KEPT ? files.rlim_cur - DESCRIPTORS_KEPT : 0;
    left /= (size_t)MAX(sysconf(_SC_NPROCESSORS_CONF), 1);
    while (proc && (entry = readdir(proc)) && count < room) {
        uint64_t pid;
        struct stat found;
        char path[300];
        if (!text_to_u64(entry->d_name, strlen(entry->d_name), &pid) || (pid_t)pid == getpid() ||
            fstatat(dirfd(proc), entry->d_name, &found, 0) < 0 || found.st_uid != geteuid())
            continue;
        snprintf(path, sizeof(path), "/proc/%s/task", entry->d_name);
        /* A directory has two links, and one for each that is in it. */
        size_t threads = stat(path, &found) == 0 && found.st_nlink > 2 ? found.st_nlink - 2 : 0;
        if (!threads || threads > left)
            continue;
        left -= threads;
        pids[count++] = (pid_t)pid;
    }
    if (proc)
        closedir(proc);
    return count;
}

double agent_learning_share(const struct agent_settings *settings)
{
    double cpus = (double)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    return settings->budget_cpu_percent / 100 * cpus * LEARNING_SHARE;
}

int agent_capture_new(const struct agent_settings *settings, const struct sampling *sampling,
                      struct targets *targets, struct capture **ret_capture, struct error *error)
{
    pid_t pids[PIDS_MAX_OWN];
    unsigned cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    struct capture_options options = {
        .all = true,
        .frequency_hz = sampling->rate_hz,
        .modes = sampling_modes(sampling),
        .optional_modes = ~(unsigned)CAPTURE_CPU,
        .collect = {.waits_hz = sampling->wall_rate_hz,
                    .rss_interval_ns = settings->rss_interval_ns - RSS_EARLY_NS,
                    .cost_share = settings->budget_cpu_percent / 100 * WAITS_SHARE},
        .kernel = settings->kernel_frames,
        .user = true,
        .unwind_pool_bytes = settings->unwind_pool_bytes,
        .interpreter_frames = settings->interpreter_frames,
        .stacks_bytes = STACKS_BYTES,
        .learning_share = agent_learning_share(settings),
        .limits = {.events = EVENTS_PER_CPU * cpus,
                   .forks = FORKS_PER_CPU * cpus,
                   .process_mappings = PROCESS_MAPPINGS_MAX,
                   .mappings = MAPPINGS_MAX_ALL,
                   .lookup_ns = (int64_t)(agent_learning_share(settings) * LOOKUP_SPAN_NS)},
        .label = targets_label,
        .label_context = targets};
    int r = capture_new(&options, ret_capture, error);
    if (r != -EACCES && r != -EPERM)
        return r;
    struct error everything = *error;
    options.all = false;
    options.pids = pids;
    options.pid_count = own_processes(pids, PIDS_MAX_OWN);
    options.backend = CAPTURE_PERF;
    options.modes = CAPTURE_CPU;
    if (!options.pid_count)
        return r;
    r = capture_new(&options, ret_capture, error);
    if (r < 0)
        return r;
    log_warning("Sampling only %zu processes of this user and their children. %s",
                options.pid_count, everything.text);
    return 0;
}
