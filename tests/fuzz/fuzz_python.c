// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what is read of a Python process. The first byte chooses the version; the rest is
// the process's memory from address 0 on, with the interpreter's structures wherever it says.
// Whatever it is, reads are limited in number and length.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/python/code.h"
#include "runtime/python/walk.h"

#define READS_MAX 400000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

struct image {
    const uint8_t *bytes;
    size_t length;
    size_t reads;
};

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    struct image *image = context;
    require(++image->reads < READS_MAX && length <= 1u << 20);
    if (address > image->length || length > image->length - address)
        return false;
    memcpy(buffer, image->bytes + address, length);
    return true;
}

static void read_codes(const struct python_process *python, const struct runtime_memory *memory,
                       const struct python_chain *chain)
{
    struct runtime_codes codes = {0};
    for (size_t i = 0; i < MIN(chain->count, (size_t)64); i++) {
        const struct python_frame *frame = &chain->frames[i];
        const struct runtime_known met = {
            .identity = runtime_code_identity(1, &frame->mark), .pid = 1, .mark = frame->mark};
        runtime_codes_take(&codes, python_code_read, python, memory, &met);
        const struct runtime_known *known = runtime_codes_find(&codes, met.identity);
        require(known);
        if (!known->named)
            continue;
        require(strlen(known->code.file) <= 4 * PYTHON_FILE_MAX);
        require(strlen(known->code.function) <= 4 * (PYTHON_FILE_MAX + PYTHON_NAME_MAX) + 1);
        require(known->code.line_count <= PYTHON_LINES_MAX);
        runtime_code_line(&known->code, frame->unit);
        runtime_code_line(&known->code, UINT32_MAX);
    }
    runtime_codes_release(&codes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 16)
        return 0;
    struct python_binary binary = {
        .major = 3, .minor = (uint8_t)(8 + data[0] % 7), .runtime = 8, .code_type = 0x40};
    struct image image = {.bytes = data, .length = length};
    struct runtime_memory memory = {.read = read_image, .context = &image};
    struct python_process python;
    const char *reason;
    if (python_attach(&binary, 0, &memory, &python, &reason) != PYTHON_ATTACHED &&
        !python_offsets_get(&binary, &memory, binary.runtime, &python.offsets, &reason))
        return 0;
    python.offsets.walk.code_type = binary.code_type;
    struct python_chain chain;
    python_chain_read(&python, &memory, data[1], &chain);
    require(chain.count <= PYTHON_CHAIN_MAX);
    read_codes(&python, &memory, &chain);
    const struct python_frame *frames;
    size_t taken = 0, count;
    while ((count = python_chain_take(&chain, 0, UINT64_MAX, &frames)))
        taken += count;
    require(taken <= chain.count);
    free(chain.frames);
    return 0;
}
