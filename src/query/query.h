/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries as people write them: `type{selectors}` and times. The type is a full
 * id, process_cpu:cpu:nanoseconds:cpu:nanoseconds, or a short name, which means the type of
 * that kind that the selection has.
 */
#pragma once

#include "base/error.h"
#include "label/selector.h"
#include "store/store.h"

#define QUERY_BYTES_MAX SELECTOR_BYTES_MAX
#define QUERY_TYPE_BYTES 1025           /* with its NUL */
#define QUERY_RECORDING LABEL_RECORDING /* and another label for its name */
#define QUERY_RECORDING_NAME "recording_name"

struct query {
    char type[QUERY_TYPE_BYTES]; /* a full id, a short name, or "": none was given */
    struct selector selector;    /* `service` and __service_name__ are service_name */
};

void query_release(struct query *query);
#define _cleanup_query_ _cleanup_(query_release)

/* `cpu{service_name="x"}`, `{service="x"}`, `cpu`, `memory:inuse_space:bytes:space:bytes{}`; a
 * sixth part of the type, `:delta`, is dropped. `ret` is untouched on failure. */
int query_parse(const char *text, struct query *ret_query, struct error *error);

/* Recordings are samples that the continuous profile has, too, only more of them: what adds values
 * up leaves series with the label `recording` out, unless the query has a matcher for that label or
 * for `recording_name`, such as recording="r12" or recording=~".*". */
int query_leave_recordings(struct query *query, struct error *error);

/* Makes the type a full id: a short name becomes the best type that the query's series have in the
 * selection's time; the selection's own type and selector are ignored. -ENOENT when no series
 * matches, -EINVAL when several types are equally good; the sentence lists them. */
int query_resolve(struct query *query, struct store *store, const struct store_selection *selection,
                  struct error *error);

/* How well a full id answers to a short name: 0 not at all, else the more the better. */
unsigned query_type_fits(const char *id, const char *short_name);

/* The n-th part of an id, from 0; "" and no length beyond the last. */
const char *query_type_part(const char *id, unsigned n, size_t *ret_length);

/* Unix seconds (also with a fraction), milliseconds, microseconds or nanoseconds by the number's
 * size; RFC 3339, also without time or zone (UTC); now, now-1h30m, now+5m. */
int query_time(const char *text, int64_t now_ns, int64_t *ret_ns, struct error *error);
