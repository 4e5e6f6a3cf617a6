// SPDX-License-Identifier: Apache-2.0
// `assay record --mode heap -p PID` of a JVM that runs already: its own flight recorder samples its
// allocations.

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "capture/jvm/recording.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/live/record.h"
#include "cli/output.h"

#define LOOK_MS 100

/* Without our library in it, whose probes say more. */
bool record_jvm_wanted(const struct record_options *options, pid_t *ret_pid)
{
    char *end;
    if (options->modes != CAPTURE_HEAP || !options->pids)
        return false;
    long pid = strtol(options->pids, &end, 10);
    *ret_pid = (pid_t)pid;
    return pid > 0 && !*end && jvm_is_there(*ret_pid);
}

static void wait_for_end(const struct record_options *options, const struct target *target)
{
    int64_t limit_ns =
        options->duration_s > 0 ? (int64_t)(MIN(options->duration_s, 1e9) * 1e9) : INT64_MAX;
    int64_t began_ns = monotonic_ns();
    while (monotonic_ns() - began_ns < limit_ns && !target_is_interrupted(target))
        poll(NULL, 0, LOOK_MS);
}

/* Under the names that heap profiles have. The number of events isn't one of allocations. */
static void rename_types(struct profile *profile)
{
    for (unsigned i = 0; i < profile->type_count; i++) {
        const char *name = profile_text(profile, profile->types[i].type);
        if (!strcmp(name, "alloc_sample_bytes"))
            profile->types[i].type = profile_cstring(profile, "alloc_space");
        else if (!strcmp(name, "alloc_sample_objects"))
            profile->types[i].type = profile_cstring(profile, "samples");
    }
    profile->default_type = profile_cstring(profile, "alloc_space");
}

static int read_recording(int fd, const struct format *format, struct profile *profile,
                          struct error *error)
{
    char path[32];
    const struct format *found;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    profile_init(profile, format->detail);
    int r = format_read_file(path, &(struct read_options){.format = &format_jfr}, profile, &found,
                             error);
    if (!r)
        rename_types(profile);
    return r;
}

static int write_recording(const struct record_options *options, const struct format *format,
                           const struct profile *profile, pid_t pid, struct error *error)
{
    char title[32];
    snprintf(title, sizeof(title), "%d", (int)pid);
    int r = format_write_file(options->output, format, profile,
                              &(struct write_options){.type = -1, .title = title}, error);
    if (r < 0 || options->quiet)
        return r;
    report_heap(profile);
    fprintf(stderr,
            "assay: %zu stacks of sampled allocations of process %d by its JVM's flight recorder, "
            "in %s\n",
            profile->samples.count, (int)pid, options->output);
    return r;
}

int record_jvm(const struct record_options *options, const struct format *format, pid_t pid)
{
    struct target target = {0};
    struct jvm_recording *recording = NULL;
    struct error error = {0};
    int fd = -1;
    int r = file_can_write(options->output, &error);
    target_take_signals(&target);
    if (!r)
        r = jvm_recording_start(pid, &recording, &error);
    if (!r) {
        if (!options->quiet)
            log_info("Recording allocations by the flight recorder (JFR) of the JVM.");
        wait_for_end(options, &target);
        r = jvm_recording_stop(recording, &fd, &error);
    }
    if (!r) {
        _cleanup_profile_ struct profile profile;
        r = read_recording(fd, format, &profile, &error);
        if (!r && !profile.samples.count)
            log_warning("The JVM recorded no allocations: this requires JDK 16, and allocations.");
        if (!r)
            r = write_recording(options, format, &profile, pid, &error);
    }
    if (fd >= 0)
        close(fd);
    jvm_recording_free(recording);
    return r < 0 ? fail(&error) : 0;
}
