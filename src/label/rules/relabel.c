// SPDX-License-Identifier: Apache-2.0
// Applying relabelling rules; relabel_rule.c checks and makes them.

#include "label/rules/relabel.h"

#include <gnutls/crypto.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/memory.h"
#include "base/text.h"
#include "label/quote.h"
#include "label/rules/relabel_rule.h"

/* The values of the source labels with separators between. */
static void join(const struct relabel_rule *rule, const struct labels *labels, struct buffer *out)
{
    for (size_t i = 0; i < rule->source_count; i++) {
        const char *value = labels_get(labels, rule->sources[i]);
        if (i)
            buffer_add_text(out, rule->separator);
        if (value)
            buffer_add_text(out, value);
    }
    buffer_text(out);
}

static void replace(const struct relabel_rule *rule, const struct buffer *value,
                    struct labels *labels)
{
    struct regex_match match;
    if (regex_find(rule->regex, value->data, value->length, 0, &match) != REGEX_MATCH)
        return;
    _cleanup_buffer_ struct buffer target = {0};
    _cleanup_buffer_ struct buffer result = {0};
    regex_expand(rule->regex, rule->target, value->data, &match, &target);
    if (!label_name_valid(buffer_text(&target), target.length))
        return;
    regex_expand(rule->regex, rule->replacement, value->data, &match, &result);
    /* Rules that double a value, one after the other, stop somewhere. */
    labels_set_n(labels, target.data, target.length, buffer_text(&result),
                 MIN(result.length, (size_t)RELABEL_VALUE_BYTES_MAX));
}

static void hashmod(const struct relabel_rule *rule, const struct buffer *value,
                    struct labels *labels)
{
    uint8_t digest[16];
    uint64_t number = 0;
    char text[24];
    GNUTLS_FIPS140_SET_LAX_MODE(); /* it hashes no secrets */
    int r = gnutls_hash_fast(GNUTLS_DIG_MD5, value->data ? value->data : "", value->length, digest);
    GNUTLS_FIPS140_SET_STRICT_MODE();
    if (r < 0)
        return; /* no label is better than a wrong one */
    for (size_t i = 8; i < 16; i++)
        number = number << 8 | digest[i];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)(number % rule->modulus));
    labels_set(labels, rule->target, text);
}

/* Names are matched as they were before the rule. */
static void map_names(const struct relabel_rule *rule, struct labels *labels)
{
    _cleanup_labels_ struct labels before = {0};
    labels_copy(&before, labels);
    for (size_t i = 0; i < before.count; i++) {
        const char *name = before.list[i].name;
        struct regex_match match;
        if (regex_find(rule->regex, name, strlen(name), 0, &match) != REGEX_MATCH)
            continue;
        _cleanup_buffer_ struct buffer mapped = {0};
        regex_expand(rule->regex, rule->replacement, name, &match, &mapped);
        if (label_name_valid(buffer_text(&mapped), mapped.length))
            labels_set(labels, mapped.data, before.list[i].value);
    }
}

static void drop_names(const struct relabel_rule *rule, struct labels *labels)
{
    bool drop = rule->action == RELABEL_LABELDROP;
    size_t kept = 0;
    for (size_t i = 0; i < labels->count; i++) {
        const char *name = labels->list[i].name;
        if (regex_matches(rule->regex, name, strlen(name)) != drop)
            labels->list[kept++] = labels->list[i];
    }
    labels->count = kept;
}

/* Upper and lower case of all of Unicode, independent of the program's locale. */
static locale_t unicode;

static void open_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static wint_t change_case(wchar_t c, bool upper)
{
    if (unicode)
        return upper ? towupper_l((wint_t)c, unicode) : towlower_l((wint_t)c, unicode);
    bool changes = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
    return (wint_t)(changes ? c ^ 0x20 : c);
}

static void set_case(const struct relabel_rule *rule, const struct buffer *value,
                     struct labels *labels)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_unicode);
    _cleanup_buffer_ struct buffer out = {0};
    size_t step;
    for (size_t i = 0; i < value->length; i += step) {
        const unsigned char *at = (const unsigned char *)value->data + i;
        step = utf8_sequence((const char *)at, value->length - i);
        if (!step) {
            buffer_add_char(&out, (char)*at);
            step = 1;
            continue;
        }
        wchar_t c = step == 1   ? at[0]
                    : step == 2 ? (at[0] & 0x1f) << 6 | (at[1] & 0x3f)
                    : step == 3 ? (at[0] & 0x0f) << 12 | (at[1] & 0x3f) << 6 | (at[2] & 0x3f)
                                : (at[0] & 0x07) << 18 | (at[1] & 0x3f) << 12 |
                                      (at[2] & 0x3f) << 6 | (at[3] & 0x3f);
        label_add_code_point(&out, (uint32_t)change_case(c, rule->action == RELABEL_UPPERCASE));
    }
    labels_set(labels, rule->target, buffer_text(&out));
}

static bool equals_target(const struct relabel_rule *rule, const struct buffer *value,
                          const struct labels *labels)
{
    const char *target = labels_get(labels, rule->target);
    return !strcmp(target ? target : "", value->data);
}

static bool apply_rule(const struct relabel_rule *rule, struct labels *labels)
{
    _cleanup_buffer_ struct buffer value = {0};
    join(rule, labels, &value);
    switch (rule->action) {
    case RELABEL_KEEP:
        return regex_matches(rule->regex, value.data, value.length);
    case RELABEL_DROP:
        return !regex_matches(rule->regex, value.data, value.length);
    case RELABEL_KEEPEQUAL:
        return equals_target(rule, &value, labels);
    case RELABEL_DROPEQUAL:
        return !equals_target(rule, &value, labels);
    case RELABEL_REPLACE:
        replace(rule, &value, labels);
        break;
    case RELABEL_HASHMOD:
        hashmod(rule, &value, labels);
        break;
    case RELABEL_LOWERCASE:
    case RELABEL_UPPERCASE:
        set_case(rule, &value, labels);
        break;
    case RELABEL_LABELMAP:
        map_names(rule, labels);
        break;
    default:
        drop_names(rule, labels);
    }
    return true;
}

bool relabel_apply(const struct relabel *relabel, struct labels *labels)
{
    for (size_t i = 0; i < relabel->count; i++)
        if (!apply_rule(&relabel->rules[i], labels))
            return false;
    return true;
}
