/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `assay debuginfo` that sends files to a server. */
#pragma once

#include <stdint.h>

struct debuginfo_sending {
    const char *server, *token_file, *ca;
    uint64_t jobs; /* files at a time; 0: 4 */
};

/* Files, and all in folders. An exit code. */
int debuginfo_upload(const struct debuginfo_sending *sending, const char *const *paths, int count);
