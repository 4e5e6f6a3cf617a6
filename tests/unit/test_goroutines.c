// SPDX-License-Identifier: Apache-2.0
// Goroutines out of memory: three layouts, why they wait, stacks that go wrong, and memory of
// noise.

#include "runtime/go/goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define BASE 0x10000ull
#define BYTES 65536

struct image {
    uint8_t bytes[BYTES];
};

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    const struct image *image = context;
    if (address < BASE || address - BASE > BYTES || length > BYTES - (address - BASE))
        return false;
    memcpy(buffer, image->bytes + (address - BASE), length);
    return true;
}

static void put(struct image *image, uint64_t address, uint64_t word)
{
    memcpy(image->bytes + (address - BASE), &word, sizeof(word));
}

static void put_text(struct image *image, uint64_t at, uint64_t where, const char *text)
{
    put(image, at, where);
    put(image, at + 8, strlen(text));
    memcpy(image->bytes + (where - BASE), text, strlen(text));
}

#define ALL_GS (BASE + 0x100)
#define VERSION (BASE + 0x200)
#define REASONS (BASE + 0x300)
#define LIST (BASE + 0x400)
#define G (BASE + 0x1000)
#define STACK (BASE + 0x4000)

static const struct go_binary binary = {.goroutines = ALL_GS - 0x100,
                                        .version = VERSION - 0x100,
                                        .reasons = REASONS - 0x100,
                                        .reason_count = 2};

struct offsets {
    const char *version;
    unsigned sp, pc, bp, status, id, reason;
};
static const struct offsets versions[] = {
    {"go1.19.8", 56, 64, 104, 144, 152, 176},
    {"go1.23.1 X:nocoverageredesign", 56, 64, 104, 152, 160, 184},
    {"go1.26.8", 56, 64, 96, 144, 152, 176},
};

/* One goroutine that waits for a channel, three frames deep. */
static void make(struct image *image, const struct offsets *at)
{
    memset(image, 0, sizeof(*image));
    put(image, ALL_GS, LIST);
    put(image, ALL_GS + 8, 1);
    put_text(image, VERSION, BASE + 0x600, at->version);
    put_text(image, REASONS, BASE + 0x700, "");
    put_text(image, REASONS + 16, BASE + 0x700, "chan receive");
    put(image, LIST, G);
    put(image, G, STACK);
    put(image, G + 8, STACK + 0x1000);
    put(image, G + at->sp, STACK + 0x800);
    put(image, G + at->pc, 0x401000);
    put(image, G + at->bp, STACK + 0x810);
    put(image, G + at->status, GO_WAITING);
    put(image, G + at->id, 7);
    image->bytes[G + at->reason - BASE] = 1;
    put(image, STACK + 0x810, STACK + 0x850);
    put(image, STACK + 0x818, 0x402000);
    put(image, STACK + 0x850, 0);
    put(image, STACK + 0x858, 0x403000);
}

static bool attach(struct image *image, struct go_process *process, struct runtime_memory *memory)
{
    const char *reason = NULL;
    *memory = (struct runtime_memory){.read = read_image, .context = image};
    bool attached = go_attach(&binary, 0x100, memory, process, &reason);
    assert_true(attached || reason);
    return attached;
}

static void test_layouts(void **state)
{
    (void)state;
    struct image *image = malloc(sizeof(*image));
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct go_process process;
        struct runtime_memory memory;
        struct goroutine goroutine;
        uint64_t list;
        make(image, &versions[i]);
        assert_true(attach(image, &process, &memory));
        assert_int_equal(go_list(&process, &memory, &list), 1);
        assert_true(go_read(&process, &memory, list, 0, &goroutine));
        assert_int_equal(goroutine.id, 7);
        assert_int_equal(goroutine.status, GO_WAITING);
        assert_string_equal(goroutine.reason, "chan receive");
        assert_string_equal(go_state(&goroutine), "channel");
        assert_int_equal(goroutine.count, 3);
        assert_int_equal(goroutine.addresses[0], 0x401000);
        assert_int_equal(goroutine.addresses[2], 0x403000);
        assert_false(goroutine.cut);
        put(image, G + versions[i].status, GO_RUNNING | 0x1000);
        assert_true(go_read(&process, &memory, list, 0, &goroutine));
        assert_string_equal(go_state(&goroutine), "running");
        assert_int_equal(goroutine.count, 0);
        put(image, G + versions[i].status, 6); /* it has ended */
        assert_false(go_read(&process, &memory, list, 0, &goroutine));
        assert_false(go_read(&process, &memory, list, 1, &goroutine));
    }
    free(image);
}

static void test_refused(void **state)
{
    (void)state;
    struct image *image = malloc(sizeof(*image));
    struct go_process process;
    struct runtime_memory memory;
    uint64_t list;
    for (size_t i = 0; i < 4; i++) {
        const char *const wrong[] = {"go1.16.1", "go1.27", "devel +abc", ""};
        struct offsets other = versions[2];
        other.version = wrong[i];
        make(image, &other);
        assert_false(attach(image, &process, &memory));
    }
    make(image, &versions[2]);
    assert_true(attach(image, &process, &memory));
    put(image, ALL_GS + 8, UINT64_MAX);
    assert_int_equal(go_list(&process, &memory, &list), 0);
    put(image, VERSION, 1);
    assert_false(attach(image, &process, &memory));
    free(image);
}

/* Frames only lead outwards, within the stack, and not forever. */
static void test_stacks(void **state)
{
    (void)state;
    struct image *image = malloc(sizeof(*image));
    struct go_process process;
    struct runtime_memory memory;
    struct goroutine goroutine;
    const struct offsets *at = &versions[2];
    make(image, at);
    assert_true(attach(image, &process, &memory));
    put(image, STACK + 0x850, STACK + 0x810); /* back to where it came from */
    assert_true(go_read(&process, &memory, LIST, 0, &goroutine));
    assert_int_equal(goroutine.count, 3);
    put(image, G + at->bp, STACK + 0xff8); /* half of it is outside */
    assert_true(go_read(&process, &memory, LIST, 0, &goroutine));
    assert_int_equal(goroutine.count, 1);
    put(image, G + at->sp, STACK + 0x2000);
    assert_true(go_read(&process, &memory, LIST, 0, &goroutine));
    assert_int_equal(goroutine.count, 0);
    make(image, at); /* more frames than are read */
    put(image, G + at->sp, STACK);
    put(image, G + at->bp, STACK);
    for (uint64_t frame = STACK; frame < STACK + 0x1000; frame += 16) {
        put(image, frame, frame + 16);
        put(image, frame + 8, 0x401000);
    }
    assert_true(go_read(&process, &memory, LIST, 0, &goroutine));
    assert_int_equal(goroutine.count, GO_FRAMES_MAX);
    assert_true(goroutine.cut);
    free(image);
}

static void test_noise(void **state)
{
    (void)state;
    struct image *image = malloc(sizeof(*image));
    struct go_process process;
    struct runtime_memory memory;
    struct goroutine goroutine;
    uint32_t random = 1;
    for (unsigned round = 0; round < 20000; round++) {
        make(image, &versions[round % 3]);
        for (unsigned i = 0; i < 8; i++) {
            random = random * 1664525 + 1013904223;
            uint64_t at = (random >> 8) % 0x1100;
            if (i & 1)
                at = 0x1000 + (at & 0xff);
            random = random * 1664525 + 1013904223;
            image->bytes[at] = (uint8_t)(random >> 24);
        }
        uint64_t list = 0;
        if (!attach(image, &process, &memory) || !go_list(&process, &memory, &list))
            continue;
        if (go_read(&process, &memory, list, 0, &goroutine)) {
            assert_true(goroutine.count <= GO_FRAMES_MAX);
            assert_non_null(go_state(&goroutine));
            assert_true(memchr(goroutine.reason, '\0', GO_REASON_BYTES) != NULL);
        }
    }
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
