// SPDX-License-Identifier: Apache-2.0
// Which rollups are all that is left of their time: see outlived.h.

#include "store/embedded/outlived.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct slots {
    int64_t *list; /* ascending: files come in order of time */
    size_t count, capacity;
};

void time_spans_release(struct time_spans *spans)
{
    free(spans->list);
    *spans = (struct time_spans){0};
}

static int read_slots(struct file *file, int64_t from_ns, int64_t to_ns, struct slots *slots,
                      struct error *error)
{
    struct connection *connection = file_borrow(file, error);
    sqlite3_stmt *statement = connection ? file_sql(file, connection, SQL_SLOTS, error) : NULL;
    int r = statement ? 0 : error->code;
    if (statement) {
        sqlite3_bind_int64(statement, 1, from_ns);
        sqlite3_bind_int64(statement, 2, to_ns);
        while ((r = file_step(file, statement, error)) == 1) {
            array_reserve(slots->list, slots->capacity, slots->count + 1);
            slots->list[slots->count++] = sqlite3_column_int64(statement, 0);
        }
    }
    file_return(file, connection);
    return r;
}

static bool has_between(const struct slots *slots, int64_t from_ns, int64_t to_ns)
{
    size_t low = 0, high = slots->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slots->list[middle] < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < slots->count && slots->list[low] < to_ns;
}

static bool is_source(const struct file *source, const struct file *file)
{
    return source->tier < file->tier && !source->gone && !strcmp(source->tenant, file->tenant) &&
           !strcmp(source->class_name, file->class_name);
}

static bool has_raw(const struct file_list *list, const struct file *file, int64_t from_ns,
                    int64_t to_ns)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct file *raw = list->files[i];
        if (is_source(raw, file) && raw->tier == STORE_RAW &&
            MAX(raw->from_ns, raw->floor_ns) <= from_ns && raw->to_ns >= to_ns)
            return true;
    }
    return false;
}

static void add_span(struct time_spans *spans, int64_t from_ns, int64_t to_ns)
{
    if (spans->count && spans->list[spans->count - 1].to_ns == from_ns) {
        spans->list[spans->count - 1].to_ns = to_ns;
        return;
    }
    array_reserve(spans->list, spans->capacity, spans->count + 1);
    spans->list[spans->count++] = (struct time_span){.from_ns = from_ns, .to_ns = to_ns};
}

int outlived_spans(const struct file_list *list, struct file *file, int64_t from_ns, int64_t to_ns,
                   struct time_spans *ret_spans, struct error *error)
{
    struct slots own = {0}, finer[STORE_TIERS] = {0};
    int64_t slot = tier_slot_ns[file->tier];
    int64_t from = MAX(from_ns, file->from_ns) / slot * slot, to = MIN(to_ns, file->to_ns);
    int r = read_slots(file, from, to, &own, error);
    for (size_t i = 0; !r && own.count && i < list->count; i++) {
        struct file *source = list->files[i];
        if (is_source(source, file) && source->tier != STORE_RAW && source->from_ns < to + slot &&
            source->to_ns > from)
            r = read_slots(source, from, to + slot, &finer[source->tier], error);
    }
    for (size_t i = 0; !r && i < own.count; i++) {
        int64_t at = own.list[i];
        bool lives = has_raw(list, file, at, at + slot);
        for (unsigned tier = STORE_TEN_MINUTES; !lives && tier < file->tier; tier++)
            lives = has_between(&finer[tier], at, at + slot);
        if (!lives)
            add_span(ret_spans, at, at + slot);
    }
    free(own.list);
    for (unsigned tier = 0; tier < STORE_TIERS; tier++)
        free(finer[tier].list);
    return r;
}
