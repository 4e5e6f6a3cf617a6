/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Go program: where its runtime has the list of all goroutines. By the symbol table, which
 * programs that were linked with -s do not have.
 */
#pragma once

#include "elf/file.h"

#define GO_REASONS_MAX 96

struct go_binary {
    uint64_t goroutines;   /* runtime.allgs; addresses are the file's */
    uint64_t version;      /* runtime.buildVersion */
    uint64_t reasons;      /* runtime.waitReasonStrings: words for why a goroutine waits */
    unsigned reason_count; /* at most GO_REASONS_MAX */
};

/* False when it is not a Go program, or has no symbols. */
bool go_binary_find(struct elf_file *file, struct go_binary *ret_binary);
