/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of functions that a profile has addresses of: from the binaries of this machine that are
 * the same (binaries.h), with the lines that their debug information gives. A binary is opened
 * once, under any number of mappings. One thread at a time.
 */
#pragma once

#include "profile/profile.h"
#include "symbol/disassembly.h"
#include "symbol/symbol.h"

struct recorded_code;

struct recorded_code *recorded_code_new(const struct profile *profile);
void recorded_code_free(struct recorded_code *code);

/* Where an address of a profile is. */
struct recorded_place {
    uint32_t binary;  /* the same number for the same file */
    uint64_t address; /* in the file's own terms, as all that follow */
    uint64_t start, size_bytes;
    const char *name; /* of the function that the file has there; NULL when it doesn't say.
                         It lives as long as the code. */
};

/* `offset` as the profile's frames have it. Fails where the binary is missing or another one, and
 * where it doesn't say which function the address is in: the error says which and why. */
int recorded_code_find(struct recorded_code *code, uint32_t mapping, uint64_t offset,
                       struct recorded_place *ret_place, struct error *error);

/* The instructions of the function at a place, and has their lines read. */
int recorded_code_read(struct recorded_code *code, const struct recorded_place *place,
                       struct disassembly *ret_disassembly, struct error *error);

/* The functions and lines at an address of a binary; 0 when nothing is known. */
size_t recorded_code_frames(struct recorded_code *code, uint32_t binary, uint64_t address,
                            struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX]);

/* The function at an address of a binary: false when it has no name. */
bool recorded_code_name(struct recorded_code *code, uint32_t binary, uint64_t address,
                        struct symbol *ret_symbol);

/* The binary's file, and its build ID, which may be "". */
const char *recorded_code_path(const struct recorded_code *code, uint32_t binary);
const char *recorded_code_build_id(const struct recorded_code *code, uint32_t binary);
