/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file without its code and data: only the parts that name addresses. The result is like a
 * debug file: all sections are there, but only debug information, symbol tables, Go's tables,
 * unwind information and build IDs have content. Segments stay as they are in the original, so that
 * the place of code in it is known.
 *
 * Nothing is copied: an extract is a plan of pieces, which are read from the original when they are
 * sent. It takes the memory of the file's headers.
 */
#pragma once

#include "elf/file.h"

struct elf_extract {
    struct elf_file *file; /* borrowed */
    struct elf_piece {
        uint64_t at; /* in the extract; pieces are in this order, with gaps of zeros between */
        uint64_t length;
        uint64_t offset;   /* in the file, or: */
        const char *bytes; /* NULL: they are in the file */
    } * pieces;
    size_t piece_count, piece_capacity;
    struct buffer head, tail; /* the headers */
    uint64_t size_bytes;
};

/*
 * `file` is borrowed until the release. With `segments`, a binary whose debug file `file` is, the
 * extract has that binary's segments. -ENODATA: there is nothing that could name anything;
 * -EBADMSG: its headers make no sense.
 */
int elf_extract_plan(struct elf_file *file, const struct elf_file *segments,
                     struct elf_extract *ret_extract, struct error *error);
void elf_extract_release(struct elf_extract *extract);
#define _cleanup_elf_extract_ _cleanup_(elf_extract_release)

/* Up to `length` bytes from `at`; 0 at the end; -ENODATA when the file has become shorter. */
ssize_t elf_extract_read(const struct elf_extract *extract, uint64_t at, void *buffer,
                         size_t length);
