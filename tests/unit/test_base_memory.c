// SPDX-License-Identifier: Apache-2.0
// Allocation, growing arrays, arenas and buffers.

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/allowance.h"
#include "base/arena.h"
#include "base/memory.h"
#include "unit.h"

static void allocates_nothing_as_something(void **state)
{
    (void)state;
    void *none = memory_alloc(0);
    assert_non_null(none);
    free(none);
    none = memory_zalloc(0, 8);
    assert_non_null(none);
    none = memory_resize(none, 0, 8);
    assert_non_null(none);
    free(none);
}

static void zeroes_and_copies(void **state)
{
    (void)state;
    _cleanup_free_ uint64_t *numbers = memory_zalloc(100, sizeof(*numbers));
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(numbers[i], 0);
    _cleanup_free_ char *whole = memory_strdup("tree");
    _cleanup_free_ char *part = memory_strndup("tree", 2);
    assert_string_equal(whole, "tree");
    assert_string_equal(part, "tr");
}

static void input_has_an_allowance(void **state)
{
    (void)state;
    enum { KIB = 1024, MIB = 1024 * KIB };
    memory_allow(MIB);
    void *first = memory_try_alloc(512 * KIB);
    assert_non_null(first);
    /* What a block has already doesn't count again; small blocks and those of the program don't. */
    for (size_t kib = 600; kib <= 1000; kib += 100) {
        void *grown = memory_try_resize(first, kib, KIB);
        assert_non_null(grown);
        first = grown;
    }
    assert_null(memory_try_zalloc(100, KIB));
    assert_null(memory_try_resize(first, 2, MIB));
    void *small = memory_try_alloc(32 * KIB), *own = memory_alloc(2 * MIB);
    assert_non_null(small);
    size_t capacity = 0;
    assert_null(memory_try_grow(NULL, &capacity, MIB, 1));
    assert_int_equal(capacity, 0);
    uint64_t refusals = memory_refusals(), skipped;
    assert_false(memory_allows(30 * KIB)); /* some 24 KiB are left */
    assert_true(memory_allows(10 * KIB));
    memory_allow_again(100 * KIB);
    assert_true(memory_allows(50 * KIB));
    assert_int_equal(memory_refusals(), refusals + 1);
    assert_true(memory_allow_end(&skipped));
    assert_int_equal(skipped, 1);
    assert_true(memory_allows(SIZE_MAX));
    void *after = memory_try_alloc(2 * MIB);
    assert_non_null(after);
    memory_allow(MIB);
    assert_false(memory_allow_end(NULL));
    free(first);
    free(small);
    free(own);
    free(after);
}

static void hands_pointers_over(void **state)
{
    (void)state;
    _cleanup_free_ char *mine = memory_strdup("x");
    char *before = mine;
    _cleanup_free_ char *theirs = TAKE_PTR(mine);
    assert_null(mine);
    assert_ptr_equal(theirs, before);
}

static void grows_arrays_keeping_content(void **state)
{
    (void)state;
    _cleanup_free_ uint32_t *array = NULL;
    size_t capacity = 0, moves = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        size_t before = capacity;
        array_reserve(array, capacity, i + 1u);
        assert_true(capacity >= i + 1u);
        moves += capacity != before;
        array[i] = i;
    }
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(array[i], i);
    /* Geometric growth: copying must not be quadratic. */
    assert_true(moves < 40);
}

static void arena_aligns_and_packs(void **state)
{
    (void)state;
    struct arena arena = {0};
    char *first = arena_strndup(&arena, "abc", 3);
    char *second = arena_strndup(&arena, "de", 2);
    assert_ptr_equal(second, first + 4);
    for (size_t size = 0; size < 50; size++) {
        assert_int_equal((uintptr_t)arena_alloc(&arena, size) & 7, 0);
        assert_string_equal(arena_strndup(&arena, "odd", 3), "odd");
    }
    assert_string_equal(first, "abc");
    assert_string_equal(second, "de");
    arena_release(&arena);
    assert_int_equal(arena.total_bytes, 0);
    arena_release(&arena);
}

static void arena_keeps_pointers_across_blocks(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct arena arena = {0};
    _cleanup_free_ char **copies = memory_zalloc(COUNT, sizeof(*copies));
    char text[700];
    for (size_t i = 0; i < COUNT; i++) {
        memset(text, 'a' + (int)(i % 26), sizeof(text));
        copies[i] = arena_strndup(&arena, text, i % sizeof(text));
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(strlen(copies[i]), i % sizeof(text));
        for (const char *c = copies[i]; *c; c++)
            assert_int_equal(*c, 'a' + (int)(i % 26));
    }
    /* Larger than any block. */
    size_t giant = 5u << 20;
    memset(arena_alloc(&arena, giant), 0x5a, giant);
    assert_true(arena.total_bytes > giant);
    assert_string_equal(arena_strndup(&arena, "after", 5), "after");
    arena_release(&arena);
}

static void buffer_collects(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer = {0};
    assert_string_equal(buffer_text(&buffer), "");
    buffer_add(&buffer, NULL, 0);
    buffer_add_text(&buffer, "n=");
    buffer_add_u64(&buffer, 0);
    buffer_add_char(&buffer, ' ');
    buffer_printf(&buffer, "%s-%d", "x", 5);
    assert_buffer(&buffer, "n=0 x-5");
    /* The terminator that buffer_text adds is not content. */
    assert_string_equal(buffer_text(&buffer), "n=0 x-5");
    buffer_add_char(&buffer, '!');
    assert_string_equal(buffer_text(&buffer), "n=0 x-5!");
}

static void buffer_writes_extreme_numbers(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer = {0};
    buffer_add_u64(&buffer, UINT64_MAX);
    buffer_add_char(&buffer, ' ');
    buffer_add_i64(&buffer, INT64_MIN);
    buffer_add_char(&buffer, ' ');
    buffer_add_i64(&buffer, INT64_MAX);
    buffer_add_char(&buffer, ' ');
    buffer_add_i64(&buffer, -1);
    assert_buffer(&buffer, "18446744073709551615 -9223372036854775808 9223372036854775807 -1");
}

static void buffer_prints_long_text(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer = {0};
    for (int i = 0; i < 1000; i++)
        buffer_printf(&buffer, "%0200d", i);
    assert_int_equal(buffer.length, 200000);
    assert_memory_equal(buffer.data + 199997, "999", 3);
}

#ifndef __SANITIZE_ADDRESS__

static void *lift_limit(void *argument)
{
    while (!memory_shortages())
        usleep(1000);
    usleep(20000);
    setrlimit(RLIMIT_AS, argument);
    return NULL;
}

static void large_allocations_wait_for_others(void **state)
{
    (void)state;
    enum { ROOM = 32 << 20, LARGE = 256 << 20 };
    pid_t child = fork();
    if (!child) {
        struct rlimit before, low;
        pthread_t thread;
        getrlimit(RLIMIT_AS, &before);
        if (pthread_create(&thread, NULL, lift_limit, &before))
            _exit(2);
        size_t pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");
        if (!file || fscanf(file, "%zu", &pages) != 1)
            _exit(2);
        fclose(file);
        low = before;
        low.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + ROOM;
        setrlimit(RLIMIT_AS, &low);
        free(memory_alloc(LARGE));
        pthread_join(thread, NULL);
        _exit(memory_shortages() ? 0 : 3);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocates_nothing_as_something),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(large_allocations_wait_for_others),
#endif
        cmocka_unit_test(zeroes_and_copies),
        cmocka_unit_test(hands_pointers_over),
        cmocka_unit_test(input_has_an_allowance),
        cmocka_unit_test(grows_arrays_keeping_content),
        cmocka_unit_test(arena_aligns_and_packs),
        cmocka_unit_test(arena_keeps_pointers_across_blocks),
        cmocka_unit_test(buffer_collects),
        cmocka_unit_test(buffer_writes_extreme_numbers),
        cmocka_unit_test(buffer_prints_long_text),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
