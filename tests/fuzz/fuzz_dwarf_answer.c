// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what a confined child says about addresses. Whatever is taken must be whole: each
// address once, every name within limits, and nothing at all of an answer that is refused.

#include <stdlib.h>
#include <string.h>

#include "symbol/dwarf_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(const char *text)
{
    require(!text || (text[0] && strlen(text) <= DWARF_STRING_MAX));
}

static void check_names(const struct dwarf_names *names, const uint64_t *addresses, size_t count)
{
    require(names->chain_count == count);
    for (size_t i = 0; i < count; i++) {
        const struct dwarf_chain *chain = dwarf_names_find(names, addresses[i]);
        require(chain && chain->address == addresses[i] && chain->count <= SYMBOL_FRAMES_MAX);
        for (uint32_t k = 0; k < chain->count; k++) {
            require(chain->first + k < names->frame_count);
            const struct symbol_frame *frame = &names->frames[chain->first + k];
            require(frame->name || (chain->count == 1 && !frame->system_name));
            check_text(frame->name);
            check_text(frame->system_name);
            check_text(frame->file);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    uint64_t first[8], second[8];
    struct dwarf_names names = {0};
    for (size_t i = 0; i < 8; i++) {
        first[i] = 0x1000 + 16 * i;
        second[i] = 0x2000 + 16 * i;
    }
    if (dwarf_names_add(&names, first, 8, data, length, NULL) == 0) {
        check_names(&names, first, 8);
        /* Another answer does nothing to the first. */
        require(dwarf_names_add(&names, second, 8, data, length - 1, NULL) < 0);
        check_names(&names, first, 8);
    } else {
        require(!names.chain_count && !names.frame_count && !dwarf_names_find(&names, first[0]));
    }
    dwarf_names_release(&names);
    return 0;
}
