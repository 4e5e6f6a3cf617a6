// SPDX-License-Identifier: Apache-2.0
// From a request's parameters to a selection of the store, and how good its answer is.

#include "server/question.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "profile/naming.h"
#include "profile/rank.h"
#include "query/maps.h"
#include "query/types.h"
#include "server/admit.h"

#define HOUR_NS 3600000000000ll

void question_release(struct question *question)
{
    query_release(&question->query);
    query_links_release(&question->links);
}

/* What the selector says of the type is so, or there is nothing: no series has such a label. */
static int settle_type(struct question *question, struct error *error)
{
    struct query *query = &question->query;
    question->selection.type = query->type;
    if (!query_types_selected(&query->selector))
        return 0;
    bool fits = query_type_matches(&query->selector, query->type);
    query_types_settle(&query->selector);
    return fits ? 0 : selector_add(&query->selector, MATCH_EQUAL, "__name__", "-", error);
}

int question_init(struct question *question, struct http_request *request, struct server *server,
                  const char *query, int64_t from_ns, int64_t to_ns, bool typed,
                  struct error *error)
{
    *question = (struct question){.server = server};
    int r = query_parse(query, &question->query, error);
    if (!r && typed)
        r = query_leave_recordings(&question->query, error);
    if (r < 0)
        return r;
    if (from_ns >= to_ns)
        return error_set(error, -EINVAL, "The time asked for ends before it begins.");
    const char *tenant = http_request_identity(request)->tenant;
    question->selection = (struct store_selection){.tenant = tenant,
                                                   .selector = &question->query.selector,
                                                   .from_ns = from_ns,
                                                   .to_ns = to_ns};
    question->limits = (struct store_limits){.cancelled = http_request_cancel_flag(request),
                                             .memory_bytes = admit_profile_bytes(server),
                                             .admitted = true};
    if (typed || *question->query.type)
        r = query_resolve(&question->query, server->store, tenant, from_ns, to_ns, error);
    if (r < 0)
        query_release(&question->query);
    else if (*question->query.type)
        r = settle_type(question, error);
    return r;
}

static const char *parameter(struct http_request *request, const char *prefix, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof(whole), "%s%s", prefix, name);
    const char *value = http_request_query(request, whole);
    return value && *value ? value : NULL;
}

int question_read_from(struct question *question, struct http_request *request,
                       struct server *server, const char *prefix, const char *query,
                       int64_t from_ns, int64_t to_ns, bool typed, struct error *error)
{
    const char *own_query = parameter(request, prefix, "query");
    const char *from = parameter(request, prefix, "from"), *to = parameter(request, prefix, "to");
    if (!to)
        to = parameter(request, prefix, "until");
    int64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;
    *question = (struct question){0};
    if (from)
        r = query_time(from, now, &from_ns, error);
    if (!r && to)
        r = query_time(to, now, &to_ns, error);
    return r < 0 ? r
                 : question_init(question, request, server, own_query ? own_query : query, from_ns,
                                 to_ns, typed, error);
}

int question_read(struct question *question, struct http_request *request, struct server *server,
                  const char *prefix, bool typed, struct error *error)
{
    int64_t now = clock_ns(CLOCK_REALTIME);
    /* A window that began this very moment belongs to "now". */
    return question_read_from(question, request, server, prefix, "", now - HOUR_NS, now + 1, typed,
                              error);
}

int question_read_links(struct question *question, struct http_request *request,
                        struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < http_request_query_count(request); i++) {
        const char *name, *value;
        http_request_query_at(request, i, &name, &value);
        if (!strcmp(name, "span_id"))
            r = query_links_add(&question->links, QUERY_SPAN, value, error);
        else if (!strcmp(name, "trace_id"))
            r = query_links_add(&question->links, QUERY_TRACE, value, error);
    }
    return r;
}

/* What a question that is too large needs to become a smaller one. */
static int too_large(const struct question *question, struct error *error)
{
    uint64_t limit = question->limits.memory_bytes;
    char size[48] = "the server grants to one question";
    if (limit)
        snprintf(size, sizeof(size), "%llu MiB", (unsigned long long)(limit >> 20));
    return error_set(error, -E2BIG,
                     "The answer would take more memory than %s (limits.query_memory). Ask for a "
                     "shorter time, or for fewer series, as with cpu{service_name=\"x\"}.",
                     size);
}

/* All of the selection or a part of it. */
static int merge_selected(void *context, const struct store_selection *selection,
                          const struct store_limits *limits, struct profile *profile,
                          struct store_quality *ret_quality, struct error *error)
{
    struct question *question = context;
    struct store *store = question->server->store;
    return query_links_any(&question->links)
               ? query_merge_links(store, selection, limits, &question->links, profile, ret_quality,
                                   error)
               : store_merge(store, selection, limits, profile, ret_quality, error);
}

static int merge_within(struct question *question, const struct store_limits *limits,
                        struct profile *profile, struct store_quality *ret_quality,
                        struct error *error)
{
    return query_maps_merge(symbols_maps(question->server->symbols), question->server->store,
                            &question->selection, limits, merge_selected, question, profile,
                            ret_quality, error);
}

/* Leaves out less than these parts of the whole, one after the other, until the rest fits. */
static int merge_large(struct question *question, struct profile *profile,
                       struct store_quality *ret_quality, struct error *error)
{
    static const double shares[] = {1.0 / (1 << 20), 1.0 / (1 << 17), 1.0 / (1 << 15),
                                    1.0 / (1 << 13), 1.0 / (1 << 11), 1.0 / (1 << 9)};
    enum profile_detail detail = profile->detail;
    int r = -E2BIG;
    for (size_t i = 0; r == -E2BIG && i < ARRAY_LENGTH(shares); i++) {
        struct store_limits limits = question->limits;
        if (shares[i] <= limits.smallest_share)
            continue;
        limits.smallest_share = shares[i];
        profile_release(profile);
        profile_init(profile, detail);
        *ret_quality = (struct store_quality){0};
        r = merge_within(question, &limits, profile, ret_quality, error);
    }
    return r;
}

bool question_again(struct question *question, int *r, struct error *error)
{
    if (*r != -E2BIG || !admit_is_part())
        return false;
    *r = admit_rest(error);
    admit_limits(question->server, &question->limits);
    return *r == 0;
}

static bool is_about_one(const struct question *question)
{
    const struct selector *selector = &question->query.selector;
    for (size_t i = 0; i < selector->count; i++)
        if (selector->matchers[i].kind == MATCH_EQUAL &&
            !strcmp(selector->matchers[i].name, LABEL_SERVICE_NAME))
            return true;
    return false;
}

static int merge_first(struct question *question, struct profile *profile,
                       struct store_quality *ret_quality, struct error *error)
{
    /* A question about more than one service will need it all, and needn't find that out. */
    int r = is_about_one(question) ? 0 : admit_rest(error);
    if (r < 0)
        return r;
    admit_limits(question->server, &question->limits);
    r = merge_within(question, &question->limits, profile, ret_quality, error);
    if (!question_again(question, &r, error))
        return r;
    enum profile_detail detail = profile->detail;
    profile_release(profile);
    profile_init(profile, detail);
    *ret_quality = (struct store_quality){0};
    return merge_within(question, &question->limits, profile, ret_quality, error);
}

int question_merge(struct question *question, struct profile *profile,
                   struct store_quality *ret_quality, struct error *error)
{
    int r = merge_first(question, profile, ret_quality, error);
    if (r == -E2BIG && !question->whole && !query_links_any(&question->links))
        r = merge_large(question, profile, ret_quality, error);
    if (r == -E2BIG) {
        admit_limits(question->server, &question->limits);
        return too_large(question, error);
    }
    if (!r)
        r = symbols_name(question->server->symbols, question->selection.tenant, profile, error);
    if (r < 0)
        return r;
    profile->time_ns = ret_quality->first_ns;
    profile->duration_ns = ret_quality->duration_ns;
    return 0;
}

int question_merge_label(struct question *question, const char *name, const char *value,
                         struct profile *profile, struct error *error)
{
    const struct selector *asked = question->selection.selector;
    _cleanup_free_ struct matcher *matchers = memory_zalloc(asked->count + 1, sizeof(*matchers));
    if (asked->count)
        memcpy(matchers, asked->matchers, asked->count * sizeof(*matchers));
    matchers[asked->count] = (struct matcher){.kind = MATCH_EQUAL, .name = name, .value = value};
    struct selector narrowed = {.matchers = matchers, .count = asked->count + 1};
    struct store_quality quality = {0};
    question->selection.selector = &narrowed;
    int r = question_merge(question, profile, &quality, error);
    question->selection.selector = asked;
    return r;
}

int question_measure(struct question *question, struct query_quality *quality, struct error *error)
{
    return query_quality_measure(question->server->store, &question->selection, &question->limits,
                                 clock_ns(CLOCK_REALTIME), quality, error);
}

int question_merge_measured(struct question *question, struct profile *profile,
                            struct query_quality *ret_quality, struct error *error)
{
    int r = question_merge(question, profile, &ret_quality->found, error);
    return r < 0 ? r : question_measure(question, ret_quality, error);
}

int question_number(struct http_request *request, const char *name, uint64_t least, uint64_t most,
                    uint64_t *value, struct error *error)
{
    const char *text = http_request_query(request, name);
    uint64_t number;
    if (!text || !*text)
        return 0;
    if (!text_to_u64(text, strlen(text), &number) || number < least || number > most)
        return error_set(error, -EINVAL, "%s is a number from %llu to %llu, not \"%.40s\".", name,
                         (unsigned long long)least, (unsigned long long)most, text);
    *value = number;
    return 0;
}

int question_word(struct http_request *request, const char *name, const char *const *words,
                  unsigned otherwise, unsigned *ret_index, struct error *error)
{
    const char *text = http_request_query(request, name);
    struct buffer list = {0};
    *ret_index = otherwise;
    if (!text || !*text)
        return 0;
    for (unsigned i = 0; words[i]; i++) {
        if (!strcmp(text, words[i])) {
            *ret_index = i;
            buffer_release(&list);
            return 0;
        }
        buffer_printf(&list, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    error_set(error, -EINVAL, "%s is %s, not \"%.40s\".", name, buffer_text(&list), text);
    buffer_release(&list);
    return -EINVAL;
}

void api_respond(struct http_request *request, const char *content_type, struct buffer *body)
{
    http_respond_header(request, "Cache-Control", "no-store");
    http_respond(request, 200, content_type, body);
}

void json_put_text(struct buffer *out, const char *text)
{
    text_escape_json(out, text, strlen(text));
}

void labels_write_json(const struct labels *labels, struct buffer *out)
{
    buffer_add_char(out, '{');
    for (size_t i = 0; i < labels->count; i++) {
        if (i)
            buffer_add_char(out, ',');
        json_put_text(out, labels->list[i].name);
        buffer_add_char(out, ':');
        json_put_text(out, labels->list[i].value);
    }
    buffer_add_char(out, '}');
}

/* The share of the values whose innermost frame has no name. */
static double unnamed_share(const struct profile *profile)
{
    _cleanup_naming_ struct naming naming = {0};
    if (!profile->type_count)
        return 0;
    naming_init(&naming, profile);
    double all = 0, unnamed = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t frame = profile->nodes[profile->samples.node[i]].frame;
        double value = (double)magnitude(profile->samples.values[0][i]);
        uint32_t entry = naming.of_frame[frame];
        all += value;
        if (entry != NAMING_NONE && naming.entries[entry].unnamed)
            unnamed += value;
    }
    return all > 0 ? unnamed / all : 0;
}

/* Numbers that may be unknown are null then: 0 would say that somebody counted. */
static void put_unless(struct buffer *out, const char *key, bool known, double value)
{
    if (known)
        buffer_printf(out, ",\"%s\":%.9g", key, value);
    else
        buffer_printf(out, ",\"%s\":null", key);
}

void quality_write(const struct query_quality *quality, const struct profile *profile,
                   struct buffer *out)
{
    const struct store_quality *found = &quality->found;
    buffer_printf(out,
                  "\"quality\":{\"samples\":%llu,\"windows\":%llu,\"series\":%llu,"
                  "\"first\":%.3f,\"last\":%.3f,\"duration_seconds\":%.9g,\"total\":%lld,"
                  "\"cut\":%lld,\"damaged_blocks\":%u,\"damaged_files\":%u",
                  (unsigned long long)found->rows, (unsigned long long)found->windows,
                  (unsigned long long)found->series, (double)found->first_ns / 1e9,
                  (double)found->last_ns / 1e9, (double)found->duration_ns / 1e9,
                  (long long)found->total, (long long)found->cut, found->damaged_blocks,
                  found->damaged_files);
    put_unless(out, "hosts", quality->hosts, (double)quality->hosts);
    put_unless(out, "windows_covered", quality->covered >= 0, quality->covered);
    buffer_printf(out, ",\"window_seconds\":%.9g", (double)quality->covered_step_ns / 1e9);
    put_unless(out, "dropped", quality->has_dropped, (double)quality->dropped);
    put_unless(out, "unnamed_share", profile != NULL, profile ? unnamed_share(profile) : 0);
    buffer_add_char(out, '}');
}
