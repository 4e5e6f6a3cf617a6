/* SPDX-License-Identifier: Apache-2.0 */
/* The results of triage in words and as JSON, for the command line and the server. */
#pragma once

#include "base/buffer.h"
#include "profile/triage/triage.h"

/* Text for a terminal, in which names from profiles are escaped, or Markdown. */
void triage_put_text(const struct profile *profile, const struct triage *triage, bool markdown,
                     struct buffer *out);
/* One object and a newline. */
void triage_put_json(const struct profile *profile, const struct triage *triage,
                     struct buffer *out);
