/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled rows as a file, so that a binary's call frame information is interpreted once and not
 * once per run: the section "Rows as a file" of docs/formats/unwind-rows.md has the layout. What is
 * read is believed no more than any other input: a file that is damaged, of another version or of
 * another binary is refused, and the binary is compiled again.
 */
#pragma once

#include "base/buffer.h"
#include "elf/unwind/rows.h"

/* Raise it with every change of the layout, and of what compiling makes of the same binary: rows of
 * an older compiler would live on in files. */
#define ROWS_FILE_VERSION 3

/* Which binary the rows are of. */
struct rows_identity {
    uint8_t build_id[ELF_BUILD_ID_MAX];
    size_t build_id_length;
    uint64_t source_bytes; /* the binary's size */
};

/* Appends the file's content. The same rows give the same bytes, whatever else the table of rules
 * contains. Functions are not kept: a walk doesn't need them. Negative when there is not enough
 * memory. */
int rows_file_write(const struct rows_identity *identity, const struct unwind_rows *rows,
                    const struct unwind_rules *rules, struct buffer *out);

/*
 * Rows out of a file of `length` bytes, with the numbers that their rules have in `rules`, to which
 * new ones are added, but only when everything was found good. -ESTALE when the file is of another
 * version or another binary; -EBADMSG when it is damaged or can't be read. The descriptor stays the
 * caller's.
 */
int rows_file_read(int fd, uint64_t length, const struct rows_identity *identity,
                   struct unwind_rules *rules, struct unwind_rows *ret_rows, struct error *error);

/* The same out of memory. */
int rows_file_parse(const void *content, size_t length, const struct rows_identity *identity,
                    struct unwind_rules *rules, struct unwind_rows *ret_rows, struct error *error);
