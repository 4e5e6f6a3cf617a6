// SPDX-License-Identifier: Apache-2.0
// Numbers for people: see quantity.h.

#include "format/quantity.h"

#include <math.h>
#include <stdio.h>

#define NO_BREAK_SPACE "\u00a0"
#define MINUS "\u2212"

/* Longer units are cut: they stand behind every number of a picture. */
#define UNIT_BYTES_MAX 40

struct step {
    double least; /* values from here on are given in this unit */
    double size;
    const char *name;
};

static const struct step nanoseconds[] = {
    {172800e9, 86400e9, "d"}, {7200e9, 3600e9, "h"}, {120e9, 60e9, "min"}, {1e9, 1e9, "s"},
    {1e6, 1e6, "ms"},         {1e3, 1e3, "µs"},      {0, 1, "ns"},
};

static const struct step bytes[] = {
    {0x1p50, 0x1p50, "PiB"}, {0x1p40, 0x1p40, "TiB"}, {0x1p30, 0x1p30, "GiB"},
    {0x1p20, 0x1p20, "MiB"}, {0x1p10, 0x1p10, "KiB"}, {0, 1, "B"},
};

static void add_digits(struct buffer *out, double value)
{
    if (value < 1000 && value == floor(value))
        buffer_printf(out, "%.0f", value);
    else
        buffer_printf(out, "%.*f", value >= 100 ? 0 : value >= 10 ? 1 : 2, value);
}

void quantity_add_grouped(struct buffer *out, double value)
{
    char digits[400];
    int length = snprintf(digits, sizeof(digits), "%.0f", fabs(value));
    if (value <= -0.5)
        buffer_add_text(out, MINUS);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            buffer_add_char(out, ',');
        buffer_add_char(out, digits[i]);
    }
}

static void add_in_steps(struct buffer *out, double value, const struct step *step)
{
    while (value < step->least)
        step++;
    add_digits(out, value / step->size);
    buffer_add_text(out, NO_BREAK_SPACE);
    buffer_add_text(out, step->name);
}

static void add_positive(struct buffer *out, double value, const char *unit)
{
    if (!strcmp(unit, "nanoseconds")) {
        add_in_steps(out, value, nanoseconds);
        return;
    }
    if (!strcmp(unit, "bytes")) {
        add_in_steps(out, value, bytes);
        return;
    }
    if (value >= 1e6) {
        add_digits(out, value >= 1e9 ? value / 1e9 : value / 1e6);
        buffer_add_text(out, value >= 1e9 ? NO_BREAK_SPACE "G" : NO_BREAK_SPACE "M");
    } else if (value >= 1000) {
        quantity_add_grouped(out, value);
    } else {
        add_digits(out, value);
    }
    if (unit[0] && strcmp(unit, "count")) {
        buffer_printf(out, NO_BREAK_SPACE "%.*s", UNIT_BYTES_MAX, unit);
    }
}

void quantity_add(struct buffer *out, double value, const char *unit)
{
    if (value < 0)
        buffer_add_text(out, MINUS);
    add_positive(out, fabs(value), unit);
}

void quantity_add_change(struct buffer *out, double value, const char *unit)
{
    /* Scaled values carry rounding errors; a difference that small is none. */
    if (fabs(value) < 0.005)
        value = 0;
    if (value > 0)
        buffer_add_char(out, '+');
    quantity_add(out, value, unit);
}

void quantity_add_percent(struct buffer *out, double share)
{
    double percent = fabs(share) * 100;
    if (!isfinite(percent)) {
        buffer_add_text(out, "–");
        return;
    }
    if (share < 0)
        buffer_add_text(out, MINUS);
    if (percent > 0 && percent < 0.01)
        buffer_add_text(out, "<0.01%");
    else if (percent == 0 || percent >= 99.95)
        buffer_printf(out, "%.0f%%", percent);
    else
        buffer_printf(out, "%.*f%%", percent < 10 ? 2 : 1, percent);
}

void quantity_add_growth(struct buffer *out, double base, double value)
{
    double share = (value - base) / fabs(base);
    if (fabs(value - base) <= 1e-5 * fabs(base)) {
        buffer_add_text(out, "0%");
    } else if (base == 0) {
        buffer_add_text(out, "new");
    } else if (value == 0) {
        buffer_add_text(out, "gone");
    } else if (fabs(share) >= 10) {
        buffer_add_text(out, "×");
        add_digits(out, fabs(value / base));
    } else if (fabs(share) < 0.0001) {
        buffer_add_text(out, "~0%");
    } else {
        if (share > 0)
            buffer_add_char(out, '+');
        quantity_add_percent(out, share);
    }
}
