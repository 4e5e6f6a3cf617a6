/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a comparison that pictures of a difference show: which changes are certain. */
#pragma once

#include "compare/cause.h"
#include "format/picture/flamedata.h"

/* The factor from a normalised value to the type's unit, of the new side. */
double changes_exposure(const struct compare_table *table, const struct comparison *comparison);

/* The changes of total values; the caller frees the list, and names live as long as the table. */
struct flame_change *changes_list(const struct compare_table *table,
                                  const struct comparison *comparison,
                                  const struct compare_causes *causes, size_t *ret_count);
