/* SPDX-License-Identifier: Apache-2.0 */
/* `assay report --asm`: report_asm.c finds the instructions and adds up, report_asm_write.c writes.
 */
#pragma once

#include "cli/file/report.h"
#include "symbol/recorded/code.h"

/* An address of the chosen functions, and the function that the binary has there. */
struct asm_address {
    uint32_t frame;
    struct recorded_place place;
};

/* A function of a binary: addresses[first .. first + count). */
struct asm_function {
    size_t first, count;
    int64_t flat;
    struct disassembly code;
    size_t row; /* of its first instruction */
};

struct asm_row {
    int64_t flat, cumulative;
};

struct assembly {
    struct report *report;
    const bool *chosen;
    struct recorded_code *code;
    int64_t *values;        /* per node */
    int64_t *flat_of_frame; /* of frames that are not inlined */
    struct asm_address *addresses;
    size_t address_count;
    struct asm_function *functions; /* the most expensive first */
    size_t function_count, read;    /* the first `read` have instructions */
    struct asm_row *rows;           /* theirs, one after the other */
    size_t row_count;
    uint32_t *row_of_frame; /* UINT32_MAX: none */
    int64_t lost;           /* own values of addresses without instructions */
    struct error why;       /* of the first of them */
    struct buffer scratch;
};

/* Tables of the functions that were read, as text or as data; `name` is what the user asked for,
 * `head` members of a JSON object that come before the rows. */
void assembly_write_text(struct assembly *assembly);
void assembly_write_data(struct assembly *assembly, const char *name, const char *head);
