// SPDX-License-Identifier: Apache-2.0
// Regular expressions with groups: see regex.h. Match data is made for each match, which costs one
// allocation and lets threads share expressions.

#include "io/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define MATCH_LIMIT 100000   /* steps from one position of the text */
#define DEPTH_LIMIT 20000    /* frames of some 150 bytes, on the heap; more with many groups */
#define HEAP_LIMIT_KIB 16384 /* of all frames */
/* A step can go through all of the text, and a search starts at every position: on long texts
 * there are fewer steps. */
#define SEARCH_LIMIT 50000000
#define START_LIMIT_MIN 1000
#define EXPRESSION_BYTES_MAX 65536
/* How often the CPU time is looked at: that is a system call, the clock on the wall is not. */
#define LOOK_NS 1000000

struct regex {
    pcre2_code *code;
    pcre2_match_context *context; /* limits; only read */
    uint32_t group_count;
    char *words; /* NULL, or all that it matches: texts one after the other, an empty one last */
};

static int complain(const char *expression, const char *what, int code, PCRE2_SIZE offset,
                    struct error *error)
{
    PCRE2_UCHAR message[200];
    pcre2_get_error_message(code, message, sizeof(message));
    return error_set(error, -EINVAL,
                     "The expression \"%.200s\" of %s is not valid at character %zu: %s.",
                     expression, what, offset + 1, (const char *)message);
}

/* Dashboards send one|two|three for several chosen values: a list of words. NULL: another
 * expression. */
static char *words_of(const char *expression)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:/ ,@%";
    static const char escaped[] = ".-+*?()[]{}|^$\\/";
    char *words = memory_alloc(strlen(expression) + 2), *out = words;
    bool empty = true;
    for (const char *at = expression; *at; at++) {
        if (*at == '|' && !empty) {
            *out++ = '\0';
            empty = true;
            continue;
        }
        if (*at == '\\' && at[1] && strchr(escaped, at[1]))
            at++;
        else if (!strchr(plain, *at))
            break;
        *out++ = *at;
        empty = false;
        if (at[1])
            continue;
        out[0] = out[1] = '\0';
        return words;
    }
    free(words);
    return NULL;
}

static bool is_word_of(const char *words, const char *text, size_t length)
{
    for (size_t size; (size = strlen(words)); words += size + 1)
        if (size == length && !memcmp(words, text, length))
            return true;
    return false;
}

int regex_new(const char *expression, bool anchored, const char *what, struct regex **ret_regex,
              struct error *error)
{
    if (strlen(expression) > EXPRESSION_BYTES_MAX)
        return error_set(error, -E2BIG, "The expression of %s is longer than %d bytes.", what,
                         EXPRESSION_BYTES_MAX);
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY |
                       PCRE2_NEVER_BACKSLASH_C;
    if (anchored)
        options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
    int code_number;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED, options,
                                     &code_number, &offset, NULL);
    if (!code)
        return complain(expression, what, code_number, offset, error);
    struct regex *regex = memory_zalloc(1, sizeof(*regex));
    regex->code = code;
    regex->words = anchored ? words_of(expression) : NULL;
    /* Without the JIT it is slower, and just as right. */
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &regex->group_count);
    regex->context = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(regex->context, MATCH_LIMIT);
    pcre2_set_depth_limit(regex->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(regex->context, HEAP_LIMIT_KIB);
    *ret_regex = regex;
    return 0;
}

void regex_free(struct regex *regex)
{
    if (!regex)
        return;
    pcre2_match_context_free(regex->context);
    pcre2_code_free(regex->code);
    free(regex->words);
    free(regex);
}

static void take_groups(const struct regex *regex, const pcre2_match_data *data,
                        struct regex_match *match)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer((pcre2_match_data *)data);
    size_t have = pcre2_get_ovector_count((pcre2_match_data *)data);
    match->count = MIN(regex->group_count + 1, (size_t)REGEX_GROUPS_MAX);
    for (size_t i = 0; i < match->count; i++) {
        /* \K can put the start behind the end. */
        bool there = i < have && ends[2 * i] != PCRE2_UNSET && ends[2 * i] <= ends[2 * i + 1];
        match->groups[i].start = there ? ends[2 * i] : SIZE_MAX;
        match->groups[i].end = there ? ends[2 * i + 1] : SIZE_MAX;
    }
}

/* For long texts; NULL: the expression's own will do. */
static pcre2_match_context *long_context(const struct regex *regex, size_t length)
{
    if (length <= SEARCH_LIMIT / MATCH_LIMIT)
        return NULL;
    pcre2_match_context *context = pcre2_match_context_copy(regex->context);
    if (context)
        pcre2_set_match_limit(context,
                              (uint32_t)MAX(SEARCH_LIMIT / length, (size_t)START_LIMIT_MIN));
    return context;
}

static int match(const struct regex *regex, const char *text, size_t length, size_t from,
                 pcre2_match_data *data, const pcre2_match_context *context, uint32_t options)
{
    return pcre2_match(regex->code, (PCRE2_SPTR)text, length, from, options, data,
                       (pcre2_match_context *)context);
}

enum regex_result regex_find(const struct regex *regex, const char *text, size_t length,
                             size_t from, struct regex_match *ret_match)
{
    if (regex->words && !ret_match && !from)
        return is_word_of(regex->words, text, length) ? REGEX_MATCH : REGEX_NO_MATCH;
    uint32_t wanted = ret_match ? MIN(regex->group_count + 1, (uint32_t)REGEX_GROUPS_MAX) : 1;
    pcre2_match_data *data = pcre2_match_data_create(wanted, NULL);
    pcre2_match_context *own = long_context(regex, length - from);
    if (!data)
        return REGEX_LIMIT;
    const pcre2_match_context *context = own ? own : regex->context;
    int result = match(regex, text, length, from, data, context, 0);
    /* The JIT's stack is small; the interpreter's is as large as the limits let it be. */
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
        result = match(regex, text, length, from, data, context, PCRE2_NO_JIT);
    pcre2_match_context_free(own);
    if (result >= 0 && ret_match)
        take_groups(regex, data, ret_match);
    pcre2_match_data_free(data);
    return result >= 0 ? REGEX_MATCH
                       : (result == PCRE2_ERROR_NOMATCH ? REGEX_NO_MATCH : REGEX_LIMIT);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The name of the reference at `text`, behind its dollar sign; what it takes is *ret_length. */
static bool reference(const char *text, const char **ret_name, size_t *ret_name_length,
                      size_t *ret_length)
{
    size_t brace = text[0] == '{', length = 0;
    while (is_word(text[brace + length]))
        length++;
    if (!length || (brace && text[brace + length] != '}'))
        return false;
    *ret_name = text + brace;
    *ret_name_length = length;
    *ret_length = length + 2 * brace;
    return true;
}

bool regex_template_refers(const char *template)
{
    const char *name;
    size_t name_length, length;
    for (const char *at = strchr(template, '$'); at; at = strchr(at, '$')) {
        at++;
        if (*at == '$')
            at++;
        else if (reference(at, &name, &name_length, &length))
            return true;
    }
    return false;
}

/* The group's number; SIZE_MAX when there is no such group. */
static size_t group_number(const struct regex *regex, const char *name, size_t length)
{
    char text[64];
    if (length >= sizeof(text))
        return SIZE_MAX;
    memcpy(text, name, length);
    text[length] = '\0';
    size_t number = 0, digits = 0;
    while (text[digits] >= '0' && text[digits] <= '9' && number < 1000)
        number = number * 10 + (size_t)(text[digits++] - '0');
    if (digits == length)
        return number;
    int found = pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)text);
    return found < 0 ? SIZE_MAX : (size_t)found;
}

void regex_expand(const struct regex *regex, const char *template, const char *text,
                  const struct regex_match *match, struct buffer *out)
{
    for (const char *at = template; *at;) {
        const char *dollar = strchrnul(at, '$'), *name;
        buffer_add(out, at, (size_t)(dollar - at));
        if (!*dollar)
            return;
        at = dollar + 1;
        size_t name_length, length;
        if (*at == '$') {
            buffer_add_char(out, '$');
            at++;
        } else if (reference(at, &name, &name_length, &length)) {
            size_t group = group_number(regex, name, name_length);
            if (group < match->count && match->groups[group].start != SIZE_MAX)
                buffer_add(out, text + match->groups[group].start,
                           match->groups[group].end - match->groups[group].start);
            at += length;
        } else {
            buffer_add_char(out, '$');
        }
    }
}

/* ---- many texts ---- */

void matching_begin(struct matching *matching, struct match_budget *budget)
{
    *matching = (struct matching){.budget = budget};
    if (budget) {
        matching->looked_ns = monotonic_ns();
        matching->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
}

/* The cost so far of all threads of the budget, including this one. */
static int64_t charge(struct matching *matching)
{
    int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), used_ns = cpu_ns - matching->cpu_ns;
    matching->cpu_ns = cpu_ns;
    matching->looked_ns = monotonic_ns();
    return atomic_fetch_add(&matching->budget->used_ns, used_ns) + used_ns;
}

void matching_end(struct matching *matching)
{
    if (matching->budget)
        charge(matching);
}

int matching_check(struct matching *matching, struct error *error)
{
    struct match_budget *budget = matching->budget;
    if (!budget)
        return 0;
    if (budget->cancelled && atomic_load_explicit(budget->cancelled, memory_order_relaxed))
        return error_set(error, -ECANCELED, "The query was cancelled.");
    if (monotonic_ns() - matching->looked_ns < LOOK_NS || charge(matching) <= budget->limit_ns)
        return 0;
    return error_set(
        error, -EDOM,
        "Matching regular expressions took more than %lld ms of CPU time. Use simpler ones, or "
        "select by more labels with = as well.",
        (long long)(budget->limit_ns / 1000000));
}
