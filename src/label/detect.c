// SPDX-License-Identifier: Apache-2.0
// The walk over a text, and the detectors that go by punctuation: e-mail addresses, passwords in
// URLs, values of keys that say "secret".

#include "label/detect.h"

#include <strings.h>

#include "base/memory.h"
#include "label/detect_parts.h"

#define LOCAL_PART_MAX 64 /* RFC 5321 */
#define DOMAIN_MAX 253
#define USER_INFO_MAX 512
#define KEY_MAX 64

const char *detector_name(enum detector detector)
{
    static const char *const names[DETECTORS] = {[DETECT_EMAIL] = "email",
                                                 [DETECT_TOKEN] = "token",
                                                 [DETECT_CREDENTIALS] = "credentials",
                                                 [DETECT_PRIVATE_KEY] = "private-key",
                                                 [DETECT_ASSIGNMENT] = "assignment",
                                                 [DETECT_SECRET] = "secret",
                                                 [DETECT_CARD] = "card",
                                                 [DETECT_IP] = "ip"};
    return names[detector];
}

static bool is_local(char c)
{
    return detect_alnum(c) || (unsigned char)c >= 0x80 || (c && strchr(".!#$%&'*+-/=?^_`{|}~", c));
}

/* Characters that a local part may have but seldom starts with: path and key before an address. */
static bool starts_local(char c)
{
    return detect_alnum(c) || (unsigned char)c >= 0x80 || c == '_' || c == '+' || c == '-';
}

/* Instances of systemd units look like addresses: getty@tty1.service. */
static bool is_unit(const char *domain, size_t length)
{
    static const char *const kinds[] = {".service", ".socket", ".timer",  ".mount",
                                        ".slice",   ".scope",  ".target", ".automount",
                                        ".device",  ".path",   ".swap"};
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        size_t kind = strlen(kinds[i]);
        if (length > kind && !memcmp(domain + length - kind, kinds[i], kind))
            return true;
    }
    return false;
}

/* Length of the domain name at `at` with a top-level name of letters, or 0. */
static size_t domain_length(const struct detect_text *in, size_t at)
{
    size_t end = at, dot = 0;
    if (!detect_alnum(detect_at(in, at)) && (unsigned char)detect_at(in, at) < 0x80)
        return 0;
    /* module@v1.2.3 and package@1.2.3-rc.one are versions. */
    size_t first = at + (detect_at(in, at) == 'v');
    while (detect_digit(detect_at(in, first)))
        first++;
    if (first > at + (detect_at(in, at) == 'v') && detect_at(in, first) == '.')
        return 0;
    while (end < in->length && end - at < DOMAIN_MAX) {
        char c = in->text[end];
        if (c == '.')
            dot = end;
        else if (!detect_alnum(c) && c != '-' && (unsigned char)c < 0x80)
            break;
        end++;
    }
    while (end > at && (in->text[end - 1] == '.' || in->text[end - 1] == '-')) {
        end--; /* the end of a sentence */
        dot = 0;
    }
    for (size_t i = end; !dot && i > at; i--)
        if (in->text[i - 1] == '.')
            dot = i - 1;
    if (!dot || dot == at || end - dot < 3 || is_unit(in->text + at, end - at))
        return 0;
    for (size_t i = dot + 1; i < end; i++)
        if (detect_digit(in->text[i]))
            return 0;
    return end - at;
}

bool detect_email(const struct detect_text *in, size_t at, struct detect_span *span)
{
    size_t start = at, limit = at > LOCAL_PART_MAX ? at - LOCAL_PART_MAX : 0;
    limit = MAX(limit, in->from);
    /* The longest run backward, without what stands before an address rather than in it. */
    while (start > limit && is_local(in->text[start - 1]) && in->text[start - 1] != '/' &&
           in->text[start - 1] != '=')
        start--;
    while (start < at && !starts_local(in->text[start]))
        start++;
    if (start == at)
        return false;
    size_t domain = domain_length(in, at + 1);
    *span = (struct detect_span){start, at + 1 + domain, DETECT_EMAIL};
    return domain;
}

/* At the colon of "://": user and password up to the @. */
bool detect_credentials(const struct detect_text *in, size_t at, struct detect_span *span)
{
    if (!detect_says(in, at, "://") || !detect_alnum(detect_before(in, at)))
        return false;
    size_t start = at + 3, end = start, sign = 0;
    bool colon = false;
    /* Passwords with an unescaped @ exist: the last one before the path counts. */
    for (; end < in->length && end - start < USER_INFO_MAX; end++) {
        char c = in->text[end];
        if (detect_blank(c) || c == '/' || c == '?' || c == '#' || c == '"' || c == '\'')
            break;
        colon |= c == ':' && !sign;
        if (c == '@')
            sign = end;
    }
    if (!colon || !sign)
        return false;
    *span = (struct detect_span){start, sign, DETECT_CREDENTIALS};
    return true;
}

bool detect_secret_name(const char *name, size_t length)
{
    static const char *const endings[] = {"password",  "passwd",     "pwd",        "passphrase",
                                          "secret",    "token",      "apikey",     "accesskey",
                                          "secretkey", "privatekey", "credential", "credentials"};
    /* Without separators and case: api_key, API-Key and apiKey are one. */
    char plain[KEY_MAX + 1];
    size_t count = 0;
    size_t first = length > KEY_MAX ? length - KEY_MAX : 0;
    for (size_t i = first; i < length; i++)
        if (detect_alnum(name[i]))
            plain[count++] = detect_upper(name[i]) ? (char)(name[i] | 0x20) : name[i];
    for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
        size_t ending = strlen(endings[i]);
        if (count >= ending && !memcmp(plain + count - ending, endings[i], ending))
            return true;
    }
    return false;
}

static bool is_key(char c)
{
    return detect_alnum(c) || c == '_' || c == '-' || c == '.';
}

/* Is there a key before `at` that says "secret"? *ret_start is where it starts. */
static bool secret_key_before(const struct detect_text *in, size_t at, size_t *ret_start)
{
    size_t end = at, start;
    if (end && (in->text[end - 1] == '"' || in->text[end - 1] == '\''))
        end--;
    for (start = end; start > in->from && end - start < KEY_MAX && is_key(in->text[start - 1]);)
        start--;
    *ret_start = start;
    return end > start && detect_secret_name(in->text + start, end - start);
}

static bool is_scheme(const struct detect_text *in, size_t at)
{
    return in->length - at >= 6 &&
           (!strncasecmp(in->text + at, "bearer", 6) || !strncasecmp(in->text + at, "basic ", 6));
}

bool detect_assignment(const struct detect_text *in, size_t at, bool options,
                       struct detect_span *span)
{
    char c = in->text[at], next = detect_at(in, at + 1);
    size_t key, start = at + 1, end;
    if (c == ':' && (next == ':' || next == '/' || detect_before(in, at) == ':'))
        return false; /* Token::new, scheme://host */
    if ((detect_blank(c) && !options) || !secret_key_before(in, at, &key))
        return false;
    if (detect_blank(c) && in->text[key] != '-')
        return false;
    while (start < in->length && start - at < 4 &&
           (in->text[start] == ' ' || in->text[start] == '=' || in->text[start] == '"' ||
            in->text[start] == '\''))
        start++;
    char first = detect_at(in, start);
    /* A path is where a secret is, not the secret; the rest are no values. */
    if (detect_blank(first) || strchr("/$<[({-", first) || is_scheme(in, start))
        return false;
    for (end = start; end < in->length; end++)
        if (detect_blank(in->text[end]) || strchr("&;,\"'`)]}", in->text[end]))
            break;
    *span = (struct detect_span){start, end, DETECT_ASSIGNMENT};
    return end > start;
}

/* What can start, or be recognised, at this position. */
static bool detect_here(const struct detect_text *in, size_t at, unsigned detectors,
                        struct detect_span *span)
{
    char c = in->text[at];
    bool word = detect_alnum(c), words = word || c == '_' || c == '-' || c == '/' || c == '+';
    if (c == '-' && detectors & 1u << DETECT_PRIVATE_KEY && detect_private_key(in, at, span))
        return true;
    if (word && detectors & 1u << DETECT_TOKEN &&
        (detect_token(in, at, span) || detect_scheme(in, at, span)))
        return true;
    if (words && detectors & 1u << DETECT_SECRET && detect_random(in, at, span))
        return true;
    if (detect_digit(c) && detectors & 1u << DETECT_CARD && detect_card(in, at, span))
        return true;
    if ((detect_hex(c) || c == ':') && detectors & 1u << DETECT_IP && detect_ip(in, at, span))
        return true;
    if (c == '@' && detectors & 1u << DETECT_EMAIL && detect_email(in, at, span))
        return true;
    if (c == ':' && detectors & 1u << DETECT_CREDENTIALS && detect_credentials(in, at, span))
        return true;
    return (c == '=' || c == ':' || detect_blank(c)) && detectors & 1u << DETECT_ASSIGNMENT &&
           detect_assignment(in, at, detectors & DETECT_OPTIONS, span);
}

bool detect_next(const char *text, size_t length, size_t from, unsigned detectors,
                 struct detect_span *ret_span)
{
    struct detect_text in = {.text = text, .length = length, .from = from};
    for (size_t at = from; at < length; at++)
        if (detect_here(&in, at, detectors, ret_span))
            return true;
    return false;
}
