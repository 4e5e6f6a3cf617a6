// SPDX-License-Identifier: Apache-2.0
// Users and cgroups that exceed a limit: see excess.h.

#include "capture/record/excess.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

#define KEPT_NS 300000000000ll

/* "0::/user.slice/x.scope": the cgroup of version 2, or else the first that is named. */
static void read_cgroup(uint32_t pid, char ret_path[CAPTURE_CGROUP_BYTES])
{
    char path[64], line[4096];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cgroup", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        const char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        bool unified = !strncmp(line, "0::", 3);
        if (second && (unified || !ret_path[0]))
            snprintf(ret_path, CAPTURE_CGROUP_BYTES, "%.*s", CAPTURE_CGROUP_BYTES - 1, second + 1);
        if (unified)
            break;
    }
    if (file)
        fclose(file);
    /* Cgroups can be called anything: this goes to logs, metrics and terminals as it is. */
    for (char *at = ret_path; *at; at++)
        if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\')
            *at = '_';
}

static struct excess_entry *find(struct excess_list *list, const struct capture_excess *excess)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct capture_excess *known = &list->list[i].excess;
        if (known->user == excess->user && !strcmp(known->what, excess->what) &&
            !strcmp(known->cgroup, excess->cgroup))
            return &list->list[i];
    }
    return NULL;
}

static struct excess_entry *make_room(struct excess_list *list)
{
    if (list->count < CAPTURE_EXCESS_MAX)
        return &list->list[list->count++];
    struct excess_entry *oldest = &list->list[0];
    for (size_t i = 1; i < list->count; i++)
        if (list->list[i].noted_ns < oldest->noted_ns)
            oldest = &list->list[i];
    return oldest;
}

void excess_note(struct excess_list *list, uint32_t pid, const char *what, uint64_t count,
                 int64_t now_ns)
{
    struct capture_excess excess = {.what = what, .user = CAPTURE_USER_UNKNOWN};
    struct stat found;
    char path[32];
    snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
    if (pid && stat(path, &found) == 0)
        excess.user = found.st_uid;
    if (pid)
        read_cgroup(pid, excess.cgroup);
    struct excess_entry *entry = find(list, &excess);
    if (!entry) {
        entry = make_room(list);
        entry->excess = excess;
    }
    entry->excess.count += count;
    entry->noted_ns = now_ns;
}

const char *excess_cgroup(const struct excess_list *list, const char *what, uint32_t user)
{
    const struct excess_entry *last = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct excess_entry *entry = &list->list[i];
        if (entry->excess.user == user && !strcmp(entry->excess.what, what) &&
            (!last || entry->noted_ns > last->noted_ns))
            last = entry;
    }
    return last ? last->excess.cgroup : "";
}

void excess_tidy(struct excess_list *list, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (now_ns - list->list[i].noted_ns < KEPT_NS)
            list->list[kept++] = list->list[i];
    list->count = kept;
}
