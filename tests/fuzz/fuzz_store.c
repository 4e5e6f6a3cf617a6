// SPDX-License-Identifier: Apache-2.0
// The fuzzer of the store's blobs: column blocks, chunks of tables and label sets. The first byte
// says which; a checksum is put behind the rest, since one that is wrong ends everything early.
// What a block gives must add up to what its rows do.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "store/block/block.h"
#include "store/file/catalog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_block(const void *data, size_t length)
{
    struct block_codec *codec = block_codec_new();
    struct block_rows rows = {0};
    struct block_view view;
    if (!block_open(codec, data, length, &view) &&
        !block_decode(&view, 0, view.window_count, &rows)) {
        uint64_t *sums = memory_zalloc(view.dictionary_count + 1, sizeof(*sums));
        uint64_t sum = 0;
        /* Decoding stops at the last row, adding up also looks whether there is something left. */
        if (!block_sum(&view, 0, view.window_count, sums) && view.unit == 1) {
            for (size_t i = 0; i < view.dictionary_count; i++)
                sum += sums[i];
            for (size_t i = 0; i < rows.row_count; i++)
                sum -= (uint64_t)rows.values[i];
            require(!sum);
        }
        require(rows.window_count == view.window_count && rows.row_count == view.row_count);
        free(sums);
    }
    block_rows_release(&rows);
    block_codec_free(codec);
}

/* The table's entries after some that the rest can refer to. */
static void read_chunk(enum catalog_table table, const void *data, size_t length)
{
    struct catalog catalog;
    catalog_init(&catalog);
    catalog_service(&catalog, "x");
    for (unsigned i = 0; i < 4; i++) {
        uint32_t name = profile_string(&catalog.tables, "abcd", i + 1);
        uint32_t function =
            profile_function(&catalog.tables, &(struct profile_function){.name = name});
        profile_frame(&catalog.tables, &(struct profile_frame){.function = function});
    }
    catalog_unpack(&catalog, table, 0, catalog_count(&catalog, table, 0), data, length);
    const struct tree *tree = &catalog.services[0].tree;
    for (uint32_t i = 1; i < tree->count; i++)
        require(tree->nodes[i].parent < i && tree->nodes[i].frame < catalog.tables.frame_count);
    catalog_release(&catalog);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (!length)
        return 0;
    uint64_t checksum = XXH3_64bits(data + 1, length - 1);
    uint8_t *input = memory_alloc(length - 1 + sizeof(checksum));
    memcpy(input, data + 1, length - 1);
    memcpy(input + length - 1, &checksum, sizeof(checksum));
    unsigned kind = data[0] % (TABLE_NODES + 3);
    if (kind <= TABLE_NODES) {
        read_chunk(kind, input, length - 1 + sizeof(checksum));
    } else if (kind == TABLE_NODES + 1) {
        read_block(input, length - 1 + sizeof(checksum));
    } else {
        struct labels labels = {0};
        catalog_unpack_labels(data + 1, length - 1, &labels);
        labels_release(&labels);
    }
    free(input);
    return 0;
}
