// SPDX-License-Identifier: Apache-2.0
// Regular expressions: see pattern.h.

#include "profile/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/memory.h"

#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 1000
#define EXPRESSION_BYTES_MAX 65536

struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
};

int pattern_new(const char *expression, const char *what, struct pattern **ret_pattern,
                struct error *error)
{
    if (strlen(expression) > EXPRESSION_BYTES_MAX)
        return error_set(error, -E2BIG, "The expression of %s is longer than %d bytes.", what,
                         EXPRESSION_BYTES_MAX);
    int code_number;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                                     PCRE2_NEVER_BACKSLASH_C, &code_number, &offset, NULL);
    if (!code) {
        PCRE2_UCHAR message[200];
        pcre2_get_error_message(code_number, message, sizeof(message));
        return error_set(error, -EINVAL,
                         "The expression \"%.200s\" of %s is not valid at character %zu: %s.",
                         expression, what, offset + 1, (const char *)message);
    }
    struct pattern *pattern = memory_zalloc(1, sizeof(*pattern));
    pattern->code = code;
    /* Without the JIT it is slower, and just as right. */
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    pattern->match = pcre2_match_data_create_from_pattern(code, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(pattern->context, MATCH_LIMIT);
    pcre2_set_depth_limit(pattern->context, DEPTH_LIMIT);
    *ret_pattern = pattern;
    return 0;
}

void pattern_free(struct pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_match_context_free(pattern->context);
    pcre2_match_data_free(pattern->match);
    pcre2_code_free(pattern->code);
    free(pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *text, size_t length)
{
    return pcre2_match(pattern->code, (PCRE2_SPTR)text, length, 0, 0, pattern->match,
                       pattern->context) >= 0;
}
