// SPDX-License-Identifier: Apache-2.0
// The fuzzer of ELF files, call frame information and the walk. The first byte says what the rest
// is: an ELF file, its image in memory, .eh_frame or .debug_frame. What compiles must keep what
// rows promise, and is then walked with the input itself as the stack.

#include <string.h>

#include "base/memory.h"
#include "elf/extract.h"
#include "elf/file.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/unwind.h"

#define SECTION_ADDRESS 0x10000
#define STACK_ADDRESS 0x7fff00000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_rows(const struct unwind_rows *rows, const struct unwind_rules *rules)
{
    require(rows->pages[0] == 0 && rows->pages[rows->page_count] == rows->row_count);
    for (uint32_t page = 0; page < rows->page_count; page++) {
        uint32_t first = rows->pages[page], end = rows->pages[page + 1];
        require(first <= end && (first == end || rows->rows[first].offset == 0));
        for (uint32_t i = first; i < end; i++) {
            const struct unwind_row *row = &rows->rows[i];
            require(row->offset < UNWIND_PAGE_BYTES && row->rule < rules->count);
            require(i == first || (row->offset > row[-1].offset && row->rule != row[-1].rule));
        }
    }
    for (uint32_t i = 0; i < rows->function_count; i++) {
        const struct unwind_function *function = &rows->functions[i];
        uint64_t address = (rows->first_page << UNWIND_PAGE_SHIFT) + function->start, start, end;
        require(!i || function->start >= (uint64_t)function[-1].start + function[-1].length);
        require(unwind_rows_function(rows, address, &start, &end) && start == address);
    }
}

static bool find(void *context, uint64_t address, struct unwind_place *ret_place)
{
    *ret_place = (struct unwind_place){.rows = context};
    return address % 7; /* some addresses are no code */
}

static void walk(const struct unwind_rows *rows, const struct unwind_rules *rules,
                 const uint8_t *data, size_t length)
{
    struct unwind_frame frames[200];
    size_t count = 0;
    uint64_t ip = rows->first_page << UNWIND_PAGE_SHIFT;
    if (rows->function_count)
        ip += rows->functions[length % rows->function_count].start;
    struct unwind_input input = {
        .registers = unwind_registers_of(ip, STACK_ADDRESS, STACK_ADDRESS + length / 2),
        .stack = data,
        .stack_bytes = length,
        .stack_address = STACK_ADDRESS,
        .rules = rules,
        .find = find,
        .context = (void *)rows};
    enum unwind_end end = unwind_walk(&input, frames, ARRAY_LENGTH(frames), &count);
    require(count >= 1 && count <= ARRAY_LENGTH(frames) && (unsigned)end < UNWIND_END_KINDS);
    require(end != UNWIND_END_LIMIT || count == ARRAY_LENGTH(frames));
}

/* What names addresses, as a file: it can be read again, and its extract is no other. */
static void check_extract(struct elf_file *file)
{
    _cleanup_elf_extract_ struct elf_extract extract = {0}, again = {0};
    _cleanup_elf_ struct elf_file copy = {.fd = -1};
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    if (elf_extract_plan(file, NULL, &extract, &error) < 0) {
        require(error.text[0]);
        return;
    }
    char *room = buffer_reserve(&content, extract.size_bytes);
    require(extract.size_bytes <= 4 * file->size_bytes + 4096);
    require(elf_extract_read(&extract, 0, room, extract.size_bytes) == (ssize_t)extract.size_bytes);
    require(elf_open_memory(room, extract.size_bytes, ELF_LAYOUT_FILE, &copy, NULL) == 0);
    require(copy.section_count == file->section_count);
    for (size_t i = 0; i < copy.section_count; i++)
        require(copy.sections[i].type == SHT_NOBITS || copy.sections[i].type == SHT_NULL ||
                !(copy.sections[i].flags & SHF_EXECINSTR));
    if (elf_extract_plan(&copy, NULL, &again, NULL) == 0)
        require(again.size_bytes == extract.size_bytes);
}

static void use_file(struct elf_file *file)
{
    static const char *const names[] = {".eh_frame_hdr", ".dynsym", ".dynstr", ".text"};
    _cleanup_buffer_ struct buffer content = {0};
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t id_length;
    uint32_t crc;
    uint64_t value, back;
    char name[ELF_DATA_NAME_BYTES];
    elf_kind_of(file);
    for (size_t i = 0; i < file->segment_count && i < 4; i++)
        require(!elf_data_symbol(file, file->segments[i].address + i * 8, name, &value) ||
                strlen(name) < sizeof(name));
    check_extract(file);
    require(!elf_build_id(file, id, &id_length) || id_length <= sizeof(id));
    elf_go_build_id(file, &content);
    elf_debug_link(file, &content, &crc);
    elf_load_bias(file, 0x7f0000000000, 0x1000, &value);
    if (elf_offset_to_address(file, 0x1000, &value))
        elf_address_to_offset(file, value, &back);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct elf_section section;
        content.length = 0;
        if (elf_find_section(file, names[i], &section) &&
            elf_read_section(file, &section, 65536, &content, NULL) == 0)
            require(content.length <= 65536);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (!length)
        return 0;
    unsigned mode = data[0] & 3;
    data++;
    length--;
    struct error error = {0};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    unwind_rules_init(&rules);
    int r;
    if (mode < 2) {
        r = elf_open_memory(data, length, mode ? ELF_LAYOUT_MEMORY : ELF_LAYOUT_FILE, &file,
                            &error);
        if (r == 0) {
            use_file(&file);
            r = unwind_rows_compile(&file, &rules, &rows, &error);
        }
    } else {
        struct frame_section section = {.bytes = data,
                                        .length = length,
                                        .address = SECTION_ADDRESS,
                                        .is_debug_frame = mode == 3};
        struct unwind_code code = {0, 16 << 20};
        r = unwind_rows_compile_sections(&section, 1, &code, 1, &rules, &rows, &error);
    }
    if (r < 0) {
        require(error.code == r && error.text[0]);
        return 0;
    }
    check_rows(&rows, &rules);
    walk(&rows, &rules, data, length);
    return 0;
}
