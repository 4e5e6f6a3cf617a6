// SPDX-License-Identifier: Apache-2.0
// The embedded store on a disk that is full, and on one that can't be written: it refuses, loses
// nothing that it has acknowledged, goes on answering, and takes more when that is over.

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/store.h"
#include "store_pair.h"
#include "unit.h"

static bool has_mounts;

/* A small disk of our own, which nobody else sees. */
static void mount_disk(void)
{
    if (!has_mounts)
        skip_because("This user may not mount a file system here.");
    assert_int_equal(mkdir("data", 0700), 0);
    assert_int_equal(mount("none", "data", "tmpfs", 0, "size=12m"), 0);
}

static void fill_disk(void)
{
    char zeros[4096] = {0};
    int fd = open("data/ballast", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    close(fd);
}

/* As many batches as are taken, up to `most`; the same into memory. Returns the last result. */
static int write_some(struct store *store, struct store *memory, uint64_t seed, unsigned most,
                      unsigned *ret_taken, struct error *error)
{
    int r = 0;
    for (*ret_taken = 0; !r && *ret_taken < most; ++*ret_taken) {
        struct sample_batch batch;
        sample_batch_make(&batch, seed * 1000 + *ret_taken, 8, TODAY_NS - DAY_NS, test_now_ns);
        struct store_batch all = {.tenant = "acme", .profiles = batch.profiles, .count = 8};
        r = store_write(store, &all, error);
        if (!r)
            write_batch(memory, &batch);
        sample_batch_release(&batch);
        if (r)
            break;
    }
    return r;
}

static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    mount_disk();
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    struct error error;
    unsigned taken;
    assert_int_equal(write_some(store, memory, 200, 10, &taken, &error), 0);
    maintain(store);
    assert_int_equal(store_writable(store, &error), 0);
    fill_disk();
    assert_int_equal(store_writable(store, &error), -ENOSPC);
    assert_int_equal(write_some(store, memory, 201, 1000, &taken, &error), -ENOSPC);
    assert_says(&error, "full");
    compare_answers(store, memory, 202, 20, TODAY_NS - DAY_NS, test_now_ns);
    /* Maintenance and deletions fail in words, or find enough room; both leave all as it is. */
    int r = store_maintain(store, NULL, &error);
    assert_true(r >= 0 || r == -ENOSPC);
    compare_answers(store, memory, 203, 20, TODAY_NS - DAY_NS, test_now_ns);
    store_close(store);
    store = open_embedded();
    compare_answers(store, memory, 204, 20, TODAY_NS - DAY_NS, test_now_ns);
    /* What was kept for opening may be used up by then, and no more. */
    assert_int_equal(write_some(store, memory, 205, 1000, &taken, &error), -ENOSPC);
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, &error), 0);
    assert_true(stats.write_failures > 0 && stats.free_bytes < 1 << 20);
    assert_int_equal(unlink("data/ballast"), 0);
    assert_int_equal(write_some(store, memory, 206, 10, &taken, &error), 0);
    maintain(store);
    assert_int_equal(store_writable(store, &error), 0);
    compare_answers(store, memory, 207, 20, TODAY_NS - DAY_NS, test_now_ns);
    check_is_clean(store);
    store_close(store);
    store_close(memory);
    umount2("data", MNT_DETACH);
}

static void a_read_only_disk_is_read(void **state)
{
    (void)state;
    mount_disk();
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    struct error error;
    unsigned taken;
    assert_int_equal(write_some(store, memory, 210, 10, &taken, &error), 0);
    maintain(store);
    store_close(store);
    assert_int_equal(mount("none", "data", "tmpfs", MS_REMOUNT | MS_RDONLY, "size=12m"), 0);
    struct store_options settings = options();
    struct store *refused;
    assert_int_equal(store_open_embedded(&settings, &refused, &error), -EROFS);
    assert_says(&error, "data/lock");
    settings.read_only = true;
    store = open_with(&settings);
    compare_answers(store, memory, 211, 20, TODAY_NS - DAY_NS, test_now_ns);
    struct store_selection selection = {.tenant = "acme", .from_ns = 0, .to_ns = INT64_MAX};
    struct store_deleted deleted;
    assert_int_equal(store_delete(store, &selection, false, &deleted, &error), -EROFS);
    store_close(store);
    assert_int_equal(mount("none", "data", "tmpfs", MS_REMOUNT, "size=12m"), 0);
    store = open_embedded();
    assert_int_equal(write_some(store, memory, 212, 10, &taken, &error), 0);
    compare_answers(store, memory, 213, 20, TODAY_NS - DAY_NS, test_now_ns);
    store_close(store);
    store_close(memory);
    umount2("data", MNT_DETACH);
}

/* A deletion that has no room to rewrite a file is done all the same, and names go when there is.
 */
static void deleting_needs_no_room(void **state)
{
    (void)state;
    mount_disk();
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    struct error error;
    unsigned taken;
    assert_int_equal(write_some(store, memory, 220, 20, &taken, &error), 0);
    maintain(store);
    _cleanup_selector_ struct selector selector = {0};
    assert_int_equal(selector_parse("{host=\"host1\"}", 14, &selector, NULL), 0);
    struct store_selection selection = {
        .tenant = "acme", .selector = &selector, .from_ns = 0, .to_ns = INT64_MAX};
    struct store_deleted deleted;
    fill_disk();
    if (store_delete(store, &selection, false, &deleted, &error) < 0)
        fail_msg("%s", error.text);
    assert_true(deleted.windows > 0);
    assert_int_equal(store_delete(memory, &selection, false, &deleted, &error), 0);
    compare_answers(store, memory, 222, 20, TODAY_NS - DAY_NS, test_now_ns);
    /* Nothing of a day that is over: its files give their room back. */
    struct statvfs before, after;
    assert_int_equal(statvfs("data", &before), 0);
    selection.selector = NULL;
    selection.to_ns = TODAY_NS;
    if (store_delete(store, &selection, false, &deleted, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(statvfs("data", &after), 0);
    assert_true(after.f_bavail > before.f_bavail);
    assert_int_equal(store_delete(memory, &selection, false, &deleted, &error), 0);
    compare_answers(store, memory, 223, 20, TODAY_NS - DAY_NS, test_now_ns);
    assert_int_equal(unlink("data/ballast"), 0);
    maintain(store);
    compare_answers(store, memory, 221, 20, TODAY_NS - DAY_NS, test_now_ns);
    check_is_clean(store);
    store_close(store);
    store_close(memory);
    umount2("data", MNT_DETACH);
}

int main(void)
{
    has_mounts = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(a_full_disk_loses_nothing),
        CASE(a_read_only_disk_is_read),
        CASE(deleting_needs_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
