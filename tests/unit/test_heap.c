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
#include "bpf/chance.h"
#include "capture/heap/kept.h"
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

/* The kernel's arithmetic is near enough, and each chance is used as it is. */
static void chances(void **state)
{
    (void)state;
    static const uint64_t means[] = {1, 4096, 65536, 524288, 3000000, CHANCE_MEAN_MAX};
    for (size_t i = 0; i < sizeof(means) / sizeof(*means); i++)
        for (uint64_t size = 1; size <= 1ull << 40; size = size * 3 / 2 + 1) {
            uint64_t chance = chance_of(size, means[i]);
            double exact = -expm1(-(double)size / (double)means[i]) * 4294967296.0;
            assert_true(chance >= 1 && chance <= CHANCE_CERTAIN);
            assert_true(fabs((double)chance - exact) <= 2 + exact * 1e-4);
            double sum = (double)chance_stands_for(size, chance) * (double)chance / 4294967296.0;
            assert_true(fabs(sum - (double)size) <= 1);
        }
    assert_int_equal(chance_stands_for(1 << 30, CHANCE_CERTAIN), 1 << 30);
    assert_int_equal(chance_stands_for(UINT64_MAX, 1), 0); /* what can't be */
    assert_int_equal(chance_stands_for(1, 0), 0);
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

/* Against a plain table of what is live, with compaction and a process that goes away. */
static void live_model(void **state)
{
    (void)state;
    static struct {
        bool there;
        unsigned weight;
    } model[4][2000];
    struct heap_live live;
    size_t count = 0;
    unsigned random = 1;
    heap_live_init(&live, HEAP_LIVE_MAX, HEAP_LIVE_PROCESS_MAX);
    for (unsigned i = 0; i < 200000; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t pid = random >> 30, number = (random >> 10) % 2000;
        uint64_t pointer = 16 + number * 16;
        if (random & 512) {
            uint32_t process = heap_live_process(&live, pid + 1);
            uint32_t site = heap_live_site(&live, process, number % 50, number % 3);
            assert_true(
                heap_live_add(&live, site,
                              &(struct heap_live_sample){
                                  .pointer = pointer, .weight = i, .objects = 1.5, .time_ns = i}));
            count += !model[pid][number].there;
            model[pid][number].there = true;
            model[pid][number].weight = i;
        } else {
            assert_int_equal(heap_live_remove(&live, pid + 1, pointer), model[pid][number].there);
            count -= model[pid][number].there;
            model[pid][number].there = false;
        }
        assert_int_equal(live.used, count);
        if (i == 100000) {
            heap_live_forget(&live, heap_live_find_process(&live, 2));
            assert_int_equal(heap_live_find_process(&live, 2), HEAP_LIVE_NONE);
            for (unsigned j = 0; j < 2000; j++) {
                count -= model[1][j].there;
                model[1][j].there = false;
            }
        }
        if (i % 50000 == 0)
            heap_live_compact(&live);
    }
    size_t at = 0, seen = 0;
    const struct heap_live_entry *entry;
    uint64_t entries_bytes = 0, sites_bytes = 0;
    while ((entry = heap_live_next(&live, &at))) {
        uint32_t pid = live.processes[entry->process].pid - 1;
        assert_true(model[pid][(entry->pointer - 16) / 16].there);
        assert_int_equal(entry->weight, model[pid][(entry->pointer - 16) / 16].weight);
        assert_int_equal(live.sites[entry->site].process, entry->process);
        entries_bytes += entry->weight;
        seen++;
    }
    assert_int_equal(seen, count);
    double objects = 0;
    for (uint32_t i = 0; i < live.site_count; i++) {
        sites_bytes += live.sites[i].bytes;
        objects += live.sites[i].objects;
    }
    assert_int_equal(sites_bytes, entries_bytes);
    assert_true(objects == 1.5 * (double)count);
    heap_live_release(&live);
}

static bool add_one(struct heap_live *live, uint32_t pid, uint64_t pointer, uint64_t weight)
{
    uint32_t site = heap_live_site(live, heap_live_process(live, pid), 1, 1);
    return heap_live_add(live, site,
                         &(struct heap_live_sample){.pointer = pointer, .weight = weight});
}

static void live_limits(void **state)
{
    (void)state;
    struct heap_live live;
    heap_live_init(&live, 100, 60);
    for (uint64_t i = 1; i <= 80; i++)
        assert_int_equal(add_one(&live, 1, i, 5), i <= 60);
    for (uint64_t i = 1; i <= 80; i++)
        assert_int_equal(add_one(&live, 2, i, 0), i <= 40);
    assert_int_equal(live.refused, 20 + 40);
    assert_int_equal(live.refused_bytes, 100);
    assert_int_equal(live.processes[heap_live_find_process(&live, 1)].refused, 20);
    assert_false(add_one(&live, 1, 0, 1));
    assert_false(add_one(&live, 1, 1ull << 48, 1));
    assert_false(heap_live_remove(&live, 1, 1 + (1ull << 48)));
    assert_int_equal(heap_live_process(&live, 0), HEAP_LIVE_NONE);
    heap_live_release(&live);
    /* Of a full table, and of one that has just grown. */
    heap_live_init(&live, HEAP_LIVE_MAX, HEAP_LIVE_MAX);
    for (uint64_t i = 1; i <= HEAP_LIVE_MAX; i++) {
        assert_true(add_one(&live, 1, i * 16, 1));
        if (i >= 8192)
            assert_true(heap_live_memory(&live) <= 64 * i);
    }
    assert_false(add_one(&live, 1, 16 + 16ull * HEAP_LIVE_MAX, 1));
    heap_live_release(&live);
}

/* Processes without entries make room for others; those with entries don't. */
static void live_processes(void **state)
{
    (void)state;
    struct heap_live live;
    heap_live_init(&live, HEAP_LIVE_MAX, HEAP_LIVE_PROCESS_MAX);
    for (uint32_t pid = 1; pid <= HEAP_LIVE_PROCESSES_MAX; pid++)
        assert_true(add_one(&live, pid, 16, pid));
    assert_int_equal(heap_live_process(&live, 1u << 20), HEAP_LIVE_NONE);
    for (uint32_t turn = 1; turn <= 20000; turn++) {
        assert_true(heap_live_remove(&live, turn, 16));
        assert_true(add_one(&live, turn + HEAP_LIVE_PROCESSES_MAX, 16, turn));
        assert_int_equal(heap_live_find_process(&live, turn), HEAP_LIVE_NONE);
    }
    assert_int_equal(live.used, HEAP_LIVE_PROCESSES_MAX);
    assert_true(live.process_index.used < 4 * HEAP_LIVE_PROCESSES_MAX);
    heap_live_release(&live);
}

/* Times keep their order and about their distance, over days. */
static void live_times(void **state)
{
    (void)state;
    struct heap_live live;
    heap_live_init(&live, HEAP_LIVE_MAX, HEAP_LIVE_PROCESS_MAX);
    uint32_t site = heap_live_site(&live, heap_live_process(&live, 1), 1, 1);
    const int64_t hour_ns = 3600000000000;
    for (uint64_t i = 1; i <= 100; i++)
        assert_true(heap_live_add(
            &live, site,
            &(struct heap_live_sample){.pointer = i, .time_ns = hour_ns * (int64_t)i}));
    const struct heap_live_entry *entry;
    for (size_t at = 0; (entry = heap_live_next(&live, &at));) {
        int64_t off_ns = heap_live_time_ns(&live, entry) - hour_ns * (int64_t)entry->pointer;
        assert_true(off_ns <= 0 && off_ns >= -hour_ns / 100);
    }
    heap_live_release(&live);
}

/* ---- stacks that stay ---- */

static uint32_t make_frame(struct profile *profile, uint64_t address)
{
    struct profile_mapping mapping = {.file = profile_cstring(profile, "/bin/program"),
                                      .build_id = profile_cstring(profile, "abcd"),
                                      .offset = 4096};
    struct profile_frame frame = {.address = address,
                                  .mapping = profile_mapping(profile, &mapping)};
    if (address % 2) {
        struct profile_function function = {.name = profile_cstring(profile, "function")};
        frame.function = profile_function(profile, &function);
    }
    return profile_frame(profile, &frame);
}

static void kept_stacks(void **state)
{
    (void)state;
    struct kept kept;
    struct profile first, second;
    kept_init(&kept);
    profile_init(&first, PROFILE_LABELS | PROFILE_ADDRESSES);
    profile_init(&second, PROFILE_LABELS | PROFILE_ADDRESSES);
    make_frame(&second, 77); /* so that ids differ */
    uint32_t frames[] = {make_frame(&first, 10), make_frame(&first, 11), make_frame(&first, 12)};
    struct profile_label label = {.key = profile_cstring(&first, "pid"), .number = 7};
    uint32_t labels = profile_label_set(&first, &label, 1);
    uint32_t stack = kept_stack_in(&kept, &first, frames, 3);
    uint32_t set = kept_labels_in(&kept, &first, labels);
    assert_int_equal(kept_stack_in(&kept, &first, frames, 3), stack);
    assert_int_equal(kept_stack_out(&kept, &first, stack), profile_stack(&first, frames, 3));
    uint32_t moved[] = {make_frame(&second, 10), make_frame(&second, 11), make_frame(&second, 12)};
    assert_int_equal(kept_stack_out(&kept, &second, stack), profile_stack(&second, moved, 3));
    assert_int_equal(kept_stack_in(&kept, &second, moved, 3), stack);
    size_t count;
    uint32_t out = kept_labels_out(&kept, &second, set);
    const struct profile_label *list = profile_labels(&second, out, &count);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].number, 7);
    assert_string_equal(profile_text(&second, list[0].key), "pid");
    assert_int_equal(kept_stack_in(&kept, &second, NULL, 0), 0);
    assert_int_equal(kept_stack_out(&kept, &second, 0), 0);
    profile_release(&first);
    profile_release(&second);
    kept_release(&kept);
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
        cmocka_unit_test(weights),        cmocka_unit_test(chances),
        cmocka_unit_test(gaps),           cmocka_unit_test(unbiased),
        cmocka_unit_test(library_table),  cmocka_unit_test(library_threads),
        cmocka_unit_test(live_model),     cmocka_unit_test(live_limits),
        cmocka_unit_test(live_processes), cmocka_unit_test(live_times),
        cmocka_unit_test(kept_stacks),    cmocka_unit_test(arguments),
        cmocka_unit_test(maps),           cmocka_unit_test(hostile_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
