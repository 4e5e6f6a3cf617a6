/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by service, as the last window with a snapshot has it: for /metrics. The caller locks. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "profile/profile.h"

#define LEVELS_MAX 512 /* services times types; those beyond it are in the profiles only */
#define LEVELS_NAME_BYTES 128
#define LEVELS_STALE_NS (120 * 1000000000ll)

struct level_row {
    char service[LEVELS_NAME_BYTES], type[32];
    uint64_t bytes;
};

struct levels {
    struct level_row *rows;
    size_t count;
    int64_t taken_ns; /* monotonic; 0: never */
};

void levels_release(struct levels *levels);

/* Takes the values over from a window, if it has a snapshot. */
void levels_take(struct levels *levels, const struct profile *profile, int64_t now_ns);

/* Old ones are left out. */
void levels_write(const struct levels *levels, int64_t now_ns, struct buffer *out);
