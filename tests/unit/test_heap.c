// SPDX-License-Identifier: Apache-2.0
// Heap profiles: the mathematics and the table of the library, the table of live samples, notes of
// static probes, and a ring that somebody else writes.

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "base/memory.h"
#include "capture/heap/live.h"
#include "capture/heap/reader.h"
#include "elf/usdt/usdt.h"
#include "heap/chance.h"
#include "heap/live.h"

/* ---- the library ---- */

static void weights(void **state)
{
    (void)state;
    const double mean = 524288;
    for (uint64_t size = 1; size <= 1ull << 40; size = size * 3 + 1) {
        double exact = (double)size / -expm1(-(double)size / mean);
        assert_true(fabs((double)chance_weight(size, 524288) - exact) <= 0.51 + exact * 1e-9);
    }
    assert_int_equal(chance_weight(1 << 30, 524288), 1 << 30);
    assert_int_equal(chance_weight(0, 524288), 0);
}

/* Gaps are exponential: their mean, their variance, and how many are longer than the mean. */
static void gaps(void **state)
{
    (void)state;
    const int count = 400000;
    uint64_t random = 7;
    double sum = 0, squares = 0, longer = 0;
    for (int i = 0; i < count; i++) {
        double gap = (double)chance_gap(&random, 1000000) / 1e6;
        assert_true(gap >= 0);
        sum += gap;
        squares += gap * gap;
        longer += gap > 1;
    }
    assert_true(fabs(sum / count - 1) < 4 / sqrt(count));
    assert_true(fabs(squares / count - 2) < 4 * sqrt(20.0 / count));
    assert_true(fabs(longer / count - exp(-1)) < 4 * sqrt(0.2325 / count));
}

/* Sampling allocations of one size gives back their bytes, whatever the size. */
static void unbiased(void **state)
{
    (void)state;
    const uint64_t mean = 4096;
    for (uint64_t size = 16; size <= 65536; size *= 4) {
        const uint64_t count = 2000000000 / (size + 1000);
        uint64_t random = size, sum = 0;
        int64_t remaining = chance_gap(&random, mean);
        for (uint64_t i = 0; i < count; i++)
            if ((remaining -= (int64_t)size) < 0) {
                sum += chance_weight(size, mean);
                remaining = chance_gap(&random, mean);
            }
        double truth = (double)count * (double)size;
        double deviation = sqrt(truth * (double)size / expm1((double)size / (double)mean));
        assert_true(fabs((double)sum - truth) <= 4 * deviation + truth * 1e-3);
    }
}

static void *pointer_of(uintptr_t number)
{
    return (void *)(0x7f0000000000 + number * 48);
}

static void library_table(void **state)
{
    (void)state;
    struct live_value value;
    size_t added = 0;
    for (uintptr_t i = 0; i < 2 * LIVE_MAX; i++)
        added += live_add(pointer_of(i), (struct live_value){i, 2 * i});
    assert_true(added > LIVE_MAX / 10 * 9 && added <= LIVE_MAX);
    assert_int_equal(live_count, added);
    size_t removed = 0;
    for (uintptr_t i = 0; i < 2 * LIVE_MAX; i++)
        if (live_may_have(pointer_of(i)) && live_remove(pointer_of(i), &value)) {
            assert_int_equal(value.size, i);
            assert_int_equal(value.weight, 2 * i);
            removed++;
        }
    assert_int_equal(removed, added);
    assert_int_equal(live_count, 0);
    assert_false(live_may_have(pointer_of(1)));
}

/* Threads that add and remove pointers of their own find all of them. */
static void *churn(void *argument)
{
    uintptr_t base = (uintptr_t)argument * 1000;
    uintptr_t missing = 0;
    struct live_value value;
    for (unsigned turn = 0; turn < 300; turn++) {
        for (uintptr_t i = 0; i < 500; i++)
            missing += !live_add(pointer_of(base + i), (struct live_value){base, turn});
        for (uintptr_t i = 0; i < 500; i++)
            missing += !live_may_have(pointer_of(base + i)) ||
                       !live_remove(pointer_of(base + i), &value) || value.size != base ||
                       value.weight != turn;
    }
    return (void *)missing;
}

static void library_threads(void **state)
{
    (void)state;
    pthread_t threads[16];
    for (uintptr_t i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (unsigned i = 0; i < 16; i++) {
        void *missing;
        pthread_join(threads[i], &missing);
        assert_null(missing);
    }
    assert_int_equal(live_count, 0);
}

/* ---- live samples ---- */

static void live_model(void **state)
{
    (void)state;
    static bool there[4][2000];
    struct heap_live live;
    size_t count = 0;
    unsigned random = 1;
    heap_live_init(&live, HEAP_LIVE_MAX, HEAP_LIVE_PROCESS_MAX);
    for (unsigned i = 0; i < 200000; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t pid = random >> 30, number = (random >> 10) % 2000;
        struct heap_live_entry entry = {.pid = pid + 1, .pointer = 16 + number * 16, .weight = i};
        if (random & 512) {
            assert_true(heap_live_add(&live, &entry));
            count += !there[pid][number];
            there[pid][number] = true;
        } else {
            assert_int_equal(heap_live_remove(&live, entry.pid, entry.pointer), there[pid][number]);
            count -= there[pid][number];
            there[pid][number] = false;
        }
        assert_int_equal(live.used, count);
        if (i == 100000) {
            heap_live_forget(&live, 2);
            for (unsigned j = 0; j < 2000; j++) {
                count -= there[1][j];
                there[1][j] = false;
            }
        }
    }
    size_t at = 0, seen = 0;
    const struct heap_live_entry *entry;
    while ((entry = heap_live_next(&live, &at))) {
        assert_true(there[entry->pid - 1][(entry->pointer - 16) / 16]);
        seen++;
    }
    assert_int_equal(seen, count);
    heap_live_release(&live);
}

static void live_limits(void **state)
{
    (void)state;
    struct heap_live live;
    heap_live_init(&live, 100, 60);
    for (uint64_t i = 1; i <= 80; i++)
        assert_int_equal(
            heap_live_add(&live, &(struct heap_live_entry){.pid = 1, .pointer = i, .weight = 5}),
            i <= 60);
    for (uint64_t i = 1; i <= 80; i++)
        assert_int_equal(heap_live_add(&live, &(struct heap_live_entry){.pid = 2, .pointer = i}),
                         i <= 40);
    assert_int_equal(live.refused, 20 + 40);
    assert_int_equal(live.refused_bytes, 100);
    assert_false(heap_live_add(&live, &(struct heap_live_entry){.pid = 1}));
    assert_true(sizeof(struct heap_live_entry) * 4 / 3 <= 64);
    heap_live_release(&live);
}

/* ---- probes ---- */

static void arguments(void **state)
{
    (void)state;
    struct usdt_probe probe;
    assert_true(usdt_parse_arguments("8@%rdi -4@-16(%rbp) 2@$7 1@(%rax)", &probe));
    assert_int_equal(probe.argument_count, 4);
    assert_int_equal(probe.arguments[0].kind, USDT_REGISTER);
    assert_int_equal(probe.arguments[0].number, 5);
    assert_int_equal(probe.arguments[1].kind, USDT_MEMORY);
    assert_int_equal(probe.arguments[1].number, 6);
    assert_int_equal(probe.arguments[1].offset, -16);
    assert_true(probe.arguments[1].is_signed);
    assert_int_equal(probe.arguments[2].offset, 7);
    assert_int_equal(probe.arguments[3].kind, USDT_MEMORY);
    static const char *const bad[] = {
        "8@%xyz", "3@%rdi",         "8@",   "8",           "8@(%rax",
        "8@()",   "8@8(%rax,%rbx)", "8@$x", "8@sym(%rip)", "8@%rdi 8@%rdi 8@%rdi 8@%rdi 8@%rdi"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_false(usdt_parse_arguments(bad[i], &probe));
    assert_true(usdt_parse_arguments("", &probe));
}

static void maps(void **state)
{
    (void)state;
    struct heap_map map;
    char code[] = "7f00-8f00 r-xp 00001000 fd:01 77 /usr/lib/a b.so",
         data[] = "7f00-8f00 rw-p 0 0:0 0 ";
    char short_line[] = "7f00-8f00 r-xp", backwards[] = "9f00-8f00 r-xp 0 0:0 0 x", empty[] = "";
    assert_true(heap_map_parse(code, &map));
    assert_int_equal(map.start, 0x7f00);
    assert_int_equal(map.offset, 0x1000);
    assert_int_equal(map.inode, 77);
    assert_string_equal(map.path, "/usr/lib/a b.so");
    assert_false(heap_map_parse(data, &map));
    assert_false(heap_map_parse(short_line, &map));
    assert_false(heap_map_parse(backwards, &map));
    assert_false(heap_map_parse(empty, &map));
}

/* ---- the ring ---- */

static void put(struct heap_reader *reader, const struct heap_record *record)
{
    struct heap_ring *ring = reader->ring;
    uint64_t at = ring->head;
    memcpy(ring->data[at % HEAP_SLOTS], record, sizeof(*record));
    ring->head = at + MAX(record->slots, 1u);
    ring->state[at % HEAP_SLOTS] = at + 1;
}

static void hostile_ring(void **state)
{
    (void)state;
    struct heap_reader *reader = memory_zalloc(1, sizeof(*reader));
    struct error error = {0};
    assert_int_equal(heap_reader_init(reader, 0, 0, &error), 0);
    assert_false(heap_reader_next(reader));
    const struct heap_record bad[] = {
        {.kind = HEAP_RECORD_FREE, .slots = 0},
        {.kind = HEAP_RECORD_FREE, .slots = UINT32_MAX},
        {.kind = 99, .slots = 1},
        {.kind = HEAP_RECORD_ALLOC, .slots = 1, .bytes = HEAP_SLOT_BYTES},
        {.kind = HEAP_RECORD_ALLOC, .slots = 200, .bytes = HEAP_STACK_BYTES + 1},
        {.kind = HEAP_RECORD_FREE, .slots = 1, .pid = UINT32_MAX},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        put(reader, &bad[i]);
        if (bad[i].slots == UINT32_MAX) /* the head of a liar */
            reader->ring->head = reader->tail + 1;
        assert_false(heap_reader_next(reader));
        assert_int_equal(reader->damaged, i + 1);
    }
    put(reader, &(struct heap_record){.kind = HEAP_RECORD_PADDING, .slots = 3, .pid = UINT32_MAX});
    put(reader,
        &(struct heap_record){.kind = HEAP_RECORD_FREE, .slots = 1, .pid = 5, .pointer = 6});
    assert_true(heap_reader_next(reader));
    assert_int_equal(reader->record.pointer, 6);
    assert_false(heap_reader_next(reader));
    assert_int_equal(reader->ring->tail, reader->ring->head);
    heap_reader_release(reader);
    free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights),
        cmocka_unit_test(gaps),
        cmocka_unit_test(unbiased),
        cmocka_unit_test(library_table),
        cmocka_unit_test(library_threads),
        cmocka_unit_test(live_model),
        cmocka_unit_test(live_limits),
        cmocka_unit_test(arguments),
        cmocka_unit_test(maps),
        cmocka_unit_test(hostile_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
