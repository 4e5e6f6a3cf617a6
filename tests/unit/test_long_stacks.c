// SPDX-License-Identifier: Apache-2.0
// Stacks that come in parts.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "capture/bpf/long_stacks.h"

struct sent {
    struct bpf_copy_event event;
    uint8_t stack[64];
};

/* An event of thread 7 at time 100 on CPU 1, with bytes that say where they are from. */
static struct sent sent(uint64_t address, uint32_t bytes)
{
    struct sent sent = {.event = {.sample = {.cpu = 1, .tid = 7, .time_ns = 100},
                                  .stack_address = address,
                                  .stack_bytes = bytes}};
    for (uint32_t i = 0; i < bytes; i++)
        sent.stack[i] = (uint8_t)(address + i);
    return sent;
}

static void expect(struct long_stacks *stacks, const struct sent *copy, uint64_t address,
                   size_t bytes)
{
    uint64_t found = 0;
    size_t count = 0;
    const uint8_t *data = long_stacks_join(stacks, &copy->event, &found, &count);
    assert_int_equal(found, address);
    assert_int_equal(count, bytes);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(data[i], (uint8_t)(address + i));
}

static void test_parts_are_joined(void **state)
{
    (void)state;
    struct long_stacks stacks = {0};
    struct sent first = sent(1000, 40), second = sent(1040, 64), last = sent(1104, 10);
    long_stacks_take(&stacks, &first.event);
    long_stacks_take(&stacks, &second.event);
    expect(&stacks, &last, 1000, 114);
    /* It has been used. */
    expect(&stacks, &last, 1104, 10);
    long_stacks_release(&stacks);
}

static void test_others_are_not_mixed_in(void **state)
{
    (void)state;
    struct long_stacks stacks = {0};
    struct sent part = sent(1000, 40), copy = sent(1040, 8), other = copy;
    long_stacks_take(&stacks, &part.event);
    other.event.sample.cpu = 2;
    expect(&stacks, &other, 1040, 8);
    other = copy;
    other.event.sample.collector = BPF_COLLECTOR_WALL;
    expect(&stacks, &other, 1040, 8);
    other = copy;
    other.event.sample.tid = 8;
    expect(&stacks, &other, 1040, 8);
    other = copy;
    other.event.sample.time_ns = 101;
    expect(&stacks, &other, 1040, 8);
    other = sent(1048, 8); /* something is missing in between */
    expect(&stacks, &other, 1048, 8);
    expect(&stacks, &copy, 1000, 48);
    long_stacks_release(&stacks);
}

static void test_there_is_a_limit(void **state)
{
    (void)state;
    struct long_stacks stacks = {0};
    size_t bytes = sizeof(struct bpf_copy_event) + BPF_COPY_BYTES;
    struct bpf_copy_event *part = memory_zalloc(1, bytes);
    part->sample.tid = 7;
    part->stack_bytes = BPF_COPY_BYTES;
    for (int i = 0; i < 3 * BPF_COPY_PARTS_MAX; i++) {
        part->stack_address = (uint64_t)i * BPF_COPY_BYTES;
        long_stacks_take(&stacks, part);
        assert_true(stacks.list[0].bytes <= (size_t)BPF_COPY_PARTS_MAX * BPF_COPY_BYTES);
    }
    free(part);
    long_stacks_release(&stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_joined),
        cmocka_unit_test(test_others_are_not_mixed_in),
        cmocka_unit_test(test_there_is_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
