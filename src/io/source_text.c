// SPDX-License-Identifier: Apache-2.0
// Text in other encodings than UTF-8: editors and shells of Windows write UTF-16, and put a mark
// before UTF-8. Readers see plain UTF-8.

#include <string.h>

#include "io/source.h"

#define REPLACEMENT 0xfffdu

/* The stream in UTF-16 that a source is read from. */
struct wide_text {
    struct source wide;
    bool big_endian;
};

static uint32_t unit_at(const struct wide_text *text, size_t index)
{
    const uint8_t *bytes = source_data(&text->wide) + 2 * index;
    return text->big_endian ? (uint32_t)bytes[0] << 8 | bytes[1]
                            : (uint32_t)bytes[1] << 8 | bytes[0];
}

static bool is_low_surrogate(uint32_t unit)
{
    return (unit & 0xfc00) == 0xdc00;
}

/* The next character; what is no character, as half a pair, becomes the replacement. */
static uint32_t take_character(struct wide_text *text)
{
    size_t available = source_available(&text->wide);
    if (available < 2) {
        source_skip(&text->wide, available);
        return REPLACEMENT;
    }
    uint32_t unit = unit_at(text, 0);
    bool high = (unit & 0xfc00) == 0xd800;
    if (high && available >= 4 && is_low_surrogate(unit_at(text, 1))) {
        uint32_t low = unit_at(text, 1);
        source_skip(&text->wide, 4);
        return 0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff));
    }
    source_skip(&text->wide, 2);
    return high || is_low_surrogate(unit) ? REPLACEMENT : unit;
}

/* Writes a character in UTF-8; at most four bytes. */
static size_t put_character(uint8_t *out, uint32_t c)
{
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(leads[length] | c);
    return length;
}

static ssize_t read_wide(void *userdata, void *bytes, size_t room, struct error *error)
{
    struct wide_text *text = userdata;
    uint8_t *out = bytes;
    size_t length = 0;
    while (room - length >= 4) {
        int r = source_need(&text->wide, 4, error);
        if (r < 0)
            return r;
        if (!source_available(&text->wide))
            break;
        length += put_character(out + length, take_character(text));
    }
    return (ssize_t)length;
}

static void wide_text_free(void *userdata)
{
    struct wide_text *text = userdata;
    source_release(&text->wide);
    free(text);
}

int source_decode_text(struct source *source, struct error *error)
{
    int r = source_need(source, 3, error);
    const uint8_t *bytes = source_data(source);
    size_t available = source_available(source);
    if (r < 0 || source_offset(source) || available < 2)
        return r;
    if (available >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) {
        source_skip(source, 3);
        return 0;
    }
    bool big_endian = bytes[0] == 0xfe && bytes[1] == 0xff;
    if (!big_endian && (bytes[0] != 0xff || bytes[1] != 0xfe))
        return 0;
    struct wide_text *text = memory_zalloc(1, sizeof(*text));
    text->wide = *source;
    text->big_endian = big_endian;
    source_skip(&text->wide, 2);
    const char *name = source->name;
    uint64_t limit = source->expansion_limit;
    *source = (struct source){0};
    r = source_open_reader(source, name, read_wide, text, limit, error);
    if (r < 0)
        wide_text_free(text);
    else
        source_own(source, wide_text_free);
    return r;
}
