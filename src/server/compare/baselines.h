/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baselines: good states by name, for gates. Each is one or several profiles in files of their own
 * (DATA/baselines/TENANT/NAME/0.profile, 1.profile, ...), so that retention doesn't reach them; a
 * quota does. Any thread.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define BASELINE_NAME_BYTES_MAX 128 /* letters, digits, '-', '_', '.'; not first a '.' */
#define BASELINE_PARTS_MAX 64
#define BASELINE_ABOUT_BYTES_MAX 1024
#define BASELINES_INCOMPLETE_MAX 4 /* of a tenant, whose last part hasn't come; the oldest go */

/* Of one tenant. */
struct baselines_limits {
    uint64_t bytes, count;
};
#define BASELINES_BYTES_DEFAULT (256ull << 20)
#define BASELINES_COUNT_DEFAULT 100

struct baselines;

/* `data` is the server's directory; NULL: nothing can be saved (-ENOSYS). */
struct baselines *baselines_new(const char *data, const struct baselines_limits *limits);
void baselines_free(struct baselines *baselines); /* takes NULL */

struct baseline {
    const char *name;
    const char *about; /* where it came from */
    int64_t saved_ns;
    uint64_t bytes;
    unsigned parts;
};

/* Names in order. What is passed lives until `fn` returns. */
typedef void baselines_fn(void *context, const struct baseline *baseline);
int baselines_each(struct baselines *baselines, const char *tenant, baselines_fn *fn, void *context,
                   struct error *error);

/*
 * Saves part `part` of `parts`. With the last one the baseline is there, in one step; parts come in
 * order, and the first begins anew. -EEXIST: the name is taken, and `replace` isn't set. -EDQUOT:
 * the quota is used up.
 */
struct baseline_part {
    const char *tenant, *name, *about;
    unsigned part, parts;
    bool replace;
    const void *data;
    size_t length;
};
int baselines_save(struct baselines *baselines, const struct baseline_part *part,
                   struct error *error);

/* -ENOENT: unknown baseline or part. */
int baselines_read(struct baselines *baselines, const char *tenant, const char *name, unsigned part,
                   struct buffer *ret_content, unsigned *ret_parts, struct error *error);
int baselines_delete(struct baselines *baselines, const char *tenant, const char *name,
                     struct error *error);

/* All tenants together, for /metrics; `refused` by a quota since the start. */
struct baselines_stats {
    uint64_t count, bytes, refused;
};
struct baselines_stats baselines_stats(struct baselines *baselines);
