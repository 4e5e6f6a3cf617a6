// SPDX-License-Identifier: Apache-2.0
// The list of what can be done here: see abilities.h.

#include "capture/abilities.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/abilities_try.h"
#include "capture/bpf/sampler.h"
#include "capture/ptrace/sampler.h"
#include "capture/ptrace/stopped.h"
#include "capture/record/rowcache.h"
#include "capture/wall/wall.h"

#define SYSCTL "/proc/sys/kernel/"
#define FIX_CAPABILITIES                                                                           \
    "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep $(command -v assay)"

/* Results of the trials; codes are 0 or negative. */
struct trials {
    uint64_t capabilities;
    int perf_own, perf_all, perf_kernel, perf_cycles, perf_ring;
    int bpf_program, bpf_ring, bpf_own, bpf_all, bpf_waits;
    struct error bpf_error, waits_error;
    int ptrace_child, ptrace_other;
    struct error ptrace_error;
    int kernel_symbols;
};

static void try_all(struct trials *trials)
{
    *trials = (struct trials){
        .capabilities = effective_capabilities(),
        .perf_own = try_perf_event(&(struct perf_trial){0}),
        .perf_all = try_perf_event(&(struct perf_trial){.everybody = true}),
        .perf_kernel = try_perf_event(&(struct perf_trial){.kernel = true}),
        .perf_cycles = try_perf_event(&(struct perf_trial){.cycles = true}),
        .perf_ring = try_perf_event(&(struct perf_trial){.ring = true}),
        .bpf_program = try_bpf_program(),
        .bpf_ring = try_bpf_ring_buffer(),
        .kernel_symbols = try_kernel_symbols(),
    };
    trials->bpf_own = try_bpf_sampler(false, &trials->bpf_error);
    trials->bpf_all =
        trials->bpf_own < 0 ? trials->bpf_own : try_bpf_sampler(true, &trials->bpf_error);
    trials->bpf_waits = trials->bpf_all < 0 ? trials->bpf_all : try_bpf_waits(&trials->waits_error);
    trials->ptrace_child = try_ptrace_child(&trials->ptrace_error);
    trials->ptrace_other = try_ptrace_other();
}

static bool has_capability(const struct trials *trials, unsigned capability)
{
    return trials->capabilities >> capability & 1;
}

const char *ability_state_name(enum ability_state state)
{
    static const char *const names[] = {
        [ABILITY_OK] = "ok", [ABILITY_LIMITED] = "limited", [ABILITY_NO] = "no"};
    return names[state];
}

const struct ability *abilities_get(const struct abilities *abilities, const char *name)
{
    for (size_t i = 0; i < abilities->count; i++)
        if (!strcmp(abilities->list[i].name, name))
            return &abilities->list[i];
    return NULL;
}

/* A new row; what it means is said next. */
static struct ability *add(struct abilities *abilities, const char *name, enum ability_state state,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
static struct ability *add(struct abilities *abilities, const char *name, enum ability_state state,
                           const char *format, ...)
{
    struct ability *ability = &abilities->list[MIN(abilities->count, ABILITIES_MAX - 1u)];
    abilities->count = MIN(abilities->count + 1, (size_t)ABILITIES_MAX);
    *ability = (struct ability){.name = name, .state = state};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ability->found, sizeof(ability->found), format, arguments);
    va_end(arguments);
    return ability;
}

static void means(struct ability *ability, const char *meaning, const char *fix)
{
    snprintf(ability->meaning, sizeof(ability->meaning), "%s", meaning);
    snprintf(ability->fix, sizeof(ability->fix), "%s", fix);
}

static enum ability_state ok_or(int code, enum ability_state otherwise)
{
    return code < 0 ? otherwise : ABILITY_OK;
}

/* "works", or the reason why not. */
static const char *outcome(int code)
{
    return code < 0 ? strerror(-code) : "works";
}

/* ---- the kernel and the user ---- */

static void find_kernel(struct abilities *abilities)
{
    struct utsname name = {0};
    uname(&name);
    bool known = !strcmp(name.machine, "x86_64");
    means(add(abilities, "kernel", known ? ABILITY_OK : ABILITY_NO, "%.60s on %.30s", name.release,
              name.machine),
          known ? "Stacks of programs without frame pointers can be walked on this architecture."
                : "Stacks can be walked on x86_64 only: recording is not possible here.",
          "");
}

static void find_user(struct abilities *abilities, const struct trials *trials)
{
    static const struct {
        unsigned capability;
        const char *name;
    } wanted[] = {{CAP_BPF, "bpf"},
                  {CAP_PERFMON, "perfmon"},
                  {CAP_SYS_PTRACE, "sys_ptrace"},
                  {CAP_DAC_READ_SEARCH, "dac_read_search"}};
    char found[ABILITY_TEXT_BYTES] = "";
    size_t count = 0, length = 0;
    bool admin = has_capability(trials, CAP_SYS_ADMIN);
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        bool there = has_capability(trials, wanted[i].capability) || (admin && i < 2);
        count += there;
        if (there && length < sizeof(found))
            length += (size_t)snprintf(found + length, sizeof(found) - length, "%s%s",
                                       length ? ", " : "", wanted[i].name);
    }
    bool all = count == ARRAY_LENGTH(wanted);
    means(add(abilities, "user", all ? ABILITY_OK : ABILITY_LIMITED, "uid %u with %s%s",
              (unsigned)geteuid(), count ? "the capabilities " : "no relevant capability", found),
          all ? "Everything on the machine can be recorded, for all users."
              : "Processes of other users are visible only in part.",
          all ? "" : FIX_CAPABILITIES);
}

static void find_lockdown(struct abilities *abilities)
{
    char line[128];
    line_in_file("/sys/kernel/security/lockdown", line, sizeof(line));
    bool secret = strstr(line, "[confidentiality]");
    bool none = !line[0] || strstr(line, "[none]");
    means(add(abilities, "lockdown", secret ? ABILITY_NO : ABILITY_OK, "%s",
              none     ? "none"
              : secret ? "confidentiality"
                       : "integrity"),
          secret ? "Lockdown: the kernel prevents BPF programs and perf events from reading "
                   "memory, even for root."
                 : "The kernel permits BPF programs and perf events to read memory.",
          secret ? "reboot without lockdown=confidentiality on the kernel command line" : "");
}

static void find_clock(struct abilities *abilities)
{
    char line[64];
    line_in_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", line,
                 sizeof(line));
    bool slow = !strcmp(line, "hpet") || !strcmp(line, "acpi_pm") || !strcmp(line, "jiffies");
    means(add(abilities, "clock", slow ? ABILITY_LIMITED : ABILITY_OK, "%s",
              line[0] ? line : "unknown"),
          slow ? "Reading the clock is slow on this machine: each sample costs more."
               : "Reading the clock is fast.",
          slow ? "echo tsc | sudo tee "
                 "/sys/devices/system/clocksource/clocksource0/current_clocksource"
               : "");
}

/* ---- BPF ---- */

static void find_bpf(struct abilities *abilities, const struct trials *trials)
{
    bool works = !trials->bpf_program && !trials->bpf_ring;
    int code = trials->bpf_program ? trials->bpf_program : trials->bpf_ring;
    bool refused = code == -EPERM || code == -EACCES;
    means(
        add(abilities, "bpf", works ? ABILITY_OK : ABILITY_NO,
            "programs: %s; ring buffers: %s; unprivileged_bpf_disabled is %ld",
            outcome(trials->bpf_program), outcome(trials->bpf_ring),
            number_in_file(SYSCTL "unprivileged_bpf_disabled", -1)),
        works ? "BPF programs can be loaded."
        : refused
            ? "Permission denied: cannot load BPF programs as this user, or in this container."
            : "This kernel lacks features that BPF programs need: assay uses perf events instead.",
        works || !refused ? "" : FIX_CAPABILITIES);

    bool btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
    means(add(abilities, "btf", btf ? ABILITY_OK : ABILITY_NO, "/sys/kernel/btf/vmlinux %s",
              btf ? "is readable" : "is missing"),
          btf ? "The kernel has type information, so that BPF programs work across kernel versions."
              : "Without it BPF programs can't be loaded: assay uses perf events instead.",
          btf ? "" : "use a kernel built with CONFIG_DEBUG_INFO_BTF=y");

    refused = trials->bpf_all == -EPERM || trials->bpf_all == -EACCES;
    means(add(abilities, "bpf-sampler", ok_or(trials->bpf_all, ABILITY_NO), "%s",
              refused           ? outcome(trials->bpf_all)
              : trials->bpf_all ? trials->bpf_error.text
                                : "loaded, attached and removed"),
          trials->bpf_all
              ? "The kernel copies stacks, which costs more than walking them in the kernel."
              : "Stacks are walked and added up in the kernel, at the lowest cost.",
          refused ? FIX_CAPABILITIES : "");
}

static void find_waits(struct abilities *abilities, const struct trials *trials)
{
    bool works = trials->bpf_waits == 0;
    bool late =
        works && kernel_has_tracepoint(WALL_LATE_HOOK) && !bpf_sampler_without(WALL_LATE_HOOK);
    bool locks = works && kernel_has_tracepoint("contention_begin");
    means(
        add(abilities, "wall-time",
            !works ? ABILITY_NO
            : late ? ABILITY_OK
                   : ABILITY_LIMITED,
            "%s",
            !works ? (trials->bpf_all ? "requires bpf-sampler" : trials->waits_error.text)
            : late ? (locks ? "behind context switches, with locks of the kernel"
                            : "behind context switches, without locks of the kernel")
                   : (locks ? "before context switches, with locks of the kernel"
                            : "before context switches, without locks of the kernel")),
        !works
            ? "The modes of waits (wall, lock, io ...) and `assay triage` can't record; the agent "
              "samples CPU time alone."
        : late ? "Waits are recorded by state, with the stacks of long waits."
               : "Waits are recorded by state; long waits may lack their stack (Linux 6.16 has "
                 "sched_exit_tp).",
        "");
}

/* ---- perf events ---- */

static void find_perf(struct abilities *abilities, const struct trials *trials)
{
    long paranoid = number_in_file(SYSCTL "perf_event_paranoid", -100);
    char level[64] = "perf_event_paranoid is missing";
    if (paranoid > -100)
        snprintf(level, sizeof(level), "kernel.perf_event_paranoid is %ld", paranoid);
    bool missing = trials->perf_own == -ENOSYS || trials->perf_own == -ENOENT;
    means(
        add(abilities, "perf-events", ok_or(trials->perf_own, ABILITY_NO), "%s; %s",
            outcome(trials->perf_own), level),
        !trials->perf_own ? "You can record your own processes."
        : missing
            ? "This kernel has no perf events: commands are recorded with ptrace, which is slower."
            : "Commands are recorded with ptrace, which is slower; running processes can't be "
              "recorded.",
        !trials->perf_own || missing ? ""
        : paranoid <= 2              ? "allow perf_event_open in the container's seccomp profile"
                                     : "sudo sysctl kernel.perf_event_paranoid=1");
    /* Without root, /proc doesn't show what other users' processes have mapped. */
    bool all = !trials->perf_all && geteuid() == 0;
    means(add(abilities, "perf-machine", all ? ABILITY_OK : ABILITY_LIMITED, "%s",
              outcome(trials->perf_all)),
          all ? "`assay record -a` and `assay top` work for the whole machine."
          : !trials->perf_all
              ? "`assay record -a` and `assay top` sample the whole machine, but without stacks of "
                "other users' processes."
              : "`assay record -a` and `assay top` can't sample other users' processes.",
          all || missing ? "" : "run assay as root");
    means(add(abilities, "kernel-frames", ok_or(trials->perf_kernel, ABILITY_LIMITED), "%s",
              outcome(trials->perf_kernel)),
          trials->perf_kernel ? "Stacks end at the call into the kernel."
                              : "Stacks include kernel frames.",
          !trials->perf_kernel || missing ? "" : "sudo sysctl kernel.perf_event_paranoid=1");
    bool refused = trials->perf_cycles == -EACCES || trials->perf_cycles == -EPERM;
    means(add(abilities, "cycles", ok_or(trials->perf_cycles, ABILITY_LIMITED), "%s",
              trials->perf_cycles && !refused ? "no hardware counters"
                                              : outcome(trials->perf_cycles)),
          trials->perf_cycles ? "Samples use the CPU clock: code that runs with interrupts "
                                "disabled is attributed to its end."
                              : "Samples use the hardware's cycle counter.",
          "");
}

static void find_limits(struct abilities *abilities, const struct trials *trials)
{
    struct rlimit files = {0}, locked = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_MEMLOCK, &locked);
    long budget = number_in_file(SYSCTL "perf_event_mlock_kb", -1);
    bool refused = trials->perf_ring < 0 && !trials->perf_own;
    char lock[32] = "unlimited";
    if (locked.rlim_cur != RLIM_INFINITY)
        snprintf(lock, sizeof(lock), "%llu KiB", (unsigned long long)locked.rlim_cur >> 10);
    means(add(abilities, "locked-memory", refused ? ABILITY_LIMITED : ABILITY_OK,
              "perf_event_mlock_kb is %ld; RLIMIT_MEMLOCK is %s", budget, lock),
          refused ? "The buffers of perf events don't fit the limit: perf events can't be used."
                  : "The buffers of recordings fit the limit.",
          refused ? "sudo sysctl kernel.perf_event_mlock_kb=516" : "");
    bool few = files.rlim_cur < 4096 && files.rlim_cur != RLIM_INFINITY;
    means(add(abilities, "files", few ? ABILITY_LIMITED : ABILITY_OK, "RLIMIT_NOFILE is %llu",
              (unsigned long long)files.rlim_cur),
          few ? "A process with many threads needs an event for each, which can exceed this limit."
              : "The limit allows an event for every thread of large processes.",
          few ? "ulimit -n 65536" : "");
}

/* ---- other processes ---- */

static void find_ptrace(struct abilities *abilities, const struct trials *trials)
{
    int scope = ptrace_scope();
    means(add(abilities, "ptrace",
              trials->ptrace_child   ? ABILITY_NO
              : trials->ptrace_other ? ABILITY_LIMITED
                                     : ABILITY_OK,
              "own children: %s; others: %s; kernel.yama.ptrace_scope is %d",
              outcome(trials->ptrace_child), outcome(trials->ptrace_other), scope),
          trials->ptrace_child   ? "Neither `assay stacks` nor recordings without perf events work."
          : trials->ptrace_other ? "`assay stacks` doesn't work for running processes."
                                 : "`assay stacks` and recordings without perf events work.",
          !trials->ptrace_other ? ""
          : scope >= 3          ? "set kernel.yama.ptrace_scope=0 in /etc/sysctl.d and reboot"
          : scope               ? "sudo sysctl kernel.yama.ptrace_scope=0"
                                : "run the container with --cap-add=SYS_PTRACE");
}

static void find_kernel_symbols(struct abilities *abilities, const struct trials *trials)
{
    long restricted = number_in_file(SYSCTL "kptr_restrict", -1);
    means(add(abilities, "kernel-symbols", ok_or(trials->kernel_symbols, ABILITY_LIMITED),
              "/proc/kallsyms %s; kernel.kptr_restrict is %ld",
              trials->kernel_symbols ? "hides its addresses" : "is readable", restricted),
          trials->kernel_symbols ? "Kernel frames have no names." : "Kernel frames have names.",
          !trials->kernel_symbols ? ""
          : restricted > 0 ? "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
                           : "sudo sysctl kernel.perf_event_paranoid=1");
}

/* The options of a mount and where it is, by its type. */
static bool find_mount(const char *type, const char *place, char *ret_place, char *ret_options,
                       size_t length)
{
    char line[4096], at[512], found[64], options[1024];
    bool there = false;
    FILE *file = fopen("/proc/self/mounts", "re");
    while (file && !there && fgets(line, sizeof(line), file))
        if (sscanf(line, "%*s %511s %63s %1023s", at, found, options) == 3 &&
            !strcmp(found, type) && (!place || !strcmp(at, place))) {
            there = true;
            snprintf(ret_place, length, "%.200s", at);
            snprintf(ret_options, length, "%.200s", options);
        }
    if (file)
        fclose(file);
    return there;
}

static void find_mounts(struct abilities *abilities)
{
    char place[ABILITY_TEXT_BYTES] = "", options[ABILITY_TEXT_BYTES] = "";
    find_mount("proc", "/proc", place, options, sizeof(place));
    bool hidden = access("/proc/1/stat", R_OK) < 0;
    means(add(abilities, "proc", hidden ? ABILITY_LIMITED : ABILITY_OK, "%s%s",
              hidden ? "hides processes" : "shows all processes",
              strstr(options, "hidepid") ? " (mounted with hidepid)" : ""),
          hidden ? "Binaries and names of other users' processes can't be found."
                 : "Binaries of all processes can be found, if they are readable.",
          hidden ? "sudo mount -o remount,hidepid=0 /proc" : "");

    bool there = find_mount("cgroup2", NULL, place, options, sizeof(place));
    means(add(abilities, "cgroups", there ? ABILITY_OK : ABILITY_LIMITED, "%s%s",
              there ? "cgroup 2 at " : "cgroup 2 is not mounted", there ? place : ""),
          there ? "You can record one cgroup, such as a service or a container."
                : "Recording one cgroup is not possible.",
          there ? "" : "sudo mount -t cgroup2 none /sys/fs/cgroup");

    bool uprobes = access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
    there = find_mount("tracefs", NULL, place, options, sizeof(place));
    means(add(abilities, "tracefs", there ? ABILITY_OK : ABILITY_LIMITED, "%s; uprobes: %s",
              !there                            ? "not mounted"
              : access(place, R_OK | X_OK) == 0 ? "is readable"
                                                : "mounted, for root",
              uprobes ? "there" : "missing"),
          "Heap profiles of running processes (`record --mode heap -p`) use uprobes.",
          there ? "" : "sudo mount -t tracefs tracefs /sys/kernel/tracing");
}

static void find_container(struct abilities *abilities)
{
    /* The number of the first namespace is the same in all kernels. */
    char link[64] = "", engine[64];
    ssize_t length = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
    link[MAX(length, 0)] = '\0';
    bool initial = !strcmp(link, "pid:[4026531836]");
    line_in_file("/run/systemd/container", engine, sizeof(engine));
    if (!engine[0])
        snprintf(engine, sizeof(engine), "%s",
                 access("/.dockerenv", F_OK) == 0            ? "docker"
                 : access("/run/.containerenv", F_OK) == 0   ? "podman"
                 : getenv("KUBERNETES_SERVICE_HOST") != NULL ? "kubernetes"
                                                             : "");
    means(add(abilities, "namespace", initial ? ABILITY_OK : ABILITY_LIMITED,
              "%s pid namespace%s%.40s", initial ? "the first" : "a nested",
              engine[0] ? "; container: " : "", engine),
          initial ? "Process ids are those of the machine."
                  : "Processes outside this container have no ids here: `-a` can't name them.",
          initial ? "" : "run the container with --pid=host");
}

/* ---- names and files ---- */

static bool has_debug_files(void)
{
    DIR *folder = opendir("/usr/lib/debug/.build-id");
    struct dirent *entry;
    bool found = false;
    while (folder && !found && (entry = readdir(folder)))
        found = entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return found;
}

static void find_debug_info(struct abilities *abilities)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    bool server = urls && *urls, files = has_debug_files();
    means(add(abilities, "debug-info", server || files ? ABILITY_OK : ABILITY_LIMITED,
              "/usr/lib/debug/.build-id: %s; DEBUGINFOD_URLS: %s", files ? "there" : "empty",
              server ? "set" : "not set"),
          server || files
              ? "Functions of stripped binaries have names if their debug files are found."
              : "Functions of stripped binaries have no names, except exported ones.",
          server || files ? "" : "sudo apt-get install libc6-dbg");
}

static void find_cache(struct abilities *abilities)
{
    struct row_cache cache;
    row_cache_init(&cache, NULL);
    char path[64], folder[ABILITY_TEXT_BYTES - 32] = "no private directory";
    bool usable = false;
    if (cache.folder >= 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", cache.folder);
        ssize_t length = readlink(path, folder, sizeof(folder) - 1);
        folder[MAX(length, 0)] = '\0';
        usable = faccessat(cache.folder, ".", W_OK | X_OK, AT_EACCESS) == 0;
    }
    row_cache_release(&cache);
    means(add(abilities, "cache", usable ? ABILITY_OK : ABILITY_LIMITED, "%s", folder),
          usable ? "Unwind tables of large binaries are compiled once and cached."
                 : "Unwind tables of large binaries are compiled at each start.",
          usable ? "" : "export ASSAY_CACHE=$(mktemp -d)");
}

/* ---- what works ---- */

static void set_command(struct abilities *abilities, int command, const char *name, bool works,
                        const char *reason)
{
    abilities->commands[command] = (struct ability_command){.command = name, .works = works};
    snprintf(abilities->commands[command].means, ABILITY_TEXT_BYTES, "%s", reason);
}

static void sum_up(struct abilities *abilities, const struct trials *trials)
{
    bool perf = !trials->perf_own && !trials->perf_ring;
    const char *own = !trials->bpf_own       ? "by BPF, with kernel frames"
                      : !perf                ? "by ptrace, at most 49 samples a second"
                      : !trials->perf_kernel ? "by perf events, with kernel frames"
                                             : "by perf events, without kernel frames";
    bool command = !trials->bpf_own || perf || !trials->ptrace_child;
    set_command(abilities, ABILITY_RECORD_COMMAND, "record -- CMD", command,
                command ? own : "neither BPF nor perf events nor ptrace are permitted");
    bool pid = !trials->bpf_own || perf;
    set_command(abilities, ABILITY_RECORD_PID, "record -p PID", pid,
                pid ? own : "neither BPF nor perf events are permitted");
    bool all = !trials->bpf_all || (perf && !trials->perf_all);
    set_command(abilities, ABILITY_RECORD_ALL, "record -a", all,
                !trials->bpf_all        ? own
                : all && geteuid() == 0 ? "by perf events"
                : all                   ? "by perf events, without stacks of other users' processes"
                                        : "no permission to sample the whole machine");
    set_command(abilities, ABILITY_STACKS, "stacks -p PID", !trials->ptrace_other,
                !trials->ptrace_other ? "by ptrace" : "no permission to trace running processes");
}

void abilities_find(struct abilities *ret_abilities)
{
    struct abilities *abilities = ret_abilities;
    struct trials trials;
    *abilities = (struct abilities){0};
    try_all(&trials);
    find_kernel(abilities);
    find_user(abilities, &trials);
    find_bpf(abilities, &trials);
    find_waits(abilities, &trials);
    find_perf(abilities, &trials);
    find_ptrace(abilities, &trials);
    find_kernel_symbols(abilities, &trials);
    find_mounts(abilities);
    find_container(abilities);
    find_lockdown(abilities);
    find_limits(abilities, &trials);
    find_debug_info(abilities);
    find_cache(abilities);
    find_clock(abilities);
    sum_up(abilities, &trials);
}
