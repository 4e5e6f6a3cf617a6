/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "profile/profile.h"

/* The instructions of the function of exactly that name, with their cost in the sample type (NULL:
 * the default) and the lines of their source, as a JSON object. -ENOENT, and why, when there are
 * none. */
int view_put_assembly(struct buffer *out, const struct profile *profile, const char *function,
                      const char *type, struct error *error);
