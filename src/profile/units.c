// SPDX-License-Identifier: Apache-2.0
// Values as people read them: see units.h.

#include "profile/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Longer units are cut: they stand behind every number of a picture. */
#define UNIT_BYTES_MAX 40

struct units_style {
    const char *space; /* between number and unit */
    const char *minus;
    bool ascii;        /* us, not µs */
    bool exact_counts; /* all digits, not 3.35 M */
    bool lines_up;     /* as many decimals for whole numbers as for others */
};

const struct units_style units_terminal = {
    .space = "", .minus = "-", .ascii = true, .exact_counts = true, .lines_up = true};
const struct units_style units_picture = {.space = "\u00a0", .minus = "\u2212"};

struct step {
    double least; /* values from here on are given in this unit */
    double size;
    const char *name;
};

static const struct step times[] = {
    {172800e9, 86400e9, "d"}, {7200e9, 3600e9, "h"}, {120e9, 60e9, "min"}, {1e9, 1e9, "s"},
    {1e6, 1e6, "ms"},         {1e3, 1e3, "µs"},      {0, 1, "ns"},
};

static const struct step sizes[] = {
    {0x1p50, 0x1p50, "PiB"}, {0x1p40, 0x1p40, "TiB"}, {0x1p30, 0x1p30, "GiB"},
    {0x1p20, 0x1p20, "MiB"}, {0x1p10, 0x1p10, "KiB"}, {0, 1, "B"},
};

static const struct unit {
    const char *names; /* spellings, each between spaces */
    const struct step *steps;
    double size; /* in nanoseconds or bytes */
} units[] = {
    {" nanoseconds nanosecond ns ", times, 1},
    {" microseconds microsecond us µs ", times, 1e3},
    {" milliseconds millisecond ms ", times, 1e6},
    {" seconds second s ", times, 1e9},
    {" bytes byte B ", sizes, 1},
    {" kilobytes kilobyte kB KB KiB ", sizes, 0x1p10},
    {" megabytes megabyte MB MiB ", sizes, 0x1p20},
};

static const struct unit *find_unit(const char *unit)
{
    char padded[32];
    int length = snprintf(padded, sizeof(padded), " %s ", unit);
    if (!*unit || strchr(unit, ' ') || length >= (int)sizeof(padded))
        return NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++)
        if (strstr(units[i].names, padded))
            return &units[i];
    return NULL;
}

static bool is_plain_count(const char *unit)
{
    static const char *const names[] = {"", "count", "samples", "objects", "none"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (!strcmp(unit, names[i]))
            return true;
    return false;
}

static void add_digits(struct buffer *out, const struct units_style *style, double value)
{
    bool whole = value < 1000 && value == floor(value) && !style->lines_up;
    buffer_printf(out, "%.*f", whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value);
}

void units_add_grouped(struct buffer *out, const struct units_style *style, double value)
{
    char digits[400];
    int length = snprintf(digits, sizeof(digits), "%.0f", fabs(value));
    if (value <= -0.5)
        buffer_add_text(out, style->minus);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            buffer_add_char(out, ',');
        buffer_add_char(out, digits[i]);
    }
}

static void add_scaled(struct buffer *out, const struct units_style *style, double value,
                       const struct step *step)
{
    while (value < step->least)
        step++;
    if (step->size == 1)
        buffer_printf(out, "%.0f", value);
    else
        add_digits(out, style, value / step->size);
    buffer_add_text(out, style->space);
    buffer_add_text(out, style->ascii && step->size == 1e3 ? "us" : step->name);
}

static void add_count(struct buffer *out, const struct units_style *style, double value)
{
    if (value >= 1e6 && !style->exact_counts) {
        add_digits(out, style, value >= 1e9 ? value / 1e9 : value / 1e6);
        buffer_printf(out, "%s%s", style->space, value >= 1e9 ? "G" : "M");
    } else if (value >= 1000 || value == floor(value)) {
        units_add_grouped(out, style, value);
    } else {
        add_digits(out, style, value);
    }
}

void units_add(struct buffer *out, const struct units_style *style, double value, const char *unit)
{
    const struct unit *known = find_unit(unit);
    if (value < 0)
        buffer_add_text(out, style->minus);
    value = fabs(value);
    if (!known) {
        add_count(out, style, value);
        if (!is_plain_count(unit))
            buffer_printf(out, "%s%.*s", *style->space ? style->space : " ", UNIT_BYTES_MAX, unit);
    } else if (value == 0 && style->lines_up) {
        buffer_add_char(out, '0');
    } else {
        add_scaled(out, style, value * known->size, known->steps);
    }
}

void units_add_change(struct buffer *out, const struct units_style *style, double value,
                      const char *unit)
{
    /* Scaled values carry rounding errors; a difference that small is none. */
    if (fabs(value) < 0.005)
        value = 0;
    if (value > 0)
        buffer_add_char(out, '+');
    units_add(out, style, value, unit);
}

void units_add_percent(struct buffer *out, const struct units_style *style, double share)
{
    double percent = fabs(share) * 100;
    if (!isfinite(percent)) {
        buffer_add_text(out, style->ascii ? "-" : "–");
        return;
    }
    if (share < 0)
        buffer_add_text(out, style->minus);
    if (percent > 0 && percent < 0.005)
        buffer_add_text(out, "<0.01%");
    else if (percent == 0 || percent >= 99.95)
        buffer_printf(out, "%.0f%%", percent);
    else
        buffer_printf(out, "%.*f%%", percent < 9.995 ? 2 : 1, percent);
}

void units_add_growth(struct buffer *out, const struct units_style *style, double base,
                      double value)
{
    double share = (value - base) / fabs(base);
    if (fabs(value - base) <= 1e-5 * fabs(base)) {
        buffer_add_text(out, "0%");
    } else if (base == 0) {
        buffer_add_text(out, "new");
    } else if (value == 0) {
        buffer_add_text(out, "gone");
    } else if (fabs(share) >= 10) {
        buffer_add_text(out, style->ascii ? "x" : "×");
        add_digits(out, style, fabs(value / base));
    } else if (fabs(share) < 0.0001) {
        buffer_add_text(out, "~0%");
    } else {
        if (share > 0)
            buffer_add_char(out, '+');
        units_add_percent(out, style, share);
    }
}
