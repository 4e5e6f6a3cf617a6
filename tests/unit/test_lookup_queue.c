// SPDX-License-Identifier: Apache-2.0
// The queue of builds whose symbols are looked up.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/symbols/lookup_queue.h"
#include "unit.h"

static void make_file(const char *path, size_t bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < bytes; i++)
        fputc('x', file);
    fclose(file);
}

static void takes_small_files_first(void **state)
{
    (void)state;
    char folder[] = "/tmp/assay-lookup.XXXXXX", large[64], small[64];
    assert_non_null(mkdtemp(folder));
    snprintf(large, sizeof(large), "%s/large", folder);
    snprintf(small, sizeof(small), "%s/small", folder);
    make_file(large, 5000);
    make_file(small, 10);
    for (int measure = 0; measure < 2; measure++) {
        static const char *const in_order[] = {"aa", "bb", "cc"}, *const by_size[] = {"cc", "bb",
                                                                                      "aa"};
        struct lookup_queue *queue = lookup_queue_new();
        lookup_queue_add(queue, "acme", "aa", large, 1000);
        lookup_queue_add(queue, "acme", "bb", small, 1000);
        lookup_queue_add(queue, "acme", "cc", "[vdso]", 1000);
        for (size_t i = 0; i < 3; i++) {
            struct lookup lookup;
            assert_true(lookup_queue_take(queue, measure, 0, &lookup));
            assert_string_equal(lookup.key, measure ? by_size[i] : in_order[i]);
            assert_string_equal(lookup.tenant, "acme");
            free(lookup.file);
        }
        struct lookup none;
        assert_false(lookup_queue_take(queue, measure, 0, &none));
        lookup_queue_free(queue);
    }
    unlink(large);
    unlink(small);
    rmdir(folder);
}

static void looks_up_again_after_a_while(void **state)
{
    (void)state;
    struct lookup_queue *queue = lookup_queue_new();
    struct lookup lookup;
    static const int64_t times[] = {1000, 1001, 1599, 1600};
    static const bool taken[] = {true, false, false, true};
    for (size_t i = 0; i < 4; i++) {
        lookup_queue_add(queue, "acme", "aa", "/bin/x", times[i]);
        bool got = lookup_queue_take(queue, false, 0, &lookup);
        assert_int_equal(got, taken[i]);
        if (got)
            free(lookup.file);
    }
    lookup_queue_add(queue, "other", "aa", "/bin/x", 1001); /* of another tenant */
    lookup_queue_free(queue);
}

static void counts_dropped_builds(void **state)
{
    (void)state;
    struct lookup_queue *queue = lookup_queue_new();
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%08x", i);
        lookup_queue_add(queue, "acme", key, "/bin/x", 1000);
    }
    assert_int_equal(lookup_queue_dropped(queue), 300 - 256);
    lookup_queue_wake(queue);
    lookup_queue_free(queue);
    lookup_queue_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_small_files_first),
        cmocka_unit_test(looks_up_again_after_a_while),
        cmocka_unit_test(counts_dropped_builds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
