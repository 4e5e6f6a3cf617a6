// SPDX-License-Identifier: Apache-2.0
// The closing lines of `assay record`: how good the recording is and what is missing from it.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/live/record.h"

#define TIME_WORTH_NS 200000000 /* of CPU time, before it is compared with its samples */
#define COVERED_PERCENT 98      /* from here on it is all, by what clocks can tell */
/* The same where the time is estimated, or the machine's, which includes interrupts without a
 * process.
 */
#define COVERED_PERCENT_ROUGH 90

/* The CPU time that the samples stand for, in percent of what was used; 100 where the difference
 * can be chance. */
static double covered_percent(const struct record_options *options,
                              const struct capture_stats *stats, const struct target *target)
{
    double percent = 100;
    unsigned others = CAPTURE_HEAP | CAPTURE_EVENTS | CAPTURE_FAULTS | CAPTURE_RSS;
    if (options->modes && !(options->modes & ~others))
        return 100;
    if (target->cpu.all_ns >= TIME_WORTH_NS) {
        double due = (double)target->cpu.all_ns / 1e9 * (double)options->frequency_hz;
        double missing = due - (double)stats->cpu_ns / 1e9 * (double)options->frequency_hz;
        if (missing > 0 && missing * missing > 9 * due) /* three standard deviations */
            percent = 100 * (1 - missing / due);
    } else if (stats->samples) {
        percent = 100.0 * (double)stats->samples / (double)(stats->samples + stats->lost);
    }
    bool exact = !target->cpu_estimated && !target->machine;
    return percent < (exact ? COVERED_PERCENT : COVERED_PERCENT_ROUGH) ? percent : 100;
}

/* Without BPF each thread's time is counted from its start, so that what is left at its end, less
 * than a period, is not seen: much of the time only when threads are short. */
static void report_uncovered(const struct record_options *options, const struct capture *capture,
                             const struct capture_stats *stats, const struct target *target)
{
    int64_t missing_ns = target->cpu.all_ns - stats->cpu_ns;
    int64_t lost_ns = (int64_t)(1e9 * (double)stats->lost / (double)options->frequency_hz);
    if (target->cpu.all_ns < TIME_WORTH_NS || options->modes == CAPTURE_EVENTS ||
        covered_percent(options, stats, target) == 100)
        return;
    /* Most of it: the rest is too little to have a reason of its own. */
    if (capture_kernel_hidden(capture) && target->cpu.kernel_ns >= missing_ns / 2)
        fprintf(stderr,
                "assay: %.2f s of CPU time was not sampled: %.2f s were spent in the kernel, where "
                "samples need privileges (record as root)\n",
                (double)missing_ns / 1e9, (double)target->cpu.kernel_ns / 1e9);
    else if (capture_backend(capture) == CAPTURE_BPF)
        fprintf(stderr, "assay: %.2f s of CPU time was not sampled: the machine was too busy\n",
                (double)missing_ns / 1e9);
    else if (lost_ns < missing_ns / 2) /* else the number of lost samples says it */
        fprintf(stderr,
                "assay: %.2f s of CPU time was not sampled: by %s, threads that use less than %.3g "
                "ms are missed (raise --frequency, or record as root)\n",
                (double)missing_ns / 1e9, capture_backend_name(capture_backend(capture)),
                1e3 / (double)options->frequency_hz);
}

static void report_ends(const struct capture_stats *stats)
{
    for (int end = 0; end < UNWIND_END_KINDS; end++)
        if (end != UNWIND_END_COMPLETE && stats->ends[end])
            fprintf(stderr, "assay: %llu stack%s incomplete: %s\n",
                    (unsigned long long)stats->ends[end], stats->ends[end] == 1 ? " is" : "s are",
                    unwind_end_reason((enum unwind_end)end));
}

static void report_first_line(const struct record_options *options, const struct capture *capture,
                              const struct capture_stats *stats, const struct target *target,
                              uint64_t kept)
{
    double covered = covered_percent(options, stats, target);
    fputs("assay: ", stderr);
    if (kept != UINT64_MAX)
        fprintf(stderr, "%llu samples of thread%s %s, of ", (unsigned long long)kept,
                strchr(options->tids, ',') ? "s" : "", options->tids);
    fprintf(stderr, "%llu samples of %llu process%s by %s", (unsigned long long)stats->samples,
            (unsigned long long)stats->processes, stats->processes == 1 ? "" : "es",
            capture_backend_name(capture_backend(capture)));
    if (stats->walks)
        fprintf(stderr, ", %.4g%% of stacks complete",
                100.0 * (double)stats->ends[UNWIND_END_COMPLETE] / (double)stats->walks);
    if (covered < 100)
        fprintf(stderr, ", %s%.0f%% of the CPU time covered", target->cpu_estimated ? "about " : "",
                covered);
    if (stats->unplaced)
        fprintf(stderr, ", %llu in an [unknown mapping]", (unsigned long long)stats->unplaced);
    fprintf(stderr, ", %llu lost, in %s\n", (unsigned long long)stats->lost, options->output);
}

static bool have_ended(const struct target *target)
{
    for (size_t i = 0; i < target->pid_count; i++)
        if (!kill(target->pids[i], 0) || errno != ESRCH)
            return false;
    return target->pid_count > 0;
}

/* An idle program has no samples, which is an answer, too. */
static void report_idle(const struct record_options *options, const struct target *target,
                        bool threads)
{
    double period_ms = 1e3 / (double)options->frequency_hz;
    if (options->modes == CAPTURE_EVENTS) {
        fprintf(stderr, "assay: no samples: none of the events happened often enough for one\n");
        return;
    }
    if (!threads && have_ended(target)) {
        fprintf(
            stderr,
            "assay: no samples: the process%s ended before one was taken. Record a command from "
            "its start with `assay record -- COMMAND`\n",
            target->pid_count == 1 ? "" : "es");
        return;
    }
    if (threads)
        fprintf(stderr, "assay: no samples: the process used CPU time only in other threads");
    else if (target->cpu.all_ns > 0)
        fprintf(stderr, "assay: no samples: %.3g ms of CPU time was used",
                (double)target->cpu.all_ns / 1e6);
    else
        fprintf(stderr, "assay: no samples: too little CPU time was used");
    fprintf(
        stderr,
        ", and a sample is taken every %.3g ms of it. Raise --frequency, or record waiting with "
        "`--mode wall`\n",
        period_ms);
}

/* Pages and pictures are a browser's. */
static const char *opener(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (!strcmp(dot, ".html") || !strcmp(dot, ".svg")) ? "xdg-open" : "assay view";
}

void report_recording(const struct record_options *options, struct capture *capture,
                      const struct target *target, uint64_t kept, uint64_t late_files)
{
    struct capture_stats stats = capture_stats(capture);
    struct capture_loss losses[CAPTURE_LOSSES_MAX];
    report_first_line(options, capture, &stats, target, kept);
    if ((!stats.samples || !kept) && !stats.lost &&
        !(options->modes & ~(CAPTURE_CPU | CAPTURE_EVENTS)))
        report_idle(options, target, stats.samples > 0);
    report_uncovered(options, capture, &stats, target);
    report_ends(&stats);
    if (stats.checked)
        fprintf(stderr, "assay: %llu walks compared, %llu differ\n",
                (unsigned long long)stats.checked, (unsigned long long)stats.different);
    size_t count = capture_losses(capture, losses);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "assay: %llu %s\n", (unsigned long long)losses[i].count, losses[i].what);
    if (late_files)
        fprintf(stderr,
                "assay: symbols of %llu file%s are missing or without lines: the time limit was "
                "exceeded (--naming-timeout). `assay convert --symbolize %s -o FILE` adds them\n",
                (unsigned long long)late_files, late_files == 1 ? "" : "s", options->output);
    fprintf(stderr, "assay: show it with `%s %s`\n", opener(options->output), options->output);
}
