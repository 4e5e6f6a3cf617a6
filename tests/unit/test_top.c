// SPDX-License-Identifier: Apache-2.0
// `assay top`: what it counts, what keys do, and the lines that it shows, without a terminal.

#include "cli/live/top_draw.c"
#include "cli/live/top_view.c"
#include "cli/live/top_window.c"
#include "cli/terminal.c"

#include "unit.h"

#define MS 1000000ll

/* Adds a stack such as "main@app;read@libc.so;!vfs_read": outermost first, "!" before functions of
 * the kernel, "0x12@app" for an address without a name. */
static void add_stack(struct top_slice *slice, uint32_t pid, const char *process, const char *stack,
                      int64_t cpu_ns)
{
    struct profile *profile = &slice->profile;
    char text[8192];
    uint32_t frames[512];
    size_t depth = 0;
    snprintf(text, sizeof(text), "%s", stack);
    struct profile_function root = {.name = profile_cstring(profile, process)};
    frames[depth++] = profile_frame(
        profile, &(struct profile_frame){.function = profile_function(profile, &root)});
    char *rest = text;
    for (char *name; (name = strsep(&rest, ";")) && *name;) {
        struct profile_frame frame = {.kind = *name == '!' ? FRAME_KERNEL : FRAME_NATIVE};
        name += *name == '!';
        char *binary = strchr(name, '@');
        char path[300];
        if (binary)
            *binary++ = '\0';
        snprintf(path, sizeof(path), "/usr/lib/%s", binary ? binary : "");
        frame.mapping = profile_mapping(
            profile, &(struct profile_mapping){
                         .limit = UINT64_MAX,
                         .file = profile_cstring(
                             profile, frame.kind == FRAME_KERNEL ? "[kernel.kallsyms]" : path)});
        struct profile_function function = {.name = profile_cstring(profile, name)};
        if (!strncmp(name, "0x", 2))
            frame.address = strtoull(name, NULL, 16);
        else
            frame.function = profile_function(profile, &function);
        frames[depth++] = profile_frame(profile, &frame);
    }
    struct profile_label label = {.key = profile_cstring(profile, "pid"), .number = pid};
    unsigned samples = profile_type(profile, profile_cstring(profile, "samples"),
                                    profile_cstring(profile, "count"));
    unsigned cpu = profile_type(profile, profile_cstring(profile, "cpu"),
                                profile_cstring(profile, "nanoseconds"));
    size_t row = profile_sample(profile, profile_stack(profile, frames, depth),
                                profile_label_set(profile, &label, 1), 0, 0);
    profile_add_value(profile, row, samples, 1);
    profile_add_value(profile, row, cpu, cpu_ns);
    slice->samples++;
}

static struct top_slice *new_slice(int64_t duration_ms)
{
    struct top_slice *slice = top_slice_new(PROFILE_LABELS);
    slice->duration_ns = duration_ms * MS;
    return slice;
}

/* Two processes: app burns 60 in itself, 20 in a kernel that it calls through libc; web has a main
 * of its own, and there is a thread of the kernel. */
static struct top_slice *known_slice(void)
{
    struct top_slice *slice = new_slice(1000);
    add_stack(slice, 10, "app", "main@app;work@app;burn@app", 60 * MS);
    add_stack(slice, 10, "app", "main@app;read@libc.so;!entry;!vfs_read", 20 * MS);
    add_stack(slice, 11, "web", "main@web;0x40@web", 15 * MS);
    add_stack(slice, 12, "kworker", "!worker", 5 * MS);
    return slice;
}

static const struct top_row *row_of(const struct top_table *table, const char *name,
                                    const char *binary)
{
    for (size_t i = 0; i < table->count; i++)
        if (!strcmp(table->rows[i].name, name) && !strcmp(table->rows[i].binary, binary))
            return &table->rows[i];
    fail_msg("There is no row %s of %s.", name, binary);
    return NULL;
}

#define assert_row(table, name, binary, self_ms, total_ms)                                         \
    do {                                                                                           \
        assert_int_equal(row_of(table, name, binary)->self_ns, (self_ms)*MS);                      \
        assert_int_equal(row_of(table, name, binary)->total_ns, (total_ms)*MS);                    \
    } while (0)

static void functions_are_counted(void **state)
{
    (void)state;
    struct top_window window = {.duration_ns = 5000 * MS};
    _cleanup_top_table_ struct top_table table = {0};
    top_window_add(&window, known_slice());
    top_window_add(&window, known_slice());
    top_functions(&window, &(struct top_query){0}, &table);
    assert_int_equal(table.whole_ns, 200 * MS);
    assert_int_equal(table.samples, 8);
    assert_int_equal(table.duration_ns, 2000 * MS);
    assert_row(&table, "burn", "app", 120, 120);
    assert_row(&table, "main", "app", 0, 160);
    assert_row(&table, "main", "web", 0, 30);
    assert_row(&table, "web+0x40", "web", 30, 30);
    assert_row(&table, "vfs_read", "[kernel]", 40, 40);
    assert_row(&table, "read", "libc.so", 0, 40);
    assert_true(row_of(&table, "vfs_read", "[kernel]")->kernel);
    assert_false(row_of(&table, "read", "libc.so")->kernel);
    assert_string_equal(table.rows[0].name, "burn");
    assert_string_equal(table.rows[1].name, "vfs_read");
    for (size_t i = 1; i < table.count; i++)
        assert_true(table.rows[i - 1].self_ns >= table.rows[i].self_ns);
    top_table_release(&table);
    top_functions(&window, &(struct top_query){.order = TOP_BY_TOTAL}, &table);
    assert_string_equal(table.rows[0].name, "main");
    top_window_clear(&window);
}

static void kernel_counts_for_callers(void **state)
{
    (void)state;
    struct top_window window = {.duration_ns = 5000 * MS};
    _cleanup_top_table_ struct top_table table = {0};
    top_window_add(&window, known_slice());
    top_functions(&window, &(struct top_query){.no_kernel = true}, &table);
    assert_row(&table, "read", "libc.so", 20, 20);
    assert_row(&table, "[kernel]", "", 5, 5);
    for (size_t i = 0; i < table.count; i++)
        assert_string_not_equal(table.rows[i].binary, "[kernel]");
    assert_int_equal(table.whole_ns, 100 * MS);
    top_window_clear(&window);
}

static void processes_are_counted(void **state)
{
    (void)state;
    struct top_window window = {.duration_ns = 5000 * MS};
    _cleanup_top_table_ struct top_table table = {0};
    struct top_slice *slice = known_slice();
    add_stack(slice, 0, "nobody", "main@a", 1 * MS);
    add_stack(slice, 0, "else", "main@a", 2 * MS);
    top_window_add(&window, slice);
    top_processes(&window, &(struct top_query){.pid = 11}, &table);
    assert_int_equal(table.count, 5);
    assert_int_equal(table.rows[0].pid, 10);
    assert_row(&table, "app", "", 80, 80);
    assert_row(&table, "web", "", 15, 15);
    assert_row(&table, "nobody", "", 1, 1);
    assert_row(&table, "else", "", 2, 2);
    top_table_release(&table);
    top_functions(&window, &(struct top_query){.pid = 11}, &table);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.whole_ns, 15 * MS);
    assert_int_equal(table.samples, 1);
    top_window_clear(&window);
}

static void filters_leave_shares_alone(void **state)
{
    (void)state;
    struct top_window window = {.duration_ns = 5000 * MS};
    _cleanup_top_table_ struct top_table table = {0};
    top_window_add(&window, known_slice());
    top_functions(&window, &(struct top_query){.filter = "LIBC"}, &table);
    assert_int_equal(table.count, 1);
    assert_string_equal(table.rows[0].name, "read");
    assert_int_equal(table.hidden, 8);
    assert_int_equal(table.whole_ns, 100 * MS);
    top_table_release(&table);
    top_processes(&window, &(struct top_query){.filter = "12"}, &table);
    assert_int_equal(table.count, 1);
    assert_string_equal(table.rows[0].name, "kworker");
    top_window_clear(&window);
}

static void neighbours_are_counted(void **state)
{
    (void)state;
    struct top_window window = {.duration_ns = 5000 * MS};
    _cleanup_top_table_ struct top_table table = {0};
    struct top_slice *slice = new_slice(1000);
    add_stack(slice, 1, "app", "main@app;a@app;f@app;x@app", 10 * MS);
    add_stack(slice, 1, "app", "main@app;b@app;f@app;f@app;f@app", 7 * MS);
    add_stack(slice, 1, "app", "f@app;!entry", 3 * MS);
    add_stack(slice, 1, "app", "main@app", 2 * MS);
    top_window_add(&window, slice);
    top_neighbours(&window, &(struct top_query){0}, "f", "app", &table);
    const struct {
        const char *name;
        enum top_relation relation;
        int64_t self_ms, total_ms;
    } expected[] = {
        {"a", TOP_CALLER, 0, 10},    {"b", TOP_CALLER, 0, 7},  {"f", TOP_CALLER, 0, 7},
        {"f", TOP_ITSELF, 7, 20},    {"x", TOP_CALLEE, 0, 10}, {"f", TOP_CALLEE, 0, 7},
        {"entry", TOP_CALLEE, 0, 3},
    };
    assert_int_equal(table.count, ARRAY_LENGTH(expected));
    for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
        assert_string_equal(table.rows[i].name, expected[i].name);
        assert_int_equal(table.rows[i].relation, expected[i].relation);
        assert_int_equal(table.rows[i].self_ns, expected[i].self_ms * MS);
        assert_int_equal(table.rows[i].total_ns, expected[i].total_ms * MS);
    }
    /* A function that isn't there any more has only itself. */
    top_table_release(&table);
    top_neighbours(&window, &(struct top_query){0}, "gone", "app", &table);
    assert_int_equal(table.count, 1);
    assert_int_equal(table.rows[0].total_ns, 0);
    top_window_clear(&window);
}

static void windows_slide(void **state)
{
    (void)state;
    struct top_window window = {.duration_ns = 5000 * MS};
    for (int i = 0; i < 20; i++)
        top_window_add(&window, new_slice(1000 + i % 3));
    assert_int_equal(window.count, 5);
    top_window_add(&window, new_slice(30000));
    assert_int_equal(window.count, 1);
    window.duration_ns = INT64_MAX;
    for (int i = 0; i < 100; i++)
        top_window_add(&window, new_slice(1));
    assert_int_equal(window.count, TOP_SLICES_MAX);
    top_window_clear(&window);
    assert_int_equal(window.count, 0);

    _cleanup_top_table_ struct top_table table = {0};
    top_functions(&window, &(struct top_query){0}, &table);
    assert_int_equal(table.count, 0);
    assert_string_equal(table.loss, "");
}

static void keys_are_parsed(void **state)
{
    (void)state;
    const struct {
        const char *bytes;
        bool complete;
        int key;
        size_t length;
    } cases[] = {
        {"", true, KEY_NONE, 0},
        {"q", false, 'q', 1},
        {"\r", false, KEY_ENTER, 1},
        {"\n", false, KEY_ENTER, 1},
        {"\177", false, KEY_BACKSPACE, 1},
        {"\b", false, KEY_BACKSPACE, 1},
        {"\033[A", false, KEY_UP, 3},
        {"\033OB", false, KEY_DOWN, 3},
        {"\033[Cq", false, KEY_RIGHT, 3},
        {"\033[D", false, KEY_LEFT, 3},
        {"\033[5~", false, KEY_PAGE_UP, 4},
        {"\033[6~x", false, KEY_PAGE_DOWN, 4},
        {"\033[H", false, KEY_HOME, 3},
        {"\033[4~", false, KEY_END, 4},
        {"\033[1;5A", false, KEY_UP, 6},
        {"\033[6;2~", false, KEY_PAGE_DOWN, 6},
        {"\033[200~", false, KEY_UNKNOWN, 6},
        {"\033[99999999999999999999~", false, KEY_UNKNOWN, 23},
        {"\033[Z", false, KEY_UNKNOWN, 3},
        {"\033[1\001q", false, KEY_UNKNOWN, 3},
        {"\033", false, KEY_NONE, 0},
        {"\033[", false, KEY_NONE, 0},
        {"\033[1;", false, KEY_NONE, 0},
        {"\033", true, KEY_ESCAPE, 1},
        {"\033[", true, KEY_ESCAPE, 2},
        {"\033[1;", true, KEY_UNKNOWN, 4},
        {"\033q", false, KEY_ESCAPE, 1},
        {"\033\033[A", false, KEY_ESCAPE, 1},
        {"\303\244", false, 0xc3, 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t count = strlen(cases[i].bytes), length = 99;
        /* From a copy of exact size, so that a sanitizer sees a read past its end. */
        char *copy = memory_alloc(count + !count);
        memcpy(copy, cases[i].bytes, count);
        int key = terminal_parse_key(copy, count, cases[i].complete, &length);
        free(copy);
        if (key != cases[i].key || length != cases[i].length)
            fail_msg("case %zu gives key %d of %zu bytes", i, key, length);
    }
    /* Whatever comes: a whole buffer always gives a key. */
    srand(7);
    for (int round = 0; round < 100000; round++) {
        static const char some[] = "\033\033[[O;~0159AZ\001q\377";
        char bytes[8];
        size_t length;
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = some[(size_t)rand() % (sizeof(some) - 1)];
        assert_int_not_equal(terminal_parse_key(bytes, sizeof(bytes), true, &length), KEY_NONE);
        assert_in_range(length, 1, sizeof(bytes));
    }
}

/* ---- what is on the screen ---- */

struct fixture {
    struct top_view view;
    struct top_window window;
    struct top_table table;
    struct screen screen;
    size_t rows, columns;
};

static void show(struct fixture *fixture)
{
    struct top_view *view = &fixture->view;
    top_table_release(&fixture->table);
    top_view_count(view, &fixture->window, &fixture->table);
    top_view_follow(view, &fixture->table, top_view_rows(view, fixture->rows));
    screen_reset(&fixture->screen, fixture->rows, fixture->columns);
    top_view_draw(view, &fixture->table, &fixture->screen);
    for (size_t i = 0; i < fixture->rows; i++)
        buffer_text(&fixture->screen.lines[i]);
}

static enum top_action press(struct fixture *fixture, int key)
{
    struct top_view *view = &fixture->view;
    enum top_action action =
        top_view_key(view, &fixture->table, top_view_rows(view, fixture->rows), key);
    show(fixture);
    return action;
}

static void fixture_init(struct fixture *fixture, struct top_slice *slice)
{
    *fixture = (struct fixture){.window = {.duration_ns = 5000 * MS}, .rows = 24, .columns = 80};
    top_view_init(&fixture->view);
    fixture->view.target = "all of here";
    fixture->view.backend = "BPF";
    fixture->view.frequency_hz = 99;
    fixture->view.cpus = 2;
    top_window_add(&fixture->window, slice);
    show(fixture);
}

static void fixture_release(struct fixture *fixture)
{
    top_view_release(&fixture->view);
    top_window_clear(&fixture->window);
    top_table_release(&fixture->table);
    screen_release(&fixture->screen);
}
#define _cleanup_fixture_ _cleanup_(fixture_release)

/* A line without attributes and without spaces at its end. */
static const char *line(const struct fixture *fixture, size_t index)
{
    static char text[4096];
    const char *at = fixture->screen.lines[index].data;
    size_t used = 0;
    for (; *at && used + 1 < sizeof(text); at++) {
        if (*at == '\033')
            at += strcspn(at, "m");
        else
            text[used++] = *at;
    }
    while (used && text[used - 1] == ' ')
        used--;
    text[used] = '\0';
    return text;
}

static void screen_of_functions(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture;
    fixture_init(&fixture, known_slice());
    assert_string_equal(
        line(&fixture, 0),
        "assay top  all of here                                0.10 of 2 CPUs  99 Hz  BPF");
    assert_string_equal(line(&fixture, 1), "4 samples of the last 1.0 s, none lost");
    assert_string_equal(line(&fixture, 2), "");
    assert_string_equal(line(&fixture, 3),
                        "  SELF%  TOTAL%   FUNCTION                                  BINARY");
    assert_string_equal(line(&fixture, 4),
                        "> 60.0%   60.0%   burn                                      app");
    assert_string_equal(line(&fixture, 5),
                        "  20.0%   20.0%   vfs_read                                  [kernel]");
    assert_string_equal(line(&fixture, 23), "q quit  Enter callers  s self  t total  p processes  "
                                            "k kernel  / filter  ? help");

    press(&fixture, 't');
    assert_string_equal(line(&fixture, 4),
                        ">  0.0%   80.0%   main                                      app");
    press(&fixture, 'k');
    assert_string_equal(line(&fixture, 1),
                        "4 samples of the last 1.0 s, none lost, without the kernel");
    press(&fixture, 'k');
    press(&fixture, 'p');
    assert_string_equal(line(&fixture, 3),
                        " SHARE%     PID   PROCESS                                   CPUS");
    assert_string_equal(line(&fixture, 4),
                        "> 80.0%      10   app                                       0.08");
    press(&fixture, KEY_ENTER);
    assert_string_equal(line(&fixture, 2), "Functions in process 10 (app)");
    assert_string_equal(line(&fixture, 1), "2 samples of the last 1.0 s, none lost");
    assert_string_equal(line(&fixture, 4),
                        ">  0.0%  100.0%   main                                      app");
    press(&fixture, KEY_ENTER);
    assert_string_equal(line(&fixture, 2), "Callers and callees of main in process 10 (app)");
    assert_string_equal(line(&fixture, 5),
                        "          75.0%   calls work                                app");
    press(&fixture, KEY_DOWN);
    press(&fixture, KEY_ENTER);
    assert_string_equal(line(&fixture, 4),
                        "          75.0%   called by main                            app");
    assert_string_equal(line(&fixture, 5),
                        ">  0.0%   75.0%   work                                      app");
    assert_int_equal(press(&fixture, KEY_ENTER), TOP_NOTHING);
    for (int i = 0; i < 3; i++)
        assert_int_equal(press(&fixture, KEY_ESCAPE), TOP_COUNT);
    assert_int_equal(press(&fixture, KEY_ESCAPE), TOP_NOTHING);
    assert_string_equal(line(&fixture, 4),
                        "> 80.0%      10   app                                       0.08");
    assert_int_equal(press(&fixture, 'q'), TOP_QUIT);
}

static struct top_slice *many_functions(int count, int from)
{
    struct top_slice *slice = new_slice(1000);
    for (int i = 0; i < count; i++) {
        char stack[64];
        snprintf(stack, sizeof(stack), "f%03d@app", i);
        add_stack(slice, 1, "app", stack, (1 + (i + from) % count) * MS);
    }
    return slice;
}

/* The row with the cursor. */
static const char *cursor(const struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->rows; i++)
        if (line(fixture, i)[0] == '>')
            return line(fixture, i) + 18;
    return "none";
}

static void assert_cursor(const struct fixture *fixture, const char *name)
{
    if (strncmp(cursor(fixture), name, strlen(name)))
        fail_msg("The cursor is on %s instead of %s.", cursor(fixture), name);
}

static void cursor_follows(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture;
    fixture_init(&fixture, many_functions(100, 0));
    fixture.window.duration_ns = 1000 * MS;
    assert_cursor(&fixture, "f099");
    press(&fixture, KEY_DOWN);
    assert_cursor(&fixture, "f098");
    /* 19 rows fit: a page is one less. */
    press(&fixture, KEY_PAGE_DOWN);
    assert_cursor(&fixture, "f080");
    assert_string_equal(line(&fixture, 22) + 18, cursor(&fixture));
    press(&fixture, KEY_END);
    assert_cursor(&fixture, "f000");
    assert_string_equal(line(&fixture, 22) + 18, cursor(&fixture));
    press(&fixture, KEY_UP);
    assert_cursor(&fixture, "f001");
    /* Another order: the cursor stays on its function. */
    top_window_add(&fixture.window, many_functions(100, 50));
    show(&fixture);
    assert_cursor(&fixture, "f001");
    press(&fixture, KEY_HOME);
    assert_cursor(&fixture, "f049");
    /* At the top it stays at the top. */
    top_window_add(&fixture.window, many_functions(100, 0));
    show(&fixture);
    assert_cursor(&fixture, "f099");
    /* Its function goes away: it stays in the table. */
    press(&fixture, KEY_END);
    top_window_add(&fixture.window, many_functions(3, 0));
    show(&fixture);
    assert_cursor(&fixture, "f000");
    top_window_add(&fixture.window, new_slice(1000));
    show(&fixture);
    assert_cursor(&fixture, "none");
    press(&fixture, KEY_DOWN);
    press(&fixture, KEY_ENTER);
}

static void filters_are_typed(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture;
    fixture_init(&fixture, known_slice());
    press(&fixture, '/');
    for (const char *at = "LIBq\303\244"; *at; at++)
        press(&fixture, (unsigned char)*at);
    assert_string_equal(line(&fixture, 23), "/LIBq\303\244_");
    assert_cursor(&fixture, "none");
    press(&fixture, KEY_BACKSPACE);
    press(&fixture, KEY_BACKSPACE);
    assert_string_equal(line(&fixture, 23), "/LIB_");
    assert_cursor(&fixture, "read");
    press(&fixture, KEY_ENTER);
    assert_string_equal(line(&fixture, 1),
                        "4 samples of the last 1.0 s, none lost, only with \"LIB\"");
    press(&fixture, KEY_ESCAPE);
    assert_cursor(&fixture, "burn");
    press(&fixture, '/');
    for (int i = 0; i < 1000; i++)
        press(&fixture, 'x');
    assert_int_equal(strlen(fixture.view.places[0].filter), TOP_FILTER_BYTES - 1);
    press(&fixture, KEY_ESCAPE);
    assert_string_equal(fixture.view.places[0].filter, "");
}

static void places_are_bounded(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture;
    struct top_slice *slice = new_slice(1000);
    add_stack(slice, 1, "app", "main@app;a@app", 10 * MS);
    fixture_init(&fixture, slice);
    for (int i = 0; i < 100; i++) {
        press(&fixture, KEY_ENTER);
        press(&fixture, i % 2 ? KEY_DOWN : KEY_UP);
    }
    assert_in_range(fixture.view.depth, 2, TOP_PLACES_MAX);
    for (int i = 0; i < 100; i++)
        press(&fixture, KEY_ESCAPE);
    assert_int_equal(fixture.view.depth, 1);
    assert_int_equal(fixture.view.places[0].page, TOP_FUNCTIONS);
}

static void hostile_names_are_escaped(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture;
    struct top_slice *slice = new_slice(1000);
    add_stack(slice, 1, "p\033[2J", "f\033]0;title\007\302\233\377@bin\033[31m", 10 * MS);
    fixture_init(&fixture, slice);
    fixture.view.colour = true;
    fixture.view.target = "t\033[5m";
    fixture.view.notice = "n\033[5m";
    static const int keys[] = {' ', KEY_ENTER, KEY_ESCAPE, 'p', KEY_ENTER, '/', 0x9b, 'q'};
    for (size_t key = 0; key < ARRAY_LENGTH(keys); key++) {
        press(&fixture, keys[key]);
        for (size_t i = 0; i < fixture.rows; i++) {
            const struct buffer *text = &fixture.screen.lines[i];
            for (size_t at = 0; at < text->length; at++) {
                unsigned char c = (unsigned char)text->data[at];
                /* Our own sequences are attributes and colours. */
                static const char *const ours[] = {PLAIN, BOLD, DIM, REVERSE, CYAN, YELLOW};
                bool known = c >= 0x20 && c != 0x7f;
                for (size_t j = 0; c == 033 && j < ARRAY_LENGTH(ours); j++)
                    known |= !strncmp(text->data + at, ours[j], strlen(ours[j]));
                if (!known)
                    fail_msg("byte %02x on line %zu after key %zu", c, i, key);
            }
            assert_true(utf8_valid(text->data, text->length));
        }
    }
}

static void every_size_is_drawn(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture;
    struct top_slice *slice = many_functions(60, 0);
    char name[3000];
    memset(name, 'x', sizeof(name));
    memcpy(name + sizeof(name) - 9, "\342\202\254@long", 9);
    name[sizeof(name) - 1] = '\0';
    slice->lost = slice->loss_count = 12345;
    snprintf(slice->loss, sizeof(slice->loss), "samples lost: the ring buffer was full");
    add_stack(slice, 2, "long", name, 1000 * MS);
    fixture_init(&fixture, slice);
    static const int keys[] = {KEY_DOWN, KEY_RIGHT, KEY_ENTER, KEY_LEFT, KEY_ESCAPE, 'p',
                               KEY_END,  KEY_ENTER, '?',       'x',      '/',        KEY_ESCAPE};
    for (size_t rows = 1; rows < 40; rows += rows < 12 ? 1 : 9)
        for (size_t columns = 1; columns < 300; columns += columns < 60 ? 1 : 37) {
            fixture.rows = rows;
            fixture.columns = columns;
            for (size_t key = 0; key < ARRAY_LENGTH(keys); key++) {
                press(&fixture, keys[key]);
                assert_in_range(top_view_rows(&fixture.view, rows), rows > 1 ? 1 : 0, rows);
                /* Numbers take 18 columns, and a terminal cuts them where there are fewer. */
                for (size_t i = 0; i < rows; i++)
                    assert_in_range(strlen(line(&fixture, i)), 0, MAX(columns, 18) + 2);
            }
        }
    fixture.rows = 24;
    fixture.columns = 80;
    do
        press(&fixture, 'p');
    while (fixture.view.places[0].page != TOP_FUNCTIONS);
    assert_string_equal(
        line(&fixture, 1),
        "61 samples of the last 1.0 s, 12,345 samples lost: the ring buffer was full");
    assert_string_equal(line(&fixture, 4),
                        "> 35.3%   35.3%   xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx~  long");
    for (int i = 0; i < 372; i++)
        press(&fixture, KEY_RIGHT);
    assert_string_equal(line(&fixture, 4), "> 35.3%   35.3%   xxxxxxxxxxxxxxx\342\202\254"
                                           "                          long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_counted),  cmocka_unit_test(kernel_counts_for_callers),
        cmocka_unit_test(processes_are_counted),  cmocka_unit_test(filters_leave_shares_alone),
        cmocka_unit_test(neighbours_are_counted), cmocka_unit_test(windows_slide),
        cmocka_unit_test(keys_are_parsed),        cmocka_unit_test(screen_of_functions),
        cmocka_unit_test(cursor_follows),         cmocka_unit_test(filters_are_typed),
        cmocka_unit_test(places_are_bounded),     cmocka_unit_test(hostile_names_are_escaped),
        cmocka_unit_test(every_size_is_drawn),
    };
    return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
