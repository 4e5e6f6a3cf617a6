/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static probes of a file, from its section .note.stapsdt: their places, the counter by which a
 * program learns that a tool is attached, and where their arguments are.
 */
#pragma once

#include "elf/file.h"

#define USDT_PROBES_MAX 64 /* of one name in one file: inlined functions have copies */
#define USDT_ARGUMENTS_MAX 4
#define USDT_NOTES_BYTES (1u << 20)

enum usdt_kind { USDT_NONE, USDT_CONSTANT, USDT_REGISTER, USDT_MEMORY };

struct usdt_argument {
    enum usdt_kind kind;
    unsigned bytes; /* 1, 2, 4 or 8 */
    bool is_signed;
    unsigned number; /* the register's, in DWARF */
    int64_t offset;  /* of the memory from the register; or the constant */
};

struct usdt_probe {
    uint64_t offset;    /* in the file */
    uint64_t semaphore; /* likewise; 0: it has none */
    struct usdt_argument arguments[USDT_ARGUMENTS_MAX];
    unsigned argument_count;
};

/* "8@%REGISTER 8@-16(%REGISTER) -4@$3": false when an argument is of another form. */
bool usdt_parse_arguments(const char *text, struct usdt_probe *probe);

/* The probes of this provider and name, at most USDT_PROBES_MAX. Returns how many; those whose
 * arguments can't be understood are left out. */
size_t usdt_find(struct elf_file *file, const char *provider, const char *name,
                 struct usdt_probe *ret_probes);
