// SPDX-License-Identifier: Apache-2.0
// Stacks by their ids: fetched with their frames, and put into a profile.

#include <stdlib.h>

#include "base/memory.h"
#include "store/clickhouse/internal.h"

#define CHUNK 20000 /* ids in one query */

void stack_nodes_init(struct stack_nodes *nodes, struct profile *profile)
{
    *nodes = (struct stack_nodes){.profile = profile};
}

void stack_nodes_release(struct stack_nodes *nodes)
{
    id_table_release(&nodes->index);
    id_table_release(&nodes->frames);
    free(nodes->stacks);
    free(nodes->nodes);
    free(nodes->frame_ids);
    free(nodes->frame_list);
    *nodes = (struct stack_nodes){0};
}

static uint32_t find_stack(const struct stack_nodes *nodes, uint64_t stream, uint64_t stack)
{
    struct id_probe probe = id_probe_start(stack);
    uint32_t id;
    while ((id = id_table_next(&nodes->index, &probe)) != ID_NONE)
        if (nodes->stacks[id].stack == stack && nodes->stacks[id].stream == stream)
            return id;
    return ID_NONE;
}

uint32_t stack_nodes_find(const struct stack_nodes *nodes, uint64_t stream, uint64_t stack)
{
    uint32_t id = stack ? find_stack(nodes, stream, stack) : ID_NONE;
    return id == ID_NONE ? 0 : nodes->nodes[id];
}

static uint32_t find_frame(const struct stack_nodes *nodes, uint64_t frame)
{
    struct id_probe probe = id_probe_start(frame);
    uint32_t id;
    while ((id = id_table_next(&nodes->frames, &probe)) != ID_NONE)
        if (nodes->frame_ids[id] == frame)
            return id;
    return ID_NONE;
}

static void add_frame(struct stack_nodes *nodes, uint64_t id, uint32_t frame)
{
    array_reserve(nodes->frame_ids, nodes->frame_id_capacity, nodes->frame_count + 1);
    array_reserve(nodes->frame_list, nodes->frame_capacity, nodes->frame_count + 1);
    nodes->frame_ids[nodes->frame_count] = id;
    nodes->frame_list[nodes->frame_count] = frame;
    id_table_insert(&nodes->frames, id, (uint32_t)nodes->frame_count++);
}

/* ---- frames ---- */

static const char frame_columns[] =
    "SELECT frame, address, line, `column`, start_line, kind, inlined, folded, function, "
    "system_name, source, mapping_start, mapping_limit, mapping_offset, toString(file), "
    "toString(build_id) FROM frames WHERE tenant = ";

static uint32_t string_of(struct profile *profile, struct row_text text)
{
    return text.length ? profile_string(profile, text.data, text.length) : 0;
}

/* The row's frame in the profile; its id is 0 when the row isn't whole. */
static uint64_t read_frame(struct row_reader *row, struct profile *profile, uint32_t *ret_frame)
{
    uint64_t id = row_get_u64(row);
    struct profile_frame frame = {.address = row_get_u64(row)};
    frame.line = row_get_u32(row);
    frame.column = row_get_u32(row) & 0xffffff;
    struct profile_function function = {.start_line = row_get_u32(row)};
    frame.kind = row_get_u8(row) % FRAME_KINDS;
    frame.inlined = row_get_u8(row) != 0;
    frame.folded = row_get_u8(row) != 0;
    struct row_text name = row_get_text(row), system_name = row_get_text(row),
                    source = row_get_text(row);
    struct profile_mapping mapping = {.start = row_get_u64(row)};
    mapping.limit = row_get_u64(row);
    mapping.offset = row_get_u64(row);
    struct row_text file = row_get_text(row), build_id = row_get_text(row);
    if (row->is_short)
        return 0;
    function.name = string_of(profile, name);
    function.system_name = string_of(profile, system_name);
    function.file = string_of(profile, source);
    mapping.file = string_of(profile, file);
    mapping.build_id = string_of(profile, build_id);
    if (function.name || function.system_name || function.file || function.start_line)
        frame.function = profile_function(profile, &function);
    if (mapping.file || mapping.build_id || mapping.start || mapping.limit || mapping.offset)
        frame.mapping = profile_mapping(profile, &mapping);
    *ret_frame = profile_frame(profile, &frame);
    return id;
}

static int take_frame(void *context, struct row_reader *row, struct error *error)
{
    struct stack_nodes *nodes = context;
    uint32_t frame;
    uint64_t id = read_frame(row, nodes->profile, &frame);
    (void)error;
    if (id && find_frame(nodes, id) == ID_NONE)
        add_frame(nodes, id, frame);
    return 0;
}

static int load_frames(struct clickhouse *store, const struct store_selection *selection,
                       struct stack_nodes *nodes, const uint64_t *list, size_t count,
                       const struct store_limits *limits, struct error *error)
{
    int r = 0;
    for (size_t i = 0; !r && i < count; i += CHUNK) {
        _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
        buffer_add_text(&statement.sql, frame_columns);
        sql_text(&statement.sql, selection->tenant);
        buffer_add_text(&statement.sql, " AND ");
        sql_in(&statement.sql, "frame", list + i, MIN((size_t)CHUNK, count - i));
        sql_periods(&statement.sql, selection->from_ns, selection->to_ns);
        buffer_add_text(&statement.sql, " LIMIT 1 BY frame");
        r = links_query(&store->links, &statement, take_frame, nodes, error);
    }
    return r;
}

/* ---- stacks ---- */

struct fetched {
    struct stack_ref stack;
    size_t first, count; /* of frames, innermost first */
};

struct fetching {
    struct fetched *list;
    uint64_t *frames;
    size_t count, capacity, frame_count, frame_capacity;
};

static int take_stack(void *context, struct row_reader *row, struct error *error)
{
    struct fetching *fetching = context;
    struct stack_ref stack = {.stream = row_get_u64(row), .stack = row_get_u64(row)};
    size_t count = row_get_length(row);
    const void *frames = count <= STORE_DEPTH_MAX ? row_take(row, count * 8) : NULL;
    if (!row->is_short && count > STORE_DEPTH_MAX)
        return error_set(error, -EBADMSG, "A stack of the table stacks has more than %d frames.",
                         STORE_DEPTH_MAX);
    if (row->is_short)
        return 0;
    array_reserve(fetching->list, fetching->capacity, fetching->count + 1);
    array_reserve(fetching->frames, fetching->frame_capacity, fetching->frame_count + count);
    fetching->list[fetching->count++] =
        (struct fetched){.stack = stack, .first = fetching->frame_count, .count = count};
    if (count)
        memcpy(fetching->frames + fetching->frame_count, frames, count * 8);
    fetching->frame_count += count;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int compare_stacks(const void *a, const void *b)
{
    const struct stack_ref *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static int missing(const char *what, struct error *error)
{
    return error_set(error, -EAGAIN,
                     "A %s of the answer is missing in ClickHouse; a replica may be behind.", what);
}

static int add_fetched(struct stack_nodes *nodes, const struct fetching *fetching,
                       struct error *error)
{
    _cleanup_free_ uint32_t *path = memory_alloc((STORE_DEPTH_MAX + 1ul) * sizeof(*path));
    for (size_t i = 0; i < fetching->count; i++) {
        const struct fetched *fetched = &fetching->list[i];
        if (find_stack(nodes, fetched->stack.stream, fetched->stack.stack) != ID_NONE)
            continue;
        for (size_t k = 0; k < fetched->count; k++) {
            uint32_t frame = find_frame(nodes, fetching->frames[fetched->first + k]);
            if (frame == ID_NONE)
                return missing("frame", error);
            path[fetched->count - 1 - k] = nodes->frame_list[frame];
        }
        array_reserve(nodes->stacks, nodes->stack_capacity, nodes->stack_count + 1);
        array_reserve(nodes->nodes, nodes->node_capacity, nodes->stack_count + 1);
        nodes->stacks[nodes->stack_count] = fetched->stack;
        nodes->nodes[nodes->stack_count] =
            profile_path(nodes->profile, path, (uint32_t)fetched->count);
        id_table_insert(&nodes->index, fetched->stack.stack, (uint32_t)nodes->stack_count++);
    }
    return 0;
}

static int load_chunk(struct clickhouse *store, const struct store_selection *selection,
                      struct stack_nodes *nodes, const struct stack_ref *stacks, size_t count,
                      const struct store_limits *limits, struct error *error)
{
    _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
    _cleanup_free_ uint64_t *ids = memory_zalloc(count, sizeof(*ids));
    struct fetching fetching = {0};
    size_t streams = 0;
    for (size_t i = 0; i < count; i++)
        if (!i || stacks[i].stream != stacks[i - 1].stream)
            ids[streams++] = stacks[i].stream;
    buffer_add_text(&statement.sql, "SELECT stream, stack, frames FROM stacks WHERE tenant = ");
    sql_text(&statement.sql, selection->tenant);
    buffer_add_text(&statement.sql, " AND ");
    sql_in(&statement.sql, "stream", ids, streams);
    for (size_t i = 0; i < count; i++)
        ids[i] = stacks[i].stack;
    buffer_add_text(&statement.sql, " AND ");
    sql_in(&statement.sql, "stack", ids, count);
    sql_periods(&statement.sql, selection->from_ns, selection->to_ns);
    buffer_add_text(&statement.sql, " LIMIT 1 BY stream, stack");
    int r = links_query(&store->links, &statement, take_stack, &fetching, error);
    _cleanup_free_ uint64_t *frames = memory_zalloc(fetching.frame_count + 1, sizeof(*frames));
    size_t wanted = 0;
    if (!r && fetching.frame_count) {
        memcpy(frames, fetching.frames, fetching.frame_count * sizeof(*frames));
        qsort(frames, fetching.frame_count, sizeof(*frames), compare_ids);
    }
    for (size_t i = 0; !r && i < fetching.frame_count; i++)
        if ((!wanted || frames[wanted - 1] != frames[i]) && find_frame(nodes, frames[i]) == ID_NONE)
            frames[wanted++] = frames[i];
    if (!r)
        r = load_frames(store, selection, nodes, frames, wanted, limits, error);
    if (!r)
        r = add_fetched(nodes, &fetching, error);
    free(fetching.list);
    free(fetching.frames);
    return r;
}

int stack_nodes_load(struct clickhouse *store, const struct store_selection *selection,
                     struct stack_nodes *nodes, const struct stack_ref *stacks, size_t count,
                     const struct store_limits *limits, struct error *error)
{
    _cleanup_free_ struct stack_ref *list = memory_zalloc(count + 1, sizeof(*list));
    size_t wanted = 0, kept = 0, memory = limits->memory_bytes;
    int r = 0;
    for (size_t i = 0; i < count; i++)
        if (stacks[i].stack && find_stack(nodes, stacks[i].stream, stacks[i].stack) == ID_NONE)
            list[wanted++] = stacks[i];
    qsort(list, wanted, sizeof(*list), compare_stacks);
    for (size_t i = 0; i < wanted; i++)
        if (!kept || compare_stacks(&list[kept - 1], &list[i]))
            list[kept++] = list[i];
    for (size_t i = 0; !r && i < kept; i += CHUNK) {
        r = load_chunk(store, selection, nodes, list + i, MIN((size_t)CHUNK, kept - i), limits,
                       error);
        if (!r && memory && is_too_much(limits, profile_memory(nodes->profile), &memory))
            r = error_memory(error, memory);
    }
    for (size_t i = 0; !r && i < kept; i++)
        if (find_stack(nodes, list[i].stream, list[i].stack) == ID_NONE)
            r = missing("stack", error);
    return r;
}

/* ---- functions ---- */

static void add_frame_tuples(const struct store_function *function, bool cumulative,
                             struct buffer *sql)
{
    bool first = true;
    for (size_t i = 0; i < function->frame_count; i++) {
        const struct store_frame *frame = &function->frames[i];
        if (frame->encloses && !cumulative)
            continue;
        buffer_printf(sql, "%s(%llu, %u, %u, %u, %u, ", first ? "" : ",",
                      (unsigned long long)frame->address, frame->line, frame->column,
                      frame->start_line, frame->kind);
        const char *const texts[] = {frame->function, frame->system_name, frame->source,
                                     frame->file, frame->build_id};
        for (size_t k = 0; k < ARRAY_LENGTH(texts); k++) {
            sql_text(sql, texts[k]);
            buffer_add_text(sql, k + 1 < ARRAY_LENGTH(texts) ? ", " : ")");
        }
        first = false;
    }
}

static bool has_frames(const struct store_function *function, bool cumulative)
{
    for (size_t i = 0; i < function->frame_count; i++)
        if (cumulative || !function->frames[i].encloses)
            return true;
    return false;
}

void stacks_where(const struct store_selection *selection, const struct store_function *function,
                  bool cumulative, struct buffer *sql)
{
    buffer_add_text(sql, " AND (stream, stack) GLOBAL IN (SELECT stream, stack FROM stacks ");
    buffer_add_text(sql, cumulative ? "ARRAY JOIN frames AS one " : "");
    buffer_add_text(sql, "WHERE tenant = ");
    sql_text(sql, selection->tenant);
    sql_periods(sql, selection->from_ns, selection->to_ns);
    buffer_add_text(sql, cumulative ? " AND one GLOBAL IN (" : " AND frames[1] GLOBAL IN (");
    buffer_add_text(sql, "SELECT frame FROM frames WHERE tenant = ");
    sql_text(sql, selection->tenant);
    sql_periods(sql, selection->from_ns, selection->to_ns);
    buffer_add_text(sql, " AND (1 = 0");
    if (!function->frames_only) {
        buffer_add_text(sql, " OR ((function != '' OR system_name != '') AND (function = ");
        sql_text(sql, function->name);
        buffer_add_text(sql, " OR system_name = ");
        sql_text(sql, function->name);
        buffer_add_text(sql, "))");
    }
    if (has_frames(function, cumulative)) {
        buffer_add_text(sql, " OR (address, line, `column`, start_line, kind, function, "
                             "system_name, source, file, build_id) IN (");
        add_frame_tuples(function, cumulative, sql);
        buffer_add_char(sql, ')');
    }
    buffer_add_text(sql, ")))");
}

/* ---- frames of a selection ---- */

struct giving {
    struct profile profile;
    store_frame_fn *fn;
    void *context;
};

static int give_frame(void *context, struct row_reader *row, struct error *error)
{
    struct giving *giving = context;
    uint32_t frame;
    (void)error;
    return read_frame(row, &giving->profile, &frame)
               ? giving->fn(giving->context, &giving->profile, frame)
               : 0;
}

int clickhouse_frames(struct store *base, const struct store_selection *selection,
                      const struct store_timeseries_query *query, const struct store_limits *limits,
                      store_frame_fn *fn, void *context, struct error *error)
{
    struct clickhouse *store = clickhouse_of(base);
    _cleanup_statement_ struct statement statement = {.cancelled = limits->cancelled};
    _cleanup_chosen_ struct chosen chosen = {0};
    struct giving giving = {.fn = fn, .context = context};
    (void)query;
    int r = chosen_load(store, selection, CHOSEN_FOR_LIST, limits->cancelled, &chosen, error);
    if (r < 0 || !chosen.selected)
        return r;
    _cleanup_free_ uint64_t *streams = memory_zalloc(chosen.count + 1, sizeof(*streams));
    size_t count = 0;
    for (size_t i = 0; i < chosen.count; i++)
        if (chosen.list[i].selected)
            streams[count++] = chosen.list[i].stream;
    qsort(streams, count, sizeof(*streams), compare_ids);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || streams[kept - 1] != streams[i])
            streams[kept++] = streams[i];
    buffer_add_text(&statement.sql, frame_columns);
    sql_text(&statement.sql, selection->tenant);
    sql_periods(&statement.sql, selection->from_ns, selection->to_ns);
    buffer_add_text(&statement.sql, " AND frame GLOBAL IN (SELECT arrayJoin(frames) FROM stacks "
                                    "WHERE tenant = ");
    sql_text(&statement.sql, selection->tenant);
    buffer_add_text(&statement.sql, " AND ");
    sql_in(&statement.sql, "stream", streams, kept);
    sql_periods(&statement.sql, selection->from_ns, selection->to_ns);
    buffer_add_text(&statement.sql, ") LIMIT 1 BY frame");
    profile_init(&giving.profile, PROFILE_ALL);
    r = links_query(&store->links, &statement, give_frame, &giving, error);
    profile_release(&giving.profile);
    return r;
}
