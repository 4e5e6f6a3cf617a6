// SPDX-License-Identifier: Apache-2.0
// Debug information of a few addresses: real programs, damaged ones, and profiles that get names,
// lines and inlined functions.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "elf/file.h"
#include "profile/profile.h"
#include "symbol/index/build.h"
#include "symbol/naming/naming.h"
#include "symbol/naming/symbolizer.h"
#include "unit.h"

/* ---- a real program ---- */

static const char source[] = "volatile int sink;\n"
                             "static inline __attribute__((always_inline)) int innermost(int n)\n"
                             "{\n"
                             "    sink = n * 3;\n"
                             "    return sink;\n"
                             "}\n"
                             "static inline __attribute__((always_inline)) int middle(int n)\n"
                             "{\n"
                             "    return innermost(n + 1) + 1;\n"
                             "}\n"
                             "__attribute__((noinline)) int outer(int n)\n"
                             "{\n"
                             "    return middle(n) + 2;\n"
                             "}\n"
                             "int main(int count, char **arguments)\n"
                             "{\n"
                             "    (void)arguments;\n"
                             "    return outer(count) == 0;\n"
                             "}\n";

static bool compile(const char *options)
{
    struct error error = {0};
    char command[512];
    assert_int_equal(file_write_atomic("a.c", source, strlen(source), &error), 0);
    snprintf(command, sizeof(command), "cc -O2 -g %s -o program a.c >/dev/null 2>&1", options);
    return system(command) == 0;
}

static bool shell(const char *command)
{
    char quiet[512];
    snprintf(quiet, sizeof(quiet), "{ %s; } >/dev/null 2>&1", command);
    return system(quiet) == 0;
}

/* Everything that is code in a file. */
struct code {
    uint64_t *offsets, *addresses;
    size_t count;
};

static struct code code_of(const char *path)
{
    struct elf_file file = {.fd = -1};
    struct elf_section text;
    struct code code = {0};
    assert_int_equal(elf_open(path, &file, NULL), 0);
    assert_true(elf_find_section(&file, ".text", &text));
    code.count = text.size_bytes;
    code.offsets = memory_zalloc(code.count, sizeof(uint64_t));
    code.addresses = memory_zalloc(code.count, sizeof(uint64_t));
    for (size_t i = 0; i < code.count; i++) {
        code.offsets[i] = text.offset + i;
        code.addresses[i] = text.address + i;
    }
    elf_release(&file);
    return code;
}

static void code_release(struct code *code)
{
    free(code->offsets);
    free(code->addresses);
}

/* How many addresses are in `outer` by the symbols, and how many of them have all three functions
 * with the right lines. */
static void count_chains(const char *path, struct symbolizer *symbolizer, size_t *ret_outer,
                         size_t *ret_chains)
{
    _cleanup_(code_release) struct code code = code_of(path);
    struct symbolizer_file *file = symbolizer_file(symbolizer, path, NULL);
    assert_non_null(file);
    symbolizer_want(file, code.offsets, code.count);
    symbolizer_look_up(symbolizer);
    *ret_outer = *ret_chains = 0;
    for (size_t i = 0; i < code.count; i++) {
        struct symbol_frame frames[SYMBOL_FRAMES_MAX];
        size_t count = symbolizer_file_frames(file, code.offsets[i], frames);
        if (!count || strcmp(frames[count - 1].name, "outer"))
            continue;
        ++*ret_outer;
        if (count != 3)
            continue;
        ++*ret_chains;
        assert_string_equal(frames[0].name, "innermost");
        assert_string_equal(frames[1].name, "middle");
        assert_in_range(frames[0].line, 4, 5);
        assert_int_equal(frames[0].start_line, 2);
        assert_int_equal(frames[1].line, 9);
        assert_int_equal(frames[1].start_line, 7);
        assert_int_equal(frames[2].line, 13);
        assert_int_equal(frames[2].start_line, 11);
        for (int k = 0; k < 3; k++)
            assert_string_equal(strrchr(frames[k].file, '/'), "/a.c");
    }
}

static void check_program(const char *path)
{
    struct symbolizer *symbolizer = symbolizer_new();
    size_t outer, chains;
    count_chains(path, symbolizer, &outer, &chains);
    if (!chains)
        fail_msg("%s: no chain among %zu addresses", path, outer);
    assert_int_equal(symbolizer_stats(symbolizer).debug_files, 1);
    assert_int_equal(symbolizer_stats(symbolizer).debug_failed, 0);
    /* What is known is not asked again. */
    count_chains(path, symbolizer, &outer, &chains);
    assert_true(chains);
    assert_int_equal(symbolizer_stats(symbolizer).debug_files, 1);
    symbolizer_free(symbolizer);
}

static void programs(void **state)
{
    (void)state;
    static const char *const options[] = {
        "", "-gdwarf-4", "-gz=zlib", "-gz=zstd", "-flto", "-gdwarf-4 -fdebug-types-section"};
    if (!compile(""))
        skip_because("There is no C compiler here.");
    for (size_t i = 0; i < ARRAY_LENGTH(options); i++)
        if (compile(options[i]))
            check_program("program");
        else
            assert_true(i >= 2); /* not every compiler can do all */
}

/* In a file of its own, found by the debug link; without that only the symbol is left. */
static void separate(void **state)
{
    (void)state;
    if (!compile("-Wl,--build-id=none") || !shell("objcopy --version"))
        skip_because("There is no C compiler or no objcopy here.");
    assert_true(shell("objcopy --only-keep-debug program p.debug && strip -g program && "
                      "objcopy --add-gnu-debuglink=p.debug program"));
    check_program("program");
    /* Also when the program is known by a descriptor. */
    char place[64];
    int fd = open("program", O_RDONLY | O_CLOEXEC);
    snprintf(place, sizeof(place), "/proc/self/fd/%d", fd);
    check_program(place);
    close(fd);
    assert_int_equal(rename("p.debug", "other.debug"), 0);
    struct symbolizer *symbolizer = symbolizer_new();
    size_t outer, chains;
    count_chains("program", symbolizer, &outer, &chains);
    assert_true(outer);
    assert_int_equal(chains, 0);
    assert_int_equal(symbolizer_stats(symbolizer).debug_files, 0);
    symbolizer_free(symbolizer);

    /* What several programs share, in a third file. */
    if (!compile("") || !shell("cp program second && dwz -m shared -M $PWD/shared program second"))
        return;
    check_program("program");
}

/* Entries that are in a file of their own. Without it, the lines are still in the program. */
static void split(void **state)
{
    (void)state;
    if (!compile("-gsplit-dwarf"))
        skip_because("There is no C compiler here that splits debug information off.");
    check_program("program");
    assert_true(shell("rm *.dwo"));
    struct symbolizer *symbolizer = symbolizer_new();
    size_t outer, chains;
    count_chains("program", symbolizer, &outer, &chains);
    assert_true(outer);
    assert_int_equal(chains, 0);
    assert_int_equal(symbolizer_stats(symbolizer).debug_failed, 0);
    symbolizer_free(symbolizer);
}

/* ---- damage ---- */

struct single {
    const struct code *code;
    const char *path;
    bool given;
    enum confined_end end;
    int status;
    int result; /* of taking the answer */
    size_t chains;
};

static bool give(void *context, struct confined_job *job)
{
    struct single *single = context;
    struct symbol_index_input input = {.debug = -1, .shared = -1, .package = -1};
    if (single->given)
        return false;
    single->given = true;
    input.file = open(single->path, O_RDONLY | O_CLOEXEC);
    single->result =
        symbol_names_ask(&input, single->code->addresses, single->code->count, job, NULL);
    symbol_index_close_input(&input);
    return single->result == 0;
}

static void take(void *context, struct confined_job *job)
{
    struct single *single = context;
    _cleanup_buffer_ struct buffer bytes = {0};
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct symbol_index index;
    single->end = job->end;
    single->status = job->status;
    if (symbol_names_take(job, &bytes, &index, NULL) < 0)
        return;
    for (size_t i = 0; i < single->code->count; i++)
        single->chains += symbol_index_look_up(&index, single->code->addresses[i], frames,
                                               SYMBOL_FRAMES_MAX, NULL) > 1;
    symbol_index_close(&index);
}

static struct single ask(const char *path, const struct code *code)
{
    struct single single = {.code = code, .path = path};
    confined_run(&(struct confined_jobs){give, take, &single});
    /* A sanitizer ends the child with 1; whatever the library does to itself is a signal. */
    assert_false(WIFEXITED(single.status) && WEXITSTATUS(single.status) == 1);
    assert_int_equal(single.result, 0);
    return single;
}

static void write_file(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, bytes, length), 0);
    close(fd);
}

static void damaged(void **state)
{
    (void)state;
    if (!compile(""))
        skip_because("There is no C compiler here.");
    _cleanup_(code_release) struct code code = code_of("program");
    _cleanup_buffer_ struct buffer image = {0};
    struct error error = {0};
    assert_int_equal(file_read("program", 1 << 20, &image, &error), 0);
    assert_true(ask("program", &code).chains);
    for (int i = 0; i < 24; i++) {
        write_file("cut", image.data, image.length * (size_t)i / 24);
        ask("cut", &code);
    }

    /* In the sections that are read; the request is for the whole program's addresses. */
    static const char *const names[] = {".debug_info", ".debug_abbrev", ".debug_line",
                                        ".debug_rnglists", ".debug_str"};
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    assert_int_equal(elf_open("program", &file, NULL), 0);
    uint64_t random = 88172645463325252ull;
    size_t survived = 0;
    for (int round = 0; round < 150; round++) {
        struct elf_section section;
        char saved[4];
        size_t places[4];
        if (!elf_find_section(&file, names[round % 5], &section) || !section.size_bytes)
            continue;
        for (int i = 0; i < 4; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            places[i] = section.offset + (random >> 8) % section.size_bytes;
            saved[i] = image.data[places[i]];
            image.data[places[i]] = (char)random;
        }
        write_file("damaged", image.data, image.length);
        survived += ask("damaged", &code).end == CONFINED_FINE;
        for (int i = 3; i >= 0; i--)
            image.data[places[i]] = saved[i];
    }
    assert_true(survived); /* most damage costs some names, not all */
}

/* A section that says it is compressed, and isn't: the child gives up, and symbols are left. */
static void symbols_stand_in(void **state)
{
    (void)state;
    if (!compile(""))
        skip_because("There is no C compiler here.");
    _cleanup_buffer_ struct buffer image = {0};
    struct error error = {0};
    assert_int_equal(file_read("program", 1 << 20, &image, &error), 0);
    Elf64_Ehdr *header = (Elf64_Ehdr *)image.data;
    Elf64_Shdr *sections = (Elf64_Shdr *)(image.data + header->e_shoff);
    const char *names = image.data + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++)
        if (!strcmp(names + sections[i].sh_name, ".debug_info"))
            sections[i].sh_flags |= SHF_COMPRESSED;
    write_file("broken", image.data, image.length);
    struct symbolizer *symbolizer = symbolizer_new();
    size_t outer, chains;
    for (int i = 0; i < 2; i++) {
        count_chains("broken", symbolizer, &outer, &chains);
        assert_true(outer);
        assert_int_equal(chains, 0);
        assert_int_equal(symbolizer_stats(symbolizer).debug_files, 0);
        assert_int_equal(symbolizer_stats(symbolizer).debug_failed, 1); /* and not tried again */
    }
    symbolizer_free(symbolizer);
}

/* ---- profiles ---- */

static const char *locate_program(void *context, const struct profile *from, uint32_t mapping)
{
    assert_ptr_equal(context, locate_program);
    return strcmp(profile_text(from, from->mappings[mapping].file), "/elsewhere/a") ? NULL
                                                                                    : "program";
}

/* Each frame by itself under one root: the stacks come out as texts. */
static void describe(const struct profile *profile, uint32_t node, struct buffer *text)
{
    for (; node; node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        const struct profile_function *function = &profile->functions[frame->function];
        buffer_printf(text, "%s%s:%u;", profile_text(profile, function->name),
                      frame->inlined ? "(inlined)" : "", frame->line);
    }
}

static void names_of_a_profile(void **state)
{
    (void)state;
    if (!compile(""))
        skip_because("There is no C compiler here.");
    _cleanup_profile_ struct profile from, to;
    _cleanup_(code_release) struct code code = code_of("program");
    struct error error = {0};
    profile_init(&from, PROFILE_ALL);
    profile_init(&to, PROFILE_ALL);
    uint32_t here = profile_mapping(
        &from, &(struct profile_mapping){.limit = 1 << 20,
                                         .file = profile_cstring(&from, "/elsewhere/a")});
    uint32_t nowhere = profile_mapping(
        &from,
        &(struct profile_mapping){.limit = 1 << 20, .file = profile_cstring(&from, "/not/there")});
    struct profile_function named = {.name = profile_cstring(&from, "already")};
    uint32_t root = profile_frame(
        &from, &(struct profile_frame){.function = profile_function(&from, &named), .line = 5});
    unsigned type = profile_type(&from, profile_cstring(&from, "samples"), 0);
    for (size_t i = 0; i <= code.count; i++) {
        bool last = i == code.count;
        struct profile_frame frame = {.address = last ? 0x77 : code.offsets[i],
                                      .mapping = last ? nowhere : here,
                                      .kind = FRAME_NATIVE};
        uint32_t frames[] = {root, profile_frame(&from, &frame)};
        size_t row = profile_sample(&from, profile_stack(&from, frames, 2), 0, 0, 0);
        profile_add_value(&from, row, type, 1);
    }

    struct symbolizer *symbolizer = symbolizer_new();
    assert_int_equal(
        symbol_name_profile(symbolizer, &from, &to, locate_program, locate_program, &error), 0);
    symbolizer_free(symbolizer);
    int64_t total = 0, chains = 0, unnamed = 0;
    for (size_t row = 0; row < to.samples.count; row++) {
        _cleanup_buffer_ struct buffer text = {0};
        describe(&to, to.samples.node[row], &text);
        const char *stack = buffer_text(&text);
        total += to.samples.values[0][row];
        if (!strncmp(stack, "innermost", 9)) {
            chains += to.samples.values[0][row];
            if (strcmp(stack, "innermost(inlined):4;middle(inlined):9;outer:13;already:5;"))
                assert_string_equal(stack,
                                    "innermost(inlined):5;middle(inlined):9;outer:13;already:5;");
        }
        const struct profile_frame *leaf = &to.frames[to.nodes[to.samples.node[row]].frame];
        if (!leaf->function && leaf->mapping &&
            !strcmp(profile_text(&to, to.mappings[leaf->mapping].file), "/not/there")) {
            assert_int_equal(leaf->address, 0x77);
            unnamed++;
        }
    }
    assert_int_equal(total, code.count + 1);
    assert_true(chains);
    assert_int_equal(unnamed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(programs, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(separate, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(split, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(damaged, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(symbols_stand_in, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(names_of_a_profile, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
