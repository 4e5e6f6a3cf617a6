// SPDX-License-Identifier: Apache-2.0
// Card numbers and IP addresses.

#include <arpa/inet.h>
#include <strings.h>

#include "base/memory.h"
#include "label/redact/detect_parts.h"
#include "label/redact/redact_rules.h"

#define CARD_DIGITS_MAX 19
#define CARD_DIGITS_MIN 14

/* The check digit of ISO/IEC 7812: every second digit from the right doubled. */
static bool luhn(const char *digits, size_t count)
{
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned digit = (unsigned)(digits[count - 1 - i] - '0');
        if (i % 2)
            digit = digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
        sum += digit;
    }
    return sum % 10 == 0;
}

static unsigned leading(const char *digits, size_t count)
{
    unsigned value = 0;
    for (size_t i = 0; i < count; i++)
        value = value * 10 + (unsigned)(digits[i] - '0');
    return value;
}

/* Do the issuer's digits and the length fit together? */
static bool is_issued(const char *digits, size_t count)
{
    unsigned two = leading(digits, 2), four = leading(digits, 4);
    if (digits[0] == '4')
        return count == 16 || count == 19;
    if ((two >= 51 && two <= 55) || (four >= 2221 && four <= 2720))
        return count == 16;
    if (two == 34 || two == 37)
        return count == 15;
    if (two == 36 || two == 38 || (four >= 3000 && four <= 3059))
        return count == 14;
    if (four == 6011 || two == 65 || (four >= 6440 && four <= 6499) ||
        (four >= 3528 && four <= 3589) || two == 62)
        return count >= 16;
    return false;
}

/* 4-4-4-4 with an odd rest, or 4-6-5; all groups with the same separator. */
static bool is_grouped(const size_t *groups, size_t count)
{
    if (count == 1)
        return true;
    if (count == 3)
        return groups[0] == 4 && groups[1] == 6 && (groups[2] == 5 || groups[2] == 4);
    for (size_t i = 0; i + 1 < count; i++)
        if (groups[i] != 4)
            return false;
    return count >= 4 && groups[count - 1] <= 4;
}

bool detect_card(const struct detect_text *in, size_t at, struct detect_span *span)
{
    char before = detect_before(in, at), separator = '\0';
    char digits[CARD_DIGITS_MAX];
    size_t count = 0, groups[6] = {0}, group = 0, end = at;
    if (detect_alnum(before) || before == '_' || before == '.')
        return false;
    for (; end < in->length; end++) {
        char c = in->text[end], next = detect_at(in, end + 1);
        if (detect_digit(c)) {
            if (count == CARD_DIGITS_MAX)
                return false;
            digits[count++] = c;
            groups[group]++;
            continue;
        }
        bool separates = (c == ' ' || c == '-') && (!separator || c == separator) &&
                         detect_digit(next) && group + 1 < ARRAY_LENGTH(groups);
        if (!separates || (count >= CARD_DIGITS_MIN && luhn(digits, count)))
            break;
        separator = c;
        group++;
    }
    char after = detect_at(in, end);
    if (detect_alnum(after) || after == '_' ||
        (after == '.' && detect_digit(detect_at(in, end + 1))))
        return false;
    *span = (struct detect_span){at, end, DETECT_CARD};
    return count >= CARD_DIGITS_MIN && is_grouped(groups, group + 1) && is_issued(digits, count) &&
           luhn(digits, count);
}

static bool ends_with_word(const struct detect_text *in, size_t end, const char *const *words)
{
    for (; *words; words++) {
        bool whole = **words == '_';
        const char *word = *words + whole;
        size_t length = strlen(word);
        if (end >= length && !strncasecmp(in->text + end - length, word, length) &&
            !(whole && detect_alnum(detect_before(in, end - length))))
            return true;
    }
    return false;
}

/* "version 1.2.3.4" isn't an address; neither are "foo-1.2.3.4" and "foo>=1.2.3.4". */
static bool is_version(const struct detect_text *in, size_t at)
{
    char before = detect_before(in, at), second = at >= 2 ? in->text[at - 2] : '\0';
    size_t end = at;
    if (before == '-' && detect_alnum(second) && !detect_digit(second))
        return true;
    if ((before == '=' && (second == '>' || second == '~')) || before == '^' || before == '~')
        return true;
    while (end && at - end < 3 && in->text[end - 1] && strchr(" =:\"'/", in->text[end - 1]))
        end--;
    return ends_with_word(in, end, redact_version_words);
}

/* 1.2.3.4-5 and 1.2.3.4-rc1 are versions of a package; 10.0.0.1-10.0.0.9 are addresses. */
static bool has_revision(const struct detect_text *in, size_t end)
{
    char c = detect_at(in, end);
    if (c == '+' || c == '~')
        return true;
    if (c != '-')
        return false;
    for (const char *const *suffix = redact_version_suffixes; *suffix; suffix++)
        if (in->length - end - 1 >= strlen(*suffix) &&
            !strncasecmp(in->text + end + 1, *suffix, strlen(*suffix)))
            return true;
    if (!detect_digit(detect_at(in, end + 1)))
        return false;
    for (size_t i = 1; i < 5; i++)
        if (!detect_digit(detect_at(in, end + i)))
            return detect_at(in, end + i) != '.';
    return true;
}

/* One number of an address: 0 to 255 without leading zeros. */
static bool octet(const struct detect_text *in, size_t *at, unsigned *ret_value)
{
    size_t start = *at;
    unsigned value = 0;
    while (*at - start < 4 && detect_digit(detect_at(in, *at)))
        value = value * 10 + (unsigned)(in->text[(*at)++] - '0');
    *ret_value = value;
    return *at > start && value <= 255 && (in->text[start] != '0' || *at == start + 1);
}

static bool is_v4(const struct detect_text *in, size_t at, struct detect_span *span)
{
    char before = detect_before(in, at);
    unsigned parts[4];
    size_t end = at;
    if (detect_alnum(before) || before == '_' || before == '.')
        return false;
    for (size_t i = 0; i < 4; i++) {
        if (i && detect_at(in, end++) != '.')
            return false;
        if (!octet(in, &end, &parts[i]))
            return false;
    }
    char after = detect_at(in, end);
    if (detect_alnum(after) || after == '_' ||
        (after == '.' && detect_alnum(detect_at(in, end + 1))))
        return false;
    /* This host, any host, masks: not addresses of a person. */
    if (parts[0] == 0 || parts[0] == 127 || parts[0] == 255 || is_version(in, at) ||
        has_revision(in, end))
        return false;
    *span = (struct detect_span){at, end, DETECT_IP};
    return true;
}

/* Full addresses, and shortened ones of the networks that are in use: what else has double colons
 * is C++ or Rust. */
static bool is_v6(const struct detect_text *in, size_t at, struct detect_span *span)
{
    char before = detect_before(in, at), text[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    size_t end = at, group = 0, longest = 0, first = 0, colons = 0;
    if (detect_alnum(before) || before == '_' || before == ':' || before == '.')
        return false;
    for (; end < in->length && end - at < sizeof(text) - 1; end++) {
        char c = in->text[end];
        if (!detect_hex(c) && c != ':')
            break;
        colons += c == ':';
        group = c == ':' ? 0 : group + 1;
        longest = MAX(longest, group);
        first += !colons;
    }
    if (colons < 2 || detect_alnum(detect_at(in, end)) || detect_at(in, end) == '_')
        return false;
    /* "2001:db8::1: refused": the colon is the sentence's. */
    if (in->text[end - 1] == ':' && end - at > 2 && in->text[end - 2] != ':')
        end--;
    memcpy(text, in->text + at, end - at);
    text[end - at] = '\0';
    if (inet_pton(AF_INET6, text, bytes) != 1)
        return false;
    bool shortened = strstr(text, "::");
    bool used = (bytes[0] & 0xe0) == 0x20 || bytes[0] >= 0xfc;
    *span = (struct detect_span){at, end, DETECT_IP};
    return shortened ? first == 4 && used : longest >= 3;
}

bool detect_ip(const struct detect_text *in, size_t at, struct detect_span *span)
{
    return (detect_digit(in->text[at]) && is_v4(in, at, span)) || is_v6(in, at, span);
}
