// SPDX-License-Identifier: Apache-2.0
// `assay triage`: it is slow, so where is the time? Records wall-clock time, or reads a recording,
// and says it in words and numbers.

#include "profile/triage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/terminal.h"

#define DURATION_S 10
#define DURATION_S_MAX 3600
#define FRAMES_SHOWN 24
#define PATH_BYTES 64

struct triage_options {
    const char *pid, *cgroup, *output;
    bool all, json, markdown;
    double duration_s;
    struct input_options input;
};

/* ---- recording ---- */

/* By `assay record`, which is this program: a process of its own can't take ours with it. */
static int record_into(const struct triage_options *options, const char *path, struct error *error)
{
    char duration[32];
    const char *argv[16] = {"/proc/self/exe", "record", "-q", "-m", "wall,lock", "-d",
                            duration,         "-o",     path};
    size_t count = 9;
    snprintf(duration, sizeof(duration), "%.3f", options->duration_s);
    if (options->all)
        argv[count++] = "-a";
    if (options->pid) {
        argv[count++] = "-p";
        argv[count++] = options->pid;
    }
    if (options->cgroup) {
        argv[count++] = "--cgroup";
        argv[count++] = options->cgroup;
    }
    _cleanup_buffer_ struct buffer output = {0};
    int status = 0;
    int r = subprocess_run(
        argv,
        &(struct subprocess_options){.timeout_ms = (int)(options->duration_s * 1000) + 120000},
        &output, &status, error);
    if (!r && status)
        return error_set(error, -EIO, "`assay record` failed; its message is above.");
    return r;
}

/* ---- what is said ---- */

static const char *name_of(const struct profile *profile, uint32_t node)
{
    uint32_t function = profile->frames[profile->nodes[node].frame].function;
    const char *name = profile_text(profile, profile->functions[function].name);
    return *name ? name : "[unknown]";
}

static bool is_kernel(const struct profile *profile, uint32_t node)
{
    const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
    const char *file = profile_text(profile, profile->mappings[frame->mapping].file);
    return !strncmp(file, "[kernel", strlen("[kernel"));
}

/* Innermost first, as many as are shown; without the kernel's own functions. */
static size_t list_stack(const struct profile *profile, uint32_t node, const char **ret_names)
{
    size_t count = 0;
    for (; node && count < FRAMES_SHOWN; node = profile->nodes[node].parent)
        if (!is_kernel(profile, node))
            ret_names[count++] = name_of(profile, node);
    return count;
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static const char *advice(enum triage_kind verdict)
{
    switch (verdict) {
    case TRIAGE_COMPUTING:
        return "assay record -F 199 -p PID -o cpu.html: which functions use the CPU";
    case TRIAGE_STARVED:
        return "assay record -a -d 10 -o all.html: which processes use the CPUs instead";
    case TRIAGE_LOCK:
        return "assay record -m lock -d 10 -p PID -o lock.html: who holds which lock";
    case TRIAGE_DISK:
    case TRIAGE_NETWORK:
    case TRIAGE_PIPE:
    case TRIAGE_IO_URING:
        return "assay record -m io -d 10 -p PID -o io.html: which calls wait";
    case TRIAGE_IDLE:
        return "nothing: the threads wait for work, so look at who calls this program";
    default:
        return "assay record -m wall -d 10 -p PID -o wall.html: where the threads wait";
    }
}

static void put_text(const struct profile *profile, const struct triage *triage, bool markdown,
                     struct buffer *out)
{
    const char *names[FRAMES_SHOWN], *bullet = markdown ? "- " : "  ";
    int64_t total_ns = triage->busy_ns + triage->ns[TRIAGE_IDLE];
    buffer_printf(
        out, "%sMostly %s: %.1f%% of the %.2f s that threads were not idle.\n\n",
        markdown ? "## " : "", triage_kind_words(triage->verdict),
        triage->verdict == TRIAGE_IDLE ? 0 : percent(triage->ns[triage->verdict], triage->busy_ns),
        (double)triage->busy_ns / 1e9);
    for (unsigned kind = 0; kind < TRIAGE_KINDS; kind++)
        if (triage->ns[kind])
            buffer_printf(out, "%s%5.1f%% %9.3f s %s\n", bullet,
                          percent(triage->ns[kind], total_ns), (double)triage->ns[kind] / 1e9,
                          triage_kind_words((enum triage_kind)kind));
    if (triage->holder) {
        const char *holder = profile_text(profile, profile->functions[triage->holder].name);
        buffer_add_text(out, "\nThe lock was held by ");
        text_escape_terminal(out, holder, strlen(holder));
        buffer_printf(out, " for %.1f%% of that.\n",
                      percent(triage->holder_ns, triage->ns[TRIAGE_LOCK]));
    }
    if (triage->node) {
        buffer_printf(out, "\nThe stack with most of it (%.1f%%), innermost first:\n",
                      percent(triage->node_ns, triage->ns[triage->verdict]));
        size_t count = list_stack(profile, triage->node, names);
        for (size_t i = 0; i < count; i++) {
            buffer_add_text(out, bullet);
            text_escape_terminal(out, names[i], strlen(names[i]));
            buffer_add_char(out, '\n');
        }
    }
    buffer_printf(out, "\nNext: %s\n", advice(triage->verdict));
}

static void put_json_text(struct buffer *out, const char *key, const char *text)
{
    buffer_printf(out, ",\"%s\":", key);
    text_escape_json(out, text, strlen(text));
}

static void put_json(const struct profile *profile, const struct triage *triage, struct buffer *out)
{
    const char *names[FRAMES_SHOWN];
    buffer_printf(out, "{\"verdict\":\"%s\",\"busy_ns\":%lld,\"ns\":{",
                  triage_kind_name(triage->verdict), (long long)triage->busy_ns);
    for (unsigned kind = 0; kind < TRIAGE_KINDS; kind++)
        buffer_printf(out, "%s\"%s\":%lld", kind ? "," : "",
                      triage_kind_name((enum triage_kind)kind), (long long)triage->ns[kind]);
    buffer_add_char(out, '}');
    if (triage->holder) {
        put_json_text(out, "holder",
                      profile_text(profile, profile->functions[triage->holder].name));
        buffer_printf(out, ",\"holder_ns\":%lld", (long long)triage->holder_ns);
    }
    buffer_printf(out, ",\"stack_ns\":%lld,\"stack\":[", (long long)triage->node_ns);
    size_t count = list_stack(profile, triage->node, names);
    for (size_t i = 0; i < count; i++) {
        buffer_add_text(out, i ? "," : "");
        text_escape_json(out, names[i], strlen(names[i]));
    }
    buffer_add_char(out, ']');
    put_json_text(out, "next", advice(triage->verdict));
    buffer_add_text(out, "}\n");
}

static int triage_file(const struct triage_options *options, const char *path)
{
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    struct triage triage;
    const struct format *format;
    profile_init(&profile, PROFILE_LABELS);
    int r = input_read(&options->input, &path, 1, &profile, &format);
    if (r)
        return r;
    if (triage_profile(&profile, &triage, &error) < 0)
        return fail(&error);
    if (options->json)
        put_json(&profile, &triage, &out);
    else
        put_text(&profile, &triage, options->markdown, &out);
    fwrite(out.data, 1, out.length, stdout);
    return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int triage_live(const struct triage_options *options)
{
    char path[PATH_BYTES] = "/tmp/assay-triage-XXXXXX.pb.gz";
    struct error error = {0};
    int fd = options->output ? -1 : mkstemps(path, (int)strlen(".pb.gz"));
    if (!options->output && fd < 0) {
        error_set_errno(&error, -errno, "Cannot create a temporary file in /tmp");
        return fail(&error);
    }
    if (fd >= 0)
        close(fd);
    const char *file = options->output ? options->output : path;
    int r = record_into(options, file, &error) < 0 ? fail(&error) : triage_file(options, file);
    if (!options->output)
        unlink(path);
    return r;
}

int command_triage(int argc, char **argv)
{
    struct triage_options options = {.duration_s = DURATION_S};
    const struct option own[] = {
        {"Recording", .kind = OPTION_GROUP},
        {"pid", 'p', OPTION_TEXT, "PID[,PID]", "these processes and what they start", &options.pid},
        {"cgroup", 0, OPTION_TEXT, "PATH", "all in this cgroup and below it", &options.cgroup},
        {"all", 'a', OPTION_FLAG, NULL, "everything on this machine", &options.all},
        {"duration", 'd', OPTION_NUMBER, "SECONDS", "how long to record (10)", &options.duration_s},
        {"output", 'o', OPTION_TEXT, "FILE", "keep the recording here", &options.output},
        {"Output", .kind = OPTION_GROUP},
        {"json", 0, OPTION_FLAG, NULL, "one JSON object", &options.json},
        {"markdown", 0, OPTION_FLAG, NULL, "Markdown", &options.markdown},
        INPUT_OPTIONS(&options.input),
        {0}};
    struct command_line line = {
        .command = "triage",
        .arguments = "[FILE]",
        .summary = "Says where the time of a slow program goes: computing, waiting for a CPU, for\n"
                   "locks (and who holds them), for disks, for the network, or idle. Records\n"
                   "wall-clock time, or reads a recording of `assay record --mode wall,lock`.",
        .options = own,
        .most = 1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if ((line.count > 0) + !!options.pid + !!options.cgroup + options.all != 1)
        return options_wrong("triage", "say one of --pid PID, --cgroup PATH, --all and FILE.");
    if (options.duration_s <= 0 || options.duration_s > DURATION_S_MAX)
        return options_wrong("triage", "--duration is from 0 to 3600 seconds.");
    if (options.json && options.markdown)
        return options_wrong("triage", "--json and --markdown exclude each other.");
    return line.count ? triage_file(&options, line.values[0]) : triage_live(&options);
}
