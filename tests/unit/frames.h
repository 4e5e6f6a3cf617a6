/* SPDX-License-Identifier: Apache-2.0 */
/* Writing call frame information by hand, for tests of what reads it. */
#pragma once

#include "base/buffer.h"

static inline void put_bytes(struct buffer *out, uint64_t value, size_t length)
{
    buffer_add(out, &value, length);
}

static inline void put_uleb(struct buffer *out, uint64_t value)
{
    do {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        buffer_add_char(out, (char)(value ? byte | 0x80 : byte));
    } while (value);
}

static inline void put_sleb(struct buffer *out, int64_t value)
{
    for (;;) {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        bool last = (value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40));
        buffer_add_char(out, (char)(last ? byte : byte | 0x80));
        if (last)
            return;
    }
}

/* How a CIE and its FDEs are written. */
struct frame_style {
    bool debug_frame;
    bool wide; /* 64-bit form */
    uint8_t version;
    const char *augmentation;
    uint8_t encoding; /* of addresses, with the letter R */
};

static const struct frame_style usual_style = {
    .version = 1, .augmentation = "zR", .encoding = 0x1b};

static inline size_t begin_entry(struct buffer *out, const struct frame_style *style)
{
    if (style->wide)
        put_bytes(out, 0xffffffff, 4);
    put_bytes(out, 0, style->wide ? 8 : 4);
    return out->length;
}

/* Pads with nops to 8 bytes and writes the length. */
static inline void end_entry(struct buffer *out, const struct frame_style *style, size_t start)
{
    while (out->length % 8)
        buffer_add_char(out, 0);
    uint64_t length = out->length - start;
    size_t width = style->wide ? 8 : 4;
    memcpy(out->data + start - width, &length, width);
}

/* A CIE of x86-64: CFA = rsp + 8, return address at CFA - 8, then `program`. Returns its offset. */
static inline size_t put_cie(struct buffer *out, const struct frame_style *style,
                             const void *program, size_t program_length)
{
    size_t offset = out->length;
    size_t start = begin_entry(out, style);
    put_bytes(out, style->debug_frame ? UINT64_MAX : 0, style->debug_frame && style->wide ? 8 : 4);
    put_bytes(out, style->version, 1);
    buffer_add(out, style->augmentation, strlen(style->augmentation) + 1);
    if (style->version == 4)
        buffer_add(out, "\x08\x00", 2); /* bytes of an address, of a segment */
    put_uleb(out, 1);
    put_sleb(out, -8);
    put_uleb(out, 16);
    if (style->augmentation[0] == 'z') {
        _cleanup_buffer_ struct buffer data = {0};
        for (const char *letter = style->augmentation + 1; *letter; letter++) {
            if (*letter == 'R')
                put_bytes(&data, style->encoding, 1);
            else if (*letter == 'L')
                put_bytes(&data, 0x1b, 1);
            else if (*letter == 'P')
                buffer_add(&data, "\x9b\x11\x22\x33\x44", 5);
        }
        put_uleb(out, data.length);
        buffer_add(out, data.data, data.length);
    }
    buffer_add(out, "\x0c\x07\x08\x90\x01", 5);
    buffer_add(out, program, program_length);
    end_entry(out, style, start);
    return offset;
}

static inline void put_address(struct buffer *out, uint8_t encoding, uint64_t address,
                               uint64_t section_address, bool relative)
{
    if (relative && (encoding & 0xf0) == 0x10)
        address -= section_address + out->length;
    switch (encoding & 0x0f) {
    case 0x01:
        put_uleb(out, address);
        break;
    case 0x09:
        put_sleb(out, (int64_t)address);
        break;
    case 0x02:
    case 0x0a:
        put_bytes(out, address, 2);
        break;
    case 0x03:
    case 0x0b:
        put_bytes(out, address, 4);
        break;
    default:
        put_bytes(out, address, 8);
    }
}

/* An FDE for [start, end). The section's first byte will have `section_address`. */
static inline void put_fde(struct buffer *out, const struct frame_style *style, size_t cie,
                           uint64_t section_address, uint64_t start, uint64_t end,
                           const void *program, size_t program_length)
{
    size_t begin = begin_entry(out, style);
    uint8_t encoding = strchr(style->augmentation, 'R') ? style->encoding : 0;
    if (style->debug_frame)
        put_bytes(out, cie, style->wide ? 8 : 4);
    else
        put_bytes(out, begin - cie, 4);
    put_address(out, encoding, start, section_address, true);
    put_address(out, encoding, end - start, section_address, false);
    if (style->augmentation[0] == 'z')
        put_uleb(out, 0);
    buffer_add(out, program, program_length);
    end_entry(out, style, begin);
}
