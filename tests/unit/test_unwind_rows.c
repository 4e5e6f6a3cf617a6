// SPDX-License-Identifier: Apache-2.0
// Call frame information written by hand, and the rows that come out of it: every instruction,
// every form of entry and pointer, and damage of every kind.

#include "base/memory.h"
#include "elf/unwind/rows.h"
#include "frames.h"
#include "unit.h"

#define SECTION 0x400000
#define CODE 0x1000

/* Bytes of a program; its length is known. */
#define PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

struct fixture {
    struct buffer bytes;
    struct unwind_rules rules;
    struct unwind_rows rows;
};

static const struct unwind_code anywhere = {0, UINT64_MAX};

static void fixture_release(struct fixture *fixture)
{
    buffer_release(&fixture->bytes);
    unwind_rules_release(&fixture->rules);
    unwind_rows_release(&fixture->rows);
}
#define _cleanup_fixture_ _cleanup_(fixture_release)

static void compile_bytes(struct fixture *fixture, bool debug_frame)
{
    /* An exact copy, so that a sanitizer sees a read beyond it. */
    _cleanup_free_ uint8_t *exact = memory_alloc(fixture->bytes.length + 1);
    if (fixture->bytes.length)
        memcpy(exact, fixture->bytes.data, fixture->bytes.length);
    struct frame_section section = {.bytes = exact,
                                    .length = fixture->bytes.length,
                                    .address = SECTION,
                                    .is_debug_frame = debug_frame};
    struct error error = {0};
    unwind_rows_release(&fixture->rows);
    unwind_rules_release(&fixture->rules);
    unwind_rules_init(&fixture->rules);
    assert_int_equal(unwind_rows_compile_sections(&section, 1, &anywhere, 1, &fixture->rules,
                                                  &fixture->rows, &error),
                     0);
}

static struct unwind_rule rule_at(const struct fixture *fixture, uint64_t address)
{
    uint16_t number = unwind_rows_find(&fixture->rows, address);
    assert_true(number < fixture->rules.count);
    return fixture->rules.rules[number];
}

#define assert_rule(fixture, address, ...)                                                         \
    do {                                                                                           \
        struct unwind_rule got_ = rule_at(fixture, address);                                       \
        struct unwind_rule want_ = {__VA_ARGS__};                                                  \
        if (memcmp(&got_, &want_, sizeof(got_)))                                                   \
            fail_msg("at %#llx: cfa %u argument %u offset %d saved %#x slot %d",                   \
                     (unsigned long long)(address), got_.cfa, got_.argument, got_.cfa_offset,      \
                     got_.saved, got_.fp_slot);                                                    \
    } while (0)

/* What the rows promise, whatever they were made from. */
static void check_rows(const struct unwind_rows *rows, const struct unwind_rules *rules)
{
    assert_int_equal(rows->pages[0], 0);
    assert_int_equal(rows->pages[rows->page_count], rows->row_count);
    for (uint32_t page = 0; page < rows->page_count; page++) {
        uint32_t first = rows->pages[page], end = rows->pages[page + 1];
        assert_true(first <= end);
        if (first < end)
            assert_int_equal(rows->rows[first].offset, 0);
        for (uint32_t i = first; i < end; i++) {
            assert_true(rows->rows[i].offset < UNWIND_PAGE_BYTES);
            assert_true(rows->rows[i].rule < rules->count);
            if (i > first) {
                assert_true(rows->rows[i].offset > rows->rows[i - 1].offset);
                assert_true(rows->rows[i].rule != rows->rows[i - 1].rule);
            }
        }
    }
    for (uint32_t i = 1; i < rows->function_count; i++)
        assert_true(rows->functions[i].start >=
                    rows->functions[i - 1].start + rows->functions[i - 1].length);
}

/* One function [CODE, CODE + 0x100) with a program. */
static void one_function(struct fixture *fixture, const void *program, size_t length)
{
    fixture->bytes.length = 0;
    size_t cie = put_cie(&fixture->bytes, &usual_style, NULL, 0);
    put_fde(&fixture->bytes, &usual_style, cie, SECTION, CODE, CODE + 0x100, program, length);
    compile_bytes(fixture, false);
    check_rows(&fixture->rows, &fixture->rules);
}

static void rules_are_shared(void **state)
{
    (void)state;
    _cleanup_rules_ struct unwind_rules rules;
    unwind_rules_init(&rules);
    assert_int_equal(sizeof(struct unwind_rule), 8);
    assert_int_equal(sizeof(struct unwind_row), 4);
    assert_int_equal(rules.rules[UNWIND_RULE_NONE].cfa, UNWIND_CFA_NONE);
    assert_int_equal(rules.rules[UNWIND_RULE_END].cfa, UNWIND_CFA_END);
    assert_int_equal(rules.rules[UNWIND_RULE_UNSUPPORTED].cfa, UNWIND_CFA_UNSUPPORTED);
    struct unwind_rule rule = {.cfa = UNWIND_CFA_SP, .cfa_offset = 8};
    assert_int_equal(unwind_rules_add(&rules, rule), 3);
    assert_int_equal(unwind_rules_add(&rules, rule), 3);
    for (int i = 1; rules.count < UNWIND_RULES_MAX; i++)
        unwind_rules_add(&rules, (struct unwind_rule){.cfa = UNWIND_CFA_FP, .cfa_offset = i});
    rule.cfa_offset = 16;
    assert_int_equal(unwind_rules_add(&rules, rule), UNWIND_RULE_UNSUPPORTED);
    assert_int_equal(rules.rejected, 1);
    rule.cfa_offset = 8;
    assert_int_equal(unwind_rules_add(&rules, rule), 3);
}

static void prologues_and_epilogues(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    one_function(&fixture, PROGRAM(0x41,              /* push %rbp */
                                   0x0e, 16, 0x86, 2, /* CFA = rsp + 16, rbp at CFA - 16 */
                                   0x43, 0x0d, 6,     /* CFA = rbp + 16 */
                                   0x02, 0x20, 0x0a,  /* remember */
                                   0x0c, 7, 8, 0xc6,  /* CFA = rsp + 8, rbp restored */
                                   0x03, 1, 0, 0x0b,  /* after one byte: as remembered */
                                   0x04, 2, 0, 0, 0, 0x2e, 16, 0x2d, 0x00));
    assert_rule(&fixture, CODE - 1, UNWIND_CFA_NONE);
    assert_rule(&fixture, CODE, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 1, UNWIND_CFA_SP, UNWIND_FP_AT_CFA, 0, -2, 16);
    assert_rule(&fixture, CODE + 3, UNWIND_CFA_SP, UNWIND_FP_AT_CFA, 0, -2, 16);
    assert_rule(&fixture, CODE + 4, UNWIND_CFA_FP, UNWIND_FP_AT_CFA, 0, -2, 16);
    assert_rule(&fixture, CODE + 0x23, UNWIND_CFA_FP, UNWIND_FP_AT_CFA, 0, -2, 16);
    assert_rule(&fixture, CODE + 0x24, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 0x25, UNWIND_CFA_FP, UNWIND_FP_AT_CFA, 0, -2, 16);
    assert_rule(&fixture, CODE + 0xff, UNWIND_CFA_FP, UNWIND_FP_AT_CFA, 0, -2, 16);
    assert_rule(&fixture, CODE + 0x100, UNWIND_CFA_NONE);
    assert_int_equal(fixture.rows.bad_programs, 0);
}

static void every_register_instruction(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    one_function(&fixture, PROGRAM(0x05, 6, 3,             /* offset_extended */
                                   0x41, 0x06, 6,          /* restore_extended */
                                   0x41, 0x11, 6, 4,       /* offset_extended_sf */
                                   0x41, 0x08, 6,          /* same_value */
                                   0x41, 0x2f, 6, 0x7e,    /* negative_offset_extended */
                                   0x41, 0x07, 6,          /* undefined */
                                   0x41, 0x09, 6, 3,       /* register */
                                   0x41, 0x14, 6, 1,       /* val_offset */
                                   0x41, 0x15, 6, 1,       /* val_offset_sf */
                                   0x41, 0x16, 6, 1, 0x30, /* val_expression */
                                   0x41, 0x08, 6,          /* same again */
                                   0x41, 0x85, 7, 0x09, 3, 12, 0x07, 1, 0x16, 2, 1, 0x30));
    assert_rule(&fixture, CODE, UNWIND_CFA_SP, UNWIND_FP_AT_CFA, 0, -3, 8);
    assert_rule(&fixture, CODE + 1, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 2, UNWIND_CFA_SP, UNWIND_FP_AT_CFA, 0, -4, 8);
    assert_rule(&fixture, CODE + 3, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 4, UNWIND_CFA_SP, UNWIND_FP_AT_CFA, 0, 126, 8);
    for (int i = 5; i <= 9; i++)
        assert_rule(&fixture, CODE + i, UNWIND_CFA_SP, UNWIND_FP_LOST, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 10, UNWIND_CFA_SP, .cfa_offset = 8);
    /* Registers that nobody needs change nothing. */
    assert_rule(&fixture, CODE + 11, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_int_equal(fixture.rows.bad_programs, 0);
}

static void every_cfa_instruction(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    one_function(&fixture, PROGRAM(0x0c, 10, 0,                     /* r10 + 0 */
                                   0x41, 0x12, 7, 0x7c,             /* def_cfa_sf: rsp + 32 */
                                   0x41, 0x13, 0x78,                /* offset_sf: 64 */
                                   0x41, 0x0f, 3, 0x76, 0x78, 0x06, /* *(rbp - 8) */
                                   0x41, 0x0f, 5, 0x77, 0x28, 0x06, 0x23, 8, /* *(rsp + 40) + 8 */
                                   0x41, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33,
                                   0x24, 0x22, 0x41, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b,
                                   0x2a, 0x33, 0x24, 0x1c, 0x41, 0x0e, 24, /* still rsp: + 24 */
                                   0x41, 0x0d, 6,                          /* rbp + 24 */
                                   0x41, 0x10, 6, 2, 0x76, 0,              /* rbp at *(rbp) */
                                   0x41, 0x10, 6, 2, 0x77, 16,             /* rbp at *(rsp + 16) */
                                   0x41, 0x10, 6, 2, 0x77, 17,             /* not in a slot */
                                   0x41, 0x0e, 0x80, 0x80, 0x80, 0x80, 0x08, /* 2 GiB */
                                   0x41, 0x0c, 40, 8));                      /* no such register */
    assert_rule(&fixture, CODE, UNWIND_CFA_REGISTER, .argument = 10);
    assert_rule(&fixture, CODE + 1, UNWIND_CFA_SP, .cfa_offset = 32);
    assert_rule(&fixture, CODE + 2, UNWIND_CFA_SP, .cfa_offset = 64);
    assert_rule(&fixture, CODE + 3, UNWIND_CFA_AT_FP, .cfa_offset = -8);
    assert_rule(&fixture, CODE + 4, UNWIND_CFA_AT_SP, .argument = 1, .cfa_offset = 40);
    assert_rule(&fixture, CODE + 5, UNWIND_CFA_PLT, .argument = 11, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 6, UNWIND_CFA_UNSUPPORTED);
    assert_rule(&fixture, CODE + 7, UNWIND_CFA_SP, .cfa_offset = 24);
    assert_rule(&fixture, CODE + 8, UNWIND_CFA_FP, .cfa_offset = 24);
    assert_rule(&fixture, CODE + 9, UNWIND_CFA_FP, UNWIND_FP_AT_FP, .cfa_offset = 24);
    assert_rule(&fixture, CODE + 10, UNWIND_CFA_FP, UNWIND_FP_AT_SP, 0, 2, 24);
    assert_rule(&fixture, CODE + 11, UNWIND_CFA_FP, UNWIND_FP_LOST, .cfa_offset = 24);
    assert_rule(&fixture, CODE + 12, UNWIND_CFA_UNSUPPORTED);
    assert_rule(&fixture, CODE + 13, UNWIND_CFA_UNSUPPORTED);
    assert_int_equal(fixture.rows.unsupported_rows, 3);
    assert_int_equal(fixture.rows.bad_programs, 0);
}

static void return_addresses(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    one_function(&fixture, PROGRAM(0x07, 16,               /* undefined: nobody called this */
                                   0x41, 0x09, 16, 5,      /* in rdi */
                                   0x41, 0x90, 2,          /* at CFA - 16 */
                                   0x41, 0xd0,             /* restored */
                                   0x41, 0x10, 7, 1, 0x30, /* rsp is not the CFA */
                                   0x41, 0x14, 7, 0,       /* it is */
                                   0x41, 0x08, 16));
    assert_rule(&fixture, CODE, UNWIND_CFA_END);
    assert_int_equal(unwind_rows_find(&fixture.rows, CODE), UNWIND_RULE_END);
    assert_rule(&fixture, CODE + 1, UNWIND_CFA_IP_IN_REGISTER, .argument = 5, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 2, UNWIND_CFA_UNSUPPORTED);
    assert_rule(&fixture, CODE + 3, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 4, UNWIND_CFA_UNSUPPORTED);
    assert_rule(&fixture, CODE + 5, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 6, UNWIND_CFA_UNSUPPORTED);
}

static void rbx_is_tracked_where_it_is_needed(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    struct buffer *bytes = &fixture.bytes;
    size_t cie = put_cie(bytes, &usual_style, NULL, 0);
    put_fde(bytes, &usual_style, cie, SECTION, CODE, CODE + 16,
            PROGRAM(0x41, 0x0e, 16, 0x83, 2, 0x41, 0x83, 15, 0x41, 0x83, 16));
    compile_bytes(&fixture, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(UNWIND_SAVED_BASE(rule_at(&fixture, CODE + i).saved), UNWIND_BASE_UNKNOWN);
    put_fde(bytes, &usual_style, cie, SECTION, CODE + 16, CODE + 32, PROGRAM(0x0c, 3, 16));
    compile_bytes(&fixture, false);
    check_rows(&fixture.rows, &fixture.rules);
    assert_int_equal(UNWIND_SAVED_BASE(rule_at(&fixture, CODE).saved), UNWIND_BASE_SAME);
    assert_int_equal(UNWIND_SAVED_BASE(rule_at(&fixture, CODE + 1).saved), 2);
    assert_int_equal(UNWIND_SAVED_BASE(rule_at(&fixture, CODE + 2).saved), 15);
    assert_int_equal(UNWIND_SAVED_BASE(rule_at(&fixture, CODE + 3).saved), UNWIND_BASE_UNKNOWN);
    assert_rule(&fixture, CODE + 16, UNWIND_CFA_REGISTER, UNWIND_BASE_SAME << 4, 3, 0, 16);
    assert_int_equal(fixture.rows.function_count, 2);
}

static void signal_frames(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    struct frame_style style = {.version = 1, .augmentation = "zRS", .encoding = 0x1b};
    size_t cie = put_cie(&fixture.bytes, &style, NULL, 0);
    static const uint8_t kernels[] = {0x0f, 4,    0x77, 0xa0, 0x01, 0x06,  /* CFA *(rsp+160) */
                                      0x10, 6,    3,    0x77, 0xf8, 0x00,  /* rbp at rsp+120 */
                                      0x10, 0x10, 3,    0x77, 0xa8, 0x01}; /* rip at rsp+168 */
    put_fde(&fixture.bytes, &style, cie, SECTION, CODE, CODE + 9, kernels, sizeof(kernels));
    /* Its own word for the same thing must not be taken for a call. */
    put_fde(&fixture.bytes, &style, cie, SECTION, CODE + 16, CODE + 25, PROGRAM(0x0e, 16));
    compile_bytes(&fixture, false);
    assert_rule(&fixture, CODE, UNWIND_CFA_SIGNAL, .cfa_offset = 160);
    assert_rule(&fixture, CODE + 9, UNWIND_CFA_NONE);
    assert_rule(&fixture, CODE + 16, UNWIND_CFA_UNSUPPORTED);
}

static void every_form_of_entry(void **state)
{
    (void)state;
    static const uint8_t encodings[] = {0x00, 0x03, 0x04, 0x0b, 0x0c, 0x01, 0x02,
                                        0x09, 0x0a, 0x10, 0x1b, 0x1c, 0x14, 0x19};
    static const char *const augmentations[] = {"zR", "zPLR", "zRS", "zRB", "zLR", "zR?", "z", ""};
    unsigned compiled = 0;
    for (int debug_frame = 0; debug_frame < 2; debug_frame++)
        for (int wide = 0; wide < 2; wide++)
            for (int version = 1; version <= 4; version += version == 1 ? 2 : 1)
                for (size_t a = 0; a < ARRAY_LENGTH(augmentations); a++)
                    for (size_t e = 0; e < ARRAY_LENGTH(encodings); e++) {
                        struct frame_style style = {debug_frame, wide, (uint8_t)version,
                                                    augmentations[a], encodings[e]};
                        _cleanup_fixture_ struct fixture fixture = {0};
                        size_t cie = put_cie(&fixture.bytes, &style, NULL, 0);
                        put_fde(&fixture.bytes, &style, cie, SECTION, CODE, CODE + 0x20,
                                PROGRAM(0x44, 0x0e, 16));
                        put_bytes(&fixture.bytes, 0, 4); /* a terminator in the middle */
                        put_fde(&fixture.bytes, &style, cie, SECTION, CODE + 0x40, CODE + 0x60,
                                PROGRAM(0x44, 0x0e, 32));
                        compile_bytes(&fixture, debug_frame);
                        assert_int_equal(fixture.rows.function_count, 2);
                        assert_int_equal(fixture.rows.bad_entries, 0);
                        if (!strchr(style.augmentation, 'S')) {
                            assert_rule(&fixture, CODE + 4, UNWIND_CFA_SP, .cfa_offset = 16);
                            assert_rule(&fixture, CODE + 0x44, UNWIND_CFA_SP, .cfa_offset = 32);
                        }
                        assert_rule(&fixture, CODE + 0x20, UNWIND_CFA_NONE);
                        compiled++;
                    }
    assert_int_equal(compiled, 2 * 2 * 3 * 8 * 14);
}

static void forms_nobody_knows_are_counted(void **state)
{
    (void)state;
    static const struct frame_style styles[] = {
        {.version = 2, .augmentation = "zR", .encoding = 0x1b},
        {.version = 1, .augmentation = "eh", .encoding = 0x1b},
        {.version = 1, .augmentation = "zR", .encoding = 0xff},
        {.version = 1, .augmentation = "zR", .encoding = 0x9b}, /* a pointer to a pointer */
        {.version = 1, .augmentation = "zR", .encoding = 0x3b}, /* from a base nobody gave */
        {.version = 1, .augmentation = "zR", .encoding = 0x0d},
        {.version = 1, .augmentation = "zRRRRRRRRRRRRRRRRRRR", .encoding = 0x1b},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(styles); i++) {
        _cleanup_fixture_ struct fixture fixture = {0};
        size_t cie = put_cie(&fixture.bytes, &styles[i], NULL, 0);
        put_fde(&fixture.bytes, &styles[i], cie, SECTION, CODE, CODE + 0x20, NULL, 0);
        cie = put_cie(&fixture.bytes, &usual_style, NULL, 0);
        put_fde(&fixture.bytes, &usual_style, cie, SECTION, CODE + 64, CODE + 80, NULL, 0);
        compile_bytes(&fixture, false);
        assert_int_equal(fixture.rows.bad_entries, 1);
        assert_rule(&fixture, CODE, UNWIND_CFA_NONE);
        assert_rule(&fixture, CODE + 64, UNWIND_CFA_SP, .cfa_offset = 8);
    }
}

static void bad_programs_end_in_unsupported(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[16];
        size_t length;
    } programs[] = {
        {{0x41, 0x0e, 16, 0x41, 0x3f}, 5},                   /* no such instruction */
        {{0x41, 0x0e, 16, 0x41, 0x0b}, 5},                   /* nothing was remembered */
        {{0x41, 0x0e, 16, 0x41, 0x0f, 0x7f}, 6},             /* an expression beyond the end */
        {{0x41, 0x0e, 16, 0x41, 0x01, 0, 0, 0xc0, 0xff}, 9}, /* back to before */
    };
    for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
        _cleanup_fixture_ struct fixture fixture = {0};
        one_function(&fixture, programs[i].bytes, programs[i].length);
        assert_rule(&fixture, CODE, UNWIND_CFA_SP, .cfa_offset = 8);
        assert_rule(&fixture, CODE + 1, UNWIND_CFA_SP, .cfa_offset = 16);
        assert_rule(&fixture, CODE + 2, UNWIND_CFA_UNSUPPORTED);
        assert_rule(&fixture, CODE + 0xff, UNWIND_CFA_UNSUPPORTED);
        assert_rule(&fixture, CODE + 0x100, UNWIND_CFA_NONE);
        assert_int_equal(fixture.rows.bad_programs, 1);
    }
    /* Remembering without end is cut off; 32 times is not. */
    uint8_t remember[64];
    memset(remember, 0x0a, sizeof(remember));
    _cleanup_fixture_ struct fixture fixture = {0};
    one_function(&fixture, remember, 32);
    assert_int_equal(fixture.rows.bad_programs, 0);
    one_function(&fixture, remember, 33);
    assert_int_equal(fixture.rows.bad_programs, 1);
    assert_rule(&fixture, CODE, UNWIND_CFA_UNSUPPORTED);
    /* A CIE's own program may not advance. */
    fixture.bytes.length = 0;
    size_t cie = put_cie(&fixture.bytes, &usual_style, PROGRAM(0x41));
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, CODE, CODE + 1, NULL, 0);
    compile_bytes(&fixture, false);
    assert_int_equal(fixture.rows.bad_programs, 1);
}

static void set_loc_goes_forward(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    struct frame_style style = {.version = 1, .augmentation = "zR", .encoding = 0x03};
    size_t cie = put_cie(&fixture.bytes, &style, NULL, 0);
    put_fde(&fixture.bytes, &style, cie, SECTION, CODE, CODE + 0x100,
            PROGRAM(0x01, 0x10, 0x10, 0, 0, 0x0e, 16, 0x01, 0, 0xff, 0, 0, 0x0e, 24));
    compile_bytes(&fixture, false);
    assert_rule(&fixture, CODE + 0xf, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, CODE + 0x10, UNWIND_CFA_SP, .cfa_offset = 16);
    assert_rule(&fixture, CODE + 0xff, UNWIND_CFA_SP, .cfa_offset = 16);
    assert_rule(&fixture, CODE + 0x100, UNWIND_CFA_NONE);
}

static void pages_repeat_the_rule_in_force(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    size_t cie = put_cie(&fixture.bytes, &usual_style, NULL, 0);
    /* From the middle of page 1 to the middle of page 4, with a change just on a page's edge. */
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x1800, 0x4800,
            PROGRAM(0x04, 0x00, 0x08, 0, 0, 0x0e, 16));
    /* Up to a page's last byte, and right behind it. */
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x7f00, 0x8000, NULL, 0);
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x8000, 0x8001, PROGRAM(0x0e, 48));
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0xa000, 0xb000, PROGRAM(0x0e, 48));
    compile_bytes(&fixture, false);
    const struct unwind_rows *rows = &fixture.rows;
    check_rows(rows, &fixture.rules);
    assert_int_equal(rows->first_page, 1);
    assert_int_equal(rows->page_count, 10);
    static const uint32_t counts[] = {2, 1, 1, 2, 0, 0, 2, 2, 0, 1};
    for (uint32_t i = 0; i < rows->page_count; i++)
        assert_int_equal(rows->pages[i + 1] - rows->pages[i], counts[i]);
    for (uint64_t address = 0; address < 0xd000; address++) {
        int offset = address >= 0x1800 && address < 0x2000   ? 8
                     : address >= 0x2000 && address < 0x4800 ? 16
                     : address >= 0x7f00 && address < 0x8000 ? 8
                     : address == 0x8000                     ? 48
                     : address >= 0xa000 && address < 0xb000 ? 48
                                                             : 0;
        assert_int_equal(rule_at(&fixture, address).cfa_offset, offset);
    }
}

static void functions_are_found(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    size_t cie = put_cie(&fixture.bytes, &usual_style, NULL, 0);
    /* Not in order, one twice, two that overlap, one that was discarded, one empty. */
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x5000, 0x5010, NULL, 0);
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x3000, 0x3100, NULL, 0);
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x3080, 0x3090, PROGRAM(0x0e, 64));
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x5000, 0x5020, PROGRAM(0x0e, 64));
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0, 0x100, NULL, 0);
    put_fde(&fixture.bytes, &usual_style, cie, SECTION, 0x6000, 0x6000, NULL, 0);
    compile_bytes(&fixture, false);
    check_rows(&fixture.rows, &fixture.rules);
    uint64_t start = 0, end = 0;
    assert_int_equal(fixture.rows.function_count, 3);
    assert_true(unwind_rows_function(&fixture.rows, 0x307f, &start, &end));
    assert_true(start == 0x3000 && end == 0x3080);
    assert_true(unwind_rows_function(&fixture.rows, 0x308f, &start, &end));
    assert_true(start == 0x3080 && end == 0x3090);
    assert_false(unwind_rows_function(&fixture.rows, 0x3090, &start, &end));
    assert_true(unwind_rows_function(&fixture.rows, 0x500f, &start, &end));
    assert_false(unwind_rows_function(&fixture.rows, 0x5010, &start, &end));
    assert_false(unwind_rows_function(&fixture.rows, 0x2fff, &start, &end));
    assert_false(unwind_rows_function(&fixture.rows, 0, &start, &end));
    assert_false(unwind_rows_function(&fixture.rows, UINT64_MAX, &start, &end));
    assert_rule(&fixture, 0x3080, UNWIND_CFA_SP, .cfa_offset = 64);
    assert_rule(&fixture, 0x5000, UNWIND_CFA_SP, .cfa_offset = 8);
}

static void the_second_section_fills_gaps(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer eh = {0}, debug = {0};
    struct frame_style style = {.debug_frame = true, .version = 4, .augmentation = ""};
    size_t cie = put_cie(&eh, &usual_style, NULL, 0);
    put_fde(&eh, &usual_style, cie, SECTION, 0x2000, 0x2100, NULL, 0);
    cie = put_cie(&debug, &style, NULL, 0);
    put_fde(&debug, &style, cie, SECTION, 0x20f0, 0x2200, PROGRAM(0x0e, 64)); /* overlaps */
    put_fde(&debug, &style, cie, SECTION, 0x1ff0, 0x2000, PROGRAM(0x0e, 64));
    put_fde(&debug, &style, cie, SECTION, 0x2100, 0x2110, PROGRAM(0x0e, 64));
    struct frame_section sections[] = {
        {.bytes = (void *)eh.data, .length = eh.length, .address = SECTION},
        {.bytes = (void *)debug.data, .length = debug.length, .is_debug_frame = true},
    };
    _cleanup_fixture_ struct fixture fixture = {0};
    unwind_rules_init(&fixture.rules);
    assert_int_equal(unwind_rows_compile_sections(sections, 2, &anywhere, 1, &fixture.rules,
                                                  &fixture.rows, NULL),
                     0);
    check_rows(&fixture.rows, &fixture.rules);
    assert_rule(&fixture, 0x1fff, UNWIND_CFA_SP, .cfa_offset = 64);
    assert_rule(&fixture, 0x2000, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, 0x20ff, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, 0x2100, UNWIND_CFA_SP, .cfa_offset = 64);
    assert_rule(&fixture, 0x2110, UNWIND_CFA_NONE);
}

static void only_code_has_rows(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer bytes = {0};
    size_t cie = put_cie(&bytes, &usual_style, NULL, 0);
    put_fde(&bytes, &usual_style, cie, SECTION, 0x1ff0, 0x2010, NULL, 0); /* begins before */
    put_fde(&bytes, &usual_style, cie, SECTION, 0x2020, 0x9000, NULL, 0); /* ends behind */
    put_fde(&bytes, &usual_style, cie, SECTION, 0x5000, 0x5010, NULL, 0);
    struct frame_section section = {
        .bytes = (void *)bytes.data, .length = bytes.length, .address = SECTION};
    struct unwind_code code[] = {{0x100, 0x200}, {0x2000, 0x3000}};
    _cleanup_fixture_ struct fixture fixture = {0};
    unwind_rules_init(&fixture.rules);
    assert_int_equal(
        unwind_rows_compile_sections(&section, 1, code, 2, &fixture.rules, &fixture.rows, NULL), 0);
    check_rows(&fixture.rows, &fixture.rules);
    assert_int_equal(fixture.rows.outside, 2);
    assert_int_equal(fixture.rows.page_count, 1);
    assert_rule(&fixture, 0x2000, UNWIND_CFA_NONE);
    assert_rule(&fixture, 0x2fff, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, 0x3000, UNWIND_CFA_NONE);
}

static void far_code_is_left_out(void **state)
{
    (void)state;
    _cleanup_fixture_ struct fixture fixture = {0};
    struct frame_style style = {.version = 1, .augmentation = "zR", .encoding = 0x04};
    size_t cie = put_cie(&fixture.bytes, &style, NULL, 0);
    put_fde(&fixture.bytes, &style, cie, SECTION, CODE, CODE + 0x10, NULL, 0);
    put_fde(&fixture.bytes, &style, cie, SECTION, 1ull << 60, (1ull << 60) + 8, NULL, 0);
    put_fde(&fixture.bytes, &style, cie, SECTION, 0x2000, UINT64_MAX, NULL, 0);
    compile_bytes(&fixture, false);
    check_rows(&fixture.rows, &fixture.rules);
    assert_int_equal(fixture.rows.outside, 1);
    assert_int_equal(fixture.rows.page_count, UNWIND_PAGES_MAX);
    assert_rule(&fixture, 0xffffffff, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, 1ull << 60, UNWIND_CFA_NONE);
    fixture.bytes.length = 0;
    cie = put_cie(&fixture.bytes, &style, NULL, 0);
    put_fde(&fixture.bytes, &style, cie, SECTION, UINT64_MAX - 7, UINT64_MAX, NULL, 0);
    compile_bytes(&fixture, false);
    assert_rule(&fixture, UINT64_MAX - 1, UNWIND_CFA_SP, .cfa_offset = 8);
    assert_rule(&fixture, UINT64_MAX, UNWIND_CFA_NONE);
}

/* Something of everything, to be damaged. */
static void put_everything(struct buffer *out)
{
    struct frame_style wide = {
        .wide = true, .version = 3, .augmentation = "zPLRS", .encoding = 0x14};
    size_t cie = put_cie(out, &usual_style, NULL, 0);
    put_fde(out, &usual_style, cie, SECTION, 0x1000, 0x1100,
            PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x20, 0x0a, 0x0c, 7, 8, 0xc6,
                    0x03, 1, 0, 0x0b));
    cie = put_cie(out, &wide, PROGRAM(0x0a, 0x0b));
    put_fde(out, &wide, cie, SECTION, 0x1200, 0x2300,
            PROGRAM(0x0f, 5, 0x77, 0x28, 0x06, 0x23, 8, 0x41, 0x10, 6, 2, 0x76, 0, 0x41, 0x16, 16,
                    1, 0x30, 0x04, 1, 0, 0, 0, 0x0c, 3, 8));
}

static void truncations_and_flips_do_no_harm(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer whole = {0};
    put_everything(&whole);
    for (int debug_frame = 0; debug_frame < 2; debug_frame++) {
        for (size_t cut = 0; cut < whole.length; cut++) {
            _cleanup_fixture_ struct fixture fixture = {0};
            buffer_add(&fixture.bytes, whole.data, cut);
            compile_bytes(&fixture, debug_frame);
            check_rows(&fixture.rows, &fixture.rules);
        }
        for (size_t at = 0; at < whole.length * 8; at++) {
            _cleanup_fixture_ struct fixture fixture = {0};
            buffer_add(&fixture.bytes, whole.data, whole.length);
            fixture.bytes.data[at / 8] ^= (char)(1 << at % 8);
            compile_bytes(&fixture, debug_frame);
            check_rows(&fixture.rows, &fixture.rules);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_shared),
        cmocka_unit_test(prologues_and_epilogues),
        cmocka_unit_test(every_register_instruction),
        cmocka_unit_test(every_cfa_instruction),
        cmocka_unit_test(return_addresses),
        cmocka_unit_test(rbx_is_tracked_where_it_is_needed),
        cmocka_unit_test(signal_frames),
        cmocka_unit_test(every_form_of_entry),
        cmocka_unit_test(forms_nobody_knows_are_counted),
        cmocka_unit_test(bad_programs_end_in_unsupported),
        cmocka_unit_test(set_loc_goes_forward),
        cmocka_unit_test(pages_repeat_the_rule_in_force),
        cmocka_unit_test(functions_are_found),
        cmocka_unit_test(the_second_section_fills_gaps),
        cmocka_unit_test(only_code_has_rows),
        cmocka_unit_test(far_code_is_left_out),
        cmocka_unit_test(truncations_and_flips_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
