/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates of paths: /user/123 is one of many requests to /user/{id}. Rules of the configuration
 * come first; then parts of a path that look generated become placeholders.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define TEMPLATE_BYTES 256 /* of a path or template, with its NUL; the rest is cut off */
#define TEMPLATE_RULES_MAX 256

/* Templates such as /user/{name}/posts: {x} matches one part, {x...} at the end any number of
 * parts. The first that matches is the path's template. */
struct template_rules {
    const char **list; /* owned, the texts too */
    size_t count;
};
void template_rules_release(struct template_rules *rules);

/* -EINVAL when the text can't be a template, -E2BIG when there are too many. */
int template_rules_add(struct template_rules *rules, const char *text, struct error *error);

/* The template of a path, or of a URL, of which the path counts; query and fragment are dropped.
 * `rules` may be NULL. */
void template_of(const struct template_rules *rules, const char *path, size_t length,
                 char ret_text[TEMPLATE_BYTES]);
