// SPDX-License-Identifier: Apache-2.0
// Tokens by their form: prefixes that their makers chose to be recognised by, JSON web tokens,
// credentials of HTTP, private keys.

#include <strings.h>

#include "base/memory.h"
#include "label/redact/detect_parts.h"
#include "label/redact/redact_rules.h"

static bool in_charset(char c, enum redact_charset charset)
{
    switch (charset) {
    case CHARS_UPPER_DIGIT:
        return detect_upper(c) || detect_digit(c);
    case CHARS_WORD:
        return detect_alnum(c) || c == '_' || c == '-';
    case CHARS_HEX:
        return detect_hex(c);
    default:
        return detect_alnum(c);
    }
}

static bool has_form(const struct detect_text *in, size_t at, const struct redact_form *form,
                     struct detect_span *span)
{
    if (in->text[at] != form->prefix[0] || !detect_says(in, at, form->prefix))
        return false;
    size_t start = at + strlen(form->prefix), end = start;
    bool digit = false;
    while (end < in->length && end - start < form->least &&
           in_charset(in->text[end], form->charset))
        digit |= detect_digit(in->text[end++]);
    if (end - start < form->least || (form->flags & FORM_DIGIT && !digit) ||
        (form->flags & FORM_EXACT && detect_alnum(detect_at(in, end))))
        return false;
    /* All of it, also where parts have dots between. */
    while (in_charset(detect_at(in, end), CHARS_WORD) ||
           (detect_at(in, end) == '.' && in_charset(detect_at(in, end + 1), CHARS_WORD)))
        end++;
    *span = (struct detect_span){at, end, DETECT_TOKEN};
    return true;
}

static bool prefixed(const struct detect_text *in, size_t at, struct detect_span *span)
{
    for (const struct redact_form *form = redact_forms; form->prefix; form++)
        if (has_form(in, at, form, span))
            return true;
    return false;
}

#define LINK_LEAST 16

/* Secret paths of webhook services, which accept messages from every holder of the URL. */
static bool linked(const struct detect_text *in, size_t at, struct detect_span *span)
{
    for (const char *const *link = redact_links; *link; link++) {
        if (in->text[at] != **link || !detect_says(in, at, *link))
            continue;
        size_t start = at + strlen(*link), end = start;
        while (end < in->length &&
               (in_charset(in->text[end], CHARS_WORD) || strchr("/:@", in->text[end])) &&
               in->text[end])
            end++;
        *span = (struct detect_span){start, end, DETECT_TOKEN};
        return end - start >= LINK_LEAST;
    }
    return false;
}

/* Three or five parts of base64url with dots between, the first one JSON: {" is eyJ. */
static bool web_token(const struct detect_text *in, size_t at, struct detect_span *span)
{
    if (!detect_says(in, at, "eyJ") || in_charset(detect_before(in, at), CHARS_WORD))
        return false;
    size_t end = at, parts = 0;
    for (;;) {
        size_t start = end;
        while (end < in->length && in_charset(in->text[end], CHARS_WORD))
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
    return prefixed(in, at, span) || web_token(in, at, span) || linked(in, at, span);
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

/* Credentials after "Bearer " or "Basic ". */
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
