// SPDX-License-Identifier: Apache-2.0
// `assay triage`: it is slow, so where is the time? Records wall-clock time, or reads a recording,
// and says it in words and numbers.

#include "profile/triage/triage_report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/remote/control.h"
#include "cli/terminal.h"
#include "profile/naming.h"

#define DURATION_S 10
#define DURATION_S_MAX 3600
#define PATH_BYTES 64

struct triage_options {
    const char *pid, *cgroup, *output, *service, *from, *to, *flame;
    struct server_link link;
    bool all, json, markdown;
    double duration_s;
    struct input_options input;
};

/* ---- recording ---- */

/* By `assay record`, which is this program: a process of its own can't take ours with it. */
static int record_into(const struct triage_options *options, const char *path, struct error *error)
{
    char duration[32];
    const char *argv[16] = {"/proc/self/exe", "record", "-q", "-m", "wall,lock,goroutine", "-d",
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

/* The same recording as a flame graph, coloured by state. */
static int draw(const struct triage_options *options, const struct profile *profile,
                const struct format *format, const char *path, struct error *error)
{
    unsigned type = profile_find_type(profile, "wall");
    struct write_options write = {
        .type = type < PROFILE_TYPES_MAX ? (int)type : 0,
        .title = options->pid      ? options->pid
                 : options->cgroup ? options->cgroup
                 : options->all    ? "this machine"
                                   : path_base(path),
    };
    return format_write_file(options->flame, format, profile, &write, error);
}

static int triage_file(const struct triage_options *options, const char *path)
{
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0}, target = {0};
    struct error error = {0};
    struct triage triage;
    const struct format *format, *picture = NULL;
    int r = options->flame ? output_format("triage", NULL, options->flame, &picture) : 0;
    if (r)
        return r;
    profile_init(&profile, PROFILE_LABELS | (picture ? picture->detail : 0));
    r = input_read(&options->input, &path, 1, &profile, &format);
    if (r)
        return r;
    if (triage_profile(&profile, &triage, &error) < 0 ||
        (picture && draw(options, &profile, picture, path, &error) < 0))
        return fail(&error);
    if (options->pid)
        buffer_printf(&target, "-p %s", options->pid);
    else if (options->cgroup)
        buffer_printf(&target, "--cgroup %s", options->cgroup);
    else if (options->all)
        buffer_add_text(&target, "-a");
    triage.target = target.length ? buffer_text(&target) : NULL;
    if (options->json)
        triage_put_json(&profile, &triage, &out);
    else
        triage_put_text(&profile, &triage, options->markdown, &out);
    fwrite(out.data, 1, out.length, stdout);
    return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- a server ---- */

static void add_parameter(struct buffer *path, const char *name, const char *value)
{
    buffer_printf(path, "&%s=", name);
    for (; *value; value++)
        if (isalnum((unsigned char)*value) || strchr("-_.~", *value))
            buffer_add_char(path, *value);
        else
            buffer_printf(path, "%%%02X", (unsigned char)*value);
}

static int ask(struct triage_options *options, const char *path, const char *format,
               const char *query, struct buffer *ret_answer, struct error *error)
{
    _cleanup_buffer_ struct buffer whole = {0};
    buffer_printf(&whole, "%s?format=%s", path, format);
    add_parameter(&whole, "query", query);
    add_parameter(&whole, "from", options->from ? options->from : "now-15m");
    add_parameter(&whole, "to", options->to ? options->to : "now");
    return server_link_call(&options->link, "GET", buffer_text(&whole), NULL, ret_answer, error);
}

/* Shows the server's triage of agents' measurements. */
static int triage_service(struct triage_options *options)
{
    _cleanup_buffer_ struct buffer query = {0}, answer = {0}, picture = {0};
    struct error error = {0};
    buffer_add_text(&query, "wall{service_name=");
    text_escape_json(&query, options->service, strlen(options->service));
    buffer_add_char(&query, '}');
    int r = server_link_open(&options->link, &error);
    if (!r)
        r = ask(options, "/api/v1/triage",
                options->json       ? "json"
                : options->markdown ? "markdown"
                                    : "text",
                buffer_text(&query), &answer, &error);
    if (!r && options->flame)
        r = ask(options, "/api/v1/flame", "html", buffer_text(&query), &picture, &error);
    if (!r && options->flame)
        r = file_write_atomic(options->flame, picture.data, picture.length, &error);
    server_link_close(&options->link);
    if (r < 0)
        return fail(&error);
    fwrite(answer.data, 1, answer.length, stdout);
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
        {"Asking a server", .kind = OPTION_GROUP},
        {"service", 0, OPTION_TEXT, "NAME", "what agents measured of this service",
         &options.service},
        {"from", 0, OPTION_TEXT, "T", "start: unix seconds, RFC 3339 or now-15m (default)",
         &options.from},
        {"to", 0, OPTION_TEXT, "T", "end, likewise (now)", &options.to},
        SERVER_LINK_OPTIONS(options.link),
        {"Output", .kind = OPTION_GROUP},
        {"json", 0, OPTION_FLAG, NULL, "one JSON object", &options.json},
        {"markdown", 0, OPTION_FLAG, NULL, "Markdown", &options.markdown},
        {"flame", 0, OPTION_TEXT, "FILE", "also draw a flame graph, FILE.html", &options.flame},
        INPUT_OPTIONS(&options.input),
        {0}};
    struct command_line line = {
        .command = "triage",
        .arguments = "[FILE]",
        .summary =
            "Says where the time of a slow program goes: computing, waiting for a CPU, for\n"
            "locks (and who holds them), for disks, for the network, or idle. Records\n"
            "wall-clock time, reads a recording of `assay record --mode wall,lock`, or asks a\n"
            "server what its agents measured.",
        .options = own,
        .most = 1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if ((line.count > 0) + !!options.pid + !!options.cgroup + !!options.service + options.all != 1)
        return options_wrong(
            "triage", "specify one of --pid PID, --cgroup PATH, --all, --service NAME and FILE.");
    if (!options.service && (options.from || options.to || options.link.url ||
                             options.link.token_file || options.link.ca))
        return options_wrong("triage", "--from, --to, --server, --token-file and --ca are for "
                                       "--service.");
    if (options.duration_s <= 0 || options.duration_s > DURATION_S_MAX)
        return options_wrong("triage", "--duration is from 0 to 3600 seconds.");
    if (options.json && options.markdown)
        return options_wrong("triage", "--json and --markdown exclude each other.");
    const char *dot = options.flame ? strrchr(options.flame, '.') : NULL;
    if (options.flame && (!dot || strcmp(dot, ".html") != 0))
        return options_wrong("triage", "--flame requires a file that ends in .html.");
    return options.service ? triage_service(&options)
           : line.count    ? triage_file(&options, line.values[0])
                           : triage_live(&options);
}
