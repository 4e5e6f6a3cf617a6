// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what just-in-time compilers write: maps, or with FUZZ_JITDUMP dumps. The file comes
// in pieces, as it does from a process that runs. What is found must be what a search of the whole
// list finds, and the pieces must make no difference.

#include <string.h>

#include "base/memory.h"
#include "symbol/jit/jitdump.h"
#include "symbol/jit/name.h"
#include "symbol/jit/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_address(struct jit_codes *codes, uint64_t address)
{
    const struct jit_code *found = jit_codes_find(codes, address, 0), *expected = NULL;
    for (size_t i = 0; i < codes->count; i++)
        if (codes->list[i].start <= address && address < codes->list[i].end)
            expected = &codes->list[i];
    require(found == expected);
    if (!found)
        return;
    struct arena arena = {0};
    struct jit_name name = jit_name_read(codes->texts[found->name], &arena);
    require(name.name && name.name[0]);
    arena_release(&arena);
    const struct jit_line *line = jit_codes_line(codes, found, address);
    require(!line || line->file < codes->text_count);
    const struct jit_code *then = jit_codes_find(codes, address, found->time_ns);
    require(then && then->start <= address && address < then->end);
}

static void check_codes(struct jit_codes *codes)
{
    jit_codes_find(codes, 0, 0); /* drops what is hidden */
    for (size_t i = 0; i < codes->count && i < 64; i++) {
        struct jit_code code = codes->list[i];
        check_address(codes, code.start);
        check_address(codes, code.end - 1);
        check_address(codes, code.end);
    }
}

#ifdef FUZZ_JITDUMP

struct bytes {
    const uint8_t *data;
    size_t length;
};

static ssize_t read_bytes(void *context, uint64_t offset, void *buffer, size_t length)
{
    const struct bytes *bytes = context;
    if (offset >= bytes->length)
        return 0;
    length = MIN(length, bytes->length - offset);
    memcpy(buffer, bytes->data + offset, length);
    return (ssize_t)length;
}

static void read_in(struct jit_codes *codes, const uint8_t *data, size_t length, size_t piece)
{
    struct bytes bytes = {data, 0};
    struct jit_dump dump = {.read = read_bytes, .context = &bytes};
    jit_codes_init(codes, true);
    while (bytes.length < length) {
        bytes.length += MIN(piece, length - bytes.length);
        jit_dump_read(&dump, codes);
    }
    jit_dump_release(&dump);
}

#else

static void read_in(struct jit_codes *codes, const uint8_t *data, size_t length, size_t piece)
{
    struct perf_map map = {0};
    size_t done = 0;
    jit_codes_init(codes, false);
    for (size_t end = 0; end < length;) {
        end += MIN(piece, length - end);
        done += perf_map_parse(&map, (const char *)data + done, end - done, end == length, codes);
    }
    require(done == length);
}

#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 2)
        return 0;
    size_t piece = 1 + data[0] * (size_t)64;
    struct jit_codes pieces, whole;
    read_in(&whole, data + 1, length - 1, length);
    read_in(&pieces, data + 1, length - 1, MAX(piece, length / 64));
    require(pieces.count == whole.count && pieces.line_count == whole.line_count);
    for (size_t i = 0; i < whole.count; i++)
        require(pieces.list[i].start == whole.list[i].start &&
                pieces.list[i].end == whole.list[i].end &&
                !strcmp(pieces.texts[pieces.list[i].name], whole.texts[whole.list[i].name]));
    check_codes(&whole);
    jit_codes_release(&pieces);
    jit_codes_release(&whole);
    return 0;
}
