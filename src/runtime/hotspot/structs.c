// SPDX-License-Identifier: Apache-2.0
// HotSpot's tables about itself: see structs.h. They have some thousand entries of pointers to
// strings, so strings are compared in pages that are read once.

#include "runtime/hotspot/structs.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ENTRIES_MAX 16384
#define STRIDE_MAX 256
#define TEXT_BYTES 64
#define PAGE_BYTES 4096
#define PAGES 64

/* Fields without one are sizes of types. */
static const struct {
    const char *type, *field;
} wanted[HOTSPOT_FIELDS] = {
    [HOTSPOT_CACHE_HEAPS] = {"CodeCache", "_heaps"},
    [HOTSPOT_CACHE_HEAP] = {"CodeCache", "_heap"},
    [HOTSPOT_INTERPRETER_CODE] = {"AbstractInterpreter", "_code"},
    [HOTSPOT_CALL_STUB] = {"StubRoutines", "_call_stub_return_address"},
    [HOTSPOT_RELEASE] = {"Abstract_VM_Version", "_s_vm_release"},
    [HOTSPOT_MAJOR_VERSION] = {"Abstract_VM_Version", "_vm_major_version"},
    [HOTSPOT_ARRAY_LENGTH] = {"GrowableArrayBase", "_len"},
    [HOTSPOT_ARRAY_DATA] = {"GrowableArray<int>", "_data"},
    [HOTSPOT_HEAP_MEMORY] = {"CodeHeap", "_memory"},
    [HOTSPOT_HEAP_SEGMENTS] = {"CodeHeap", "_segmap"},
    [HOTSPOT_HEAP_SHIFT] = {"CodeHeap", "_log2_segment_size"},
    [HOTSPOT_SPACE_LOW] = {"VirtualSpace", "_low_boundary"},
    [HOTSPOT_SPACE_LIMIT] = {"VirtualSpace", "_high_boundary"},
    [HOTSPOT_STUBS_BUFFER] = {"StubQueue", "_stub_buffer"},
    [HOTSPOT_STUBS_BYTES] = {"StubQueue", "_buffer_limit"},
    [HOTSPOT_BLOB_NAME] = {"CodeBlob", "_name"},
    [HOTSPOT_BLOB_SIZE] = {"CodeBlob", "_size"},
    [HOTSPOT_BLOB_FRAME_SIZE] = {"CodeBlob", "_frame_size"},
    [HOTSPOT_BLOB_FRAME_COMPLETE] = {"CodeBlob", "_frame_complete_offset"},
    [HOTSPOT_BLOB_CODE_BEGIN] = {"CodeBlob", "_code_begin"},
    [HOTSPOT_BLOB_CODE_OFFSET] = {"CodeBlob", "_code_offset"},
    [HOTSPOT_BLOB_DATA_OFFSET] = {"CodeBlob", "_data_offset"},
    [HOTSPOT_BLOB_MUTABLE] = {"CodeBlob", "_mutable_data"},
    [HOTSPOT_BLOB_MUTABLE_SIZE] = {"CodeBlob", "_mutable_data_size"},
    [HOTSPOT_BLOB_RELOCATION_SIZE] = {"CodeBlob", "_relocation_size"},
    [HOTSPOT_NMETHOD_METHOD] = {"nmethod", "_method"},
    [HOTSPOT_COMPILED_METHOD] = {"CompiledMethod", "_method"},
    [HOTSPOT_NMETHOD_COMPILE_ID] = {"nmethod", "_compile_id"},
    [HOTSPOT_NMETHOD_ORIGINAL_PC] = {"nmethod", "_orig_pc_offset"},
    [HOTSPOT_COMPILED_DEOPT] = {"CompiledMethod", "_deopt_handler_begin"},
    [HOTSPOT_NMETHOD_DEOPT] = {"nmethod", "_deopt_handler_offset"},
    [HOTSPOT_NMETHOD_DEOPTIMIZE] = {"nmethod", "_deoptimize_offset"},
    [HOTSPOT_COMPILED_SCOPES] = {"CompiledMethod", "_scopes_data_begin"},
    [HOTSPOT_NMETHOD_SCOPES] = {"nmethod", "_scopes_data_offset"},
    [HOTSPOT_NMETHOD_PCS] = {"nmethod", "_scopes_pcs_offset"},
    [HOTSPOT_NMETHOD_DEPENDENCIES] = {"nmethod", "_dependencies_offset"},
    [HOTSPOT_NMETHOD_METADATA] = {"nmethod", "_metadata_offset"},
    [HOTSPOT_NMETHOD_IMMUTABLE] = {"nmethod", "_immutable_data"},
    [HOTSPOT_NMETHOD_IMMUTABLE_SIZE] = {"nmethod", "_immutable_data_size"},
    [HOTSPOT_METHOD_CONST] = {"Method", "_constMethod"},
    [HOTSPOT_CONST_CONSTANTS] = {"ConstMethod", "_constants"},
    [HOTSPOT_CONST_SIZE] = {"ConstMethod", "_constMethod_size"},
    [HOTSPOT_CONST_FLAGS] = {"ConstMethod", "_flags"},
    [HOTSPOT_CONST_NEW_FLAGS] = {"ConstMethod", "_flags._flags"},
    [HOTSPOT_CONST_CODE_SIZE] = {"ConstMethod", "_code_size"},
    [HOTSPOT_CONST_NAME] = {"ConstMethod", "_name_index"},
    [HOTSPOT_POOL_TAGS] = {"ConstantPool", "_tags"},
    [HOTSPOT_POOL_HOLDER] = {"ConstantPool", "_pool_holder"},
    [HOTSPOT_POOL_LENGTH] = {"ConstantPool", "_length"},
    [HOTSPOT_POOL_SOURCE] = {"ConstantPool", "_source_file_name_index"},
    [HOTSPOT_CLASS_SOURCE] = {"InstanceKlass", "_source_file_name_index"},
    [HOTSPOT_CLASS_NAME] = {"Klass", "_name"},
    [HOTSPOT_SYMBOL_LENGTH] = {"Symbol", "_length"},
    [HOTSPOT_SYMBOL_BODY] = {"Symbol", "_body"},
    [HOTSPOT_BLOCK_BYTES] = {"HeapBlock", NULL},
    [HOTSPOT_CONST_BYTES] = {"ConstMethod", NULL},
    [HOTSPOT_POOL_BYTES] = {"ConstantPool", NULL},
};

struct page {
    uint64_t address; /* 0: none */
    uint8_t bytes[PAGE_BYTES];
};

struct reader {
    const struct runtime_memory *memory;
    struct page *pages;
    struct hotspot_structs *structs;
};

static const struct page *page_of(struct reader *reader, uint64_t address)
{
    uint64_t start = address & ~(uint64_t)(PAGE_BYTES - 1);
    struct page *page = &reader->pages[start / PAGE_BYTES % PAGES];
    if (!start)
        return NULL;
    if (page->address == start)
        return page;
    page->address = 0;
    if (!runtime_read(reader->memory, start, page->bytes, PAGE_BYTES))
        return NULL;
    page->address = start;
    return page;
}

/* A string, cut; an empty one where there is none. */
static void read_text(struct reader *reader, uint64_t address, char ret_text[TEXT_BYTES])
{
    size_t length = 0;
    const struct page *page = NULL;
    for (; address && length < TEXT_BYTES - 1; length++, address++) {
        if (!page || address % PAGE_BYTES == 0)
            page = page_of(reader, address);
        if (!page || !page->bytes[address % PAGE_BYTES])
            break;
        ret_text[length] = (char)page->bytes[address % PAGE_BYTES];
    }
    ret_text[length] = '\0';
}

static uint64_t word_at(const uint8_t *bytes, uint64_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

/* One of the numbers that say how entries are laid out. */
static bool read_offset(struct reader *reader, const struct hotspot_binary *binary, uint64_t bias,
                        enum hotspot_symbol symbol, uint64_t limit, uint64_t *ret_offset)
{
    uint64_t offset;
    if (!runtime_read(reader->memory, binary->symbols[symbol] + bias, &offset, sizeof(offset)) ||
        offset > limit)
        return false;
    *ret_offset = offset;
    return true;
}

static bool is_wanted_type(const char *type)
{
    for (unsigned i = 0; i < HOTSPOT_FIELDS; i++)
        if (!strcmp(wanted[i].type, type))
            return true;
    return false;
}

static uint8_t bytes_of_type(const char *type)
{
    static const char *const shorts[] = {"u2", "jushort", "unsigned short", "int16_t", "short"};
    for (size_t i = 0; i < ARRAY_LENGTH(shorts); i++)
        if (!strcmp(type, shorts[i]))
            return 2;
    return 0;
}

static bool read_fields(struct reader *reader, const struct hotspot_binary *binary, uint64_t bias)
{
    static const enum hotspot_symbol symbols[] = {
        HOTSPOT_SYMBOL_STRUCT_TYPE,   HOTSPOT_SYMBOL_STRUCT_FIELD,  HOTSPOT_SYMBOL_STRUCT_TEXT,
        HOTSPOT_SYMBOL_STRUCT_STATIC, HOTSPOT_SYMBOL_STRUCT_OFFSET, HOTSPOT_SYMBOL_STRUCT_ADDRESS};
    enum { TYPE, FIELD, TEXT, STATIC, OFFSET, ADDRESS };
    uint64_t at[ARRAY_LENGTH(symbols)], stride, last_type = 0;
    if (!read_offset(reader, binary, bias, HOTSPOT_SYMBOL_STRUCT_STRIDE, STRIDE_MAX, &stride) ||
        stride < 16)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(symbols); i++)
        if (!read_offset(reader, binary, bias, symbols[i], stride - 8, &at[i]))
            return false;
    uint64_t entry =
        runtime_read_word(reader->memory, binary->symbols[HOTSPOT_SYMBOL_STRUCTS] + bias);
    bool interesting = false;
    char type[TEXT_BYTES] = "", field[TEXT_BYTES], text[TEXT_BYTES];
    for (unsigned i = 0; entry && i < ENTRIES_MAX; i++, entry += stride) {
        uint8_t bytes[STRIDE_MAX + 8] = {0};
        if (!runtime_read(reader->memory, entry, bytes, stride))
            return false;
        uint64_t type_at = word_at(bytes, at[TYPE]);
        if (!type_at)
            return i > 0;
        if (type_at != last_type) {
            read_text(reader, type_at, type);
            interesting = is_wanted_type(type);
            last_type = type_at;
        }
        if (!interesting)
            continue;
        read_text(reader, word_at(bytes, at[FIELD]), field);
        for (unsigned k = 0; k < HOTSPOT_FIELDS; k++) {
            if (!wanted[k].field || strcmp(wanted[k].type, type) || strcmp(wanted[k].field, field))
                continue;
            bool is_static = (uint32_t)word_at(bytes, at[STATIC]) != 0;
            reader->structs->value[k] = word_at(bytes, at[is_static ? ADDRESS : OFFSET]);
            read_text(reader, word_at(bytes, at[TEXT]), text);
            reader->structs->bytes[k] = bytes_of_type(text);
        }
    }
    return false;
}

static bool read_sizes(struct reader *reader, const struct hotspot_binary *binary, uint64_t bias)
{
    uint64_t stride, name_at, size_at;
    if (!read_offset(reader, binary, bias, HOTSPOT_SYMBOL_TYPE_STRIDE, STRIDE_MAX, &stride) ||
        stride < 16 ||
        !read_offset(reader, binary, bias, HOTSPOT_SYMBOL_TYPE_NAME, stride - 8, &name_at) ||
        !read_offset(reader, binary, bias, HOTSPOT_SYMBOL_TYPE_SIZE, stride - 8, &size_at))
        return false;
    uint64_t entry =
        runtime_read_word(reader->memory, binary->symbols[HOTSPOT_SYMBOL_TYPES] + bias);
    char name[TEXT_BYTES];
    for (unsigned i = 0; entry && i < ENTRIES_MAX; i++, entry += stride) {
        uint8_t bytes[STRIDE_MAX + 8] = {0};
        if (!runtime_read(reader->memory, entry, bytes, stride))
            return false;
        if (!word_at(bytes, name_at))
            return i > 0;
        read_text(reader, word_at(bytes, name_at), name);
        for (unsigned k = 0; k < HOTSPOT_FIELDS; k++)
            if (!wanted[k].field && !strcmp(wanted[k].type, name))
                reader->structs->value[k] = word_at(bytes, size_at);
    }
    return false;
}

bool hotspot_structs_read(const struct hotspot_binary *binary, uint64_t bias,
                          const struct runtime_memory *memory, struct hotspot_structs *ret_structs)
{
    struct hotspot_structs structs = {0};
    for (unsigned i = 0; i < HOTSPOT_FIELDS; i++)
        structs.value[i] = HOTSPOT_NONE;
    _cleanup_free_ struct page *pages = memory_zalloc(PAGES, sizeof(*pages));
    struct reader reader = {.memory = memory, .pages = pages, .structs = &structs};
    if (!read_fields(&reader, binary, bias) || !read_sizes(&reader, binary, bias))
        return false;
    *ret_structs = structs;
    return true;
}
