/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of single traces and spans. They are kept as exemplars; what is merged here is only
 * those, not the rest of the windows they came in.
 */
#pragma once

#include "store/store.h"

#define QUERY_LINKS_MAX 1000 /* ids of one kind */
#define PROFILE_ID_BYTES 37  /* a UUID and its NUL */

enum query_link_kind {
    QUERY_SPAN,    /* 16 hexadecimal digits */
    QUERY_TRACE,   /* 32 */
    QUERY_PROFILE, /* a UUID that query_profile_id gave, or a span's id */
    QUERY_LINK_KINDS,
};

/* A sample belongs to these when it has one of the ids of each kind that has any. */
struct query_links {
    struct query_link_ids {
        uint8_t (*ids)[16]; /* shorter ones end in zeroes */
        size_t count, capacity;
        bool sorted;
    } kinds[QUERY_LINK_KINDS], spans_of_profiles;
};

void query_links_release(struct query_links *links);
#define _cleanup_query_links_ __attribute__((cleanup(query_links_release)))

/* -EINVAL when the text isn't such an id. */
int query_links_add(struct query_links *links, enum query_link_kind kind, const char *text,
                    struct error *error);
bool query_links_any(const struct query_links *links);

/* Whether a sample has the requested traces and spans. */
bool query_links_match(struct query_links *links, const struct store_exemplar *exemplar);

/* An id for one window, for clients that want profile ids. It is made of labels and time, so a
 * window always has the same id and can be found by it. */
void query_profile_id(const struct labels *labels, int64_t time_ns,
                      char ret_text[PROFILE_ID_BYTES]);

/* As store_merge, of those samples only, or of all samples of those windows. The quality's windows
 * are samples here. */
int query_merge_links(struct store *store, const struct store_selection *selection,
                      const struct store_limits *limits, struct query_links *links,
                      struct profile *profile, struct store_quality *ret_quality,
                      struct error *error);
