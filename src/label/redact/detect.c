// SPDX-License-Identifier: Apache-2.0
// The walk over a text, and the detectors that go by punctuation: e-mail addresses, passwords in
// URLs, values of keys that say "secret".

#include "label/redact/detect.h"

#include <strings.h>

#include "base/memory.h"
#include "label/redact/detect_parts.h"
#include "label/redact/redact_rules.h"

#define LOCAL_PART_MAX 64 /* RFC 5321 */
#define DOMAIN_MAX 253
#define USER_INFO_MAX 512
#define KEY_MAX 64
#define PARAMETER_LEAST 16
#define PARAMETER_MOST 64

const char *detector_name(enum detector detector)
{
    return redact_detectors[detector].name;
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
    for (const char *const *unit = redact_units; *unit; unit++) {
        size_t kind = strlen(*unit);
        if (length > kind && !memcmp(domain + length - kind, *unit, kind))
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

/* The sign of an address at `at`: @, or as addresses of pages have it, %40, once or twice escaped.
 * Its length, or 0. */
static size_t sign_length(const struct detect_text *in, size_t at)
{
    if (in->text[at] == '@')
        return 1;
    return detect_says(in, at, "%40") ? 3 : detect_says(in, at, "%2540") ? 5 : 0;
}

bool detect_email(const struct detect_text *in, size_t at, struct detect_span *span)
{
    size_t sign = sign_length(in, at);
    size_t start = at, limit = at > LOCAL_PART_MAX ? at - LOCAL_PART_MAX : 0;
    limit = MAX(limit, in->from);
    /* The longest run backward, without what stands before an address rather than in it. */
    while (start > limit && is_local(in->text[start - 1]) &&
           !strchr(sign == 1 ? "/=" : "/=?&", in->text[start - 1]))
        start--;
    while (start < at && !starts_local(in->text[start]))
        start++;
    if (start == at || !sign)
        return false;
    size_t domain = domain_length(in, at + sign);
    *span = (struct detect_span){start, at + sign + domain, DETECT_EMAIL};
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

/* A name without separators and case, and where its words begin. */
struct plain_name {
    char text[KEY_MAX + 1];
    bool begins[KEY_MAX + 1];
    size_t length;
};

static struct plain_name make_plain(const char *name, size_t length)
{
    struct plain_name plain = {0};
    char before = '\0';
    for (size_t i = length > KEY_MAX ? length - KEY_MAX : 0; i < length; i++) {
        if (detect_alnum(name[i])) {
            plain.begins[plain.length] =
                !detect_alnum(before) || (detect_lower(before) && detect_upper(name[i]));
            plain.text[plain.length++] = detect_upper(name[i]) ? (char)(name[i] | 0x20) : name[i];
        }
        before = name[i];
    }
    return plain;
}

static bool ends_with(const struct plain_name *name, const char *ending, bool whole_word)
{
    size_t length = strlen(ending);
    return name->length >= length && !memcmp(name->text + name->length - length, ending, length) &&
           (!whole_word || name->begins[name->length - length]);
}

bool detect_secret_name(const char *name, size_t length)
{
    struct plain_name plain = make_plain(name, length);
    for (const char *const *ending = redact_secret_names; *ending; ending++)
        if (ends_with(&plain, *ending + (**ending == '_'), **ending == '_'))
            return true;
    return false;
}

/* Is it the name of a parameter, or of a cookie, that is a secret there? */
static bool is_secret_parameter(const struct detect_text *in, size_t start, size_t end)
{
    char before = detect_before(in, start);
    bool cookie = start >= 7 && !strncasecmp(in->text + start - 7, "ookie: ", 7);
    struct plain_name plain = make_plain(in->text + start, end - start);
    if (before != '?' && before != '&' && before != ';' && !cookie &&
        !(before == ' ' && start >= 2 && in->text[start - 2] == ';'))
        return false;
    for (const char *const *name = redact_parameters; *name; name++)
        if (!strcmp(plain.text, *name))
            return true;
    return false;
}

static bool is_key(char c)
{
    return detect_alnum(c) || c == '_' || c == '-' || c == '.';
}

/* Is there a key before `at` that says "secret"? *ret_start is where it starts. *ret_long: only if
 * its value is as long as secrets are. */
static bool secret_key_before(const struct detect_text *in, size_t at, size_t *ret_start,
                              bool *ret_long)
{
    size_t end = at, start;
    if (end && (in->text[end - 1] == '"' || in->text[end - 1] == '\''))
        end--;
    for (start = end; start > in->from && end - start < KEY_MAX && is_key(in->text[start - 1]);)
        start--;
    *ret_start = start;
    *ret_long = false;
    if (end == start || detect_secret_name(in->text + start, end - start))
        return end > start;
    *ret_long = true;
    return in->text[at] == '=' && is_secret_parameter(in, start, end);
}

static bool ends_value(const struct detect_text *in, size_t at)
{
    return at >= in->length || detect_blank(in->text[at]) || strchr("&;,\"'`)]}", in->text[at]);
}

/* Letters with digits among them, or whose case changes as often as in no name; and not few: no
 * word, number or state. The first characters tell. */
static bool is_long_value(const struct detect_text *in, size_t start)
{
    size_t digits = 0, letters = 0, changes = 0, at = start;
    for (; at - start < PARAMETER_MOST && !ends_value(in, at); at++) {
        char c = in->text[at], before = at > start ? in->text[at - 1] : '\0';
        digits += detect_digit(c);
        letters += detect_upper(c) || detect_lower(c);
        changes +=
            (detect_upper(c) && detect_lower(before)) || (detect_lower(c) && detect_upper(before));
    }
    return at - start >= PARAMETER_LEAST && letters && (digits || 3 * changes >= at - start);
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
    bool needs_length;
    if (c == ':' && (next == ':' || next == '/' || detect_before(in, at) == ':'))
        return false; /* Token::new, scheme://host */
    if ((detect_blank(c) && !options) || !secret_key_before(in, at, &key, &needs_length))
        return false;
    if (detect_blank(c) && in->text[key] != '-')
        return false;
    while (start < in->length && start - at < 4 &&
           (in->text[start] == ' ' || in->text[start] == '=' || in->text[start] == '"' ||
            in->text[start] == '\''))
        start++;
    char first = detect_at(in, start);
    /* A path leads to a secret but isn't one; the rest are not values. */
    if (detect_blank(first) || strchr("/$<[({-", first) || is_scheme(in, start))
        return false;
    if (needs_length && !is_long_value(in, start))
        return false;
    for (end = start; !ends_value(in, end);)
        end++;
    *span = (struct detect_span){start, end, DETECT_ASSIGNMENT};
    return end > start;
}

/* Detectors that can start or match at this position. */
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
    if ((c == '@' || c == '%') && detectors & 1u << DETECT_EMAIL && detect_email(in, at, span))
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
