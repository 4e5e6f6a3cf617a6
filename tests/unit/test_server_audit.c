// SPDX-License-Identifier: Apache-2.0
// The audit log: lines that can be read back, a size that is bounded, several writers, torn lines,
// and what strangers can cause.

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/file.h"
#include "server/audit/audit.h"
#include "unit.h"

static struct audit *open_audit(void)
{
    struct audit *audit;
    assert_int_equal(audit_open(".", &audit, NULL), 0);
    return audit;
}

static size_t count_lines(const char *tenant, size_t limit)
{
    _cleanup_buffer_ struct buffer lines = {0};
    size_t count = 0;
    assert_int_equal(audit_read(".", tenant, limit, &lines, NULL), 0);
    for (size_t i = 0; i < lines.length; i++)
        count += lines.data[i] == '\n';
    return count;
}

static void lines_come_back(void **state)
{
    (void)state;
    assert_int_equal(count_lines(NULL, 10), 0); /* there is no log yet */
    struct audit *audit = open_audit();
    /* What somebody calls himself can't make it another tenant's line, nor two lines. */
    audit_write(audit, &(struct audit_entry){.actor = "x\",\"tenant\":\"acme\",\"a\":\"\n",
                                             .tenant = "other",
                                             .action = "delete",
                                             .target = "{}",
                                             .outcome = "done"});
    audit_write(audit, &(struct audit_entry){.tenant = "acme", .action = "reload"});
    assert_int_equal(count_lines(NULL, 10), 2);
    assert_int_equal(count_lines(NULL, 1), 1);
    assert_int_equal(count_lines("acme", 10), 1);
    assert_int_equal(count_lines("acm", 10), 0);
    _cleanup_buffer_ struct buffer lines = {0};
    assert_int_equal(audit_read(".", "acme", 10, &lines, NULL), 0);
    assert_non_null(strstr(buffer_text(&lines), "\"action\":\"reload\""));
    struct stat status;
    assert_int_equal(stat(AUDIT_FILE, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    audit_close(audit);
    audit_write(NULL, &(struct audit_entry){.action = "nothing"});
}

static void a_torn_line_is_passed_over(void **state)
{
    (void)state;
    struct audit *audit = open_audit();
    audit_write(audit, &(struct audit_entry){.action = "one"});
    int fd = open(AUDIT_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "{\"time\":\"20", 11), 11);
    close(fd);
    assert_int_equal(count_lines(NULL, 10), 1);
    audit_write(audit, &(struct audit_entry){.action = "two"});
    _cleanup_buffer_ struct buffer lines = {0};
    assert_int_equal(audit_read(".", NULL, 1, &lines, NULL), 0);
    assert_non_null(strstr(buffer_text(&lines), "\"action\":\"two\""));
    audit_close(audit);
}

static void its_size_is_bounded(void **state)
{
    (void)state;
    struct audit *first = open_audit(), *second = open_audit();
    char *much = memory_alloc(AUDIT_BYTES);
    memset(much, '\n', AUDIT_BYTES);
    for (unsigned i = 0; i < AUDIT_FILES + 3; i++) {
        int fd = open(AUDIT_FILE, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(file_write_all(fd, much, AUDIT_BYTES), 0);
        close(fd);
        /* One rotates, the other notices. */
        audit_write(first, &(struct audit_entry){.action = "first"});
        audit_write(second, &(struct audit_entry){.action = "second"});
    }
    free(much);
    struct stat status;
    assert_int_equal(stat(AUDIT_FILE, &status), 0);
    assert_true(status.st_size < 4096);
    assert_int_equal(stat(AUDIT_FILE ".7", &status), 0);
    assert_int_equal(stat(AUDIT_FILE ".8", &status), -1);
    assert_int_equal(count_lines(NULL, 1000), 2 * (AUDIT_FILES + 1));
    audit_close(first);
    audit_close(second);
}

static void strangers_fill_no_disk(void **state)
{
    (void)state;
    struct audit *audit = open_audit();
    for (unsigned i = 0; i < 1000; i++)
        audit_note(audit, &(struct audit_entry){.action = "refused", .remote = "192.0.2.1"});
    assert_int_equal(count_lines(NULL, 2000), 0); /* not yet: that takes its time */
    audit_flush(audit);
    assert_int_equal(count_lines(NULL, 2000), 16);
    audit_close(audit);
}

static void *write_many(void *context)
{
    (void)context;
    struct audit *audit = open_audit();
    for (unsigned i = 0; i < 20; i++)
        audit_write(audit, &(struct audit_entry){.action = "many"});
    audit_close(audit);
    return NULL;
}

static void several_may_write(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, NULL), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count_lines(NULL, 1000), 80);
}

/* Whoever can put a link there must not choose what we write to, or read. */
static void links_are_not_followed(void **state)
{
    (void)state;
    struct audit *audit;
    struct error error = {0};
    _cleanup_buffer_ struct buffer lines = {0};
    assert_int_equal(symlink("elsewhere", AUDIT_FILE), 0);
    assert_int_equal(audit_open(".", &audit, &error), -ELOOP);
    assert_says(&error, "symbolic link");
    assert_true(access("elsewhere", F_OK) < 0);
    assert_int_equal(file_write_atomic("elsewhere", "{}\n", 3, NULL), 0);
    assert_int_equal(audit_open(".", &audit, &error), -ELOOP);
    assert_true(audit_read(".", NULL, 10, &lines, &error) < 0);
    assert_int_equal(unlink(AUDIT_FILE), 0);
    assert_int_equal(mkfifo(AUDIT_FILE, 0600), 0);
    assert_true(audit_open(".", &audit, &error) < 0);
    assert_int_equal(unlink(AUDIT_FILE), 0);
    /* One that comes while it is open. */
    audit = open_audit();
    assert_int_equal(unlink(AUDIT_FILE), 0);
    assert_int_equal(symlink("elsewhere", AUDIT_FILE), 0);
    audit_write(audit, &(struct audit_entry){.action = "delete"});
    audit_close(audit);
    struct stat status;
    assert_int_equal(stat("elsewhere", &status), 0);
    assert_int_equal(status.st_size, 3);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(lines_come_back),     CASE(a_torn_line_is_passed_over),
        CASE(its_size_is_bounded), CASE(strangers_fill_no_disk),
        CASE(several_may_write),   CASE(links_are_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
