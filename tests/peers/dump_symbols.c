// SPDX-License-Identifier: Apache-2.0
// dump-symbols FILE: reads addresses from standard input, one hexadecimal number per line, and
// prints for each what our table says: the start, the linker's name and the readable one.

#include <inttypes.h>
#include <stdio.h>

#include "elf/file.h"
#include "symbol/table.h"

int main(int argc, char **argv)
{
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    if (argc != 2) {
        fprintf(stderr, "usage: dump-symbols FILE\n");
        return 2;
    }
    if (elf_open(argv[1], &file, &error) < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], error.text);
        return 1;
    }
    struct symbol_table *table = symbol_table_new(&file, argv[1]);
    uint64_t address;
    while (scanf("%" SCNx64, &address) == 1) {
        struct symbol symbol;
        if (!symbol_table_find(table, address, &symbol))
            printf("-\t\t\n");
        else if (!symbol.name)
            printf("%" PRIx64 "\t\t\n", symbol.start);
        else
            printf("%" PRIx64 "\t%s\t%s\n", symbol.start,
                   symbol.system_name ? symbol.system_name : symbol.name, symbol.name);
    }
    symbol_table_free(table);
    return 0;
}
