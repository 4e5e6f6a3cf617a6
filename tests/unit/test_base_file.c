// SPDX-License-Identifier: Apache-2.0
// Files: limits on reading, and that a failed write leaves the old file and nothing else.

#include "base/file.h"
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_file(const char *path, const char *text)
{
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    assert_int_equal(file_read(path, 1 << 20, &content, &error), 0);
    assert_buffer(&content, text);
}

static int files_here(void)
{
    DIR *folder = opendir(".");
    assert_non_null(folder);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void reads_within_the_limit(void **state)
{
    (void)state;
    struct error error = {0};
    struct buffer content = {.length = 99};
    put("five", "12345");
    assert_int_equal(file_read("five", 4, &content, &error), -E2BIG);
    assert_says(&error, "five is larger than the limit of 4 bytes");
    assert_int_equal(file_read("none", 4, &content, &error), -ENOENT);
    assert_says(&error, "none cannot be opened");
    assert_int_equal(file_read(".", 4, &content, &error), -EISDIR);
    assert_int_equal(content.length, 99);
    assert_int_equal(file_read("five", 5, &content, &error), 0);
    assert_buffer(&content, "12345");
    buffer_release(&content);
    put("empty", "");
    assert_int_equal(file_read("empty", 0, &content, &error), 0);
    assert_int_equal(content.length, 0);
    buffer_release(&content);
}

static void writes_new_files_with_the_usual_mode(void **state)
{
    (void)state;
    struct error error = {0};
    mode_t mask = umask(027);
    assert_int_equal(file_write_atomic("new", "data", 4, &error), 0);
    umask(mask);
    assert_file("new", "data");
    struct stat found;
    assert_int_equal(stat("new", &found), 0);
    assert_int_equal(found.st_mode & 07777, 0640);
    assert_int_equal(files_here(), 1);
}

static void replaces_keeping_the_mode(void **state)
{
    (void)state;
    struct error error = {0};
    put("old", "old");
    chmod("old", 0604);
    assert_int_equal(file_write_atomic("old", "new", 3, &error), 0);
    assert_file("old", "new");
    struct stat found;
    assert_int_equal(stat("old", &found), 0);
    assert_int_equal(found.st_mode & 07777, 0604);
    assert_int_equal(files_here(), 1);
}

static void writes_through_links(void **state)
{
    (void)state;
    struct error error = {0};
    put("target", "old");
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(file_write_atomic("link", "new", 3, &error), 0);
    assert_file("target", "new");
    struct stat found;
    assert_int_equal(lstat("link", &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    assert_int_equal(files_here(), 2);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    struct error error = {0};
    put("kept", "old");
    /* The disk is full, as far as this process can tell. */
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    static char large[100000];
    int r = file_write_atomic("kept", large, sizeof(large), &error);
    int fresh = file_write_atomic("fresh", large, sizeof(large), &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(fresh, -EFBIG);
    assert_says(&error, "fresh cannot be written: File too large");
    assert_file("kept", "old");
    assert_int_equal(files_here(), 1);
}

static void says_where_it_cannot_write(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(file_write_atomic("no/such/folder", "x", 1, &error), -ENOENT);
    assert_says(&error, "no/such/folder cannot be created");
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_int_equal(file_write_atomic("folder", "x", 1, &error), -EISDIR);
    assert_says(&error, "give a file name");
    assert_int_equal(files_here(), 1);
}

static void writes_straight_into_what_is_no_file(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(file_write_atomic("/dev/null", "x", 1, &error), 0);
    assert_int_equal(file_write_atomic("/dev/full", "x", 1, &error), -ENOSPC);
    assert_says(&error, "/dev/full cannot be written");
    assert_int_equal(mkfifo("pipe", 0666), 0);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(file_write_atomic("pipe", "through", 7, &error), 0);
    char got[16];
    assert_int_equal(read(reader, got, sizeof(got)), 7);
    assert_memory_equal(got, "through", 7);
    close(reader);
    struct stat found;
    assert_int_equal(lstat("pipe", &found), 0);
    assert_true(S_ISFIFO(found.st_mode));
}

static void writes_empty_files(void **state)
{
    (void)state;
    struct error error = {0};
    put("full", "text");
    assert_int_equal(file_write_atomic("full", NULL, 0, &error), 0);
    assert_file("full", "");
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(reads_within_the_limit),
        in_folder(writes_new_files_with_the_usual_mode),
        in_folder(replaces_keeping_the_mode),
        in_folder(writes_through_links),
        in_folder(a_failed_write_leaves_the_old_file),
        in_folder(says_where_it_cannot_write),
        in_folder(writes_straight_into_what_is_no_file),
        in_folder(writes_empty_files),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
