// SPDX-License-Identifier: Apache-2.0
// Profile types as labels: see types.h.

#include "query/types.h"

#include <string.h>

#include "query/query.h"

#define WHOLE 5u

const char *const query_type_labels[QUERY_TYPE_LABELS] = {
    "__name__", "__period_type__", "__period_unit__", "__profile_type__", "__type__", "__unit__"};
static const unsigned parts[QUERY_TYPE_LABELS] = {0, 3, 4, WHOLE, 1, 2};

static unsigned find_label(const char *name)
{
    unsigned i = 0;
    while (i < QUERY_TYPE_LABELS && strcmp(query_type_labels[i], name))
        i++;
    return i;
}

const char *query_type_value(const char *id, const char *label, size_t *ret_length)
{
    unsigned found = find_label(label);
    if (found == QUERY_TYPE_LABELS)
        return NULL;
    if (parts[found] != WHOLE)
        return query_type_part(id, parts[found], ret_length);
    *ret_length = strlen(id);
    return id;
}

bool query_types_selected(const struct selector *selector)
{
    for (size_t i = 0; i < selector->count; i++)
        if (find_label(selector->matchers[i].name) < QUERY_TYPE_LABELS)
            return true;
    return false;
}

bool query_type_matches(const struct selector *selector, const char *id)
{
    for (size_t i = 0; i < selector->count; i++) {
        char value[QUERY_TYPE_BYTES];
        size_t length;
        const char *part = query_type_value(id, selector->matchers[i].name, &length);
        if (!part)
            continue;
        if (length >= sizeof(value))
            return false;
        memcpy(value, part, length);
        value[length] = 0;
        if (!matcher_matches(&selector->matchers[i], value))
            return false;
    }
    return true;
}

void query_types_settle(struct selector *selector)
{
    size_t kept = 0;
    for (size_t i = 0; i < selector->count; i++) {
        struct matcher *matcher = &selector->matchers[i];
        if (find_label(matcher->name) < QUERY_TYPE_LABELS)
            regex_free(matcher->regex);
        else
            selector->matchers[kept++] = *matcher;
    }
    selector->count = kept;
}
