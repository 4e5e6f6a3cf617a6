// SPDX-License-Identifier: Apache-2.0
// Extracts of ELF files: what names addresses is in them, byte for byte, and code is not.

#include <fcntl.h>

#include "elf/extract.h"
#include "elf_image.h"
#include "own_process.h"
#include "unit.h"

static void read_all(const struct elf_extract *extract, size_t step, struct buffer *ret_content)
{
    ssize_t got;
    while ((got = elf_extract_read(extract, ret_content->length, buffer_reserve(ret_content, step),
                                   step)) > 0)
        ret_content->length += (size_t)got;
    assert_int_equal(got, 0);
    assert_true(ret_content->length == extract->size_bytes);
}

static void make_extract(struct elf_file *file, struct buffer *ret_content)
{
    _cleanup_elf_extract_ struct elf_extract extract = {0};
    struct error error = {0};
    if (elf_extract_plan(file, NULL, &extract, &error) < 0)
        fail_msg("%s", error.text);
    read_all(&extract, 65536, ret_content);
}

/* Either the same bytes or none. */
static size_t compare_sections(struct elf_file *file, struct elf_file *copy)
{
    size_t kept = 0;
    assert_true(copy->section_count == file->section_count);
    for (size_t i = 1; i < file->section_count; i++) {
        _cleanup_buffer_ struct buffer whole = {0}, part = {0};
        const struct elf_section *before = &file->sections[i], *after = &copy->sections[i];
        assert_string_equal(before->name, after->name);
        assert_true(before->address == after->address);
        if (before->flags & SHF_EXECINSTR)
            assert_int_equal(after->type, SHT_NOBITS);
        if (after->type == SHT_NOBITS)
            continue;
        kept++;
        assert_int_equal(elf_read_section(file, before, 1u << 30, &whole, NULL), 0);
        assert_int_equal(elf_read_section(copy, after, 1u << 30, &part, NULL), 0);
        assert_int_equal(whole.length, part.length);
        assert_memory_equal(whole.data ? whole.data : "", part.data ? part.data : "", whole.length);
    }
    return kept;
}

static void keeps_what_names(void **state)
{
    (void)state;
    static const char *const gone[] = {".text", ".dynamic"};
    _cleanup_buffer_ struct buffer image = {0}, content = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1}, copy = {.fd = -1};
    struct elf_section section;
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length = 0;
    uint64_t address = 0;
    make_image(&image);
    assert_int_equal(elf_open_memory(image.data, image.length, ELF_LAYOUT_FILE, &file, NULL), 0);
    make_extract(&file, &content);
    assert_int_equal(elf_open_memory(content.data, content.length, ELF_LAYOUT_FILE, &copy, NULL),
                     0);
    /* Unwind information, build ID, link, strings, symbols and the names of all. */
    assert_int_equal(compare_sections(&file, &copy), 6);
    for (size_t i = 0; i < ARRAY_LENGTH(gone); i++) {
        assert_true(elf_find_section(&copy, gone[i], &section));
        assert_int_equal(section.type, SHT_NOBITS);
        assert_true(section.size_bytes > 0);
    }
    assert_true(elf_build_id(&copy, id, &length));
    assert_int_equal(length, 4);
    assert_memory_equal(id, "\xca\xfe\xba\xbe", 4);
    /* Where code lies in the original is still known. */
    assert_true(elf_offset_to_address(&copy, IMAGE_CODE + 8, &address));
    assert_true(address == IMAGE_CODE_ADDRESS + 8);
}

static void any_step_gives_the_same(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_elf_extract_ struct elf_extract extract = {0};
    _cleanup_buffer_ struct buffer whole = {0};
    make_image(&image);
    assert_int_equal(elf_open_memory(image.data, image.length, ELF_LAYOUT_FILE, &file, NULL), 0);
    assert_int_equal(elf_extract_plan(&file, NULL, &extract, NULL), 0);
    read_all(&extract, 1u << 20, &whole);
    for (size_t step = 1; step < 100; step += 7) {
        _cleanup_buffer_ struct buffer parts = {0};
        read_all(&extract, step, &parts);
        assert_int_equal(parts.length, whole.length);
        assert_memory_equal(parts.data, whole.data, whole.length);
    }
    char byte;
    assert_int_equal(elf_extract_read(&extract, UINT64_MAX, &byte, 1), 0);
}

/* This very program, whose code is most of what it has beside debug information. */
static void of_a_real_program(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer content = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1}, copy = {.fd = -1};
    struct elf_section section;
    struct error error = {0};
    if (elf_open("/proc/self/exe", &file, &error) < 0)
        fail_msg("%s", error.text);
    make_extract(&file, &content);
    if (elf_open_memory(content.data, content.length, ELF_LAYOUT_FILE, &copy, &error) < 0)
        fail_msg("%s", error.text);
    assert_false(copy.sections_damaged);
    assert_true(compare_sections(&file, &copy) >= 4);
    assert_true(elf_find_section(&copy, ".text", &section) && section.type == SHT_NOBITS);
    assert_true(elf_find_section(&copy, ".rodata", &section) && section.type == SHT_NOBITS);
    assert_true(elf_find_section(&copy, ".symtab", &section) && section.type == SHT_SYMTAB);
    /* An extract of an extract is the same again. */
    _cleanup_buffer_ struct buffer again = {0};
    make_extract(&copy, &again);
    assert_int_equal(again.length, content.length);
}

static Elf64_Shdr *section_header(struct buffer *image, const char *name)
{
    Elf64_Shdr *headers = (Elf64_Shdr *)(image->data + IMAGE_SECTIONS);
    for (size_t i = 0; i < 9; i++)
        if (!strcmp(image->data + IMAGE_NAMES + headers[i].sh_name, name))
            return &headers[i];
    fail_msg("There is no %s.", name);
    return NULL;
}

static int plan_of(struct buffer *image, struct error *error)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_elf_extract_ struct elf_extract extract = {0};
    int r = elf_open_memory(image->data, image->length, ELF_LAYOUT_FILE, &file, error);
    return r < 0 ? r : elf_extract_plan(&file, NULL, &extract, error);
}

static void refusals(void **state)
{
    (void)state;
    static const char *const sections[] = {".eh_frame", ".dynsym", ".dynstr"};
    _cleanup_buffer_ struct buffer image = {0};
    struct error error = {0};
    make_image(&image);
    section_header(&image, ".dynsym")->sh_size = 1u << 30;
    assert_int_equal(plan_of(&image, &error), -EBADMSG);
    assert_says(&error, "The section .dynsym is not at its stated offset");
    section_header(&image, ".dynsym")->sh_size = UINT64_MAX;
    assert_int_equal(plan_of(&image, &error), -EBADMSG);
    section_header(&image, ".dynsym")->sh_size = 24;
    section_header(&image, ".dynsym")->sh_offset = UINT64_MAX - 8;
    assert_int_equal(plan_of(&image, &error), -EBADMSG);
    /* Each within the file, and all together more than there is of it. */
    for (size_t i = 0; i < ARRAY_LENGTH(sections); i++) {
        section_header(&image, sections[i])->sh_offset = 0;
        section_header(&image, sections[i])->sh_size = image.length / 2;
    }
    assert_int_equal(plan_of(&image, &error), -EBADMSG);
    for (size_t i = 0; i < ARRAY_LENGTH(sections); i++)
        section_header(&image, sections[i])->sh_flags |= SHF_EXECINSTR;
    assert_int_equal(plan_of(&image, &error), -ENODATA);
    assert_says(&error, "contains no symbols");
    ((Elf64_Ehdr *)image.data)->e_shoff = 0;
    assert_int_equal(plan_of(&image, &error), -ENODATA);
    assert_says(&error, "no readable section headers");
}

static void a_file_that_shrinks(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0}, content = {0};
    _cleanup_elf_extract_ struct elf_extract extract = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    int fd = open("shrinking", O_RDWR | O_CREAT | O_TRUNC, 0600);
    make_image(&image);
    assert_true(write(fd, image.data, image.length) == (ssize_t)image.length);
    assert_int_equal(elf_open_fd(fd, &file, NULL), 0);
    assert_int_equal(elf_extract_plan(&file, NULL, &extract, NULL), 0);
    assert_int_equal(ftruncate(fd, IMAGE_FRAMES), 0);
    char *room = buffer_reserve(&content, extract.size_bytes);
    assert_int_equal(elf_extract_read(&extract, 0, room, extract.size_bytes), -ENODATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_names),
        cmocka_unit_test(any_step_gives_the_same),
        cmocka_unit_test(of_a_real_program),
        cmocka_unit_test(refusals),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
