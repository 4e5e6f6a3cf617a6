// SPDX-License-Identifier: Apache-2.0
// Compiling call frame information into rows of 4 bytes: see rows.h. The functions are listed and
// sorted first, then each one's rows go straight into its pages.

#include <string.h>

#include "arch/x86_64/code.h"
#include "arch/x86_64/x86_64.h"
#include "base/memory.h"
#include "elf/cfi/cfi.h"
#include "elf/go/rows_go.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/rows_code.h"
#include "elf/unwind/rows_gaps.h"

/* ---- the list of functions ---- */

struct range {
    uint64_t start;
    uint32_t length;  /* at most the 4 GiB that a file's rows span */
    uint32_t offset;  /* of the FDE in its section */
    uint16_t section; /* RANGE_STUB: `offset` is a rule's number; RANGE_GO: a function's */
};
#define RANGE_STUB UINT16_MAX
#define RANGE_GO (UINT16_MAX - 1)

struct range_list {
    struct range *ranges;
    size_t count;
    size_t capacity;
    bool short_of_memory; /* some ranges are missing */
};

static void add_range(struct range_list *list, struct range range)
{
    if (list->short_of_memory ||
        !array_try_reserve(list->ranges, list->capacity, list->count + 1)) {
        list->short_of_memory = true;
        return;
    }
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

#define INSERTED_MAX 32 /* ranges that go into a sorted list one by one */

/* Puts the range behind the first `count`, which are sorted, into its place. */
static void insert_range(struct range_list *list, size_t count)
{
    struct range range = list->ranges[count];
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (by_start(&list->ranges[middle], &range) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(list->ranges + low + 1, list->ranges + low, (count - low) * sizeof(range));
    list->ranges[low] = range;
}

/* Linked files are in order already, or nearly so; and stubs come to a list that is. */
static void sort_ranges(struct range_list *list)
{
    size_t sorted = 1;
    while (sorted < list->count && by_start(&list->ranges[sorted - 1], &list->ranges[sorted]) <= 0)
        sorted++;
    if (sorted + INSERTED_MAX < list->count)
        qsort(list->ranges, list->count, sizeof(*list->ranges), by_start);
    else
        for (; sorted < list->count; sorted++)
            insert_range(list, sorted);
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
    struct elf_file *file;        /* NULL when there are only sections */
    struct frame_reader *readers; /* one per section */
    struct go_rows *go;           /* NULL when there is no Go code */
    uint16_t rule;                /* in force at the end of what has been written */
    uint32_t page;                /* being written */
    bool with_base;
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

/* C code's own tables in the same file take precedence. */
static void list_go(struct compile *compile)
{
    size_t before = compile->list.count;
    for (uint32_t i = 0; compile->go && i < go_rows_count(compile->go); i++) {
        uint64_t start, end;
        if (!go_rows_range(compile->go, i, &start, &end) ||
            overlaps(&compile->list, before, start, end))
            continue;
        uint64_t bytes = code_bytes(compile, start, end);
        if (bytes)
            add_range(&compile->list,
                      (struct range){start, (uint32_t)MIN(bytes, UINT32_MAX), i, RANGE_GO});
        else
            compile->rows.outside++;
    }
    settle_ranges(&compile->list);
}

static void add_row(struct compile *compile, uint32_t offset, uint16_t rule)
{
    struct unwind_rows *rows = &compile->rows;
    if (compile->list.short_of_memory ||
        !array_try_reserve(rows->rows, compile->row_capacity, (size_t)rows->row_count + 1)) {
        compile->list.short_of_memory = true;
        return;
    }
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

/* Code before the first code of a thread may be where its creator continues. */
static void put_clone(struct compile *compile, const struct range *range, uint64_t base)
{
    uint8_t code[X86_64_CLONE_BYTES_MAX + 2];
    struct unwind_rule rule;
    if (!compile->file || range == compile->list.ranges)
        return;
    uint64_t start = range[-1].start + range[-1].length, length = range->start - start;
    if (length && length <= X86_64_CLONE_BYTES_MAX &&
        elf_read_address(compile->file, start, code, length + 2) >= 0 &&
        x86_64_clone_rule(code, length, &rule))
        put(compile, start - base, unwind_rules_add(compile->rules, rule));
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
                x86_64_rule(stretch.state, compile->run.cie.signal_frame, compile->with_base);
            compile->needs_rbx |= x86_64_needs_base(&rule);
            compile->rows.unsupported_rows += rule.cfa == UNWIND_CFA_UNSUPPORTED;
            if (rule.cfa == UNWIND_CFA_END && stretch.start == range->start)
                put_clone(compile, range, base);
            put(compile, stretch.start - base, unwind_rules_add(compile->rules, rule));
        }
    if (r < 0) {
        compile->rows.bad_programs++;
        if (stretch.end < end)
            put(compile, stretch.end - base, UNWIND_RULE_UNSUPPORTED);
    }
}

struct go_context {
    struct compile *compile;
    const struct range *range;
    uint64_t base;
};

static void put_go(void *context, uint64_t start, struct unwind_rule rule)
{
    struct go_context *go = context;
    if (start >= go->range->start && start - go->range->start < go->range->length)
        put(go->compile, start - go->base, unwind_rules_add(go->compile->rules, rule));
}

static void compile_go(struct compile *compile, const struct range *range, uint64_t base)
{
    struct go_context context = {compile, range, base};
    put(compile, range->start - base, UNWIND_RULE_NONE);
    go_rows_compile(compile->go, range->offset, put_go, &context);
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

/* There is room. Code with several rules but without an FDE is still one function. */
static void add_function(struct unwind_rows *rows, const struct range *range, uint64_t base)
{
    uint32_t start = (uint32_t)(range->start - base);
    bool stub =
        range->section == RANGE_STUB && rows->function_count && range[-1].section == RANGE_STUB;
    struct unwind_function *last = &rows->functions[rows->function_count - stub];
    if (stub && last->start + last->length == start)
        last->length += range->length;
    else
        rows->functions[rows->function_count++] =
            (struct unwind_function){.start = start, .length = range->length};
}

#define PADDING_BYTES_MIN 16 /* compilers pad by less */
#define PADDING_BYTES_MAX 63

static bool does_nothing(const uint8_t *code, size_t length)
{
    struct x86_64_instruction instruction = {0};
    while (length && x86_64_decode(code, length, &instruction) && x86_64_is_padding(&instruction) &&
           code[0] != 0xcc) { /* int3 */
        code += instruction.length;
        length -= instruction.length;
    }
    return !length;
}

/* Whether the code behind a range can be run from it: some of glibc's functions in assembly go on
 * into the next one, through instructions that do nothing. Those of one file are few, as long as
 * only such padding is looked at as no compiler writes. */
static bool is_passed_through(struct compile *compile, size_t number)
{
    uint8_t code[PADDING_BYTES_MAX];
    const struct range *range = &compile->list.ranges[number];
    if (!compile->file || number + 1 == compile->list.count)
        return false;
    uint64_t end = range->start + range->length, length = range[1].start - end;
    return length >= PADDING_BYTES_MIN && length <= PADDING_BYTES_MAX &&
           code_bytes(compile, end, range[1].start) == length &&
           elf_read_address(compile->file, end, code, length) >= 0 && does_nothing(code, length);
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
    rows->pages = memory_try_zalloc((size_t)rows->page_count + 1, sizeof(*rows->pages));
    uint64_t base = rows->first_page << UNWIND_PAGE_SHIFT;
    if (!rows->pages ||
        !array_try_reserve(rows->functions, compile->function_capacity, list->count)) {
        compile->list.short_of_memory = true;
        return;
    }
    for (size_t i = 0; i < list->count && !list->short_of_memory; i++) {
        const struct range *range = &list->ranges[i];
        if (range->section == RANGE_STUB)
            put(compile, range->start - base, (uint16_t)range->offset);
        else if (range->section == RANGE_GO)
            compile_go(compile, range, base);
        else
            compile_function(compile, range, base);
        uint64_t end = range->start + range->length;
        bool next = i + 1 < list->count && list->ranges[i + 1].start == end;
        if (!next && !is_passed_through(compile, i))
            put(compile, end - base, UNWIND_RULE_NONE);
        add_function(rows, range, base);
    }
    go_to_page(compile, rows->page_count);
}

static void compile_release(struct compile **compile)
{
    unwind_rows_release(&(*compile)->rows);
    free((*compile)->list.ranges);
    free((*compile)->readers);
    go_rows_free((*compile)->go);
    free(*compile);
}

#define FRAME_BYTES_PER_ROW 4 /* of call frame information; real files have five to six */

/* On the heap: the interpreter's remembered states are a few KiB. */
static struct compile *compile_new(const struct frame_section *sections, size_t section_count,
                                   const struct unwind_code *code, size_t code_count,
                                   struct go_rows *go, struct unwind_rules *rules)
{
    struct compile *compile = memory_zalloc(1, sizeof(*compile));
    compile->rules = rules;
    compile->go = go;
    compile->code = code;
    compile->code_count = code_count;
    compile->readers = memory_try_zalloc(section_count + 1, sizeof(*compile->readers));
    if (!compile->readers) {
        compile->list.short_of_memory = true;
        return compile;
    }
    size_t frame_bytes = 0;
    for (size_t i = 0; i < section_count; i++) {
        /* .debug_frame knows less about Go code than Go's own table. */
        if (sections[i].is_debug_frame)
            list_go(compile);
        frame_reader_init(&compile->readers[i], &sections[i]);
        list_section(compile, (uint16_t)i);
        frame_bytes += sections[i].length;
    }
    list_go(compile);
    /* Room for all rows at once, where growing would copy them: what is not used is never touched,
     * and given back at the end. */
    if (!array_try_reserve(compile->rows.rows, compile->row_capacity,
                           frame_bytes / FRAME_BYTES_PER_ROW))
        compile->list.short_of_memory = true;
    return compile;
}

static int hand_over(struct compile *compile, struct unwind_rows *ret_rows, struct error *error)
{
    struct unwind_rows *rows = &compile->rows;
    if (compile->list.count)
        lay_out(compile);
    if (!compile->list.short_of_memory)
        compile_list(compile);
    if (!compile->list.short_of_memory && compile->needs_rbx && !compile->with_base) {
        compile->with_base = true;
        compile_list(compile);
    }
    /* Rows stay for as long as a process runs: no slack. */
    struct unwind_row *fitting = NULL;
    if (compile->list.short_of_memory)
        return error_set(error, -ENOMEM, "There is not enough memory for the unwind rows.");
    if (compile->row_capacity)
        fitting = memory_try_resize(rows->rows, rows->row_count, sizeof(*rows->rows));
    rows->rows = fitting ? fitting : rows->rows;
    *ret_rows = *rows;
    *rows = (struct unwind_rows){0};
    return 0;
}

static int check_sections(const struct frame_section *sections, size_t section_count,
                          struct error *error)
{
    if (section_count >= RANGE_GO)
        return error_set(error, -E2BIG, "There are too many sections with unwind information.");
    for (size_t i = 0; i < section_count; i++)
        if (sections[i].length > UNWIND_FRAMES_BYTES_MAX)
            return error_set(error, -E2BIG, "The unwind information is %zu bytes; the limit is %u.",
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
        compile_new(sections, section_count, code, code_count, NULL, rules);
    return hand_over(compile, ret_rows, error);
}

/* ---- files ---- */

#define ENTRY_BYTES_MAX 256 /* a few dozen instructions */

/* Linkage stubs that no FDE covers: some linkers write none for them. */
static void list_stubs(struct compile *compile, struct elf_file *file)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct elf_section section;
        struct x86_64_plt plt;
        uint8_t start[X86_64_PLT_START_BYTES];
        size_t before = compile->list.count;
        uint64_t end;
        if (!elf_find_section(file, names[i], &section) || section.size_bytes < 16 ||
            section.size_bytes > UINT32_MAX ||
            __builtin_add_overflow(section.address, section.size_bytes, &end) ||
            code_bytes(compile, section.address, end) != section.size_bytes)
            continue;
        size_t length = MIN(section.size_bytes, sizeof(start));
        if (elf_read_address(file, section.address, start, length) < 0 ||
            !x86_64_plt_rules(names[i], start, length, &plt) ||
            overlaps(&compile->list, before, section.address, end))
            continue;
        for (unsigned part = 0; part < plt.count; part++) {
            uint32_t from = plt.parts[part].offset;
            uint32_t to =
                part + 1 < plt.count ? plt.parts[part + 1].offset : (uint32_t)section.size_bytes;
            add_range(&compile->list,
                      (struct range){section.address + from, to - from,
                                     unwind_rules_add(compile->rules, plt.parts[part].rule),
                                     RANGE_STUB});
        }
        settle_ranges(&compile->list);
    }
}

/* _init and _fini, of which no piece has call frame information. */
static void list_init(struct compile *compile, struct elf_file *file)
{
    static const struct unwind_rule rules[] = {{.cfa = UNWIND_CFA_SP, .cfa_offset = 8},
                                               {.cfa = UNWIND_CFA_SP, .cfa_offset = 16}};
    static const char *const names[] = {".init", ".fini"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct elf_section section;
        uint8_t first[8], last[5];
        uint32_t entered;
        uint64_t end;
        if (!elf_find_section(file, names[i], &section) || section.size_bytes < sizeof(first) ||
            section.size_bytes > UNWIND_PAGE_BYTES ||
            __builtin_add_overflow(section.address, section.size_bytes, &end) ||
            code_bytes(compile, section.address, end) != section.size_bytes ||
            elf_read_address(file, section.address, first, sizeof(first)) < 0 ||
            elf_read_address(file, end - sizeof(last), last, sizeof(last)) < 0 ||
            !x86_64_is_init(first, last, &entered) || entered >= section.size_bytes - 1 ||
            overlaps(&compile->list, compile->list.count, section.address, end))
            continue;
        uint32_t outer = unwind_rules_add(compile->rules, rules[0]);
        uint32_t inner = unwind_rules_add(compile->rules, rules[1]);
        uint32_t left = (uint32_t)section.size_bytes - 1;
        const struct range ranges[] = {
            {section.address, entered, outer, RANGE_STUB},
            {section.address + entered, left - entered, inner, RANGE_STUB},
            {section.address + left, 1, outer, RANGE_STUB},
        };
        for (size_t k = 0; k < ARRAY_LENGTH(ranges); k++)
            add_range(&compile->list, ranges[k]);
        settle_ranges(&compile->list);
    }
}

/* The kernel starts a program here, so this code has no caller. The dynamic loader's start has no
 * tables; code up to the next function belongs to it, if that is near. */
static void list_entry(struct compile *compile, struct elf_file *file)
{
    struct range_list *list = &compile->list;
    uint64_t start = file->entry;
    if (!start || !code_bytes(compile, start, start + 1) ||
        overlaps(list, list->count, start, start + 1))
        return;
    for (size_t i = 0; i < list->count; i++) {
        if (list->ranges[i].start < start)
            continue;
        if (list->ranges[i].start - start <= ENTRY_BYTES_MAX)
            add_range(list, (struct range){start, (uint32_t)(list->ranges[i].start - start),
                                           UNWIND_RULE_END, RANGE_STUB});
        break;
    }
    settle_ranges(list);
}

/* ---- code without call frame information ---- */

#define GAP_BYTES_MAX (16u << 20) /* of code that is looked at in one file */
#define GAP_BYTES_MIN 16          /* less is what aligns the next function */

struct code_context {
    struct compile *compile;
    size_t before; /* ranges that were there first */
};

/* Up to the next range, if it begins in none. */
static uint64_t free_code_bytes(void *context, uint64_t start, uint64_t end)
{
    const struct code_context *code = context;
    const struct range_list *list = &code->compile->list;
    size_t low = 0, high = code->before;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->ranges[middle].start + list->ranges[middle].length <= start)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < code->before && list->ranges[low].start < end)
        end = MAX(start, list->ranges[low].start);
    return start < end ? code_bytes(code->compile, start, end) : 0;
}

static void put_code(void *context, uint64_t start, uint32_t length, const struct unwind_rule *rule)
{
    const struct code_context *code = context;
    add_range(
        &code->compile->list,
        (struct range){start, length, unwind_rules_add(code->compile->rules, *rule), RANGE_STUB});
}

/* Between call frame information and a thread's first code: put_clone() has the rule. */
static bool is_clone(struct elf_file *file, uint64_t start, uint64_t end)
{
    uint8_t code[X86_64_CLONE_BYTES_MAX + 2];
    uint64_t length = end - start;
    struct unwind_rule rule;
    return length <= X86_64_CLONE_BYTES_MAX &&
           elf_read_address(file, start, code, length + 2) >= 0 &&
           x86_64_clone_rule(code, length, &rule);
}

/* Code that nothing above has described. */
static void list_gaps(struct compile *compile, struct elf_file *file, const struct code_rows *rows)
{
    uint64_t bytes_left = GAP_BYTES_MAX;
    size_t count = compile->list.count, next = 0;
    for (size_t i = 0; i < compile->code_count; i++) {
        const struct unwind_code *code = &compile->code[i];
        for (uint64_t at = code->start; at < code->end;) {
            const struct range *ranges = compile->list.ranges;
            while (next < count && ranges[next].start + ranges[next].length <= at)
                next++;
            uint64_t end = next < count ? MIN(code->end, ranges[next].start) : code->end;
            if (end > at && end - at >= GAP_BYTES_MIN && !is_clone(file, at, end))
                gap_rows_compile(file, at, end, &bytes_left, rows);
            ranges = compile->list.ranges;
            at = next < count ? MAX(end, ranges[next].start + ranges[next].length) : code->end;
        }
    }
}

static void list_code(struct compile *compile, struct elf_file *file)
{
    struct code_context context = {.compile = compile, .before = compile->list.count};
    struct code_rows rows = {&context, free_code_bytes, put_code};
    int more = code_rows_compile(file, &rows);
    if (more < 0)
        compile->list.short_of_memory = true;
    settle_ranges(&compile->list);
    if (more > 0)
        list_gaps(compile, file, &rows);
    settle_ranges(&compile->list);
}

/* One of both. */
struct loaded_section {
    struct buffer whole;
    struct frame_window window;
};

static void loaded_section_release(struct loaded_section *content)
{
    buffer_release(&content->whole);
    frame_window_release(&content->window);
}

/* 1 when there is one with content that can be used as it is. */
static int load_section(struct elf_file *file, const char *name, struct loaded_section *content,
                        struct frame_section *ret_section, struct error *error)
{
    struct elf_section section;
    if (!elf_find_section(file, name, &section) || section.type == SHT_NOBITS)
        return 0;
    struct frame_window *window = &content->window;
    struct buffer *whole = &content->whole;
    int r = frame_window_open(window, file, &section, UNWIND_FRAMES_BYTES_MAX, error);
    if (!r)
        r = elf_unpack_section(file, &section, UNWIND_FRAMES_BYTES_MAX, whole, error);
    if (r < 0)
        return r;
    *ret_section = (struct frame_section){.bytes = (const uint8_t *)whole->data,
                                          .length = whole->length,
                                          .address = section.address,
                                          .is_debug_frame = name[1] != 'e',
                                          .open_ended = section.open_ended};
    if (window->bytes) {
        ret_section->bytes = window->bytes;
        ret_section->length = window->length;
        ret_section->window = window;
    }
    return ret_section->length > 0;
}

/* The ranges that are executable and really in the file. */
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
    _cleanup_(loaded_section_release) struct loaded_section eh_frame = {0}, debug_frame = {0};
    struct frame_section sections[2];
    size_t count = 0;
    int r = load_section(file, ".eh_frame", &eh_frame, &sections[count], error);
    if (r < 0)
        return r;
    count += r > 0;
    r = load_section(file, ".debug_frame", &debug_frame, &sections[count], error);
    if (!r)
        r = load_section(file, ".zdebug_frame", &debug_frame, &sections[count], error);
    if (r < 0 && (!count || r == -ENOMEM))
        return r;
    count += r > 0;
    struct unwind_code code[UNWIND_CODE_MAX];
    size_t code_count = code_of(file, code);
    _cleanup_(compile_release) struct compile *compile =
        compile_new(sections, count, code, code_count, go_rows_new(file), rules);
    compile->file = file;
    list_stubs(compile, file);
    list_init(compile, file);
    list_entry(compile, file);
    list_code(compile, file);
    return hand_over(compile, ret_rows, error);
}
