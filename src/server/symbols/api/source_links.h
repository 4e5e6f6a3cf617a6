/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of source lines in a repository's web pages, made of a template that the configuration
 * has for a service: https://host/project/blob/{commit}/{path}#L{line}. What is put in is escaped,
 * and the host is the template's own.
 */
#pragma once

#include "base/buffer.h"
#include "config/settings.h"
#include "label/labels.h"

#define SOURCE_LINKS_MAX 64

/* Texts and lists are the configuration's. */
struct source_link {
    const char *url;
    const char *commit;                    /* where no label says; NULL: none */
    const struct yaml_node *services;      /* patterns; NULL: all */
    const struct yaml_node *strip;         /* what paths begin with that isn't the repository's */
    const struct yaml_node *commit_labels; /* NULL: the usual ones */
};

/* The key source_links; what is wrong is added to the problems. The caller frees the array. */
struct source_link *source_links_read(struct settings *settings, size_t *ret_count);

/* NULL, or what is wrong with a template. */
const char *source_link_problem(const char *url);

bool source_link_is_for(const struct source_link *link, const char *service);

/* The commit of a series; NULL: neither its labels nor the configuration have one, or it isn't a
 * valid commit. */
const char *source_link_commit(const struct source_link *link, const struct labels *labels);

/* The template with its commit, which may be NULL. {path} and {line} stay. False: it needs one. */
bool source_link_fill(const struct source_link *link, const char *commit, struct buffer *out);
