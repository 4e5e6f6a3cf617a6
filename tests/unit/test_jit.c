// SPDX-License-Identifier: Apache-2.0
// Code that is in no file: which piece has an address, maps as compilers write them and as nobody
// should, what names say, and which files are opened at all.

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "symbol/jit/code.h"
#include "symbol/jit/files.h"
#include "symbol/jit/jit.h"
#include "symbol/jit/name.h"
#include "symbol/jit/perfmap.h"
#include "unit.h"

/* ---- which piece has an address ---- */

#define SPACE 512

static uint32_t next_random(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u, *state >> 8;
}

static void add(struct jit_codes *codes, const char *name, uint64_t start, uint64_t end,
                uint64_t time_ns)
{
    struct jit_code code = {.start = start,
                            .end = end,
                            .time_ns = time_ns,
                            .compiled = start,
                            .name = jit_codes_text(codes, name, strlen(name))};
    jit_codes_add(codes, &code);
}

static const char *name_at(struct jit_codes *codes, uint64_t address, uint64_t time_ns)
{
    const struct jit_code *code = jit_codes_find(codes, address, time_ns);
    return code ? codes->texts[code->name] : "";
}

/* Pieces in any order, one above the other, against a list of who wrote each byte last. */
static void last_one_wins(void **state)
{
    (void)state;
    for (uint32_t round = 0, seed = 1; round < 200; round++) {
        struct jit_codes codes;
        char last[SPACE][8] = {{0}};
        jit_codes_init(&codes, round % 2);
        for (uint32_t i = 0, count = next_random(&seed) % 60; i < count; i++) {
            uint32_t start = next_random(&seed) % SPACE, length = next_random(&seed) % 64;
            char name[8];
            snprintf(name, sizeof(name), "%u", i);
            add(&codes, name, start, start + length, i + 1);
            for (uint32_t at = start; at < start + length && at < SPACE; at++)
                memcpy(last[at], name, sizeof(name));
            /* Every now and then somebody asks in between. */
            if (i % 7 == 0)
                assert_string_equal(name_at(&codes, start, 0), start < SPACE ? last[start] : "");
        }
        for (uint32_t at = 0; at < SPACE; at++)
            assert_string_equal(name_at(&codes, at, 0), last[at]);
        jit_codes_release(&codes);
    }
}

static void earlier_code_is_found_by_time(void **state)
{
    (void)state;
    struct jit_codes codes;
    jit_codes_init(&codes, true);
    add(&codes, "first", 100, 200, 10);
    add(&codes, "wide", 0, 1000, 20);
    add(&codes, "second", 150, 250, 30);
    assert_string_equal(name_at(&codes, 160, 15), "first");
    assert_string_equal(name_at(&codes, 160, 20), "wide");
    assert_string_equal(name_at(&codes, 160, 29), "wide");
    assert_string_equal(name_at(&codes, 160, 30), "second");
    assert_string_equal(name_at(&codes, 160, 0), "second");
    /* Before all of them: the first that came. */
    assert_string_equal(name_at(&codes, 160, 1), "first");
    assert_string_equal(name_at(&codes, 500, 1), "wide");
    assert_string_equal(name_at(&codes, 1000, 25), "");
    jit_codes_release(&codes);
}

/* A map that is written over and over must not fill memory. */
static void hidden_code_is_dropped(void **state)
{
    (void)state;
    struct jit_codes codes;
    jit_codes_init(&codes, false);
    for (int round = 0; round < 50; round++) {
        for (uint64_t i = 0; i < 1000; i++)
            add(&codes, round % 2 ? "odd" : "even", i * 16, i * 16 + 16, 0);
        assert_string_equal(name_at(&codes, 5000, 0), round % 2 ? "odd" : "even");
        assert_int_equal(codes.count, 1000);
    }
    assert_int_equal(codes.refused, 0);
    assert_int_equal(codes.text_count, 2);
    jit_codes_release(&codes);
}

static void limits_hold(void **state)
{
    (void)state;
    struct jit_codes codes;
    jit_codes_init(&codes, false);
    for (uint64_t i = 0; i < JIT_CODES_MAX + 1000; i++)
        add(&codes, "x", i * 2, i * 2 + 1, 0);
    assert_true(codes.count <= JIT_CODES_MAX);
    assert_int_equal(codes.refused, 1000);
    char *long_name = malloc(JIT_NAME_MAX + 2);
    memset(long_name, 'n', JIT_NAME_MAX + 1);
    assert_int_equal(jit_codes_text(&codes, long_name, JIT_NAME_MAX + 1), JIT_TEXT_NONE);
    assert_int_not_equal(jit_codes_text(&codes, long_name, JIT_NAME_MAX), JIT_TEXT_NONE);
    free(long_name);
    jit_codes_release(&codes);

    /* Where most of it is hidden, there is room again. */
    jit_codes_init(&codes, false);
    for (uint64_t i = 0; i < 3ull * JIT_CODES_MAX; i++)
        add(&codes, "x", i % 1000 * 2, i % 1000 * 2 + 2, 0);
    assert_int_equal(codes.refused, 0);
    jit_codes_release(&codes);
}

/* ---- maps ---- */

static size_t parse(struct jit_codes *codes, const char *text, bool final)
{
    struct perf_map map = {0};
    jit_codes_init(codes, false);
    return perf_map_parse(&map, text, strlen(text), final, codes);
}

static void lines_are_read(void **state)
{
    (void)state;
    struct jit_codes codes;
    parse(&codes,
          "7f3a64006180 180 JS:*fib /srv/hot.js:1:13\n"
          "0x00007f94aceca940 0x0000000000000130 int Hot.fib(int)\n"
          "0X10 0xA tabs\tinside \t\r\n"
          "30\t10\tseparated by tabs\n"
          "40 10   many   spaces\n"
          "50 0 nothing\n"
          "60 10\n"
          "60 10 \n"
          "\n"
          "not hex\n"
          "70 zz bad size\n"
          "80 10name\n"
          "-90 10 sign\n"
          "10000000000000000 10 too big\n"
          "fffffffffffffff0 20 beyond the end\n"
          "fffffffffffffff0 f the end\n"
          "a0 10 last",
          true);
    assert_string_equal(name_at(&codes, 0x7f3a64006180, 0), "JS:*fib /srv/hot.js:1:13");
    assert_string_equal(name_at(&codes, 0x7f3a640062ff, 0), "JS:*fib /srv/hot.js:1:13");
    assert_string_equal(name_at(&codes, 0x7f3a64006300, 0), "");
    assert_string_equal(name_at(&codes, 0x7f94aceca940, 0), "int Hot.fib(int)");
    assert_string_equal(name_at(&codes, 0x19, 0), "tabs\tinside");
    assert_string_equal(name_at(&codes, 0x1a, 0), "");
    assert_string_equal(name_at(&codes, 0x30, 0), "separated by tabs");
    assert_string_equal(name_at(&codes, 0x40, 0), "many   spaces");
    assert_string_equal(name_at(&codes, 0xfffffffffffffff0, 0), "the end");
    assert_string_equal(name_at(&codes, 0xa0, 0), "last");
    assert_int_equal(codes.count, 7);
    jit_codes_release(&codes);
}

static void unfinished_lines_wait(void **state)
{
    (void)state;
    struct jit_codes codes;
    assert_int_equal(parse(&codes, "10 10 one\n20 10 tw", false), 10);
    assert_int_equal(codes.count, 1);
    jit_codes_release(&codes);
    assert_int_equal(parse(&codes, "10 10 one\n20 10 tw", true), 18);
    assert_int_equal(codes.count, 2);
    jit_codes_release(&codes);
}

/* A name with a byte 0 in it would be another one than it seems. */
static void zero_bytes_are_no_name(void **state)
{
    (void)state;
    struct jit_codes codes;
    struct perf_map map = {0};
    jit_codes_init(&codes, false);
    static const char text[] = "10 10 a\0b\n20 10 c\n";
    perf_map_parse(&map, text, sizeof(text) - 1, false, &codes);
    assert_int_equal(codes.count, 1);
    assert_string_equal(name_at(&codes, 0x20, 0), "c");
    jit_codes_release(&codes);
}

static int file_with(const char *text)
{
    int fd = memfd_create("map", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static void read_again_reads_what_came(void **state)
{
    (void)state;
    struct jit_codes codes;
    struct perf_map map = {0};
    jit_codes_init(&codes, false);
    int fd = file_with("10 10 one\n20 10 tw");
    assert_int_equal(perf_map_read(&map, fd, false, &codes), 0);
    assert_int_equal(map.offset, 10);
    assert_int_equal(write(fd, "o\n30 10 three", 13), 13);
    assert_int_equal(perf_map_read(&map, fd, false, &codes), 0);
    assert_string_equal(name_at(&codes, 0x20, 0), "two");
    assert_string_equal(name_at(&codes, 0x30, 0), "");
    assert_int_equal(perf_map_read(&map, fd, true, &codes), 0);
    assert_string_equal(name_at(&codes, 0x30, 0), "three");
    close(fd);

    /* Another file, longer than what was read of the first: all of it. */
    fd = file_with("10 10 new one\n20 10 new two\n40 10 four\n50 10 five\n");
    assert_int_equal(perf_map_read(&map, fd, false, &codes), 0);
    assert_string_equal(name_at(&codes, 0x10, 0), "new one");
    assert_string_equal(name_at(&codes, 0x30, 0), "three");
    assert_string_equal(name_at(&codes, 0x50, 0), "five");
    /* And one that was cut. */
    assert_int_equal(ftruncate(fd, 14), 0);
    assert_int_equal(perf_map_read(&map, fd, false, &codes), 0);
    assert_int_equal(map.offset, 14);
    close(fd);
    jit_codes_release(&codes);
}

static void endless_lines_are_skipped(void **state)
{
    (void)state;
    struct jit_codes codes;
    struct perf_map map = {0};
    _cleanup_buffer_ struct buffer text = {0};
    jit_codes_init(&codes, false);
    buffer_add_text(&text, "10 10 before\n20 10 ");
    for (int i = 0; i < 1 << 20; i++)
        buffer_add_char(&text, 'x');
    int fd = file_with(buffer_text(&text));
    assert_int_equal(perf_map_read(&map, fd, false, &codes), 0);
    assert_int_equal(write(fd, "xx\n30 10 behind\n", 16), 16);
    assert_int_equal(perf_map_read(&map, fd, false, &codes), 0);
    assert_string_equal(name_at(&codes, 0x10, 0), "before");
    assert_string_equal(name_at(&codes, 0x20, 0), "");
    assert_string_equal(name_at(&codes, 0x30, 0), "behind");
    assert_int_equal(codes.refused, 1);
    close(fd);
    jit_codes_release(&codes);
}

/* Whatever the pieces are that a file comes in, it says the same. */
static void pieces_make_no_difference(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer text = {0};
    for (uint32_t i = 0; i < 60; i++)
        buffer_printf(&text, "%x %x name %u%s\n", i * 16, 16 + i % 5, i, i % 9 ? "" : " \t");
    for (size_t cut = 1; cut < text.length; cut += 7) {
        struct jit_codes codes;
        struct perf_map map = {0};
        jit_codes_init(&codes, false);
        int fd = memfd_create("map", MFD_CLOEXEC);
        for (size_t at = 0; at < text.length; at += cut) {
            size_t length = MIN(cut, text.length - at);
            assert_int_equal(write(fd, text.data + at, length), length);
            if (cut > 100 || at % 5 == 0)
                assert_int_equal(perf_map_read(&map, fd, false, &codes), 0);
        }
        assert_int_equal(perf_map_read(&map, fd, true, &codes), 0);
        assert_int_equal(codes.count, 60);
        assert_string_equal(name_at(&codes, 9 * 16 + 8, 0), "name 9");
        close(fd);
        jit_codes_release(&codes);
    }
}

/* ---- names ---- */

static void check_name(const char *text, const char *name, const char *file, uint32_t start_line,
                       enum frame_kind kind)
{
    struct arena arena = {0};
    struct jit_name read = jit_name_read(text, &arena);
    assert_string_equal(read.name, name);
    assert_string_equal(read.file ? read.file : "", file);
    assert_int_equal(read.start_line, start_line);
    assert_int_equal(read.kind, kind);
    assert_true(strcmp(text, name) ? read.system_name == text : !read.system_name);
    arena_release(&arena);
}

static void names_are_taken_apart(void **state)
{
    (void)state;
    check_name("JS:*fib /srv/hot.js:12:13", "fib", "/srv/hot.js", 12, FRAME_V8JS);
    check_name("LazyCompile:~get value /a b/c.js:1:2", "get value", "/a b/c.js", 1, FRAME_V8JS);
    check_name("JS:^ node:internal/main:7:9", "(anonymous)", "node:internal/main", 7, FRAME_V8JS);
    check_name("Function:run file:///x.mjs:3:1", "run", "file:///x.mjs", 3, FRAME_V8JS);
    check_name("JS:+named", "named", "", 0, FRAME_V8JS);
    check_name("Eval:~ [eval]:1:1", "(anonymous)", "[eval]", 1, FRAME_V8JS);
    check_name("JS:~a :1:2", "a", "", 0, FRAME_V8JS);
    check_name("JS:", "(anonymous)", "", 0, FRAME_V8JS);
    check_name("JS:*f x:99999999999:1", "f", "x:99999999999", 1, FRAME_V8JS);
    check_name("JS:*f x:1:99999999999", "f x:1:99999999999", "", 0, FRAME_V8JS);
    check_name("LazyCompile:*fib /srv/hot.js:12", "fib", "/srv/hot.js", 12, FRAME_V8JS);
    check_name("Function:^ node:internal/main:7", "(anonymous)", "node:internal/main", 7,
               FRAME_V8JS);
    check_name("LazyCompile:~get p /a b/c2.js:3", "get p", "/a b/c2.js", 3, FRAME_V8JS);
    check_name("Function:^a :4", "a", "", 0, FRAME_V8JS);
    check_name("Builtin:ArrayMap", "Builtin:ArrayMap", "", 0, FRAME_NATIVE);
    check_name("int Hot.fib(int)", "Hot.fib", "", 0, FRAME_JVM);
    check_name("void a.b.C$D.<init>(java.lang.String, int[])", "a.b.C$D.<init>", "", 0, FRAME_JVM);
    check_name("I2C/C2I adapters(0xbe)", "I2C/C2I adapters(0xbe)", "", 0, FRAME_NATIVE);
    check_name("py::Class.method:/srv/x.py", "Class.method", "/srv/x.py", 0, FRAME_CPYTHON);
    check_name("py::odd", "py::odd", "", 0, FRAME_NATIVE);
    check_name("_ZN3foo3barEv", "foo::bar", "", 0, FRAME_NATIVE);
    check_name("a (b) c", "a (b) c", "", 0, FRAME_NATIVE);
    check_name("(", "(", "", 0, FRAME_NATIVE);
}

static void mapping_names(void **state)
{
    (void)state;
    char text[JIT_MAPPING_NAME_BYTES];
    uint32_t pid = 0;
    jit_mapping_name(text, UINT32_MAX);
    assert_string_equal(text, "[jit 4294967295]");
    assert_true(jit_mapping_pid(text, &pid));
    assert_int_equal(pid, UINT32_MAX);
    static const char *const wrong[] = {"",          "[jit ]",  "[jit 1",    "jit 1]",
                                        "[jit -1]",  "[jit x]", "[jit 1 ]",  "[jit 4294967296]",
                                        "[jit 1]/x", "[vdso]",  "[jit 1]\n", "/[jit 1]"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_false(jit_mapping_pid(wrong[i], &pid));
}

/* ---- processes ---- */

static void own_map(char path[64])
{
    snprintf(path, 64, "/tmp/perf-%d.map", getpid());
}

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int remove_own_map(void **state)
{
    (void)state;
    char path[64];
    own_map(path);
    unlink(path);
    return 0;
}

static void our_own_map_is_found(void **state)
{
    (void)state;
    char path[64];
    struct symbol_frame frame;
    enum frame_kind kind;
    uint32_t pid = (uint32_t)getpid();
    struct jit_names *names = jit_names_new();
    own_map(path);
    assert_false(jit_names_load(names, pid));
    put_file(path, "1000 10 JS:~early /x.js:5:1\n");
    assert_true(jit_names_load(names, pid));
    put_file(path, "1000 10 JS:~early /x.js:5:1\n1000 10 JS:*early /x.js:5:1\n2000 10 late\n");
    assert_true(jit_names_load(names, pid));
    assert_false(jit_names_load(names, pid));
    assert_true(jit_names_find(names, pid, 0x100f, 0, &frame, &kind));
    assert_string_equal(frame.name, "early");
    assert_string_equal(frame.system_name, "JS:*early /x.js:5:1");
    assert_string_equal(frame.file, "/x.js");
    assert_int_equal(frame.start_line, 5);
    assert_int_equal(kind, FRAME_V8JS);
    assert_true(jit_names_find(names, pid, 0x2000, 0, &frame, &kind));
    assert_string_equal(frame.name, "late");
    assert_false(jit_names_find(names, pid, 0x3000, 0, &frame, &kind));
    assert_false(jit_names_find(names, 1, 0x2000, 0, &frame, &kind));
    struct jit_stats stats = jit_names_stats(names);
    assert_int_equal(stats.maps, 1);
    assert_int_equal(stats.dumps, 0);
    assert_int_equal(stats.codes, 2);
    assert_int_equal(stats.processes, 1);
    jit_names_free(names);
    jit_names_free(NULL);
}

static void refuse(const char *what)
{
    struct jit_place place;
    jit_place_init(&place, (uint32_t)getpid());
    jit_place_update(&place);
    assert_true(place.alive);
    int fd = jit_place_open_map(&place);
    if (fd >= 0)
        fail_msg("%s was opened", what);
    jit_place_release(&place);
}

static void only_plain_files_are_opened(void **state)
{
    (void)state;
    char path[64], other[] = "/tmp/assay-jit.XXXXXX", second[80];
    own_map(path);
    int fd = mkstemp(other);
    assert_true(fd >= 0);
    close(fd);
    snprintf(second, sizeof(second), "%s.link", path);

    assert_int_equal(symlink(other, path), 0);
    refuse("a link");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse("a FIFO");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    refuse("a folder");
    assert_int_equal(rmdir(path), 0);
    put_file(path, "10 10 x\n");
    assert_int_equal(link(path, second), 0);
    refuse("a file with two names");
    assert_int_equal(unlink(second), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        refuse("another user's file");
    }
    unlink(other);
}

/* A child in a mount and a process namespace of its own, with its own /tmp, that is read while it
 * runs and after it has ended. */
static int in_namespace(int ready, int go)
{
    char path[64], byte = 'x';
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/tmp", "tmpfs", 0, NULL) < 0 || chmod("/tmp", 01777) < 0)
        return 77;
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    FILE *file = fopen(path, "w");
    if (!file || fputs("1000 10 inside\n", file) < 0 || fflush(file) != 0)
        return 1;
    if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
        return 1;
    return fputs("2000 10 at the end\n", file) < 0 || fclose(file) != 0;
}

static int namespace_entry(void *context)
{
    int *pipes = context;
    return in_namespace(pipes[1], pipes[2]);
}

static void other_namespaces(void **state)
{
    (void)state;
    static char stack[256 << 10] __attribute__((aligned(16)));
    int pipes[4], status;
    char byte;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pipe(pipes + 2), 0);
    pid_t pid =
        clone(namespace_entry, stack + sizeof(stack), CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, pipes);
    if (pid < 0) {
        print_message("This user may not make namespaces.\n");
        skip();
    }
    close(pipes[1]);
    if (read(pipes[0], &byte, 1) != 1) {
        waitpid(pid, &status, 0);
        print_message("No file system can be mounted here.\n");
        skip();
    }
    struct symbol_frame frame;
    enum frame_kind kind;
    struct jit_names *names = jit_names_new();
    assert_true(jit_names_load(names, (uint32_t)pid));
    assert_true(jit_names_find(names, (uint32_t)pid, 0x1000, 0, &frame, &kind));
    assert_string_equal(frame.name, "inside");
    assert_int_equal(write(pipes[3], &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(jit_names_load(names, (uint32_t)pid));
    assert_true(jit_names_find(names, (uint32_t)pid, 0x2000, 0, &frame, &kind));
    assert_string_equal(frame.name, "at the end");
    jit_names_free(names);
    close(pipes[0]);
    close(pipes[2]);
    close(pipes[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_one_wins),
        cmocka_unit_test(earlier_code_is_found_by_time),
        cmocka_unit_test(hidden_code_is_dropped),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(unfinished_lines_wait),
        cmocka_unit_test(zero_bytes_are_no_name),
        cmocka_unit_test(read_again_reads_what_came),
        cmocka_unit_test(endless_lines_are_skipped),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(names_are_taken_apart),
        cmocka_unit_test(mapping_names),
        cmocka_unit_test_teardown(our_own_map_is_found, remove_own_map),
        cmocka_unit_test_teardown(only_plain_files_are_opened, remove_own_map),
        cmocka_unit_test(other_namespaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
