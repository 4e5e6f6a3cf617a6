// SPDX-License-Identifier: Apache-2.0
// Queries as text: the type before the braces, the selector in them, and short names of types.

#include "query/query.h"

#include <string.h>

#include "base/memory.h"

void query_release(struct query *query)
{
    selector_release(&query->selector);
    *query = (struct query){0};
}

const char *query_type_part(const char *id, unsigned n, size_t *ret_length)
{
    for (; n; n--) {
        const char *colon = strchr(id, ':');
        if (!colon) {
            *ret_length = 0;
            return "";
        }
        id = colon + 1;
    }
    *ret_length = strcspn(id, ":");
    return id;
}

static unsigned count_parts(const char *id)
{
    unsigned parts = 1;
    for (; *id; id++)
        parts += *id == ':';
    return parts;
}

static int set_type(struct query *query, const char *text, size_t length, struct error *error)
{
    while (length && strchr(" \t\r\n", text[length - 1]))
        length--;
    while (length && strchr(" \t\r\n", *text)) {
        text++;
        length--;
    }
    if (length >= sizeof(query->type))
        return error_set(error, -EINVAL, "The query's profile type is %zu bytes; the limit is %zu.",
                         length, sizeof(query->type) - 1);
    memcpy(query->type, text, length);
    query->type[length] = 0;
    unsigned parts = count_parts(query->type);
    if (parts == 6) { /* others say here whether values are deltas; ours always are */
        *strrchr(query->type, ':') = 0;
        parts = 5;
    }
    for (const char *c = query->type; *c; c++)
        if ((unsigned char)*c < ' ' || strchr("}\"'", *c))
            return error_set(error, -EINVAL, "\"%.100s\" is not a profile type.", query->type);
    if (parts != 1 && parts != 5)
        return error_set(error, -EINVAL,
                         "\"%.100s\" is not a profile type: use a short name such as cpu, or five "
                         "parts, as in process_cpu:cpu:nanoseconds:cpu:nanoseconds.",
                         query->type);
    return 0;
}

/* Pyroscope's clients name the type as a label, {__profile_type__="..."}. */
static int take_type(struct query *query, struct error *error)
{
    struct selector *selector = &query->selector;
    for (size_t i = 0; i < selector->count; i++) {
        struct matcher *matcher = &selector->matchers[i];
        if (strcmp(matcher->name, "__profile_type__"))
            continue;
        bool equal = matcher->kind == MATCH_EQUAL;
        if (!equal || (*query->type && strcmp(query->type, matcher->value)))
            return error_set(error, -EINVAL,
                             "A query has one type: __profile_type__ requires =, and excludes "
                             "another type before the braces.");
        int r = set_type(query, matcher->value, strlen(matcher->value), error);
        if (r < 0)
            return r;
        memmove(matcher, matcher + 1, (selector->count - i - 1) * sizeof(*matcher));
        selector->count--;
        i--;
    }
    return 0;
}

int query_parse(const char *text, struct query *ret_query, struct error *error)
{
    size_t length = strlen(text), type_length = strcspn(text, "{");
    if (length > QUERY_BYTES_MAX)
        return error_set(error, -E2BIG, "The query is %zu bytes; the limit is %d.", length,
                         QUERY_BYTES_MAX);
    _cleanup_query_ struct query query = {0};
    int r = set_type(&query, text, type_length, error);
    if (!r)
        r = selector_parse(text + type_length, length - type_length, &query.selector, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < query.selector.count; i++)
        if (!strcmp(query.selector.matchers[i].name, "service") ||
            !strcmp(query.selector.matchers[i].name, "__service_name__"))
            query.selector.matchers[i].name = LABEL_SERVICE_NAME;
    if ((r = take_type(&query, error)) < 0)
        return r;
    *ret_query = query;
    query = (struct query){0};
    return 0;
}

int query_leave_recordings(struct query *query, struct error *error)
{
    const struct selector *selector = &query->selector;
    for (size_t i = 0; i < selector->count; i++)
        if (!strcmp(selector->matchers[i].name, QUERY_RECORDING) ||
            !strcmp(selector->matchers[i].name, QUERY_RECORDING_NAME))
            return 0;
    return selector_add(&query->selector, MATCH_EQUAL, QUERY_RECORDING, "", error);
}

/* Types that a short name means: parts of ids, "" for any, in order of preference. */
static const struct {
    const char *short_name, *name, *sample_type, *unit;
} short_names[] = {
    {"cpu", "process_cpu", "cpu", "nanoseconds"},
    {"cpu", "process_cpu", "cpu", ""},
    {"cpu", "", "cpu", ""},
    {"cpu", "process_cpu", "samples", ""},
    {"cpu", "process_cpu", "", ""},
    {"wall", "wall", "wall", ""},
    {"wall", "wall", "", "nanoseconds"},
    {"wall", "wall", "", ""},
    {"wall", "", "wall", ""},
    {"offcpu", "off_cpu", "", "nanoseconds"},
    {"offcpu", "off_cpu", "", ""},
    {"offcpu", "offcpu", "", ""},
    {"offcpu", "", "off_cpu", ""},
    {"offcpu", "", "offcpu", ""},
    {"alloc", "memory", "alloc_space", ""},
    {"alloc", "memory", "alloc_in_new_tlab_bytes", ""},
    {"alloc", "memory", "alloc_sample_bytes", ""},
    {"alloc", "memory", "alloc_size", ""},
    {"alloc", "memory", "alloc_objects", ""},
    {"alloc", "", "alloc_space", ""},
    {"alloc", "memory", "alloc", ""},
    {"inuse", "memory", "inuse_space", ""},
    {"inuse", "memory", "inuse_objects", ""},
    {"inuse", "", "inuse_space", ""},
    {"inuse", "memory", "live", ""},
    {"rss", "memory", "rss", ""},
    {"rss", "", "rss", ""},
    {"lock", "mutex", "delay", ""},
    {"lock", "mutex", "mutex_duration", ""},
    {"lock", "", "lock_duration", ""},
    {"lock", "", "lock_time", ""},
    {"lock", "mutex", "contentions", ""},
    {"lock", "mutex", "", ""},
    {"lock", "block", "", ""},
    {"lock", "", "lock_count", ""},
    {"mutex_delay", "mutex", "delay", "nanoseconds"},
    {"mutex_delay", "mutex", "mutex_duration", "nanoseconds"},
    {"block_delay", "block", "delay", "nanoseconds"},
    {"block_delay", "block", "block_duration", "nanoseconds"},
};

static bool part_is(const char *id, unsigned part, const char *text)
{
    size_t length;
    const char *found = query_type_part(id, part, &length);
    return !*text || (strlen(text) == length && !memcmp(found, text, length));
}

unsigned query_type_fits(const char *id, const char *short_name)
{
    bool known = false;
    unsigned worth = ARRAY_LENGTH(short_names) + 2;
    for (size_t i = 0; i < ARRAY_LENGTH(short_names); i++, worth--) {
        if (strcmp(short_names[i].short_name, short_name))
            continue;
        known = true;
        if (part_is(id, 0, short_names[i].name) && part_is(id, 1, short_names[i].sample_type) &&
            part_is(id, 2, short_names[i].unit))
            return worth;
    }
    /* Any other word is a sample type, as alloc_objects is, or a profile's name. */
    if (known || !*short_name)
        return 0;
    return part_is(id, 1, short_name) ? 2 : part_is(id, 0, short_name);
}

struct choice {
    const char *short_name;
    char best[QUERY_TYPE_BYTES];
    unsigned worth, equals;    /* how many types are as good as the best */
    struct buffer seen, equal; /* lists of ids */
};

static void list_id(struct buffer *list, const char *id)
{
    if (list->length < 250)
        buffer_printf(list, "%s%.100s", list->length ? ", " : "", id);
}

static int consider(void *context, const char *id)
{
    struct choice *choice = context;
    unsigned worth = query_type_fits(id, choice->short_name);
    if (worth > choice->worth && strlen(id) < sizeof(choice->best)) {
        choice->worth = worth;
        choice->equals = 0;
        choice->equal.length = 0;
        strcpy(choice->best, id);
    }
    if (worth && worth == choice->worth) {
        choice->equals++;
        list_id(&choice->equal, id);
    }
    list_id(&choice->seen, id);
    return 0;
}

int query_resolve(struct query *query, struct store *store, const struct store_selection *selection,
                  struct error *error)
{
    if (strchr(query->type, ':'))
        return 0;
    if (!*query->type)
        return error_set(error, -EINVAL,
                         "The query has no profile type; write it before the selector, as in "
                         "cpu{service_name=\"x\"}.");
    struct choice choice = {.short_name = query->type};
    struct store_selection untyped = *selection;
    untyped.type = NULL;
    untyped.selector = &query->selector;
    int r = store_types(store, &untyped, consider, &choice, error);
    if (!r && !choice.worth)
        r = error_set(error, -ENOENT,
                      "No data of the type \"%.100s\" for these labels and this time range%s%s.",
                      query->type, choice.seen.length ? "; available: " : "",
                      buffer_text(&choice.seen));
    if (!r && choice.equals > 1)
        r = error_set(error, -EINVAL, "\"%.100s\" matches %u types here; choose one: %s.",
                      query->type, choice.equals, buffer_text(&choice.equal));
    if (!r)
        strcpy(query->type, choice.best);
    buffer_release(&choice.seen);
    buffer_release(&choice.equal);
    return r;
}
