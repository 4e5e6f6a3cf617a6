// SPDX-License-Identifier: Apache-2.0
// `assay record -- CMD`: runs a command and samples where its CPU time goes.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
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
    const char *output, *format;
    bool user, quiet;
};

/* A command that has been started and waits. */
struct command_process {
    pid_t pid;
    int gate;    /* closing it lets the command go */
    int failure; /* gives an errno when the command could not be run, else the end */
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

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void show_progress(const struct recorder *recorder, int64_t started_ns)
{
    fprintf(stderr, "\rrecording %.0f s: %llu samples of %zu processes, %llu lost\033[K",
            (double)(monotonic_ns() - started_ns) / 1e9, (unsigned long long)recorder->samples,
            recorder->processes.count, (unsigned long long)recorder->lost);
    fflush(stderr);
}

/* Until the command has ended; what its children do afterwards is not waited for. */
static int sample_until_end(struct perf_sampler *sampler, struct recorder *recorder, pid_t pid,
                            int *ret_status)
{
    bool terminal = isatty(STDERR_FILENO);
    int64_t started_ns = monotonic_ns(), shown_ns = started_ns;
    for (;;) {
        bool ended = waitpid(pid, ret_status, WNOHANG) == pid;
        int r =
            perf_sampler_read(sampler, ended ? 0 : READ_EVERY_MS, ended, recorder_take, recorder);
        if (r < 0 || ended) {
            if (terminal && shown_ns > started_ns)
                fprintf(stderr, "\r\033[K");
            profile_note_source(recorder->profile, started_ns + recorder->epoch_ns,
                                monotonic_ns() - started_ns);
            return r < 0 ? r : 0;
        }
        /* Without processes the rings say "hang-up" at once: wait for the end all the same. */
        if (r == 1)
            usleep(10000);
        if (terminal && monotonic_ns() - shown_ns > 1000000000) {
            shown_ns = monotonic_ns();
            show_progress(recorder, started_ns);
        }
    }
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

static int record(const struct record_options *options, const struct format *format,
                  char *const argv[])
{
    struct error error = {0};
    struct command_process process = {0};
    int status = 0, code = 0;
    int r = start_command(argv, &process);
    if (r < 0) {
        error_set_errno(&error, r, "%s cannot be started", argv[0]);
        return fail(&error);
    }
    struct perf_options perf = {.pid = process.pid,
                                .frequency_hz = (unsigned)options->frequency_hz,
                                .kernel = !options->user,
                                .enable_on_exec = true,
                                .stack_bytes = STACK_BYTES};
    struct perf_sampler *sampler = NULL;
    if (perf_sampler_new(&perf, &sampler, &error) < 0) {
        kill(process.pid, SIGKILL);
        waitpid(process.pid, &status, 0);
        return fail(&error);
    }
    if (!options->user && !perf_sampler_sees_kernel(sampler))
        log_warning("Kernel frames are left out: this user may not see them.");

    _cleanup_profile_ struct profile addresses;
    struct recorder recorder;
    profile_init(&addresses, format->detail | PROFILE_ADDRESSES);
    recorder_init(&recorder, &addresses, (unsigned)options->frequency_hz);
    /* Ctrl-C is for the command; we end when it does, and write what there is. */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    close(process.gate);
    r = sample_until_end(sampler, &recorder, process.pid, &status);
    perf_sampler_free(sampler);
    if (read(process.failure, &code, sizeof(code)) == sizeof(code)) {
        error_set_errno(&error, -code, "%s cannot be run", argv[0]);
        fail(&error);
        r = WEXITSTATUS(status);
    } else if (r < 0) {
        error_set_errno(&error, r, "Samples cannot be read");
        r = fail(&error);
    } else {
        r = write_recording(options, format, &addresses, argv[0]);
        if (!r && !options->quiet)
            say_what_was_recorded(&recorder, options->output);
    }
    recorder_release(&recorder);
    if (r)
        return r;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int command_record(int argc, char **argv)
{
    struct record_options options = {.frequency_hz = 99, .output = "assay.pb.gz"};
    const struct option own[] = {
        {"Recording", .kind = OPTION_GROUP},
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
        .summary = "Runs a command and samples the CPU time of it and of all processes that it\n"
                   "starts, with whole call stacks, also of programs without frame pointers.",
        .notes = "The exit code is the command's own. FILE's extension chooses the format, as for\n"
                 "`assay convert`.",
        .options = own,
        .least = 1,
        .most = -1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (options.frequency_hz < 1 || options.frequency_hz > 10000)
        return options_wrong("record", "--frequency is from 1 to 10000.");
    const struct format *format;
    r = output_format("record", options.format, options.output, &format);
    if (r)
        return r;
    line.values[line.count] = NULL;
    return record(&options, format, (char *const *)line.values);
}
