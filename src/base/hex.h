/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits, of either case where they are read and small where they are written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -1: not a digit. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Two digits for each of `count` bytes, and nothing else; otherwise false, and `ret_bytes` holds
 * anything. */
static inline bool hex_decode(const char *text, size_t length, uint8_t *ret_bytes, size_t count)
{
    if (length != 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Writes 2 * count digits and a zero byte. */
static inline void hex_encode(const void *bytes, size_t count, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = (const uint8_t *)bytes;
    for (size_t i = 0; i < count; i++) {
        ret_text[2 * i] = digits[at[i] >> 4];
        ret_text[2 * i + 1] = digits[at[i] & 15];
    }
    ret_text[2 * count] = 0;
}
