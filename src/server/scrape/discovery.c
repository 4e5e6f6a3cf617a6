// SPDX-License-Identifier: Apache-2.0
// From groups of addresses to targets, and files that change: see discovery.h.

#include "server/scrape/discovery.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/scrape/discovery_remote.h"

#define PARAM_LABEL "__param_"

void discovered_release(struct discovered *target)
{
    free(target->base);
    free(target->query);
    labels_release(&target->labels);
    *target = (struct discovered){0};
}

/* ---- targets ---- */

static void set_own_labels(const struct scrape_job *job, const char *address, struct labels *labels)
{
    char text[300];
    labels_set(labels, "__address__", address);
    labels_set(labels, "__scheme__", job->scheme);
    labels_set(labels, "__profile_path_prefix__", job->path_prefix);
    labels_set(labels, "job", job->name);
    for (size_t i = 0; i < job->param_count; i++)
        if (job->params[i].count) {
            snprintf(text, sizeof(text), PARAM_LABEL "%.250s", job->params[i].name);
            labels_set(labels, text, job->params[i].values[0]);
        }
}

static bool is_address(const char *text)
{
    for (const char *c = text; *c; c++)
        if (isspace((unsigned char)*c) || iscntrl((unsigned char)*c) || strchr("/?#@\\\"", *c))
            return false;
    return *text && *text != ':';
}

static void add_escaped(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-_.~", c))
            buffer_add_char(out, (char)c);
        else
            buffer_printf(out, "%%%02X", c);
    }
}

static void add_param(struct buffer *out, const char *name, const char *value)
{
    if (out->length)
        buffer_add_char(out, '&');
    add_escaped(out, name);
    buffer_add_char(out, '=');
    add_escaped(out, value);
}

/* Labels decide on the first value of each parameter; further values are as configured. */
static char *make_query(const struct scrape_job *job, const struct labels *labels)
{
    struct buffer out = {0};
    size_t prefix = strlen(PARAM_LABEL);
    for (size_t i = 0; i < labels->count; i++)
        if (!strncmp(labels->list[i].name, PARAM_LABEL, prefix))
            add_param(&out, labels->list[i].name + prefix, labels->list[i].value);
    for (size_t i = 0; i < job->param_count; i++)
        for (size_t k = 1; k < job->params[i].count; k++)
            add_param(&out, job->params[i].name, job->params[i].values[k]);
    buffer_text(&out);
    return out.data;
}

/* The labels for the store: those without leading underscores, and a service. */
static void finish_labels(const struct scrape_job *job, struct labels *labels)
{
    if (!labels_get(labels, "instance"))
        labels_set(labels, "instance", labels_get(labels, "__address__"));
    for (size_t i = labels->count; i > 0; i--)
        if (!strncmp(labels->list[i - 1].name, "__", 2))
            labels_remove(labels, labels->list[i - 1].name);
    if (!labels_get(labels, LABEL_SERVICE_NAME)) {
        const char *name = labels_get(labels, "job");
        labels_set(labels, LABEL_SERVICE_NAME, name ? name : job->name);
    }
}

int discovery_target(const struct scrape_job *job, const struct target_group *group,
                     const char *address, struct discovered *ret_target, struct error *error)
{
    struct discovered target = {0};
    set_own_labels(job, address, &target.labels);
    for (size_t i = 0; i < group->labels.count; i++)
        labels_set(&target.labels, group->labels.list[i].name, group->labels.list[i].value);
    if (!relabel_apply(&job->relabel, &target.labels)) {
        discovered_release(&target);
        return 0;
    }
    const char *place = labels_get(&target.labels, "__address__");
    const char *scheme = labels_get(&target.labels, "__scheme__");
    const char *prefix = labels_get(&target.labels, "__profile_path_prefix__");
    if (!place || !is_address(place) || !scheme ||
        (strcmp(scheme, "http") && strcmp(scheme, "https"))) {
        int r = error_set(error, -EINVAL,
                          "The job \"%.60s\" can't scrape \"%.100s\": a target must be host:port, "
                          "with the scheme http or https.",
                          job->name, place ? place : "");
        discovered_release(&target);
        return r;
    }
    struct buffer base = {0};
    buffer_printf(&base, "%s://%s", scheme, place);
    if (prefix)
        buffer_printf(&base, "%s%s", *prefix == '/' ? "" : "/", prefix);
    while (base.length && base.data[base.length - 1] == '/')
        base.length--;
    buffer_text(&base);
    target.base = base.data;
    target.query = make_query(job, &target.labels);
    finish_labels(job, &target.labels);
    *ret_target = target;
    return 1;
}

/* ---- files ---- */

static void file_release(struct discovery_file *file)
{
    free(file->path);
    target_groups_release(&file->groups);
}

void discovery_release(struct discovery *discovery)
{
    for (size_t i = 0; i < discovery->count; i++)
        file_release(&discovery->files[i]);
    free(discovery->files);
    free(discovery->job);
    *discovery = (struct discovery){0};
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool look_at(struct discovery_file *file)
{
    struct stat now;
    struct target_groups groups = {0};
    struct error error = {0};
    file->there = true;
    if (stat(file->path, &now) < 0) {
        file->there = false;
        return true;
    }
    if (same_file(&now, &file->seen))
        return false;
    file->seen = now;
    file->broken = target_groups_read_file(file->path, &groups, &error) < 0;
    if (file->broken) {
        log_error("%s Keeping the previous targets.", error.text);
        return false;
    }
    target_groups_release(&file->groups);
    file->groups = groups;
    return true;
}

static struct discovery_file *find_file(struct discovery *discovery, const char *path)
{
    for (size_t i = 0; i < discovery->count; i++)
        if (!strcmp(discovery->files[i].path, path))
            return &discovery->files[i];
    if (discovery->count == DISCOVERY_FILES_MAX)
        return NULL;
    array_reserve(discovery->files, discovery->capacity, discovery->count + 1);
    struct discovery_file *file = &discovery->files[discovery->count++];
    *file = (struct discovery_file){.path = memory_strdup(path)};
    return file;
}

static bool look_at_remote(struct discovery_file *file, const struct scrape_job *job,
                           const struct scrape_remote *remote)
{
    struct target_groups groups = {0};
    struct error error = {0};
    int64_t now_ns = monotonic_ns();
    file->there = true;
    if (now_ns < file->next_ns)
        return false;
    int r = remote_look(remote, &groups, &error);
    file->next_ns = monotonic_ns() + remote->refresh_ns;
    if (r < 0) {
        if (!file->broken)
            log_error("Failed to find targets of the job \"%.60s\"; keeping the previous ones: %s",
                      job->name, error.text);
        file->broken = true;
        return false;
    }
    uint64_t hash = target_groups_hash(&groups);
    bool changed = hash != file->hash;
    target_groups_release(&file->groups);
    file->groups = groups;
    file->hash = hash;
    file->broken = false;
    return changed;
}

static bool look_at_remotes(struct discovery *discovery, const struct scrape_job *job)
{
    static const char *const kinds[] = {"http", "A", "AAAA", "SRV", "pods"};
    bool changed = false;
    for (size_t i = 0; i < job->remote_count; i++) {
        const struct scrape_remote *remote = &job->remotes[i];
        struct buffer name = {0};
        buffer_printf(&name, "%s %s %u", kinds[remote->kind], remote->name, remote->port);
        struct discovery_file *file = find_file(discovery, buffer_text(&name));
        if (file && !file->there)
            changed |= look_at_remote(file, job, remote);
        buffer_release(&name);
    }
    return changed;
}

bool discovery_look(struct discovery *discovery, const struct scrape_job *job)
{
    bool changed = false;
    for (size_t i = 0; i < discovery->count; i++)
        discovery->files[i].there = false;
    for (size_t i = 0; i < job->file_count; i++) {
        glob_t found = {0};
        if (glob(job->files[i], 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++) {
                struct discovery_file *file = find_file(discovery, found.gl_pathv[k]);
                if (file && !file->there)
                    changed |= look_at(file);
            }
        globfree(&found);
    }
    changed |= look_at_remotes(discovery, job);
    for (size_t i = discovery->count; i > 0; i--) {
        struct discovery_file *file = &discovery->files[i - 1];
        if (file->there)
            continue;
        file_release(file);
        *file = discovery->files[--discovery->count];
        changed = true;
    }
    return changed;
}
