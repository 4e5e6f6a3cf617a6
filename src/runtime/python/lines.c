// SPDX-License-Identifier: Apache-2.0
// Decoding tables of lines: see lines.h. Tables come from the process and may be anything: each
// loop ends with the table, and numbers wrap.

#include "runtime/python/lines.h"

struct decoder {
    const uint8_t *at, *end;
    struct runtime_line *lines;
    size_t count;
};

static void add(struct decoder *decoder, uint32_t end, uint32_t line)
{
    struct runtime_line *last = decoder->count ? &decoder->lines[decoder->count - 1] : NULL;
    if (last && last->line == line)
        last->end = end;
    else if (decoder->count < PYTHON_LINES_MAX && (!last || end > last->end))
        decoder->lines[decoder->count++] = (struct runtime_line){.end = end, .line = line};
}

/* Pairs of a distance in bytes and a signed one in lines: a line begins where its pair ends. */
static void decode_pairs(struct decoder *decoder, uint32_t line)
{
    uint32_t address = 0;
    while (decoder->end - decoder->at >= 2) {
        uint32_t bytes = decoder->at[0];
        int8_t lines = (int8_t)decoder->at[1];
        decoder->at += 2;
        if (bytes) {
            address += bytes;
            add(decoder, address / 2, line);
        }
        line += (uint32_t)lines;
    }
    add(decoder, UINT32_MAX, line);
}

/* 3.10: pairs of a length in bytes and a distance in lines, which comes first; -128: no line. */
static void decode_ranges(struct decoder *decoder, uint32_t line)
{
    uint32_t address = 0;
    while (decoder->end - decoder->at >= 2) {
        uint32_t bytes = decoder->at[0];
        int8_t lines = (int8_t)decoder->at[1];
        decoder->at += 2;
        if (lines != -128)
            line += (uint32_t)lines;
        address += bytes;
        if (bytes)
            add(decoder, address / 2, lines == -128 ? 0 : line);
    }
}

static uint32_t take_number(struct decoder *decoder)
{
    uint32_t number = 0;
    for (unsigned shift = 0; decoder->at < decoder->end && shift < 32; shift += 6) {
        uint8_t byte = *decoder->at++;
        number |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return number;
}

static int32_t take_signed(struct decoder *decoder)
{
    uint32_t number = take_number(decoder);
    return number & 1 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
}

/* From 3.11 on: entries of a kind and a number of units, with lines and columns. */
enum { SHORT_MAX = 9, ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };

static void decode_entries(struct decoder *decoder, uint32_t line)
{
    uint32_t unit = 0;
    while (decoder->at < decoder->end) {
        uint8_t first = *decoder->at++;
        unsigned kind = first >> 3 & 15;
        unit += (first & 7u) + 1;
        if (kind <= SHORT_MAX) {
            decoder->at += decoder->at < decoder->end;
        } else if (kind <= ONE_LINE_2) {
            line += kind - ONE_LINE_0;
            for (int i = 0; i < 2; i++)
                decoder->at += decoder->at < decoder->end;
        } else if (kind == NO_COLUMNS) {
            line += (uint32_t)take_signed(decoder);
        } else if (kind == LONG) {
            line += (uint32_t)take_signed(decoder);
            for (int i = 0; i < 3; i++)
                take_number(decoder);
        }
        add(decoder, unit, kind == NO_LINE ? 0 : line);
    }
}

size_t python_lines_decode(unsigned minor, const uint8_t *table, size_t length, uint32_t first_line,
                           struct runtime_line ret_lines[PYTHON_LINES_MAX])
{
    struct decoder decoder = {.at = table, .end = table + length, .lines = ret_lines};
    if (minor < 10)
        decode_pairs(&decoder, first_line);
    else if (minor == 10)
        decode_ranges(&decoder, first_line);
    else
        decode_entries(&decoder, first_line);
    return decoder.count;
}
