// SPDX-License-Identifier: Apache-2.0
// Where names come from beside symbol tables: symbols that are packed into the binary, linkage
// stubs, the vDSO, modules of the kernel and compiled code in no file; and packed sections.

#include <libdeflate.h>
#include <lzma.h>
#include <zstd.h>

#include "elf/unwind/rows.h"
#include "elf/vdso.h"
#include "frames.h"
#include "profile/naming.h"
#include "symbol/jit/jit.h"
#include "symbol/kernel.h"
#include "symbol/minidebug.h"
#include "symbol/naming/naming.h"
#include "symbol/table.h"
#include "unit.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* ---- a file of given sections ---- */

#define CODE 0x401000ull
#define CODE_BYTES 0x400

struct made_section {
    const char *name;
    uint32_t type;
    uint64_t flags, address;
    const void *content; /* NULL: zeros */
    size_t length;
    uint32_t link;
    uint64_t entry_bytes;
};

static const struct made_section text_section = {
    ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, NULL, CODE_BYTES, 0, 0};

/* Section i has number i + 1; the names come last. */
static void make_elf(struct buffer *image, const struct made_section *sections, size_t count)
{
    _cleanup_buffer_ struct buffer names = {0}, headers = {0};
    Elf64_Shdr none = {0};
    Elf64_Phdr segment = {PT_LOAD, PF_R | PF_X, 0, CODE & ~0xfffull, 0, 0x2000, 0x2000, 0x1000};
    size_t start = image->length;
    memset(buffer_reserve(image, 0x1000), 0, 0x1000);
    image->length += 0x1000;
    buffer_add_char(&names, '\0');
    buffer_add(&headers, &none, sizeof(none));
    for (size_t i = 0; i <= count; i++) {
        const struct made_section *made = &sections[i];
        struct made_section last = {".shstrtab", SHT_STRTAB, 0, 0, NULL, 0, 0, 0};
        uint32_t name = (uint32_t)names.length;
        made = i < count ? made : &last;
        buffer_add(&names, made->name, strlen(made->name) + 1);
        if (i == count) {
            last.content = names.data;
            last.length = names.length;
        }
        Elf64_Shdr header = {
            name,       made->type, made->flags, made->address,    image->length, made->length,
            made->link, 0,          8,           made->entry_bytes};
        memset(buffer_reserve(image, made->length + 8), 0, made->length + 8);
        if (made->content)
            memcpy(image->data + image->length, made->content, made->length);
        image->length += (made->length + 7) & ~7ull;
        buffer_add(&headers, &header, sizeof(header));
    }
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_EXEC,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_entry = CODE,
                         .e_phoff = sizeof(header),
                         .e_shoff = image->length - start,
                         .e_ehsize = sizeof(header),
                         .e_phentsize = sizeof(segment),
                         .e_phnum = 1,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (uint16_t)(count + 2),
                         .e_shstrndx = (uint16_t)(count + 1)};
    buffer_add(image, headers.data, headers.length);
    memcpy(image->data + start, &header, sizeof(header));
    memcpy(image->data + start + sizeof(header), &segment, sizeof(segment));
}

static struct symbol_table *table_of(const struct buffer *image)
{
    struct elf_file file = {.fd = -1};
    if (elf_open_memory(image->data, image->length, ELF_LAYOUT_FILE, &file, NULL) < 0)
        return NULL;
    struct symbol_table *table = symbol_table_new(&file, NULL);
    elf_release(&file);
    return table;
}

static const char *name_at(struct symbol_table *table, uint64_t address)
{
    struct symbol symbol;
    return symbol_table_find(table, address, &symbol) && symbol.name ? symbol.name : "";
}

/* ---- symbols that are packed into the binary ---- */

static const Elf64_Sym mini_symbols[] = {
    {0},
    {1, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 1, CODE + 0x10, 0x20},
    {8, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, CODE + 0x40, 0x20},
};
static const char mini_strings[] = "\0hidden\0_Z5shownv";

static void make_mini(struct buffer *image)
{
    const struct made_section sections[] = {
        {".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, NULL, CODE_BYTES, 0, 0},
        {".symtab", SHT_SYMTAB, 0, 0, mini_symbols, sizeof(mini_symbols), 3, sizeof(Elf64_Sym)},
        {".strtab", SHT_STRTAB, 0, 0, mini_strings, sizeof(mini_strings), 0, 0},
    };
    make_elf(image, sections, ARRAY_LENGTH(sections));
}

/* `repeat` times the bytes, packed as one stream. */
static void pack(const void *bytes, size_t length, size_t repeat, struct buffer *packed)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    assert_int_equal(lzma_easy_encoder(&stream, 0, LZMA_CHECK_CRC32), LZMA_OK);
    for (size_t i = 0; i <= repeat; i++) {
        stream.next_in = i < repeat ? bytes : NULL;
        stream.avail_in = i < repeat ? length : 0;
        lzma_ret r = LZMA_OK;
        do {
            stream.next_out = (uint8_t *)buffer_reserve(packed, 65536);
            stream.avail_out = 65536;
            r = lzma_code(&stream, i < repeat ? LZMA_RUN : LZMA_FINISH);
            packed->length += 65536 - stream.avail_out;
        } while (r == LZMA_OK && (stream.avail_in || i == repeat));
        assert_int_equal(r, i < repeat ? LZMA_OK : LZMA_STREAM_END);
    }
    lzma_end(&stream);
}

static void make_packed(struct buffer *image)
{
    _cleanup_buffer_ struct buffer mini = {0}, packed = {0};
    make_mini(&mini);
    pack(mini.data, mini.length, 1, &packed);
    const struct made_section sections[] = {
        text_section,
        {".gnu_debugdata", SHT_PROGBITS, 0, 0, packed.data, packed.length, 0, 0},
    };
    make_elf(image, sections, ARRAY_LENGTH(sections));
}

static void packed_symbols_name_functions(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    make_packed(&image);
    struct symbol_table *table = table_of(&image);
    assert_non_null(table);
    assert_string_equal(name_at(table, CODE + 0x10), "hidden");
    assert_string_equal(name_at(table, CODE + 0x2f), "hidden");
    assert_string_equal(name_at(table, CODE + 0x30), "");
    assert_string_equal(name_at(table, CODE + 0x5f), "shown");
    symbol_table_free(table);
}

static void damaged_packed_symbols(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer mini = {0}, packed = {0}, image = {0};
    struct error error = {0};
    make_mini(&mini);
    pack(mini.data, mini.length, 1, &packed);
    for (size_t length = 0; length < packed.length; length++) {
        _cleanup_buffer_ struct buffer out = {0};
        int r = minidebug_unpack(packed.data, length, &out, &error);
        assert_int_equal(r, -EBADMSG);
        assert_says(&error, "ends too early");
        assert_int_equal(out.length, 0);
    }
    for (size_t at = 0; at < packed.length; at++) {
        _cleanup_buffer_ struct buffer out = {0};
        packed.data[at] ^= 0x55;
        assert_true(minidebug_unpack(packed.data, packed.length, &out, &error) < 0);
        packed.data[at] ^= 0x55;
    }
    /* In the file itself: no crash, and at worst no name. */
    make_packed(&image);
    for (size_t at = 0x1000; at < image.length; at += 3) {
        image.data[at] ^= 0x10;
        struct symbol_table *table = table_of(&image);
        if (table)
            name_at(table, CODE + 0x10);
        symbol_table_free(table);
        image.data[at] ^= 0x10;
    }
}

static void packed_symbols_have_limits(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer zeros = {0}, packed = {0}, out = {0};
    struct error error = {0};
    size_t length = 4 << 20;
    memset(buffer_reserve(&zeros, length), 0, length);
    pack(zeros.data, length, MINIDEBUG_BYTES_MAX / length + 2, &packed);
    assert_true(packed.length < 1 << 20);
    assert_int_equal(minidebug_unpack(packed.data, packed.length, &out, &error), -E2BIG);
    assert_says(&error, "larger than 256 MiB");
    assert_int_equal(out.length, 0);

    /* A dictionary of 1 GiB, by the byte that says so, and the header's checksum made right. */
    packed.length = 0;
    pack("x", 1, 1, &packed);
    uint8_t *header = (uint8_t *)packed.data + 12;
    size_t header_bytes = (header[0] + 1u) * 4;
    assert_int_equal(header[2], 0x21);
    header[4] = 36;
    uint32_t checksum = lzma_crc32(header, header_bytes - 4, 0);
    memcpy(header + header_bytes - 4, &checksum, 4);
    assert_int_equal(minidebug_unpack(packed.data, packed.length, &out, &error), -E2BIG);
    assert_says(&error, "takes more than");
}

/* ---- linkage stubs ---- */

#define PLT 0x401400ull
#define PLT_SEC 0x401500ull
#define PLT_GOT 0x401600ull
#define SLOTS 0x403000ull

static void put_code(uint8_t *section, size_t at, const char *bytes, size_t length)
{
    memcpy(section + at, bytes, length);
}

/* `jmp *slot(%rip)` at `at` of a section that is at `address`. */
static void put_jump(uint8_t *section, uint64_t address, size_t at, uint64_t slot)
{
    int32_t distance = (int32_t)(slot - (address + at + 6));
    section[at] = 0xff;
    section[at + 1] = 0x25;
    memcpy(section + at + 2, &distance, 4);
}

static void make_stubs(struct buffer *image)
{
    static uint8_t plt[0x40], second[0x40], got[0x20];
    static const char strings[] = "\0puts\0_ZN1a1bEv\0gone";
    static const Elf64_Sym symbols[] = {{0}, {.st_name = 1}, {.st_name = 6}, {.st_name = 999}};
    static const Elf64_Rela lazy[] = {
        {SLOTS, ELF64_R_INFO(1ull, R_X86_64_JUMP_SLOT), 0},
        {SLOTS + 8, ELF64_R_INFO(2ull, R_X86_64_JUMP_SLOT), 0},
        {SLOTS + 16, ELF64_R_INFO(0ull, R_X86_64_IRELATIVE), CODE + 0x10},
        {SLOTS + 24, ELF64_R_INFO(0ull, R_X86_64_IRELATIVE), 0x77},
    };
    static const Elf64_Rela eager[] = {
        {SLOTS + 32, ELF64_R_INFO(1ull, R_X86_64_GLOB_DAT), 0},
        {SLOTS + 40, ELF64_R_INFO(3ull, R_X86_64_GLOB_DAT), 0},
        {SLOTS + 48, ELF64_R_INFO(1ull, R_X86_64_64), 0},
    };
    /* The common stub, then `endbr64; push index`; one with an index that is none. */
    put_code(plt, 0, "\xff\x35\x02\x20\0\0\xff\x25", 8);
    put_code(plt, 0x10, "\xf3\x0f\x1e\xfa\x68\0\0\0\0\xe9", 10);
    put_code(plt, 0x20, "\xf3\x0f\x1e\xfa\x68\x01\0\0\0\xe9", 10);
    put_code(plt, 0x30, "\xf3\x0f\x1e\xfa\x68\xff\0\0\0\xe9", 10);
    put_code(second, 0, "\xf3\x0f\x1e\xfa\xf2", 5);
    put_jump(second, PLT_SEC, 5, SLOTS);
    put_jump(second, PLT_SEC, 0x10, SLOTS + 8);
    put_jump(second, PLT_SEC, 0x20, SLOTS + 16);
    put_jump(second, PLT_SEC, 0x30, SLOTS + 24);
    put_jump(got, PLT_GOT, 0, SLOTS + 32);
    put_jump(got, PLT_GOT, 8, SLOTS + 40);
    put_jump(got, PLT_GOT, 16, SLOTS + 48);
    uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
    const struct made_section sections[] = {
        text_section,
        {".symtab", SHT_SYMTAB, 0, 0, mini_symbols, sizeof(mini_symbols), 3, sizeof(Elf64_Sym)},
        {".strtab", SHT_STRTAB, 0, 0, mini_strings, sizeof(mini_strings), 0, 0},
        {".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, symbols, sizeof(symbols), 5, sizeof(Elf64_Sym)},
        {".dynstr", SHT_STRTAB, SHF_ALLOC, 0, strings, sizeof(strings), 0, 0},
        {".plt", SHT_PROGBITS, flags, PLT, plt, sizeof(plt), 0, 16},
        {".plt.sec", SHT_PROGBITS, flags, PLT_SEC, second, sizeof(second), 0, 16},
        {".plt.got", SHT_PROGBITS, flags, PLT_GOT, got, sizeof(got), 0, 8},
        {".rela.plt", SHT_RELA, SHF_ALLOC, 0, lazy, sizeof(lazy), 4, sizeof(Elf64_Rela)},
        {".rela.dyn", SHT_RELA, SHF_ALLOC, 0, eager, sizeof(eager), 4, sizeof(Elf64_Rela)},
    };
    make_elf(image, sections, ARRAY_LENGTH(sections));
}

static void stubs_are_called_after_functions(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer image = {0};
    struct symbol symbol;
    make_stubs(&image);
    struct symbol_table *table = table_of(&image);
    assert_non_null(table);
    assert_string_equal(name_at(table, PLT), "");
    assert_string_equal(name_at(table, PLT + 0x10), "puts@plt");
    assert_string_equal(name_at(table, PLT + 0x1f), "puts@plt");
    assert_string_equal(name_at(table, PLT + 0x20), "a::b@plt");
    assert_string_equal(name_at(table, PLT + 0x30), "");
    assert_string_equal(name_at(table, PLT_SEC + 0xf), "puts@plt");
    assert_true(symbol_table_find(table, PLT_SEC + 0x13, &symbol));
    assert_string_equal(symbol.name, "a::b@plt");
    assert_string_equal(symbol.system_name, "_ZN1a1bEv@plt");
    assert_int_equal(symbol.start, PLT_SEC + 0x10);
    assert_int_equal(symbol.distance, 3);
    /* Chosen when the program starts: called as what chooses, or by its address. */
    assert_string_equal(name_at(table, PLT_SEC + 0x20), "hidden@plt");
    assert_string_equal(name_at(table, PLT_SEC + 0x30), "*ABS*+0x77@plt");
    assert_string_equal(name_at(table, PLT_GOT + 7), "puts@plt");
    assert_string_equal(name_at(table, PLT_GOT + 8), ""); /* a name outside of its table */
    assert_string_equal(name_at(table, PLT_GOT + 16), "");
    assert_string_equal(name_at(table, CODE + 0x10), "hidden");
    symbol_table_free(table);

    for (size_t at = 0; at < image.length; at += at == 0x100 ? 0xf00 : 1) {
        image.data[at] ^= (char)0xff;
        if ((table = table_of(&image)))
            for (uint64_t address = PLT - 16; address < PLT_GOT + 0x40; address += 8)
                name_at(table, address);
        symbol_table_free(table);
        image.data[at] ^= (char)0xff;
    }
}

/* ---- packed sections ---- */

enum packing { PLAIN, ZLIB, ZSTD, OLD_ZLIB };

static void pack_section(enum packing packing, const struct buffer *content, struct buffer *packed)
{
    Elf64_Chdr header = {.ch_type = packing == ZSTD ? ELFCOMPRESS_ZSTD : ELFCOMPRESS_ZLIB,
                         .ch_size = content->length,
                         .ch_addralign = 8};
    size_t room = content->length + 4096;
    if (packing == PLAIN) {
        buffer_add(packed, content->data, content->length);
        return;
    }
    if (packing == OLD_ZLIB) {
        uint64_t size = __builtin_bswap64(content->length);
        buffer_add(packed, "ZLIB", 4);
        buffer_add(packed, &size, sizeof(size));
    } else {
        buffer_add(packed, &header, sizeof(header));
    }
    if (packing == ZSTD) {
        packed->length +=
            ZSTD_compress(buffer_reserve(packed, room), room, content->data, content->length, 3);
        return;
    }
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
    packed->length += libdeflate_zlib_compress(compressor, content->data, content->length,
                                               buffer_reserve(packed, room), room);
    libdeflate_free_compressor(compressor);
}

static void make_framed(enum packing packing, const struct buffer *packed, struct buffer *image)
{
    const struct made_section sections[] = {
        text_section,
        {packing == OLD_ZLIB ? ".zdebug_frame" : ".debug_frame", SHT_PROGBITS,
         packing == ZLIB || packing == ZSTD ? SHF_COMPRESSED : 0, 0, packed->data, packed->length,
         0, 0},
    };
    make_elf(image, sections, ARRAY_LENGTH(sections));
}

static void make_frames(struct buffer *frames)
{
    static const struct frame_style style = {.debug_frame = true, .version = 3, .augmentation = ""};
    static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
    size_t cie = put_cie(frames, &style, NULL, 0);
    for (uint64_t i = 0; i < 8; i++)
        put_fde(frames, &style, cie, 0, CODE + i * 64, CODE + i * 64 + 48, program,
                sizeof(program));
}

static int compile(const struct buffer *image, struct unwind_rules *rules, struct unwind_rows *rows,
                   struct error *error)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    int r = elf_open_memory(image->data, image->length, ELF_LAYOUT_FILE, &file, error);
    return r < 0 ? r : unwind_rows_compile(&file, rules, rows, error);
}

static void packed_frames_are_the_same(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer frames = {0};
    _cleanup_rules_ struct unwind_rules rules;
    unwind_rules_init(&rules);
    make_frames(&frames);
    uint16_t expected[CODE_BYTES] = {0};
    for (enum packing packing = PLAIN; packing <= OLD_ZLIB; packing++) {
        _cleanup_buffer_ struct buffer packed = {0}, image = {0};
        _cleanup_rows_ struct unwind_rows rows = {0};
        struct error error = {0};
        pack_section(packing, &frames, &packed);
        make_framed(packing, &packed, &image);
        assert_int_equal(compile(&image, &rules, &rows, &error), 0);
        assert_int_not_equal(unwind_rows_find(&rows, CODE + 64), UNWIND_RULE_NONE);
        for (size_t i = 0; i < CODE_BYTES; i++) {
            uint16_t rule = unwind_rows_find(&rows, CODE + i);
            assert_int_equal(rule, packing == PLAIN ? rule : expected[i]);
            expected[i] = rule;
        }
        /* Functions without names are known by the same entries. */
        struct symbol symbol;
        struct symbol_table *table = table_of(&image);
        assert_true(packing == OLD_ZLIB || symbol_table_find(table, CODE + 64 + 47, &symbol));
        assert_true(packing == OLD_ZLIB || symbol.start == CODE + 64);
        symbol_table_free(table);
    }
}

static int unpack(struct buffer *packed, uint64_t flags, struct buffer *out, struct error *error)
{
    const struct elf_section section = {
        .name = ".debug_frame", .type = SHT_PROGBITS, .flags = flags, .size_bytes = packed->length};
    _cleanup_buffer_ struct buffer image = {0};
    struct elf_file file = {.fd = -1};
    make_elf(&image, &text_section, 1);
    struct elf_section moved = section;
    moved.offset = image.length;
    buffer_add(&image, packed->data, packed->length);
    assert_int_equal(elf_open_memory(image.data, image.length, ELF_LAYOUT_FILE, &file, error), 0);
    int r = elf_unpack_section(&file, &moved, 1 << 20, out, error);
    elf_release(&file);
    return r;
}

static void damaged_packed_sections(void **state)
{
    (void)state;
    struct error error = {0};
    for (enum packing packing = ZLIB; packing <= ZSTD; packing++) {
        _cleanup_buffer_ struct buffer content = {0}, packed = {0};
        for (uint32_t i = 0; i < 500; i++)
            buffer_printf(&content, "%u ", i * 7919 % 1009);
        pack_section(packing, &content, &packed);
        _cleanup_buffer_ struct buffer whole = {0};
        assert_int_equal(unpack(&packed, SHF_COMPRESSED, &whole, &error), 0);
        assert_int_equal(whole.length, content.length);
        assert_memory_equal(whole.data, content.data, content.length);
        size_t length = packed.length;
        for (packed.length = 0; packed.length < length; packed.length++) {
            _cleanup_buffer_ struct buffer out = {0};
            assert_int_equal(unpack(&packed, SHF_COMPRESSED, &out, &error), -EBADMSG);
            assert_int_equal(out.length, 0);
        }
        for (size_t at = 0; at < length; at++) {
            _cleanup_buffer_ struct buffer out = {0};
            packed.data[at] ^= 0x21;
            int r = unpack(&packed, SHF_COMPRESSED, &out, &error);
            assert_true(r < 0 || out.length == content.length);
            packed.data[at] ^= 0x21;
        }
        /* What the header says about the size: too little, too much, beyond the limit. */
        static const int64_t lies[] = {-1, 1, 100000, 1 << 21, INT64_MAX};
        for (size_t i = 0; i < ARRAY_LENGTH(lies); i++) {
            _cleanup_buffer_ struct buffer out = {0};
            uint64_t size = content.length + (uint64_t)lies[i];
            memcpy(packed.data + offsetof(Elf64_Chdr, ch_size), &size, sizeof(size));
            int r = unpack(&packed, SHF_COMPRESSED, &out, &error);
            assert_int_equal(r, size > 1 << 20 ? -E2BIG : -EBADMSG);
            assert_int_equal(out.length, 0);
        }
        packed.data[0] = 9;
        assert_true(unpack(&packed, SHF_COMPRESSED, &whole, &error) < 0);
    }
}

/* A few bytes that would be very many. */
static void packed_sections_have_limits(void **state)
{
    (void)state;
    struct error error = {0};
    for (enum packing packing = ZLIB; packing <= ZSTD; packing++) {
        _cleanup_buffer_ struct buffer zeros = {0}, packed = {0}, out = {0};
        size_t length = 64 << 20;
        uint64_t size = 1000;
        memset(buffer_reserve(&zeros, length), 0, length);
        zeros.length = length;
        pack_section(packing, &zeros, &packed);
        assert_int_equal(unpack(&packed, SHF_COMPRESSED, &out, &error), -E2BIG);
        memcpy(packed.data + offsetof(Elf64_Chdr, ch_size), &size, sizeof(size));
        assert_int_equal(unpack(&packed, SHF_COMPRESSED, &out, &error), -EBADMSG);
        assert_true(out.capacity < 2 << 20);
    }
}

/* ---- the vDSO ---- */

static void vdso_functions_have_names(void **state)
{
    (void)state;
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct error error = {0};
    struct symbol symbol;
    if (vdso_open(&file, &error) == -ENOENT) {
        print_message("%s\n", error.text);
        skip();
    }
    struct symbolizer *symbolizer = symbolizer_new();
    size_t found = 0;
    for (uint64_t offset = 0; offset < file.size_bytes; offset += 16)
        if (symbolizer_find(symbolizer, "[vdso]", NULL, offset, &symbol) && symbol.name)
            found += !strcmp(symbol.name, "__vdso_clock_gettime");
    assert_true(found);
    assert_int_equal(symbolizer_stats(symbolizer).files, 1);
    symbolizer_free(symbolizer);
}

/* ---- in a profile ---- */

static uint32_t add_frame(struct profile *profile, const char *file, uint64_t address,
                          enum frame_kind kind)
{
    struct profile_mapping mapping = {.limit = UINT64_MAX, .file = profile_cstring(profile, file)};
    struct profile_frame frame = {.address = address,
                                  .mapping = profile_mapping(profile, &mapping),
                                  .kind = (uint32_t)kind & 63};
    return profile_frame(profile, &frame);
}

static void names_reach_a_profile(void **state)
{
    (void)state;
    static const char kallsyms[] = "ffffffff81000000 T in_kernel\n"
                                   "ffffffffc0001000 t in_module\t[some_module]\n";
    char map[64], jit[JIT_MAPPING_NAME_BYTES], unnamed[64];
    uint32_t pid = (uint32_t)getpid();
    snprintf(map, sizeof(map), "/tmp/perf-%u.map", pid);
    FILE *file = fopen(map, "w");
    assert_non_null(file);
    fputs("5000 100 JS:*hot /srv/x.js:3:1\n", file);
    fclose(file);
    jit_mapping_name(jit, pid);
    snprintf(unnamed, sizeof(unnamed), "%s+0x9000", jit);

    _cleanup_profile_ struct profile from, to;
    struct error error = {0};
    profile_init(&from, PROFILE_ALL);
    profile_init(&to, PROFILE_ALL);
    profile_type(&from, profile_cstring(&from, "samples"), profile_cstring(&from, "count"));
    uint32_t frames[] = {
        add_frame(&from, jit, 0x5010, FRAME_NATIVE),
        add_frame(&from, jit, 0x9000, FRAME_NATIVE),
        add_frame(&from, "[kernel.kallsyms]", 0xffffffff81000004, FRAME_KERNEL),
        add_frame(&from, "[kernel.kallsyms]", 0xffffffffc0001004, FRAME_KERNEL),
    };
    size_t row = profile_sample(&from, profile_stack(&from, frames, ARRAY_LENGTH(frames)), 0, 0, 0);
    profile_add_value(&from, row, 0, 1);

    struct kernel_symbols *kernel = NULL;
    assert_int_equal(kernel_symbols_parse(kallsyms, strlen(kallsyms), &kernel, &error), 0);
    struct jit_names *names = jit_names_new();
    struct symbolizer *symbolizer = symbolizer_new();
    assert_true(jit_names_load(names, pid));
    symbolizer_set_jit(symbolizer, names);
    symbolizer_set_kernel(symbolizer, kernel);
    assert_int_equal(symbol_name_profile(symbolizer, &from, &to, NULL, NULL, &error), 0);

    struct naming naming;
    naming_init(&naming, &to);
    const char *expected[][2] = {{"hot", jit},
                                 {unnamed, jit},
                                 {"in_kernel", "[kernel.kallsyms]"},
                                 {"in_module", "[some_module]"}};
    assert_int_equal(naming.count, ARRAY_LENGTH(expected));
    for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
        size_t found = 0;
        for (uint32_t k = 0; k < naming.count; k++)
            found += naming.entries[k].length == strlen(expected[i][0]) &&
                     !memcmp(naming.entries[k].name, expected[i][0], naming.entries[k].length) &&
                     !strcmp(naming.entries[k].binary, expected[i][1]);
        if (!found)
            fail_msg("%s in %s is missing", expected[i][0], expected[i][1]);
    }
    for (uint32_t i = 1; i < to.frame_count; i++)
        if (to.frames[i].address == 0x5010) {
            assert_int_equal(to.frames[i].kind, FRAME_V8JS);
            assert_string_equal(profile_text(&to, to.functions[to.frames[i].function].file),
                                "/srv/x.js");
        }
    naming_release(&naming);
    symbolizer_free(symbolizer);
    jit_names_free(names);
    unlink(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_symbols_name_functions),
        cmocka_unit_test(damaged_packed_symbols),
        cmocka_unit_test(packed_symbols_have_limits),
        cmocka_unit_test(stubs_are_called_after_functions),
        cmocka_unit_test(packed_frames_are_the_same),
        cmocka_unit_test(damaged_packed_sections),
        cmocka_unit_test(packed_sections_have_limits),
        cmocka_unit_test(vdso_functions_have_names),
        cmocka_unit_test(names_reach_a_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
