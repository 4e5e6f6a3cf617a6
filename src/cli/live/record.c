// SPDX-License-Identifier: Apache-2.0
// `assay record -- CMD`: runs a command and samples where its CPU time goes.

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process/subprocess.h"
#include "capture/bpf/kernel_names.h"
#include "capture/heap/preload.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/live/record.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "config/quantity.h"
#include "profile/filter.h"
#include "profile/naming.h"
#include "profile/triage/idle.h"
#include "symbol/naming/naming.h"

#define READ_EVERY_MS 100
#define NAMING_TIMEOUT_S 30

static void show_progress(const struct capture *capture, int64_t started_ns)
{
    struct capture_stats stats = capture_stats(capture);
    fprintf(stderr, "\rrecording %.0f s: %llu samples of %llu process%s, %llu lost\033[K",
            (double)(monotonic_ns() - started_ns) / 1e9, (unsigned long long)stats.samples,
            (unsigned long long)stats.processes, stats.processes == 1 ? "" : "es",
            (unsigned long long)stats.lost);
    fflush(stderr);
}

/* Until the target has ended, the time is over or a signal has come. Children of a command that
 * outlive it are not waited for. */
static int sample_until_end(const struct record_options *options, struct target *target,
                            struct capture *capture, struct profile *profile, struct jit_names *jit,
                            struct error *error)
{
    bool terminal = isatty(STDERR_FILENO), ended = false;
    int64_t started_ns = target->began_ns, shown_ns = started_ns, passed_ns = 0;
    int64_t limit_ns = options->duration_s > 0 ? (int64_t)(options->duration_s * 1e9) : INT64_MAX;
    uint32_t mappings_seen = 0;
    int r = 0;
    capture_set_span(capture, started_ns,
                     limit_ns < INT64_MAX - started_ns ? started_ns + limit_ns : 0);
    while (!ended && r >= 0) {
        bool gone = target->command ? target_has_ended(target, capture) : r == 1;
        passed_ns = MIN(monotonic_ns() - started_ns, limit_ns);
        ended = gone || target_is_interrupted(target) || passed_ns == limit_ns;
        if (ended) {
            capture_pause(capture, true, NULL); /* by ptrace it can't: what comes is not read */
            target_measure(target, passed_ns);
        }
        r = capture_read(capture, ended ? 0 : READ_EVERY_MS, ended, error);
        /* While the process is there: what its compilers write is found through it. */
        jit_names_load_mappings(jit, profile, mappings_seen);
        mappings_seen = profile->mapping_count;
        if (terminal && monotonic_ns() - shown_ns > 1000000000) {
            shown_ns = monotonic_ns();
            show_progress(capture, started_ns);
        }
    }
    if (terminal && shown_ns > started_ns)
        fprintf(stderr, "\r\033[K");
    profile_note_source(profile, clock_ns(CLOCK_REALTIME) - (monotonic_ns() - started_ns),
                        passed_ns);
    return r < 0 ? r : 0;
}

/* ---- naming ---- */

/* The time limit, and where progress is printed. */
struct naming_watch {
    struct progress *progress;
    int64_t until_ns;
    unsigned signals; /* that had come before */
};

static bool watch_naming(void *context, size_t done, size_t count)
{
    struct naming_watch *watch = context;
    char text[80];
    snprintf(text, sizeof(text), "resolving names: %zu of %zu files", done, count);
    progress_say(watch->progress, text);
    return monotonic_ns() < watch->until_ns && target_signals() == watch->signals;
}

static int write_recording(const struct record_options *options, const struct format *format,
                           const struct profile *addresses, struct capture *capture,
                           struct jit_names *jit, const char *command, uint64_t *ret_late_files)
{
    _cleanup_profile_ struct profile named;
    struct error error = {0};
    struct symbolizer *symbolizer = symbolizer_new();
    struct kernel_names *kernel = kernel_names_new();
    struct naming_watch watch = {
        .progress = progress_start(), .until_ns = INT64_MAX, .signals = target_signals()};
    if (options->naming_timeout_s > 0)
        watch.until_ns = monotonic_ns() + (int64_t)(MIN(options->naming_timeout_s, 1e9) * 1e9);
    profile_init(&named, format->detail);
    if (kernel)
        symbolizer_ask_kernel(symbolizer, kernel_names_find, kernel);
    jit_names_load_mappings(jit, addresses, 0);
    symbolizer_set_jit(symbolizer, jit);
    symbolizer_watch(symbolizer, watch_naming, &watch);
    int r = symbol_name_profile(symbolizer, addresses, &named, capture_locate, capture, &error);
    if (!r && options->modes & CAPTURE_WAITS && options->idle_fold)
        idle_fold(&named, options->idle_rules ? options->idle_rules : idle_rules_default());
    if (!r)
        r = format_write_file(options->output, format, &named,
                              &(struct write_options){.type = -1, .title = path_base(command)},
                              &error);
    *ret_late_files = symbolizer_stats(symbolizer).late;
    progress_stop(&watch.progress);
    if (!r && options->modes == CAPTURE_HEAP && !options->quiet)
        report_heap(&named);
    symbolizer_free(symbolizer);
    kernel_names_free(kernel);
    return r < 0 ? fail(&error) : EXIT_FINE;
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
        log_warning("Failed to open a browser with xdg-open; the page is %s.", path);
}

/* The events that a profile of CPU time counts; UINT64_MAX for a profile that counts none. */
static uint64_t count_samples(const struct profile *profile)
{
    unsigned type = 0;
    while (type < profile->type_count &&
           strcmp(profile_text(profile, profile->types[type].type), "samples") != 0)
        type++;
    if (type == profile->type_count)
        return UINT64_MAX;
    uint64_t count = 0;
    for (size_t row = 0; row < profile->samples.count; row++)
        count += (uint64_t)profile->samples.values[type][row];
    return count;
}

/* Of the processes' samples, those of the threads that were asked for. */
static int keep_threads(const char *tids, struct profile *profile, uint64_t *ret_kept,
                        struct error *error)
{
    _cleanup_regex_ struct regex *pattern = NULL;
    _cleanup_buffer_ struct buffer text = {0};
    buffer_add_text(&text, "^(?:");
    for (const char *at = tids; *at; at++)
        buffer_add_char(&text, *at == ',' ? '|' : *at);
    buffer_add_text(&text, ")$");
    int r = regex_new(buffer_text(&text), false, "--tid", &pattern, error);
    if (r < 0)
        return r;
    struct tag_filter tag = {.key = "tid", .relation = TAG_MATCHES, .pattern = pattern};
    profile_filter(profile, &(struct profile_filter){.tags = &tag, .tag_count = 1});
    *ret_kept = count_samples(profile);
    return 0;
}

/* With the target and the capture open: samples, names, writes. Returns an exit code. */
static int record_target(const struct record_options *options, const struct format *format,
                         struct target *target, struct capture *capture, struct jit_names *jit,
                         const char *name)
{
    _cleanup_profile_ struct profile addresses;
    struct error error = {0};
    uint64_t late_files = 0, kept = UINT64_MAX;
    profile_init(&addresses,
                 format->detail | PROFILE_ADDRESSES | (options->tids ? PROFILE_LABELS : 0));
    capture_into(capture, &addresses);
    target_begin(target, capture);
    int r = sample_until_end(options, target, capture, &addresses, jit, &error);
    target_restore_priority(target);
    if (target_failed(target, name))
        return target_wait(target, capture);
    if (r >= 0 && options->tids)
        r = keep_threads(options->tids, &addresses, &kept, &error);
    r = r < 0 ? fail(&error)
              : write_recording(options, format, &addresses, capture, jit, name, &late_files);
    capture_into(capture, NULL);
    if (!r && !options->quiet)
        report_recording(options, capture, target, kept, late_files);
    if (!r && options->open)
        open_page(options->output);
    int status = target_wait(target, capture);
    return r ? r : status;
}

/* For tests: measure waits as the agent does, which follows fewer threads above such a cost. */
static double waits_share(void)
{
    const char *share = getenv("ASSAY_WAITS_SHARE");
    return share ? strtod(share, NULL) : 0;
}

/* For tests, and for who wants to compare. */
static enum capture_backend wanted_backend(void)
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
    int r = file_can_write(options->output, &error);
    if (!r && options->modes == CAPTURE_HEAP && argv[0])
        r = heap_preload_new(options->interval_bytes, &target.preload, &error);
    if (!r)
        r = target_open(options, argv, &target, &error);
    target_take_signals(&target);
    target_raise_priority(&target);
    struct capture_options wanted = {
        .all = options->all,
        .cgroup = options->cgroup,
        .pids = target.pids,
        .pid_count = target.pid_count,
        .at_exec = target.command != 0,
        .frequency_hz = (unsigned)options->frequency_hz,
        .kernel = !options->user,
        .user = !options->kernel,
        .interpreter_frames = options->interpreter_frames,
        .modes = options->modes,
        .preload = target.preload,
        .collect = {.min_block_ns = options->min_block_ns,
                    .events = &options->events,
                    .mean_bytes = options->interval_bytes,
                    .heap_library = target.preload ? heap_preload_library(target.preload) : NULL,
                    .slowdown_max = options->max_slowdown / 100,
                    .cost_share = waits_share()},
        .backend = wanted_backend(),
        .check = getenv("ASSAY_CHECK_WALKS") != NULL,
        .learn_all = options->all || options->cgroup,
        .deep_buffers = true,
        .root_by_process =
            (options->all || options->cgroup) && (format == &format_html || format == &format_svg),
    };
    if (!r)
        r = capture_new(&wanted, &capture, &error);
    if (!r && wanted.collect.cost_share > 0)
        capture_measure(capture);
    if (r < 0) {
        target_abandon(&target);
        r = fail(&error);
    } else {
        if (capture_shortcoming(capture) && !options->quiet)
            log_warning("%s", capture_shortcoming(capture));
        const char *name = options->all      ? "this machine"
                           : options->cgroup ? options->cgroup
                           : options->pids   ? options->pids
                           : options->tids   ? options->tids
                                             : argv[0];
        struct jit_names *jit = jit_names_new();
        r = record_target(options, format, &target, capture, jit, name);
        jit_names_free(jit);
    }
    capture_free(capture);
    heap_preload_free(target.preload);
    target_release(&target);
    return r;
}

/* Of events alone unless modes were given, too. */
static int read_events(struct record_options *options)
{
    struct error error = {0};
    char note[PERF_NOTE_BYTES];
    if (!options->event_names)
        return 0;
    if (options->modes & CAPTURE_HEAP)
        return options_wrong("record", "--event cannot be combined with --mode heap.");
    if (perf_events_parse(options->event_names, perf_event_try, &options->events, note, &error) < 0)
        return options_wrong("record", "%s", error.text);
    if (note[0])
        log_warning("%s", note);
    options->modes |=
        (options->events.count ? CAPTURE_EVENTS : 0) | (options->events.cpu ? CAPTURE_CPU : 0);
    options->events.cpu = options->modes & CAPTURE_CPU;
    return 0;
}

/* Which waits are of threads without work, and what becomes of them. */
static int read_idle(struct record_options *options)
{
    struct error error = {0};
    _cleanup_buffer_ struct buffer content = {0};
    bool waits = options->modes & CAPTURE_WAITS;
    options->idle_fold = !options->idle || !strcmp(options->idle, "fold");
    if (options->idle && (!waits || (!options->idle_fold && strcmp(options->idle, "show") != 0)))
        return options_wrong("record", "--idle is fold or show, for modes of waits.");
    if (!options->idle_rules_file)
        return 0;
    if (!waits)
        return options_wrong("record", "--idle-rules is for modes of waits.");
    int r = file_read(options->idle_rules_file, IDLE_FILE_BYTES_MAX, &content, &error);
    if (!r)
        r = idle_rules_parse(content.data, content.length, options->idle_rules_file,
                             &options->idle_rules, &error);
    return r < 0 ? fail(&error) : 0;
}

/* "1,2,3" of all that was given; NULL when nothing was. */
static const char *join_list(const struct option_list *list, struct buffer *out)
{
    for (size_t i = 0; i < list->count; i++)
        buffer_printf(out, "%s%s", i ? "," : "", list->values[i]);
    return list->count ? buffer_text(out) : NULL;
}

int command_record(int argc, char **argv)
{
    struct record_options options = {
        .frequency_hz = 99, .naming_timeout_s = NAMING_TIMEOUT_S, .duration_s = NAN};
    const struct option own[] = {
        {"Recording", .kind = OPTION_GROUP},
        {"all", 'a', OPTION_FLAG, NULL, "record everything on this machine instead of a command",
         &options.all},
        {"pid", 'p', OPTION_LIST, "PID[,PID]", "record running processes instead of a command",
         &options.pid_list},
        {"tid", 't', OPTION_LIST, "TID[,TID]", "record these threads of running processes",
         &options.tid_list},
        {"cgroup", 0, OPTION_TEXT, "PATH",
         "record this cgroup and those below it instead of a command", &options.cgroup},
        {"mode", 'm', OPTION_TEXT, "MODE[,MODE]",
         "cpu, wall, offcpu, lock, io, runq, goroutine, faults, rss, heap (cpu)", &options.mode},
        {"event", 'e', OPTION_TEXT, "EVENT[,EVENT]",
         "sample at events such as cycles or page-faults", &options.event_names},
        {"min-block", 0, OPTION_TEXT, "TIME", "leave out waits that are shorter (1ms, 20us)",
         &options.min_block},
        {"idle", 0, OPTION_TEXT, "fold|show",
         "threads without work: below the root [idle] (default), or not", &options.idle},
        {"idle-rules", 0, OPTION_TEXT, "FILE", "rules that say which waits these are",
         &options.idle_rules_file},
        {"duration", 'd', OPTION_NUMBER, "SECONDS", "stop recording after this time",
         &options.duration_s},
        {"frequency", 'F', OPTION_COUNT, "HZ", "samples per second of CPU time (99)",
         &options.frequency_hz},
        {"heap-interval", 0, OPTION_SIZE, "BYTES",
         "modes heap and faults: mean number of bytes between samples (512K)",
         &options.interval_bytes},
        {"max-slowdown", 0, OPTION_NUMBER, "PERCENT",
         "mode heap without probes: stop where it costs more (20)", &options.max_slowdown},
        {"naming-timeout", 0, OPTION_NUMBER, "SECONDS",
         "time limit for resolving names (30); 0: none", &options.naming_timeout_s},
        {"user", 0, OPTION_FLAG, NULL, "omit kernel frames", &options.user},
        {"kernel", 0, OPTION_FLAG, NULL, "only kernel frames", &options.kernel},
        {"interpreter-frames", 0, OPTION_FLAG, NULL, "native frames of interpreters too",
         &options.interpreter_frames},
        {"output", 'o', OPTION_TEXT, "FILE", "the file to write (assay.pb.gz)", &options.output},
        {"to", 0, OPTION_TEXT, "NAME", "write this format instead of the one of FILE's extension",
         &options.format},
        {"open", 0, OPTION_FLAG, NULL, "open FILE (assay.html) in a browser", &options.open},
        {"quiet", 'q', OPTION_FLAG, NULL, "print no summary", &options.quiet},
        {0}};
    struct command_line line = {
        .command = "record",
        .arguments = "-- CMD [ARG...]",
        .summary = "Runs a command, or attaches to running processes, and samples their CPU time "
                   "and\nthat of their children, with complete call stacks, even for programs "
                   "built\nwithout frame pointers. Ctrl-C stops and writes the profile.",
        .notes = "The exit code is that of the command. FILE's extension sets the format, as "
                 "for\n`assay convert`.",
        .options = own,
        .most = -1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    _cleanup_buffer_ struct buffer pids = {0}, tids = {0};
    options.pids = join_list(&options.pid_list, &pids);
    options.tids = join_list(&options.tid_list, &tids);
    if (options.pids && options.tids)
        return options_wrong("record", "--pid and --tid are mutually exclusive.");
    if ((line.count > 0) + !!options.pids + !!options.tids + !!options.cgroup + options.all != 1)
        return options_wrong(
            "record", "specify one of -- CMD [ARG...], --pid PID, --tid TID, --cgroup PATH and "
                      "--all.");
    if (options.user && options.kernel)
        return options_wrong("record", "--user and --kernel are mutually exclusive.");
    if (isnan(options.duration_s))
        options.duration_s = 0; /* not given */
    else if (!(options.duration_s > 0))
        return options_wrong("record", "--duration must be a number of seconds above 0.");
    if (!(options.max_slowdown >= 0))
        return options_wrong("record", "--max-slowdown must be a number of percent.");
    if (options.naming_timeout_s < 0)
        return options_wrong("record", "--naming-timeout must be a number of seconds.");
    if (options.frequency_hz < 1 || options.frequency_hz > 10000)
        return options_wrong("record", "--frequency must be from 1 to 10000.");
    struct error error = {0};
    if (options.mode && capture_modes_parse(options.mode, &options.modes, &error) < 0)
        return options_wrong("record", "%s", error.text);
    r = read_events(&options);
    if (r)
        return r;
    if (options.min_block && (!quantity_duration(options.min_block, &options.min_block_ns) ||
                              options.min_block_ns < 0 || !(options.modes & CAPTURE_WAITS)))
        return options_wrong("record", "--min-block is a time such as 1ms, for modes of waits.");
    r = read_idle(&options);
    if (r)
        return r;
    if (!options.output)
        options.output = options.open ? "assay.html" : "assay.pb.gz";
    const struct format *format;
    r = output_format("record", options.format, options.output, &format);
    if (r) {
        idle_rules_free(options.idle_rules);
        return r;
    }
    if (options.open && format != &format_html && format != &format_svg)
        return options_wrong("record", "--open requires .html or .svg.");
    line.values[line.count] = NULL;
    pid_t jvm;
    r = record_jvm_wanted(&options, &jvm) ? record_jvm(&options, format, jvm)
                                          : record(&options, format, (char *const *)line.values);
    idle_rules_free(options.idle_rules);
    return r;
}
