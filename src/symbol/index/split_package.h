/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A package (.dwp) of the files that a compiler split off a program (.dwo), for sending: the files
 * are where the program was built and nowhere else. It has what names addresses, each string once,
 * and not what only debuggers ask for, such as where variables are.
 */
#pragma once

#include "base/error.h"
#include "symbol/index/build.h"

struct split_package {
    int fd;               /* -1 when none of the files was found, or there are none */
    uint64_t bytes;       /* of it */
    size_t units, absent; /* how many there are, and how many of them were not found */
};

/* To be released, also when it failed. */
int split_package_make(const struct symbol_index_input *input, struct split_package *ret_package,
                       struct error *error);
void split_package_release(struct split_package *package);

/* The same out of files that are in memory (index_splits.h), as an ELF file: for tests and fuzzers.
 * Files that make no sense are left out. */
int split_package_write(const void *splits, size_t length, struct buffer *ret_file,
                        size_t *ret_units, struct error *error);
