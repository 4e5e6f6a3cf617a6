// SPDX-License-Identifier: Apache-2.0
// Values as people read them: see units.h.

#include "profile/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct scale {
    double factor; /* of the base unit */
    const char *suffix;
};

static const struct scale times[] = {
    {86400e9, "d"}, {3600e9, "h"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}, {0, NULL}};
static const struct scale sizes[] = {{1099511627776.0, "TiB"},
                                     {1073741824.0, "GiB"},
                                     {1048576.0, "MiB"},
                                     {1024.0, "KiB"},
                                     {1, "B"},
                                     {0, NULL}};

struct unit {
    const char *names; /* space-separated spellings */
    const struct scale *scales;
    double factor; /* of the scale's base unit */
};

static const struct unit units[] = {
    {" nanoseconds nanosecond ns ", times, 1},
    {" microseconds microsecond us \xc2\xb5s ", times, 1e3},
    {" milliseconds millisecond ms ", times, 1e6},
    {" seconds second s ", times, 1e9},
    {" bytes byte B b ", sizes, 1},
    {" kilobytes kilobyte kB KB kb KiB ", sizes, 1024},
    {" megabytes megabyte MB mb MiB ", sizes, 1048576},
};

static const struct unit *find_unit(const char *unit)
{
    char padded[32];
    int length = snprintf(padded, sizeof(padded), " %s ", unit);
    if (!*unit || length >= (int)sizeof(padded))
        return NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++)
        if (strstr(units[i].names, padded))
            return &units[i];
    return NULL;
}

void units_format_count(struct buffer *out, int64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%lld", (long long)value);
    for (int i = 0; i < length; i++) {
        buffer_add_char(out, digits[i]);
        int left = length - 1 - i;
        if (left && left % 3 == 0 && digits[i] != '-')
            buffer_add_char(out, ',');
    }
}

void units_format(struct buffer *out, int64_t value, const char *unit)
{
    const struct unit *known = find_unit(unit);
    if (!known) {
        units_format_count(out, value);
        if (*unit && strcmp(unit, "count") && strcmp(unit, "samples") && strcmp(unit, "objects") &&
            strcmp(unit, "none"))
            buffer_printf(out, " %s", unit);
        return;
    }
    double base = (double)value * known->factor;
    const struct scale *scale = known->scales;
    /* Hours and days help nobody to read CPU time below a few hours. */
    while (scale[1].suffix &&
           fabs(base) < scale->factor * (scale->factor >= 3600e9 ? 3 : 0.99995))
        scale++;
    if (!value) {
        buffer_add_char(out, '0');
        return;
    }
    double scaled = base / scale->factor;
    int decimals = scale->factor == 1 ? 0 : fabs(scaled) < 10 ? 2 : fabs(scaled) < 100 ? 1 : 0;
    buffer_printf(out, "%.*f%s", decimals, scaled, scale->suffix);
}

void units_format_percent(struct buffer *out, int64_t part, int64_t whole)
{
    if (!whole || !part) {
        buffer_add_text(out, "0%");
        return;
    }
    double percent = 100.0 * (double)part / (double)whole;
    buffer_printf(out, "%.*f%%", fabs(percent) < 9.995 ? 2 : fabs(percent) < 99.95 ? 1 : 0,
                  percent);
}
