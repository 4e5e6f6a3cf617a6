// SPDX-License-Identifier: Apache-2.0
// Base64: see base64.h.

#include "io/base64.h"

#include <stdint.h>

bool base64_decode(const char *text, size_t length, struct buffer *out)
{
    while (length && text[length - 1] == '=')
        length--;
    if (length % 4 == 1)
        return false;
    unsigned bits = 0, count = 0;
    buffer_reserve(out, length / 4 * 3 + 3);
    for (size_t i = 0; i < length; i++) {
        int digit = text[i] == '-' ? 62 : text[i] == '_' ? 63 : base64_digit(text[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (unsigned)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            buffer_add_char(out, (char)(bits >> count & 0xff));
        }
    }
    return true;
}

void base64_encode(const void *data, size_t length, struct buffer *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *bytes = data;
    for (size_t i = 0; i < length; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16;
        word |= i + 1 < length ? (uint32_t)bytes[i + 1] << 8 : 0;
        word |= i + 2 < length ? bytes[i + 2] : 0;
        buffer_add_char(out, digits[word >> 18]);
        buffer_add_char(out, digits[word >> 12 & 63]);
        buffer_add_char(out, i + 1 < length ? digits[word >> 6 & 63] : '=');
        buffer_add_char(out, i + 2 < length ? digits[word & 63] : '=');
    }
}
