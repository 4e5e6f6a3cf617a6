/* SPDX-License-Identifier: Apache-2.0 */
/* A small ELF file made by hand: two pages of code with call frame information, notes, a link to a
 * debug file, dynamic symbols. */
#pragma once

#include <elf.h>

#include "frames.h"

/* Where things are in the file. Addresses are IMAGE_BASE + offset, the code's another page up. */
#define IMAGE_BASE 0x400000ull
#define IMAGE_NOTES 0x200
#define IMAGE_DYNAMIC 0x280
#define IMAGE_STRINGS 0x300
#define IMAGE_SYMBOLS 0x320
#define IMAGE_HASH 0x380
#define IMAGE_FRAME_HEADER 0x400
#define IMAGE_FRAMES 0x410
#define IMAGE_CODE 0x1000
#define IMAGE_CODE_ADDRESS (IMAGE_BASE + 0x2000)
#define IMAGE_LINK 0x3000
#define IMAGE_NAMES 0x3020
#define IMAGE_SECTIONS 0x3100
#define IMAGE_BYTES (IMAGE_SECTIONS + 9 * sizeof(Elf64_Shdr))

static const char image_names[] =
    "\0.text\0.eh_frame\0.note.gnu.build-id\0.gnu_debuglink\0.dynamic\0"
    ".dynstr\0.dynsym\0.shstrtab";

static inline void image_put(struct buffer *image, size_t offset, const void *bytes, size_t length)
{
    memcpy(image->data + offset, bytes, length);
}

static inline size_t image_frames(struct buffer *image)
{
    _cleanup_buffer_ struct buffer frames = {0};
    static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
    size_t cie = put_cie(&frames, &usual_style, NULL, 0);
    for (uint64_t i = 0; i < 4; i++)
        put_fde(&frames, &usual_style, cie, IMAGE_BASE + IMAGE_FRAMES, IMAGE_CODE_ADDRESS + i * 64,
                IMAGE_CODE_ADDRESS + i * 64 + 48, program, sizeof(program));
    put_bytes(&frames, 0, 4);
    image_put(image, IMAGE_FRAMES, frames.data, frames.length);
    return frames.length;
}

static inline void image_headers(struct buffer *image, size_t frames_bytes)
{
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_DYN,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_entry = IMAGE_CODE_ADDRESS,
                         .e_phoff = sizeof(header),
                         .e_shoff = IMAGE_SECTIONS,
                         .e_ehsize = sizeof(header),
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 5,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = 9,
                         .e_shstrndx = 8};
    Elf64_Phdr segments[] = {
        {PT_LOAD, PF_R, 0, IMAGE_BASE, IMAGE_BASE, 0x1000, 0x1000, 0x1000},
        {PT_LOAD, PF_R | PF_X, IMAGE_CODE, IMAGE_CODE_ADDRESS, 0, 0x2000, 0x2000, 0x1000},
        {PT_NOTE, PF_R, IMAGE_NOTES, IMAGE_BASE + IMAGE_NOTES, 0, 64, 64, 4},
        {PT_GNU_EH_FRAME, PF_R, IMAGE_FRAME_HEADER, IMAGE_BASE + IMAGE_FRAME_HEADER, 0, 12, 12, 4},
        {PT_DYNAMIC, PF_R, IMAGE_DYNAMIC, IMAGE_BASE + IMAGE_DYNAMIC, 0, 0x70, 0x70, 8},
    };
    Elf64_Shdr sections[] = {
        {0},
        {1, SHT_PROGBITS, SHF_ALLOC, IMAGE_CODE_ADDRESS, IMAGE_CODE, 0x2000, 0, 0, 16, 0},
        {7, SHT_PROGBITS, SHF_ALLOC, IMAGE_BASE + IMAGE_FRAMES, IMAGE_FRAMES, frames_bytes, 0, 0, 8,
         0},
        {17, SHT_NOTE, SHF_ALLOC, IMAGE_BASE + IMAGE_NOTES, IMAGE_NOTES, 64, 0, 0, 4, 0},
        {36, SHT_PROGBITS, 0, 0, IMAGE_LINK, 16, 0, 0, 4, 0},
        {51, SHT_DYNAMIC, SHF_ALLOC, IMAGE_BASE + IMAGE_DYNAMIC, IMAGE_DYNAMIC, 0x70, 6, 0, 8, 16},
        {60, SHT_STRTAB, SHF_ALLOC, IMAGE_BASE + IMAGE_STRINGS, IMAGE_STRINGS, 16, 0, 0, 1, 0},
        {68, SHT_DYNSYM, SHF_ALLOC, IMAGE_BASE + IMAGE_SYMBOLS, IMAGE_SYMBOLS, 72, 6, 0, 8, 24},
        {76, SHT_STRTAB, 0, 0, IMAGE_NAMES, sizeof(image_names), 0, 0, 1, 0},
    };
    image_put(image, 0, &header, sizeof(header));
    image_put(image, header.e_phoff, segments, sizeof(segments));
    image_put(image, header.e_shoff, sections, sizeof(sections));
    image_put(image, IMAGE_NAMES, image_names, sizeof(image_names));
}

static inline void make_image(struct buffer *image)
{
    memset(buffer_reserve(image, IMAGE_BYTES), 0, IMAGE_BYTES);
    image->length = IMAGE_BYTES;
    image_headers(image, image_frames(image));
    /* Go's note first, then GNU's. */
    image_put(image, IMAGE_NOTES, "\4\0\0\0\7\0\0\0\4\0\0\0Go\0\0go-made\0", 24);
    image_put(image, IMAGE_NOTES + 24, "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xca\xfe\xba\xbe", 20);
    image_put(image, IMAGE_LINK, "a.debug\0\x78\x56\x34\x12", 12);
    Elf64_Dyn dynamic[] = {
        {DT_STRTAB, {IMAGE_BASE + IMAGE_STRINGS}},
        {DT_STRSZ, {16}},
        {DT_SYMTAB, {IMAGE_BASE + IMAGE_SYMBOLS}},
        {DT_GNU_HASH, {IMAGE_BASE + IMAGE_HASH}},
        {DT_FLAGS_1, {DF_1_PIE}},
        {DT_NULL, {0}},
    };
    image_put(image, IMAGE_DYNAMIC, dynamic, sizeof(dynamic));
    /* One bucket whose chain starts at symbol 1 and ends at symbol 2; one bloom word. */
    uint32_t hash[] = {1, 1, 1, 6, 0, 0, 1, 0x10, 0x21};
    image_put(image, IMAGE_HASH, hash, sizeof(hash));
    int32_t distance = IMAGE_FRAMES - (IMAGE_FRAME_HEADER + 4);
    image_put(image, IMAGE_FRAME_HEADER, "\x01\x1b\xff\xff", 4);
    image_put(image, IMAGE_FRAME_HEADER + 4, &distance, 4);
}
