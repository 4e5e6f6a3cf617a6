// SPDX-License-Identifier: Apache-2.0
// Where the time of threads went, of a selection of wall-clock time: what `assay triage` says of a
// recording. Of Go programs with the waits of goroutines, and with what they say themselves in the
// profiles of blocking and mutexes that were scraped or pushed.

#include <string.h>

#include "profile/triage/triage_report.h"
#include "server/api/api.h"
#include "server/handler/parameters.h"
#include "server/query/context.h"

/* States of goroutines whose waits count: those that run, or are in system calls, are on threads.
 */
static const char *const goroutine_states[] = {"runnable", "channel", "lock",           "network",
                                               "sleep",    "other",   TRIAGE_STATE_IDLE};

/* Each state is series of its own: they are merged one by one, so that stacks keep their state. */
static int merge_state(struct query_context *query_context, const char *state,
                       struct profile *profile, struct error *error)
{
    _cleanup_profile_ struct profile part;
    struct store_quality quality = {0};
    const struct matcher matcher = {.kind = MATCH_EQUAL, .name = "state", .value = state};
    profile_init(&part, PROFILE_LABELS);
    int r = query_context_merge_matching(query_context, &matcher, &part, &quality, error);
    if (r == -ENOENT || r == -ENODATA) /* no thread was in this state */
        return 0;
    if (r < 0)
        return r;
    struct profile_label label = {.key = profile_cstring(&part, "state"),
                                  .text = profile_cstring(&part, state)};
    uint32_t labels = profile_label_set(&part, &label, 1);
    for (size_t row = 0; row < part.samples.count; row++)
        part.samples.labels[row] = labels;
    return profile_merge(profile, &part, error);
}

static int merge_threads(struct query_context *query_context, struct profile *profile,
                         struct error *error)
{
    int r = 0;
    for (unsigned kind = 0; !r && kind < TRIAGE_KINDS; kind++)
        if (*triage_kind_state((enum triage_kind)kind))
            r = merge_state(query_context, triage_kind_state((enum triage_kind)kind), profile,
                            error);
    return r;
}

static int merge_goroutines(struct query_context *query_context, struct profile *profile,
                            struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < ARRAY_LENGTH(goroutine_states); i++)
        r = merge_state(query_context, goroutine_states[i], profile, error);
    return r;
}

/* A profile that the program makes itself, under a name of its own. */
static int merge_scraped(struct query_context *query_context, const char *type,
                         struct profile *profile, struct error *error)
{
    _cleanup_profile_ struct profile part;
    struct store_quality quality = {0};
    profile_init(&part, 0);
    int r = query_context_merge(query_context, &part, &quality, error);
    if (r == -ENOENT || r == -ENODATA || (!r && !part.type_count))
        return 0;
    if (r < 0)
        return r;
    part.types[0].type = profile_cstring(&part, type);
    return profile_merge(profile, &part, error);
}

typedef int merge_fn(struct query_context *query_context, struct profile *profile,
                     struct error *error);

static int merge_blocking(struct query_context *query_context, struct profile *profile,
                          struct error *error)
{
    return merge_scraped(query_context, TRIAGE_BLOCK_TYPE, profile, error);
}

static int merge_mutexes(struct query_context *query_context, struct profile *profile,
                         struct error *error)
{
    return merge_scraped(query_context, TRIAGE_MUTEX_TYPE, profile, error);
}

/* The same selection of another type, which may have no data. */
static int merge_type(const struct query_context *wall, struct http_request *request, void *server,
                      const char *type, merge_fn *merge, struct profile *profile,
                      struct error *error)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    _cleanup_buffer_ struct buffer query = {0};
    buffer_add_text(&query, type);
    selector_write(&query, &wall->query.selector);
    int r = query_context_init(&query_context, request, server, buffer_text(&query),
                               wall->selection.from_ns, wall->selection.to_ns, true, error);
    if (!r)
        r = merge(&query_context, profile, error);
    return r == -ENOENT ? 0 : r;
}

static int read_format(struct http_request *request, const char **ret_format, struct error *error)
{
    const char *format = http_request_query(request, "format");
    if (!format)
        format = "json";
    if (strcmp(format, "json") != 0 && strcmp(format, "text") != 0 &&
        strcmp(format, "markdown") != 0)
        return error_set(error, -EINVAL, "The format is json, text or markdown.");
    *ret_format = format;
    return 0;
}

static const struct {
    const char *type;
    merge_fn *merge;
} beside[] = {
    {TRIAGE_GOROUTINE_TYPE, merge_goroutines},
    {TRIAGE_BLOCK_TYPE, merge_blocking},
    {TRIAGE_MUTEX_TYPE, merge_mutexes},
};

void api_triage(struct http_request *request, void *server)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    struct triage triage;
    const char *format = "json";
    profile_init(&profile, PROFILE_LABELS);
    if (!parameters_known(request, "/api/v1/triage"))
        return;
    int r = read_format(request, &format, &error);
    if (!r)
        r = query_context_read(&query_context, request, server, "", true, &error);
    if (!r)
        r = merge_threads(&query_context, &profile, &error);
    for (size_t i = 0; !r && i < ARRAY_LENGTH(beside); i++)
        r = merge_type(&query_context, request, server, beside[i].type, beside[i].merge, &profile,
                       &error);
    if (!r && triage_profile(&profile, &triage, &error) < 0)
        r = error_set(&error, -ENOENT,
                      "No wall-clock time by state in this selection. Agents measure it where the "
                      "kernel can: see `assay agent status`.");
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    if (!strcmp(format, "json"))
        triage_put_json(&profile, &triage, &out);
    else
        triage_put_text(&profile, &triage, !strcmp(format, "markdown"), &out);
    api_respond(request, !strcmp(format, "json") ? "application/json" : "text/plain; charset=utf-8",
                &out);
}
