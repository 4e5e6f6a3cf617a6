// SPDX-License-Identifier: Apache-2.0
// Which parameters the API's addresses take. One that is misspelt would otherwise be left out
// without a word, and the answer be one to another query.

#include "server/handler/parameters.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define NAME_BYTES_MAX 64

/* The parameters of all queries about a selection. */
#define SELECTION "query from to"

static const struct {
    const char *pattern, *names;
    const char *method; /* NULL: all that the address has */
} known[] = {
    {"/api/v1/types", SELECTION},
    {"/api/v1/labels", SELECTION},
    {"/api/v1/label/*/values", SELECTION},
    {"/api/v1/series", SELECTION},
    {"/api/v1/flame", SELECTION " agg names focus format max_nodes span_id split trace_id"},
    {"/api/v1/profile", SELECTION " agg names focus format max_nodes span_id trace_id"},
    {"/api/v1/top", SELECTION TABLE_PARAMETERS " agg names span_id trace_id"},
    {"/api/v1/triage", SELECTION " format names"},
    {"/api/v1/lines", SELECTION " agg names function limit sort span_id trace_id"},
    {"/api/v1/callers", SELECTION " agg names function limit max_nodes span_id trace_id base_query "
                                  "base_from base_to normalize hide fold only recursion "
                                  "below above"},
    {"/api/v1/diff", SELECTION TABLE_PARAMETERS
     " agg names base_query base_from base_to normalize format max_nodes"},
    {"/api/v1/compare", SELECTION " names base_query base_from base_to normalize limit"},
    {"/api/v1/replicates", SELECTION " names"},
    {"/api/v1/baselines", "", "GET"},
    {"/api/v1/baselines", SELECTION " name part parts replace", "POST"},
    {"/api/v1/baselines/*", "part", "GET"},
    {"/api/v1/baselines/*", "", "DELETE"},
    {"/api/v1/cost", SELECTION " group_by limit names"},
    {"/api/v1/whatif", SELECTION " function faster count names"},
    {"/api/v1/explain", "service at window"},
    {"/api/v1/marks", "service from to", "GET"},
    {"/api/v1/marks", "", "POST"},
    {"/api/v1/views", ""},
    {"/api/v1/views/*", ""},
    {"/api/v1/notes", "service from to", "GET"},
    {"/api/v1/notes", "", "POST"},
    {"/api/v1/notes/*", ""},
    {"/api/v1/pins", "from to", "GET"},
    {"/api/v1/pins", "", "POST"},
    {"/api/v1/pins/*", ""},
    {"/api/v1/alerts", "service state"},
    {"/api/v1/slis", "name from to"},
    {"/api/v1/findings", "service state"},
    {"/api/v1/files/flame", "name names focus format max_nodes"},
    {"/api/v1/files/diff", SELECTION " base_query base_from base_to name base_name names normalize "
                                     "focus format max_nodes"},
    {"/api/v1/timeseries", SELECTION " agg step group_by limit function count"},
    {"/api/v1/exemplars", SELECTION " function limit span_id trace_id"},
    {"/api/v1/requests", SELECTION " band limit"},
    {"/api/v1/requests/flame", SELECTION " band type per max_nodes names"},
    {"/api/v1/senders", ""},
    {"/api/v1/targets", ""},
    {"/api/v1/admin/delete", SELECTION " dry_run"},
    {"/api/v1/admin/acknowledge", "file reason"},
    {"/api/v1/admin/retention/resume", "reason"},
    {"/api/v1/audit", "limit"},
    {"/api/v1/health", ""},
    {"/api/v1/status/buildinfo", ""},
    {"/api/v1/agents/report", ""},
    {"/api/v1/agents/orders", "agent"},
    {"/api/v1/agents", ""},
    {"/api/v1/control", ""},
    {"/api/v1/recordings", ""},
    {"/api/v1/recordings/*", ""},
    {"/api/v1/recordings/*/flame", "names focus format max_nodes"},
    {"/api/v1/debuginfo", "build_id name agent"},
    {"/api/v1/debuginfo/*", ""},
    {"/api/v1/sources", "build_id"},
    {"/api/v1/sources/*", ""},
    {"/api/v1/source", "build_id path"},
    {"/api/v1/source_links", SELECTION},
    {"/api/v1/symbols", ""},
    {"/api/v1/symbols/missing", SELECTION " limit"},
    {"/api/v1/symbols/*", ""},
    {"/api/v1/maps", "service version name"},
    {"/api/v1/maps/*", ""},
    {"/api/v1/openapi.json", ""},
    {"/api", ""},
};

const char *parameters_of(const char *method, const char *pattern)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (!strcmp(known[i].pattern, pattern) &&
            (!known[i].method || !strcmp(known[i].method, method)))
            return known[i].names;
    return NULL;
}

/* How many letters have to be added, taken out or replaced to get from one to the other. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[NAME_BYTES_MAX + 1];
    for (size_t i = 0; i <= b_length; i++)
        row[i] = i;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            size_t replaced = diagonal + (a[i - 1] != b[k - 1]);
            diagonal = row[k];
            row[k] = MIN(MIN(row[k] + 1, row[k - 1] + 1), replaced);
        }
    }
    return row[b_length];
}

static bool is_known(const char *names, const char *name, const char **ret_nearest,
                     size_t *ret_length)
{
    size_t length = strlen(name), best = SIZE_MAX;
    while (*names) {
        size_t count = strcspn(names, " ");
        if (count == length && !memcmp(names, name, count))
            return true;
        size_t far = length > NAME_BYTES_MAX ? length : distance(name, length, names, count);
        if (far < best) {
            best = far;
            *ret_nearest = names;
            *ret_length = count;
        }
        names += count + (names[count] == ' ');
    }
    return false;
}

bool parameters_known(struct http_request *request, const char *pattern)
{
    const char *names = parameters_of(http_request_method(request), pattern);
    for (size_t i = 0; names && i < http_request_query_count(request); i++) {
        const char *name, *value, *nearest = NULL;
        size_t length = 0;
        http_request_query_at(request, i, &name, &value);
        if (is_known(names, name, &nearest, &length))
            continue;
        if (nearest)
            http_respond_error(request, 400, "%s has no parameter \"%.60s\"; the closest is %.*s.",
                               http_request_path(request), name, (int)length, nearest);
        else
            http_respond_error(request, 400, "%s has no parameters.", http_request_path(request));
        return false;
    }
    return true;
}

int parameter_number(struct http_request *request, const char *name, uint64_t least, uint64_t most,
                     uint64_t *value, struct error *error)
{
    const char *text = http_request_query(request, name);
    uint64_t number;
    if (!text || !*text)
        return 0;
    if (!text_to_u64(text, strlen(text), &number) || number < least || number > most)
        return error_set(error, -EINVAL, "%s must be a number from %llu to %llu, not \"%.40s\".",
                         name, (unsigned long long)least, (unsigned long long)most, text);
    *value = number;
    return 0;
}

int parameter_word(struct http_request *request, const char *name, const char *const *words,
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
    error_set(error, -EINVAL, "%s must be %s, not \"%.40s\".", name, buffer_text(&list), text);
    buffer_release(&list);
    return -EINVAL;
}
