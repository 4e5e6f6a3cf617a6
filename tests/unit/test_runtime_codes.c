// SPDX-License-Identifier: Apache-2.0
// Readers of PHP's and Ruby's functions, on memory that is made up: names, lines, and functions
// that change, end early, or have any bit flipped while they are read.

#include <string.h>

#include "runtime/php/code.h"
#include "runtime/ruby/code.h"
#include "unit.h"

#define BASE 0x10000u
struct image {
    uint8_t bytes[4096];
    size_t length; /* what is behind can't be read */
    unsigned reads;
    unsigned change_after; /* reads: then the function is another one; 0: never */
    size_t change_at;
};

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    struct image *image = context;
    image->reads++;
    if (image->reads == image->change_after)
        image->bytes[image->change_at] ^= 8;
    if (address < BASE || address - BASE > image->length || length > image->length ||
        address - BASE > image->length - length)
        return false;
    memcpy(buffer, image->bytes + (address - BASE), length);
    return true;
}

static void put(struct image *image, size_t at, uint64_t word)
{
    memcpy(image->bytes + at, &word, sizeof(word));
}

static void put_number(struct image *image, size_t at, uint32_t number)
{
    memcpy(image->bytes + at, &number, sizeof(number));
}

/* ---- PHP ---- */

enum { FUNCTION = 0, NAME = 512, PATH = 640, CLASS = 768, CLASS_NAME = 896 };

static void put_php_text(struct image *image, size_t at, const char *text)
{
    put(image, at + 16, strlen(text));
    memcpy(image->bytes + at + 24, text, strlen(text));
}

static struct php_binary make_php(struct image *image, struct runtime_mark *ret_mark)
{
    *image = (struct image){.length = 1024, .change_at = FUNCTION + 8};
    image->bytes[FUNCTION] = BPF_PHP_USER;
    put(image, FUNCTION + 8, BASE + NAME);
    put(image, FUNCTION + 16, BASE + CLASS);
    put(image, FUNCTION + 152, BASE + PATH);
    put_number(image, FUNCTION + 160, 17);
    put_php_text(image, NAME, "total");
    put_php_text(image, PATH, "/srv/shop/cart.php");
    put(image, CLASS + 8, BASE + CLASS_NAME);
    put_php_text(image, CLASS_NAME, "Shop\\Cart");
    *ret_mark = (struct runtime_mark){.address = BASE + FUNCTION,
                                      .name = BASE + NAME,
                                      .lines = BASE + CLASS,
                                      .file = BASE + PATH,
                                      .first_line = 17};
    return (struct php_binary){
        .walk = {.function_bytes = 168, .function_file = 152, .function_first_line = 160}};
}

static bool read_php(struct image *image, const struct php_binary *php,
                     const struct runtime_mark *mark, struct arena *arena,
                     struct runtime_code *code)
{
    struct runtime_memory memory = {.read = read_image, .context = image};
    return php_code_read(php, &memory, mark, arena, code);
}

static void test_php_names(void **state)
{
    (void)state;
    struct image image;
    struct runtime_mark mark;
    struct runtime_code code;
    struct arena arena = {0};
    struct php_binary php = make_php(&image, &mark);
    assert_true(read_php(&image, &php, &mark, &arena, &code));
    assert_string_equal(code.function, "Shop\\Cart::total");
    assert_string_equal(code.file, "/srv/shop/cart.php");
    assert_int_equal(code.first_line, 17);
    assert_int_equal(runtime_code_line(&code, 23), 23); /* the walk has read it */
    /* A function of no class; the code of a file; one that is built in; a name that is no text. */
    put(&image, FUNCTION + 16, mark.lines = 0);
    assert_true(read_php(&image, &php, &mark, &arena, &code));
    assert_string_equal(code.function, "total");
    put_php_text(&image, NAME, "a\xff\nb\x01");
    assert_true(read_php(&image, &php, &mark, &arena, &code));
    assert_string_equal(code.function, "a??b?");
    put(&image, FUNCTION + 8, mark.name = 0);
    assert_true(read_php(&image, &php, &mark, &arena, &code));
    assert_string_equal(code.function, "cart.php:{main}");
    image.bytes[FUNCTION] = BPF_PHP_BUILT_IN;
    put(&image, FUNCTION + 8, mark.name = BASE + NAME);
    assert_false(read_php(&image, &php, &mark, &arena, &code)); /* it has a file */
    mark.file = mark.first_line = 0;
    assert_true(read_php(&image, &php, &mark, &arena, &code));
    assert_string_equal(code.file, "");
    arena_release(&arena);
}

/* ---- Ruby ---- */

enum { CODE = 0, BODY = 64, LABEL = 512, PAIR = 576, REAL = 640, ENTRIES = 1024, INDEX = 1536 };
#define WORDS 600 /* beyond what the index has directly, and into a second block */

static void put_ruby_text(struct image *image, size_t at, const char *text)
{
    put(image, at, 5 | 1u << 13); /* a string whose bytes are elsewhere */
    put(image, at + 16, strlen(text));
    put(image, at + 24, BASE + at + 32);
    memcpy(image->bytes + at + 32, text, strlen(text));
}

/* The index of entries that begin at these words, as Ruby makes it. */
static void put_index(struct image *image, const uint32_t *begins, uint32_t count)
{
    uint64_t direct[6] = {0}, block[2][10] = {{0}};
    uint32_t rank = 0;
    for (uint32_t at = 0; at < WORDS; at++) {
        bool begin = rank < count && begins[rank] == at;
        uint32_t place = at - 54, in = place % 512;
        if (at >= 54 && in == 0)
            block[place / 512][0] = rank;
        if (at >= 54 && in % 64 == 0 && in)
            block[place / 512][1] |= (rank - block[place / 512][0]) << (in / 64 - 1) * 9;
        rank += begin;
        if (at < 54)
            direct[at / 9] |= (uint64_t)rank << at % 9 * 7;
        else if (begin)
            block[place / 512][2 + in / 64] |= 1ull << in % 64;
    }
    memcpy(image->bytes + INDEX, direct, sizeof(direct));
    memcpy(image->bytes + INDEX + sizeof(direct), block, sizeof(block));
}

static const uint32_t begins[] = {0, 9, 53, 54, 55, 200, 565, 566, 590};

static struct ruby_binary make_ruby(struct image *image, struct runtime_mark *ret_mark)
{
    *image = (struct image){.length = 2048, .change_at = CODE + 16};
    put(image, CODE, 0x1a);
    put(image, CODE + 16, BASE + BODY);
    put_number(image, BODY + 4, WORDS);
    put(image, BODY + 64, BASE + PAIR);
    put(image, BODY + 80, BASE + LABEL);
    put_number(image, BODY + 88, 3);
    put(image, BODY + 112, BASE + ENTRIES);
    put_number(image, BODY + 128, ARRAY_LENGTH(begins));
    put(image, BODY + 136, BASE + INDEX);
    put_ruby_text(image, LABEL, "block in total");
    put(image, PAIR, 7 | 1u << 13); /* an array with its members */
    put(image, PAIR + 16, BASE + LABEL);
    put(image, PAIR + 24, BASE + REAL);
    put_ruby_text(image, REAL, "/srv/shop/cart.rb");
    for (uint32_t i = 0; i < ARRAY_LENGTH(begins); i++)
        put_number(image, ENTRIES + 12 * i, 10 + i);
    put_index(image, begins, ARRAY_LENGTH(begins));
    *ret_mark = (struct runtime_mark){.address = BASE + CODE,
                                      .lines = BASE + BODY,
                                      .file = BASE + PAIR,
                                      .name = BASE + LABEL,
                                      .first_line = 3};
    return (struct ruby_binary){.walk = {.code_first_line = 88},
                                .minor = 2,
                                .code_lines = 112,
                                .code_line_count = 128,
                                .code_line_index = 136};
}

static bool read_ruby(struct image *image, const struct ruby_binary *ruby,
                      const struct runtime_mark *mark, struct arena *arena,
                      struct runtime_code *code)
{
    struct runtime_memory memory = {.read = read_image, .context = image};
    return ruby_code_read(ruby, &memory, mark, arena, code);
}

static void test_ruby_names(void **state)
{
    (void)state;
    struct image image;
    struct runtime_mark mark;
    struct runtime_code code;
    struct arena arena = {0};
    struct ruby_binary ruby = make_ruby(&image, &mark);
    assert_true(read_ruby(&image, &ruby, &mark, &arena, &code));
    assert_string_equal(code.function, "cart.rb:block in total");
    assert_string_equal(code.file, "/srv/shop/cart.rb");
    /* A unit is the word behind the instruction. */
    for (uint32_t at = 0; at < WORDS; at++) {
        uint32_t entry = 0;
        while (entry + 1 < ARRAY_LENGTH(begins) && begins[entry + 1] <= at)
            entry++;
        assert_int_equal(runtime_code_line(&code, at + 1), 10 + entry);
    }
    assert_int_equal(runtime_code_line(&code, WORDS + 1), 0);
    /* Text that was evaluated has no real path; 3.1 has short texts in the string. */
    put(&image, PAIR + 24, 4);
    assert_true(read_ruby(&image, &ruby, &mark, &arena, &code));
    assert_string_equal(code.file, "block in total");
    ruby.minor = 1;
    put(&image, LABEL, 5 | 4u << 14);
    memcpy(image.bytes + LABEL + 16, "main", 4);
    assert_true(read_ruby(&image, &ruby, &mark, &arena, &code));
    assert_string_equal(code.function, "main:main");
    arena_release(&arena);
}

/* ---- both ---- */

static bool read_either(bool is_php, struct image *image, struct arena *arena,
                        struct runtime_code *code, void (*damage)(struct image *, unsigned),
                        unsigned how)
{
    struct runtime_mark mark;
    union {
        struct php_binary php;
        struct ruby_binary ruby;
    } binary;
    if (is_php)
        binary.php = make_php(image, &mark);
    else
        binary.ruby = make_ruby(image, &mark);
    damage(image, how);
    return is_php ? read_php(image, &binary.php, &mark, arena, code)
                  : read_ruby(image, &binary.ruby, &mark, arena, code);
}

static void change(struct image *image, unsigned how)
{
    image->change_after = how;
}

#define LAST_CHECK 6 /* reads, at most: of what the function says about itself */

/* A change before the last check is noticed. */
static void test_change(void **state)
{
    (void)state;
    for (int is_php = 0; is_php < 2; is_php++) {
        struct image image;
        struct runtime_code code;
        struct arena arena = {0};
        assert_true(read_either(is_php, &image, &arena, &code, change, 0));
        unsigned reads = image.reads;
        for (unsigned after = 1; after <= reads + 1; after++) {
            bool read = read_either(is_php, &image, &arena, &code, change, after);
            assert_true(!read || after + LAST_CHECK > reads);
            assert_true(read || after <= reads);
        }
        assert_true(reads > LAST_CHECK + 1);
        arena_release(&arena);
    }
}

static void cut(struct image *image, unsigned how)
{
    image->length = how;
}

static void flip(struct image *image, unsigned how)
{
    image->bytes[how / 8] ^= (uint8_t)(1u << how % 8);
}

/* Nothing is read beyond the end or without limit, and what is said is text. */
static void test_damage(void **state)
{
    (void)state;
    for (int is_php = 0; is_php < 2; is_php++) {
        for (unsigned how = 0; how < 2048 * 9; how++) {
            struct image image;
            struct runtime_code code = {.function = ""};
            struct arena arena = {0};
            bool cuts = how >= 2048 * 8;
            read_either(is_php, &image, &arena, &code, cuts ? cut : flip,
                        cuts ? how - 2048 * 8 : how);
            assert_true(image.reads < 64);
            assert_true(strlen(code.function) <= RUNTIME_FILE_MAX + RUNTIME_NAME_MAX + 2);
            for (uint32_t i = 1; code.lines && i < code.line_count; i++)
                assert_true(code.lines[i].end > code.lines[i - 1].end);
            arena_release(&arena);
        }
    }
}

static void test_known(void **state)
{
    (void)state;
    struct image image;
    struct runtime_codes codes = {0};
    struct runtime_known met = {.identity = 5, .pid = 1, .kind = BPF_RUNTIME_PHP};
    struct php_binary php = make_php(&image, &met.mark);
    struct runtime_memory memory = {.read = read_image, .context = &image};
    image.length = 0;
    runtime_codes_take(&codes, php_code_read, &php, &memory, &met);
    assert_false(runtime_codes_find(&codes, 5)->named);
    assert_int_equal(codes.unreadable, 1);
    image.length = 1024; /* met again */
    runtime_codes_take(&codes, php_code_read, &php, &memory, &met);
    assert_true(runtime_codes_find(&codes, 5)->named);
    assert_int_equal(codes.count, 1);
    met.mark.lines++; /* the same identity of another function */
    runtime_codes_take(&codes, php_code_read, &php, &memory, &met);
    assert_true(runtime_codes_find(&codes, 5)->ambiguous);
    assert_null(runtime_codes_find(&codes, 6));
    assert_false(runtime_codes_full(&codes));
    runtime_codes_clear(&codes);
    assert_null(runtime_codes_find(&codes, 5));
    runtime_codes_release(&codes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_php_names), cmocka_unit_test(test_ruby_names),
        cmocka_unit_test(test_change),    cmocka_unit_test(test_damage),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
