// SPDX-License-Identifier: Apache-2.0
// The fuzzer of Go's table of functions. The first byte says what the rest is: the table itself, or
// an ELF file with one. What is read is asked about everything, and compiled into rows.

#include "base/memory.h"
#include "elf/go/gopclntab.h"
#include "elf/unwind/rows.h"

#define TABLE_ADDRESS 0x402000
#define TEXT_ADDRESS 0x401000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void ask(const struct gopclntab *table)
{
    struct gopclntab_frame frames[16];
    struct gopclntab_function function, found;
    for (uint32_t i = 0; i < MIN(table->function_count, 1000u); i++) {
        if (!gopclntab_function(table, i, &function) || function.start >= function.end)
            continue;
        require(strlen(function.name) <= GOPCLNTAB_NAME_MAX);
        if (gopclntab_find(table, function.start, &found))
            require(found.start <= function.start && found.end > function.start);
        uint64_t places[] = {function.start, function.start + 16, function.end - 1};
        for (size_t k = 0; k < ARRAY_LENGTH(places); k++) {
            size_t count = gopclntab_frames(table, places[k], frames, ARRAY_LENGTH(frames));
            require(count <= ARRAY_LENGTH(frames));
            for (size_t n = 0; n < count; n++)
                require(strlen(frames[n].name) <= GOPCLNTAB_NAME_MAX &&
                        (!frames[n].file || frames[n].file[0]));
        }
        struct gopclntab_run run;
        uint64_t before = function.start;
        gopclntab_run_start(&run, table, &function, function.sp_values);
        while (gopclntab_run_next(&run)) {
            require(run.start == before && run.end > run.start && run.end <= function.end);
            before = run.end;
        }
    }
}

static void use_table(const uint8_t *data, size_t length)
{
    _cleanup_gopclntab_ struct gopclntab table = {0};
    _cleanup_buffer_ struct buffer content = {0};
    struct gopclntab_place place = {.address = TABLE_ADDRESS, .text = TEXT_ADDRESS};
    struct error error = {0};
    /* The inline trees are somewhere in it. */
    if (length >= 2)
        place.functions = TABLE_ADDRESS + data[length - 2] + 256u * data[length - 1];
    buffer_add(&content, data, length);
    int r = gopclntab_parse(&content, &place, &table, &error);
    require(r == 0 ? !content.data : r == error.code && error.text[0]);
    if (r == 0)
        ask(&table);
}

static void use_file(const uint8_t *data, size_t length)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_gopclntab_ struct gopclntab table = {0};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    unwind_rules_init(&rules);
    if (elf_open_memory(data, length, ELF_LAYOUT_FILE, &file, NULL) < 0)
        return;
    if (gopclntab_load(&file, &table, NULL) == 0)
        ask(&table);
    if (unwind_rows_compile(&file, &rules, &rows, NULL) < 0)
        return;
    require(rows.pages[0] == 0 && rows.pages[rows.page_count] == rows.row_count);
    for (uint32_t i = 0; i < rows.row_count; i++)
        require(rows.rows[i].offset < UNWIND_PAGE_BYTES && rows.rows[i].rule < rules.count);
    for (uint32_t i = 1; i < rows.function_count; i++)
        require(rows.functions[i].start >=
                (uint64_t)rows.functions[i - 1].start + rows.functions[i - 1].length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length && data[0] & 1)
        use_file(data + 1, length - 1);
    else if (length)
        use_table(data + 1, length - 1);
    return 0;
}
