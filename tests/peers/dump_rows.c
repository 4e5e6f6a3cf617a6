// SPDX-License-Identifier: Apache-2.0
// dump-rows FILE: what our unwind rows say about every byte of a file's code, as text for
// compare_rows.py. The last lines are stats: they start with '#'.

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "elf/unwind/rows.h"

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void print_row(uint64_t address, const struct unwind_rule *rule)
{
    printf("R %" PRIx64 " %u %u %d %u %d\n", address, rule->cfa, rule->argument, rule->cfa_offset,
           rule->saved, rule->fp_slot);
}

static void print_rows(const struct unwind_rows *rows, const struct unwind_rules *rules)
{
    for (uint32_t page = 0; page < rows->page_count; page++) {
        uint64_t base = (rows->first_page + page) << UNWIND_PAGE_SHIFT;
        if (rows->pages[page] == rows->pages[page + 1])
            print_row(base, &rules->rules[UNWIND_RULE_NONE]);
        for (uint32_t i = rows->pages[page]; i < rows->pages[page + 1]; i++) {
            /* The search must find what the list says. */
            if (unwind_rows_find(rows, base + rows->rows[i].offset) != rows->rows[i].rule)
                abort();
            print_row(base + rows->rows[i].offset, &rules->rules[rows->rows[i].rule]);
        }
    }
    print_row((rows->first_page + rows->page_count) << UNWIND_PAGE_SHIFT,
              &rules->rules[UNWIND_RULE_NONE]);
    uint64_t base = rows->first_page << UNWIND_PAGE_SHIFT;
    for (uint32_t i = 0; i < rows->function_count; i++)
        printf("F %" PRIx64 " %" PRIx64 "\n", base + rows->functions[i].start,
               base + rows->functions[i].start + rows->functions[i].length);
}

int main(int argc, char **argv)
{
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    unwind_rules_init(&rules);
    if (argc != 2) {
        fprintf(stderr, "usage: dump-rows FILE\n");
        return 2;
    }
    double start = milliseconds();
    if (elf_open(argv[1], &file, &error) < 0 ||
        unwind_rows_compile(&file, &rules, &rows, &error) < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], error.text);
        return 1;
    }
    double took = milliseconds() - start;
    print_rows(&rows, &rules);
    printf("# rows %u\n# pages %u\n# rules %zu\n# functions %u\n", rows.row_count, rows.page_count,
           rules.count, rows.function_count);
    printf("# row_bytes %zu\n# bytes %zu\n# milliseconds %.1f\n",
           sizeof(*rows.rows) * rows.row_count + sizeof(*rows.pages) * (rows.page_count + 1),
           unwind_rows_bytes(&rows), took);
    printf("# bad %" PRIu64 "\n# unsupported %" PRIu64 "\n",
           rows.bad_entries + rows.bad_programs + rows.outside, rows.unsupported_rows);
    return 0;
}
