/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of series that may be long. Callbacks of the store must not wait for a client, so this asks
 * for series service by service, some at a time, and sends what it has written in between. Private
 * to src/server.
 */
#pragma once

#include "base/buffer.h"
#include "store/store.h"

/* As store_series, for callbacks that write to `out`, which goes to its drain meanwhile. */
int series_list(struct store *store, const struct store_selection *selection, struct buffer *out,
                store_series_fn *fn, void *context, struct error *error);
