/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that people upload to look at, for the ad hoc view of Grafana's app: kept in memory, by
 * tenant, until newer ones need their place. Any thread.
 */
#pragma once

#include "base/buffer.h"

struct adhoc;

struct adhoc *adhoc_new(void);
void adhoc_free(struct adhoc *adhoc); /* takes NULL */

#define ADHOC_ID_BYTES 33

/* Keeps a copy. Of all profiles together no more than `total_bytes` stay, the newest. */
void adhoc_put(struct adhoc *adhoc, const char *tenant, const char *name,
               const struct buffer *bytes, size_t total_bytes, char ret_id[ADHOC_ID_BYTES],
               int64_t *ret_uploaded_ms);

/* Appends a copy of its bytes; false when the id is unknown. The caller frees the name. */
bool adhoc_get(struct adhoc *adhoc, const char *tenant, const char *id, struct buffer *ret_bytes,
               char **ret_name, int64_t *ret_uploaded_ms);

/* The newest first; nothing may be called from there. */
typedef void adhoc_list_fn(void *context, const char *id, const char *name, int64_t uploaded_ms);
void adhoc_list(struct adhoc *adhoc, const char *tenant, adhoc_list_fn *fn, void *context);
