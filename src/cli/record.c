// SPDX-License-Identifier: Apache-2.0
// `assay record -- CMD`: runs a command and samples where its CPU time goes.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "capture/capture.h"
#include "capture/kernel_names.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/output.h"
#include "profile/naming.h"
#include "symbol/jit.h"
#include "symbol/naming.h"

#define READ_EVERY_MS 100
#define TIME_WORTH_NS 200000000 /* of a command, before it is compared with its samples */

struct record_options {
    uint64_t frequency_hz;
    const char *output, *format, *pids, *cgroup;
    double duration_s; /* 0: until the end */
    bool all, user, kernel, open, quiet;
};

/* Set by Ctrl-C when other processes than our child are recorded. */
static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* A command that has been started and waits. */
struct command_process {
    pid_t pid;
    int gate;     /* closing it lets the command go */
    int failure;  /* gives an errno when the command could not be run, else the end */
    bool running; /* it goes on after the recording */
};

static int start_command(char *const argv[], struct command_process *ret_process)
{
    int gate[2], failure[2];
    if (pipe2(gate, O_CLOEXEC) < 0)
        return -errno;
    int r = pipe2(failure, O_CLOEXEC) < 0 ? -errno : 0;
    pid_t pid = r < 0 ? -1 : fork();
    if (pid < 0)
        return r < 0 ? r : -errno;
    if (!pid) {
        char byte;
        close(gate[1]);
        while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
            ;
        execvp(argv[0], argv);
        int code = errno;
        file_write_all(failure[1], &code, sizeof(code));
        _exit(code == ENOENT ? 127 : 126);
    }
    close(gate[0]);
    close(failure[1]);
    *ret_process = (struct command_process){.pid = pid, .gate = gate[1], .failure = failure[0]};
    return 0;
}

static void show_progress(const struct capture *capture, int64_t started_ns)
{
    struct capture_figures figures = capture_figures(capture);
    fprintf(stderr, "\rrecording %.0f s: %llu samples of %llu process%s, %llu lost\033[K",
            (double)(monotonic_ns() - started_ns) / 1e9, (unsigned long long)figures.samples,
            (unsigned long long)figures.processes, figures.processes == 1 ? "" : "es",
            (unsigned long long)figures.lost);
    fflush(stderr);
}

/* What is recorded: our own child, or processes that are there already. */
struct target {
    struct command_process command; /* pid 0: none */
    pid_t *pids;
    size_t pid_count, pid_capacity;
    int status;     /* of the command */
    int64_t cpu_ns; /* that it and its children took, once it has ended */
};

/* Of all children that have ended and were waited for, and of theirs. */
static int64_t children_cpu_ns(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) < 0)
        return 0;
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000ll +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ll;
}

/* Until the target has ended, the time is over or Ctrl-C. What a command's children do after its
 * end is not waited for. */
static int sample_until_end(const struct record_options *options, struct target *target,
                            struct capture *capture, struct profile *profile, struct jit_names *jit,
                            struct error *error)
{
    bool terminal = isatty(STDERR_FILENO), ended = false;
    int64_t started_ns = monotonic_ns(), shown_ns = started_ns;
    int64_t limit_ns = options->duration_s > 0 ? (int64_t)(options->duration_s * 1e9) : INT64_MAX;
    uint32_t mappings_seen = 0;
    int r = 0;
    while (!ended && r >= 0) {
        pid_t child = target->command.pid;
        bool gone = child ? capture_child_ended(capture, child, &target->status) : r == 1;
        ended = gone || interrupted || monotonic_ns() - started_ns >= limit_ns;
        r = capture_read(capture, ended ? 0 : READ_EVERY_MS, ended, error);
        /* While the process is there: what its compilers write is found through it. */
        jit_names_load_mappings(jit, profile, mappings_seen);
        mappings_seen = profile->mapping_count;
        if (terminal && monotonic_ns() - shown_ns > 1000000000) {
            shown_ns = monotonic_ns();
            show_progress(capture, started_ns);
        }
        if (ended && !gone && child)
            target->command.running = true;
        if (gone && child)
            target->cpu_ns = children_cpu_ns();
    }
    if (terminal && shown_ns > started_ns)
        fprintf(stderr, "\r\033[K");
    profile_note_source(profile, clock_ns(CLOCK_REALTIME) - (monotonic_ns() - started_ns),
                        monotonic_ns() - started_ns);
    return r < 0 ? r : 0;
}

/* Without privilege each thread's time is counted from its start, so that short ones end before
 * their first sample: the kernel's own count of the time shows how much that is. */
static void say_what_was_missed(const struct capture_figures *figures, const struct target *target)
{
    if (target->cpu_ns < TIME_WORTH_NS || figures->cpu_ns >= target->cpu_ns / 10 * 9)
        return;
    fprintf(stderr,
            "assay: the samples stand for %.0f%% of the %.2f s of CPU time: threads and processes "
            "that are\nshorter than the time between samples are hardly seen this way\n",
            100.0 * (double)figures->cpu_ns / (double)target->cpu_ns, (double)target->cpu_ns / 1e9);
}

static void say_what_was_recorded(const struct capture *capture, const struct target *target,
                                  const char *output)
{
    struct capture_figures figures = capture_figures(capture);
    struct capture_loss losses[CAPTURE_LOSSES_MAX];
    fprintf(stderr, "assay: %llu samples of %llu process%s by %s",
            (unsigned long long)figures.samples, (unsigned long long)figures.processes,
            figures.processes == 1 ? "" : "es", capture_means_name(capture_means(capture)));
    if (figures.walks)
        fprintf(stderr, ", %.4g%% of stacks whole",
                100.0 * (double)figures.ends[UNWIND_END_COMPLETE] / (double)figures.walks);
    fprintf(stderr, ", %llu lost, in %s\n", (unsigned long long)figures.lost, output);
    const char *between = "assay: walks that ended early: ";
    for (int end = 0; end < UNWIND_END_KINDS; end++)
        if (end != UNWIND_END_COMPLETE && figures.ends[end]) {
            fprintf(stderr, "%s%llu %s", between, (unsigned long long)figures.ends[end],
                    unwind_end_name((enum unwind_end)end));
            between = ", ";
        }
    if (*between == ',')
        fprintf(stderr, "\n");
    if (figures.checked)
        fprintf(stderr, "assay: %llu walks compared, %llu differ\n",
                (unsigned long long)figures.checked, (unsigned long long)figures.different);
    say_what_was_missed(&figures, target);
    size_t count = capture_losses(capture, losses);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "assay: %llu %s\n", (unsigned long long)losses[i].count, losses[i].what);
}

static int write_recording(const struct record_options *options, const struct format *format,
                           const struct profile *addresses, struct capture *capture,
                           struct jit_names *jit, const char *command)
{
    _cleanup_profile_ struct profile named;
    struct error error = {0};
    struct symbolizer *symbolizer = symbolizer_new();
    struct kernel_names *kernel = kernel_names_new();
    profile_init(&named, format->detail);
    if (kernel)
        symbolizer_ask_kernel(symbolizer, kernel_names_find, kernel);
    jit_names_load_mappings(jit, addresses, 0);
    symbolizer_set_jit(symbolizer, jit);
    int r = symbol_name_profile(symbolizer, addresses, &named, capture_locate, capture, &error);
    if (!r)
        r = format_write_file(options->output, format, &named,
                              &(struct write_options){.type = -1, .title = path_base(command)},
                              &error);
    symbolizer_free(symbolizer);
    kernel_names_free(kernel);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

static void add_pid(struct target *target, pid_t pid)
{
    array_reserve(target->pids, target->pid_capacity, target->pid_count + 1);
    target->pids[target->pid_count++] = pid;
}

static int open_target(const struct record_options *options, char *const argv[],
                       struct target *target, struct error *error)
{
    if (options->all || options->cgroup)
        return 0;
    if (!options->pids) {
        int r = start_command(argv, &target->command);
        if (r < 0)
            return error_set_errno(error, r, "%s cannot be started", argv[0]);
        add_pid(target, target->command.pid);
        return 0;
    }
    for (const char *at = options->pids; *at;) {
        size_t length = strcspn(at, ",");
        uint64_t pid;
        if (!text_to_u64(at, length, &pid) || !pid || pid > INT32_MAX)
            return error_set(error, -EINVAL, "--pid wants process ids, not \"%s\".", options->pids);
        add_pid(target, (pid_t)pid);
        at += length + (at[length] == ',');
    }
    return 0;
}

/* Ctrl-C reaches a command by itself, and we end when it does; other processes don't notice. */
static void take_signals(const struct target *target)
{
    struct sigaction action = {.sa_handler = target->command.pid ? SIG_IGN : interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGQUIT, &action, NULL);
    if (!target->command.pid)
        sigaction(SIGTERM, &action, NULL);
}

/* 1 and a sentence when the command could not even be run. */
static bool command_failed(const struct target *target, const char *name)
{
    int code = 0;
    struct error error = {0};
    if (!target->command.pid || read(target->command.failure, &code, sizeof(code)) != sizeof(code))
        return false;
    error_set_errno(&error, -code, "%s cannot be run", name);
    fail(&error);
    return true;
}

static int exit_code(struct target *target)
{
    if (!target->command.pid)
        return EXIT_FINE;
    if (target->command.running)
        waitpid(target->command.pid, &target->status, 0);
    int status = target->status;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In the user's browser, if there is one. */
static void open_page(const char *path)
{
    const char *const argv[] = {"xdg-open", path, NULL};
    _cleanup_buffer_ struct buffer output = {0};
    struct error error = {0};
    int status = 0;
    if (subprocess_run(argv, &(struct subprocess_options){.timeout_ms = 10000}, &output, &status,
                       &error) < 0 ||
        status)
        log_warning("No browser could be opened (by xdg-open); the page is %s.", path);
}

/* With the target and the capture open: samples, names, writes. Returns an exit code. */
static int record_target(const struct record_options *options, const struct format *format,
                         struct target *target, struct capture *capture, struct jit_names *jit,
                         const char *name)
{
    _cleanup_profile_ struct profile addresses;
    struct error error = {0};
    profile_init(&addresses, format->detail | PROFILE_ADDRESSES);
    capture_into(capture, &addresses);
    take_signals(target);
    if (target->command.pid)
        close(target->command.gate);
    int r = sample_until_end(options, target, capture, &addresses, jit, &error);
    if (command_failed(target, name))
        return exit_code(target);
    if (r < 0)
        return fail(&error);
    r = write_recording(options, format, &addresses, capture, jit, name);
    if (r)
        return r;
    if (!options->quiet)
        say_what_was_recorded(capture, target, options->output);
    if (options->open)
        open_page(options->output);
    return exit_code(target);
}

/* For tests, and for who wants to compare. */
static enum capture_means wanted_means(void)
{
    const char *name = getenv("ASSAY_SAMPLER");
    return !name                     ? CAPTURE_ANY
           : !strcmp(name, "bpf")    ? CAPTURE_BPF
           : !strcmp(name, "perf")   ? CAPTURE_PERF
           : !strcmp(name, "ptrace") ? CAPTURE_PTRACE
                                     : CAPTURE_ANY;
}

static int record(const struct record_options *options, const struct format *format,
                  char *const argv[])
{
    struct target target = {0};
    struct capture *capture = NULL;
    struct error error = {0};
    int r = open_target(options, argv, &target, &error);
    struct capture_options wanted = {
        .all = options->all,
        .cgroup = options->cgroup,
        .pids = target.pids,
        .pid_count = target.pid_count,
        .at_exec = target.command.pid != 0,
        .frequency_hz = (unsigned)options->frequency_hz,
        .kernel = !options->user,
        .user = !options->kernel,
        .means = wanted_means(),
        .check = getenv("ASSAY_CHECK_WALKS") != NULL,
        .root_by_process =
            (options->all || options->cgroup) && (format == &format_html || format == &format_svg),
    };
    if (!r)
        r = capture_new(&wanted, &capture, &error);
    if (r < 0) {
        if (target.command.pid) {
            kill(target.command.pid, SIGKILL);
            waitpid(target.command.pid, NULL, 0);
        }
        r = fail(&error);
    } else {
        if (capture_shortcoming(capture) && !options->quiet)
            log_warning("%s", capture_shortcoming(capture));
        const char *name = options->all      ? "this machine"
                           : options->cgroup ? options->cgroup
                           : options->pids   ? options->pids
                                             : argv[0];
        struct jit_names *jit = jit_names_new();
        r = record_target(options, format, &target, capture, jit, name);
        jit_names_free(jit);
    }
    capture_free(capture);
    free(target.pids);
    return r;
}

int command_record(int argc, char **argv)
{
    struct record_options options = {.frequency_hz = 99};
    const struct option own[] = {
        {"Recording", .kind = OPTION_GROUP},
        {"all", 'a', OPTION_FLAG, NULL, "everything on this machine, instead of a command",
         &options.all},
        {"pid", 'p', OPTION_TEXT, "PID[,PID]", "processes that run already, instead of a command",
         &options.pids},
        {"cgroup", 0, OPTION_TEXT, "PATH", "all in this cgroup and below it, instead of a command",
         &options.cgroup},
        {"duration", 'd', OPTION_NUMBER, "SECONDS", "stop recording after that time",
         &options.duration_s},
        {"frequency", 'F', OPTION_COUNT, "HZ", "samples per second of CPU time (99)",
         &options.frequency_hz},
        {"user", 0, OPTION_FLAG, NULL, "no kernel frames", &options.user},
        {"kernel", 0, OPTION_FLAG, NULL, "kernel frames only", &options.kernel},
        {"output", 'o', OPTION_TEXT, "FILE", "the file to write (assay.pb.gz)", &options.output},
        {"to", 0, OPTION_TEXT, "NAME", "write this format, whatever FILE's extension says",
         &options.format},
        {"open", 0, OPTION_FLAG, NULL, "show FILE (assay.html) in a browser", &options.open},
        {"quiet", 'q', OPTION_FLAG, NULL, "say nothing at the end", &options.quiet},
        {0}};
    struct command_line line = {
        .command = "record",
        .arguments = "-- CMD [ARG...]",
        .summary =
            "Runs a command, or looks at processes that run already, and samples the CPU time\n"
            "of them and of all that they start, with whole call stacks, also of programs\n"
            "without frame pointers. Ctrl-C ends it and writes what there is.",
        .notes = "The exit code is the command's own. FILE's extension chooses the format, as for\n"
                 "`assay convert`.",
        .options = own,
        .most = -1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if ((line.count > 0) + !!options.pids + !!options.cgroup + options.all != 1)
        return options_wrong("record",
                             "say one of -- CMD [ARG...], --pid PID, --cgroup PATH and --all.");
    if (options.user && options.kernel)
        return options_wrong("record", "--user and --kernel exclude each other.");
    if (options.duration_s < 0)
        return options_wrong("record", "--duration is a number of seconds.");
    if (options.frequency_hz < 1 || options.frequency_hz > 10000)
        return options_wrong("record", "--frequency is from 1 to 10000.");
    if (!options.output)
        options.output = options.open ? "assay.html" : "assay.pb.gz";
    const struct format *format;
    r = output_format("record", options.format, options.output, &format);
    if (r)
        return r;
    if (options.open && format != &format_html && format != &format_svg)
        return options_wrong("record", "--open shows .html and .svg.");
    line.values[line.count] = NULL;
    return record(&options, format, (char *const *)line.values);
}
