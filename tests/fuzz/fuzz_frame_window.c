// SPDX-License-Identifier: Apache-2.0
// The fuzzer of call frame information in windows: whatever a section says, it gives the same rows
// as when all of it is in memory. The first byte says which section the rest is, as for fuzz_elf.

#include "base/memory.h"
#include "elf/unwind/rows.h"

#define SECTION_ADDRESS 0x10000
#define SMALLEST_SHIFT 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

struct source {
    const uint8_t *bytes;
    size_t length;
};

static ssize_t read_source(void *context, uint64_t offset, void *to, size_t length)
{
    const struct source *source = context;
    length = MIN(length, source->length - MIN(offset, source->length));
    if (length)
        memcpy(to, source->bytes + offset, length);
    return (ssize_t)length;
}

static void compile(struct frame_section section, struct unwind_rules *rules,
                    struct unwind_rows *ret_rows)
{
    struct unwind_code code = {0, 16 << 20};
    struct error error = {0};
    unwind_rules_init(rules);
    require(unwind_rows_compile_sections(&section, 1, &code, 1, rules, ret_rows, &error) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 2)
        return 0;
    struct frame_section section = {.bytes = data + 1,
                                    .length = length - 1,
                                    .address = SECTION_ADDRESS,
                                    .is_debug_frame = (data[0] & 3) == 3,
                                    .open_ended = data[0] & 4};
    struct source source = {data + 1, length - 1};
    struct elf_file file = {
        .read = read_source, .context = &source, .fd = -1, .size_bytes = length - 1};
    _cleanup_rules_ struct unwind_rules rules, window_rules;
    _cleanup_rows_ struct unwind_rows whole = {0}, by_window = {0};
    _cleanup_window_ struct frame_window window = {0};
    struct error error = {0};
    compile(section, &rules, &whole);
    require(frame_window_init(&window, &file, 0, length - 1, SMALLEST_SHIFT, 1 + data[0] / 64,
                              &error) == 0);
    section.bytes = window.bytes;
    section.window = &window;
    compile(section, &window_rules, &by_window);
    require(whole.row_count == by_window.row_count && rules.count == window_rules.count);
    require(whole.bad_entries == by_window.bad_entries && whole.outside == by_window.outside &&
            whole.bad_programs == by_window.bad_programs);
    require(!whole.row_count ||
            !memcmp(whole.rows, by_window.rows, whole.row_count * sizeof(*whole.rows)));
    return 0;
}
