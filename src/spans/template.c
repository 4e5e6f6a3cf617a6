// SPDX-License-Identifier: Apache-2.0
// Templates of paths: see template.h.

#include "spans/template.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"

#define LONG_PART 32 /* bytes; with digits, such a part is a generated name */
#define LONG_RUN 4   /* decimal digits */
#define HASH_PART 8  /* hexadecimal digits, some of them decimal */

void template_rules_release(struct template_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        free((char *)rules->list[i]);
    free(rules->list);
    *rules = (struct template_rules){0};
}

int template_rules_add(struct template_rules *rules, const char *text, struct error *error)
{
    size_t length = strlen(text);
    if (rules->count == TEMPLATE_RULES_MAX)
        return error_set(error, -E2BIG, "There are more than %d templates of routes.",
                         TEMPLATE_RULES_MAX);
    if (*text != '/' || length >= TEMPLATE_BYTES)
        return error_set(error, -EINVAL,
                         "\"%.100s\" is not a template: write a path of at most %d bytes, such as "
                         "/user/{id}.",
                         text, TEMPLATE_BYTES - 1);
    rules->list = memory_resize(rules->list, rules->count + 1, sizeof(*rules->list));
    rules->list[rules->count++] = memory_strdup(text);
    return 0;
}

/* The length of the part that begins here: up to the next slash. */
static size_t part_length(const char *at, const char *end)
{
    const char *slash = memchr(at, '/', (size_t)(end - at));
    return (size_t)((slash ? slash : end) - at);
}

static bool is_placeholder(const char *part, size_t length)
{
    return length >= 2 && part[0] == '{' && part[length - 1] == '}';
}

static bool matches(const char *rule, const char *path, const char *end)
{
    const char *rule_end = rule + strlen(rule);
    for (;;) {
        if (rule == rule_end || path == end)
            return rule == rule_end && path == end;
        rule++; /* the slash of both */
        path++;
        size_t wanted = part_length(rule, rule_end), found = part_length(path, end);
        bool open = is_placeholder(rule, wanted);
        if (open && wanted > 5 && !memcmp(rule + wanted - 4, "...", 3))
            return rule + wanted == rule_end;
        if (open ? !found : wanted != found || memcmp(rule, path, found))
            return false;
        rule += wanted;
        path += found;
    }
}

static bool is_uuid(const char *part, size_t length)
{
    if (length != 36)
        return false;
    for (size_t i = 0; i < length; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? part[i] != '-' : hex_digit(part[i]) < 0)
            return false;
    return true;
}

/* NULL: the part looks like a name that somebody chose. */
static const char *placeholder(const char *part, size_t length)
{
    size_t digits = 0, hex = 0, run = 0, longest = 0;
    for (size_t i = 0; i < length; i++) {
        run = isdigit((unsigned char)part[i]) ? run + 1 : 0;
        longest = MAX(longest, run);
        digits += run > 0;
        hex += hex_digit(part[i]) >= 0;
    }
    if (is_uuid(part, length))
        return "{uuid}";
    if (digits && digits == length)
        return "{id}";
    if (digits && hex == length && length >= HASH_PART)
        return "{hash}";
    if (memchr(part, '@', length))
        return "{email}";
    /* order-12345, 2024-05-01, but not v1 or oauth2 */
    if (longest >= LONG_RUN || (digits >= 3 && digits * 2 >= length) ||
        (digits && length >= LONG_PART))
        return "{id}";
    return NULL;
}

static void fold(const char *path, const char *end, char text[TEMPLATE_BYTES])
{
    size_t at = 0;
    while (path < end && at + 1 < TEMPLATE_BYTES) {
        path++; /* the slash */
        size_t length = part_length(path, end);
        const char *instead = placeholder(path, length);
        int wrote =
            snprintf(text + at, TEMPLATE_BYTES - at, "/%.*s",
                     instead ? (int)strlen(instead) : (int)length, instead ? instead : path);
        at += (size_t)MAX(wrote, 0);
        path += length;
    }
}

/* https://host/path?query#fragment: where the path is. */
static const char *find_path(const char *text, const char **end)
{
    const char *at = text;
    while (at < *end && (isalnum((unsigned char)*at) || strchr("+-.", *at)) && *at)
        at++;
    if (*end - at > 3 && at > text && !memcmp(at, "://", 3)) {
        at += 3;
        while (at < *end && !strchr("/?#", *at))
            at++;
        text = at;
    }
    for (at = text; at < *end && *at && *at != '?' && *at != '#';)
        at++;
    *end = at;
    return text;
}

void template_of(const struct template_rules *rules, const char *path, size_t length,
                 char ret_text[TEMPLATE_BYTES])
{
    const char *end = path + length;
    path = find_path(path, &end);
    if (path == end || *path != '/') { /* not a path: as it is */
        snprintf(ret_text, TEMPLATE_BYTES, "%.*s", (int)MIN(end - path, TEMPLATE_BYTES - 1), path);
        return;
    }
    ret_text[0] = 0;
    for (size_t i = 0; rules && i < rules->count; i++)
        if (matches(rules->list[i], path, end)) {
            strcpy(ret_text, rules->list[i]);
            return;
        }
    fold(path, end, ret_text);
}
