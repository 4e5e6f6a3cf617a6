// SPDX-License-Identifier: Apache-2.0
// What the kernel's files say that processes hold, and which cgroup limits them; cut off anywhere,
// and hostile paths.

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/levels.h"
#include "capture/rss/cgroup_memory.h"
#include "capture/rss/holdings.h"
#include "unit.h"

static const char status[] =
    "Name:\tnginx\nUmask:\t0022\nVmRSS:\t    1752 kB\nRssAnon:\t     116 kB\n"
    "RssFile:\t    1632 kB\nRssShmem:\t       4 kB\nVmPTE:\t      48 kB\n"
    "VmSwap:\t       8 kB\nHugetlbPages:\t    2048 kB\nThreads:\t1\n";
static const char rollup[] = "55a491ed3000-7ffdc5737000 ---p 00000000 00:00 0    [rollup]\n"
                             "Rss:                1612 kB\nPss:                 166 kB\n"
                             "Pss_Dirty:           112 kB\nPss_Anon:            112 kB\n"
                             "Pss_File:             54 kB\nPss_Shmem:             0 kB\n";

static void test_files(void **context)
{
    (void)context;
    struct holdings holdings = {0};
    holdings_parse(&holdings, status, strlen(status));
    assert_int_equal(holdings.bytes[HOLDING_ANON], 116 << 10);
    assert_int_equal(holdings.bytes[HOLDING_FILE], 1632 << 10);
    assert_int_equal(holdings.bytes[HOLDING_SHARED], 4 << 10);
    assert_int_equal(holdings.bytes[HOLDING_SWAP], 8 << 10);
    assert_int_equal(holdings.bytes[HOLDING_PAGE_TABLES], 48 << 10);
    assert_int_equal(holdings.bytes[HOLDING_HUGE], 2 << 20);
    assert_int_equal(holdings.known, HOLDINGS_OF_STATUS);
    assert_int_equal(holdings_resident(&holdings), 1752 << 10);
    holdings_parse(&holdings, rollup, strlen(rollup));
    assert_int_equal(holdings.bytes[HOLDING_PSS_ANON], 112 << 10);
    assert_int_equal(holdings.bytes[HOLDING_PSS_FILE], 54 << 10);
    assert_int_equal(holdings.bytes[HOLDING_ANON], 116 << 10);
    assert_int_equal(holdings.known, (1u << HOLDING_KINDS) - 1);
}

/* A number that is cut off is not taken for a smaller one. */
static void test_cut_off(void **context)
{
    (void)context;
    for (size_t length = 0; length < strlen(status); length++) {
        struct holdings holdings = {0};
        holdings_parse(&holdings, status, length);
        assert_true(holdings.bytes[HOLDING_FILE] == 0 || holdings.bytes[HOLDING_FILE] == 1632
                                                                                             << 10);
    }
    const char *const wrong[] = {"RssAnon:\n",
                                 "RssAnon: x kB\n",
                                 "RssAnon: 12\n",
                                 "RssAnon: 12 MB\n",
                                 "RssAnon: 99999999999999999999999999 kB\n",
                                 "RssAnon: 1 kB "};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct holdings holdings = {0};
        holdings_parse(&holdings, wrong[i], strlen(wrong[i]));
        assert_int_equal(holdings.known, 0);
    }
}

static void test_own(void **context)
{
    (void)context;
    struct holdings holdings = {0};
    assert_true(holdings_read_status(&holdings, "/proc", (uint32_t)getpid()));
    assert_true(holdings_resident(&holdings) > 100 << 10);
    assert_true(holdings_read_rollup(&holdings, "/proc", (uint32_t)getpid()));
    assert_true(holdings.bytes[HOLDING_PSS_ANON] > 0);
    assert_false(holdings_read_status(&holdings, "/proc", 1u << 30));
    struct holdings none = {0};
    assert_false(holdings_read_status(&none, "/proc/self/nothing", 2));
}

/* ---- cgroups ---- */

static void put_file(const char *root, const char *path, const char *text)
{
    char place[512];
    snprintf(place, sizeof(place), "%s/%s", root, path);
    FILE *file = fopen(place, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int find(struct cgroup_memories *cgroups, const char *text)
{
    return cgroup_memories_find(cgroups, text, strlen(text));
}

static void test_cgroups(void **context)
{
    (void)context;
    char root[] = "/tmp/assay-rss-XXXXXX", path[512], mounts[600], line[700];
    struct cgroup_memories cgroups;
    assert_non_null(mkdtemp(root));
    for (unsigned second = 0; second < 2; second++) {
        snprintf(path, sizeof(path), "%s/%u", root, second);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(mounts, sizeof(mounts), "%s/mounts", path);
        snprintf(line, sizeof(line),
                 second ? "none %s cgroup2 rw,nsdelegate 0 0\n"
                        : "c /nowhere cgroup2 rw 0 0\nc %s cgroup rw,memory 0 0\n",
                 path);
        put_file(path, "mounts", line);
        cgroup_memories_init(&cgroups, mounts);
        assert_string_equal(cgroups.root, path);
        assert_int_equal(cgroups.second, second);
        snprintf(mounts, sizeof(mounts), "%s/a", path);
        mkdir(mounts, 0700);
        snprintf(mounts, sizeof(mounts), "%s/a/b", path);
        mkdir(mounts, 0700);
        put_file(path, second ? "a/memory.max" : "a/memory.limit_in_bytes", "1000000\n");
        put_file(path, second ? "a/b/memory.max" : "a/b/memory.limit_in_bytes",
                 second ? "max\n" : "9223372036854771712\n");
        put_file(path, second ? "a/b/memory.current" : "a/b/memory.usage_in_bytes", "4096\n");
        const char *text = second ? "5:cpu,memory:/x\n0::/a/b\n" : "0::/y\n4:cpu,memory:/a/b\n";
        int index = find(&cgroups, text);
        assert_int_equal(index, 0);
        assert_int_equal(find(&cgroups, text), 0);
        const struct cgroup_memory *cgroup = cgroup_memories_read(&cgroups, index, 10, 20);
        assert_true(cgroup->there);
        assert_int_equal(cgroup->used, 4096);
        assert_int_equal(cgroup->limit, 1000000);
        /* Not again until that is asked for. */
        put_file(path, second ? "a/b/memory.current" : "a/b/memory.usage_in_bytes", "8192\n");
        assert_int_equal(cgroup_memories_read(&cgroups, index, 20, 25)->used, 4096);
        assert_int_equal(cgroup_memories_read(&cgroups, index, 21, 25)->used, 8192);
        const char *prefix = second ? "0::" : "4:memory:";
        const char *const bad[] = {"/", "", "/../a/b", "/a/..", "a/b"};
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
            snprintf(line, sizeof(line), "%s%s\n", prefix, bad[i]);
            assert_int_equal(find(&cgroups, line), -1);
        }
        assert_int_equal(find(&cgroups, "no colons\n:\n::\n"), -1);
        snprintf(line, sizeof(line), "%s/gone\n", prefix);
        assert_false(cgroup_memories_read(&cgroups, find(&cgroups, line), 1, 2)->there);
        for (unsigned i = 0; i < CGROUP_MEMORY_MAX + 5; i++) {
            snprintf(line, sizeof(line), "%s/n%u\n", prefix, i);
            assert_true((find(&cgroups, line) < 0) == (i + 2 >= CGROUP_MEMORY_MAX));
        }
        cgroup_memories_release(&cgroups);
    }
    snprintf(line, sizeof(line), "rm -r %s", root);
    assert_int_equal(system(line), 0);
    cgroup_memories_init(&cgroups, "/proc/self/nothing");
    assert_int_equal(find(&cgroups, "0::/a\n"), -1);
    cgroup_memories_release(&cgroups);
}

/* ---- by service ---- */

static void add_row(struct profile *profile, const char *service, const char *type, int64_t bytes)
{
    struct profile_label label = {.key = profile_cstring(profile, "service_name"),
                                  .text = profile_cstring(profile, service)};
    unsigned index =
        profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, "bytes"));
    size_t row = profile_sample(profile, 0, profile_label_set(profile, &label, 1), 0, 0);
    profile_add_value(profile, row, index, bytes);
}

static void test_levels(void **context)
{
    (void)context;
    struct levels levels = {0};
    struct profile profile, empty;
    _cleanup_buffer_ struct buffer out = {0};
    profile_init(&profile, PROFILE_LABELS);
    profile_init(&empty, PROFILE_LABELS);
    levels_write(&levels, 1, &out);
    assert_int_equal(out.length, 0);
    add_row(&profile, "a\"b", "rss", 1000);
    add_row(&profile, "a\"b", "rss", 24);
    add_row(&profile, "a\"b", "rss_limit", 7);
    add_row(&profile, "a\"b", "alloc_space", 5);
    levels_take(&levels, &profile, 100);
    levels_take(&levels, &empty, 200); /* a window without a snapshot */
    levels_write(&levels, 300, &out);
    assert_non_null(strstr(buffer_text(&out), "{service=\"a\\\"b\",type=\"rss\"} 1024\n"));
    assert_non_null(strstr(buffer_text(&out), "type=\"rss_limit\"} 7\n"));
    assert_null(strstr(buffer_text(&out), "alloc_space"));
    for (unsigned i = 0; i < LEVELS_MAX + 10; i++) {
        char name[200];
        snprintf(name, sizeof(name), "%0150u", i); /* longer than what is kept */
        add_row(&profile, name + (i % 2) * 100, "rss", 1);
    }
    levels_take(&levels, &profile, 400);
    assert_true(levels.count <= LEVELS_MAX);
    out.length = 0;
    levels_write(&levels, 400 + LEVELS_STALE_NS + 1, &out);
    assert_int_equal(out.length, 0);
    profile_release(&profile);
    profile_release(&empty);
    levels_release(&levels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),   cmocka_unit_test(test_cut_off), cmocka_unit_test(test_own),
        cmocka_unit_test(test_cgroups), cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
