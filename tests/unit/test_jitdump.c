// SPDX-License-Identifier: Apache-2.0
// Logs of just-in-time compiled code: records as compilers write them, in pieces, and damaged.

#include <fcntl.h>
#include <sys/mman.h>

#include "symbol/jit/jit.h"
#include "symbol/jit/jitdump.h"
#include "unit.h"

/* ---- writing ---- */

static void add_u32(struct buffer *out, uint32_t value)
{
    buffer_add(out, &value, sizeof(value));
}

static void add_u64(struct buffer *out, uint64_t value)
{
    buffer_add(out, &value, sizeof(value));
}

static void add_header(struct buffer *out, uint64_t flags)
{
    add_u32(out, 0x4a695444);
    add_u32(out, 1);
    add_u32(out, 40);
    add_u32(out, 62);
    add_u32(out, 0);
    add_u32(out, (uint32_t)getpid());
    add_u64(out, 1000);
    add_u64(out, flags);
}

static void add_record(struct buffer *out, uint32_t kind, uint64_t time_ns,
                       const struct buffer *content)
{
    add_u32(out, kind);
    add_u32(out, (uint32_t)(16 + content->length));
    add_u64(out, time_ns);
    buffer_add(out, content->data, content->length);
}

static void add_load(struct buffer *out, uint64_t time_ns, uint64_t start, uint64_t size,
                     uint64_t index, const char *name)
{
    _cleanup_buffer_ struct buffer content = {0};
    add_u32(&content, 1);
    add_u32(&content, 1);
    add_u64(&content, start);
    add_u64(&content, start);
    add_u64(&content, size);
    add_u64(&content, index);
    buffer_add(&content, name, strlen(name) + 1);
    for (uint64_t i = 0; i < size; i++)
        buffer_add_char(&content, (char)0x90);
    add_record(out, 0, time_ns, &content);
}

static void add_move(struct buffer *out, uint64_t time_ns, uint64_t from, uint64_t to,
                     uint64_t size, uint64_t index)
{
    _cleanup_buffer_ struct buffer content = {0};
    add_u64(&content, 1);
    add_u64(&content, to);
    add_u64(&content, from);
    add_u64(&content, to);
    add_u64(&content, size);
    add_u64(&content, index);
    add_record(out, 1, time_ns, &content);
}

struct written_line {
    uint64_t address;
    uint32_t line;
    const char *file;
};

static void add_lines(struct buffer *out, uint64_t of, const struct written_line *lines,
                      size_t count)
{
    _cleanup_buffer_ struct buffer content = {0};
    add_u64(&content, of);
    add_u64(&content, count);
    for (size_t i = 0; i < count; i++) {
        add_u64(&content, lines[i].address);
        add_u32(&content, lines[i].line);
        add_u32(&content, 0);
        buffer_add(&content, lines[i].file, strlen(lines[i].file) + 1);
    }
    add_record(out, 2, 5, &content);
}

static void add_usual(struct buffer *out)
{
    static const struct written_line lines[] = {
        {0x1000, 10, "/srv/a.js"}, {0x1020, 12, "\xff"}, {0x1010, 11, "\xff"}, {0x1030, 7, "/b"}};
    _cleanup_buffer_ struct buffer unwinding = {0};
    add_u64(&unwinding, 8);
    add_u64(&unwinding, 0);
    add_header(out, 0);
    add_lines(out, 0x1000, lines, ARRAY_LENGTH(lines));
    add_record(out, 4, 9, &unwinding);
    add_load(out, 10, 0x1000, 0x40, 1, "JS:*one /srv/a.js:9:1");
    add_load(out, 20, 0x2000, 0x40, 2, "two");
    add_load(out, 30, 0x1000, 0x20, 3, "three");
    add_move(out, 40, 0x2000, 0x3000, 0x40, 2);
    add_record(out, 77, 45, &unwinding);
}

/* ---- reading ---- */

struct bytes {
    const char *data;
    size_t length;
};

static ssize_t read_bytes(void *context, uint64_t offset, void *buffer, size_t length)
{
    const struct bytes *bytes = context;
    if (offset >= bytes->length)
        return 0;
    length = MIN(MIN(length, bytes->length - offset), 1000); /* never all at once */
    memcpy(buffer, bytes->data + offset, length);
    return (ssize_t)length;
}

static const char *name_at(struct jit_codes *codes, uint64_t address, uint64_t time_ns)
{
    const struct jit_code *code = jit_codes_find(codes, address, time_ns);
    return code ? codes->texts[code->name] : "";
}

static uint32_t line_at(struct jit_codes *codes, uint64_t address, uint64_t time_ns)
{
    const struct jit_code *code = jit_codes_find(codes, address, time_ns);
    const struct jit_line *line = code ? jit_codes_line(codes, code, address) : NULL;
    return line ? line->line : 0;
}

static void check_usual(struct jit_codes *codes)
{
    assert_int_equal(codes->count, 4);
    assert_string_equal(name_at(codes, 0x1000, 0), "three");
    assert_string_equal(name_at(codes, 0x1000, 15), "JS:*one /srv/a.js:9:1");
    assert_string_equal(name_at(codes, 0x1030, 0), "JS:*one /srv/a.js:9:1");
    assert_string_equal(name_at(codes, 0x303f, 0), "two");
    assert_string_equal(name_at(codes, 0x2000, 25), "two");
    assert_string_equal(name_at(codes, 0x3040, 0), "");
    assert_int_equal(line_at(codes, 0x1000, 15), 10);
    assert_int_equal(line_at(codes, 0x101f, 15), 11);
    assert_int_equal(line_at(codes, 0x1020, 15), 12);
    assert_int_equal(line_at(codes, 0x103f, 0), 7);
    assert_int_equal(line_at(codes, 0x1000, 0), 0);
    const struct jit_code *code = jit_codes_find(codes, 0x1020, 15);
    assert_string_equal(codes->texts[jit_codes_line(codes, code, 0x1020)->file], "/srv/a.js");
}

static int read_all(struct buffer *image, struct jit_codes *codes)
{
    struct bytes bytes = {image->data, image->length};
    struct jit_dump dump = {.read = read_bytes, .context = &bytes};
    jit_codes_init(codes, true);
    int r = jit_dump_read(&dump, codes);
    jit_dump_release(&dump);
    return r;
}

static void records_are_read(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_usual(&image);
    assert_int_equal(read_all(&image, &codes), 0);
    check_usual(&codes);
    jit_codes_release(&codes);
}

/* Read after every byte that is written: nothing is lost and nothing comes twice. */
static void a_growing_file(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_usual(&image);
    struct bytes bytes = {image.data, 0};
    struct jit_dump dump = {.read = read_bytes, .context = &bytes};
    jit_codes_init(&codes, true);
    for (; bytes.length <= image.length; bytes.length++)
        assert_int_equal(jit_dump_read(&dump, &codes), 0);
    check_usual(&codes);
    jit_dump_release(&dump);
    jit_codes_release(&codes);
}

/* Moved code keeps its lines, and may move again. */
static void moved_code_keeps_its_lines(void **state)
{
    (void)state;
    static const struct written_line lines[] = {{0x1000, 1, "/x"}, {0x1008, 2, "\xff"}};
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_header(&image, 0);
    add_lines(&image, 0x1000, lines, 2);
    add_load(&image, 10, 0x1000, 0x10, 7, "moves");
    add_move(&image, 20, 0x1000, 0x5000, 0x10, 7);
    add_move(&image, 30, 0x5000, 0x9000, 0x10, 7);
    add_move(&image, 40, 0x1234, 0xa000, 0x10, 7); /* was never there */
    add_move(&image, 50, 0x9000, 0xb000, 0x10, 8); /* no such code */
    assert_int_equal(read_all(&image, &codes), 0);
    assert_int_equal(codes.count, 3);
    assert_int_equal(line_at(&codes, 0x9007, 0), 1);
    assert_int_equal(line_at(&codes, 0x9008, 0), 2);
    assert_int_equal(line_at(&codes, 0x5008, 0), 2);
    assert_string_equal(name_at(&codes, 0xa000, 0), "");
    jit_codes_release(&codes);
}

/* Lines belong to the load that follows, and only if it is of that address. */
static void lines_of_other_code(void **state)
{
    (void)state;
    static const struct written_line lines[] = {{0x1000, 1, "/x"}};
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_header(&image, 0);
    add_lines(&image, 0x1000, lines, 1);
    add_load(&image, 10, 0x2000, 0x10, 1, "other");
    add_load(&image, 11, 0x1000, 0x10, 2, "late");
    assert_int_equal(read_all(&image, &codes), 0);
    assert_int_equal(line_at(&codes, 0x2000, 0), 0);
    assert_int_equal(line_at(&codes, 0x1000, 0), 0);
    jit_codes_release(&codes);
}

/* V8 counts as if there were an ELF header before the code. */
static void lines_of_v8_are_shifted(void **state)
{
    (void)state;
    static const struct written_line lines[] = {{0x1040, 1, "/x.js"}, {0x1050, 2, "/x.js"}};
    for (int v8 = 0; v8 < 2; v8++) {
        _cleanup_buffer_ struct buffer image = {0};
        struct jit_codes codes;
        add_header(&image, 0);
        add_lines(&image, 0x1000, lines, 2);
        add_load(&image, 10, 0x1000, 0x80, 1, v8 ? "JS:*f /x.js:1:1" : "other");
        assert_int_equal(read_all(&image, &codes), 0);
        assert_int_equal(line_at(&codes, 0x1000, 0), v8 ? 1 : 0);
        assert_int_equal(line_at(&codes, 0x1010, 0), v8 ? 2 : 0);
        assert_int_equal(line_at(&codes, 0x1040, 0), v8 ? 2 : 1);
        jit_codes_release(&codes);
    }
}

/* Lines that make no sense are left out, and the code is kept. */
static void lines_without_sense(void **state)
{
    (void)state;
    static const struct written_line lines[][2] = {
        {{0x1000, 1, "/x"}, {0x0fff, 2, "/x"}},    {{0x1000, 1, "/x"}, {0x1041, 2, "/x"}},
        {{0x1000, 1, "\x01x"}, {0x1001, 2, "/x"}}, {{0x1000, 1, "/x"}, {0x1001, 2, "\xfe\xf6"}},
        {{0x1000, 1, ""}, {0x1001, 2, "/x"}},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
        _cleanup_buffer_ struct buffer image = {0};
        struct jit_codes codes;
        add_header(&image, 0);
        add_lines(&image, 0x1000, lines[i], 2);
        add_load(&image, 10, 0x1000, 0x40, 1, "kept");
        assert_int_equal(read_all(&image, &codes), 0);
        assert_string_equal(name_at(&codes, 0x1000, 0), "kept");
        assert_int_equal(line_at(&codes, 0x1020, 0), 0);
        jit_codes_release(&codes);
    }
}

static void other_clocks_give_the_order_only(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_header(&image, 1);
    add_load(&image, 999999, 0x1000, 0x10, 1, "first");
    add_load(&image, 5, 0x1000, 0x10, 2, "second");
    assert_int_equal(read_all(&image, &codes), 0);
    assert_string_equal(name_at(&codes, 0x1000, 1), "second");
    jit_codes_release(&codes);
}

static void it_ends_where_it_says(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0}, none = {0};
    struct jit_codes codes;
    add_header(&image, 0);
    add_load(&image, 1, 0x1000, 0x10, 1, "before");
    add_record(&image, 3, 2, &none);
    add_load(&image, 3, 0x2000, 0x10, 2, "after");
    assert_int_equal(read_all(&image, &codes), 0);
    assert_int_equal(codes.count, 1);
    jit_codes_release(&codes);
}

static void what_is_no_dump(void **state)
{
    (void)state;
    static const uint32_t words[][3] = {
        {0x4454694a, 1, 40}, /* the other byte order */
        {0x4a695444, 2, 40},
        {0x4a695444, 1, 39},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        _cleanup_buffer_ struct buffer image = {0};
        struct jit_codes codes;
        add_usual(&image);
        memcpy(image.data, words[i], sizeof(words[i]));
        assert_int_equal(read_all(&image, &codes), -EBADMSG);
        assert_int_equal(codes.count, 0);
        jit_codes_release(&codes);
    }
    /* A record that is shorter than its own header would never end. */
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_header(&image, 0);
    add_load(&image, 1, 0x1000, 0x10, 1, "good");
    add_u32(&image, 0);
    add_u32(&image, 0);
    add_u64(&image, 0);
    assert_int_equal(read_all(&image, &codes), -EBADMSG);
    assert_int_equal(codes.count, 1);
    jit_codes_release(&codes);
}

/* Cut and changed at every byte: never more than an error. */
static void damage_is_survived(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_usual(&image);
    size_t whole = image.length;
    for (size_t length = 0; length < whole; length++) {
        image.length = length;
        assert_int_equal(read_all(&image, &codes), 0);
        name_at(&codes, 0x1000, length);
        jit_codes_release(&codes);
    }
    image.length = whole;
    for (size_t at = 0; at < whole; at++)
        for (unsigned change = 1; change < 256; change = change * 3 + 1) {
            image.data[at] ^= (char)change;
            int r = read_all(&image, &codes);
            assert_true(r == 0 || r == -EBADMSG);
            for (uint64_t address = 0xff8; address < 0x1050; address += 8)
                line_at(&codes, address, change);
            jit_codes_release(&codes);
            image.data[at] ^= (char)change;
        }
}

/* The same number again and again must cost no more than others. */
static void many_records_of_one_number(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct jit_codes codes;
    add_header(&image, 0);
    for (uint32_t i = 0; i < 200000; i++)
        add_load(&image, i, 0x1000, 1, 1, "x");
    assert_int_equal(read_all(&image, &codes), 0);
    assert_int_equal(codes.count, 200000);
    assert_string_equal(name_at(&codes, 0x1000, 0), "x");
    assert_string_equal(name_at(&codes, 0x1000, 7), "x");
    jit_codes_release(&codes);
}

/* ---- a process that has one mapped ---- */

static void the_mapping_leads_to_it(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    char path[64];
    uint32_t pid = (uint32_t)getpid();
    struct symbol_frame frame;
    enum frame_kind kind;
    struct jit_names *names = jit_names_new();
    add_usual(&image);
    snprintf(path, sizeof(path), "jit-%u.dump", pid);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, image.data, image.length), image.length);
    assert_false(jit_names_load(names, pid));
    void *marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_true(marker != MAP_FAILED);
    assert_true(jit_names_load(names, pid));
    assert_false(jit_names_load(names, pid));
    assert_true(jit_names_find(names, pid, 0x101c, 15, &frame, &kind));
    assert_string_equal(frame.name, "one");
    assert_string_equal(frame.file, "/srv/a.js");
    assert_int_equal(frame.line, 11);
    assert_int_equal(frame.start_line, 9);
    assert_int_equal(kind, FRAME_V8JS);
    /* Of another file is the line, not the function. */
    assert_true(jit_names_find(names, pid, 0x1030, 0, &frame, &kind));
    assert_string_equal(frame.file, "/b");
    assert_int_equal(frame.line, 7);
    assert_int_equal(frame.start_line, 0);

    /* What is added later is read from the file that is kept open. */
    munmap(marker, 4096);
    image.length = 0;
    add_load(&image, 90, 0x7000, 0x10, 9, "later");
    assert_int_equal(write(fd, image.data, image.length), image.length);
    assert_int_equal(unlink(path), 0);
    assert_true(jit_names_load(names, pid));
    assert_true(jit_names_find(names, pid, 0x7000, 0, &frame, &kind));
    assert_string_equal(frame.name, "later");
    assert_int_equal(jit_names_stats(names).dumps, 1);
    jit_names_free(names);
    close(fd);
}

/* With limits: only code that was sampled, also when it was somewhere else before. */
static void sampled_code_is_found(void **state)
{
    (void)state;
    static const struct written_line lines[] = {{0x1000, 1, "/x"}};
    _cleanup_buffer_ struct buffer image = {0};
    char path[64], name[JIT_MAPPING_NAME_BYTES];
    uint32_t pid = (uint32_t)getpid();
    struct symbol_frame frame;
    enum frame_kind kind;
    struct profile profile;
    add_header(&image, 0);
    for (uint32_t i = 0; i < 3000; i++) {
        add_lines(&image, 0x100000 + i * 0x40, lines, 1);
        add_load(&image, 10, 0x100000 + i * 0x40, 0x40, 100 + i, i == 77 ? "wanted" : "other");
    }
    add_lines(&image, 0x1000, lines, 1);
    add_load(&image, 11, 0x1000, 0x10, 7, "moves");
    add_move(&image, 20, 0x1000, 0x5000, 0x10, 7);
    add_move(&image, 30, 0x5000, 0x9000, 0x10, 7);
    add_u32(&image, 0); /* one whose size is forged */
    add_u32(&image, UINT32_MAX);
    add_u64(&image, 40);
    snprintf(path, sizeof(path), "jit-%u.dump", pid);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, image.data, image.length), image.length);
    void *marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_true(marker != MAP_FAILED);
    profile_init(&profile, PROFILE_ALL);
    jit_mapping_name(name, pid);
    struct profile_mapping mapping = {.limit = UINT64_MAX, .file = profile_cstring(&profile, name)};
    static const uint64_t sampled[] = {0x100000 + 77 * 0x40 + 4, 0x9004, 0x123456789};
    for (size_t i = 0; i < 3; i++)
        profile_frame(&profile,
                      &(struct profile_frame){.address = sampled[i],
                                              .mapping = profile_mapping(&profile, &mapping)});
    struct jit_names *names = jit_names_new();
    jit_names_limit(names, &(struct jit_limits){.memory_bytes = 1u << 20,
                                                .process_bytes = 256u << 10,
                                                .read_bytes = 1u << 20});
    jit_names_load_sampled(names, &profile);
    assert_true(jit_names_find(names, pid, sampled[0], 0, &frame, &kind));
    assert_string_equal(frame.name, "wanted");
    for (int round = 0; round < 3; round++)
        jit_names_load_sampled(names, &profile);
    assert_true(jit_names_find(names, pid, sampled[1], 0, &frame, &kind));
    assert_string_equal(frame.name, "moves");
    assert_int_equal(frame.line, 1);
    assert_false(jit_names_find(names, pid, sampled[2], 0, &frame, &kind));
    assert_true(jit_names_stats(names).codes < 8);
    jit_names_free(names);
    profile_release(&profile);
    munmap(marker, 4096);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read),
        cmocka_unit_test(a_growing_file),
        cmocka_unit_test(moved_code_keeps_its_lines),
        cmocka_unit_test_setup_teardown(sampled_code_is_found, enter_folder, leave_folder),
        cmocka_unit_test(lines_of_other_code),
        cmocka_unit_test(lines_of_v8_are_shifted),
        cmocka_unit_test(lines_without_sense),
        cmocka_unit_test(other_clocks_give_the_order_only),
        cmocka_unit_test(it_ends_where_it_says),
        cmocka_unit_test(what_is_no_dump),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(many_records_of_one_number),
        cmocka_unit_test_setup_teardown(the_mapping_leads_to_it, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
