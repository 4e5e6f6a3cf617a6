// SPDX-License-Identifier: Apache-2.0
// Puts a symbol index together: docs/formats/symbol-index.md.

#include <xxhash.h>

#include "symbol/index/builder.h"
#include "symbol/index/decode.h"

static void add_part(struct buffer *out, struct symbol_index_header *header,
                     enum symbol_index_part part, const void *bytes, size_t length)
{
    static const char padding[8];
    header->parts[part].offset = out->length;
    header->parts[part].length = length;
    buffer_add(out, bytes, length);
    buffer_add(out, padding, -out->length % 8);
}

static void add_segments(struct buffer *out, struct symbol_index_header *header,
                         const struct elf_file *file)
{
    _cleanup_buffer_ struct buffer list = {0};
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        /* A debug file has the segments of its binary, but not their places in it. */
        if (segment->type != PT_LOAD || !segment->file_bytes)
            continue;
        struct symbol_index_segment added = {.offset = segment->offset,
                                             .address = segment->address,
                                             .bytes = segment->file_bytes,
                                             .is_code = (segment->flags & PF_X) != 0};
        buffer_add(&list, &added, sizeof(added));
    }
    add_part(out, header, SYMBOL_INDEX_SEGMENTS, list.data, list.length);
}

static void set_identity(struct symbol_index_header *header, struct elf_file *file)
{
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length;
    _cleanup_buffer_ struct buffer text = {0};
    if (elf_build_id(file, id, &length)) {
        header->id_kind = SYMBOL_INDEX_ID_GNU;
        header->id_bytes = (uint16_t)length;
        memcpy(header->id, id, length);
    } else if (elf_go_build_id(file, &text) && text.length && text.length <= sizeof(header->id)) {
        header->id_kind = SYMBOL_INDEX_ID_GO;
        header->id_bytes = (uint16_t)text.length;
        memcpy(header->id, text.data, text.length);
    }
}

static uint64_t code_bytes(const struct symbol_table *symbols)
{
    uint64_t bytes = 0, last = 0;
    for (size_t i = 0; i < symbols->code_count; i++) {
        uint64_t start = MAX(symbols->code[i].start, last);
        if (symbols->code[i].end > start)
            bytes += symbols->code[i].end - start;
        last = MAX(last, symbols->code[i].end);
    }
    return bytes;
}

void index_write(const struct index_builder *builder, const struct index_groups *groups,
                 struct elf_file *file, struct buffer *ret_index)
{
    const struct index_tables *tables = &builder->tables;
    struct symbol_index_header header = {
        .magic = SYMBOL_INDEX_MAGIC_BYTES,
        .version = SYMBOL_INDEX_VERSION,
        .header_bytes = sizeof(header),
        .sources = builder->sources,
        .base = tables->base,
        .code_bytes = code_bytes(builder->symbols),
        .named_bytes = groups->named_bytes,
        .line_bytes = groups->line_bytes,
        .debug_bytes = builder->main.sections.total_bytes + builder->package.total_bytes,
        .unit_count = builder->unit_count,
        .missing_units = builder->missing_units,
        .node_count = tables->node_count,
        .inlined_count = tables->inlined_count,
        .row_count = groups->row_count,
    };
    set_identity(&header, file);
    ret_index->length = 0;
    buffer_add(ret_index, &header, sizeof(header));
    add_segments(ret_index, &header, file);
    add_part(ret_index, &header, SYMBOL_INDEX_GROUPS, groups->list,
             groups->count * sizeof(*groups->list));
    add_part(ret_index, &header, SYMBOL_INDEX_ROWS, groups->bytes.data, groups->bytes.length);
    add_part(ret_index, &header, SYMBOL_INDEX_NODE_GROUPS, tables->node_groups,
             tables->node_group_count * sizeof(*tables->node_groups));
    add_part(ret_index, &header, SYMBOL_INDEX_NODES, tables->nodes.data, tables->nodes.length);
    add_part(ret_index, &header, SYMBOL_INDEX_FUNCTIONS, tables->functions,
             tables->function_count * sizeof(*tables->functions));
    add_part(ret_index, &header, SYMBOL_INDEX_FILES, tables->files,
             tables->file_count * sizeof(*tables->files));
    add_part(ret_index, &header, SYMBOL_INDEX_STRINGS, tables->strings.data,
             tables->strings.length);
    header.file_bytes = ret_index->length;
    header.content_checksum =
        XXH3_64bits(ret_index->data + sizeof(header), ret_index->length - sizeof(header));
    header.header_checksum = symbol_index_header_checksum(&header);
    memcpy(ret_index->data, &header, sizeof(header));
}
