// SPDX-License-Identifier: Apache-2.0
// Names of functions: which symbol has an address, what people read, and what is not believed. The
// files are made by hand; the test's own program is one more.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "elf_image.h"
#include "profile/names/demangle.h"
#include "symbol/debugfile.h"
#include "symbol/kernel.h"
#include "symbol/naming/symbolizer.h"
#include "symbol/table.h"
#include "unit.h"

/* ---- a file with symbols ---- */

#define AT(offset) (IMAGE_CODE_ADDRESS + (offset))

struct made_symbol {
    const char *name;
    uint64_t start, size;
    unsigned char binding, type;
};

static const struct made_symbol usual_symbols[] = {
    {"outer", AT(0), 0x100, STB_GLOBAL, STT_FUNC},
    {"inside", AT(0x40), 0x10, STB_LOCAL, STT_FUNC},
    {"label_inside", AT(0x60), 0, STB_LOCAL, STT_NOTYPE},
    {"__write", AT(0x100), 0x20, STB_GLOBAL, STT_FUNC},
    {"_write", AT(0x100), 0x20, STB_GLOBAL, STT_FUNC},
    {"write_it", AT(0x100), 0x20, STB_GLOBAL, STT_FUNC},
    {"write@@V_1", AT(0x100), 0x20, STB_GLOBAL, STT_FUNC},
    {"w", AT(0x100), 0x20, STB_WEAK, STT_FUNC},
    {"l", AT(0x100), 0x20, STB_LOCAL, STT_FUNC},
    {"no_size", AT(0x200), 0, STB_GLOBAL, STT_FUNC},
    {"label", AT(0x280), 0, STB_LOCAL, STT_NOTYPE},
    {"data", AT(0x290), 4, STB_GLOBAL, STT_OBJECT},
    {"_ZN3foo3barIiEEvT_", AT(0x300), 0x10, STB_GLOBAL, STT_GNU_IFUNC},
    {"overlaps", AT(0x308), 0x10, STB_GLOBAL, STT_FUNC},
    {"endless", AT(0x1f00), UINT64_MAX, STB_GLOBAL, STT_FUNC},
    {"elsewhere", 0x10, 0x10, STB_GLOBAL, STT_FUNC},
    {"", AT(0x400), 0x10, STB_GLOBAL, STT_FUNC},
};

/* The hand-made file with .symtab and .strtab after all else, and headers for them. */
static void add_symbols(struct buffer *image, const struct made_symbol *symbols, size_t count)
{
    _cleanup_buffer_ struct buffer strings = {0}, table = {0}, headers = {0};
    Elf64_Sym first = {0};
    buffer_add_char(&strings, '\0');
    buffer_add(&table, &first, sizeof(first));
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym symbol = {.st_name = symbols[i].name[0] ? (Elf64_Word)strings.length : 0,
                            .st_info = ELF64_ST_INFO(symbols[i].binding, symbols[i].type),
                            .st_shndx = 1,
                            .st_value = symbols[i].start,
                            .st_size = symbols[i].size};
        buffer_add(&strings, symbols[i].name, strlen(symbols[i].name) + 1);
        buffer_add(&table, &symbol, sizeof(symbol));
    }
    buffer_add(&headers, image->data + IMAGE_SECTIONS, 9 * sizeof(Elf64_Shdr));
    uint64_t names = image->length, text = names + 24;
    buffer_add(image, "\0.symtab\0.strtab\0.shstr", 24);
    buffer_add(image, strings.data, strings.length);
    while (image->length % 8)
        buffer_add_char(image, '\0');
    Elf64_Shdr more[2] = {
        {.sh_name = 1,
         .sh_type = SHT_SYMTAB,
         .sh_offset = image->length,
         .sh_size = table.length,
         .sh_link = 10,
         .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = text, .sh_size = strings.length},
    };
    buffer_add(image, table.data, table.length);
    Elf64_Shdr *old = (Elf64_Shdr *)headers.data;
    for (size_t i = 1; i < 9; i++)
        old[i].sh_name = 0; /* all but the notes and the unwind entries, which have segments */
    old[8].sh_offset = names;
    old[8].sh_size = 24;
    buffer_add(&headers, more, sizeof(more));
    Elf64_Ehdr *header = (Elf64_Ehdr *)image->data;
    header->e_shoff = image->length;
    header->e_shnum = 11;
    buffer_add(image, headers.data, headers.length);
}

static void make_usual(struct buffer *image)
{
    make_image(image);
    add_symbols(image, usual_symbols, ARRAY_LENGTH(usual_symbols));
}

static struct symbol_table *table_of(const struct buffer *image)
{
    struct elf_file file = {.fd = -1};
    struct error error = {0};
    if (elf_open_memory(image->data, image->length, ELF_LAYOUT_FILE, &file, &error) < 0)
        return NULL;
    struct symbol_table *table = symbol_table_new(&file, NULL);
    elf_release(&file);
    return table;
}

#define assert_symbol(table, address, expected_name, expected_start)                               \
    do {                                                                                           \
        struct symbol found_ = {0};                                                                \
        assert_true(symbol_table_find(table, address, &found_));                                   \
        assert_non_null(found_.name);                                                              \
        assert_string_equal(found_.name, expected_name);                                           \
        assert_int_equal(found_.start, expected_start);                                            \
    } while (0)

/* A table that would take more memory than there may be is left out as a whole, and says so. */
static void tables_within_limits(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_usual(&image);
    for (uint64_t limit = 0; limit <= 1 << 20; limit = limit * 2 + 1) {
        struct elf_file file = {.fd = -1};
        assert_int_equal(
            elf_open_memory(image.data, image.length, ELF_LAYOUT_FILE, &file, &(struct error){0}),
            0);
        struct symbol_table *table = symbol_table_new_within(&file, NULL, limit);
        assert_int_equal(table->too_large, !table->function_count);
        assert_true(limit >= 64 || table->too_large);
        assert_true(limit < 1 << 16 || !table->too_large);
        symbol_table_free(table);
        elf_release(&file);
    }
}

static void functions_by_address(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct symbol symbol;
    make_usual(&image);
    struct symbol_table *table = table_of(&image);
    assert_non_null(table);
    assert_symbol(table, AT(0), "outer", AT(0));
    assert_symbol(table, AT(0x3f), "outer", AT(0));
    assert_symbol(table, AT(0x40), "inside", AT(0x40));
    assert_symbol(table, AT(0x4f), "inside", AT(0x40));
    assert_symbol(table, AT(0x50), "outer", AT(0));
    assert_symbol(table, AT(0x70), "outer", AT(0));
    assert_symbol(table, AT(0xff), "outer", AT(0));
    assert_symbol(table, AT(0x11f), "write", AT(0x100));
    assert_false(symbol_table_find(table, AT(0x120), &symbol));
    assert_symbol(table, AT(0x200), "no_size", AT(0x200));
    assert_symbol(table, AT(0x27f), "no_size", AT(0x200));
    assert_symbol(table, AT(0x280), "label", AT(0x280));
    assert_symbol(table, AT(0x2ff), "label", AT(0x280));
    assert_symbol(table, AT(0x307), "foo::bar<int>", AT(0x300));
    assert_symbol(table, AT(0x308), "overlaps", AT(0x308));
    assert_symbol(table, AT(0x317), "overlaps", AT(0x308));
    assert_false(symbol_table_find(table, AT(0x318), &symbol));
    assert_symbol(table, AT(0x1fff), "endless", AT(0x1f00));
    assert_false(symbol_table_find(table, AT(0x2000), &symbol));
    assert_false(symbol_table_find(table, 0x10, &symbol));
    assert_false(symbol_table_find(table, AT(0x400), &symbol));
    assert_false(symbol_table_find(table, UINT64_MAX, &symbol));

    assert_true(symbol_table_find_offset(table, IMAGE_CODE + 0x300, &symbol));
    assert_string_equal(symbol.name, "foo::bar<int>");
    assert_string_equal(symbol.system_name, "_ZN3foo3barIiEEvT_");
    assert_true(symbol_table_find_offset(table, IMAGE_CODE + 0x101, &symbol));
    assert_null(symbol.system_name);
    assert_int_equal(symbol.size_bytes, 0x20);
    assert_false(symbol_table_find_offset(table, IMAGE_CODE + 0x2000, &symbol));
    symbol_table_free(table);
}

/* FDEs are at 0, 64, 128 and 192, of 48 bytes each. */
static void unwind_entries_stand_in(void **state)
{
    (void)state;
    static const struct made_symbol one = {"_init", AT(0x10), 0, STB_GLOBAL, STT_FUNC};
    _cleanup_buffer_ struct buffer image = {0}, other = {0};
    struct symbol symbol = {.name = "unset"};
    make_image(&image);
    struct symbol_table *table = table_of(&image);
    assert_true(symbol_table_find(table, AT(64 + 47), &symbol));
    assert_null(symbol.name);
    assert_null(symbol.system_name);
    assert_int_equal(symbol.start, AT(64));
    assert_int_equal(symbol.size_bytes, 48);
    assert_false(symbol_table_find(table, AT(64 + 48), &symbol));
    symbol_table_free(table);

    /* A symbol without a size goes no further than where another function is known to begin. */
    make_image(&other);
    add_symbols(&other, &one, 1);
    Elf64_Ehdr *header = (Elf64_Ehdr *)other.data;
    Elf64_Shdr *sections = (Elf64_Shdr *)(other.data + header->e_shoff);
    memcpy(other.data + sections[8].sh_offset, "\0.symtab\0.eh_frame\0\0\0\0\0", 24);
    sections[2].sh_name = 9;
    table = table_of(&other);
    assert_symbol(table, AT(0x12), "_init", AT(0x10));
    assert_symbol(table, AT(0x35), "_init", AT(0x10));
    assert_true(symbol_table_find(table, AT(64), &symbol));
    assert_null(symbol.name);
    assert_int_equal(symbol.start, AT(64));
    symbol_table_free(table);
}

/* ---- bad files ---- */

static void ask_everything(struct symbol_table *table)
{
    struct symbol symbol;
    for (uint64_t at = 0; at < 0x2100; at += 8)
        if (symbol_table_find(table, AT(at), &symbol) && symbol.name)
            assert_true(strlen(symbol.name) <= SYMBOL_NAME_MAX);
    symbol_table_find_offset(table, IMAGE_CODE, &symbol);
    symbol_table_free(table);
}

static void damaged_files(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_usual(&image);
    size_t length = image.length;
    for (size_t cut = 0; cut < length; cut += cut < 0x400 || cut > 0x3000 ? 1 : 64) {
        /* In memory of its own, so that reading past the end shows. */
        _cleanup_free_ char *copy = memory_alloc(cut + 1);
        memcpy(copy, image.data, cut);
        struct buffer part = {.data = copy, .length = cut};
        struct symbol_table *table = table_of(&part);
        if (table)
            ask_everything(table);
    }
    uint64_t random = 88172645463325252ull;
    for (int round = 0; round < 4000; round++) {
        char saved[4];
        size_t places[4];
        for (int i = 0; i < 4; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            /* Half of them in the symbols and section headers. */
            places[i] =
                round & 1 ? 0x3100 + (random >> 8) % (length - 0x3100) : (random >> 8) % length;
            saved[i] = image.data[places[i]];
            image.data[places[i]] = (char)random;
        }
        struct symbol_table *table = table_of(&image);
        if (table)
            ask_everything(table);
        for (int i = 3; i >= 0; i--)
            image.data[places[i]] = saved[i];
    }
}

static void long_names(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    _cleanup_free_ char *name = memory_alloc(SYMBOL_NAME_MAX + 2);
    memset(name, 'a', SYMBOL_NAME_MAX + 1);
    name[SYMBOL_NAME_MAX + 1] = '\0';
    struct made_symbol one = {name, AT(0x400), 0x10, STB_GLOBAL, STT_FUNC};
    struct symbol symbol;
    make_image(&image);
    add_symbols(&image, &one, 1);
    struct symbol_table *table = table_of(&image);
    for (int i = 0; i < 2; i++) {
        assert_true(symbol_table_find(table, AT(0x408), &symbol));
        assert_null(symbol.name);
        assert_int_equal(symbol.start, AT(0x400));
    }
    symbol_table_free(table);
}

/* ---- demangling ---- */

static void readable_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
        {"_ZSt4sortIPiEvT_S1_", "std::sort<int*>"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
        {"_ZN3foo3barEv.part.0", "foo::bar"},
        {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
        {"_ZN4core3fmt5write17h0123456789abcdefE.llvm.123", "core::fmt::write"},
        {"_RNvCsgStHSCytQ6I_7mycrate3foo", "mycrate::foo"},
        {"main", NULL},
        {"_start", NULL},
        {"_Z", NULL},
        {"_R", NULL},
        {"", NULL},
        {"memcpy.part.0", NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_buffer_ struct buffer text = {0};
        bool done = demangle(cases[i][0], &text);
        assert_int_equal(done, cases[i][1] != NULL);
        if (done)
            assert_buffer(&text, cases[i][1]);
        else
            assert_int_equal(text.length, 0);
    }
}

/* Each type is a pair of the one before: the text doubles with each. */
static void hostile_names(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer name = {0}, text = {0};
    buffer_add_text(&name, "_Z1fI1AIiiES1_IS2_S2_E");
    for (int i = 3; i < 36; i++)
        buffer_printf(&name, "S1_IS%c_S%c_E", i < 10 ? '0' + i : 'A' + i - 10,
                      i < 10 ? '0' + i : 'A' + i - 10);
    buffer_add_text(&name, "Evv");
    assert_false(demangle(buffer_text(&name), &text));

    _cleanup_buffer_ struct buffer rust = {0};
    buffer_add_text(&rust, "_RINvC1a1fTuuE"); /* then pairs of what came just before */
    const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t before = strlen("INvC1a1f");
    for (int i = 0; i < 30; i++) {
        size_t here = rust.length - 2;
        char number[3] = {0};
        size_t value = before - 1; /* base-62 numbers begin with 1 */
        if (value < 62)
            number[0] = digits[value];
        else
            number[0] = digits[value / 62], number[1] = digits[value % 62];
        buffer_printf(&rust, "TB%s_B%s_E", number, number);
        before = here;
    }
    buffer_add_text(&rust, "E");
    assert_false(demangle(buffer_text(&rust), &text));

    /* Deep ones, and ones beyond the limit. */
    for (size_t depth = 100; depth < 6000; depth *= 2) {
        text.length = name.length = 0;
        buffer_add_text(&name, "_Z1f");
        for (size_t i = 0; i < depth; i++)
            buffer_add_char(&name, 'P');
        buffer_add_text(&name, "i");
        bool done = demangle(buffer_text(&name), &text);
        if (name.length > DEMANGLE_INPUT_MAX)
            assert_false(done);
    }
}

/* ---- the kernel ---- */

static const char kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
                               "ffffffff81000000 T _text\n"
                               "ffffffff81000000 T startup_64\n"
                               "ffffffff81000100 t local_one\n"
                               "ffffffff81000200 W weak_one\n"
                               "ffffffff81000280 D some_data\n"
                               "not a line\n"
                               "ffffffff810002f0 t __pfx_last_of_kernel\n"
                               "ffffffff81000300 T last_of_kernel\n"
                               "ffffffffc0001000 t first\t[mod_a]\n"
                               "ffffffffc0001ff0 t second\t[mod_a]\n"
                               "ffffffffc0009000 t third\t[mod_b]\n";

#define assert_kernel(symbols, address, expected_name, expected_module)                            \
    do {                                                                                           \
        struct symbol found_ = {0};                                                                \
        const char *module_ = expected_module;                                                     \
        assert_true(kernel_symbols_find(symbols, address, &found_));                               \
        assert_string_equal(found_.name, expected_name);                                           \
        assert_string_equal(found_.module ? found_.module : "none", module_);                      \
    } while (0)

static void kernel_functions(void **state)
{
    (void)state;
    struct kernel_symbols *symbols = NULL;
    struct symbol symbol;
    struct error error = {0};
    assert_int_equal(kernel_symbols_parse(kallsyms, strlen(kallsyms), &symbols, &error), 0);
    assert_int_equal(kernel_symbols_count(symbols), 8);
    assert_kernel(symbols, 0xffffffff81000000, "startup_64", "none");
    assert_kernel(symbols, 0xffffffff810000ff, "startup_64", "none");
    assert_kernel(symbols, 0xffffffff81000100, "local_one", "none");
    assert_kernel(symbols, 0xffffffff8100027f, "weak_one", "none");
    assert_false(kernel_symbols_find(symbols, 0xffffffff81000280, &symbol));
    assert_kernel(symbols, 0xffffffff810002ff, "last_of_kernel", "none");
    assert_kernel(symbols, 0xffffffff81001fff, "last_of_kernel", "none");
    assert_false(kernel_symbols_find(symbols, 0xffffffff81002000, &symbol));
    assert_kernel(symbols, 0xffffffffc0001fef, "first", "mod_a");
    assert_kernel(symbols, 0xffffffffc0002fff, "second", "mod_a");
    assert_false(kernel_symbols_find(symbols, 0xffffffffc0003000, &symbol));
    assert_kernel(symbols, 0xffffffffc0009000, "third", "mod_b");
    assert_false(kernel_symbols_find(symbols, 0, &symbol));
    kernel_symbols_free(symbols);

    for (size_t cut = 0; cut < strlen(kallsyms); cut++) {
        _cleanup_free_ char *copy = memory_strndup(kallsyms, cut);
        if (kernel_symbols_parse(copy, cut, &symbols, NULL) == 0)
            kernel_symbols_free(symbols);
    }
    static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t local_one\n";
    assert_int_equal(kernel_symbols_parse(hidden, strlen(hidden), &symbols, &error), -EPERM);
    assert_says(&error, "kptr_restrict");
    assert_int_equal(kernel_symbols_parse("", 0, &symbols, &error), -ENODATA);
}

/* ---- the symbolizer ---- */

static void write_image(const char *path, const struct buffer *image)
{
    struct error error = {0};
    assert_int_equal(file_write_atomic(path, image->data, image->length, &error), 0);
}

static void files_by_identity(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct symbol symbol = {0};
    make_usual(&image);
    write_image("a", &image);
    write_image("b", &image);
    struct symbolizer *symbolizer = symbolizer_new();
    assert_false(symbolizer_find(symbolizer, "a", "0badc0de", IMAGE_CODE, &symbol));
    assert_int_equal(symbolizer_stats(symbolizer).mismatched, 1);
    assert_false(symbolizer_find(symbolizer, "missing", "cafebabe", IMAGE_CODE, &symbol));
    assert_int_equal(symbolizer_stats(symbolizer).unreadable, 1);
    assert_false(symbolizer_find(symbolizer, "missing", NULL, IMAGE_CODE, &symbol));
    assert_true(symbolizer_find(symbolizer, "a", "cafebabe", IMAGE_CODE + 0x45, &symbol));
    assert_string_equal(symbol.name, "inside");
    /* One build is read once. */
    assert_true(symbolizer_find(symbolizer, "b", NULL, IMAGE_CODE + 0x45, &symbol));
    assert_true(symbolizer_find(symbolizer, NULL, "cafebabe", IMAGE_CODE + 0x45, &symbol));
    assert_int_equal(symbolizer_stats(symbolizer).files, 1);
    /* Failures are remembered. */
    assert_false(symbolizer_find(symbolizer, "a", "0badc0de", IMAGE_CODE, &symbol));
    assert_int_equal(symbolizer_stats(symbolizer).mismatched, 1);

    /* Without a build ID, a file that is replaced is another. */
    image.data[IMAGE_NOTES + 24 + 8] = 9;
    write_image("c", &image);
    assert_true(symbolizer_find(symbolizer, "c", NULL, IMAGE_CODE + 0x45, &symbol));
    assert_false(symbolizer_find(symbolizer, "c", "cafebabf", IMAGE_CODE + 0x45, &symbol));
    _cleanup_buffer_ struct buffer other = {0};
    make_image(&other);
    other.data[IMAGE_NOTES + 24 + 8] = 9;
    write_image("c", &other);
    assert_true(symbolizer_find(symbolizer, "c", NULL, IMAGE_CODE + 0x45, &symbol));
    assert_null(symbol.name);
    assert_int_equal(symbolizer_stats(symbolizer).files, 3);
    symbolizer_free(symbolizer);
}

static void separate_debug_file(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0}, debug = {0};
    assert_int_equal(debug_file_checksum(0, "123456789", 9), 0xcbf43926);
    make_usual(&debug);
    make_image(&image);
    uint32_t checksum = debug_file_checksum(0, debug.data, debug.length);
    image_put(&image, IMAGE_LINK + 8, &checksum, 4);
    write_image("program", &image);
    assert_int_equal(mkdir(".debug", 0777), 0);
    for (int wrong = 0; wrong < 3; wrong++) {
        if (wrong == 1)
            debug.data[IMAGE_CODE]++; /* the checksum no longer fits */
        if (wrong == 2) {             /* the checksum does, but it is another build's */
            debug.data[IMAGE_NOTES + 24 + 16]++;
            checksum = debug_file_checksum(0, debug.data, debug.length);
            image_put(&image, IMAGE_LINK + 8, &checksum, 4);
            write_image("program", &image);
        }
        write_image(".debug/a.debug", &debug);
        struct symbolizer *symbolizer = symbolizer_new();
        struct symbol symbol = {0};
        assert_true(symbolizer_find(symbolizer, "program", NULL, IMAGE_CODE + 0x45, &symbol));
        if (wrong)
            assert_null(symbol.name);
        else
            assert_string_equal(symbol.name, "inside");
        symbolizer_free(symbolizer);
    }
}

/* By the dynamic linker's word: for a program's own file and for libc. */
static void own_program(void **state)
{
    (void)state;
    struct symbolizer *symbolizer = symbolizer_new();
    struct symbol symbol = {0};
    FILE *maps = fopen("/proc/self/maps", "r");
    const uint64_t addresses[] = {(uint64_t)(uintptr_t)own_program,
                                  (uint64_t)(uintptr_t)dlsym(RTLD_NEXT, "gnu_get_libc_version")};
    const char *const names[] = {"own_program", "gnu_get_libc_version"};
    char line[1024], path[512];
    int found = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long start, end, offset;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %511s", &start, &end, &offset, path) != 4)
            continue;
        for (int i = 0; i < 2; i++) {
            if (addresses[i] < start || addresses[i] >= end)
                continue;
            assert_true(symbolizer_find(symbolizer, path, NULL, addresses[i] - start + offset + 1,
                                        &symbol));
            assert_non_null(symbol.name);
            assert_string_equal(symbol.name, names[i]);
            found++;
        }
    }
    fclose(maps);
    assert_int_equal(found, 2);
    symbolizer_free(symbolizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_by_address),
        cmocka_unit_test(unwind_entries_stand_in),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(long_names),
        cmocka_unit_test(readable_names),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(kernel_functions),
        cmocka_unit_test_setup_teardown(files_by_identity, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(separate_debug_file, enter_folder, leave_folder),
        cmocka_unit_test(own_program),
        cmocka_unit_test(tables_within_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
