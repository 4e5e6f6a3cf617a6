// SPDX-License-Identifier: Apache-2.0
// Random-looking text: at least 32 characters whose kinds alternate and whose letters repeat as
// seldom as those of keys do. Identifiers, paths and pod names contain words, whose letters keep
// their case; UUIDs aren't secrets.

#include <math.h>

#include "base/memory.h"
#include "label/redact/detect_parts.h"

#define LEAST 32

/* Of 32 random characters of base64 two neighbours differ in kind in 65% of cases (standard
 * deviation 9), and an entropy of 4.5 bits (0.12) is expected; camel-case words have some 30% and
 * 4.0 bits. Hexadecimal digits have 47% and 3.6 bits, lower-case letters and digits 40% and 4.3. */
#define MIXED_CHANGES 0.42
#define MIXED_BITS 4.2
#define LOWER_CHANGES 0.2
#define LOWER_BITS 3.8
#define HEX_BITS 3.0

struct stats {
    size_t length, upper, lower, digits, hex, pairs, changes;
    double bits; /* entropy per character */
};

static bool in_run(char c)
{
    return detect_alnum(c) || c == '+' || c == '/' || c == '_' || c == '-';
}

static int kind_of(char c)
{
    return detect_upper(c) ? 1 : detect_lower(c) ? 2 : detect_digit(c) ? 3 : 0;
}

static struct stats measure(const char *text, size_t length)
{
    struct stats stats = {.length = length};
    size_t counts[128] = {0};
    for (size_t i = 0; i < length; i++) {
        int kind = kind_of(text[i]), before = i ? kind_of(text[i - 1]) : 0;
        stats.upper += kind == 1;
        stats.lower += kind == 2;
        stats.digits += kind == 3;
        stats.hex += detect_hex(text[i]);
        stats.pairs += kind && before;
        stats.changes += kind && before && kind != before;
        counts[(unsigned char)text[i] & 0x7f]++;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++)
        if (counts[i])
            stats.bits -=
                (double)counts[i] / (double)length * log2((double)counts[i] / (double)length);
    return stats;
}

static bool is_mixed(const char *text, size_t length)
{
    if (length < LEAST)
        return false;
    struct stats stats = measure(text, length);
    return stats.upper >= 3 && stats.lower >= 3 && stats.digits >= 2 &&
           (double)stats.changes >= MIXED_CHANGES * (double)stats.pairs && stats.bits >= MIXED_BITS;
}

/* One case only, without separators. */
static bool is_plain(const char *text, size_t length)
{
    if (length < LEAST)
        return false;
    struct stats stats = measure(text, length);
    if (stats.digits < 3 || stats.upper + stats.lower < 3 || (stats.upper && stats.lower))
        return false;
    if (stats.hex == length)
        return stats.bits >= HEX_BITS;
    return (double)stats.changes >= LOWER_CHANGES * (double)stats.pairs && stats.bits >= LOWER_BITS;
}

/* 8-4-4-4-12 hexadecimal digits. */
static bool is_uuid(const char *text, size_t length)
{
    if (length < 36)
        return false;
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !detect_hex(text[i]))
            return false;
    }
    return true;
}

static bool has_uuid(const char *text, size_t length)
{
    for (size_t i = 0; i + 36 <= length; i++)
        if (is_uuid(text + i, length - i))
            return true;
    return false;
}

/* sha256:..., as in names of images: a digest of something public. */
static bool is_digest(const struct detect_text *in, size_t at)
{
    static const char *const kinds[] = {"sha256:", "sha512:", "sha1:", "md5:"};
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        size_t length = strlen(kinds[i]);
        if (at >= length && !memcmp(in->text + at - length, kinds[i], length))
            return true;
    }
    return false;
}

static bool found(const struct detect_text *in, size_t start, size_t end, struct detect_span *span)
{
    for (size_t i = 0; i < 2 && detect_at(in, end) == '='; i++)
        end++; /* base64's padding */
    *span = (struct detect_span){start, end, DETECT_SECRET};
    return true;
}

static bool is_secret(const char *text, size_t length)
{
    return is_mixed(text, length) && !has_uuid(text, length);
}

/* A run is looked at whole, then its parts between slashes, then those of letters and digits alone,
 * each from where it starts and nowhere else. */
bool detect_random(const struct detect_text *in, size_t at, struct detect_span *span)
{
    char before = detect_before(in, at);
    size_t start = at, end;
    if (detect_alnum(before))
        return false;
    if (!in_run(before)) {
        while (start < in->length && in_run(in->text[start]) && !detect_alnum(in->text[start]))
            start++;
        for (end = start; end < in->length && in_run(in->text[end]);)
            end++;
        if (is_secret(in->text + start, end - start))
            return found(in, start, end, span);
    }
    if (!in_run(before) || before == '/') {
        for (end = at; end < in->length && in_run(in->text[end]) && in->text[end] != '/';)
            end++;
        if (is_secret(in->text + at, end - at))
            return found(in, at, end, span);
    }
    for (end = at; end < in->length && detect_alnum(in->text[end]);)
        end++;
    return is_plain(in->text + at, end - at) && !is_digest(in, at) && found(in, at, end, span);
}
