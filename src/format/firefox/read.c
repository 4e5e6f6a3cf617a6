// SPDX-License-Identifier: Apache-2.0
// The JSON of the Firefox Profiler: the processed form (columns as arrays, as files that it saves
// and samply have it) and Gecko's (rows with a schema, and processes inside processes).

#include <stdlib.h>

#include "base/memory.h"
#include "format/firefox/firefox.h"

#define THREADS_MAX 65536
#define PROCESSES_DEPTH_MAX 8
#define SCHEMA_MAX 16

void firefox_tables_release(struct firefox_tables *tables)
{
    free(tables->strings);
    free(tables->stack_frame.values);
    free(tables->stack_prefix.values);
    free(tables->frame_function.values);
    free(tables->frame_line.values);
    free(tables->frame_location.values);
    free(tables->function_name.values);
    free(tables->function_file.values);
    free(tables->stack_prefix_offset.values);
    free(tables->function_source.values);
    free(tables->source_file.values);
}

static void column_add(struct firefox_column *column, int64_t value)
{
    array_reserve(column->values, column->capacity, column->count + 1);
    column->values[column->count++] = value;
}

/* A number times 10^power; anything else is passed over. */
static int read_number(struct json *json, int power, int64_t *ret_value)
{
    struct json_number number;
    int kind = json_kind(json);
    if (kind < 0)
        return kind;
    if (kind != JSON_NUMBER)
        return json_skip(json);
    int r = json_number(json, &number);
    if (r == 0)
        *ret_value = MAX(json_number_scaled(&number, power), INT64_MIN + 1);
    return r;
}

static int read_column(struct json *json, struct firefox_column *column, int power)
{
    if (json_kind(json) != JSON_ARRAY)
        return json_skip(json);
    if (column->count)
        return json_fail(json, "A column comes twice");
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        int64_t value = FIREFOX_NONE;
        r = read_number(json, power, &value);
        if (r >= 0)
            column_add(column, value);
    }
    return r;
}

static int read_string(struct firefox *file, uint32_t *ret_string)
{
    struct json_string text;
    if (json_kind(&file->json) != JSON_STRING)
        return json_skip(&file->json);
    int r = json_string(&file->json, &text);
    if (r == 0)
        *ret_string = profile_string(file->profile, text.data, text.length);
    return r;
}

static int read_strings(struct firefox *file, struct firefox_tables *tables)
{
    struct json *json = &file->json;
    if (json_kind(json) != JSON_ARRAY || tables->has_strings)
        return json_skip(json);
    tables->has_strings = true;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        uint32_t text = 0;
        r = read_string(file, &text);
        array_reserve(tables->strings, tables->string_capacity, tables->string_count + 1);
        tables->strings[tables->string_count++] = text;
        if (profile_full(file->profile))
            return json_fail(json, "There are more texts than a profile can hold");
    }
    return r;
}

/* ---- tables in columns or in rows ---- */

#define EARLY_POWER 6

struct member {
    const char *name;
    struct firefox_column *column;
    int power;
};

/* "schema": {"prefix": 0, "frame": 1}: which member is at which place of a row. */
static int read_schema(struct json *json, const struct member *members, size_t count,
                       int places[SCHEMA_MAX])
{
    struct json_string key;
    uint64_t place;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_kind(json) != JSON_NUMBER)
            continue;
        r = json_u64(json, &place);
        for (size_t i = 0; i < count && r >= 0; i++)
            if (json_is(&key, members[i].name) && place < SCHEMA_MAX)
                places[place] = (int)i;
    }
    return r;
}

static int read_row(struct json *json, const struct member *members, size_t count,
                    const int places[SCHEMA_MAX])
{
    int64_t values[SCHEMA_MAX];
    size_t place = 0;
    for (size_t i = 0; i < count; i++)
        values[i] = FIREFOX_NONE;
    if (json_kind(json) != JSON_ARRAY)
        return json_fail(json, "A row is not an array");
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        if (place < SCHEMA_MAX && places[place] >= 0)
            r = read_number(json, members[places[place]].power, &values[places[place]]);
        else
            r = json_skip(json);
        place++;
    }
    for (size_t i = 0; i < count && r >= 0; i++)
        column_add(members[i].column, values[i]);
    return r;
}

static int read_rows(struct json *json, const struct member *members, size_t count,
                     const int places[SCHEMA_MAX])
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        r = read_row(json, members, count, places);
    return r;
}

/* Rows and what their places mean, which may come after them: then all places are kept. */
struct rows {
    int places[SCHEMA_MAX];
    bool has_schema, has_early;
    struct firefox_column early[SCHEMA_MAX]; /* times 10^EARLY_POWER */
};

static void rows_init(struct rows *rows)
{
    *rows = (struct rows){0};
    for (size_t i = 0; i < SCHEMA_MAX; i++)
        rows->places[i] = -1;
}

static void rows_release(struct rows *rows)
{
    for (size_t i = 0; i < SCHEMA_MAX; i++)
        free(rows->early[i].values);
}

static int read_early_rows(struct json *json, struct rows *rows)
{
    struct member all[SCHEMA_MAX];
    int places[SCHEMA_MAX];
    if (rows->has_early)
        return json_fail(json, "Rows come twice");
    rows->has_early = true;
    for (int i = 0; i < SCHEMA_MAX; i++) {
        all[i] = (struct member){"", &rows->early[i], EARLY_POWER};
        places[i] = i;
    }
    return read_rows(json, all, SCHEMA_MAX, places);
}

/* Moves the columns that were wanted to where they are wanted. */
static void take_early_rows(struct rows *rows, const struct member *members, size_t count)
{
    for (size_t place = 0; place < SCHEMA_MAX; place++) {
        int member = rows->places[place];
        struct firefox_column *early = &rows->early[place];
        if (member < 0 || (size_t)member >= count || members[member].column->count)
            continue;
        for (size_t i = 0; i < early->count; i++)
            if (early->values[i] != FIREFOX_NONE && members[member].power == 0)
                early->values[i] /= 1000000;
        free(members[member].column->values);
        *members[member].column = *early;
        *early = (struct firefox_column){0};
    }
}

/* One key of a table; *ret_known is false when it is none of a table's. */
static int read_rows_key(struct json *json, const struct json_string *key,
                         const struct member *members, size_t count, struct rows *rows,
                         bool *ret_known)
{
    int r = 0;
    *ret_known = true;
    if (json_is(key, "schema") && json_kind(json) == JSON_OBJECT) {
        r = read_schema(json, members, count, rows->places);
        rows->has_schema = true;
        if (r >= 0 && rows->has_early)
            take_early_rows(rows, members, count);
        return r;
    }
    if (json_is(key, "data") && json_kind(json) == JSON_ARRAY)
        return rows->has_schema ? read_rows(json, members, count, rows->places)
                                : read_early_rows(json, rows);
    for (size_t i = 0; i < count; i++)
        if (json_is(key, members[i].name))
            return read_column(json, members[i].column, members[i].power);
    *ret_known = false;
    return 0;
}

static int read_table(struct json *json, const struct member *members, size_t count)
{
    _cleanup_(rows_release) struct rows rows;
    struct json_string key;
    bool known;
    rows_init(&rows);
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = read_rows_key(json, &key, members, count, &rows, &known);
    return r;
}

/* One of the tables that threads share in newer files; 0 when the key is another. */
static int read_shared_table(struct firefox *file, const struct json_string *key,
                             struct firefox_tables *tables)
{
    struct json *json = &file->json;
    if (json_is(key, "stringArray") || json_is(key, "stringTable"))
        return read_strings(file, tables);
    if (json_is(key, "stackTable")) {
        const struct member members[] = {{"frame", &tables->stack_frame, 0},
                                         {"prefix", &tables->stack_prefix, 0},
                                         {"prefixOffset", &tables->stack_prefix_offset, 0}};
        tables->has_stacks = true;
        return read_table(json, members, ARRAY_LENGTH(members));
    }
    if (json_is(key, "frameTable")) {
        const struct member members[] = {{"func", &tables->frame_function, 0},
                                         {"line", &tables->frame_line, 0},
                                         {"location", &tables->frame_location, 0}};
        tables->has_frames = true;
        return read_table(json, members, ARRAY_LENGTH(members));
    }
    if (json_is(key, "funcTable")) {
        const struct member members[] = {{"name", &tables->function_name, 0},
                                         {"fileName", &tables->function_file, 0},
                                         {"source", &tables->function_source, 0}};
        tables->has_functions = true;
        return read_table(json, members, ARRAY_LENGTH(members));
    }
    if (json_is(key, "sources")) {
        const struct member members[] = {{"filename", &tables->source_file, 0}};
        tables->has_sources = true;
        return read_table(json, members, ARRAY_LENGTH(members));
    }
    return 0;
}

static int read_samples(struct firefox *file, struct firefox_thread *thread)
{
    struct json *json = &file->json;
    struct firefox_column deltas = {0};
    const struct member members[] = {{"stack", &thread->stack, 0},
                                     {"time", &thread->time_ns, 6},
                                     {"timeDeltas", &deltas, 6},
                                     {"weight", &thread->weight, 6},
                                     {"threadCPUDelta", &thread->cpu, 0}};
    _cleanup_(rows_release) struct rows rows;
    struct json_string key;
    bool known;
    rows_init(&rows);
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        r = read_rows_key(json, &key, members, ARRAY_LENGTH(members), &rows, &known);
        if (r >= 0 && !known && json_is(&key, "weightType"))
            r = read_string(file, &thread->weight_unit);
    }
    if (!thread->time_ns.count && deltas.count) {
        thread->time_ns = deltas;
        thread->delta_times = true;
    } else {
        free(deltas.values);
    }
    return r;
}

static int read_thread_key(struct firefox *file, const struct json_string *key,
                           struct firefox_thread *thread)
{
    if (json_is(key, "samples"))
        return read_samples(file, thread);
    if (json_is(key, "name"))
        return read_string(file, &thread->name);
    if (json_is(key, "processName"))
        return read_string(file, &thread->process_name);
    if (json_is(key, "pid") || json_is(key, "tid")) {
        int64_t *number = json_is(key, "pid") ? &thread->pid : &thread->tid;
        struct json_string text;
        /* Newer files have it as text. */
        if (json_kind(&file->json) != JSON_STRING)
            return read_number(&file->json, 0, number);
        int r = json_string(&file->json, &text);
        int64_t value = 0;
        for (size_t i = 0; r >= 0 && i < text.length && i < 18; i++)
            value = text.data[i] >= '0' && text.data[i] <= '9' ? value * 10 + text.data[i] - '0'
                                                               : value;
        if (r >= 0)
            *number = value;
        return r;
    }
    return read_shared_table(file, key, &thread->tables);
}

static int read_thread(struct firefox *file)
{
    struct json *json = &file->json;
    struct json_string key;
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json); /* Gecko has threads as text that a process has sent */
    if (file->thread_count == THREADS_MAX)
        return json_fail(json, "There are more than %d threads", THREADS_MAX);
    struct firefox_thread *thread = memory_zalloc(1, sizeof(*thread));
    thread->pid = thread->tid = FIREFOX_NONE;
    array_reserve(file->threads, file->thread_capacity, file->thread_count + 1);
    file->threads[file->thread_count++] = thread;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = read_thread_key(file, &key, thread);
    return r;
}

static int read_units(struct firefox *file)
{
    struct json *json = &file->json;
    struct json_string key, text;
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "threadCPUDelta") && json_kind(json) == JSON_STRING) {
            r = json_string(json, &text);
            if (r >= 0)
                file->cpu_scale = json_is(&text, "ns")          ? 1
                                  : json_is(&text, "\xc2\xb5s") ? 1000
                                  : json_is(&text, "us")        ? 1000
                                                                : 0;
        }
    return r;
}

static int read_meta(struct firefox *file)
{
    struct json *json = &file->json;
    struct json_string key;
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "interval"))
            r = read_number(json, 6, &file->interval_ns);
        else if (json_is(&key, "startTime") && !file->start_ns)
            r = read_number(json, 6, &file->start_ns);
        else if (json_is(&key, "sampleUnits"))
            r = read_units(file);
    }
    return r;
}

static int read_list(struct firefox *file, unsigned depth, bool processes)
{
    struct json *json = &file->json;
    if (json_kind(json) != JSON_ARRAY)
        return json_skip(json);
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        r = processes ? firefox_read_profile(file, depth + 1) : read_thread(file);
    return r;
}

int firefox_read_profile(struct firefox *file, unsigned depth)
{
    struct json *json = &file->json;
    struct json_string key;
    if (depth == PROCESSES_DEPTH_MAX)
        return json_fail(json, "Processes are nested too deeply");
    if (json_kind(json) != JSON_OBJECT)
        return json_skip(json);
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "meta"))
            r = read_meta(file);
        else if (json_is(&key, "threads"))
            r = read_list(file, depth, false);
        else if (json_is(&key, "processes"))
            r = read_list(file, depth, true);
        else if (json_is(&key, "profile") && !depth) /* a recording of old developer tools */
            r = firefox_read_profile(file, 1);
        else if (json_is(&key, "shared") && json_kind(json) == JSON_OBJECT) {
            r = json_object(json);
            while (r >= 0 && (r = json_next_key(json, &key)) > 0)
                r = read_shared_table(file, &key, &file->shared);
        }
    }
    return r;
}
