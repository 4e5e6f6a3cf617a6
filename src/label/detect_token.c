// SPDX-License-Identifier: Apache-2.0
// Tokens by their form: prefixes that their makers chose to be recognised by, JSON web tokens,
// credentials of HTTP, private keys.

#include <strings.h>

#include "base/memory.h"
#include "label/detect_parts.h"

enum charset { ALNUM, UPPER_DIGIT, WORD };

static bool in_charset(char c, enum charset charset)
{
    switch (charset) {
    case UPPER_DIGIT:
        return detect_upper(c) || detect_digit(c);
    case WORD:
        return detect_alnum(c) || c == '_' || c == '-';
    default:
        return detect_alnum(c);
    }
}

/* Behind the prefix come at least so many characters. */
static const struct {
    const char *prefix;
    size_t least;
    enum charset charset;
} forms[] = {
    {"AKIA", 16, UPPER_DIGIT}, {"ASIA", 16, UPPER_DIGIT}, {"ABIA", 16, UPPER_DIGIT},
    {"ACCA", 16, UPPER_DIGIT}, {"ghp_", 36, ALNUM},       {"gho_", 36, ALNUM},
    {"ghu_", 36, ALNUM},       {"ghs_", 36, ALNUM},       {"ghr_", 36, ALNUM},
    {"github_pat_", 22, WORD}, {"glpat-", 20, WORD},      {"xoxa-", 10, WORD},
    {"xoxb-", 10, WORD},       {"xoxp-", 10, WORD},       {"xoxr-", 10, WORD},
    {"xoxs-", 10, WORD},       {"sk_live_", 16, ALNUM},   {"sk_test_", 16, ALNUM},
    {"rk_live_", 16, ALNUM},   {"AIza", 35, WORD},        {"npm_", 36, ALNUM},
    {"pypi-", 50, WORD},       {"sk-ant-", 24, WORD},     {"sk-proj-", 24, WORD},
    {"hvs.", 24, WORD},        {"dop_v1_", 32, ALNUM},    {"SG.", 22, WORD},
};

static bool prefixed(const struct detect_text *in, size_t at, struct detect_span *span)
{
    for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
        if (in->text[at] != forms[i].prefix[0] || !detect_says(in, at, forms[i].prefix))
            continue;
        size_t start = at + strlen(forms[i].prefix), end = start;
        while (end < in->length && end - start < forms[i].least &&
               in_charset(in->text[end], forms[i].charset))
            end++;
        if (end - start < forms[i].least)
            continue;
        /* Exactly so many for AWS, or it is a word in capitals. */
        if (forms[i].charset == UPPER_DIGIT && detect_alnum(detect_at(in, end)))
            continue;
        /* All of it, also where parts have dots between. */
        while (in_charset(detect_at(in, end), WORD) ||
               (detect_at(in, end) == '.' && in_charset(detect_at(in, end + 1), WORD)))
            end++;
        *span = (struct detect_span){at, end, DETECT_TOKEN};
        return true;
    }
    return false;
}

/* Three or five parts of base64url with dots between, the first one JSON: {" is eyJ. */
static bool web_token(const struct detect_text *in, size_t at, struct detect_span *span)
{
    if (!detect_says(in, at, "eyJ") || in_charset(detect_before(in, at), WORD))
        return false;
    size_t end = at, parts = 0;
    for (;;) {
        size_t start = end;
        while (end < in->length && in_charset(in->text[end], WORD))
            end++;
        if (parts < 2 && end - start < 8)
            return false;
        parts++;
        if (parts == 5 || detect_at(in, end) != '.')
            break;
        end++;
    }
    *span = (struct detect_span){at, end, DETECT_TOKEN};
    return parts >= 2;
}

bool detect_token(const struct detect_text *in, size_t at, struct detect_span *span)
{
    if (detect_alnum(detect_before(in, at)) && at > in->from)
        return false;
    return prefixed(in, at, span) || web_token(in, at, span);
}

static int base64_digit(char c)
{
    return detect_upper(c)   ? c - 'A'
           : detect_lower(c) ? c - 'a' + 26
           : detect_digit(c) ? c - '0' + 52
           : c == '+'        ? 62
           : c == '/'        ? 63
                             : -1;
}

/* Does it stand for "user:password"? */
static bool has_colon(const char *text, size_t length)
{
    unsigned bits = 0, have = 0;
    for (size_t i = 0; i < length; i++) {
        bits = (bits << 6 | (unsigned)base64_digit(text[i])) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            if ((bits >> have & 0xff) == ':')
                return true;
        }
    }
    return false;
}

static bool is_bearer(char c)
{
    return detect_alnum(c) || (c && strchr("-._~+/", c));
}

/* What follows "Bearer " or "Basic ". */
bool detect_scheme(const struct detect_text *in, size_t at, struct detect_span *span)
{
    bool bearer = in->length - at > 7 && !strncasecmp(in->text + at, "bearer ", 7);
    bool basic = in->length - at > 6 && !strncasecmp(in->text + at, "basic ", 6);
    if ((!bearer && !basic) || detect_alnum(detect_before(in, at)))
        return false;
    size_t start = at + (bearer ? 7 : 6), end = start;
    bool digit = false;
    while (end < in->length &&
           (bearer ? is_bearer(in->text[end]) : base64_digit(in->text[end]) >= 0)) {
        digit |= detect_digit(in->text[end]);
        end++;
    }
    /* "bearer certificate" and "basic authentication" are words. */
    bool good = bearer ? end - start >= 16 || (end - start >= 8 && digit)
                       : end - start >= 4 && has_colon(in->text + start, end - start);
    while (good && end < in->length && in->text[end] == '=')
        end++;
    *span = (struct detect_span){start, end, DETECT_TOKEN};
    return good;
}

bool detect_private_key(const struct detect_text *in, size_t at, struct detect_span *span)
{
    static const char begin[] = "-----BEGIN ", end[] = "-----END ", key[] = "PRIVATE KEY";
    if (!detect_says(in, at, begin))
        return false;
    const char *start = in->text + at;
    size_t header = MIN(in->length - at, (size_t)80), left;
    if (!memmem(start, header, key, sizeof(key) - 1))
        return false;
    /* Up to the end of the last line, or of the text when it was cut. */
    const char *last = memmem(start, in->length - at, end, sizeof(end) - 1);
    const char *stop = in->text + in->length;
    if (last) {
        last += sizeof(end) - 1;
        left = (size_t)(stop - last);
        const char *dashes = memmem(last, MIN(left, (size_t)80), "-----", 5);
        stop = dashes ? dashes + 5 : stop;
    }
    *span = (struct detect_span){at, (size_t)(stop - in->text), DETECT_PRIVATE_KEY};
    return true;
}
