/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings out of a YAML tree. A reader of some section opens it, asks for the keys it knows, and
 * closes it; closing complains about keys that nobody asked for, and says which one was probably
 * meant. Complaints are collected, so that a user sees all of them at once:
 *
 *     struct settings section;
 *     settings_open(&section, problems, node, "limits");
 *     settings_size(&section, "memory", 1 << 20, UINT64_MAX, &options->memory_bytes);
 *     settings_duration(&section, "interval", 1000000000, INT64_MAX, &options->interval_ns);
 *     settings_close(&section);
 *     ...
 *     if (problems.count)
 *         fputs(buffer_text(&problems.text), stderr);
 *
 * A getter returns true when the key is there with a value that fits. Otherwise *ret is untouched,
 * so it holds the default beforehand. A key with no value is as one that isn't there. Texts are the
 * tree's and live as long as it.
 */
#pragma once

#include "base/buffer.h"
#include "config/yaml.h"

/* All that is wrong with a file, one line each: "file:line: sentence". */
struct problems {
    const char *file;
    struct buffer text;
    size_t count; /* beyond PROBLEMS_MAX they are counted only */
};
#define PROBLEMS_MAX 100

void problems_release(struct problems *problems);
/* `node` may be NULL: then without a line. The sentence without its full stop. */
void problems_add(struct problems *problems, const struct yaml_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As problems_add, with what a function said about it. */
void problems_add_error(struct problems *problems, const struct yaml_node *node,
                        const struct error *error);

struct settings {
    struct problems *problems;
    const struct yaml_node *map; /* NULL: nothing is there */
    const char *where;           /* for messages: "scrape_configs" */
    const char **asked;
    size_t asked_count, asked_capacity;
};

/* `node` may be NULL or empty, which is a section without keys. */
void settings_open(struct settings *settings, struct problems *problems,
                   const struct yaml_node *node, const char *where);
void settings_close(struct settings *settings);

bool settings_string(struct settings *settings, const char *key, const char **ret);
bool settings_bool(struct settings *settings, const char *key, bool *ret);
bool settings_u64(struct settings *settings, const char *key, uint64_t min, uint64_t max,
                  uint64_t *ret);
bool settings_double(struct settings *settings, const char *key, double min, double max,
                     double *ret);
bool settings_duration(struct settings *settings, const char *key, int64_t min_ns, int64_t max_ns,
                       int64_t *ret_ns);
bool settings_size(struct settings *settings, const char *key, uint64_t min, uint64_t max,
                   uint64_t *ret_bytes);
/* One of `count` words, in any case; *ret is its position. */
bool settings_choice(struct settings *settings, const char *key, const char *const *words,
                     size_t count, unsigned *ret);

/* NULL when it isn't there or something else, which is complained about. */
const struct yaml_node *settings_list(struct settings *settings, const char *key);
const struct yaml_node *settings_map(struct settings *settings, const char *key);
/* A list of texts: all values are scalars. */
const struct yaml_node *settings_strings(struct settings *settings, const char *key);
/* Any type of value. */
const struct yaml_node *settings_node(struct settings *settings, const char *key);
