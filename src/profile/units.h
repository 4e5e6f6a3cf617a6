/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as people read them: three significant digits and a unit that suits the size. Terminals
 * get plain ASCII that lines up (1.20ms, 3,347,246); pictures get what print gets (1.20 ms with a
 * no-break space, a real minus sign, 3.35 M), as web/flame/data/units.ts does. Units come from
 * profiles: escape what these append.
 */
#pragma once

#include "base/buffer.h"

struct units_style;
extern const struct units_style units_terminal, units_picture;

/* `unit` is a sample type's: nanoseconds, bytes, count and their usual spellings; any other word is
 * appended as it is. */
void units_add(struct buffer *out, const struct units_style *style, double value, const char *unit);

/* The same with a sign for what is above zero. */
void units_add_change(struct buffer *out, const struct units_style *style, double value,
                      const char *unit);

/* "12.3%" of a share from 0 to 1; "0%" exactly for zero. */
void units_add_percent(struct buffer *out, const struct units_style *style, double share);

/* How much a value grew: "+12.3%", "×14.0", "new", "gone", "0%" */
void units_add_growth(struct buffer *out, const struct units_style *style, double base,
                      double value);

/* 1,234,567 */
void units_add_grouped(struct buffer *out, const struct units_style *style, double value);
