// SPDX-License-Identifier: Apache-2.0
// Memory by service for /metrics: see levels.h.

#include "agent/levels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "label/labels.h"

void levels_release(struct levels *levels)
{
    free(levels->rows);
    *levels = (struct levels){0};
}

static bool is_resident(const char *type)
{
    return !strcmp(type, "rss") || !strncmp(type, "rss_", 4);
}

static const char *service_of(const struct profile *profile, uint32_t label_set)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), LABEL_SERVICE_NAME))
            return profile_text(profile, labels[i].text);
    return "";
}

static void add(struct levels *levels, const char *service, const char *type, uint64_t bytes)
{
    struct level_row *row = levels->rows;
    char name[LEVELS_NAME_BYTES];
    snprintf(name, sizeof(name), "%s", service);
    while (row < levels->rows + levels->count &&
           (strcmp(row->service, name) != 0 || strcmp(row->type, type) != 0))
        row++;
    if (row == levels->rows + LEVELS_MAX)
        return;
    if (row == levels->rows + levels->count) {
        levels->count++;
        *row = (struct level_row){0};
        memcpy(row->service, name, sizeof(name));
        snprintf(row->type, sizeof(row->type), "%s", type);
    }
    row->bytes += bytes;
}

void levels_take(struct levels *levels, const struct profile *profile, int64_t now_ns)
{
    bool begun = false;
    for (unsigned type = 0; type < profile->type_count; type++) {
        const char *name = profile_text(profile, profile->types[type].type);
        if (!is_resident(name))
            continue;
        for (size_t row = 0; row < profile->samples.count; row++) {
            int64_t bytes = profile->samples.values[type][row];
            if (bytes <= 0)
                continue;
            if (!begun && !levels->rows)
                levels->rows = memory_alloc(LEVELS_MAX * sizeof(*levels->rows));
            if (!begun)
                levels->count = 0;
            begun = true;
            add(levels, service_of(profile, profile->samples.labels[row]), name, (uint64_t)bytes);
        }
    }
    if (begun)
        levels->taken_ns = now_ns;
}

void levels_write(const struct levels *levels, int64_t now_ns, struct buffer *out)
{
    if (!levels->taken_ns || now_ns - levels->taken_ns > LEVELS_STALE_NS)
        return;
    buffer_add_text(out, "# HELP assay_agent_service_memory_bytes Memory of sampled processes, by "
                         "service.\n# TYPE assay_agent_service_memory_bytes gauge\n");
    for (size_t i = 0; i < levels->count; i++) {
        buffer_add_text(out, "assay_agent_service_memory_bytes{service=\"");
        text_escape_metric(out, levels->rows[i].service);
        buffer_printf(out, "\",type=\"%s\"} %" PRIu64 "\n", levels->rows[i].type,
                      levels->rows[i].bytes);
    }
}
