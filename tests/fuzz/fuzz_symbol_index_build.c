// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what makes symbol indexes: the input is an ELF file, and where the first byte is
// odd, it is also the program's debug file, its shared debug file and its package of split units,
// or, with the second bit, the one file that it was split into, which is packed.
// The bits above say which few addresses are wanted, or all. Whatever is made must pass the check.

#include "symbol/index/build.h"
#include "symbol/index/split_package.h"
#include "symbol/index/splits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The file as what the first split unit of a list is in; false when there is none. */
static bool pack(const struct symbol_index_bytes *file, const struct buffer *list,
                 struct buffer *package)
{
    struct {
        uint64_t count;
        struct index_split split;
    } head = {1, {.offset = sizeof(head), .length = file->length}};
    size_t units;
    if (list->length < sizeof(head.split.id))
        return false;
    memcpy(&head.split.id, list->data, sizeof(head.split.id));
    _cleanup_buffer_ struct buffer splits = {0};
    buffer_add(&splits, &head, sizeof(head));
    buffer_add(&splits, file->bytes, file->length);
    require(split_package_write(splits.data, splits.length, package, &units, NULL) == 0);
    require(units <= 1 && package->length > 0);
    return true;
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
    _cleanup_buffer_ struct buffer made = {0}, list = {0}, package = {0};
    struct error error = {0};
    struct symbol_index index;
    symbol_index_list_splits(&content, &list, NULL);
    if (all && (data[0] & 2) && pack(&file, &list, &package))
        content.package = (struct symbol_index_bytes){package.data, package.length};
    int r = symbol_index_make(&content, &made, &error);
    if (r < 0) {
        require(error.code == r && error.text[0]);
        return 0;
    }
    require(symbol_index_open_memory(made.data, made.length, &index, &error) == 0);
    require(symbol_index_check(&index, &error) == 0);
    return 0;
}
