/* SPDX-License-Identifier: Apache-2.0 */
/* What `assay agent` and `assay up` share. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

/* Where the product keeps what it has to: /var/lib/assay for root, ~/.local/state/assay for
 * others. */
const char *agent_default_data(struct buffer *text);

/* The directory and all above it that are not there, for this user only. */
int make_folders(const char *path, struct error *error);
