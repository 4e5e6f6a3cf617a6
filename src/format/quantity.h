/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for people, in pictures: three significant digits, a unit that suits the size, a real
 * minus sign and a no-break space before the unit. The page's units.ts speaks the same way. Units
 * come from profiles: escape what these append.
 */
#pragma once

#include "base/buffer.h"

/* "1.20 ms", "3.4 MiB", "12,034", "7 widgets" */
void quantity_add(struct buffer *out, double value, const char *unit);

/* "+1.20 ms", "−3", "0" */
void quantity_add_change(struct buffer *out, double value, const char *unit);

/* "12.3%" of a share from 0 to 1 */
void quantity_add_percent(struct buffer *out, double share);

/* How much a value grew: "+12.3%", "×14.0", "new", "gone", "0%" */
void quantity_add_growth(struct buffer *out, double base, double value);

/* "12,034" */
void quantity_add_grouped(struct buffer *out, double value);
