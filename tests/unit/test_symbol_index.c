// SPDX-License-Identifier: Apache-2.0
// Symbol indexes: made of this very program, asked, and damaged in every way.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/memory.h"
#include "elf/file.h"
#include "symbol/index/build.h"
#include "symbol/index/decode.h"
#include "symbol/index/index.h"
#include "unit.h"

static struct buffer program, content;

/* What is looked for: something inlined into something else, on known lines. */
enum { CALLED_LINE = __LINE__ + 3, CALLING_LINE = __LINE__ + 7 };
static inline __attribute__((always_inline)) int inlined_into_probe(volatile int *n)
{
    return *n + 1;
}
__attribute__((noinline)) static int probe(volatile int *n)
{
    return inlined_into_probe(n);
}

static int make(const struct buffer *file, struct buffer *ret_index, struct error *error)
{
    struct symbol_index_content parts = {.file = {file->data, file->length}};
    return symbol_index_make(&parts, ret_index, error);
}

static int index_ourselves(void **state)
{
    (void)state;
    struct error error = {0};
    volatile int n = 1;
    if (probe(&n) != 2 || file_read("/proc/self/exe", 1u << 30, &program, &error) < 0)
        return -1;
    return make(&program, &content, &error);
}

static int release(void **state)
{
    (void)state;
    buffer_release(&program);
    buffer_release(&content);
    return 0;
}

/* The address of one of our functions in the file's own terms. */
static uint64_t own_address(const void *function)
{
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    char line[512];
    uint64_t bias = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    assert_int_equal(elf_open("/proc/self/exe", &file, &error), 0);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long start, end, offset;
        if (sscanf(line, "%lx-%lx %*4s %lx", &start, &end, &offset) == 3 &&
            (uintptr_t)function >= start && (uintptr_t)function < end)
            assert_true(elf_load_bias(&file, start, offset, &bias));
    }
    fclose(maps);
    return (uint64_t)(uintptr_t)function - bias;
}

static void finds_functions_and_what_is_inlined(void **state)
{
    (void)state;
    struct symbol_index index;
    struct error error = {0};
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    uint64_t address = own_address((const void *)probe), start;
    assert_int_equal(symbol_index_open_memory(content.data, content.length, &index, &error), 0);
    assert_int_equal(symbol_index_check(&index, &error), 0);
    assert_int_equal(symbol_index_quality(&index), SYMBOL_INDEX_INLINES);
    bool inlined = false;
    for (uint64_t at = address; at < address + 16 && !inlined; at++) {
        size_t count = symbol_index_look_up(&index, at, frames, SYMBOL_FRAMES_MAX, &start);
        if (!count || strcmp(frames[count - 1].name, "probe"))
            break;
        assert_int_equal(start, address);
        inlined = count == 2;
    }
    assert_true(inlined);
    assert_string_equal(frames[0].name, "inlined_into_probe");
    assert_int_equal(frames[0].line, CALLED_LINE);
    assert_int_equal(frames[1].line, CALLING_LINE);
    assert_non_null(strstr(frames[1].file, "test_symbol_index.c"));
    /* A table of one entry has the innermost, and nobody wants none. */
    assert_int_equal(symbol_index_look_up(&index, address, frames, 0, NULL), 0);
    assert_int_equal(symbol_index_look_up(&index, 0, frames, SYMBOL_FRAMES_MAX, NULL), 0);
    assert_int_equal(symbol_index_look_up(&index, UINT64_MAX, frames, SYMBOL_FRAMES_MAX, NULL), 0);
}

static void knows_offsets(void **state)
{
    (void)state;
    struct symbol_index index;
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    uint64_t address = own_address((const void *)probe), offset, back;
    assert_int_equal(symbol_index_open_memory(content.data, content.length, &index, &error), 0);
    assert_int_equal(elf_open("/proc/self/exe", &file, &error), 0);
    assert_true(elf_address_to_offset(&file, address, &offset));
    assert_true(symbol_index_address(&index, offset, &back));
    assert_int_equal(back, address);
    assert_false(symbol_index_address(&index, UINT64_MAX, &back));
}

/* All addresses of all groups: no answer may read outside, which sanitizers see. */
static void ask_everything(const struct buffer *bytes)
{
    struct symbol_index index;
    struct error error = {0};
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    if (symbol_index_open_memory(bytes->data, bytes->length, &index, &error) < 0) {
        assert_true(error.text[0]);
        return;
    }
    int checked = symbol_index_check(&index, &error);
    assert_true(!checked || error.text[0]);
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t step = (index.header->code_bytes / 64 + 1) & 0xffffff;
        size_t count = symbol_index_look_up(&index, index.header->base + i * step, frames,
                                            SYMBOL_FRAMES_MAX, NULL);
        for (size_t k = 0; k < count; k++)
            assert_true(!frames[k].name || strlen(frames[k].name) < content.length);
    }
}

static void seal(struct buffer *bytes)
{
    struct symbol_index_header *header = (struct symbol_index_header *)(void *)bytes->data;
    header->content_checksum =
        XXH3_64bits(bytes->data + sizeof(*header), bytes->length - sizeof(*header));
    header->header_checksum = symbol_index_header_checksum(header);
}

static void refuses_damage(void **state)
{
    (void)state;
    struct error error = {0};
    struct symbol_index index;
    _cleanup_buffer_ struct buffer copy = {0};
    for (size_t length = 0; length < content.length;
         length += length < 1024 ? 1 : content.length / 97) {
        copy.length = 0;
        buffer_add(&copy, content.data, length);
        assert_true(
            symbol_index_open_memory(copy.data ? copy.data : "", copy.length, &index, &error) < 0);
    }
    /* A flipped bit of the content is only seen by the check. */
    copy.length = 0;
    buffer_add(&copy, content.data, content.length);
    copy.data[copy.length / 2] ^= 1;
    assert_int_equal(symbol_index_open_memory(copy.data, copy.length, &index, &error), 0);
    assert_int_equal(symbol_index_check(&index, &error), -EBADMSG);
    assert_says(&error, "checksum");
    copy.data[copy.length / 2] ^= 1;
    struct symbol_index_header *header = (struct symbol_index_header *)(void *)copy.data;
    header->version++;
    assert_int_equal(symbol_index_open_memory(copy.data, copy.length, &index, &error), -ENOTSUP);
    assert_says(&error, "Rebuild it");
}

/* With checksums that fit, a hostile index gets past the door. */
static void survives_hostile_indexes(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer copy = {0};
    unsigned seed = 1;
    for (int i = 0; i < 400; i++) {
        copy.length = 0;
        buffer_add(&copy, content.data, content.length);
        for (int k = 0; k < 8; k++) {
            size_t range = i % 4 ? copy.length : sizeof(struct symbol_index_header);
            size_t at = 16 + (size_t)rand_r(&seed) % (range - 16);
            copy.data[at] = (char)rand_r(&seed);
        }
        ((struct symbol_index_header *)(void *)copy.data)->file_bytes = copy.length;
        seal(&copy);
        ask_everything(&copy);
    }
}

static void survives_hostile_binaries(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_buffer_ struct buffer copy = {0}, index = {0};
    unsigned seed = 7;
    assert_int_equal(elf_open_memory(program.data, program.length, ELF_LAYOUT_FILE, &file, &error),
                     0);
    for (int i = 0; i < 40; i++) {
        static const char *const names[] = {".debug_info", ".debug_abbrev", ".debug_line",
                                            ".debug_rnglists", ".debug_str"};
        struct elf_section section;
        if (!elf_find_section(&file, names[i % 5], &section) || !section.size_bytes)
            continue;
        copy.length = index.length = 0;
        buffer_add(&copy, program.data, program.length);
        for (int k = 0; k < 1 + i; k++)
            copy.data[section.offset + (uint64_t)rand_r(&seed) % section.size_bytes] =
                (char)rand_r(&seed);
        assert_int_equal(make(&copy, &index, &error), 0);
        ask_everything(&index);
    }
    for (int i = 1; i < 12; i++) {
        copy.length = index.length = 0;
        buffer_add(&copy, program.data, program.length * (size_t)i / 12);
        if (make(&copy, &index, &error) == 0)
            ask_everything(&index);
        else
            assert_true(error.text[0]);
    }
}

static void is_made_in_a_child(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer index = {0};
    assert_int_equal(symbol_index_build_path("/proc/self/exe", NULL, &index, &error), 0);
    assert_int_equal(index.length, content.length);
    assert_memory_equal(index.data, content.data, content.length);
    assert_int_equal(file_write_atomic("no-elf", "text", 4, &error), 0);
    assert_true(symbol_index_build_path("no-elf", NULL, &index, &error) < 0);
    assert_says(&error, "no-elf: ");
    assert_int_equal(symbol_index_build_path("missing", NULL, &index, &error), -ENOENT);
    assert_int_equal(file_write_atomic("x.symbols", content.data, content.length, &error), 0);
    struct symbol_index opened;
    assert_int_equal(symbol_index_open("x.symbols", &opened, &error), 0);
    symbol_index_close(&opened);
    assert_int_equal(symbol_index_open("no-elf", &opened, &error), -EBADMSG);
    assert_says(&error, "Not a symbol index");
}

/* ---- files that fill memory ---- */

/* A frame of zstd that stands for so many times 128 KiB of zeros: four bytes each. */
static void put_zeros(struct buffer *out, uint32_t count)
{
    static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38}; /* a window of 128 KiB */
    buffer_add(out, head, sizeof(head));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t block = (128u << 10) << 3 | 1u << 1 | (i + 1 == count);
        const uint8_t bytes[] = {(uint8_t)block, (uint8_t)(block >> 8), (uint8_t)(block >> 16), 0};
        buffer_add(out, bytes, sizeof(bytes));
    }
}

/* An ELF file with sections that unpack to `count` times 128 KiB each. */
static void make_bomb(struct buffer *out, uint32_t count)
{
    static const char names[] = "\0.shstrtab\0.debug_info\0.debug_str\0.debug_line\0.debug_abbrev";
    static const unsigned starts[] = {11, 23, 34, 46};
    enum { SECTIONS = 2 + ARRAY_LENGTH(starts) };
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_DYN,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_ehsize = sizeof(header),
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = SECTIONS,
                         .e_shstrndx = 1};
    Elf64_Shdr sections[SECTIONS] = {{0}};
    out->length = 0;
    buffer_add(out, &header, sizeof(header));
    sections[1] = (Elf64_Shdr){1, SHT_STRTAB, 0, 0, out->length, sizeof(names), 0, 0, 1, 0};
    buffer_add(out, names, sizeof(names));
    for (unsigned i = 2; i < SECTIONS; i++) {
        Elf64_Chdr packed = {.ch_type = 2, .ch_size = (uint64_t)count << 17, .ch_addralign = 1};
        size_t start = out->length;
        buffer_add(out, &packed, sizeof(packed));
        put_zeros(out, count);
        sections[i] = (Elf64_Shdr){
            starts[i - 2], SHT_PROGBITS, SHF_COMPRESSED, 0, start, out->length - start, 0, 0, 1, 0};
    }
    header.e_shoff = out->length;
    buffer_add(out, sections, sizeof(sections));
    memcpy(out->data, &header, sizeof(header));
}

static void refuses_bombs(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer bomb = {0}, index = {0};
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    /* Two gigabytes in each of four sections; and a little too much in all of them together. */
    static const uint32_t counts[] = {16384, 120};
    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
        make_bomb(&bomb, counts[i]);
        assert_int_equal(file_write_atomic("bomb", bomb.data, bomb.length, &error), 0);
        assert_int_equal(symbol_index_build_path("bomb", NULL, &index, &error), -E2BIG);
        assert_says(&error, "decompressed; the limit is");
    }
    getrusage(RUSAGE_CHILDREN, &after);
    if (after.ru_maxrss > MAX(before.ru_maxrss, 768l << 10))
        fail_msg("The child took %ld KiB.", after.ru_maxrss);
    /* What unpacks to little is read, for what it is worth; its last piece is a whole one. */
    error = (struct error){0};
    make_bomb(&bomb, 8);
    assert_int_equal(file_write_atomic("fine", bomb.data, bomb.length, &error), 0);
    symbol_index_build_path("fine", NULL, &index, &error);
    assert_null(strstr(error.text, "the limit is"));
    assert_null(strstr(error.text, "compressed section"));
}

/* ---- children that don't survive their file ---- */

static int spin(const struct confined_input *input)
{
    for (volatile size_t i = 0; input; i++)
        ;
    return 0;
}

/* Forbidden, as all that a reader which was taken over might try. */
static int signal_somebody(const struct confined_input *input)
{
    (void)input;
    kill(getppid(), SIGKILL);
    return 0;
}

static int talk(const struct confined_input *input)
{
    static const char text[4096];
    while (input)
        confined_write(text, sizeof(text));
    return 0;
}

static int lie(const struct confined_input *input)
{
    (void)input;
    confined_write("\1 what is no index", 18);
    return 0;
}

static int open_nothing(const struct confined_input *input)
{
    (void)input;
    return 1;
}

/* Under a sanitizer this ends in another way, and is refused with another code. */
static int eat(const struct confined_input *input)
{
    while (input)
        memory_alloc(1u << 20);
    return 0;
}

/* The file is refused with a sentence, and the next one is read as if nothing had been. */
static void refused_with(int (*run)(const struct confined_input *), int code, const char *words)
{
    struct confined_program child = symbol_index_program;
    struct symbol_index_input input = {.debug = -1, .shared = -1, .package = -1, .program = &child};
    _cleanup_buffer_ struct buffer index = {0};
    struct error error = {0};
    child.name = NULL;
    child.run = run;
    child.cpu_seconds = 1;
    child.deadline_ms = run == spin && code == -ETIME ? 50 : 60000;
    child.output_max_bytes = 1u << 20;
    child.memory_bytes = 64u << 20;
    input.file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int r = symbol_index_build(&input, &index, &error);
    close(input.file);
    if (r != (code == -ETIME ? -E2BIG : code) && !(run == eat && r == -EIO))
        fail_msg("%d instead of %d: %s", r, code, error.text);
    assert_says(&error, words);
    assert_int_equal(index.length, 0);
}

static void a_child_that_dies_is_a_refused_file(void **state)
{
    (void)state;
    struct error error = {0};
    _cleanup_buffer_ struct buffer index = {0};
    refused_with(spin, -E2BIG, "more than 1 s of CPU time");
    refused_with(spin, -ETIME, "took more than 0 s and was stopped");
    refused_with(signal_somebody, -EBADMSG, "crashed its reader (signal 31)");
    refused_with(talk, -E2BIG, "names exceed the limit of 1 MiB");
    refused_with(lie, -EBADMSG, "");
    refused_with(open_nothing, -EIO, "Failed to start the process");
    refused_with(eat, -EBADMSG, "memory");
    assert_int_equal(symbol_index_build_path("/proc/self/exe", NULL, &index, &error), 0);
    assert_int_equal(index.length, content.length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_functions_and_what_is_inlined),
        cmocka_unit_test(knows_offsets),
        cmocka_unit_test(refuses_damage),
        cmocka_unit_test(survives_hostile_indexes),
        cmocka_unit_test(survives_hostile_binaries),
        cmocka_unit_test_setup_teardown(is_made_in_a_child, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(refuses_bombs, enter_folder, leave_folder),
        cmocka_unit_test(a_child_that_dies_is_a_refused_file),
    };
    return cmocka_run_group_tests(tests, index_ourselves, release);
}
