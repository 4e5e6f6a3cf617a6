// SPDX-License-Identifier: Apache-2.0
// Compiling call frame information into rows of 4 bytes: see rows.h. The functions are listed and
// sorted first, then each one's rows go straight into its pages.

#include "base/memory.h"
#include "elf/cfi.h"
#include "elf/rows.h"
#include "elf/x86_64.h"

/* ---- the list of functions ---- */

struct range {
    uint64_t start;
    uint32_t length;  /* at most the 4 GiB that a file's rows span */
    uint32_t offset;  /* of the FDE in its section */
    uint16_t section; /* RANGE_STUB: `offset` is a rule's number */
};
#define RANGE_STUB UINT16_MAX

struct range_list {
    struct range *ranges;
    size_t count;
    size_t capacity;
};

static void add_range(struct range_list *list, struct range range)
{
    array_reserve(list->ranges, list->capacity, list->count + 1);
    list->ranges[list->count++] = range;
}

static int by_start(const void *left, const void *right)
{
    const struct range *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Linked files are in order already, or nearly so. */
static void sort_ranges(struct range_list *list)
{
    for (size_t i = 1; i < list->count; i++)
        if (by_start(&list->ranges[i - 1], &list->ranges[i]) > 0) {
            qsort(list->ranges, list->count, sizeof(*list->ranges), by_start);
            return;
        }
}

/* Is any byte of [start, end) in the first `count` ranges, which are sorted and don't overlap? */
static bool overlaps(const struct range_list *list, size_t count, uint64_t start, uint64_t end)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct range *range = &list->ranges[middle];
        if (range->start + range->length <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && list->ranges[low].start < end;
}

/*
 * Where two FDEs claim the same code, the later start wins, as for every unwinder that searches for
 * the last FDE that starts at or before an address; of two with the same start, the first.
 */
static void settle_ranges(struct range_list *list)
{
    size_t kept = 0;
    sort_ranges(list);
    for (size_t i = 0; i < list->count; i++) {
        struct range *range = &list->ranges[i];
        if (kept && list->ranges[kept - 1].start == range->start)
            continue;
        if (kept) {
            struct range *before = &list->ranges[kept - 1];
            before->length = (uint32_t)MIN(before->length, range->start - before->start);
        }
        list->ranges[kept++] = *range;
    }
    list->count = kept;
}

/* ---- compiling ---- */

struct compile {
    struct unwind_rules *rules;
    struct unwind_rows rows;
    struct range_list list;
    const struct unwind_code *code;
    size_t code_count;
    struct frame_reader *readers; /* one per section */
    uint16_t rule;                /* in force at the end of what has been written */
    uint32_t page;                /* being written */
    bool with_rbx;
    bool needs_rbx; /* a rule was met that can be followed only with it */
    size_t row_capacity;
    size_t function_capacity;
    struct cfi_run run;
};

/* How many bytes of code there are from `start` on, up to `end`. */
static uint64_t code_bytes(const struct compile *compile, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < compile->code_count; i++)
        if (start >= compile->code[i].start && start < compile->code[i].end)
            return MIN(end, compile->code[i].end) - start;
    return 0;
}

static void list_section(struct compile *compile, uint16_t number)
{
    struct frame_reader *reader = &compile->readers[number];
    size_t before = compile->list.count;
    struct frame_fde fde;
    while (frame_reader_next(reader, &fde) > 0) {
        uint64_t bytes = code_bytes(compile, fde.start, fde.end);
        if (!bytes) {
            compile->rows.outside++;
            continue;
        }
        /* Offsets fit: a section has at most UNWIND_FRAMES_BYTES_MAX bytes. */
        if (before && overlaps(&compile->list, before, fde.start, fde.end))
            continue;
        add_range(&compile->list, (struct range){.start = fde.start,
                                                 .length = (uint32_t)MIN(bytes, UINT32_MAX),
                                                 .offset = (uint32_t)fde.offset,
                                                 .section = number});
    }
    compile->rows.bad_entries += reader->bad_entries;
    settle_ranges(&compile->list);
}

static void add_row(struct compile *compile, uint32_t offset, uint16_t rule)
{
    struct unwind_rows *rows = &compile->rows;
    array_reserve(rows->rows, compile->row_capacity, (size_t)rows->row_count + 1);
    rows->rows[rows->row_count++] =
        (struct unwind_row){.offset = (unsigned short)offset, .rule = rule};
}

/* Ends pages up to the one given; the rule in force goes on in each. */
static void go_to_page(struct compile *compile, uint32_t page)
{
    while (compile->page < page) {
        compile->page++;
        compile->rows.pages[compile->page] = compile->rows.row_count;
        if (compile->rule != UNWIND_RULE_NONE)
            add_row(compile, 0, compile->rule);
    }
}

/* From `at` on, a distance from the first page, this rule holds. Calls come in ascending order. */
static void put(struct compile *compile, uint64_t at, uint16_t rule)
{
    struct unwind_rows *rows = &compile->rows;
    if (rule == compile->rule)
        return;
    go_to_page(compile, (uint32_t)(at >> UNWIND_PAGE_SHIFT));
    uint32_t offset = at & (UNWIND_PAGE_BYTES - 1);
    uint32_t first = rows->pages[compile->page];
    bool has_rows = rows->row_count > first;
    compile->rule = rule;
    if (has_rows && rows->rows[rows->row_count - 1].offset == offset) {
        rows->row_count--; /* held for no byte at all */
        has_rows = rows->row_count > first;
        if (has_rows && rows->rows[rows->row_count - 1].rule == rule)
            return;
    }
    if (!has_rows && rule == UNWIND_RULE_NONE)
        return;
    if (!has_rows && offset)
        add_row(compile, 0, UNWIND_RULE_NONE);
    add_row(compile, offset, rule);
}

static void compile_function(struct compile *compile, const struct range *range, uint64_t base)
{
    uint64_t end = range->start + range->length;
    struct frame_reader *reader = &compile->readers[range->section];
    struct frame_fde fde;
    struct cfi_stretch stretch = {.end = range->start};
    int r = -1;
    if (frame_fde_at(reader, range->offset, &fde) &&
        cfi_start(&compile->run, reader, &fde, &x86_64_machine))
        while ((r = cfi_next(&compile->run, &stretch)) > 0 && stretch.start < end) {
            struct unwind_rule rule =
                x86_64_rule(&stretch.state, compile->run.cie.signal_frame, compile->with_rbx);
            compile->needs_rbx |= x86_64_needs_rbx(&rule);
            compile->rows.unsupported_rows += rule.cfa == UNWIND_CFA_UNSUPPORTED;
            put(compile, stretch.start - base, unwind_rules_add(compile->rules, rule));
        }
    if (r < 0) {
        compile->rows.bad_programs++;
        if (stretch.end < end)
            put(compile, stretch.end - base, UNWIND_RULE_UNSUPPORTED);
    }
}

/* The span is that of the list, from its first page on. */
static void lay_out(struct compile *compile)
{
    struct unwind_rows *rows = &compile->rows;
    struct range_list *list = &compile->list;
    rows->first_page = list->ranges[0].start >> UNWIND_PAGE_SHIFT;
    uint64_t base = rows->first_page << UNWIND_PAGE_SHIFT;
    uint64_t span = (uint64_t)UNWIND_PAGES_MAX << UNWIND_PAGE_SHIFT;
    uint64_t last = base;
    for (size_t i = 0; i < list->count; i++) {
        struct range *range = &list->ranges[i];
        uint64_t distance = range->start - base;
        if (distance >= span) {
            rows->outside += list->count - i;
            list->count = i;
            break;
        }
        range->length = (uint32_t)MIN(range->length, span - distance);
        last = range->start + range->length - 1;
    }
    rows->page_count = (uint32_t)((last - base) >> UNWIND_PAGE_SHIFT) + 1;
}

static void compile_list(struct compile *compile)
{
    struct unwind_rows *rows = &compile->rows;
    const struct range_list *list = &compile->list;
    compile->rule = UNWIND_RULE_NONE;
    compile->page = 0;
    rows->row_count = rows->function_count = 0;
    rows->bad_programs = rows->unsupported_rows = 0;
    free(rows->pages);
    rows->pages = memory_zalloc((size_t)rows->page_count + 1, sizeof(*rows->pages));
    uint64_t base = rows->first_page << UNWIND_PAGE_SHIFT;
    array_reserve(rows->functions, compile->function_capacity, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const struct range *range = &list->ranges[i];
        if (range->section == RANGE_STUB)
            put(compile, range->start - base, (uint16_t)range->offset);
        else
            compile_function(compile, range, base);
        uint64_t end = range->start + range->length;
        if (i + 1 == list->count || list->ranges[i + 1].start != end)
            put(compile, end - base, UNWIND_RULE_NONE);
        rows->functions[rows->function_count++] = (struct unwind_function){
            .start = (uint32_t)(range->start - base), .length = range->length};
    }
    go_to_page(compile, rows->page_count);
}

static void compile_release(struct compile **compile)
{
    unwind_rows_release(&(*compile)->rows);
    free((*compile)->list.ranges);
    free((*compile)->readers);
    free(*compile);
}

/* On the heap: the interpreter's remembered states are a few KiB. */
static struct compile *compile_new(const struct frame_section *sections, size_t section_count,
                                   const struct unwind_code *code, size_t code_count,
                                   struct unwind_rules *rules)
{
    struct compile *compile = memory_zalloc(1, sizeof(*compile));
    compile->rules = rules;
    compile->code = code;
    compile->code_count = code_count;
    compile->readers = memory_zalloc(section_count + 1, sizeof(*compile->readers));
    for (size_t i = 0; i < section_count; i++) {
        frame_reader_init(&compile->readers[i], &sections[i]);
        list_section(compile, (uint16_t)i);
    }
    return compile;
}

static void hand_over(struct compile *compile, struct unwind_rows *ret_rows)
{
    struct unwind_rows *rows = &compile->rows;
    if (compile->list.count)
        lay_out(compile);
    compile_list(compile);
    if (compile->needs_rbx && !compile->with_rbx) {
        compile->with_rbx = true;
        compile_list(compile);
    }
    /* Rows stay for as long as a process runs: no slack. */
    if (rows->row_count)
        rows->rows = memory_resize(rows->rows, rows->row_count, sizeof(*rows->rows));
    *ret_rows = *rows;
    *rows = (struct unwind_rows){0};
}

static int check_sections(const struct frame_section *sections, size_t section_count,
                          struct error *error)
{
    if (section_count >= RANGE_STUB)
        return error_set(error, -E2BIG, "There are too many sections with unwind information.");
    for (size_t i = 0; i < section_count; i++)
        if (sections[i].length > UNWIND_FRAMES_BYTES_MAX)
            return error_set(error, -E2BIG,
                             "The unwind information has %zu bytes; the limit is %u.",
                             sections[i].length, UNWIND_FRAMES_BYTES_MAX);
    return 0;
}

int unwind_rows_compile_sections(const struct frame_section *sections, size_t section_count,
                                 const struct unwind_code *code, size_t code_count,
                                 struct unwind_rules *rules, struct unwind_rows *ret_rows,
                                 struct error *error)
{
    int r = check_sections(sections, section_count, error);
    if (r < 0)
        return r;
    _cleanup_(compile_release) struct compile *compile =
        compile_new(sections, section_count, code, code_count, rules);
    hand_over(compile, ret_rows);
    return 0;
}

/* ---- files ---- */

/* Linkage stubs that no FDE covers: some linkers write none for them. */
static void list_stubs(struct compile *compile, struct elf_file *file)
{
    static const struct unwind_rule common[] = {
        {.cfa = UNWIND_CFA_SP, .cfa_offset = 16}, /* the stub has pushed, and the call before it */
        {.cfa = UNWIND_CFA_SP, .cfa_offset = 24},
    };
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct elf_section section;
        struct unwind_rule rule;
        uint8_t stub[16];
        bool lazy = !strcmp(names[i], ".plt");
        size_t before = compile->list.count;
        uint64_t skip = lazy ? 16 : 0;
        uint64_t end;
        if (!elf_find_section(file, names[i], &section) || section.size_bytes < skip + 16 ||
            section.size_bytes > UINT32_MAX ||
            __builtin_add_overflow(section.address, section.size_bytes, &end) ||
            code_bytes(compile, section.address, end) != section.size_bytes ||
            elf_read_address(file, section.address + skip, stub, sizeof(stub)) < 0 ||
            !x86_64_plt_rule(names[i], stub, &rule) ||
            overlaps(&compile->list, before, section.address, end))
            continue;
        if (lazy) {
            add_range(&compile->list,
                      (struct range){section.address, 6,
                                     unwind_rules_add(compile->rules, common[0]), RANGE_STUB});
            add_range(&compile->list,
                      (struct range){section.address + 6, 10,
                                     unwind_rules_add(compile->rules, common[1]), RANGE_STUB});
        }
        add_range(&compile->list,
                  (struct range){section.address + skip, (uint32_t)(section.size_bytes - skip),
                                 unwind_rules_add(compile->rules, rule), RANGE_STUB});
        settle_ranges(&compile->list);
    }
}

/* 1 when there is one with content that can be used as it is. */
static int load_section(struct elf_file *file, const char *name, struct buffer *content,
                        struct frame_section *ret_section, struct error *error)
{
    struct elf_section section;
    if (!elf_find_section(file, name, &section) || section.type == SHT_NOBITS ||
        (section.flags & SHF_COMPRESSED))
        return 0;
    int r = elf_read_section(file, &section, UNWIND_FRAMES_BYTES_MAX, content, error);
    if (r < 0)
        return r;
    *ret_section = (struct frame_section){.bytes = (const uint8_t *)content->data,
                                          .length = content->length,
                                          .address = section.address,
                                          .is_debug_frame = name[1] == 'd',
                                          .open_ended = section.open_ended};
    return content->length > 0;
}

/* What is executable and really in the file. */
static size_t code_of(const struct elf_file *file, struct unwind_code code[UNWIND_CODE_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < file->segment_count && count < UNWIND_CODE_MAX; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (segment->type != PT_LOAD || !(segment->flags & PF_X))
            continue;
        uint64_t bytes = segment->file_bytes;
        if (file->layout == ELF_LAYOUT_FILE)
            bytes = MIN(bytes, file->size_bytes - MIN(segment->offset, file->size_bytes));
        code[count++] = (struct unwind_code){segment->address, segment->address + bytes};
    }
    return count;
}

int unwind_rows_compile(struct elf_file *file, struct unwind_rules *rules,
                        struct unwind_rows *ret_rows, struct error *error)
{
    _cleanup_buffer_ struct buffer eh_frame = {0}, debug_frame = {0};
    struct frame_section sections[2];
    size_t count = 0;
    int r = load_section(file, ".eh_frame", &eh_frame, &sections[count], error);
    if (r < 0)
        return r;
    count += r > 0;
    r = load_section(file, ".debug_frame", &debug_frame, &sections[count], error);
    if (r < 0 && !count)
        return r;
    count += r > 0;
    struct unwind_code code[UNWIND_CODE_MAX];
    size_t code_count = code_of(file, code);
    _cleanup_(compile_release) struct compile *compile =
        compile_new(sections, count, code, code_count, rules);
    list_stubs(compile, file);
    hand_over(compile, ret_rows);
    return 0;
}
