/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text of 64 characters, as RFC 4648 has it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Value of a character of the plain alphabet, or -1. */
static inline int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Appends what base64 stands for, with or without padding, of either alphabet; false when it is
 * none. */
bool base64_decode(const char *text, size_t length, struct buffer *out);
void base64_encode(const void *data, size_t length, struct buffer *out);
