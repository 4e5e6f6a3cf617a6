/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a confined child says about the addresses of a file, as it goes through the pipe, and as it
 * is kept. The stream is a row of records, each a letter and 32-bit little-endian numbers:
 *
 *   S length bytes                     the next string; strings are numbered from 1
 *   F name system_name start_line      the next function, numbered from 1; names are strings
 *   A index count {function file line} the frames of the address asked for at that index, innermost
 *                                      first; each address at most once
 *   E                                  the end; nothing follows
 *
 * Numbers refer to what came before, and 0 is none: a function has a name, but the only frame of an
 * address may be of no known function. The child has read hostile input, so none of it is believed.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/idtable.h"
#include "symbol/symbol.h"

#define DWARF_STRING_MAX 65536

/* ---- the child's side ---- */

struct dwarf_writer {
    struct buffer buffer;
    void (*write)(const void *bytes, size_t length);
    struct id_table index; /* of strings */
    struct arena arena;
    const char **strings;
    size_t string_capacity;
    uint32_t string_count, function_count;
};

/* 0 for none. Strings that are too long are cut. */
uint32_t dwarf_write_string(struct dwarf_writer *writer, const char *text);
uint32_t dwarf_write_function(struct dwarf_writer *writer, uint32_t name, uint32_t system_name,
                              uint32_t start_line);
struct dwarf_frame {
    uint32_t function, file, line;
};
void dwarf_write_address(struct dwarf_writer *writer, uint32_t index,
                         const struct dwarf_frame *frames, uint32_t count);
void dwarf_write_end(struct dwarf_writer *writer);
void dwarf_writer_release(struct dwarf_writer *writer);

/* ---- the parent's side ---- */

struct dwarf_chain {
    uint64_t address;
    uint32_t first, count; /* of `frames` */
};

/* Everything that is known of a file's addresses. */
struct dwarf_names {
    struct dwarf_chain *chains;
    size_t chain_count, chain_capacity;
    struct symbol_frame *frames;
    size_t frame_count, frame_capacity;
    struct id_table index; /* address -> chain */
    struct arena arena;
};

void dwarf_names_release(struct dwarf_names *names);

/* Adds the answer to a question about `addresses`, of which none was asked before: all of it, or
 * nothing and -EBADMSG. */
int dwarf_names_add(struct dwarf_names *names, const uint64_t *addresses, size_t count,
                    const void *answer, size_t length, struct error *error);

/* NULL when it was never asked for. A frame's name is NULL only where it is the only one: then the
 * line is known, but the function isn't. */
const struct dwarf_chain *dwarf_names_find(const struct dwarf_names *names, uint64_t address);
size_t dwarf_names_bytes(const struct dwarf_names *names);
