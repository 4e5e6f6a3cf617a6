// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what reads a symbol index. Lengths and checksums are made to fit, or nothing would
// get past them; answers must be within the index.

#include <stddef.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "symbol/index/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void ask(const struct symbol_index *index, uint64_t address)
{
    struct symbol_frame frames[16];
    size_t count = symbol_index_look_up(index, address, frames, ARRAY_LENGTH(frames), NULL);
    require(count <= ARRAY_LENGTH(frames));
    for (size_t i = 0; i < count; i++) {
        require(!frames[i].name || strlen(frames[i].name) < index->length);
        require(!frames[i].file || strlen(frames[i].file) < index->length);
        require(frames[i].name || count == 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    _cleanup_buffer_ struct buffer copy = {0};
    struct symbol_index index;
    struct error error = {0};
    struct symbol_index_header *header;
    if (length < sizeof(*header))
        return 0;
    buffer_add(&copy, data, length);
    header = (struct symbol_index_header *)(void *)copy.data;
    memcpy(header->magic, SYMBOL_INDEX_MAGIC, sizeof(header->magic));
    header->version = SYMBOL_INDEX_VERSION;
    header->header_bytes = sizeof(*header);
    header->file_bytes = length;
    header->content_checksum = XXH3_64bits(copy.data + sizeof(*header), length - sizeof(*header));
    header->header_checksum = symbol_index_header_checksum(header);
    int r = symbol_index_open_memory(copy.data, copy.length, &index, &error);
    if (r < 0) {
        require(error.code == r && error.text[0]);
        return 0;
    }
    bool fine = symbol_index_check(&index, &error) == 0;
    const struct symbol_index_group *groups =
        (const struct symbol_index_group *)(const void *)index.parts[SYMBOL_INDEX_GROUPS];
    for (uint32_t i = 0; i < index.group_count && i < 64; i++) {
        ask(&index, header->base + groups[i].address);
        ask(&index, header->base + groups[i].address + 17);
    }
    for (uint32_t i = 0; fine && i < header->node_count && i < 64; i++) {
        struct symbol_index_nodes nodes = {0};
        const struct symbol_index_node *node = symbol_index_node_find(&index, i + 1, &nodes);
        require(node && node->parent <= i);
    }
    return 0;
}
