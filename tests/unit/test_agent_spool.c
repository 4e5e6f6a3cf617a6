// SPDX-License-Identifier: Apache-2.0
// The spool: what was put comes out once and in order, whatever happens to the process, to its
// files and to the disk; and every batch is counted where it went.

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/send/spool.h"
#include "agent/send/spool_file.h"
#include "agent/send/upload.h"
#include "base/file.h"
#include "base/log.h"
#include "unit.h"

static struct spool *open_spool(uint64_t limit_bytes, uint64_t memory_bytes)
{
    struct spool *spool = NULL;
    struct error error = {0};
    struct spool_options options = {
        .folder = "spool", .limit_bytes = limit_bytes, .memory_bytes = memory_bytes};
    if (spool_open(&options, &spool, &error) < 0)
        fail_msg("%s", error.text);
    return spool;
}

static int put(struct spool *spool, unsigned number, const char *body, size_t length)
{
    struct error error = {0};
    char id[SPOOL_ID_BYTES];
    snprintf(id, sizeof(id), "%016x-run", number);
    int r = spool_put(spool, id, body, length, &error);
    assert_true(r >= 0);
    return r;
}

static void put_number(struct spool *spool, unsigned number)
{
    char body[32];
    snprintf(body, sizeof(body), "body of %u", number);
    put(spool, number, body, strlen(body));
}

/* The number of the next batch, checked against its body; -1: there is none. */
static int next_number(struct spool *spool, bool done)
{
    _cleanup_buffer_ struct buffer body = {0};
    char id[SPOOL_ID_BYTES], wanted[32];
    if (!spool_next(spool, 0, id, &body))
        return -1;
    int number = (int)strtoul(id, NULL, 16);
    snprintf(wanted, sizeof(wanted), "body of %u", (unsigned)number);
    assert_buffer(&body, wanted);
    if (done)
        spool_done(spool, id, false);
    return number;
}

static unsigned files_in(const char *folder)
{
    unsigned count = 0;
    DIR *files = opendir(folder);
    for (struct dirent *entry; files && (entry = readdir(files));)
        count += entry->d_type == DT_REG && strcmp(entry->d_name, "lock") != 0;
    if (files)
        closedir(files);
    return count;
}

/* Nothing is lost without a number that says so. */
static void check_sum(struct spool *spool)
{
    struct spool_stats stats = spool_stats(spool);
    assert_int_equal(stats.put + stats.left,
                     stats.sent + stats.refused + stats.damaged + stats.dropped + stats.batches);
    assert_int_equal(stats.dropped, stats.dropped_full + stats.dropped_old + stats.dropped_memory);
}

static void test_order(void **state)
{
    (void)state;
    struct spool *spool = open_spool(0, 0);
    assert_int_equal(next_number(spool, true), -1);
    put_number(spool, 3);
    put_number(spool, 1);
    put_number(spool, 2);
    assert_int_equal(next_number(spool, false), 1);
    assert_int_equal(next_number(spool, true), 1);
    assert_int_equal(files_in("spool"), 2);
    check_sum(spool);
    spool_close(spool);

    /* Another process goes on where this one was. */
    spool = open_spool(0, 0);
    assert_int_equal(spool_stats(spool).left, 2);
    put_number(spool, 0);
    const int wanted[] = {0, 2, 3, -1};
    for (int i = 0; i < 4; i++)
        assert_int_equal(next_number(spool, true), wanted[i]);
    check_sum(spool);
    assert_int_equal(files_in("spool"), 0);
    spool_close(spool);
}

static void write_bytes(const char *path, const char *data, size_t length)
{
    FILE *file = fopen(path, "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    fclose(file);
}

#define DAMAGED_FILE "spool/0000000000000001-run.batch"

static void test_damage(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer whole = {0};
    struct error error = {0};
    struct spool *spool = open_spool(0, 0);
    put_number(spool, 1);
    spool_close(spool);
    assert_int_equal(file_read(DAMAGED_FILE, 1 << 20, &whole, &error), 0);
    assert_int_equal(whole.length, SPOOL_HEADER_BYTES + strlen("body of 1"));

    /* Cut at every byte, and every byte changed. */
    for (size_t i = 0; i < 2 * whole.length; i++) {
        bool cut = i < whole.length;
        size_t at = i % whole.length;
        whole.data[at] ^= cut ? 0 : 1 << (at % 8);
        write_bytes(DAMAGED_FILE, whole.data, cut ? at : whole.length);
        whole.data[at] ^= cut ? 0 : 1 << (at % 8);
        spool = open_spool(0, 0);
        put_number(spool, 2);
        assert_int_equal(next_number(spool, true), 2);
        assert_int_equal(spool_stats(spool).damaged, 1);
        check_sum(spool);
        spool_close(spool);
        assert_int_equal(files_in("spool"), 0);
        assert_int_equal(files_in("spool/damaged"), 1);
    }
    /* Longer than it was, and under another's name. */
    buffer_add_char(&whole, 'x');
    write_bytes(DAMAGED_FILE, whole.data, whole.length);
    write_bytes("spool/0000000000000007-run.batch", whole.data, whole.length - 1);
    spool = open_spool(0, 0);
    assert_int_equal(next_number(spool, true), -1);
    assert_int_equal(spool_stats(spool).damaged, 2);
    check_sum(spool);
    spool_close(spool);
}

/* A process that has too many files open for a while has damaged none. */
static void test_no_descriptors(void **state)
{
    (void)state;
    struct rlimit before, none;
    struct spool *spool = open_spool(0, 0);
    put_number(spool, 1);
    put_number(spool, 2);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int got = next_number(spool, true);
    uint64_t damaged = spool_stats(spool).damaged;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(got, -1);
    assert_int_equal(damaged, 0);
    assert_int_equal(next_number(spool, true), 1);
    assert_int_equal(next_number(spool, true), 2);
    check_sum(spool);
    spool_close(spool);
}

static void test_bounds(void **state)
{
    (void)state;
    char large[10000] = "";
    struct spool *spool = open_spool(64 << 10, 0);
    for (unsigned i = 0; i < 50; i++)
        put(spool, i, large, sizeof(large));
    struct spool_stats stats = spool_stats(spool);
    assert_true(stats.bytes <= 64 << 10 && stats.bytes > 50 << 10);
    assert_int_equal(stats.dropped_full, 50 - stats.batches);
    assert_int_equal(files_in("spool"), stats.batches);
    check_sum(spool);

    /* What is being sent is not dropped, or it would arrive and count as lost. */
    _cleanup_buffer_ struct buffer body = {0};
    char id[SPOOL_ID_BYTES];
    assert_int_equal(spool_next(spool, 0, id, &body), 1);
    for (unsigned i = 50; i < 70; i++)
        put(spool, i, large, sizeof(large));
    spool_done(spool, id, false);
    assert_int_equal(spool_stats(spool).sent, 1);
    check_sum(spool);
    spool_close(spool);

    /* A limit that has become smaller holds from the start. */
    spool = open_spool(20 << 10, 0);
    assert_true(spool_stats(spool).bytes <= 20 << 10);
    check_sum(spool);
    spool_close(spool);
}

static void test_refused(void **state)
{
    (void)state;
    char large[10000] = "";
    struct spool *spool = open_spool(256 << 10, 0);
    for (unsigned i = 0; i < 20; i++) {
        _cleanup_buffer_ struct buffer body = {0};
        char id[SPOOL_ID_BYTES];
        put(spool, i, large, sizeof(large));
        assert_int_equal(spool_next(spool, 0, id, &body), 1);
        spool_done(spool, id, true);
    }
    assert_int_equal(spool_stats(spool).refused, 20);
    check_sum(spool);
    spool_close(spool);
    assert_int_equal(files_in("spool/refused"), (256 << 10) / 8 / (sizeof(large) + 32));
    assert_int_equal(access("spool/refused/0000000000000013-run.batch", F_OK), 0);
}

static void test_age(void **state)
{
    (void)state;
    struct spool *spool = open_spool(0, 0);
    put_number(spool, 1);
    put_number(spool, 2);
    spool_close(spool);
    struct timespec then[2] = {{.tv_sec = time(NULL) - 8 * 86400},
                               {.tv_sec = time(NULL) - 8 * 86400}};
    assert_int_equal(utimensat(AT_FDCWD, DAMAGED_FILE, then, 0), 0);
    spool = open_spool(0, 0);
    assert_int_equal(spool_stats(spool).dropped_old, 1);
    check_sum(spool);
    assert_int_equal(next_number(spool, true), 2);
    spool_close(spool);
    assert_int_equal(files_in("spool"), 0);
}

static void test_folder(void **state)
{
    (void)state;
    struct error error = {0};
    struct spool *spool = open_spool(0, 0), *other = NULL;
    put_number(spool, 5);

    /* One agent at a time. */
    pid_t child = fork();
    if (!child)
        _exit(spool_open(&(struct spool_options){.folder = "spool"}, &other, &error) == -EBUSY &&
                      strstr(error.text, "another agent")
                  ? 0
                  : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);

    /* Somebody cleans up. */
    assert_int_equal(system("rm -r spool"), 0);
    put_number(spool, 6);
    assert_int_equal(next_number(spool, true), 6);
    assert_int_equal(spool_stats(spool).damaged, 1);
    check_sum(spool);
    spool_close(spool);

    /* What isn't ours stays; beginnings of files are nobody's. */
    write_bytes("spool/0000000000000001-run.part", "half", 4);
    write_bytes("spool/.batch", "x", 1);
    write_bytes("spool/a b.batch", "x", 1);
    write_bytes("spool/notes.txt", "x", 1);
    assert_int_equal(symlink("/dev/zero", "spool/1.batch"), 0);
    spool = open_spool(0, 0);
    assert_int_equal(spool_stats(spool).batches, 0);
    spool_close(spool);
    assert_int_equal(files_in("spool"), 3);

    write_bytes("plain", "x", 1);
    int r = spool_open(&(struct spool_options){.folder = "plain/spool"}, &spool, &error);
    assert_int_equal(r, -ENOTDIR);
    assert_says(&error, "plain/spool");
}

/* A disk that takes nothing: no file may be longer than a few bytes. */
static void fill_disk(bool full)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = full ? 8 : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void test_memory(void **state)
{
    (void)state;
    struct spool *spool = open_spool(0, 100);
    put_number(spool, 1);
    fill_disk(true);
    /* Nine bytes each: eleven fit, and the disk's one is still the first. */
    for (unsigned i = 2; i < 22; i++) {
        char body[32];
        snprintf(body, sizeof(body), "body of %u", i % 10);
        assert_int_equal(put(spool, i, body, 9), 1);
    }
    struct spool_stats stats = spool_stats(spool);
    fill_disk(false);
    assert_int_equal(stats.memory_batches, 11);
    assert_int_equal(stats.dropped_memory, 9);
    assert_true(stats.trouble[0]);
    check_sum(spool);
    assert_int_equal(files_in("spool"), 1);
    assert_int_equal(next_number(spool, true), 1);

    /* The disk is back: all that waits goes there. */
    put_number(spool, 30);
    stats = spool_stats(spool);
    assert_int_equal(stats.memory_batches, 0);
    assert_int_equal(stats.batches, 12);
    assert_false(stats.trouble[0]);
    assert_int_equal(files_in("spool"), 12);
    check_sum(spool);
    spool_close(spool);
}

/* Puts batch after batch, and says which are acknowledged, until it is killed. */
static void feed(unsigned first, int acknowledged)
{
    struct spool *spool = open_spool(0, 0);
    for (unsigned i = first;; i++) {
        put_number(spool, i);
        if (write(acknowledged, &i, sizeof(i)) != sizeof(i))
            _exit(1);
    }
}

static void test_killed(void **state)
{
    (void)state;
    enum { KILLS = 60, NUMBERS_MAX = 1 << 20 };
    bool *acknowledged = calloc(NUMBERS_MAX, 1);
    unsigned next = 0, count = 0;
    srand(20261115);
    for (int kills = 0; kills < KILLS; kills++) {
        int ends[2];
        unsigned number;
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid_t child = fork();
        if (!child)
            feed(next, ends[1]);
        close(ends[1]);
        /* Some time into the writing of one. */
        for (int i = rand() % 8; i >= 0 && read(ends[0], &number, sizeof(number)) > 0; i--)
            acknowledged[number] = true, next = number + 1, count++;
        usleep((unsigned)rand() % 1500);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(ends[0], &number, sizeof(number)) == sizeof(number))
            acknowledged[number] = true, next = number + 1, count++;
        close(ends[0]);
        next += 2; /* one may be there that was not acknowledged */
        assert_true(next < NUMBERS_MAX - 1000);
    }
    assert_true(count > KILLS / 2);

    struct spool *spool = open_spool(0, 0);
    unsigned extra = 0;
    for (int got, last = -1; (got = next_number(spool, true)) >= 0; last = got) {
        assert_true(got > last && got < NUMBERS_MAX);
        extra += !acknowledged[got];
        acknowledged[got] = false;
    }
    for (unsigned i = 0; i < NUMBERS_MAX; i++)
        assert_false(acknowledged[i]);
    assert_true(extra <= KILLS);
    assert_int_equal(spool_stats(spool).damaged, 0);
    check_sum(spool);
    spool_close(spool);
    assert_int_equal(files_in("spool"), 0);
    free(acknowledged);
}

static void test_waits(void **state)
{
    (void)state;
    struct upload_options options = {.first_retry_ms = 100, .longest_retry_ms = 5000};
    /* From half a bound that doubles to all of it. */
    assert_int_equal(upload_wait_ms(&options, 1, -1, 0), 50);
    assert_int_equal(upload_wait_ms(&options, 1, -1, 50), 100);
    assert_int_equal(upload_wait_ms(&options, 3, -1, 200), 400);
    for (unsigned i = 0; i < 200; i++)
        assert_in_range(upload_wait_ms(&options, i, -1, 7919ull * i * i), 50, 5000);
    /* Never before the server wants it. */
    for (unsigned i = 0; i < 200; i++)
        assert_in_range(upload_wait_ms(&options, i, 8000, 7919ull * i * i), 8000, 8000 + 800);
    assert_in_range(upload_wait_ms(&options, 1, 100000000, 99), 3600000, 3600100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_damage, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_no_descriptors, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_bounds, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_refused, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_age, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_folder, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_memory, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_killed, enter_folder, leave_folder),
        cmocka_unit_test(test_waits),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests_name("agent_spool", tests, NULL, NULL);
}
