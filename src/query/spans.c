// SPDX-License-Identifier: Apache-2.0
// Spans that a query selects: see spans.h.

#include "query/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum known { UNKNOWN, MATCHES, DIFFERS };

void query_spans_release(struct query_spans *spans)
{
    free(spans->known);
    *spans = (struct query_spans){0};
}

void query_spans_begin(struct query_spans *spans, const struct span_batch *batch)
{
    size_t count = spans->selector->count * batch->text_count;
    array_reserve(spans->known, spans->room, count + 1);
    memset(spans->known, UNKNOWN, count + 1);
    spans->batch = batch;
}

/* The text of a label, or its value in `room` where it is not a text of the batch. */
static const char *label_of(const struct query_spans *spans, const struct span *span,
                            const char *name, uint32_t *ret_text, char room[16])
{
    const struct {
        const char *name;
        uint32_t text;
    } texts[] = {{LABEL_SERVICE_NAME, span->service},
                 {"route", span->route},
                 {"method", span->method},
                 {"span_name", span->name}};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        if (!strcmp(name, texts[i].name)) {
            *ret_text = texts[i].text;
            return spans->batch->texts[texts[i].text];
        }
    *ret_text = ID_NONE;
    if (!strcmp(name, "kind"))
        return span_kind_names[span->kind];
    if (!strcmp(name, "status"))
        return span_status_names[span->status];
    if (strcmp(name, "code") || !span->code)
        return "";
    snprintf(room, 16, "%u", span->code);
    return room;
}

int query_spans_match(struct query_spans *spans, const struct span *span, bool *ret_selected,
                      struct error *error)
{
    const struct selector *selector = spans->selector;
    bool matches = true;
    for (size_t i = 0; matches && i < selector->count; i++) {
        char room[16];
        uint32_t text;
        const char *value = label_of(spans, span, selector->matchers[i].name, &text, room);
        uint8_t own = UNKNOWN;
        uint8_t *known =
            text == ID_NONE ? &own : &spans->known[i * spans->batch->text_count + text];
        if (*known == UNKNOWN) {
            struct matching matching;
            matching_begin(&matching, spans->budget);
            int r = matching_test(&matching, &selector->matchers[i], value, &matches, error);
            matching_end(&matching);
            if (r < 0)
                return r;
            *known = matches ? MATCHES : DIFFERS;
        }
        matches = *known == MATCHES;
    }
    *ret_selected = matches;
    return 0;
}

static int selects(void *context, const struct span_batch *batch, const struct span *span,
                   struct error *error)
{
    struct query_spans *spans = context;
    bool selected = false;
    if (!span)
        query_spans_begin(spans, batch);
    int r = span ? query_spans_match(spans, span, &selected, error) : 0;
    return r < 0 ? r : selected;
}

int query_spans_delete(struct span_index *index, const struct query *query,
                       const struct span_query *range, bool dry_run, uint64_t *ret_spans,
                       struct error *error)
{
    struct match_budget budget = {.limit_ns = INT64_MAX};
    _cleanup_query_spans_ struct query_spans spans = {.selector = &query->selector,
                                                      .budget = &budget};
    *ret_spans = 0;
    return *query->type
               ? 0
               : span_index_delete(index, range, selects, &spans, dry_run, ret_spans, error);
}
