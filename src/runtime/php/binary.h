/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that holds PHP's interpreter: php, php-fpm, or libphp.so. It is recognised by its dynamic
 * symbols, and has its version in a constant.
 */
#pragma once

#include "bpf/runtimes/runtime.h"
#include "elf/file.h"

struct php_binary {
    struct bpf_php walk; /* addresses are the file's */
    uint8_t major, minor;
    char version[32];         /* "8.2.7"; "": not known */
    uint64_t evaluate_offset; /* where execute_ex() begins in the file */
};

/* False when it has no interpreter. Thread-safe builds, which keep their variables elsewhere, are
 * not recognised. */
bool php_binary_find(struct elf_file *file, struct php_binary *ret_binary);

/* Whether its frames can be walked; else the reason, in a few words. */
bool php_binary_known(const struct php_binary *binary, const char **ret_reason);
