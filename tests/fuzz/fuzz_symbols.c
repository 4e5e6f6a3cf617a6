// SPDX-License-Identifier: Apache-2.0
// The fuzzer of a binary's symbols and linkage stubs. With a first byte that is odd, the rest is
// what a binary has packed into .gnu_debugdata.

#include "base/memory.h"
#include "symbol/minidebug.h"
#include "symbol/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_address(struct symbol_table *table, uint64_t address)
{
    struct symbol symbol;
    if (!symbol_table_find(table, address, &symbol))
        return;
    require(symbol.start <= address && symbol.distance == address - symbol.start &&
            symbol.distance < symbol.size_bytes);
    require(!symbol.name || symbol.name[0]);
}

static void check_table(struct symbol_table *table)
{
    for (size_t i = 0; i < table->function_count && i < 200; i++) {
        check_address(table, table->functions[i].start);
        check_address(table, table->functions[i].end);
    }
    for (size_t i = 0; i < table->stubs.count && i < 200; i++) {
        require(!i || table->stubs.list[i - 1].start <= table->stubs.list[i].start);
        check_address(table, table->stubs.list[i].start);
    }
    for (size_t i = 0; i < table->entry_count && i < 200; i++)
        check_address(table, table->entries[i].start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (!length)
        return 0;
    _cleanup_buffer_ struct buffer unpacked = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    bool packed = data[0] & 1;
    data++;
    length--;
    if (packed) {
        struct error error = {0};
        int r = minidebug_unpack(data, length, &unpacked, &error);
        require(r == 0 || (error.code == r && error.text[0] && !unpacked.length));
        data = (const uint8_t *)unpacked.data;
        length = unpacked.length;
    }
    if (elf_open_memory(data, length, ELF_LAYOUT_FILE, &file, NULL) < 0)
        return 0;
    struct symbol_table *table = symbol_table_new(&file, NULL);
    check_table(table);
    symbol_table_free(table);
    return 0;
}
