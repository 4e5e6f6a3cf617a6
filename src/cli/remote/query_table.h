/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a server's API as tables. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "cli/table.h"

/* Whether answers to this subject have a form as a table. */
bool query_table_known(const char *subject);

/* Appends the answer as text or CSV. -EBADMSG when it isn't what the API's document says. */
int query_table_write(const char *subject, const struct buffer *answer, enum table_format format,
                      bool colour, struct buffer *out, struct error *error);
