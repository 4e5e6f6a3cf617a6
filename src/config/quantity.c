// SPDX-License-Identifier: Apache-2.0
// Durations, sizes and switches from text: see quantity.h.

#include "config/quantity.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

/* Reads digits; false without any, or when they don't fit. */
static bool number(const char **at, int64_t *ret_value)
{
    const char *start = *at;
    int64_t value = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, **at - '0', &value))
            return false;
    *ret_value = value;
    return *at > start;
}

bool quantity_duration(const char *text, int64_t *ret_ns)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {
        {"y", 365 * 86400000000000},
        {"w", 7 * 86400000000000},
        {"d", 86400000000000},
        {"h", 3600000000000},
        {"m", 60000000000},
        {"s", 1000000000},
        {"ms", 1000000},
        {"us", 1000},
        {"ns", 1},
    };
    if (!strcmp(text, "0")) {
        *ret_ns = 0;
        return true;
    }
    int64_t total = 0, value;
    size_t next = 0; /* units get smaller */
    const char *at = text;
    do {
        if (!number(&at, &value))
            return false;
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
        while (next < ARRAY_LENGTH(units) &&
               (strlen(units[next].unit) != length || memcmp(units[next].unit, at, length) != 0))
            next++;
        if (next == ARRAY_LENGTH(units) || __builtin_mul_overflow(value, units[next].ns, &value) ||
            __builtin_add_overflow(total, value, &total))
            return false;
        next++;
        at += length;
    } while (*at);
    *ret_ns = total;
    return true;
}

bool quantity_size(const char *text, uint64_t *ret_bytes)
{
    static const char prefixes[] = "KMGTP";
    const char *at = text;
    int64_t value, factor = 1;
    if (!number(&at, &value))
        return false;
    at += *at == ' ';
    const char *prefix = *at ? strchr(prefixes, *at == 'k' ? 'K' : *at) : NULL;
    if (prefix) {
        const char *rest = at + 1;
        int64_t base = !strcmp(rest, "") || !strcmp(rest, "iB") || !strcmp(rest, "i") ? 1024
                       : !strcmp(rest, "B")                                           ? 1000
                                                                                      : 0;
        for (const char *p = prefixes; p <= prefix; p++)
            factor *= base;
    } else if (*at && strcmp(at, "B") != 0) {
        return false;
    }
    if (!factor || __builtin_mul_overflow(value, factor, &value))
        return false;
    *ret_bytes = (uint64_t)value;
    return true;
}

bool quantity_bool(const char *text, bool *ret_value)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (!strcasecmp(text, words[i])) {
            *ret_value = i % 2;
            return true;
        }
    return false;
}
