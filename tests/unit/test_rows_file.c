// SPDX-License-Identifier: Apache-2.0
// Compiled rows as files: what is written is read back, and nothing else is.

#include <fcntl.h>

#include <xxhash.h>

#include "elf/unwind/rows_file.h"
#include "elf_image.h"
#include "unit.h"

#define HEADER_BYTES 152
#define CHECKSUM_AT 16

static struct unwind_rules rules;
static struct unwind_rows rows;
static struct buffer content;
static const struct rows_identity identity = {
    .build_id = {0xca, 0xfe}, .build_id_length = 2, .source_bytes = 4711};

/* Some thousand rows: those of this very program. */
static int compile_ourselves(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    unwind_rules_init(&rules);
    if (elf_open("/proc/self/exe", &file, &error) < 0 ||
        unwind_rows_compile(&file, &rules, &rows, &error) < 0)
        return -1;
    rows_file_write(&identity, &rows, &rules, &content);
    return 0;
}

static int release(void **state)
{
    (void)state;
    unwind_rows_release(&rows);
    unwind_rules_release(&rules);
    buffer_release(&content);
    return 0;
}

static int parse(const struct buffer *file, struct unwind_rules *ret_rules,
                 struct unwind_rows *ret_rows)
{
    struct error error = {0};
    int r = rows_file_parse(file->data, file->length, &identity, ret_rules, ret_rows, &error);
    assert_int_equal(r, error.code);
    assert_true(!r || error.text[0]);
    return r;
}

static void assert_same_rows(const struct unwind_rows *got, const struct unwind_rules *got_rules)
{
    assert_int_equal(got->first_page, rows.first_page);
    assert_int_equal(got->page_count, rows.page_count);
    assert_int_equal(got->row_count, rows.row_count);
    assert_int_equal(got->unsupported_rows, rows.unsupported_rows);
    assert_int_equal(got->function_count, 0);
    assert_memory_equal(got->pages, rows.pages, (rows.page_count + 1) * sizeof(*rows.pages));
    for (uint32_t i = 0; i < rows.row_count; i++) {
        assert_int_equal(got->rows[i].offset, rows.rows[i].offset);
        assert_true(got->rows[i].rule < got_rules->count);
        assert_memory_equal(&got_rules->rules[got->rows[i].rule], &rules.rules[rows.rows[i].rule],
                            sizeof(struct unwind_rule));
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    assert_true(rows.row_count > 1000);
    _cleanup_rules_ struct unwind_rules others;
    _cleanup_rows_ struct unwind_rows again = {0};
    unwind_rules_init(&others);
    /* Other numbers for the same rules. */
    for (int i = 0; i < 100; i++)
        unwind_rules_add(&others, (struct unwind_rule){.cfa = 3, .cfa_offset = 1000000 + i});
    assert_int_equal(parse(&content, &others, &again), 0);
    assert_same_rows(&again, &others);
    /* And the same file whatever the numbers are. */
    _cleanup_buffer_ struct buffer second = {0};
    rows_file_write(&identity, &again, &others, &second);
    assert_int_equal(second.length, content.length);
    assert_memory_equal(second.data, content.data, content.length);
}

static void from_a_descriptor(void **state)
{
    (void)state;
    _cleanup_rules_ struct unwind_rules others;
    _cleanup_rows_ struct unwind_rows again = {0};
    struct error error = {0};
    FILE *file = tmpfile();
    assert_non_null(file);
    unwind_rules_init(&others);
    assert_int_equal(fwrite(content.data, 1, content.length, file), content.length);
    fflush(file);
    assert_int_equal(
        rows_file_read(fileno(file), content.length, &identity, &others, &again, &error), 0);
    assert_same_rows(&again, &others);
    /* It has become shorter since its size was asked for. */
    _cleanup_rows_ struct unwind_rows none = {0};
    assert_int_equal(ftruncate(fileno(file), (off_t)content.length / 2), 0);
    assert_int_equal(
        rows_file_read(fileno(file), content.length, &identity, &others, &none, &error), -EBADMSG);
    assert_null(none.rows);
    fclose(file);
}

static void a_table_without_room(void **state)
{
    (void)state;
    _cleanup_rules_ struct unwind_rules full;
    _cleanup_rows_ struct unwind_rows again = {0};
    unwind_rules_init(&full);
    for (int i = 0; full.count < UNWIND_RULES_MAX; i++)
        unwind_rules_add(&full, (struct unwind_rule){.cfa = 3, .cfa_offset = 1000000 + i});
    assert_int_equal(parse(&content, &full, &again), 0);
    for (uint32_t i = 0; i < again.row_count; i++)
        assert_true(again.rows[i].rule <= UNWIND_RULE_UNSUPPORTED);
    assert_true(full.rejected > 0);
}

static void of_another_binary(void **state)
{
    (void)state;
    _cleanup_rules_ struct unwind_rules others;
    struct unwind_rows none = {0};
    struct error error = {0};
    unwind_rules_init(&others);
    struct rows_identity wanted[] = {identity, identity, identity};
    wanted[0].source_bytes++;
    wanted[1].build_id[1] ^= 1;
    wanted[2].build_id_length = 1;
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        assert_int_equal(
            rows_file_parse(content.data, content.length, &wanted[i], &others, &none, &error),
            -ESTALE);
        assert_says(&error, "different binary");
    }
    assert_null(none.rows);
}

/* The first of the file's bytes, small enough to be damaged in every way. */
static void make_small(struct buffer *out)
{
    static uint32_t pages[] = {0, 2, 2, 4};
    static struct unwind_row list[] = {{0, 3}, {100, 0}, {0, 1}, {4095, 4}};
    struct unwind_rows small = {
        .first_page = 7, .page_count = 3, .row_count = 4, .pages = pages, .rows = list};
    _cleanup_rules_ struct unwind_rules some;
    unwind_rules_init(&some);
    unwind_rules_add(&some, (struct unwind_rule){.cfa = 3, .cfa_offset = 8});
    unwind_rules_add(&some, (struct unwind_rule){.cfa = 3, .cfa_offset = 16});
    rows_file_write(&identity, &small, &some, out);
}

static void seal(struct buffer *file)
{
    uint64_t checksum = XXH3_64bits(file->data + CHECKSUM_AT + 8, file->length - CHECKSUM_AT - 8);
    memcpy(file->data + CHECKSUM_AT, &checksum, sizeof(checksum));
}

static void another_version(void **state)
{
    (void)state;
    for (size_t at = 8; at < 16; at += 4) {
        _cleanup_buffer_ struct buffer small = {0};
        _cleanup_rules_ struct unwind_rules others;
        struct unwind_rows none = {0};
        unwind_rules_init(&others);
        make_small(&small);
        small.data[at]++;
        assert_int_equal(parse(&small, &others, &none), -ESTALE);
    }
}

static void truncations_and_flips_are_refused(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer small = {0};
    _cleanup_rules_ struct unwind_rules others;
    struct unwind_rows none = {0};
    unwind_rules_init(&others);
    make_small(&small);
    size_t length = small.length;
    for (small.length = 0; small.length < length; small.length++)
        assert_int_equal(parse(&small, &others, &none), -EBADMSG);
    for (size_t bit = 0; bit < length * 8; bit++) {
        small.data[bit / 8] ^= (char)(1 << bit % 8);
        assert_true(parse(&small, &others, &none) < 0);
        small.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    buffer_add_char(&small, '\0');
    assert_int_equal(parse(&small, &others, &none), -EBADMSG);
    assert_int_equal(others.count, 3); /* nothing of a bad file gets into the table */
}

static void assert_sound(const struct unwind_rows *got, const struct unwind_rules *got_rules)
{
    assert_int_equal(got->pages[0], 0);
    assert_int_equal(got->pages[got->page_count], got->row_count);
    for (uint32_t page = 0; page < got->page_count; page++)
        for (uint32_t i = got->pages[page]; i < got->pages[page + 1]; i++) {
            bool first = i == got->pages[page];
            assert_true(first ? got->rows[i].offset == 0
                              : got->rows[i].offset > got->rows[i - 1].offset);
            assert_true(got->rows[i].offset < UNWIND_PAGE_BYTES);
            assert_true(got->rows[i].rule < got_rules->count);
        }
}

/* With a checksum that fits: somebody did it on purpose. */
static void sealed_damage_is_found_by_itself(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer small = {0};
    make_small(&small);
    unsigned accepted = 0, refused = 0;
    for (size_t bit = 0; bit < small.length * 8; bit++) {
        _cleanup_rules_ struct unwind_rules others;
        _cleanup_rows_ struct unwind_rows got = {0};
        unwind_rules_init(&others);
        small.data[bit / 8] ^= (char)(1 << bit % 8);
        seal(&small);
        if (parse(&small, &others, &got) < 0) {
            refused++;
        } else {
            accepted++;
            assert_sound(&got, &others);
        }
        small.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(accepted > 0 && refused > 500);
}

/* Each is one thing that rows promise. */
static void sealed_lies(void **state)
{
    (void)state;
    const size_t pages = HEADER_BYTES + 5 * 8, list = pages + 4 * 4;
    const struct {
        size_t at;
        uint16_t value;
    } lies[] = {
        {40, 0xffff},      /* pages */
        {44, 0xffff},      /* rows */
        {48, 2},           /* rules: fewer than the common ones */
        {48, 4},           /* rules: fewer than there are */
        {HEADER_BYTES, 1}, /* another first rule */
        {pages, 1},        /* the first page doesn't begin with the first row */
        {pages + 4, 3},    /* pages go back */
        {pages + 4, 5},    /* more rows than there are */
        {pages + 12, 3},   /* not all rows */
        {list, 1},         /* the first row of a page is not at its start */
        {list + 4, 0},     /* offsets don't ascend */
        {list + 12, 4096}, /* beyond the page */
        {list + 14, 5},    /* a rule that there is not */
    };
    for (size_t i = 0; i < ARRAY_LENGTH(lies); i++) {
        _cleanup_buffer_ struct buffer small = {0};
        _cleanup_rules_ struct unwind_rules others;
        struct unwind_rows none = {0};
        unwind_rules_init(&others);
        make_small(&small);
        memcpy(small.data + lies[i].at, &lies[i].value, 2);
        seal(&small);
        if (parse(&small, &others, &none) != -EBADMSG)
            fail_msg("lie %zu was believed", i);
    }
}

/*
 * What compiling makes of a file may change; but then files of older rows must not be used any
 * more. Where this fails for that reason, raise ROWS_FILE_VERSION, and put the new digest here.
 */
static void rows_of_a_known_file(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0}, file = {0};
    _cleanup_elf_ struct elf_file elf = {.fd = -1};
    _cleanup_rules_ struct unwind_rules some;
    _cleanup_rows_ struct unwind_rows made = {0};
    struct error error = {0};
    unwind_rules_init(&some);
    make_image(&image);
    assert_int_equal(elf_open_memory(image.data, image.length, ELF_LAYOUT_FILE, &elf, &error), 0);
    assert_int_equal(unwind_rows_compile(&elf, &some, &made, &error), 0);
    rows_file_write(&identity, &made, &some, &file);
    assert_int_equal(ROWS_FILE_VERSION, 3);
    /* Behind the versions and the checksum. */
    uint64_t digest = XXH3_64bits(file.data + CHECKSUM_AT + 8, file.length - CHECKSUM_AT - 8);
    if (digest != 0xd446aeaa7dab3bbf)
        fail_msg("the digest is %#llx now", (unsigned long long)digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(from_a_descriptor),
        cmocka_unit_test(a_table_without_room),
        cmocka_unit_test(of_another_binary),
        cmocka_unit_test(another_version),
        cmocka_unit_test(truncations_and_flips_are_refused),
        cmocka_unit_test(sealed_damage_is_found_by_itself),
        cmocka_unit_test(sealed_lies),
        cmocka_unit_test(rows_of_a_known_file),
    };
    return cmocka_run_group_tests(tests, compile_ourselves, release);
}
