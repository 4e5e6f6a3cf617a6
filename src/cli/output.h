/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by commands that write profiles: choosing the format. */
#pragma once

#include "format/format.h"

/* The format for `path`: the one named, or by the extension. Says on stderr why there is none;
 * returns 0 or an exit code. */
int output_format(const char *command, const char *name, const char *path,
                  const struct format **ret_format);

/* A table of the formats for --help; the caller frees it. */
char *output_format_list(void);
