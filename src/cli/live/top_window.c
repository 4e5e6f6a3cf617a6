// SPDX-License-Identifier: Apache-2.0
// Counting over a sliding window: see top_window.h. Nothing but the slices is kept between
// refreshes, so that addresses without names cannot pile up; functions of all slices meet in the
// interning tables of a scratch profile, which also holds the strings of the result.

#include "cli/live/top_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "profile/naming.h"

#define KERNEL_FILE "[kernel.kallsyms]" /* what captures call it */
#define KERNEL_BINARY "[kernel]"

struct top_slice *top_slice_new(enum profile_detail detail)
{
    struct top_slice *slice = memory_zalloc(1, sizeof(*slice));
    profile_init(&slice->profile, detail);
    return slice;
}

void top_slice_free(struct top_slice *slice)
{
    if (!slice)
        return;
    profile_release(&slice->profile);
    free(slice);
}

static void drop_oldest(struct top_window *window)
{
    top_slice_free(window->slices[0]);
    window->count--;
    memmove(window->slices, window->slices + 1, window->count * sizeof(window->slices[0]));
}

/* True when all but the oldest slice fill the window already. */
static bool too_long(const struct top_window *window)
{
    int64_t duration_ns = 0;
    uint64_t nodes = 0;
    for (size_t i = 0; i < window->count; i++) {
        duration_ns += window->slices[i]->duration_ns;
        nodes += window->slices[i]->profile.node_count;
    }
    /* Half a slice of tolerance: refreshes are never exactly as long as they should be. */
    int64_t oldest_ns = window->slices[0]->duration_ns;
    return nodes > TOP_NODES_MAX || duration_ns - oldest_ns / 2 > window->duration_ns;
}

void top_window_add(struct top_window *window, struct top_slice *slice)
{
    if (window->count == TOP_SLICES_MAX)
        drop_oldest(window);
    window->slices[window->count++] = slice;
    while (window->count > 1 && too_long(window))
        drop_oldest(window);
}

void top_window_clear(struct top_window *window)
{
    while (window->count)
        drop_oldest(window);
}

/* A slice with what its frames are called in the table's scratch profile: function ids there, and 0
 * for frames that the query hides. */
struct named_slice {
    const struct profile *profile;
    const int64_t *cpu_ns;
    const int64_t *samples;
    uint32_t *function_of; /* by frame id */
};

/* One pass over a window. */
struct scan {
    const struct top_query *query;
    struct top_table *table;
    struct named_slice slices[TOP_SLICES_MAX];
    size_t slice_count;
    uint32_t kernel_only; /* the function of stacks that have hidden frames alone */
    uint32_t empty;       /* that of stacks without any */
    uint32_t wanted;      /* the function whose neighbours are shown */
    struct top_row *rows; /* by function id */
    uint32_t *stamp;      /* by function id: the last sample that counted for it */
    uint32_t sample;
};

void top_table_release(struct top_table *table)
{
    if (table->names.tables)
        profile_release(&table->names);
    free(table->rows);
    *table = (struct top_table){0};
}

static uint32_t function_id(struct profile *names, const char *name, const char *binary)
{
    struct profile_function function = {.name = profile_cstring(names, name),
                                        .file = profile_cstring(names, binary)};
    return profile_function(names, &function);
}

static uint32_t name_frame(struct profile *names, const struct profile *profile,
                           const struct profile_frame *frame)
{
    const struct profile_function *function = &profile->functions[frame->function];
    const char *binary = path_base(profile_text(profile, profile->mappings[frame->mapping].file));
    const char *name =
        profile_text(profile, function->name ? function->name : function->system_name);
    char address[300];
    if (!strcmp(binary, KERNEL_FILE))
        binary = KERNEL_BINARY;
    if (!*name) {
        snprintf(address, sizeof(address), "%.255s%s0x%llx", binary, *binary ? "+" : "",
                 (unsigned long long)frame->address);
        name = address;
    }
    return function_id(names, name, binary);
}

static bool is_kernel(const struct profile_frame *frame)
{
    return frame->kind == FRAME_KERNEL;
}

static const int64_t *column_of(const struct profile *profile, const char *type)
{
    unsigned index = profile_find_type(profile, type);
    return index == PROFILE_TYPES_MAX ? NULL : profile->samples.values[index];
}

static void name_slice(struct scan *scan, const struct profile *profile)
{
    struct named_slice named = {.profile = profile,
                                .cpu_ns = column_of(profile, "cpu"),
                                .samples = column_of(profile, "samples")};
    if (!named.cpu_ns || !named.samples)
        return;
    named.function_of = memory_zalloc(profile->frame_count, sizeof(uint32_t));
    for (uint32_t frame = 1; frame < profile->frame_count; frame++)
        if (!scan->query->no_kernel || !is_kernel(&profile->frames[frame]))
            named.function_of[frame] =
                name_frame(&scan->table->names, profile, &profile->frames[frame]);
    scan->slices[scan->slice_count++] = named;
}

/* The newest kind of loss, and how much of it there was. */
static void note_loss(struct top_table *table, const struct top_slice *slice)
{
    if (!slice->loss[0])
        return;
    if (strcmp(table->loss, slice->loss))
        table->loss_count = 0;
    table->loss = profile_text(&table->names, profile_cstring(&table->names, slice->loss));
    table->loss_count += slice->loss_count;
}

/* `wanted` and `binary` are the function whose neighbours are shown, or NULL. */
static void scan_begin(struct scan *scan, const struct top_window *window,
                       const struct top_query *query, const char *wanted, const char *binary,
                       struct top_table *table)
{
    *scan = (struct scan){.query = query, .table = table};
    *table = (struct top_table){.loss = ""};
    profile_init(&table->names, 0);
    struct profile *names = &table->names;
    scan->kernel_only = function_id(names, KERNEL_BINARY, "");
    scan->empty = function_id(names, "[unknown]", "");
    if (wanted)
        scan->wanted = function_id(names, wanted, binary);
    for (size_t i = 0; i < window->count; i++) {
        const struct top_slice *slice = window->slices[i];
        table->duration_ns += slice->duration_ns;
        table->lost += slice->lost;
        note_loss(table, slice);
        name_slice(scan, &slice->profile);
    }
    scan->rows = memory_zalloc(names->function_count, sizeof(*scan->rows));
    scan->stamp = memory_zalloc(names->function_count, sizeof(*scan->stamp));
    scan->rows[scan->kernel_only].kernel = true;
    for (size_t i = 0; i < scan->slice_count; i++)
        for (uint32_t frame = 1; frame < scan->slices[i].profile->frame_count; frame++)
            if (is_kernel(&scan->slices[i].profile->frames[frame]))
                scan->rows[scan->slices[i].function_of[frame]].kernel = true;
}

static void scan_end(struct scan *scan)
{
    for (size_t i = 0; i < scan->slice_count; i++)
        free(scan->slices[i].function_of);
    free(scan->rows);
    free(scan->stamp);
}

static uint32_t pid_of(const struct profile *profile, uint32_t label_set, uint32_t pid_key)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (labels[i].key == pid_key && labels[i].number > 0 && labels[i].number <= INT32_MAX)
            return (uint32_t)labels[i].number;
    return 0;
}

/* The id of a string that a profile has, without adding it: 0 when it has none. */
static uint32_t find_string(const struct profile *profile, const char *text)
{
    for (uint32_t i = 1; i < profile->string_count; i++)
        if (!strcmp(profile_text(profile, i), text))
            return i;
    return 0;
}

/* A sample that the query is about: functions of its stack, innermost first, without hidden ones
 * and without the process that it begins with. */
struct top_sample {
    const uint32_t *functions;
    size_t depth;
    int64_t cpu_ns;
    uint32_t pid;
    uint32_t process; /* the frame that the stack begins with, in the slice's profile */
};

typedef void (*sample_fn)(struct scan *scan, const struct named_slice *slice,
                          const struct top_sample *sample, void *context);

static void walk(struct scan *scan, const struct named_slice *slice, uint32_t node,
                 uint32_t **functions, size_t *capacity, struct top_sample *sample)
{
    const struct profile_node *nodes = slice->profile->nodes;
    bool hidden = false;
    for (; node; node = nodes[node].parent) {
        if (!nodes[node].parent) {
            sample->process = nodes[node].frame;
            break;
        }
        uint32_t function = slice->function_of[nodes[node].frame];
        hidden |= !function;
        if (!function)
            continue;
        array_reserve(*functions, *capacity, sample->depth + 1);
        (*functions)[sample->depth++] = function;
    }
    if (!sample->depth) {
        array_reserve(*functions, *capacity, 1);
        (*functions)[sample->depth++] = hidden ? scan->kernel_only : scan->empty;
    }
    sample->functions = *functions;
}

static void each_sample(struct scan *scan, uint32_t pid, sample_fn visit, void *context)
{
    _cleanup_free_ uint32_t *functions = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < scan->slice_count; i++) {
        const struct named_slice *slice = &scan->slices[i];
        const struct profile_samples *samples = &slice->profile->samples;
        uint32_t pid_key = find_string(slice->profile, "pid");
        for (size_t row = 0; row < samples->count; row++) {
            struct top_sample sample = {.cpu_ns = slice->cpu_ns[row],
                                        .pid =
                                            pid_of(slice->profile, samples->labels[row], pid_key)};
            if (pid && sample.pid != pid)
                continue;
            scan->sample++;
            scan->table->whole_ns = add_saturated(scan->table->whole_ns, sample.cpu_ns);
            scan->table->samples += (uint64_t)slice->samples[row];
            walk(scan, slice, samples->node[row], &functions, &capacity, &sample);
            visit(scan, slice, &sample, context);
        }
    }
}

static void add(int64_t *cell, int64_t value)
{
    *cell = add_saturated(*cell, value);
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct top_row *x = a, *y = b;
    int self = x->self_ns > y->self_ns ? -1 : x->self_ns < y->self_ns;
    int total = x->total_ns > y->total_ns ? -1 : x->total_ns < y->total_ns;
    bool by_self = *(const enum top_order *)context == TOP_BY_SELF;
    if (self || total)
        return (by_self && self) || !total ? self : total;
    int names = strcmp(x->name, y->name);
    if (!names)
        names = strcmp(x->binary, y->binary);
    return names ? names : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void sort_rows(struct top_row *rows, size_t count, enum top_order order)
{
    if (count)
        qsort_r(rows, count, sizeof(*rows), compare_rows, &order);
}

static bool passes(const struct top_row *row, const char *filter)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%u", row->pid);
    return !filter || !*filter || strcasestr(row->name, filter) ||
           strcasestr(row->binary, filter) || (row->pid && !strcmp(pid, filter));
}

static void apply_filter(struct top_table *table, const char *filter)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++)
        if (passes(&table->rows[i], filter))
            table->rows[kept++] = table->rows[i];
    table->hidden = table->count - kept;
    table->count = kept;
}

static void name_row(const struct profile *names, uint32_t function, struct top_row *row)
{
    row->name = profile_text(names, names->functions[function].name);
    row->binary = profile_text(names, names->functions[function].file);
}

/* Rows with a total, from an array by function id. */
static void keep_rows(struct scan *scan, struct top_row *rows, enum top_relation relation)
{
    struct top_table *table = scan->table;
    size_t capacity = table->count, added = 0;
    for (uint32_t i = 1; i < table->names.function_count; i++)
        added += rows[i].total_ns != 0;
    array_reserve(table->rows, capacity, table->count + added);
    for (uint32_t i = 1; i < table->names.function_count; i++) {
        if (!rows[i].total_ns)
            continue;
        struct top_row row = rows[i];
        row.relation = relation;
        row.kernel = scan->rows[i].kernel;
        name_row(&table->names, i, &row);
        table->rows[table->count++] = row;
    }
}

static void count_function(struct scan *scan, const struct named_slice *slice,
                           const struct top_sample *sample, void *context)
{
    (void)slice, (void)context;
    add(&scan->rows[sample->functions[0]].self_ns, sample->cpu_ns);
    for (size_t i = 0; i < sample->depth; i++) {
        uint32_t function = sample->functions[i];
        if (scan->stamp[function] == scan->sample)
            continue;
        scan->stamp[function] = scan->sample;
        add(&scan->rows[function].total_ns, sample->cpu_ns);
    }
}

void top_functions(const struct top_window *window, const struct top_query *query,
                   struct top_table *ret_table)
{
    struct scan scan;
    scan_begin(&scan, window, query, NULL, NULL, ret_table);
    each_sample(&scan, query->pid, count_function, NULL);
    keep_rows(&scan, scan.rows, TOP_ITSELF);
    scan_end(&scan);
    sort_rows(ret_table->rows, ret_table->count, query->order);
    apply_filter(ret_table, query->filter);
}

/* Processes by pid, in the order in which they are first seen. */
struct process_rows {
    struct top_row *rows;
    size_t count, capacity;
    struct id_table index;
};

static void count_process(struct scan *scan, const struct named_slice *slice,
                          const struct top_sample *sample, void *context)
{
    struct process_rows *processes = context;
    const struct profile *profile = slice->profile;
    const struct profile_frame *frame = &profile->frames[sample->process];
    uint32_t name = profile_cstring(
        &scan->table->names, profile_text(profile, profile->functions[frame->function].name));
    uint64_t hash = hash_word(sample->pid ? sample->pid : (uint64_t)name << 32);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&processes->index, &probe)) != ID_NONE)
        if (processes->rows[id].pid == sample->pid &&
            (sample->pid ||
             !strcmp(processes->rows[id].name, profile_text(&scan->table->names, name))))
            break;
    if (id == ID_NONE) {
        array_reserve(processes->rows, processes->capacity, processes->count + 1);
        id = (uint32_t)processes->count++;
        processes->rows[id] = (struct top_row){.pid = sample->pid, .binary = ""};
        id_table_insert(&processes->index, hash, id);
    }
    struct top_row *row = &processes->rows[id];
    /* The newest name counts: a process is called otherwise once it has executed a program. */
    row->name = name ? profile_text(&scan->table->names, name) : "[unknown]";
    add(&row->self_ns, sample->cpu_ns);
    add(&row->total_ns, sample->cpu_ns);
}

void top_processes(const struct top_window *window, const struct top_query *query,
                   struct top_table *ret_table)
{
    struct scan scan;
    struct process_rows processes = {0};
    scan_begin(&scan, window, query, NULL, NULL, ret_table);
    each_sample(&scan, 0, count_process, &processes);
    scan_end(&scan);
    id_table_release(&processes.index);
    ret_table->rows = processes.rows;
    ret_table->count = processes.count;
    sort_rows(ret_table->rows, ret_table->count, query->order);
    apply_filter(ret_table, query->filter);
}

/* By function id. */
struct edges {
    struct top_row *rows;
    uint32_t *stamp; /* the last sample that counted */
};

struct neighbours {
    struct edges callers, callees;
    struct top_row itself;
};

static void count_edge(struct scan *scan, struct edges *edges, uint32_t function, int64_t cpu_ns)
{
    if (edges->stamp[function] == scan->sample)
        return;
    edges->stamp[function] = scan->sample;
    add(&edges->rows[function].total_ns, cpu_ns);
}

static void count_neighbours(struct scan *scan, const struct named_slice *slice,
                             const struct top_sample *sample, void *context)
{
    (void)slice;
    struct neighbours *found = context;
    bool counted = false;
    for (size_t i = 0; i < sample->depth; i++) {
        if (sample->functions[i] != scan->wanted)
            continue;
        if (!counted)
            add(&found->itself.total_ns, sample->cpu_ns);
        counted = true;
        if (i)
            count_edge(scan, &found->callees, sample->functions[i - 1], sample->cpu_ns);
        else
            add(&found->itself.self_ns, sample->cpu_ns);
        if (i + 1 < sample->depth)
            count_edge(scan, &found->callers, sample->functions[i + 1], sample->cpu_ns);
    }
}

void top_neighbours(const struct top_window *window, const struct top_query *query,
                    const char *name, const char *binary, struct top_table *ret_table)
{
    struct scan scan;
    scan_begin(&scan, window, query, name, binary, ret_table);
    size_t functions = ret_table->names.function_count;
    struct neighbours found = {0};
    struct edges *const sides[] = {&found.callers, &found.callees};
    for (size_t i = 0; i < ARRAY_LENGTH(sides); i++) {
        sides[i]->rows = memory_zalloc(functions, sizeof(struct top_row));
        sides[i]->stamp = memory_zalloc(functions, sizeof(uint32_t));
    }
    each_sample(&scan, query->pid, count_neighbours, &found);

    keep_rows(&scan, found.callers.rows, TOP_CALLER);
    sort_rows(ret_table->rows, ret_table->count, TOP_BY_TOTAL);
    size_t capacity = ret_table->count, first = ret_table->count + 1;
    array_reserve(ret_table->rows, capacity, first);
    found.itself.kernel = scan.rows[scan.wanted].kernel;
    name_row(&ret_table->names, scan.wanted, &found.itself);
    ret_table->rows[ret_table->count++] = found.itself;
    keep_rows(&scan, found.callees.rows, TOP_CALLEE);
    sort_rows(ret_table->rows + first, ret_table->count - first, TOP_BY_TOTAL);

    for (size_t i = 0; i < ARRAY_LENGTH(sides); i++) {
        free(sides[i]->rows);
        free(sides[i]->stamp);
    }
    scan_end(&scan);
}
