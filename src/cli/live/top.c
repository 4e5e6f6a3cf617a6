// SPDX-License-Identifier: Apache-2.0
// `assay top`: functions by their share of CPU time, live. Samples come from top_sampler.c, are
// counted by top_window.c, and shown by top_view.c and top_draw.c on a terminal.c.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/live/top_sampler.h"
#include "cli/live/top_view.h"
#include "cli/table.h"
#include "profile/units.h"

#define PIDS_MAX 4096
#define REFRESH_S_MIN 0.1
#define REFRESH_S_MAX 3600

struct top_options {
    const char *pids, *cgroup;
    uint64_t frequency_hz, rows;
    double refresh_s, window_s;
    bool all, cumulative, once;
    struct group_options group;
};

struct top_target {
    pid_t pids[PIDS_MAX];
    size_t pid_count;
    struct buffer description; /* "process 123 (name)" */
};

static int parse_pids(const char *text, struct top_target *target, struct error *error)
{
    for (const char *at = text; *at || at == text;) {
        size_t length = strcspn(at, ",");
        uint64_t pid;
        if (!text_to_u64(at, length, &pid) || !pid || pid > INT32_MAX)
            return error_set(error, -EINVAL, "--pid requires process ids, not \"%s\".", text);
        if (target->pid_count == PIDS_MAX)
            return error_set(error, -E2BIG, "--pid accepts at most %d processes.", PIDS_MAX);
        target->pids[target->pid_count++] = (pid_t)pid;
        at += length + (at[length] == ',');
    }
    return 0;
}

static void describe(const struct top_options *options, struct top_target *target)
{
    struct buffer *out = &target->description;
    _cleanup_buffer_ struct buffer name = {0};
    char text[256] = "";
    if (options->cgroup) {
        buffer_printf(out, "cgroup %s", options->cgroup);
    } else if (target->pid_count == 1) {
        snprintf(text, sizeof(text), "/proc/%d/comm", (int)target->pids[0]);
        buffer_printf(out, "process %d", (int)target->pids[0]);
        if (file_read(text, 64, &name, NULL) == 0 && name.length > 1)
            buffer_printf(out, " (%.*s)", (int)name.length - 1, name.data);
    } else if (target->pid_count) {
        buffer_printf(out, "processes %s", options->pids);
    } else if (gethostname(text, sizeof(text) - 1) == 0 && *text) {
        buffer_printf(out, "all of %s", text);
    } else {
        buffer_add_text(out, "all of this machine");
    }
}

/* ---- once, as plain text ---- */

static void add_heading(struct buffer *out, const struct top_view *view,
                        const struct top_table *table)
{
    double seconds = (double)table->duration_ns / 1e9;
    units_add_grouped(out, &units_terminal, (double)table->samples);
    buffer_printf(out, " sample%s of %.1f s of ", table->samples == 1 ? "" : "s", seconds);
    text_escape_terminal(out, view->target, strlen(view->target));
    buffer_printf(out, " by %s, %.2f of %u CPU%s, ", view->backend,
                  seconds > 0 ? (double)table->whole_ns / 1e9 / seconds : 0, view->cpus,
                  view->cpus == 1 ? "" : "s");
    top_view_add_losses(out, table);
    buffer_add_char(out, '\n');
}

/* Names come last, since they may be as long as they like. */
static void print_once(const struct top_view *view, const struct top_table *top, uint64_t rows)
{
    static const struct column columns[] = {{"SELF%", NULL, COLUMN_PERCENT},
                                            {"TOTAL%", NULL, COLUMN_PERCENT},
                                            {"BINARY", NULL, COLUMN_NAME},
                                            {"FUNCTION", NULL, COLUMN_NAME}};
    _cleanup_table_ struct table table;
    _cleanup_buffer_ struct buffer out = {0};
    table_init(&table, columns, ARRAY_LENGTH(columns), "");
    for (size_t i = 0; i < top->count && (!rows || i < rows); i++) {
        const struct top_row *row = &top->rows[i];
        table_add(&table, (struct cell[]){cell_percent(row->self_ns, top->whole_ns),
                                          cell_percent(row->total_ns, top->whole_ns),
                                          cell_text(row->binary), cell_text(row->name)});
    }
    add_heading(&out, view, top);
    table_write(&table, TABLE_TEXT, view->colour, &out);
    print_buffer(&out);
}

static int top_once(struct top_sampler *sampler, struct top_view *view, struct top_window *window,
                    uint64_t rows)
{
    _cleanup_top_table_ struct top_table table = {0};
    struct top_slice *slice = NULL;
    struct error error = {0};
    if (view->notice)
        log_warning("%s", view->notice);
    if (top_sampler_take(sampler, &slice, &error) < 0)
        return fail(&error);
    top_window_add(window, slice);
    top_view_count(view, window, &table);
    print_once(view, &table, rows);
    return EXIT_FINE;
}

/* ---- on a terminal ---- */

struct live {
    struct terminal *terminal;
    struct top_sampler *sampler;
    struct top_view *view;
    struct top_window *window;
    struct top_table table;
    struct screen screen;
    bool stale; /* the window was shown during a pause, and is over */
};

/* 0, or a negative code when samples cannot be had any more. */
static int take_slices(struct live *live, struct error *error)
{
    int state = 0;
    struct top_slice *slice;
    while ((slice = top_sampler_next(live->sampler, &state, error))) {
        if (live->view->paused) {
            live->stale = true;
            top_slice_free(slice);
            continue;
        }
        if (live->stale)
            top_window_clear(live->window);
        live->stale = false;
        top_window_add(live->window, slice);
    }
    live->view->ended = state == 1;
    return MIN(state, 0);
}

static void draw(struct live *live, bool count)
{
    size_t rows, columns;
    terminal_size(live->terminal, &rows, &columns);
    if (count) {
        top_table_release(&live->table);
        top_view_count(live->view, live->window, &live->table);
    }
    top_view_follow(live->view, &live->table, top_view_rows(live->view, rows));
    screen_reset(&live->screen, rows, columns);
    top_view_draw(live->view, &live->table, &live->screen);
    terminal_show(live->terminal, &live->screen);
}

static enum top_action press_keys(struct live *live)
{
    enum top_action most = TOP_NOTHING;
    size_t rows, columns;
    int key;
    terminal_size(live->terminal, &rows, &columns);
    while (most < TOP_COUNT && (key = terminal_read_key(live->terminal)) != KEY_NONE) {
        enum top_action action =
            top_view_key(live->view, &live->table, top_view_rows(live->view, rows), key);
        most = MAX(most, action);
    }
    return most;
}

static int watch(struct live *live, struct error *error)
{
    for (;;) {
        unsigned events = terminal_wait(live->terminal, top_sampler_fd(live->sampler), -1);
        if (events & TERMINAL_END)
            return 0;
        enum top_action action = events & TERMINAL_KEY ? press_keys(live) : TOP_NOTHING;
        if (events & TERMINAL_SIZE)
            action = MAX(action, TOP_DRAW);
        if (events & TERMINAL_OTHER) {
            int r = take_slices(live, error);
            if (r < 0)
                return r;
            action = MAX(action, TOP_COUNT);
        }
        if (action == TOP_QUIT)
            return 0;
        if (action)
            draw(live, action == TOP_COUNT);
    }
}

static int top_live(struct top_sampler *sampler, struct top_view *view, struct top_window *window)
{
    struct live live = {.sampler = sampler, .view = view, .window = window};
    struct error error = {0};
    int r = terminal_new(&live.terminal, &error);
    if (!r)
        r = top_sampler_start(sampler, &error);
    if (!r) {
        draw(&live, true);
        r = watch(&live, &error);
    }
    terminal_free(live.terminal);
    top_table_release(&live.table);
    screen_release(&live.screen);
    return r < 0 ? fail(&error) : EXIT_FINE;
}

static int top(const struct top_options *options, struct top_target *target)
{
    struct capture_options capture = {.all = !target->pid_count && !options->cgroup,
                                      .cgroup = options->cgroup,
                                      .pids = target->pids,
                                      .pid_count = target->pid_count,
                                      .frequency_hz = (unsigned)options->frequency_hz,
                                      .kernel = true,
                                      .user = true};
    struct top_sampler *sampler = NULL;
    struct error error = {0};
    int r = top_sampler_new(&capture, (int64_t)(options->refresh_s * 1e9), &options->group.keys,
                            &sampler, &error);
    if (r < 0)
        return fail(&error);
    struct top_window window = {.duration_ns = (int64_t)(options->window_s * 1e9)};
    struct top_view view;
    top_view_init(&view);
    view.target = buffer_text(&target->description);
    view.backend = top_sampler_backend(sampler);
    view.notice = top_sampler_shortcoming(sampler);
    view.frequency_hz = (unsigned)options->frequency_hz;
    view.cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    view.colour = terminal_colour();
    view.order = options->cumulative ? TOP_BY_TOTAL : TOP_BY_SELF;
    bool once = options->once || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
    r = once ? top_once(sampler, &view, &window, options->rows) : top_live(sampler, &view, &window);
    top_sampler_free(sampler);
    top_view_release(&view);
    top_window_clear(&window);
    return r;
}

/* Returns 0 or an exit code. */
static int check(const struct top_options *options)
{
    if (options->all + !!options->pids + !!options->cgroup > 1)
        return options_wrong("top", "specify one of --all, --pid and --cgroup.");
    if (options->frequency_hz < 1 || options->frequency_hz > 10000)
        return options_wrong("top", "--frequency must be from 1 to 10000.");
    if (!(options->refresh_s >= REFRESH_S_MIN && options->refresh_s <= REFRESH_S_MAX))
        return options_wrong("top", "--delay must be from 0.1 to 3600 seconds.");
    if (!(options->window_s >= 0 && options->window_s <= options->refresh_s * TOP_SLICES_MAX))
        return options_wrong("top", "--window must be at most %d times --delay.", TOP_SLICES_MAX);
    return 0;
}

int command_top(int argc, char **argv)
{
    struct top_options options = {.frequency_hz = 99, .rows = 20, .refresh_s = 1, .window_s = 5};
    const struct option own[] = {
        {"Target", .kind = OPTION_GROUP},
        {"all", 'a', OPTION_FLAG, NULL, "everything on this machine (default)", &options.all},
        {"pid", 'p', OPTION_TEXT, "PID[,PID]", "these processes and their children", &options.pids},
        {"cgroup", 0, OPTION_TEXT, "PATH", "the processes of a cgroup and those below it",
         &options.cgroup},
        {"frequency", 'F', OPTION_COUNT, "HZ", "samples per second of CPU time (99)",
         &options.frequency_hz},
        {"Showing", .kind = OPTION_GROUP},
        {"delay", 'd', OPTION_NUMBER, "SECONDS", "time between refreshes (1)", &options.refresh_s},
        {"window", 'w', OPTION_NUMBER, "SECONDS", "time window of the shown values (5)",
         &options.window_s},
        {"cum", 0, OPTION_FLAG, NULL, "sort by total instead of self", &options.cumulative},
        GROUP_OPTION(&options.group),
        {"once", 0, OPTION_FLAG, NULL, "print one table after the first refresh and exit",
         &options.once},
        {"rows", 'n', OPTION_COUNT, "N", "rows of this table (20; 0: all)", &options.rows},
        {0}};
    struct command_line line = {
        .command = "top",
        .arguments = "",
        .summary =
            "Shows live which functions use the CPU time. `?` lists the keys, `q` quits.\nIf input "
            "or output is not a terminal, it prints one table, as with --once.",
        .options = own,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    r = check(&options);
    if (!r)
        r = input_group(&options.group, "top");
    if (r)
        return r;
    struct top_target *target = memory_zalloc(1, sizeof(*target));
    struct error error = {0};
    r = options.pids ? parse_pids(options.pids, target, &error) : 0;
    describe(&options, target);
    r = r < 0 ? options_wrong("top", "%s", error.text) : top(&options, target);
    buffer_release(&target->description);
    profile_group_release(&options.group.keys);
    free(target);
    return r;
}
