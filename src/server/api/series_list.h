/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of series that may be long. Callbacks of the store must not wait for a client, so series
 * are asked for service by service and some at a time, and what was written of them is sent in
 * between. Private to src/server.
 */
#pragma once

#include "base/buffer.h"
#include "store/store.h"

/* As store_series, for callbacks that write to `out`, which goes to its drain meanwhile. */
int series_list(struct store *store, const struct store_selection *selection, struct buffer *out,
                store_series_fn *fn, void *context, struct error *error);
