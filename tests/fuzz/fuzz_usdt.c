// SPDX-License-Identifier: Apache-2.0
// Static probes of hostile files: the notes of an ELF file, and the text of arguments by itself.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/usdt/usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct usdt_probe probes[USDT_PROBES_MAX], parsed;
    struct elf_file file;
    struct error error = {0};
    if (elf_open_memory(data, size, ELF_LAYOUT_FILE, &file, &error) == 0) {
        size_t count = usdt_find(&file, "otel_memory", "alloc", probes);
        count += usdt_find(&file, "otel_memory", "free", probes);
        if (count > 2 * USDT_PROBES_MAX)
            abort();
        elf_release(&file);
    }
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (usdt_parse_arguments(text, &parsed) && parsed.argument_count > USDT_ARGUMENTS_MAX)
        abort();
    free(text);
    return 0;
}
