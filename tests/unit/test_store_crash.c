// SPDX-License-Identifier: Apache-2.0
// Nothing acknowledged is lost: a child that writes, compacts and rolls up is killed at random
// moments; disks fill up; directories become read-only. What was acknowledged is there afterwards,
// exactly once, and what was not is there whole or not at all.
//
// STORE_CRASH_ROUNDS says how often the child is killed (20).

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "store/store.h"
#include "store_samples.h"
#include "unit.h"

#define WRITERS 3
#define BATCHES_MAX 4000 /* of one writer */

/* What the child tells: shared memory survives it. */
struct diary {
    _Atomic unsigned acknowledged[WRITERS]; /* batches, from the first on */
    _Atomic unsigned begun[WRITERS];
};

static const char *const own[] = {"service0", NULL};
static const struct store_class classes[] = {{.name = "own", .services = own, .days = {9, 9, 9, 9}},
                                             {.name = "rest", .days = {9, 9, 9, 9}}};

static struct store_options options(void)
{
    return (struct store_options){.directory = "data",
                                  .now = test_clock,
                                  .commit_ms = 2,
                                  .late_ms = 1000,
                                  .classes = classes,
                                  .class_count = 2};
}

/* Batch `number` of a writer: four windows over midnight and both classes, each with a value that
 * only this batch has, so that it can be found again. */
static int write_numbered(struct store *store, unsigned writer, unsigned number,
                          struct error *error)
{
    struct labels labels[4] = {0};
    struct store_profile windows[4];
    struct store_row row = {.value = 1};
    char id[32], name[32];
    struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t frame = sample_frame(&profile, 1 + number % 50);
    row.node = profile_stack(&profile, &frame, 1);
    snprintf(id, sizeof(id), "%u-%u", writer, number);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "service%u", i % 2);
        labels_set(&labels[i], "service_name", name);
        snprintf(name, sizeof(name), "writer%u", writer);
        labels_set(&labels[i], "host", name);
        windows[i] = (struct store_profile){.labels = &labels[i],
                                            .type = CPU,
                                            .time_ns = TODAY_NS + (i < 2 ? 0 : -DAY_NS) +
                                                       (int64_t)number * SECOND_NS,
                                            .duration_ns = SECOND_NS,
                                            .profile = &profile,
                                            .rows = &row,
                                            .row_count = 1};
    }
    struct store_batch batch = {.tenant = "acme", .batch_id = id, .profiles = windows, .count = 4};
    int r = store_write(store, &batch, error);
    for (unsigned i = 0; i < 4; i++)
        labels_release(&labels[i]);
    profile_release(&profile);
    return r;
}

struct writer {
    struct store *store;
    struct diary *diary;
    unsigned number;
};

static void *write_on(void *context)
{
    struct writer *writer = context;
    struct error error;
    for (;;) {
        unsigned next = writer->diary->acknowledged[writer->number];
        if (next >= BATCHES_MAX)
            return NULL;
        writer->diary->begun[writer->number] = next + 1;
        int r = write_numbered(writer->store, writer->number, next, &error);
        if (r < 0 && r != -EALREADY) {
            fprintf(stderr, "%s\n", error.text);
            _exit(3);
        }
        writer->diary->acknowledged[writer->number] = next + 1;
    }
}

static void run_child(struct diary *diary)
{
    struct store_options settings = options();
    struct store *store;
    struct error error;
    if (store_open_embedded(&settings, &store, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        _exit(2);
    }
    struct writer writers[WRITERS];
    pthread_t thread;
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.store = store, .diary = diary, .number = i};
        pthread_create(&thread, NULL, write_on, &writers[i]);
    }
    for (;;)
        if (store_maintain(store, NULL, &error) < 0) {
            fprintf(stderr, "%s\n", error.text);
            _exit(4);
        }
}

/* How often each batch's windows were seen. */
struct count {
    unsigned char seen[WRITERS][BATCHES_MAX];
    unsigned unknown;
};

static int count_window(void *context, const struct store_profile *window)
{
    struct count *count = context;
    unsigned writer;
    int64_t number = (window->time_ns - TODAY_NS) / SECOND_NS;
    if (number < 0)
        number += DAY_NS / SECOND_NS;
    if (sscanf(labels_get(window->labels, "host"), "writer%u", &writer) != 1 || writer >= WRITERS ||
        number >= BATCHES_MAX || window->row_count != 1)
        count->unknown++;
    else
        count->seen[writer][number]++;
    return 0;
}

static void check_store(const struct diary *diary)
{
    struct store_options settings = options();
    struct store *store;
    struct error error;
    if (store_open_embedded(&settings, &store, &error) < 0)
        fail_msg("%s", error.text);
    struct count *count = memory_zalloc(1, sizeof(*count));
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = 0, .to_ns = TODAY_NS + 2 * DAY_NS};
    if (store_scan(store, &selection, NULL, count_window, count, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(count->unknown, 0);
    uint64_t windows = 0;
    for (unsigned w = 0; w < WRITERS; w++)
        for (unsigned i = 0; i < BATCHES_MAX; i++) {
            unsigned seen = count->seen[w][i];
            windows += seen;
            if (i < diary->acknowledged[w] && seen != 4)
                fail_msg("batch %u-%u was acknowledged and has %u of 4 windows", w, i, seen);
            if (i >= diary->acknowledged[w] && seen != 0 && seen != 4)
                fail_msg("batch %u-%u is there in part: %u of 4 windows", w, i, seen);
            if (i >= diary->begun[w] && seen)
                fail_msg("batch %u-%u is there and was never written", w, i);
        }
    /* Rollups say the same as what they were made from. */
    for (unsigned raw = 0; raw < 2; raw++) {
        struct store_limits limits = {.raw_only = raw};
        struct store_quality quality;
        _cleanup_profile_ struct profile profile;
        profile_init(&profile, PROFILE_ALL);
        if (store_merge(store, &selection, &limits, &profile, &quality, &error) < 0)
            fail_msg("%s", error.text);
        assert_int_equal(quality.windows, windows);
        assert_int_equal(quality.total, (int64_t)windows);
    }
    _cleanup_buffer_ struct buffer text = {0};
    if (store_check(store, describe_text, &text, &error) < 0)
        fail_msg("%s", buffer_text(&text));
    assert_int_equal(store_problems(store, describe_text, &text, &error), 0);
    assert_string_equal(buffer_text(&text), "");
    free(count);
    store_close(store);
}

static unsigned acknowledged_in(const struct diary *diary)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < WRITERS; i++)
        sum += diary->acknowledged[i];
    return sum;
}

static void survives_being_killed(void **state)
{
    (void)state;
    const char *rounds_text = getenv("STORE_CRASH_ROUNDS");
    int rounds = rounds_text ? atoi(rounds_text) : 20;
    struct diary *diary =
        mmap(NULL, sizeof(*diary), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(diary != MAP_FAILED);
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    uint64_t seed = (uint64_t)monotonic_ns();
    for (int round = 0; round < rounds; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_child(diary);
        }
        /* On a busy machine the moments of chance would all come before the first commit. */
        unsigned before = acknowledged_in(diary);
        for (int i = 0; round % 2 && i < 6000 && acknowledged_in(diary) == before; i++)
            usleep(10000);
        unsigned wait_us = 1000 + sample_random(&seed) % 150000;
        usleep(wait_us);
        int status;
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        check_store(diary);
    }
    unsigned acknowledged = acknowledged_in(diary);
    assert_true(acknowledged > 0);
    printf("# %d times killed, %u batches acknowledged, none lost\n", rounds, acknowledged);
    munmap(diary, sizeof(*diary));
}

/* Writes until it is refused; how many batches were taken. */
static unsigned write_until_refused(struct store *store, unsigned from, unsigned limit,
                                    int *ret_code, struct error *error)
{
    for (unsigned i = from; i < limit; i++)
        if ((*ret_code = write_numbered(store, 0, i, error)) < 0)
            return i;
    return limit;
}

/* Something else takes all there is. */
static void fill_up(FILE *filler)
{
    static const char noise[4096] = {1};
    while (fwrite(noise, sizeof(noise), 1, filler) == 1 && !fflush(filler))
        ;
    clearerr(filler);
}

static void run_on_a_full_disk(void)
{
    struct store_options settings = options();
    struct store *store;
    struct error error;
    struct diary diary = {0};
    int code = 0;
    assert_int_equal(store_open_embedded(&settings, &store, &error), 0);
    unsigned taken = write_until_refused(store, 0, 100, &code, &error);
    assert_int_equal(taken, 100);
    FILE *filler = fopen("data/filler", "w");
    assert_non_null(filler);
    setvbuf(filler, NULL, _IONBF, 0);
    fill_up(filler);
    taken = write_until_refused(store, taken, BATCHES_MAX, &code, &error);
    assert_true(taken < BATCHES_MAX);
    assert_int_equal(code, -ENOSPC);
    assert_says(&error, "The disk of data is full");
    diary.acknowledged[0] = diary.begun[0] = taken;
    /* Nothing is left for a start but what the store keeps for that. */
    store_close(store);
    fill_up(filler);
    check_store(&diary);
    fill_up(filler); /* but for less than the store leaves free when it writes */
    assert_int_equal(ftruncate(fileno(filler), ftell(filler) - (1 << 20)), 0);
    assert_int_equal(store_open_embedded(&settings, &store, &error), 0);
    assert_int_equal(write_until_refused(store, taken, taken + 1, &code, &error), taken);
    assert_int_equal(code, -ENOSPC);
    fclose(filler);
    unlink("data/filler");
    /* With room again it goes on, also with the batch that was refused. */
    unsigned more = write_until_refused(store, taken, taken + 5, &code, &error);
    assert_int_equal(more, taken + 5);
    diary.acknowledged[0] = diary.begun[0] = more;
    store_close(store);
    check_store(&diary);
}

/* A child in mount namespaces of its own: 0 passed, 77 not possible here. */
static int in_small_filesystem(void (*run)(void))
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failure ends the child, not just its test */
        mkdir("data", 0700);
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", "data", "tmpfs", 0, "size=24m") < 0)
            _exit(77);
        run();
        fflush(stdout);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void takes_nothing_on_a_full_disk(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    int result = in_small_filesystem(run_on_a_full_disk);
    if (result == 77) {
        printf("# no small file system can be mounted here; the limit on file sizes stands in\n");
        skip();
    }
    assert_int_equal(result, 0);
}

/* A limit on the size of files is a full disk that needs no privilege. */
static void takes_nothing_beyond_a_file_limit(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store_options settings = options();
    struct store *store;
    struct error error;
    struct diary diary = {0};
    struct rlimit before, small = {.rlim_cur = 512 << 10};
    int code = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(store_open_embedded(&settings, &store, &error), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    unsigned taken = write_until_refused(store, 0, BATCHES_MAX, &code, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(taken < BATCHES_MAX);
    if (code != -ENOSPC)
        fail_msg("%d: %s", code, error.text);
    unsigned more = write_until_refused(store, taken, taken + 5, &code, &error);
    assert_int_equal(more, taken + 5);
    diary.acknowledged[0] = diary.begun[0] = more;
    store_close(store);
    check_store(&diary);
}

static void run_on_a_read_only_disk(void)
{
    struct store_options settings = options();
    struct store *store;
    struct error error;
    struct diary diary = {0};
    int code = 0;
    assert_int_equal(store_open_embedded(&settings, &store, &error), 0);
    unsigned taken = write_until_refused(store, 0, 20, &code, &error);
    assert_int_equal(taken, 20);
    store_close(store);
    if (mount(NULL, "data", NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
        _exit(77);
    code = store_open_embedded(&settings, &store, &error);
    assert_int_equal(code, -EROFS);
    assert_says(&error, "data/lock");
    assert_int_equal(mount(NULL, "data", NULL, MS_REMOUNT, NULL), 0);
    diary.acknowledged[0] = diary.begun[0] = taken;
    check_store(&diary);
}

static void says_when_it_may_not_write(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    int result = in_small_filesystem(run_on_a_read_only_disk);
    if (result == 77) {
        printf("# no file system can be mounted here, so there is none to make read-only\n");
        skip();
    }
    assert_int_equal(result, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(survives_being_killed),
        CASE(takes_nothing_on_a_full_disk),
        CASE(takes_nothing_beyond_a_file_limit),
        CASE(says_when_it_may_not_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
