// SPDX-License-Identifier: Apache-2.0
// Processes that a selection sees a part of. See witness.h.

#include "store/witness.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/cover.h"

void witnesses_release(struct witnesses *witnesses)
{
    free(witnesses->processes);
    id_table_release(&witnesses->index);
    *witnesses = (struct witnesses){0};
}

static bool find(const struct witnesses *witnesses, uint64_t process)
{
    struct id_probe probe = id_probe_start(process);
    uint32_t id;
    while ((id = id_table_next(&witnesses->index, &probe)) != ID_NONE)
        if (witnesses->processes[id] == process)
            return true;
    return false;
}

static bool is_split_by(const char *split, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = split; *at;) {
        size_t next = strcspn(at, LABEL_SPLIT_SEPARATOR);
        if (next == length && !memcmp(at, name, length))
            return true;
        at += next + (at[next] != 0);
    }
    return false;
}

/* A matcher on a label that samples brought, or that this series lacks and others may have. */
static bool is_part(const struct selector *selector, const struct labels *labels)
{
    const char *split = labels_get(labels, LABEL_SPLIT);
    for (size_t i = 0; selector && i < selector->count; i++) {
        const char *name = selector->matchers[i].name;
        if (!labels_get(labels, name) || (split && is_split_by(split, name)))
            return true;
    }
    return false;
}

void witnesses_note(struct witnesses *witnesses, const struct labels *labels)
{
    if (!is_part(witnesses->selector, labels))
        return;
    uint64_t process = cover_process(labels);
    if (find(witnesses, process))
        return;
    array_reserve(witnesses->processes, witnesses->capacity, witnesses->count + 1);
    witnesses->processes[witnesses->count] = process;
    id_table_insert(&witnesses->index, process, (uint32_t)witnesses->count++);
}

bool witnesses_has(const struct witnesses *witnesses, const struct labels *labels)
{
    return witnesses->count && find(witnesses, cover_process(labels));
}
