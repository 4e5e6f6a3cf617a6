/* SPDX-License-Identifier: Apache-2.0 */
/* Values as people read them: 1.23 s, 4.50 MiB, 12,345. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"

/* `unit` is a sample type's unit: nanoseconds, bytes, count and their usual spellings; any other
 * word is appended as it is. */
void units_format(struct buffer *out, int64_t value, const char *unit);

/* 12.34%, with as many digits as are worth something; "0%" exactly for zero. */
void units_format_percent(struct buffer *out, int64_t part, int64_t whole);

/* 1,234,567 */
void units_format_count(struct buffer *out, int64_t value);
