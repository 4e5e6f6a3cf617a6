/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table of functions, written by hand in each of its layouts, and a small ELF file around it
 * with code of the forms that Go's assembler writes. */
#pragma once

#include <elf.h>

#include "elf/go/gopclntab.h"
#include "frames.h"

#define GO_TEXT 0x401000ull
#define GO_TABLE 0x402000ull
#define GO_DATA 0x404000ull
#define GO_FUNCTION_BYTES 64

/* Up to an offset in the function, a value holds. */
struct go_value {
    uint32_t end;
    int32_t value;
};

struct go_function {
    const char *name;
    uint8_t flags;
    struct go_value frames[8];
    uint8_t code[GO_FUNCTION_BYTES];
};

#define FRAME(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

enum { GO_FRAMED, GO_OLD, GO_EXIT, GO_SYSTEMSTACK, GO_SIGRETURN, GO_FOREIGN, GO_MCALL, GO_ALIGNED };

static const struct go_function go_functions[] = {
    [GO_FRAMED] = {"main.framed[go.shape.int]",
                   0,
                   FRAME({1, 0}, {8, 8}, {32, 24}, {33, 8}, {34, 0}),
                   {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, [32] = 0x5d, 0xc3}},
    [GO_OLD] = {"main.old",
                0,
                FRAME({4, 0}, {48, 24}, {49, 0}),
                {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, [48] = 0xc3}},
    [GO_EXIT] = {"runtime.goexit", GOPCLNTAB_TOP_FRAME, FRAME({8, 0}), {0x90}},
    /* push; mov; mov 0x38(%rdx),%rsp; call; mov 0x38(%rax),%rsp; pop; ret */
    [GO_SYSTEMSTACK] = {"runtime.systemstack",
                        GOPCLNTAB_SP_WRITE,
                        FRAME({1, 0}, {15, 8}, {16, 0}),
                        {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x62, 0x38, 0xff, 0xd7, 0x48, 0x8b,
                         0x60, 0x38, 0x5d, 0xc3}},
    [GO_SIGRETURN] = {"runtime.sigreturn__sigaction", 0, FRAME({8, 0}), {0x90}},
    [GO_FOREIGN] = {"from_c", 0, FRAME({0, 0}), {0x90}},
    /* push; mov; mov 0x38(%r14),%rsp; push; call */
    [GO_MCALL] = {"runtime.mcall",
                  GOPCLNTAB_SP_WRITE,
                  FRAME({1, 0}, {9, 8}, {16, 16}),
                  {0x55, 0x48, 0x89, 0xe5, 0x49, 0x8b, 0x66, 0x38, 0x50, 0x41, 0xff, 0xd4}},
    /* push; mov; and $-64,%rsp */
    [GO_ALIGNED] = {"crypto.block",
                    GOPCLNTAB_SP_WRITE,
                    FRAME({1, 0}, {32, 8}),
                    {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xc0}},
};
#define GO_FUNCTIONS (sizeof(go_functions) / sizeof(go_functions[0]))

/* Of main.framed: an inlined call from 16 to 24, which the instruction at 12 makes. */
static const struct go_value go_lines[] = {{16, 10}, {24, 50}, {64, 12}, {0, 0}};
static const struct go_value go_files[] = {{16, 0}, {24, 1}, {64, 0}, {0, 0}};
static const struct go_value go_inlines[] = {{16, -1}, {24, 0}, {64, -1}, {0, 0}};

/* Returns where it begins. */
static inline uint32_t go_put_values(struct buffer *out, const struct go_value *values)
{
    uint32_t start = (uint32_t)out->length, at = 0;
    int32_t before = -1;
    for (; values->end; before = values->value, at = values->end, values++) {
        int32_t difference = values->value - before;
        put_uleb(out, (uint32_t)difference << 1 ^ (uint32_t)(difference >> 31));
        put_uleb(out, values->end - at);
    }
    buffer_add_char(out, 0);
    return start;
}

static inline uint32_t go_put_text(struct buffer *out, const char *text)
{
    uint32_t start = (uint32_t)out->length;
    buffer_add(out, text, strlen(text) + 1);
    return start;
}

struct go_parts {
    struct buffer names, values, files;
    uint32_t name[GO_FUNCTIONS], frames[GO_FUNCTIONS], inlined_name, file[2];
    uint32_t lines, file_values, inlines;
};

static inline void go_make_parts(struct go_parts *parts)
{
    go_put_text(&parts->values, ""); /* offset 0 is none */
    go_put_text(&parts->names, "");
    for (size_t i = 0; i < GO_FUNCTIONS; i++) {
        parts->name[i] = go_put_text(&parts->names, go_functions[i].name);
        if (go_functions[i].frames[0].end)
            parts->frames[i] = go_put_values(&parts->values, go_functions[i].frames);
    }
    parts->inlined_name = go_put_text(&parts->names, "main.inlined");
    parts->lines = go_put_values(&parts->values, go_lines);
    parts->file_values = go_put_values(&parts->values, go_files);
    parts->inlines = go_put_values(&parts->values, go_inlines);
    parts->file[0] = go_put_text(&parts->files, "/src/main.go");
    parts->file[1] = go_put_text(&parts->files, "/src/inlined.go");
}

/* `names` and `values` are where these parts begin, which the old layout's offsets include. */
static inline void go_put_record(struct buffer *out, const struct go_parts *parts, size_t number,
                                 enum gopclntab_layout layout, uint32_t names, uint32_t values)
{
    bool wide = layout < GOPCLNTAB_1_18, go = number != GO_FOREIGN;
    put_bytes(out, number * GO_FUNCTION_BYTES + (wide ? GO_TEXT : 0), wide ? 8 : 4);
    put_bytes(out, names + parts->name[number], 4);
    put_bytes(out, 0, 8); /* arguments, deferreturn */
    put_bytes(out, parts->frames[number] ? values + parts->frames[number] : 0, 4);
    put_bytes(out, go ? values + parts->file_values : 0, 4);
    put_bytes(out, go ? values + parts->lines : 0, 4);
    put_bytes(out, 3, 4);
    if (layout >= GOPCLNTAB_1_16)
        put_bytes(out, 0, 4); /* unit */
    if (layout >= GOPCLNTAB_1_20)
        put_bytes(out, 8, 4); /* the first line */
    put_bytes(out, 0, 1);
    put_bytes(out, layout >= GOPCLNTAB_1_16 ? go_functions[number].flags : 0, 1);
    put_bytes(out, 0, 1);
    put_bytes(out, layout >= GOPCLNTAB_1_18 ? 4 : 0, 1);
    for (int i = 0; i < 2; i++)
        put_bytes(out, 0, 4);
    put_bytes(out, number ? 0 : values + parts->inlines, 4);
    for (int i = 0; i < 3 && layout >= GOPCLNTAB_1_18; i++)
        put_bytes(out, UINT32_MAX, 4);
    if (layout >= GOPCLNTAB_1_18)
        put_bytes(out, number ? UINT32_MAX : 0, 4);
}

static inline void go_align(struct buffer *out)
{
    while (out->length % 8)
        buffer_add_char(out, 0);
}

static inline void go_set(struct buffer *out, size_t at, uint64_t value, size_t length)
{
    memcpy(out->data + at, &value, length);
}

/* The list of functions with its records. */
static inline void go_put_functions(struct buffer *out, const struct go_parts *parts,
                                    enum gopclntab_layout layout)
{
    size_t width = layout < GOPCLNTAB_1_18 ? 8 : 4, start = out->length;
    uint64_t text = width == 8 ? GO_TEXT : 0;
    for (size_t i = 0; i <= GO_FUNCTIONS; i++) {
        put_bytes(out, text + i * GO_FUNCTION_BYTES, width);
        put_bytes(out, 0, width);
    }
    for (size_t i = 0; i < GO_FUNCTIONS; i++) {
        go_align(out);
        go_set(out, start + (2 * i + 1) * width, out->length - start, width);
        go_put_record(out, parts, i, layout, 0, 0);
    }
}

static inline void go_put_units(struct buffer *out, const struct go_parts *parts, uint32_t files)
{
    for (int i = 0; i < 2; i++)
        put_bytes(out, files + parts->file[i], 4);
}

/* Everything in one piece, as up to Go 1.15. */
static inline void go_put_old_table(struct buffer *out, const struct go_parts *parts)
{
    uint32_t names = (uint32_t)(16 + (GO_FUNCTIONS + 1) * 16);
    uint32_t values = names + (uint32_t)parts->names.length;
    uint32_t files = values + (uint32_t)parts->values.length;
    put_bytes(out, GO_FUNCTIONS, 8);
    for (size_t i = 0; i <= GO_FUNCTIONS; i++) {
        put_bytes(out, GO_TEXT + i * GO_FUNCTION_BYTES, 8);
        put_bytes(out, 0, 8); /* of the last, where the list of files is */
    }
    buffer_add(out, parts->names.data, parts->names.length);
    buffer_add(out, parts->values.data, parts->values.length);
    buffer_add(out, parts->files.data, parts->files.length);
    go_align(out);
    go_set(out, names - 8, out->length, 4);
    go_put_units(out, parts, files);
    for (size_t i = 0; i < GO_FUNCTIONS; i++) {
        go_align(out);
        go_set(out, 16 + (2 * i + 1) * 8, out->length, 8);
        go_put_record(out, parts, i, GOPCLNTAB_1_2, names, values);
    }
}

static inline void go_put_new_table(struct buffer *out, const struct go_parts *parts,
                                    enum gopclntab_layout layout, bool with_text)
{
    put_bytes(out, GO_FUNCTIONS, 8);
    put_bytes(out, 2, 8);
    if (layout >= GOPCLNTAB_1_18)
        put_bytes(out, with_text ? GO_TEXT : 0, 8);
    size_t offsets = out->length;
    for (int i = 0; i < 5; i++)
        put_bytes(out, 0, 8);
    go_set(out, offsets, out->length, 8);
    buffer_add(out, parts->names.data, parts->names.length);
    go_align(out);
    go_set(out, offsets + 8, out->length, 8);
    go_put_units(out, parts, 0);
    go_set(out, offsets + 16, out->length, 8);
    buffer_add(out, parts->files.data, parts->files.length);
    go_set(out, offsets + 24, out->length, 8);
    buffer_add(out, parts->values.data, parts->values.length);
    go_align(out);
    go_set(out, offsets + 32, out->length, 8);
    go_put_functions(out, parts, layout);
}

/* Returns where the inline tree begins; it is the end of the table. */
static inline size_t go_make_table(struct buffer *out, enum gopclntab_layout layout, bool with_text)
{
    static const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
    struct go_parts parts = {0};
    go_make_parts(&parts);
    put_bytes(out, magics[layout], 4);
    put_bytes(out, 0x08010000, 4);
    if (layout == GOPCLNTAB_1_2)
        go_put_old_table(out, &parts);
    else
        go_put_new_table(out, &parts, layout, with_text);
    go_align(out);
    size_t tree = out->length;
    uint32_t record_1_18[] = {UINT32_MAX, 0, 10, parts.inlined_name, 12};
    uint32_t record_1_20[] = {0, parts.inlined_name, 12, 49};
    if (layout == GOPCLNTAB_1_18)
        buffer_add(out, record_1_18, sizeof(record_1_18));
    else
        buffer_add(out, record_1_20, sizeof(record_1_20));
    buffer_release(&parts.names);
    buffer_release(&parts.values);
    buffer_release(&parts.files);
    return tree;
}

/* ---- a file ---- */

struct go_image_options {
    enum gopclntab_layout layout;
    bool with_text;   /* in the table itself */
    bool no_name;     /* the table's section is called otherwise */
    bool relocations; /* the words are not in their places, as some linkers leave it */
};

enum { GO_IMAGE_HEADERS = 0x1000, GO_IMAGE_TABLE = 0x2000, GO_IMAGE_DATA = 0x4000 };

static inline void go_put_module(struct buffer *image, const struct go_image_options *options,
                                 size_t tree, struct buffer *relocations)
{
    uint64_t words[41] = {0};
    uint64_t list = 0;
    memcpy(&list, image->data + GO_IMAGE_TABLE + 64, 8);
    words[0] = GO_TABLE;
    words[16] = GO_TABLE + list;
    words[17] = GO_FUNCTIONS + 1;
    words[20] = words[22] = GO_TEXT;
    words[options->layout == GOPCLNTAB_1_18 ? 38 : 40] = GO_TABLE + tree;
    for (size_t i = 0; i < 41; i++)
        if (options->relocations && words[i] && i != 17) {
            Elf64_Rela entry = {GO_DATA + 16 + i * 8, R_X86_64_RELATIVE, (Elf64_Sxword)words[i]};
            buffer_add(relocations, &entry, sizeof(entry));
            words[i] = 0;
        }
    memcpy(image->data + GO_IMAGE_DATA + 16, words, sizeof(words));
}

static inline void go_make_image(struct buffer *image, const struct go_image_options *options)
{
    static const char names[] = "\0.text\0.gopclntab\0.go.buildinfo\0.rela.dyn\0.shstrtab\0.other";
    struct buffer table = {0}, relocations = {0};
    size_t tree = go_make_table(&table, options->layout, options->with_text);
    memset(buffer_reserve(image, 0x5000), 0, 0x5000);
    image->length = 0x5000;
    for (size_t i = 0; i < GO_FUNCTIONS; i++)
        memcpy(image->data + GO_IMAGE_HEADERS + i * GO_FUNCTION_BYTES, go_functions[i].code,
               GO_FUNCTION_BYTES);
    memcpy(image->data + GO_IMAGE_TABLE, table.data, table.length);
    if (options->layout >= GOPCLNTAB_1_18)
        go_put_module(image, options, tree, &relocations);
    buffer_add(&relocations, "", 0);
    size_t relocations_at = 0x4800, names_at = 0x4c00, sections_at = 0x4d00;
    if (relocations.length)
        memcpy(image->data + relocations_at, relocations.data, relocations.length);
    memcpy(image->data + names_at, names, sizeof(names));
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_DYN,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_phoff = sizeof(header),
                         .e_shoff = sections_at,
                         .e_ehsize = sizeof(header),
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 3,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = 6,
                         .e_shstrndx = 5};
    Elf64_Phdr segments[] = {
        {PT_LOAD, PF_R | PF_X, GO_IMAGE_HEADERS, GO_TEXT, 0, 0x1000, 0x1000, 0x1000},
        {PT_LOAD, PF_R, GO_IMAGE_TABLE, GO_TABLE, 0, 0x2000, 0x2000, 0x1000},
        {PT_LOAD, PF_R | PF_W, GO_IMAGE_DATA, GO_DATA, 0, 0x800, 0x800, 0x1000},
    };
    Elf64_Shdr sections[] = {
        {0},
        {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, GO_TEXT, GO_IMAGE_HEADERS, 0x1000, 0, 0, 16,
         0},
        {options->no_name ? 53 : 7, SHT_PROGBITS, SHF_ALLOC, GO_TABLE, GO_IMAGE_TABLE, table.length,
         0, 0, 8, 0},
        {18, SHT_PROGBITS, SHF_ALLOC, GO_DATA, GO_IMAGE_DATA, 16, 0, 0, 8, 0},
        {32, SHT_RELA, SHF_ALLOC, 0, relocations_at, relocations.length, 0, 0, 8,
         sizeof(Elf64_Rela)},
        {42, SHT_STRTAB, 0, 0, names_at, sizeof(names), 0, 0, 1, 0},
    };
    memcpy(image->data, &header, sizeof(header));
    memcpy(image->data + sizeof(header), segments, sizeof(segments));
    memcpy(image->data + sections_at, sections, sizeof(sections));
    buffer_release(&table);
    buffer_release(&relocations);
}
