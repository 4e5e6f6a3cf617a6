// SPDX-License-Identifier: Apache-2.0
// Go's table of functions in each of its layouts, how it is found in files, and what becomes of it
// in unwind rows. Then the same with damage at every byte.

#include "base/memory.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/unwind.h"
#include "gotable.h"
#include "unit.h"

static void load_table(enum gopclntab_layout layout, struct gopclntab *ret_table)
{
    struct buffer content = {0};
    struct error error = {0};
    size_t tree = go_make_table(&content, layout, true);
    struct gopclntab_place place = {.address = GO_TABLE, .functions = GO_TABLE + tree};
    if (gopclntab_parse(&content, &place, ret_table, &error) < 0)
        fail_msg("%s", error.text);
    assert_null(content.data);
}

/* ---- the table ---- */

static void test_functions(void **state)
{
    (void)state;
    for (int layout = GOPCLNTAB_1_2; layout <= GOPCLNTAB_1_20; layout++) {
        _cleanup_gopclntab_ struct gopclntab table = {0};
        struct gopclntab_function function;
        load_table(layout, &table);
        assert_int_equal(table.layout, layout);
        assert_int_equal(table.function_count, GO_FUNCTIONS);
        for (uint32_t i = 0; i < GO_FUNCTIONS; i++) {
            uint64_t start = GO_TEXT + i * GO_FUNCTION_BYTES;
            assert_true(gopclntab_function(&table, i, &function));
            assert_int_equal(function.start, start);
            assert_int_equal(function.end, start + GO_FUNCTION_BYTES);
            if (i)
                assert_string_equal(function.name, go_functions[i].name);
            assert_int_equal(function.flags, layout > GOPCLNTAB_1_2 ? go_functions[i].flags : 0);
            assert_int_equal(function.start_line, layout == GOPCLNTAB_1_20 ? 8 : 0);
            assert_true(gopclntab_find(&table, start + 63, &function));
            assert_int_equal(function.start, start);
        }
        assert_false(gopclntab_function(&table, GO_FUNCTIONS, &function));
        assert_false(gopclntab_find(&table, GO_TEXT - 1, &function));
        assert_false(gopclntab_find(&table, GO_TEXT + GO_FUNCTIONS * 64, &function));
    }
}

static void test_values(void **state)
{
    (void)state;
    for (int layout = GOPCLNTAB_1_2; layout <= GOPCLNTAB_1_20; layout++) {
        _cleanup_gopclntab_ struct gopclntab table = {0};
        struct gopclntab_function function;
        struct gopclntab_run run;
        load_table(layout, &table);
        for (uint32_t i = 0; i < GO_FUNCTIONS; i++) {
            const struct go_value *value = go_functions[i].frames;
            uint64_t at = GO_TEXT + i * GO_FUNCTION_BYTES;
            assert_true(gopclntab_function(&table, i, &function));
            gopclntab_run_start(&run, &table, &function, function.sp_values);
            for (; value->end; value++) {
                assert_true(gopclntab_run_next(&run));
                assert_int_equal(run.start, at);
                assert_int_equal(run.value, value->value);
                at = GO_TEXT + i * GO_FUNCTION_BYTES + value->end;
                assert_int_equal(run.end, at);
            }
            assert_false(gopclntab_run_next(&run));
        }
    }
}

static void assert_frame(const struct gopclntab_frame *frame, const char *name, const char *file,
                         uint32_t line)
{
    assert_string_equal(frame->name, name);
    assert_string_equal(frame->file, file);
    assert_int_equal(frame->line, line);
}

static void test_frames(void **state)
{
    (void)state;
    for (int layout = GOPCLNTAB_1_2; layout <= GOPCLNTAB_1_20; layout++) {
        _cleanup_gopclntab_ struct gopclntab table = {0};
        struct gopclntab_frame frames[4];
        bool generic = layout >= GOPCLNTAB_1_18;
        const char *name = generic ? "main.framed[...]" : "main.framed[go.shape.int]";
        load_table(layout, &table);
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + 15, frames, 4), 1);
        assert_frame(&frames[0], name, "/src/main.go", 10);
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + 24, frames, 4), 1);
        assert_frame(&frames[0], name, "/src/main.go", 12);
        if (!generic) {
            /* The place in the inlined function, whose name the old layouts keep elsewhere. */
            assert_int_equal(gopclntab_frames(&table, GO_TEXT + 16, frames, 4), 1);
            assert_frame(&frames[0], name, "/src/inlined.go", 50);
            continue;
        }
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + 16, frames, 4), 2);
        assert_frame(&frames[0], "main.inlined", "/src/inlined.go", 50);
        assert_int_equal(frames[0].start_line, layout == GOPCLNTAB_1_20 ? 49 : 0);
        assert_frame(&frames[1], name, "/src/main.go", 10);
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + 23, frames, 4), 2);
        /* No room: the function itself. */
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + 16, frames, 1), 1);
        assert_string_equal(frames[0].name, name);
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + 16, frames, 0), 0);
        assert_int_equal(gopclntab_frames(&table, GO_TEXT - 1, frames, 4), 0);
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + GO_FOREIGN * 64, frames, 4), 1);
        assert_string_equal(frames[0].name, "from_c");
        assert_null(frames[0].file);
        assert_int_equal(frames[0].line, 0);
    }
}

/* A caller of an inlined call that is inlined into itself. */
static void test_endless_inlines(void **state)
{
    (void)state;
    struct buffer content = {0};
    _cleanup_gopclntab_ struct gopclntab table = {0};
    struct gopclntab_frame frames[100];
    size_t tree = go_make_table(&content, GOPCLNTAB_1_20, true);
    struct gopclntab_place place = {.address = GO_TABLE, .functions = GO_TABLE + tree};
    content.data[tree + 8] = 16; /* the parent: itself */
    assert_int_equal(gopclntab_parse(&content, &place, &table, NULL), 0);
    assert_int_equal(gopclntab_frames(&table, GO_TEXT + 16, frames, 100), 100);
}

/* ---- files ---- */

static int load_image(const struct go_image_options *options, struct buffer *image,
                      struct elf_file *file, struct gopclntab *table, struct error *error)
{
    go_make_image(image, options);
    if (elf_open_memory(image->data, image->length, ELF_LAYOUT_FILE, file, error) < 0)
        fail_msg("%s", error->text);
    return gopclntab_load(file, table, error);
}

static void test_files(void **state)
{
    (void)state;
    static const struct go_image_options all[] = {
        {GOPCLNTAB_1_2},
        {GOPCLNTAB_1_16, .no_name = true},
        {GOPCLNTAB_1_18, .with_text = true},
        {GOPCLNTAB_1_18, .no_name = true, .relocations = true},
        {GOPCLNTAB_1_20, .with_text = true, .no_name = true},
        {GOPCLNTAB_1_20}, /* as from Go 1.26 on */
        {GOPCLNTAB_1_20, .no_name = true},
        {GOPCLNTAB_1_20, .no_name = true, .relocations = true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++) {
        _cleanup_buffer_ struct buffer image = {0};
        _cleanup_elf_ struct elf_file file = {.fd = -1};
        _cleanup_gopclntab_ struct gopclntab table = {0};
        struct gopclntab_frame frames[4];
        struct error error = {0};
        if (load_image(&all[i], &image, &file, &table, &error) < 0)
            fail_msg("%zu: %s", i, error.text);
        assert_int_equal(table.address, GO_TABLE);
        bool trees = all[i].layout >= GOPCLNTAB_1_18;
        assert_int_equal(gopclntab_frames(&table, GO_TEXT + 16, frames, 4), 1 + trees);
        assert_string_equal(frames[trees].file, trees ? "/src/main.go" : "/src/inlined.go");
    }
}

static void test_no_table(void **state)
{
    (void)state;
    struct go_image_options options = {GOPCLNTAB_1_20};
    _cleanup_buffer_ struct buffer image = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_gopclntab_ struct gopclntab table = {0};
    struct error error = {0};
    assert_int_equal(load_image(&options, &image, &file, &table, &error), 0);
    gopclntab_release(&table);
    /* Without the module data, nobody says where the code is. */
    memset(image.data + GO_IMAGE_DATA, 0, 0x800);
    assert_int_equal(gopclntab_load(&file, &table, &error), -EBADMSG);
    assert_says(&error, "the start of the code");
    image.data[GO_IMAGE_TABLE + 7] = 4;
    assert_int_equal(gopclntab_load(&file, &table, &error), -ENOTSUP);
    image.data[GO_IMAGE_TABLE] = 0;
    assert_int_equal(gopclntab_load(&file, &table, &error), -EBADMSG);
    file.machine = EM_AARCH64;
    assert_int_equal(gopclntab_load(&file, &table, &error), -ENOENT);
}

/* ---- rows ---- */

struct expected {
    uint32_t function, start, end;
    struct unwind_rule rule;
};

#define SP(offset)                                                                                 \
    {                                                                                              \
        .cfa = UNWIND_CFA_SP, .cfa_offset = (offset)                                               \
    }
#define SP_SAVED(offset)                                                                           \
    {                                                                                              \
        .cfa = UNWIND_CFA_SP, .cfa_offset = (offset), .saved = UNWIND_FP_AT_CFA, .fp_slot = -2     \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .cfa = UNWIND_CFA_NONE                                                                     \
    }
#define END                                                                                        \
    {                                                                                              \
        .cfa = UNWIND_CFA_END                                                                      \
    }

static const struct expected expected[] = {
    {GO_FRAMED, 0, 1, SP(8)},
    {GO_FRAMED, 1, 8, SP_SAVED(16)},
    {GO_FRAMED, 8, 32, SP_SAVED(32)},
    {GO_FRAMED, 32, 33, SP_SAVED(16)},
    {GO_FRAMED, 33, 34, SP(8)},
    {GO_FRAMED, 34, 64, NONE},
    /* Before it is saved rbp is the caller's. */
    {GO_OLD, 0, 4, SP(8)},
    {GO_OLD, 4, 9, SP(32)},
    {GO_OLD, 9, 48, SP_SAVED(32)},
    {GO_OLD, 48, 49, SP(8)},
    {GO_EXIT, 0, 64, END},
    {GO_SYSTEMSTACK, 0, 1, SP(8)},
    {GO_SYSTEMSTACK, 1, 4, SP_SAVED(16)},
    {GO_SYSTEMSTACK,
     4,
     14,
     {.cfa = UNWIND_CFA_OTHER_STACK, .cfa_offset = 16, .saved = UNWIND_FP_AT_CFA, .fp_slot = -2}},
    {GO_SYSTEMSTACK, 14, 15, SP_SAVED(16)},
    {GO_SYSTEMSTACK, 15, 16, SP(8)},
    {GO_SYSTEMSTACK, 16, 63, NONE},
    /* One byte early, where the address is looked up. */
    {GO_SIGRETURN, (uint32_t)-1, 64, {.cfa = UNWIND_CFA_SIGNAL, .cfa_offset = 160}},
    /* Padding, and code that can't be followed and sets no frame pointer up. */
    {GO_FOREIGN, 0, 1, NONE},
    {GO_FOREIGN, 1, 64, {.cfa = UNWIND_CFA_LOST}},
    {GO_MCALL, 0, 1, SP(8)},
    {GO_MCALL, 1, 4, SP_SAVED(16)},
    {GO_MCALL, 4, 16, END},
    {GO_ALIGNED, 0, 1, SP(8)},
    {GO_ALIGNED, 1, 4, SP_SAVED(16)},
    {GO_ALIGNED, 4, 64, NONE},
};

static void test_rows(void **state)
{
    (void)state;
    struct go_image_options options = {GOPCLNTAB_1_20};
    _cleanup_buffer_ struct buffer image = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    struct error error = {0};
    go_make_image(&image, &options);
    unwind_rules_init(&rules);
    assert_int_equal(elf_open_memory(image.data, image.length, ELF_LAYOUT_FILE, &file, &error), 0);
    assert_int_equal(unwind_rows_compile(&file, &rules, &rows, &error), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(expected); i++)
        for (int64_t at = (int32_t)expected[i].start; at < expected[i].end; at++) {
            uint64_t address = GO_TEXT + expected[i].function * 64 + (uint64_t)at;
            const struct unwind_rule *rule = &rules.rules[unwind_rows_find(&rows, address)];
            if (memcmp(rule, &expected[i].rule, sizeof(*rule)) != 0)
                fail_msg("%s+%lld: cfa %u, offset %d, saved %u, slot %d",
                         go_functions[expected[i].function].name, (long long)at, rule->cfa,
                         rule->cfa_offset, rule->saved, rule->fp_slot);
        }
    assert_int_equal(rows.function_count, GO_FUNCTIONS);
}

/* ---- from stack to stack ---- */

static bool find_rows(void *context, uint64_t address, struct unwind_place *ret_place)
{
    *ret_place = (struct unwind_place){.rows = context};
    return address >= GO_TEXT && address < GO_TEXT + 0x1000;
}

#define GOROUTINE 0xc000100000ull /* below the thread's stack */
static uint64_t goroutine[8];

static bool read_goroutine(void *context, uint64_t address, uint64_t *ret_word)
{
    (void)context;
    uint64_t number = (address - GOROUTINE) / 8;
    if (address < GOROUTINE || number >= ARRAY_LENGTH(goroutine))
        return false;
    *ret_word = goroutine[number];
    return true;
}

static void test_switch(void **state)
{
    (void)state;
    struct go_image_options options = {GOPCLNTAB_1_20};
    _cleanup_buffer_ struct buffer image = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    go_make_image(&image, &options);
    unwind_rules_init(&rules);
    assert_int_equal(elf_open_memory(image.data, image.length, ELF_LAYOUT_FILE, &file, NULL), 0);
    assert_int_equal(unwind_rows_compile(&file, &rules, &rows, NULL), 0);
    /* main.framed, called by systemstack on the thread's stack, which main.old called. */
    uint64_t systemstack = GO_TEXT + GO_SYSTEMSTACK * 64 + 10, old = GO_TEXT + GO_OLD * 64 + 20;
    uint64_t goexit = GO_TEXT + GO_EXIT * 64 + 1;
    uint64_t stack[] = {0, 0, GOROUTINE + 16, systemstack, 0, 0};
    memset(goroutine, 0, sizeof(goroutine));
    goroutine[2] = GOROUTINE + 48; /* systemstack's frame: rbp and the return address */
    goroutine[3] = old;
    goroutine[7] = goexit;
    struct unwind_input input = {.registers =
                                     unwind_registers_of(GO_TEXT + 20, 0x7ffe0000, 0x7ffe0010),
                                 .stack = (const uint8_t *)stack,
                                 .stack_bytes = sizeof(stack),
                                 .stack_address = 0x7ffe0000,
                                 .rules = &rules,
                                 .find = find_rows,
                                 .read = read_goroutine,
                                 .context = &rows};
    struct unwind_frame frames[8];
    size_t count = 0;
    assert_int_equal(unwind_walk(&input, frames, 8, &count), UNWIND_END_COMPLETE);
    assert_int_equal(count, 4);
    assert_int_equal(frames[1].address, systemstack);
    assert_int_equal(frames[2].address, old);
    assert_int_equal(frames[3].address, goexit);
    /* A copy of one stack does not have the other. */
    input.read = NULL;
    assert_int_equal(unwind_walk(&input, frames, 8, &count), UNWIND_END_TRUNCATED);
    assert_int_equal(count, 2);
    /* A stack that leads to itself. */
    input.read = read_goroutine;
    goroutine[2] = GOROUTINE + 16;
    goroutine[3] = systemstack;
    struct unwind_frame many[200];
    assert_int_equal(unwind_walk(&input, many, 200, &count), UNWIND_END_LOOP);
    assert_in_range(count, 2, 100);
}

/* ---- damage ---- */

/* Asks everything; whatever comes, it must end. */
static void use_table(struct buffer *content, size_t tree)
{
    _cleanup_gopclntab_ struct gopclntab table = {0};
    struct gopclntab_place place = {.address = GO_TABLE, .functions = GO_TABLE + tree};
    struct error error = {0};
    int r = gopclntab_parse(content, &place, &table, &error);
    if (r < 0) {
        assert_int_equal(r, error.code);
        assert_true(error.text[0]);
        buffer_release(content);
        return;
    }
    for (uint32_t i = 0; i < table.function_count; i++) {
        struct gopclntab_function function;
        struct gopclntab_frame frames[8];
        if (!gopclntab_function(&table, i, &function))
            continue;
        size_t count = gopclntab_frames(&table, function.start + 16, frames, 8);
        for (size_t k = 0; k < count; k++)
            assert_in_range(strlen(frames[k].name) + (frames[k].file ? strlen(frames[k].file) : 0),
                            0, 2 * content->length + 4096);
    }
}

static void test_damage(void **state)
{
    (void)state;
    for (int layout = GOPCLNTAB_1_2; layout <= GOPCLNTAB_1_20; layout++) {
        _cleanup_buffer_ struct buffer whole = {0};
        size_t tree = go_make_table(&whole, layout, true);
        for (size_t i = 0; i < whole.length; i++) {
            struct buffer cut = {0};
            buffer_add(&cut, whole.data, i);
            use_table(&cut, tree);
            for (int bit = 0; bit < 8; bit++) {
                struct buffer flipped = {0};
                buffer_add(&flipped, whole.data, whole.length);
                flipped.data[i] ^= (char)(1 << bit);
                use_table(&flipped, tree);
            }
        }
    }
}

static void test_damaged_files(void **state)
{
    (void)state;
    static const struct go_image_options all[] = {
        {GOPCLNTAB_1_20}, {GOPCLNTAB_1_18, .no_name = true, .relocations = true}};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++) {
        _cleanup_buffer_ struct buffer whole = {0};
        go_make_image(&whole, &all[i]);
        for (size_t at = 0; at < whole.length; at += 1 + (!whole.data[at]) * 6) {
            _cleanup_elf_ struct elf_file file = {.fd = -1};
            _cleanup_rules_ struct unwind_rules rules;
            _cleanup_rows_ struct unwind_rows rows = {0};
            unwind_rules_init(&rules);
            whole.data[at] ^= 0x55;
            if (elf_open_memory(whole.data, whole.length, ELF_LAYOUT_FILE, &file, NULL) == 0)
                unwind_rows_compile(&file, &rules, &rows, NULL);
            whole.data[at] ^= 0x55;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions), cmocka_unit_test(test_values),
        cmocka_unit_test(test_frames),    cmocka_unit_test(test_endless_inlines),
        cmocka_unit_test(test_files),     cmocka_unit_test(test_no_table),
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_switch),
        cmocka_unit_test(test_damage),    cmocka_unit_test(test_damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
