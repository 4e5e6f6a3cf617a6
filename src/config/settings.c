// SPDX-License-Identifier: Apache-2.0
// Settings by key, with complaints: see settings.h.

#include "config/settings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "config/quantity.h"

#define WORD_MAX 40 /* longer ones are not compared */

void problems_release(struct problems *problems)
{
    buffer_release(&problems->text);
    *problems = (struct problems){0};
}

void problems_add(struct problems *problems, const struct yaml_node *node, const char *format, ...)
{
    if (++problems->count > PROBLEMS_MAX)
        return;
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    const char *file = problems->file ? problems->file : "config";
    buffer_add_text(&problems->text, file);
    if (node)
        buffer_printf(&problems->text, ":%u", node->line);
    buffer_add_text(&problems->text, ": ");
    text_escape_terminal(&problems->text, sentence, strlen(sentence));
    size_t length = strlen(sentence);
    char last = length ? sentence[length - 1] : '\0';
    buffer_add_text(&problems->text, last == '?' || last == '.' ? "\n" : ".\n");
}

void problems_add_error(struct problems *problems, const struct yaml_node *node,
                        const struct error *error)
{
    problems_add(problems, node, "%s", error->text);
}

void settings_open(struct settings *settings, struct problems *problems,
                   const struct yaml_node *node, const char *where)
{
    *settings = (struct settings){.problems = problems, .where = where};
    if (!node || node->kind == YAML_NULL)
        return;
    if (node->kind == YAML_MAP)
        settings->map = node;
    else
        problems_add(problems, node, "%s must be a map of keys and values", where);
}

/* How many characters have to be changed, added, removed or swapped with their neighbour. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1], a_length = strlen(a), b_length = strlen(b);
    if (a_length > WORD_MAX || b_length > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = MIN(change, MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = MIN(row[j], second[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

/* The word that was probably meant, or NULL. */
static const char *closest(const char *word, const char *const *words, size_t count)
{
    const char *best = NULL;
    size_t least = MAX(strlen(word) / 3, (size_t)1) + 1;
    for (size_t i = 0; i < count; i++) {
        size_t changes = distance(word, words[i]);
        if (changes < least) {
            least = changes;
            best = words[i];
        }
    }
    return best;
}

static void complain_unknown(struct settings *settings, const struct yaml_node *key)
{
    const char *meant = closest(key->text, settings->asked, settings->asked_count);
    if (meant)
        problems_add(settings->problems, key, "%s has no key \"%.100s\": did you mean \"%s\"?",
                     settings->where, key->text, meant);
    else
        problems_add(settings->problems, key, "%s has no key \"%.100s\"", settings->where,
                     key->text);
}

void settings_close(struct settings *settings)
{
    for (size_t i = 0; settings->map && i < settings->map->count; i++) {
        const struct yaml_node *key = settings->map->keys[i];
        size_t asked = 0;
        while (asked < settings->asked_count && strcmp(settings->asked[asked], key->text) != 0)
            asked++;
        if (asked == settings->asked_count)
            complain_unknown(settings, key);
    }
    free(settings->asked);
    *settings = (struct settings){0};
}

const struct yaml_node *settings_node(struct settings *settings, const char *key)
{
    array_reserve(settings->asked, settings->asked_capacity, settings->asked_count + 1);
    settings->asked[settings->asked_count++] = key;
    const struct yaml_node *node = settings->map ? yaml_node_get(settings->map, key) : NULL;
    return node && node->kind != YAML_NULL ? node : NULL;
}

static const struct yaml_node *of_kind(struct settings *settings, const char *key,
                                       enum yaml_kind kind, const char *words)
{
    const struct yaml_node *node = settings_node(settings, key);
    if (!node || node->kind == kind)
        return node;
    problems_add(settings->problems, node, "\"%s\" of %s must be %s", key, settings->where, words);
    return NULL;
}

const struct yaml_node *settings_list(struct settings *settings, const char *key)
{
    return of_kind(settings, key, YAML_LIST, "a list");
}

const struct yaml_node *settings_map(struct settings *settings, const char *key)
{
    return of_kind(settings, key, YAML_MAP, "a map of keys and values");
}

const struct yaml_node *settings_strings(struct settings *settings, const char *key)
{
    const struct yaml_node *list = of_kind(settings, key, YAML_LIST, "a list of strings");
    for (size_t i = 0; list && i < list->count; i++)
        if (list->values[i]->kind != YAML_SCALAR) {
            problems_add(settings->problems, list->values[i],
                         "\"%s\" of %s must be a list of strings: entry %zu is not a string", key,
                         settings->where, i + 1);
            return NULL;
        }
    return list;
}

static const struct yaml_node *scalar(struct settings *settings, const char *key, const char *words)
{
    return of_kind(settings, key, YAML_SCALAR, words);
}

static bool complain(struct settings *settings, const struct yaml_node *node, const char *key,
                     const char *words)
{
    problems_add(settings->problems, node, "\"%s\" of %s must be %s, not \"%.100s\"", key,
                 settings->where, words, node->text);
    return false;
}

bool settings_string(struct settings *settings, const char *key, const char **ret)
{
    const struct yaml_node *node = scalar(settings, key, "a text");
    if (node)
        *ret = node->text;
    return node;
}

bool settings_bool(struct settings *settings, const char *key, bool *ret)
{
    const struct yaml_node *node = scalar(settings, key, "true or false");
    if (node && !quantity_bool(node->text, ret))
        return complain(settings, node, key, "true or false");
    return node;
}

bool settings_u64(struct settings *settings, const char *key, uint64_t min, uint64_t max,
                  uint64_t *ret)
{
    const struct yaml_node *node = scalar(settings, key, "a number");
    uint64_t value;
    if (!node)
        return false;
    if (!text_to_u64(node->text, strlen(node->text), &value) || value < min || value > max) {
        char words[100] = "a whole number";
        if (max == UINT64_MAX && min)
            snprintf(words, sizeof(words), "a whole number, at least %" PRIu64, min);
        else if (max != UINT64_MAX)
            snprintf(words, sizeof(words), "a whole number from %" PRIu64 " to %" PRIu64, min, max);
        return complain(settings, node, key, words);
    }
    *ret = value;
    return true;
}

bool settings_double(struct settings *settings, const char *key, double min, double max,
                     double *ret)
{
    const struct yaml_node *node = scalar(settings, key, "a number");
    double value;
    if (!node)
        return false;
    if (!text_to_double(node->text, &value) || !(value >= min && value <= max)) {
        char words[100];
        snprintf(words, sizeof(words), "a number from %g to %g", min, max);
        return complain(settings, node, key, words);
    }
    *ret = value;
    return true;
}

bool settings_duration(struct settings *settings, const char *key, int64_t min_ns, int64_t max_ns,
                       int64_t *ret_ns)
{
    const struct yaml_node *node = scalar(settings, key, "a duration");
    int64_t value;
    if (!node)
        return false;
    if (!quantity_duration(node->text, &value))
        return complain(settings, node, key, "a duration like 10s, 5m or 1h30m");
    if (value < min_ns || value > max_ns) {
        char words[100];
        snprintf(words, sizeof(words), "a duration from %g s to %g s", (double)min_ns / 1e9,
                 (double)max_ns / 1e9);
        return complain(settings, node, key, words);
    }
    *ret_ns = value;
    return true;
}

bool settings_size(struct settings *settings, const char *key, uint64_t min, uint64_t max,
                   uint64_t *ret_bytes)
{
    const struct yaml_node *node = scalar(settings, key, "a size");
    uint64_t value;
    if (!node)
        return false;
    if (!quantity_size(node->text, &value))
        return complain(settings, node, key, "a size like 64KiB, 256MiB or 2GiB");
    if (value < min || value > max) {
        char words[120];
        snprintf(words, sizeof(words), "a size from %" PRIu64 " to %" PRIu64 " bytes", min, max);
        return complain(settings, node, key, words);
    }
    *ret_bytes = value;
    return true;
}

bool settings_choice(struct settings *settings, const char *key, const char *const *words,
                     size_t count, unsigned *ret)
{
    const struct yaml_node *node = scalar(settings, key, "a word");
    if (!node)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(node->text, words[i])) {
            *ret = (unsigned)i;
            return true;
        }
    _cleanup_buffer_ struct buffer list = {0};
    buffer_add_text(&list, "one of ");
    for (size_t i = 0; i < count; i++)
        buffer_printf(&list, "%s%s", i ? ", " : "", words[i]);
    return complain(settings, node, key, buffer_text(&list));
}
