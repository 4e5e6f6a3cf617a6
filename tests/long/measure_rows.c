// SPDX-License-Identifier: Apache-2.0
// measure-rows FILE: compiles a file's unwind rows, and prints how many there are, what they take,
// and how much memory the process had at most beyond what it had before.

#include <stdio.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "elf/unwind/rows.h"

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

int main(int argc, char **argv)
{
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    unwind_rules_init(&rules);
    if (argc != 2) {
        fprintf(stderr, "usage: measure-rows FILE\n");
        return 2;
    }
    long before = peak_kib();
    if (elf_open(argv[1], &file, &error) < 0 ||
        unwind_rows_compile(&file, &rules, &rows, &error) < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], error.text);
        return 1;
    }
    printf("%u %zu %ld\n", rows.row_count, unwind_rows_bytes(&rows) >> 10, peak_kib() - before);
    return 0;
}
