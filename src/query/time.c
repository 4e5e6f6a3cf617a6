// SPDX-License-Identifier: Apache-2.0
// Times as people and other tools write them.

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "config/quantity.h"
#include "query/query.h"

#define SECOND_NS 1000000000ll

static int wrong(const char *text, struct error *error)
{
    return error_set(error, -EINVAL,
                     "\"%.60s\" is not a time; use unix seconds, RFC 3339 as in "
                     "2026-11-15T08:00:00Z, or now-1h.",
                     text);
}

/* "-1h30m" after "now". */
static int from_now(const char *text, const char *rest, int64_t now_ns, int64_t *ret_ns,
                    struct error *error)
{
    int64_t offset = 0, ns;
    if (*rest && ((*rest != '-' && *rest != '+') || !quantity_duration(rest + 1, &offset)))
        return wrong(text, error);
    if (__builtin_add_overflow(now_ns, *rest == '-' ? -offset : offset, &ns))
        return wrong(text, error);
    *ret_ns = ns;
    return 0;
}

/* The size distinguishes seconds to nanoseconds: seconds reach beyond the year 5000. */
static bool from_number(const char *text, int64_t *ret_ns)
{
    int64_t number;
    double real;
    if (text_to_i64(text, strlen(text), &number)) {
        if (number < 0)
            return false;
        int64_t scale = number < 100000000000ll         ? SECOND_NS
                        : number < 100000000000000ll    ? 1000000
                        : number < 100000000000000000ll ? 1000
                                                        : 1;
        return !__builtin_mul_overflow(number, scale, ret_ns);
    }
    if (!text_to_double(text, &real) || !(real >= 0 && real < 9e9))
        return false;
    *ret_ns = llround(real * 1e9);
    return true;
}

/* So many digits; -1 when they aren't. */
static int digits(const char **text, int count)
{
    int value = 0;
    for (; count; count--, (*text)++) {
        if (!isdigit((unsigned char)**text))
            return -1;
        value = value * 10 + (**text - '0');
    }
    return value;
}

static bool skip(const char **text, char c)
{
    bool there = **text == c;
    *text += there;
    return there;
}

static bool parse_zone(const char **text, int *ret_seconds)
{
    *ret_seconds = 0;
    if (!**text || skip(text, 'Z') || skip(text, 'z'))
        return true;
    int sign = **text == '-' ? -1 : 1;
    if (**text != '-' && **text != '+')
        return false;
    (*text)++;
    int hours = digits(text, 2);
    skip(text, ':');
    int minutes = digits(text, 2);
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

static bool from_date(const char *text, int64_t *ret_ns)
{
    struct tm tm = {.tm_mday = 1};
    int zone = 0;
    int64_t fraction = 0;
    tm.tm_year = digits(&text, 4) - 1900;
    if (tm.tm_year < 70 || tm.tm_year > 300 || !skip(&text, '-'))
        return false;
    tm.tm_mon = digits(&text, 2) - 1;
    if (tm.tm_mon < 0 || tm.tm_mon > 11 || !skip(&text, '-'))
        return false;
    tm.tm_mday = digits(&text, 2);
    if (tm.tm_mday < 1 || tm.tm_mday > 31)
        return false;
    if (skip(&text, 'T') || skip(&text, 't') || skip(&text, ' ')) {
        tm.tm_hour = digits(&text, 2);
        bool colon = skip(&text, ':');
        tm.tm_min = colon ? digits(&text, 2) : -1;
        tm.tm_sec = skip(&text, ':') ? digits(&text, 2) : 0;
        if (tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 || tm.tm_min > 59 || tm.tm_sec < 0 ||
            tm.tm_sec > 60)
            return false;
        if (skip(&text, '.'))
            for (int64_t unit = SECOND_NS / 10; isdigit((unsigned char)*text); text++, unit /= 10)
                fraction += (*text - '0') * unit;
        if (!parse_zone(&text, &zone))
            return false;
    }
    int day = tm.tm_mday;
    time_t seconds = timegm(&tm);
    *ret_ns = ((int64_t)seconds - zone) * SECOND_NS + fraction;
    return !*text && tm.tm_mday == day; /* refuses the 31st of February */
}

int query_time(const char *text, int64_t now_ns, int64_t *ret_ns, struct error *error)
{
    if (!strncmp(text, "now", 3))
        return from_now(text, text + 3, now_ns, ret_ns, error);
    int64_t ns;
    if (!from_number(text, &ns) && !from_date(text, &ns))
        return wrong(text, error);
    *ret_ns = ns;
    return 0;
}
