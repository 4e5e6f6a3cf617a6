// SPDX-License-Identifier: Apache-2.0
// Selectors: a scanner over the text, a matcher for each comma.

#include "label/selector.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "label/quote.h"

struct scanner {
    const char *text;
    size_t length, at;
    struct error *error;
};

void selector_release(struct selector *selector)
{
    for (size_t i = 0; i < selector->count; i++)
        regex_free(selector->matchers[i].regex);
    free(selector->matchers);
    arena_release(&selector->arena);
    *selector = (struct selector){0};
}

int selector_add(struct selector *selector, enum matcher_kind kind, const char *name,
                 const char *value, struct error *error)
{
    if (selector->count >= SELECTOR_MATCHERS_MAX)
        return error_set(error, -E2BIG, "The selector has more than %d matchers.",
                         SELECTOR_MATCHERS_MAX);
    struct regex *regex = NULL;
    if (kind == MATCH_REGEX || kind == MATCH_NOT_REGEX) {
        char what[128];
        snprintf(what, sizeof(what), "the matcher of %.100s", name);
        int result = regex_new(value, true, what, &regex, error);
        if (result < 0)
            return result;
    }
    array_reserve(selector->matchers, selector->capacity, selector->count + 1);
    selector->matchers[selector->count++] = (struct matcher){
        .kind = kind,
        .name = arena_strndup(&selector->arena, name, strlen(name)),
        .value = arena_strndup(&selector->arena, value, strlen(value)),
        .regex = regex,
    };
    return 0;
}

static int fail_at(const struct scanner *scanner, size_t at, const char *what)
{
    return error_set(scanner->error, -EINVAL, "The selector is not valid at character %zu: %s.",
                     at + 1, what);
}

/* "Expected, not found", with what was found. */
static int fail_expected(const struct scanner *scanner, const char *expected)
{
    char what[200];
    size_t left = scanner->length - scanner->at;
    if (!left) {
        snprintf(what, sizeof(what), "expected %s, but the text ends", expected);
        return fail_at(scanner, scanner->at, what);
    }
    size_t step = utf8_sequence(scanner->text + scanner->at, left);
    _cleanup_buffer_ struct buffer shown = {0};
    text_escape_terminal(&shown, scanner->text + scanner->at, step ? step : 1);
    snprintf(what, sizeof(what), "expected %s, got %s", expected, buffer_text(&shown));
    return fail_at(scanner, scanner->at, what);
}

/* The next character that counts, NUL at the end; comments and blanks are skipped. */
static char peek(struct scanner *scanner)
{
    for (; scanner->at < scanner->length; scanner->at++) {
        char c = scanner->text[scanner->at];
        if (c == '#') {
            const char *start = scanner->text + scanner->at;
            const char *end = memchr(start, '\n', scanner->length - scanner->at);
            scanner->at = end ? (size_t)(end - scanner->text) : scanner->length - 1;
        } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            return c;
        }
    }
    return '\0';
}

static int scan_string(struct scanner *scanner, struct buffer *out)
{
    size_t used;
    const char *wrong =
        label_unquote(scanner->text + scanner->at, scanner->length - scanner->at, out, &used);
    if (wrong) {
        char what[200];
        snprintf(what, sizeof(what), "found %s", wrong);
        return fail_at(scanner, scanner->at + used, what);
    }
    scanner->at += used;
    return 0;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* Prometheus wants names beyond letters, digits and _ in quotes; Grafana's apps write those of
 * OpenTelemetry without. Behind a name's first letter such characters can be nothing else. */
static size_t bare_name_length(const char *text, size_t room)
{
    static const char joining[] = {'.', '-', '/'};
    size_t length = label_name_plain_prefix(text, room);
    while (length && length < room) {
        if (!memchr(joining, text[length], sizeof(joining)))
            break;
        length++;
        while (length < room && (isalnum((unsigned char)text[length]) || text[length] == '_'))
            length++;
    }
    return length;
}

static int scan_name(struct scanner *scanner, struct buffer *name, bool *ret_quoted)
{
    char first = peek(scanner);
    size_t start = scanner->at;
    *ret_quoted = is_quote(first);
    if (*ret_quoted) {
        int result = scan_string(scanner, name);
        if (result == 0 && !name->length)
            return fail_at(scanner, start, "the name of a label is empty");
        return result;
    }
    size_t length = bare_name_length(scanner->text + start, scanner->length - start);
    if (!length)
        return fail_expected(scanner, "the name of a label");
    buffer_add(name, scanner->text + start, length);
    scanner->at += length;
    return 0;
}

static int scan_operator(struct scanner *scanner, enum matcher_kind *ret_kind)
{
    char first = peek(scanner);
    char second = scanner->at + 1 < scanner->length ? scanner->text[scanner->at + 1] : '\0';
    if (first == '=')
        *ret_kind = second == '~' ? MATCH_REGEX : MATCH_EQUAL;
    else if (first == '!' && (second == '=' || second == '~'))
        *ret_kind = second == '~' ? MATCH_NOT_REGEX : MATCH_NOT_EQUAL;
    else
        return fail_expected(scanner, "one of = != =~ !~");
    scanner->at += *ret_kind == MATCH_EQUAL ? 1 : 2;
    return 0;
}

static int scan_matcher(struct scanner *scanner, struct selector *selector)
{
    _cleanup_buffer_ struct buffer name = {0};
    _cleanup_buffer_ struct buffer value = {0};
    enum matcher_kind kind = MATCH_EQUAL;
    bool quoted;
    int result = scan_name(scanner, &name, &quoted);
    if (result < 0)
        return result;
    char next = peek(scanner);
    if (quoted && (next == ',' || next == '}'))
        return selector_add(selector, MATCH_EQUAL, "__name__", buffer_text(&name), scanner->error);
    result = scan_operator(scanner, &kind);
    if (result < 0)
        return result;
    if (!is_quote(peek(scanner)))
        return fail_expected(scanner, "a value in quotes");
    size_t start = scanner->at;
    result = scan_string(scanner, &value);
    if (result < 0)
        return result;
    result = selector_add(selector, kind, buffer_text(&name), buffer_text(&value), scanner->error);
    if (result == -EINVAL)
        error_prefix(scanner->error, "The selector is not valid at character %zu", start + 1);
    return result;
}

static int scan_selector(struct scanner *scanner, struct selector *selector)
{
    if (!peek(scanner) && scanner->at >= scanner->length)
        return 0;
    if (peek(scanner) != '{')
        return fail_expected(scanner, "{");
    scanner->at++;
    while (peek(scanner) != '}') {
        int result = scan_matcher(scanner, selector);
        if (result < 0)
            return result;
        if (peek(scanner) == ',')
            scanner->at++;
        else if (peek(scanner) != '}')
            return fail_expected(scanner, "a comma or }");
    }
    scanner->at++;
    peek(scanner);
    if (scanner->at < scanner->length)
        return fail_at(scanner, scanner->at, "unexpected text after the closing }");
    return 0;
}

int selector_parse(const char *text, size_t length, struct selector *ret, struct error *error)
{
    if (length > SELECTOR_BYTES_MAX)
        return error_set(error, -E2BIG, "The selector is longer than %d bytes.",
                         SELECTOR_BYTES_MAX);
    struct scanner scanner = {.text = text, .length = length, .error = error};
    struct selector selector = {0};
    int result = scan_selector(&scanner, &selector);
    if (result < 0) {
        selector_release(&selector);
        return result;
    }
    *ret = selector;
    return 0;
}

/* False as the result when the expression met its limit. */
static enum regex_result test(const struct matcher *matcher, const char *value, bool *ret_matches)
{
    bool negative = matcher->kind == MATCH_NOT_EQUAL || matcher->kind == MATCH_NOT_REGEX;
    enum regex_result found;
    if (matcher->regex)
        found = regex_find(matcher->regex, value, strlen(value), 0, NULL);
    else
        found = strcmp(matcher->value, value) == 0 ? REGEX_MATCH : REGEX_NO_MATCH;
    *ret_matches = found == (negative ? REGEX_NO_MATCH : REGEX_MATCH);
    return found;
}

bool matcher_matches(const struct matcher *matcher, const char *value)
{
    bool matches;
    test(matcher, value, &matches);
    return matches;
}

bool selector_matches(const struct selector *selector, const struct labels *labels)
{
    for (size_t i = 0; i < selector->count; i++) {
        const char *value = labels_get(labels, selector->matchers[i].name);
        if (!matcher_matches(&selector->matchers[i], value ? value : ""))
            return false;
    }
    return true;
}

void selector_write(struct buffer *out, const struct selector *selector)
{
    static const char *const operators[] = {[MATCH_EQUAL] = "=",
                                            [MATCH_NOT_EQUAL] = "!=",
                                            [MATCH_REGEX] = "=~",
                                            [MATCH_NOT_REGEX] = "!~"};
    buffer_add_char(out, '{');
    for (size_t i = 0; i < selector->count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (i)
            buffer_add_char(out, ',');
        label_write_name(out, matcher->name);
        buffer_add_text(out, operators[matcher->kind]);
        label_write_quoted(out, matcher->value);
    }
    buffer_add_char(out, '}');
}

/* ---- many values ---- */

int matching_test(struct matching *matching, const struct matcher *matcher, const char *value,
                  bool *ret_matches, struct error *error)
{
    int r = matcher->regex ? matching_check(matching, error) : 0;
    if (r < 0)
        return r;
    if (test(matcher, value, ret_matches) == REGEX_LIMIT)
        return error_set(error, -EDOM,
                         "The expression \"%.200s\" takes too many steps for a value of %.100s. "
                         "Use a simpler one.",
                         matcher->value, matcher->name);
    return 0;
}
