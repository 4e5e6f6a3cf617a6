// SPDX-License-Identifier: Apache-2.0
// ELF files: what they say, what is found when they don't say it, and what is not believed. One
// file is made by hand; the others are this process's own.

#include <fcntl.h>
#include <sys/stat.h>

#include "arch/x86_64/x86_64.h"
#include "elf_image.h"
#include "own_process.h"
#include "unit.h"

static void open_image(struct buffer *image, struct elf_file *file)
{
    struct error error = {0};
    if (elf_open_memory(image->data, image->length, ELF_LAYOUT_FILE, file, &error) < 0)
        fail_msg("%s", error.text);
}

static void headers_and_sections(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0}, content = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct elf_section section;
    make_image(&image);
    open_image(&image, &file);
    assert_int_equal(file.type, ET_DYN);
    assert_int_equal(file.machine, EM_X86_64);
    assert_true(file.entry == IMAGE_CODE_ADDRESS);
    assert_int_equal(file.segment_count, 5);
    assert_int_equal(file.section_count, 9);
    assert_false(file.sections_damaged);
    assert_int_equal(elf_kind_of(&file), ELF_KIND_STATIC_PIE);
    assert_true(elf_find_section(&file, ".dynstr", &section));
    assert_true(section.address == IMAGE_BASE + IMAGE_STRINGS && section.size_bytes == 16);
    assert_false(elf_find_section(&file, ".data", &section));
    assert_true(elf_find_section(&file, ".gnu_debuglink", &section));
    assert_int_equal(elf_read_section(&file, &section, 100, &content, NULL), 0);
    assert_int_equal(content.length, 16);
    assert_memory_equal(content.data, "a.debug", 8);
    struct error error = {0};
    assert_int_equal(elf_read_section(&file, &section, 15, &content, &error), -E2BIG);
    assert_says(&error, ".gnu_debuglink is 16 bytes; the limit is 15");
}

static void identity(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0}, text = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length = 0;
    uint32_t crc = 0;
    make_image(&image);
    open_image(&image, &file);
    assert_true(elf_build_id(&file, id, &length));
    assert_int_equal(length, 4);
    assert_memory_equal(id, "\xca\xfe\xba\xbe", 4);
    assert_true(elf_go_build_id(&file, &text));
    assert_buffer(&text, "go-made");
    assert_true(elf_debug_link(&file, &text, &crc));
    assert_buffer(&text, "a.debug");
    assert_int_equal(crc, 0x12345678);
    /* Without its segment the note is found through the section. */
    file.segments[2].type = PT_NULL;
    assert_true(elf_build_id(&file, id, &length));
    file.sections[3].type = SHT_PROGBITS;
    assert_false(elf_build_id(&file, id, &length));
}

static void addresses_and_offsets(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    uint64_t value = 0;
    uint8_t byte;
    make_image(&image);
    open_image(&image, &file);
    assert_true(elf_offset_to_address(&file, 0x1010, &value) && value == 0x402010);
    assert_true(elf_address_to_offset(&file, 0x402010, &value) && value == 0x1010);
    assert_true(elf_address_to_offset(&file, 0x400fff, &value) && value == 0xfff);
    assert_false(elf_address_to_offset(&file, 0x401000, &value));
    assert_false(elf_offset_to_address(&file, 0x3000, &value));
    assert_true(elf_load_bias(&file, 0x7f0000002000, 0x1000, &value) && value == 0x7effffc00000);
    assert_false(elf_load_bias(&file, 0x7f0000002000, 0x9000, &value));
    /* Segments may share a page of the file: the code's is meant. */
    file.segments[1].offset = 0xf80;
    file.segments[1].address = IMAGE_CODE_ADDRESS + 0xf80;
    assert_true(elf_offset_to_address(&file, 0xf90, &value) && value == IMAGE_CODE_ADDRESS + 0xf90);
    assert_true(elf_load_bias(&file, 0x7f0000002000, 0, &value) && value == 0x7effffc00000);
    assert_int_equal(elf_read_address(&file, IMAGE_BASE, &byte, 1), 0);
    assert_int_equal(byte, 0x7f);
    assert_int_equal(elf_read_address(&file, IMAGE_BASE + 0x1000, &byte, 1), -ENODATA);
}

static void compile_file(struct elf_file *file, struct unwind_rules *rules,
                         struct unwind_rows *rows)
{
    struct error error = {0};
    unwind_rules_init(rules);
    if (unwind_rows_compile(file, rules, rows, &error) < 0)
        fail_msg("%s", error.text);
}

static void assert_same_rows(const struct unwind_rows *left, const struct unwind_rows *right)
{
    assert_int_equal(left->row_count, right->row_count);
    assert_int_equal(left->page_count, right->page_count);
    assert_int_equal(left->function_count, right->function_count);
    assert_true(left->first_page == right->first_page);
    assert_memory_equal(left->rows, right->rows, left->row_count * sizeof(*left->rows));
    assert_memory_equal(left->pages, right->pages, left->page_count * sizeof(*left->pages));
}

/* Sections that the segments lead to are the same that the section headers name. */
static void check_without_headers(struct buffer *image)
{
    static const char *const names[] = {".eh_frame", ".dynamic", ".dynstr", ".dynsym"};
    struct elf_section with[ARRAY_LENGTH(names)], without;
    struct elf_file whole = {.fd = -1}, stripped = {.fd = -1};
    _cleanup_rules_ struct unwind_rules rules, other_rules;
    _cleanup_rows_ struct unwind_rows rows = {0}, other_rows = {0};
    open_image(image, &whole);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        assert_true(elf_find_section(&whole, names[i], &with[i]));
    compile_file(&whole, &rules, &rows);
    assert_true(rows.row_count > 0);
    elf_release(&whole);
    memset(image->data + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
    open_image(image, &stripped);
    assert_int_equal(stripped.section_count, 0);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (!elf_find_section(&stripped, names[i], &without))
            fail_msg("%s was not found", names[i]);
        assert_string_equal(without.name, names[i]);
        assert_true(without.address == with[i].address && without.offset == with[i].offset);
        assert_true(without.size_bytes == with[i].size_bytes || without.open_ended);
    }
    assert_true(elf_find_section(&stripped, ".text", &without));
    assert_false(elf_find_section(&stripped, ".symtab", &without));
    compile_file(&stripped, &other_rules, &other_rows);
    assert_same_rows(&rows, &other_rows);
    elf_release(&stripped);
}

static void without_section_headers(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_image(&image);
    check_without_headers(&image);
}

/* The path of a library of this process. */
static void find_library(const char *part, char path[256])
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    path[0] = '\0';
    while (maps && fgets(line, sizeof(line), maps) && !path[0])
        if (strstr(line, part) && strchr(line, '/'))
            snprintf(path, 256, "%.*s", (int)strcspn(strchr(line, '/'), "\n"), strchr(line, '/'));
    if (maps)
        fclose(maps);
    assert_true(path[0] == '/');
}

static void read_whole(const char *path, struct buffer *content)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    assert_true(fd >= 0);
    while ((got = read(fd, buffer_reserve(content, 1 << 20), 1 << 20)) > 0)
        content->length += (size_t)got;
    close(fd);
}

static void real_files_without_section_headers(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer libc = {0};
    char path[256];
    find_library("/libc.so", path);
    read_whole(path, &libc);
    check_without_headers(&libc);
}

static void kinds(void **state)
{
    (void)state;
    char path[256];
    struct elf_file file = {.fd = -1};
    struct error error = {0};
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length;
    assert_int_equal(elf_open("/proc/self/exe", &file, &error), 0);
    assert_int_equal(elf_kind_of(&file), file.type == ET_EXEC ? ELF_KIND_DYNAMIC : ELF_KIND_PIE);
    elf_release(&file);
    find_library("/libc.so", path);
    assert_int_equal(elf_open(path, &file, &error), 0);
    assert_int_equal(elf_kind_of(&file), ELF_KIND_SHARED); /* though it has an interpreter */
    assert_true(elf_build_id(&file, id, &length));
    assert_int_equal(length, 20);
    elf_release(&file);
    find_library("/ld-linux", path);
    assert_int_equal(elf_open(path, &file, &error), 0);
    assert_int_equal(elf_kind_of(&file), ELF_KIND_SHARED);
    elf_release(&file);
}

static ssize_t read_own_memory(void *context, uint64_t offset, void *buffer, size_t length)
{
    struct own_process *process = context;
    size_t got = own_read_bytes(process, process->objects[0].bias + offset, buffer, length);
    return got ? (ssize_t)got : -EFAULT;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    if (strstr(info->dlpi_name, "/libc.so"))
        *(uint64_t *)context = info->dlpi_addr;
    return 0;
}

/* As it is loaded: no file, no section headers. */
static void images_in_memory(void **state)
{
    (void)state;
    struct own_process process = {.pid = getpid()};
    _cleanup_rules_ struct unwind_rules rules, memory_rules;
    _cleanup_rows_ struct unwind_rows rows = {0}, memory_rows = {0};
    struct elf_file file = {.fd = -1}, memory = {.fd = -1};
    struct error error = {0};
    uint8_t id[ELF_BUILD_ID_MAX], memory_id[ELF_BUILD_ID_MAX];
    size_t length = 0, memory_length = 0;
    char path[256];
    find_library("/libc.so", path);
    dl_iterate_phdr(find_libc, &process.objects[0].bias);
    assert_true(process.objects[0].bias);
    assert_int_equal(elf_open(path, &file, &error), 0);
    if (elf_open_reader(read_own_memory, &process, UINT64_MAX, ELF_LAYOUT_MEMORY, &memory, &error) <
        0)
        fail_msg("%s", error.text);
    assert_true(elf_build_id(&file, id, &length));
    assert_true(elf_build_id(&memory, memory_id, &memory_length));
    assert_int_equal(length, memory_length);
    assert_memory_equal(id, memory_id, length);
    compile_file(&file, &rules, &rows);
    compile_file(&memory, &memory_rules, &memory_rows);
    assert_same_rows(&rows, &memory_rows);
    elf_release(&file);
    elf_release(&memory);
}

/* The rules of a section that begins like this, of which all bytes are needed. */
static bool plt_rules(const char *section, const uint8_t *start, size_t length,
                      struct x86_64_plt *ret_plt)
{
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *copy = memcpy(test_malloc(cut + 1), start, cut);
        assert_false(x86_64_plt_rules(section, copy, cut, ret_plt));
        test_free(copy);
    }
    return x86_64_plt_rules(section, start, length, ret_plt);
}

static const uint8_t lazy_plt[32] = {[16] = 0xff, 0x25, 0, 0, 0, 0, 0x68, 1, 0, 0, 0, 0xe9};

static void linkage_stubs(void **state)
{
    (void)state;
    static const uint8_t marked[32] = {[16] = 0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xe9};
    static const uint8_t second[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25};
    static const uint8_t mold[48] = {
        0xf3, 0x0f, 0x1e, 0xfa, 0x41,        0x53, 0xff, 0x35, 0,    0,
        0,    0,    0xff, 0x25, [32] = 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb};
    static const uint8_t other[48] = {0x90};
    struct x86_64_plt plt;
    assert_true(plt_rules(".plt", lazy_plt, sizeof(lazy_plt), &plt));
    assert_int_equal(plt.count, 3);
    assert_true(plt.parts[0].rule.cfa_offset == 16 && plt.parts[1].offset == 6);
    assert_true(plt.parts[1].rule.cfa_offset == 24 && plt.parts[2].offset == 16);
    const struct unwind_rule *rule = &plt.parts[2].rule;
    assert_true(rule->cfa == UNWIND_CFA_PLT && rule->argument == 11 && rule->cfa_offset == 8);
    assert_true(plt_rules(".plt", marked, sizeof(marked), &plt));
    assert_true(rule->cfa == UNWIND_CFA_PLT && rule->argument == 9);
    assert_true(plt_rules(".iplt", lazy_plt + 16, 16, &plt));
    assert_true(plt.count == 1 && plt.parts[0].rule.argument == 11);
    assert_true(plt_rules(".plt.sec", second, sizeof(second), &plt));
    assert_true(plt.count == 1 && plt.parts[0].offset == 0);
    assert_true(plt.parts[0].rule.cfa == UNWIND_CFA_SP && plt.parts[0].rule.cfa_offset == 8);
    assert_true(plt_rules(".plt", mold, sizeof(mold), &plt));
    static const uint32_t offsets[] = {0, 6, 12, 32}, bytes[] = {8, 16, 24, 8};
    assert_int_equal(plt.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(plt.parts[i].offset, offsets[i]);
        assert_true(plt.parts[i].rule.cfa == UNWIND_CFA_SP);
        assert_int_equal(plt.parts[i].rule.cfa_offset, bytes[i]);
    }
    assert_false(plt_rules(".plt", other, sizeof(other), &plt));
    assert_false(plt_rules(".plt.sec", other, sizeof(other), &plt));
    assert_false(plt_rules(".text", lazy_plt, sizeof(lazy_plt), &plt));
}

/* A function that goes on in the next one, through nops. */
__asm__(".text\n"
        ".p2align 6\n"
        "passed_through: .cfi_startproc\n nop\n .cfi_endproc\n"
        ".p2align 6\n"
        "behind_padding: .cfi_startproc\n ret\n .cfi_endproc\n");
extern char passed_through[];

static int find_program(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1;
}

static void padding_between_functions(void **state)
{
    (void)state;
    struct elf_file file = {.fd = -1};
    struct error error = {0};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    uint64_t bias = 0;
    dl_iterate_phdr(find_program, &bias);
    assert_int_equal(elf_open("/proc/self/exe", &file, &error), 0);
    compile_file(&file, &rules, &rows);
    for (int i = 0; i <= 64; i++) {
        uint16_t rule = unwind_rows_find(&rows, (uint64_t)passed_through + (uint64_t)i - bias);
        assert_int_not_equal(rule, UNWIND_RULE_NONE);
        assert_int_equal(rules.rules[rule].cfa, UNWIND_CFA_SP);
        assert_int_equal(rules.rules[rule].cfa_offset, 8);
    }
    elf_release(&file);
}

/* A linker that writes no frames for them: the section is named, its code is ours. */
static void stubs_without_frames(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_image(&image);
    Elf64_Shdr *sections = (Elf64_Shdr *)(image.data + IMAGE_SECTIONS);
    sections[1].sh_addr += 0x1000;
    sections[1].sh_offset += 0x1000;
    sections[1].sh_size = 64;
    image_put(&image, IMAGE_NAMES + 1, ".plt\0", 6);
    for (int i = 1; i < 4; i++)
        image_put(&image, sections[1].sh_offset + 16 * (size_t)i, lazy_plt + 16, 16);
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    open_image(&image, &file);
    compile_file(&file, &rules, &rows);
    uint64_t plt = sections[1].sh_addr;
    assert_int_equal(rules.rules[unwind_rows_find(&rows, plt)].cfa_offset, 16);
    assert_int_equal(rules.rules[unwind_rows_find(&rows, plt + 6)].cfa_offset, 24);
    assert_int_equal(rules.rules[unwind_rows_find(&rows, plt + 16)].cfa, UNWIND_CFA_PLT);
    assert_int_equal(rules.rules[unwind_rows_find(&rows, plt + 63)].cfa, UNWIND_CFA_PLT);
    assert_int_equal(unwind_rows_find(&rows, plt + 64), UNWIND_RULE_NONE);
    assert_int_equal(unwind_rows_find(&rows, plt - 1), UNWIND_RULE_NONE);
}

static void refuse(struct buffer *image, size_t length, int code, const char *words)
{
    struct elf_file file = {.fd = -1};
    struct error error = {0};
    assert_int_equal(elf_open_memory(image->data, length, ELF_LAYOUT_FILE, &file, &error), code);
    assert_says(&error, words);
}

static void refusals(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_image(&image);
    Elf64_Ehdr *header = (Elf64_Ehdr *)image.data, good = *header;
    refuse(&image, 63, -EBADMSG, "too short");
    refuse(&image, 100, -EBADMSG, "ends before its program headers");
    header->e_ident[0] = 'E';
    refuse(&image, image.length, -EBADMSG, "not an ELF file");
    *header = good;
    header->e_ident[EI_CLASS] = ELFCLASS32;
    refuse(&image, image.length, -ENOTSUP, "32-bit");
    *header = good;
    header->e_ident[EI_DATA] = ELFDATA2MSB;
    refuse(&image, image.length, -ENOTSUP, "big-endian");
    *header = good;
    header->e_machine = EM_AARCH64;
    refuse(&image, image.length, -ENOTSUP, "machine number 183");
    *header = good;
    header->e_phentsize = 32;
    refuse(&image, image.length, -EBADMSG, "program headers are 32 bytes");
    *header = good;
    header->e_phnum = 60000;
    refuse(&image, image.length, -E2BIG, "60000 program headers");
    *header = good;
    header->e_phoff = UINT64_MAX - 4;
    refuse(&image, image.length, -EBADMSG, "program headers");
    *header = good;
    struct elf_file file = {.fd = -1};
    struct error error = {0};
    assert_int_equal(elf_open("/nowhere/at/all", &file, &error), -ENOENT);
    assert_int_equal(elf_open("/dev/null", &file, &error), -EINVAL);
    assert_int_equal(elf_open("/", &file, &error), -EINVAL);
}

/* What lies about sections is used without them. */
static void lying_section_headers(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_image(&image);
    Elf64_Ehdr *header = (Elf64_Ehdr *)image.data, good = *header;
    Elf64_Shdr *sections = (Elf64_Shdr *)(image.data + IMAGE_SECTIONS);
    for (int i = 0; i < 6; i++) {
        *header = good;
        if (i == 0)
            header->e_shoff = UINT64_MAX;
        else if (i == 1)
            header->e_shnum = 10;
        else if (i == 2)
            header->e_shstrndx = 9;
        else if (i == 3)
            header->e_shentsize = 1;
        else if (i == 4)
            header->e_shnum = 0, sections[0].sh_size = 1ull << 40;
        else
            sections[8].sh_size = 1ull << 40;
        struct elf_file file = {.fd = -1};
        struct elf_section section;
        open_image(&image, &file);
        assert_true(file.sections_damaged);
        assert_int_equal(file.section_count, 0);
        assert_true(elf_find_section(&file, ".eh_frame", &section));
        elf_release(&file);
    }
    /* A count that doesn't fit into the header stands in the first section. */
    *header = good;
    header->e_shnum = 0;
    sections[0].sh_size = 9;
    sections[8].sh_size = sizeof(image_names);
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    open_image(&image, &file);
    assert_int_equal(file.section_count, 9);
    struct elf_section section = file.sections[2];
    section.size_bytes = 1ull << 62;
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    assert_int_equal(elf_read_section(&file, &section, SIZE_MAX, &content, &error), -ENODATA);
    assert_says(&error, "ends within the section .eh_frame");
    section.offset = UINT64_MAX - 1;
    assert_int_equal(elf_read_section(&file, &section, SIZE_MAX, &content, &error), -ENODATA);
}

/* A file that becomes shorter while it is read. */
static void shrinking_files(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    struct error error = {0};
    make_image(&image);
    int fd = open("image", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, image.data, image.length) == (ssize_t)image.length);
    close(fd);
    assert_int_equal(elf_open("image", &file, &error), 0);
    assert_int_equal(truncate("image", IMAGE_FRAMES + 10), 0);
    unwind_rules_init(&rules);
    assert_int_equal(unwind_rows_compile(&file, &rules, &rows, &error), -ENODATA);
    assert_says(&error, "ends within the section .eh_frame");
}

/* Everything there is to ask of a file. */
static void use(struct elf_file *file)
{
    static const char *const names[] = {".eh_frame", ".eh_frame_hdr", ".dynsym", ".dynstr",
                                        ".text"};
    _cleanup_buffer_ struct buffer content = {0};
    _cleanup_rules_ struct unwind_rules rules;
    _cleanup_rows_ struct unwind_rows rows = {0};
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length;
    uint32_t crc;
    uint64_t value;
    struct elf_section section;
    elf_kind_of(file);
    elf_build_id(file, id, &length);
    elf_go_build_id(file, &content);
    elf_debug_link(file, &content, &crc);
    elf_load_bias(file, 0x7000, 0x1000, &value);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (elf_find_section(file, names[i], &section))
            elf_read_section(file, &section, 1 << 20, &content, NULL);
    unwind_rules_init(&rules);
    if (unwind_rows_compile(file, &rules, &rows, NULL) == 0)
        for (value = IMAGE_CODE_ADDRESS - 2; value < IMAGE_CODE_ADDRESS + 400; value++)
            assert_true(unwind_rows_find(&rows, value) < rules.count);
}

static void open_and_use(const struct buffer *image, size_t length)
{
    for (int layout = 0; layout < 2; layout++) {
        /* An exact copy, so that a sanitizer sees a read beyond it. */
        _cleanup_free_ uint8_t *exact = memory_alloc(length + 1);
        memcpy(exact, image->data, length);
        _cleanup_elf_ struct elf_file file = {.fd = -1};
        struct error error = {0};
        int r = elf_open_memory(exact, length, layout ? ELF_LAYOUT_MEMORY : ELF_LAYOUT_FILE, &file,
                                &error);
        if (r == 0)
            use(&file);
        else
            assert_true(error.code == r && error.text[0]);
    }
}

static void truncations_and_flips_do_no_harm(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_image(&image);
    for (int headers = 0; headers < 2; headers++) {
        for (size_t cut = 0; cut < image.length; cut += cut < 0x600 || cut > 0x3000 ? 1 : 16)
            open_and_use(&image, cut);
        for (size_t at = 0; at < image.length; at++) {
            if (at == 0x600)
                at = IMAGE_LINK; /* nothing but zeros between */
            for (int flip = 0; flip < 3; flip++) {
                char before = image.data[at];
                image.data[at] = (char)(flip == 0   ? before ^ 0xff
                                        : flip == 1 ? before ^ 1
                                                    : before + 16);
                open_and_use(&image, image.length);
                image.data[at] = before;
            }
        }
        memset(image.data + offsetof(Elf64_Ehdr, e_shoff), 0, 8); /* again, by the segments */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_and_sections),
        cmocka_unit_test(identity),
        cmocka_unit_test(addresses_and_offsets),
        cmocka_unit_test(without_section_headers),
        cmocka_unit_test(real_files_without_section_headers),
        cmocka_unit_test(kinds),
        cmocka_unit_test(images_in_memory),
        cmocka_unit_test(linkage_stubs),
        cmocka_unit_test(stubs_without_frames),
        cmocka_unit_test(padding_between_functions),
        cmocka_unit_test(refusals),
        cmocka_unit_test(lying_section_headers),
        cmocka_unit_test_setup_teardown(shrinking_files, enter_folder, leave_folder),
        cmocka_unit_test(truncations_and_flips_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
