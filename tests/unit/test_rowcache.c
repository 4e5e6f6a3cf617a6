// SPDX-License-Identifier: Apache-2.0
// The directory of compiled rows: found, missing, damaged, full, used by many at once.

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/memory.h"
#include "capture/record/rowcache.h"
#include "unit.h"

#define ROWS 2000
#define NOBODY 65534

static struct unwind_rules rules;

/* Rows that are told apart by their number. */
static struct unwind_rows make_rows(unsigned number, uint32_t count)
{
    struct unwind_rows rows = {.first_page = number,
                               .page_count = count / 50,
                               .row_count = count / 50 * 50,
                               .pages = memory_zalloc(count / 50 + 1, sizeof(uint32_t)),
                               .rows = memory_zalloc(count, sizeof(struct unwind_row))};
    for (uint32_t i = 0; i < rows.row_count; i++)
        rows.rows[i] = (struct unwind_row){
            .offset = (unsigned short)(i % 50 * 10),
            .rule = unwind_rules_add(
                &rules, (struct unwind_rule){.cfa = 3, .cfa_offset = (int)(i % 7 + number) * 8})};
    for (uint32_t page = 0; page <= rows.page_count; page++)
        rows.pages[page] = page * 50;
    return rows;
}

static struct rows_identity identity_of(unsigned number)
{
    return (struct rows_identity){.build_id = {0xab, (uint8_t)(number >> 8), (uint8_t)number},
                                  .build_id_length = 3,
                                  .source_bytes = 1000 + number};
}

static void store(struct row_cache *cache, unsigned number)
{
    _cleanup_rows_ struct unwind_rows rows = make_rows(number, ROWS);
    struct rows_identity identity = identity_of(number);
    row_cache_store(cache, &identity, &rows, &rules);
}

/* What comes out is what went in. */
static bool holds(struct row_cache *cache, unsigned number)
{
    _cleanup_rows_ struct unwind_rows rows = {0}, wanted = make_rows(number, ROWS);
    struct rows_identity identity = identity_of(number);
    if (!row_cache_load(cache, &identity, &rules, &rows))
        return false;
    if (rows.first_page != number || rows.row_count != wanted.row_count ||
        memcmp(rows.rows, wanted.rows, rows.row_count * sizeof(*rows.rows)))
        abort();
    return true;
}

static const char *name_of(unsigned number)
{
    static char name[64];
    snprintf(name, sizeof(name), "cache/ab%02x%02x.rows", number >> 8, number & 255);
    return name;
}

static size_t count_files(const char *folder, const char *prefix)
{
    size_t count = 0;
    DIR *open = opendir(folder);
    struct dirent *item;
    while (open && (item = readdir(open)))
        count += item->d_name[0] != '.' ? !prefix : prefix && !strncmp(item->d_name, prefix, 5);
    if (open)
        closedir(open);
    return count;
}

static void age(const char *path, int seconds)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int begin(void **state)
{
    unwind_rules_init(&rules);
    return enter_folder(state);
}

static int end(void **state)
{
    unwind_rules_release(&rules);
    return leave_folder(state);
}

static void found_in_the_next_run(void **state)
{
    (void)state;
    struct row_cache cache;
    struct stat found;
    row_cache_init(&cache, "cache");
    assert_false(holds(&cache, 1));
    store(&cache, 1);
    assert_true(holds(&cache, 1));
    assert_false(holds(&cache, 2));
    assert_int_equal(cache.hits, 1);
    assert_int_equal(cache.misses, 2);
    row_cache_release(&cache);
    assert_int_equal(stat("cache", &found), 0);
    assert_int_equal(found.st_mode & 07777, 0700);
    assert_int_equal(stat(name_of(1), &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
    row_cache_init(&cache, "cache");
    assert_true(holds(&cache, 1));
    row_cache_release(&cache);
}

static void what_is_not_kept(void **state)
{
    (void)state;
    struct row_cache cache;
    struct rows_identity nameless = identity_of(1), known = identity_of(2);
    _cleanup_rows_ struct unwind_rows many = make_rows(1, ROWS), few = make_rows(2, 900);
    nameless.build_id_length = 0;
    row_cache_init(&cache, "cache");
    row_cache_store(&cache, &nameless, &many, &rules);
    row_cache_store(&cache, &known, &few, &rules);
    cache.limit_bytes = 100;
    row_cache_store(&cache, &known, &many, &rules);
    assert_int_equal(count_files("cache", NULL), 0);
    assert_int_equal(cache.stored, 0);
    row_cache_release(&cache);
}

static void damage(const char *path, off_t at, const char *bytes, size_t length)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, length, at), length);
    close(fd);
}

static void damaged_ones_are_made_again(void **state)
{
    (void)state;
    struct row_cache cache;
    row_cache_init(&cache, "cache");
    for (unsigned way = 0; way < 5; way++) {
        store(&cache, 1);
        assert_true(holds(&cache, 1));
        if (way == 0)
            damage(name_of(1), 1000, "\xff\xff", 2);
        else if (way == 1)
            damage(name_of(1), 8, "\x77", 1); /* another version */
        else if (way == 2)
            assert_int_equal(truncate(name_of(1), 0), 0);
        else if (way == 3)
            assert_int_equal(truncate(name_of(1), 4000), 0);
        else
            assert_int_equal(truncate(name_of(1), (off_t)1 << 40), 0);
        assert_false(holds(&cache, 1));
    }
    store(&cache, 1);
    assert_true(holds(&cache, 1));
    row_cache_release(&cache);
}

/* Rows of a file that has the same build ID but is another one. */
static void of_another_size(void **state)
{
    (void)state;
    struct row_cache cache;
    struct rows_identity other = identity_of(1);
    _cleanup_rows_ struct unwind_rows rows = {0};
    row_cache_init(&cache, "cache");
    store(&cache, 1);
    other.source_bytes++;
    assert_false(row_cache_load(&cache, &other, &rules, &rows));
    row_cache_release(&cache);
}

static void strange_files(void **state)
{
    (void)state;
    struct row_cache cache;
    row_cache_init(&cache, "cache");
    store(&cache, 1);
    assert_int_equal(rename(name_of(1), "elsewhere"), 0);
    assert_int_equal(symlink("../elsewhere", name_of(1)), 0);
    assert_false(holds(&cache, 1));
    assert_int_equal(unlink(name_of(1)), 0);
    assert_int_equal(mkfifo(name_of(1), 0600), 0);
    assert_false(holds(&cache, 1)); /* and doesn't wait for a writer */
    store(&cache, 1);
    assert_true(holds(&cache, 1));
    assert_int_equal(mkdir(name_of(2), 0700), 0);
    assert_false(holds(&cache, 2));
    store(&cache, 2);
    assert_false(holds(&cache, 2));
    assert_int_equal(count_files("cache", ".new-"), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(name_of(1), NOBODY, NOBODY), 0);
        assert_false(holds(&cache, 1));
    }
    row_cache_release(&cache);
}

static void folders_that_are_not_used(void **state)
{
    (void)state;
    struct row_cache cache;
    row_cache_init(&cache, "/proc/no-such-folder/cache");
    assert_int_equal(cache.folder, -1);
    store(&cache, 1); /* to no effect */
    assert_false(holds(&cache, 1));
    row_cache_release(&cache);
    for (int mode = 0720; mode <= 0777; mode += 7) { /* 0720, 0727, ... */
        assert_int_equal(mkdir("open", 0700), 0);
        assert_int_equal(chmod("open", (mode_t)mode), 0);
        row_cache_init(&cache, "open");
        bool writable = mode & 022;
        assert_int_equal(cache.folder >= 0, !writable);
        row_cache_release(&cache);
        assert_int_equal(rmdir("open"), 0);
    }
    assert_int_equal(close(open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    row_cache_init(&cache, "file");
    assert_int_equal(cache.folder, -1);
    if (geteuid() == 0) {
        assert_int_equal(mkdir("foreign", 0700), 0);
        assert_int_equal(chown("foreign", NOBODY, NOBODY), 0);
        row_cache_init(&cache, "foreign");
        assert_int_equal(cache.folder, -1);
    }
    static char long_path[10000];
    memset(long_path, 'x', sizeof(long_path) - 1);
    row_cache_init(&cache, long_path);
    assert_int_equal(cache.folder, -1);
    row_cache_init(&cache, "");
    assert_int_equal(cache.folder, -1);
}

static void where_it_is(void **state)
{
    char expected[256];
    struct row_cache cache;
    struct stat found;
    setenv("ASSAY_CACHE", "a/b/c", 1);
    row_cache_init(&cache, NULL);
    assert_true(cache.folder >= 0);
    row_cache_release(&cache);
    assert_int_equal(stat("a/b/c", &found), 0);
    setenv("ASSAY_CACHE", "", 1);
    row_cache_init(&cache, NULL);
    assert_int_equal(cache.folder, -1);
    /* As somebody who is not root: in a child, to be ourselves again. */
    assert_int_equal(chmod(*state, 0777), 0);
    pid_t child = fork();
    if (!child) {
        unsetenv("ASSAY_CACHE");
        setenv("HOME", *state, 1);
        unsetenv("XDG_CACHE_HOME");
        if (geteuid() == 0 && seteuid(NOBODY) < 0)
            _exit(2);
        row_cache_init(&cache, NULL);
        row_cache_release(&cache);
        snprintf(expected, sizeof(expected), "%s/.cache/assay/unwind", (char *)*state);
        if (stat(expected, &found) < 0 || (found.st_mode & 07777) != 0700)
            _exit(3);
        snprintf(expected, sizeof(expected), "%s/xdg", (char *)*state);
        setenv("XDG_CACHE_HOME", expected, 1);
        row_cache_init(&cache, NULL);
        row_cache_release(&cache);
        _exit(stat("xdg/assay/unwind", &found) < 0 ? 4 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void the_least_recently_used_go(void **state)
{
    (void)state;
    struct row_cache cache;
    struct stat found;
    row_cache_init(&cache, "cache");
    store(&cache, 0);
    assert_int_equal(stat(name_of(0), &found), 0);
    uint64_t each = (uint64_t)found.st_size;
    for (unsigned i = 1; i < 10; i++)
        store(&cache, i);
    assert_int_equal(close(open("cache/somebody-elses", O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(close(open("cache/.new-0123", O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(close(open("cache/.new-4567", O_CREAT | O_WRONLY, 0600)), 0);
    age("cache/.new-0123", 100000);
    age("cache/somebody-elses", 1000000);
    for (unsigned i = 0; i < 10; i++)
        age(name_of(i), (int)(90000 - i * 1000));
    assert_true(holds(&cache, 0)); /* which makes it the youngest */
    row_cache_release(&cache);

    row_cache_init(&cache, "cache");
    cache.limit_bytes = 8 * each;
    store(&cache, 10); /* down to six, this one among them */
    assert_true(holds(&cache, 10));
    assert_true(holds(&cache, 0));
    for (unsigned i = 1; i <= 4; i++)
        assert_false(holds(&cache, i));
    for (unsigned i = 6; i < 10; i++)
        assert_true(holds(&cache, i));
    assert_int_equal(access("cache/somebody-elses", F_OK), 0);
    assert_int_not_equal(access("cache/.new-0123", F_OK), 0);
    assert_int_equal(access("cache/.new-4567", F_OK), 0); /* somebody may be at it */
    /* Never more than the limit, however many come. */
    for (unsigned i = 100; i < 140; i++) {
        store(&cache, i);
        assert_true(count_files("cache", NULL) <= 9);
        assert_true(holds(&cache, i));
    }
    row_cache_release(&cache);
}

static void a_disk_without_room(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child) {
        struct row_cache cache;
        struct rlimit limit = {4096, 4096};
        signal(SIGXFSZ, SIG_IGN);
        row_cache_init(&cache, "cache");
        if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
            _exit(2);
        store(&cache, 1);
        _exit(cache.stored || holds(&cache, 1));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_files("cache", NULL) + count_files("cache", ".new-"), 0);
}

/* Writers, readers and those who make room, all at once. */
static void many_at_once(void **state)
{
    (void)state;
    pid_t children[4];
    for (unsigned k = 0; k < ARRAY_LENGTH(children); k++) {
        children[k] = fork();
        if (children[k])
            continue;
        struct row_cache cache;
        row_cache_init(&cache, "cache");
        cache.limit_bytes = 80000;
        for (unsigned i = 0; i < 300; i++) {
            unsigned number = (i * 7 + k * 3) % 12;
            if (!holds(&cache, number))
                store(&cache, number);
        }
        /* Others may have stored all that this one looks for. */
        _exit(cache.folder < 0 || !(cache.hits + cache.stored));
    }
    for (unsigned k = 0; k < ARRAY_LENGTH(children); k++) {
        int status = -1;
        assert_int_equal(waitpid(children[k], &status, 0), children[k]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files("cache", ".new-"), 0);
    assert_true(count_files("cache", NULL) > 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(found_in_the_next_run),
        CASE(what_is_not_kept),
        CASE(damaged_ones_are_made_again),
        CASE(of_another_size),
        CASE(strange_files),
        CASE(folders_that_are_not_used),
        CASE(where_it_is),
        CASE(the_least_recently_used_go),
        CASE(a_disk_without_room),
        CASE(many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
