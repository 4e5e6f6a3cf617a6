// SPDX-License-Identifier: Apache-2.0
// The fuzzer of files of compiled rows. Versions, identity and checksum are made to fit, or nothing
// would get past them; what is accepted must keep what rows promise, and be written again as it
// was.

#include <xxhash.h>

#include "base/memory.h"
#include "elf/unwind/rows_file.h"

/* Where these are: docs/formats/unwind-rows.md. */
#define VERSIONS_AT 8
#define CHECKSUM_AT 16
#define SOURCE_BYTES_AT 24
#define BUILD_ID_LENGTH_AT 52
#define BUILD_ID_AT 56
#define COUNTERS_AT (BUILD_ID_AT + ELF_BUILD_ID_MAX)

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
            require(i == first || row->offset > row[-1].offset);
            uint64_t address = ((rows->first_page + page) << UNWIND_PAGE_SHIFT) + row->offset;
            require(unwind_rows_find(rows, address) == row->rule);
        }
    }
}

/* As far as a writer would write it: with the rules in the order of their use. */
static void check_written(const struct rows_identity *identity, const struct unwind_rows *rows,
                          const struct unwind_rules *rules)
{
    _cleanup_buffer_ struct buffer once = {0}, twice = {0};
    _cleanup_rules_ struct unwind_rules others;
    _cleanup_rows_ struct unwind_rows again = {0};
    struct error error = {0};
    unwind_rules_init(&others);
    rows_file_write(identity, rows, rules, &once);
    require(rows_file_parse(once.data, once.length, identity, &others, &again, &error) == 0);
    rows_file_write(identity, &again, &others, &twice);
    require(once.length == twice.length && !memcmp(once.data, twice.data, once.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    _cleanup_buffer_ struct buffer content = {0};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    struct rows_identity identity = {0};
    struct error error = {0};
    buffer_add(&content, data, length);
    if (length >= COUNTERS_AT) {
        uint32_t id_length;
        memcpy(&identity.source_bytes, data + SOURCE_BYTES_AT, 8);
        memcpy(&id_length, data + BUILD_ID_LENGTH_AT, 4);
        identity.build_id_length = MIN(id_length, ELF_BUILD_ID_MAX);
        memcpy(identity.build_id, data + BUILD_ID_AT, ELF_BUILD_ID_MAX);
        uint64_t checksum = XXH3_64bits(data + CHECKSUM_AT + 8, length - CHECKSUM_AT - 8);
        memcpy(content.data + CHECKSUM_AT, &checksum, 8);
        const uint32_t versions[] = {ROWS_FILE_VERSION, UNWIND_RULE_VERSION};
        memcpy(content.data + VERSIONS_AT, versions, sizeof(versions));
    }
    unwind_rules_init(&rules);
    int r = rows_file_parse(content.data, content.length, &identity, &rules, &rows, &error);
    if (r < 0) {
        require(error.code == r && error.text[0] && rules.count == 3);
        return 0;
    }
    check_rows(&rows, &rules);
    check_written(&identity, &rows, &rules);
    return 0;
}
