// SPDX-License-Identifier: Apache-2.0
// Recognising Go programs: see binary.h.

#include "runtime/go/binary.h"

#include "base/memory.h"

#define TEXT_BYTES 16  /* of a string: where it is, and its length */
#define SLICE_BYTES 24 /* of a slice: that, and its capacity */

bool go_binary_find(struct elf_file *file, struct go_binary *ret_binary)
{
    struct elf_section info;
    struct elf_variable wanted[] = {
        {.name = "runtime.allgs", .bytes_min = SLICE_BYTES, .bytes_max = SLICE_BYTES},
        {.name = "runtime.buildVersion", .bytes_min = TEXT_BYTES, .bytes_max = TEXT_BYTES},
        {.name = "runtime.waitReasonStrings",
         .bytes_min = TEXT_BYTES,
         .bytes_max = (uint64_t)GO_REASONS_MAX * TEXT_BYTES},
    };
    if (!elf_find_section(file, ".go.buildinfo", &info) ||
        elf_variables(file, wanted, ARRAY_LENGTH(wanted)) != ARRAY_LENGTH(wanted))
        return false;
    *ret_binary = (struct go_binary){.goroutines = wanted[0].address,
                                     .version = wanted[1].address,
                                     .reasons = wanted[2].address,
                                     .reason_count = (unsigned)(wanted[2].size_bytes / TEXT_BYTES)};
    return true;
}
