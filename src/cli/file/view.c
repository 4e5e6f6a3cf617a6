// SPDX-License-Identifier: Apache-2.0
// `assay view`: the server's page for files, without a server. The process serves one profile, or a
// diff of two, on a free port of this machine until it is stopped.

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/file/view_asm.h"
#include "cli/input.h"
#include "http/server/server.h"
#include "io/json_write.h"
#include "profile/filter.h"
#include "server/api/api.h"
#include "server/api/api_files.h"
#include "server/query/context.h"
#include "server/web/web.h"

#define SECRET_BYTES 16
#define FILES_MAX 2
#define BODY_BYTES_MAX ((size_t)1 << 30) /* of a file that is dropped on the page */
#define DEFAULT_EXPANSION ((uint64_t)4 << 30)
#define GRACE_MS 500
/* All that a page can save in another format. */
#define DETAIL (PROFILE_LABELS | PROFILE_LINES | PROFILE_ADDRESSES | PROFILE_TIMES)

struct view_options {
    struct input_options input;
    struct filter_options filter;
    const char *listen;
    bool open, once;
};

struct view {
    const struct view_options *options;
    char secret[2 * SECRET_BYTES + 1];
    struct profile profiles[FILES_MAX];
    struct file_profile files[FILES_MAX];
    size_t count;
};

static void view_release(struct view *view)
{
    for (size_t i = 0; i < view->count; i++)
        profile_release(&view->profiles[i]);
}

/* ---- reading ---- */

static int load(struct view *view, const struct command_line *line)
{
    for (int i = 0; i < line->count; i++) {
        struct profile *profile = &view->profiles[i];
        struct file_profile *file = &view->files[i];
        struct error error = {0};
        profile_init(profile, DETAIL | input_filter_detail(&view->options->filter));
        view->count++;
        int r = input_read(&view->options->input, &line->values[i], 1, profile, &file->format);
        if (!r && profile_prune(profile, &error) < 0)
            return fail(&error);
        if (!r)
            r = input_filter(&view->options->filter, "view", profile);
        if (r)
            return r;
        file->name = path_base(input_name(line->values[i]));
        file->profile = profile;
    }
    return 0;
}

/* ---- answering ---- */

/* Other users of the machine can reach the port, but don't know the address. Takes the same time
 * whichever byte is wrong. */
static bool is_allowed(struct http_request *request, const struct view *view)
{
    static const char scheme[] = "Bearer ";
    const char *header = http_request_header(request, "Authorization");
    unsigned differs = 1;
    if (header && !strncmp(header, scheme, sizeof(scheme) - 1) &&
        strlen(header + sizeof(scheme) - 1) == sizeof(view->secret) - 1) {
        differs = 0;
        for (size_t i = 0; i < sizeof(view->secret) - 1; i++)
            differs |= (unsigned)(header[sizeof(scheme) - 1 + i] ^ view->secret[i]);
    }
    if (differs)
        http_respond_error(request, 401, "Open the complete URL that assay view printed.");
    return !differs;
}

static void answer_list(struct http_request *request, void *userdata)
{
    const struct view *view = userdata;
    struct buffer out = {0};
    if (!is_allowed(request, view))
        return;
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    json_write_key(&json, "files");
    json_write_array(&json);
    for (size_t i = 0; i < view->count; i++)
        json_write_text(&json, view->files[i].name);
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
}

static int find_file(struct http_request *request, const struct view *view,
                     const struct file_profile **ret_file, struct error *error)
{
    const char *rest = http_request_rest(request);
    int64_t index;
    if (!text_to_i64(rest, strlen(rest), &index) || index < 0 || index >= (int64_t)view->count)
        return error_set(error, -ENOENT, "File not found.");
    *ret_file = &view->files[index];
    return 0;
}

static void answer_flame(struct http_request *request, void *userdata)
{
    const struct file_profile *file = NULL;
    const struct format *format = NULL;
    _cleanup_tree_part_ struct tree_part part = {0};
    struct buffer out = {0};
    struct error error = {0};
    if (!is_allowed(request, userdata))
        return;
    int r = find_file(request, userdata, &file, &error);
    if (!r)
        r = api_asked_format(request, "json", &format, &error);
    if (!r)
        r = tree_part_read(&part, request, FILES_NODES, FILES_NODES_MAX, &error);
    if (!r && format)
        r = api_write_format(request, file->profile, format, file->name, &error);
    else if (!r && !(r = files_put_flame(&out, file, &part, &error)))
        api_respond(request, "application/json", &out);
    if (r < 0)
        http_respond_failure(request, &error);
    buffer_release(&out);
}

static void answer_diff(struct http_request *request, void *userdata)
{
    const struct view *view = userdata;
    struct files_comparison comparison = {0};
    _cleanup_tree_part_ struct tree_part part = {0};
    struct buffer out = {0};
    struct error error = {0};
    uint64_t base = 0, new_side = view->count - 1;
    if (!is_allowed(request, view))
        return;
    int r = files_read_comparison(&comparison, request, &error);
    if (!r)
        r = tree_part_read(&part, request, FILES_NODES, FILES_NODES_MAX, &error);
    if (!r)
        r = parameter_number(request, "base", 0, view->count - 1, &base, &error);
    if (!r)
        r = parameter_number(request, "new", 0, view->count - 1, &new_side, &error);
    comparison.base = &view->files[base];
    comparison.new_side = &view->files[new_side];
    if (!r)
        r = files_put_diff(&out, &comparison, &part, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        api_respond(request,
                    comparison.format ? api_content_type(comparison.format) : "application/json",
                    &out);
    buffer_release(&out);
}

static void answer_assembly(struct http_request *request, void *userdata)
{
    const struct file_profile *file = NULL;
    struct buffer out = {0};
    struct error error = {0};
    if (!is_allowed(request, userdata))
        return;
    int r = find_file(request, userdata, &file, &error);
    const char *function = http_request_query(request, "function");
    if (!r && !function)
        r = error_set(&error, -EINVAL, "The parameter function is missing.");
    if (!r)
        r = view_put_assembly(&out, file->profile, function, http_request_query(request, "type"),
                              &error);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        api_respond(request, "application/json", &out);
    buffer_release(&out);
}

static uint64_t dropped_limit(const struct view *view)
{
    uint64_t limit = view->options->input.expansion_limit;
    return limit ? limit : DEFAULT_EXPANSION;
}

static void answer_dropped_flame(struct http_request *request, void *userdata)
{
    if (is_allowed(request, userdata))
        files_answer_flame(request, dropped_limit(userdata));
}

static void answer_dropped_diff(struct http_request *request, void *userdata)
{
    if (is_allowed(request, userdata))
        files_answer_diff(request, dropped_limit(userdata), NULL);
}

static const struct http_route routes[] = {
    {"GET", "/view/*", HTTP_ROLE_ANY, web_page, 0, 0},
    {"GET", "/assets/*", HTTP_ROLE_ANY, web_asset, 0, 0},
    {"GET", "/api/v1/view", HTTP_ROLE_ANY, answer_list, 0, 0},
    {"GET", "/api/v1/view/flame/*", HTTP_ROLE_ANY, answer_flame, 0, 0},
    {"GET", "/api/v1/view/diff", HTTP_ROLE_ANY, answer_diff, 0, 0},
    {"GET", "/api/v1/view/assembly/*", HTTP_ROLE_ANY, answer_assembly, 0, 0},
    {"POST", "/api/v1/files/flame", HTTP_ROLE_ANY, answer_dropped_flame, BODY_BYTES_MAX, 0},
    {"POST", "/api/v1/files/diff", HTTP_ROLE_ANY, answer_dropped_diff, BODY_BYTES_MAX, 0},
};

/* With --once, the page that has its data is all that was wanted. */
static void note_access(void *userdata, const struct http_access *access)
{
    const struct view *view = userdata;
    if (view->options->once && access->status == 200 &&
        !strncmp(access->path, "/api/v1/view/", strlen("/api/v1/view/")))
        kill(getpid(), SIGTERM);
}

/* ---- the life of it ---- */

static int make_secret(struct view *view, struct error *error)
{
    uint8_t random[SECRET_BYTES];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return error_set_errno(error, -errno, "getrandom() failed");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(view->secret + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static void open_browser(const char *address)
{
    extern char **environ;
    const char *arguments[] = {"xdg-open", address, NULL};
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t child;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int failed =
        posix_spawnp(&child, arguments[0], NULL, &attributes, (char *const *)arguments, environ);
    posix_spawnattr_destroy(&attributes);
    if (failed)
        log_warning("Failed to start a browser (xdg-open: %s); open the URL yourself.",
                    strerror(failed));
}

static int serve(struct view *view)
{
    struct error error = {0};
    struct http_server *server = NULL;
    sigset_t set;
    const char *listen = view->options->listen ? view->options->listen : "127.0.0.1:0";
    struct http_server_options http = {.listen = &listen,
                                       .listen_count = 1,
                                       .routes = routes,
                                       .route_count = ARRAY_LENGTH(routes),
                                       .userdata = view,
                                       .on_access = note_access};
    /* Before any thread, so that all have the signals blocked. */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* the browser's starter is not waited for */
    if (make_secret(view, &error) < 0 || http_server_start(&http, &server, &error) < 0)
        return fail(&error);
    _cleanup_buffer_ struct buffer address = {0};
    buffer_printf(&address, "http://%s/view/%s", http_server_address(server, 0), view->secret);
    printf("%s\n", buffer_text(&address));
    fflush(stdout);
    if (view->options->open)
        open_browser(buffer_text(&address));
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "Open this URL in a browser; press Ctrl-C to stop.\n");
    sigwaitinfo(&set, NULL);
    http_server_stop(server, GRACE_MS);
    return EXIT_FINE;
}

int command_view(int argc, char **argv)
{
    struct view_options options = {0};
    const struct option own[] = {
        {"Page", .kind = OPTION_GROUP},
        {"open", 0, OPTION_FLAG, NULL, "open the page in the browser", &options.open},
        {"listen", 'l', OPTION_TEXT, "ADDR", "listen address (default: 127.0.0.1 and a free port)",
         &options.listen},
        {"once", 0, OPTION_FLAG, NULL, "stop when a page has loaded its data", &options.once},
        {0}};
    const struct option common[] = {
        FILTER_OPTIONS(&options.filter), INPUT_OPTIONS(&options.input), {0}};
    struct command_line line = {
        .command = "view",
        .arguments = "FILE | BASE NEW",
        .summary =
            "Shows a profile, or the difference between two, in the browser. This process\nserves "
            "the page on this machine only, at a URL that can't be guessed,\nuntil Ctrl-C.",
        .options = own,
        .more_options = common,
        .least = 1,
        .most = FILES_MAX,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    _cleanup_(view_release) struct view view = {.options = &options};
    r = load(&view, &line);
    return r ? r : serve(&view);
}
