// SPDX-License-Identifier: Apache-2.0
// Labels of wall-clock time, within limits: see names.h.

#include "capture/wall/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "capture/record/vocabulary.h"

#define VALUES_MAX 64 /* distinct thread names of a service, and others that had a CPU */
/* Likewise in windows that a server stores, where each makes series. */
#define VALUES_MAX_SENT 16
#define BEYOND "other"
#define SERVICE_LABEL "service_name"
#define CGROUP_BYTES 256
#define OTHERS_MAX 4096 /* processes that are remembered for one profile */

/* Distinct names of threads that share their other labels. */
struct service {
    uint32_t labels;
    uint32_t names[VALUES_MAX]; /* strings of the profile */
    unsigned count;
};

/* A process that had a CPU while others waited for it. */
struct other {
    uint32_t pid;
    uint32_t name, cgroup; /* strings; cgroup 0: not known */
};

struct wall_names {
    struct recorder *recorder;
    struct service *services;
    size_t service_count, service_capacity;
    struct id_table service_index;
    struct other *others;
    size_t other_count, other_capacity;
    struct id_table other_index;
    uint32_t instead[VALUES_MAX];
    unsigned instead_count;
};

struct wall_names *wall_names_new(struct recorder *recorder)
{
    struct wall_names *names = memory_zalloc(1, sizeof(*names));
    names->recorder = recorder;
    return names;
}

void wall_names_free(struct wall_names *names)
{
    if (!names)
        return;
    free(names->services);
    free(names->others);
    id_table_release(&names->service_index);
    id_table_release(&names->other_index);
    free(names);
}

void wall_names_clear(struct wall_names *names)
{
    names->service_count = names->other_count = 0;
    names->instead_count = 0;
    id_table_clear(&names->service_index);
    id_table_clear(&names->other_index);
}

static uint32_t add_labels(struct profile *profile, uint32_t labels,
                           const struct profile_label *more, size_t more_count)
{
    struct profile_label list[PROFILE_LABELS_MAX];
    size_t count = 0;
    const struct profile_label *base = profile_labels(profile, labels, &count);
    count = MIN(count, (size_t)PROFILE_LABELS_MAX - more_count);
    if (count)
        memcpy(list, base, count * sizeof(*list));
    memcpy(list + count, more, more_count * sizeof(*list));
    return profile_label_set(profile, list, count + more_count);
}

uint32_t wall_names_add_state(struct wall_names *names, uint32_t labels, const char *state)
{
    struct profile *profile = names->recorder->profile;
    const struct profile_label label = {.key = profile_cstring(profile, "state"),
                                        .text = profile_cstring(profile, state)};
    return add_labels(profile, labels, &label, 1);
}

/* ---- threads ---- */

void wall_fold_digits(const char *name, char *ret_folded, size_t bytes)
{
    size_t used = 0;
    for (; *name && used + 1 < bytes; name++) {
        bool digit = isdigit((unsigned char)*name);
        if (digit && used && ret_folded[used - 1] == '#')
            continue;
        ret_folded[used++] = digit ? '#' : *name;
    }
    ret_folded[used] = '\0';
}

static struct service *find_service(struct wall_names *names, uint32_t labels)
{
    uint64_t hash = hash_word(labels);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&names->service_index, &probe)) != ID_NONE)
        if (names->services[id].labels == labels)
            return &names->services[id];
    array_reserve(names->services, names->service_capacity, names->service_count + 1);
    id_table_insert(&names->service_index, hash, (uint32_t)names->service_count);
    names->services[names->service_count] = (struct service){.labels = labels};
    return &names->services[names->service_count++];
}

/* The value itself, or the word for all that are beyond the limit. */
static uint32_t within(struct profile *profile, uint32_t values[VALUES_MAX], unsigned *count,
                       unsigned most, uint32_t value)
{
    for (unsigned i = 0; i < *count; i++)
        if (values[i] == value)
            return value;
    if (*count >= most)
        return profile_cstring(profile, BEYOND);
    values[(*count)++] = value;
    return value;
}

uint32_t wall_names_add_thread(struct wall_names *names, uint32_t labels, const char *comm)
{
    struct profile *profile = names->recorder->profile;
    char folded[32];
    wall_fold_digits(comm, folded, sizeof(folded));
    if (!folded[0])
        return labels;
    struct service *service = find_service(names, labels);
    const struct profile_label label = {
        .key = profile_cstring(profile, WALL_THREAD_LABEL),
        .text = within(profile, service->names, &service->count, VALUES_MAX,
                       profile_cstring(profile, folded)),
    };
    return add_labels(profile, labels, &label, 1);
}

/* ---- who ran instead ---- */

static uint32_t service_of(struct profile *profile, uint32_t labels)
{
    size_t count = 0;
    const struct profile_label *list = profile_labels(profile, labels, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, list[i].key), SERVICE_LABEL))
            return list[i].text;
    return 0;
}

/* Its cgroup in the hierarchy of version 2, or of the first there is. */
static bool read_cgroup(uint32_t pid, char ret_path[CGROUP_BYTES])
{
    char path[64], line[CGROUP_BYTES + 64];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        char *value = strchr(line, ':');
        value = value ? strchr(value + 1, ':') : NULL;
        if (!value)
            continue;
        value++;
        value[strcspn(value, "\n")] = '\0';
        found = !strncmp(line, "0::", 3);
        snprintf(ret_path, CGROUP_BYTES, "%s", value);
    }
    if (file)
        fclose(file);
    return found;
}

static uint32_t name_other(struct wall_names *names, uint32_t pid)
{
    struct recorder *recorder = names->recorder;
    struct profile *profile = recorder->profile;
    struct process *process = processes_get(&recorder->processes, pid);
    char name[32] = "", path[64];
    if (process && process->name[0]) {
        snprintf(name, sizeof(name), "%s", process->name);
    } else {
        _cleanup_buffer_ struct buffer content = {0};
        snprintf(path, sizeof(path), "/proc/%u/comm", pid);
        if (file_read(path, sizeof(name), &content, NULL) == 0)
            snprintf(name, sizeof(name), "%.*s", (int)strcspn((char *)content.data, "\n"),
                     (char *)content.data);
    }
    if (recorder->label && process) {
        struct recorder_sample sample = {.pid = pid, .tid = pid, .comm = name};
        uint32_t labels = recorder_labels(recorder, &sample);
        uint32_t service = labels == CAPTURE_UNWANTED ? 0 : service_of(profile, labels);
        if (service)
            return service;
    }
    char folded[32];
    wall_fold_digits(name, folded, sizeof(folded));
    return profile_cstring(profile, folded[0] ? folded : "[ended]");
}

static const struct other *find_other(struct wall_names *names, uint32_t pid)
{
    uint64_t hash = hash_word(pid);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&names->other_index, &probe)) != ID_NONE)
        if (names->others[id].pid == pid)
            return &names->others[id];
    if (names->other_count == OTHERS_MAX)
        return NULL;
    struct profile *profile = names->recorder->profile;
    char cgroup[CGROUP_BYTES] = "";
    bool sent = names->recorder->label;
    struct other other = {.pid = pid,
                          .name =
                              within(profile, names->instead, &names->instead_count,
                                     sent ? VALUES_MAX_SENT : VALUES_MAX, name_other(names, pid))};
    /* Where a service has a name, that says enough. */
    if (!sent && read_cgroup(pid, cgroup))
        other.cgroup = profile_cstring(profile, cgroup);
    array_reserve(names->others, names->other_capacity, names->other_count + 1);
    id_table_insert(&names->other_index, hash, (uint32_t)names->other_count);
    names->others[names->other_count] = other;
    return &names->others[names->other_count++];
}

void wall_names_note_other(struct wall_names *names, uint32_t pid)
{
    if (pid && names->recorder->profile)
        find_other(names, pid);
}

uint32_t wall_names_add_other(struct wall_names *names, uint32_t labels, uint32_t pid)
{
    struct profile *profile = names->recorder->profile;
    const struct other *other = find_other(names, pid);
    if (!other)
        return labels;
    const struct profile_label more[] = {
        {.key = profile_cstring(profile, WALL_INSTEAD_LABEL), .text = other->name},
        {.key = profile_cstring(profile, WALL_INSTEAD_CGROUP_LABEL), .text = other->cgroup},
    };
    return add_labels(profile, labels, more, other->cgroup ? 2 : 1);
}
