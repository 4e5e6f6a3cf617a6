// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what makes symbol indexes: the input is an ELF file, and where the first byte is
// odd, it is also the program's debug file, its shared debug file and its package of split units.
// The bits above say which few addresses are wanted, or all. Whatever is made must pass the check.

#include "symbol/index_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (!length)
        return 0;
    bool all = data[0] & 1;
    uint64_t wanted[8];
    for (uint64_t i = 0; i < 8; i++)
        wanted[i] = ((data[0] >> 2) + i) << (data[0] >> 5);
    struct symbol_index_bytes file = {data + 1, length - 1};
    struct symbol_index_content content = {.file = file};
    if (data[0] & 2) {
        content.wanted = wanted;
        content.wanted_count = 8;
    }
    if (all)
        content.debug = content.shared = content.package = file;
    _cleanup_buffer_ struct buffer made = {0}, list = {0};
    struct error error = {0};
    struct symbol_index index;
    symbol_index_list_splits(&content, &list, NULL);
    int r = symbol_index_make(&content, &made, &error);
    if (r < 0) {
        require(error.code == r && error.text[0]);
        return 0;
    }
    require(symbol_index_open_memory(made.data, made.length, &index, &error) == 0);
    require(symbol_index_check(&index, &error) == 0);
    return 0;
}
