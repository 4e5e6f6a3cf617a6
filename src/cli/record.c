// SPDX-License-Identifier: Apache-2.0
// `assay record -- CMD`: runs a command and samples where its CPU time goes.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "capture/recorder.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/output.h"
#include "profile/naming.h"
#include "profile/rename.h"
#include "symbol/symbolizer.h"

#define READ_EVERY_MS 100
#define STACK_BYTES 32768 /* of each sample; deeper stacks are cut and say so */

struct record_options {
    uint64_t frequency_hz;
    const char *output, *format, *pids;
    double duration_s; /* 0: until the end */
    bool all, user, quiet;
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

static void show_progress(const struct recorder *recorder, int64_t started_ns)
{
    fprintf(stderr, "\rrecording %.0f s: %llu samples of %zu processes, %llu lost\033[K",
            (double)(monotonic_ns() - started_ns) / 1e9, (unsigned long long)recorder->samples,
            recorder->processes.count, (unsigned long long)recorder->lost);
    fflush(stderr);
}

/* What is recorded: our own child, or processes that are there already. */
struct target {
    struct command_process command; /* pid 0: none */
    pid_t *threads;
    size_t thread_count, thread_capacity;
    int status; /* of the command */
};

static bool target_has_ended(struct target *target)
{
    if (target->command.pid)
        return waitpid(target->command.pid, &target->status, WNOHANG) == target->command.pid;
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i] == -1 || kill(target->threads[i], 0) == 0 || errno == EPERM)
            return false;
    return true;
}

/* Until the target has ended, the time is over or Ctrl-C. What a command's children do after its
 * end is not waited for. */
static int sample_until_end(const struct record_options *options, struct target *target,
                            struct perf_sampler *sampler, struct recorder *recorder)
{
    bool terminal = isatty(STDERR_FILENO), ended = false;
    int64_t started_ns = monotonic_ns(), shown_ns = started_ns;
    int64_t limit_ns = options->duration_s > 0 ? (int64_t)(options->duration_s * 1e9) : INT64_MAX;
    int r = 0;
    while (!ended && r >= 0) {
        bool gone = target_has_ended(target);
        ended = gone || interrupted || monotonic_ns() - started_ns >= limit_ns;
        r = perf_sampler_read(sampler, ended ? 0 : READ_EVERY_MS, ended, recorder_take, recorder);
        /* Rings without processes say "hang-up" at once: don't spin until the end. */
        if (r == 1)
            usleep(10000);
        if (terminal && monotonic_ns() - shown_ns > 1000000000) {
            shown_ns = monotonic_ns();
            show_progress(recorder, started_ns);
        }
        if (ended && !gone && target->command.pid)
            target->command.running = true;
    }
    if (terminal && shown_ns > started_ns)
        fprintf(stderr, "\r\033[K");
    profile_note_source(recorder->profile, started_ns + recorder->epoch_ns,
                        monotonic_ns() - started_ns);
    return r < 0 ? r : 0;
}

static void name_frame(void *context, const struct profile *from, const struct profile_frame *frame,
                       struct profile *to, struct profile_frame *renamed)
{
    struct symbolizer *symbolizer = context;
    const struct profile_mapping *mapping = &from->mappings[frame->mapping];
    struct symbol symbol = {0};
    bool found =
        frame->kind == FRAME_KERNEL
            ? symbolizer_find_kernel(symbolizer, frame->address, &symbol)
            : symbolizer_find(symbolizer, profile_text(from, mapping->file),
                              profile_text(from, mapping->build_id), frame->address, &symbol);
    if (!found)
        return;
    if (!symbol.name) {
        renamed->address -= symbol.distance; /* a function without a name is where it starts */
        return;
    }
    struct profile_function function = {.name = profile_cstring(to, symbol.name)};
    if (symbol.system_name)
        function.system_name = profile_cstring(to, symbol.system_name);
    renamed->function = profile_function(to, &function);
}

static void say_what_was_recorded(const struct recorder *recorder, const char *output)
{
    uint64_t whole = recorder->ends[UNWIND_END_COMPLETE];
    size_t processes = recorder->processes.count;
    fprintf(stderr, "assay: %llu samples of %zu process%s", (unsigned long long)recorder->samples,
            processes, processes == 1 ? "" : "es");
    if (recorder->walks)
        fprintf(stderr, ", %.4g%% of stacks whole",
                100.0 * (double)whole / (double)recorder->walks);
    fprintf(stderr, ", %llu lost, in %s\n", (unsigned long long)recorder->lost, output);
    const char *between = "assay: walks that ended early: ";
    for (int end = 0; end < UNWIND_END_KINDS; end++)
        if (end != UNWIND_END_COMPLETE && recorder->ends[end]) {
            fprintf(stderr, "%s%llu %s", between, (unsigned long long)recorder->ends[end],
                    unwind_end_name((enum unwind_end)end));
            between = ", ";
        }
    if (*between == ',')
        fprintf(stderr, "\n");
}

static int write_recording(const struct record_options *options, const struct format *format,
                           const struct profile *addresses, const char *command)
{
    _cleanup_profile_ struct profile named;
    struct error error = {0};
    struct symbolizer *symbolizer = symbolizer_new();
    profile_init(&named, format->detail);
    int r = profile_rename(addresses, name_frame, symbolizer, &named, &error);
    if (!r)
        r = format_write_file(options->output, format, &named,
                              &(struct write_options){.type = -1, .title = path_base(command)},
                              &error);
    symbolizer_free(symbolizer);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

static int open_target(const struct record_options *options, char *const argv[],
                       struct target *target, struct error *error)
{
    if (!options->pids) {
        int r = options->all ? 0 : start_command(argv, &target->command);
        if (r < 0)
            return error_set_errno(error, r, "%s cannot be started", argv[0]);
        array_reserve(target->threads, target->thread_capacity, 1);
        target->threads[target->thread_count++] = options->all ? -1 : target->command.pid;
        return 0;
    }
    for (const char *at = options->pids; *at;) {
        size_t length = strcspn(at, ",");
        uint64_t pid;
        if (!text_to_u64(at, length, &pid) || !pid || pid > INT32_MAX)
            return error_set(error, -EINVAL, "--pid wants process ids, not \"%s\".", options->pids);
        int r = perf_threads_of((pid_t)pid, &target->threads, &target->thread_count,
                                &target->thread_capacity);
        if (r < 0)
            return error_set_errno(error, r, "The process %llu cannot be recorded",
                                   (unsigned long long)pid);
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

/* With the target and the events open: samples, names, writes. Returns an exit code. */
static int record_target(const struct record_options *options, const struct format *format,
                         struct target *target, struct perf_sampler *sampler, const char *name)
{
    _cleanup_profile_ struct profile addresses;
    struct recorder recorder;
    struct error error = {0};
    profile_init(&addresses, format->detail | PROFILE_ADDRESSES);
    recorder_init(&recorder, &addresses, (unsigned)options->frequency_hz);
    recorder.root_by_process = options->all && (format == &format_html || format == &format_svg);
    take_signals(target);
    if (target->command.pid)
        close(target->command.gate);
    int r = sample_until_end(options, target, sampler, &recorder);
    if (command_failed(target, name)) {
        r = exit_code(target);
    } else if (r < 0) {
        error_set_errno(&error, r, "Samples cannot be read");
        r = fail(&error);
    } else {
        r = write_recording(options, format, &addresses, name);
        if (!r && !options->quiet)
            say_what_was_recorded(&recorder, options->output);
        if (!r)
            r = exit_code(target);
    }
    recorder_release(&recorder);
    return r;
}

static int record(const struct record_options *options, const struct format *format,
                  char *const argv[])
{
    struct target target = {0};
    struct perf_sampler *sampler = NULL;
    struct error error = {0};
    int r = open_target(options, argv, &target, &error);
    struct perf_options perf = {.threads = target.threads,
                                .thread_count = target.thread_count,
                                .frequency_hz = (unsigned)options->frequency_hz,
                                .kernel = !options->user,
                                .enable_on_exec = target.command.pid != 0,
                                .stack_bytes = STACK_BYTES};
    if (!r)
        r = perf_sampler_new(&perf, &sampler, &error);
    if (r < 0) {
        if (target.command.pid) {
            kill(target.command.pid, SIGKILL);
            waitpid(target.command.pid, NULL, 0);
        }
        r = fail(&error);
    } else {
        if (!options->user && !perf_sampler_sees_kernel(sampler))
            log_warning("Kernel frames are left out: this user may not see them.");
        const char *name = options->all ? "this machine" : options->pids ? options->pids : argv[0];
        r = record_target(options, format, &target, sampler, name);
    }
    perf_sampler_free(sampler);
    free(target.threads);
    return r;
}

int command_record(int argc, char **argv)
{
    struct record_options options = {.frequency_hz = 99, .output = "assay.pb.gz"};
    const struct option own[] = {
        {"Recording", .kind = OPTION_GROUP},
        {"all", 'a', OPTION_FLAG, NULL, "everything on this machine, instead of a command",
         &options.all},
        {"pid", 'p', OPTION_TEXT, "PID[,PID]", "processes that run already, instead of a command",
         &options.pids},
        {"duration", 'd', OPTION_NUMBER, "SECONDS", "stop recording after that time",
         &options.duration_s},
        {"frequency", 'F', OPTION_COUNT, "HZ", "samples per second of CPU time (99)",
         &options.frequency_hz},
        {"user", 0, OPTION_FLAG, NULL, "no kernel frames", &options.user},
        {"output", 'o', OPTION_TEXT, "FILE", "the file to write (assay.pb.gz)", &options.output},
        {"to", 0, OPTION_TEXT, "NAME", "write this format, whatever FILE's extension says",
         &options.format},
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
    if ((line.count > 0) + !!options.pids + options.all != 1)
        return options_wrong("record", "say one of -- CMD [ARG...], --pid PID and --all.");
    if (options.duration_s < 0)
        return options_wrong("record", "--duration is a number of seconds.");
    if (options.frequency_hz < 1 || options.frequency_hz > 10000)
        return options_wrong("record", "--frequency is from 1 to 10000.");
    const struct format *format;
    r = output_format("record", options.format, options.output, &format);
    if (r)
        return r;
    line.values[line.count] = NULL;
    return record(&options, format, (char *const *)line.values);
}
