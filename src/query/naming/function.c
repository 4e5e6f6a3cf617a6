// SPDX-License-Identifier: Apache-2.0
// Finding the frames of a function: see function.h.

#include "query/naming/function.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void query_function_release(struct query_function *function)
{
    free(function->frames);
    arena_release(&function->texts);
    *function = (struct query_function){0};
}

struct search {
    const struct query_function_names *names;
    struct query_function *function;
};

static const char *keep(struct query_function *function, const char *text)
{
    return *text ? arena_strndup(&function->texts, text, strlen(text)) : "";
}

static int add(struct query_function *function, const struct profile *tables, uint32_t id,
               bool encloses)
{
    struct store_frame frame;
    store_frame_read(tables, id, &frame);
    if (function->count == QUERY_FUNCTION_FRAMES_MAX)
        return -E2BIG;
    frame.encloses = encloses;
    frame.function = keep(function, frame.function);
    frame.system_name = keep(function, frame.system_name);
    frame.source = keep(function, frame.source);
    frame.file = keep(function, frame.file);
    frame.build_id = keep(function, frame.build_id);
    array_reserve(function->frames, function->capacity, function->count + 1);
    function->frames[function->count++] = frame;
    return 0;
}

/* Several functions may be at one address, inlined into each other: the innermost comes first. */
static int take_frame(void *context, const struct profile *tables, uint32_t frame)
{
    struct search *search = context;
    const struct query_function_names *names = search->names;
    struct symbol_frame found[SYMBOL_FRAMES_MAX];
    if (tables->frames[frame].function)
        return names->maps && query_maps_is(names->maps, tables, frame, names->name)
                   ? add(search->function, tables, frame, false)
                   : 0;
    size_t count = names->symbols ? query_symbols_at(names->symbols, tables, frame, found) : 0;
    for (size_t i = 0; i < count; i++)
        if (found[i].name && !strcmp(found[i].name, names->name))
            return add(search->function, tables, frame, i > 0);
    return 0;
}

static int compare(const void *a, const void *b)
{
    return store_frame_compare(a, b);
}

int query_function_find(struct store *store, const struct query_function_names *names,
                        const struct store_selection *selection,
                        const struct store_timeseries_query *query,
                        const struct store_limits *limits, struct query_function *ret_function,
                        struct error *error)
{
    struct query_function function = {0};
    struct search search = {.names = names, .function = &function};
    int r = 0;
    if (names->maps || (names->symbols && names->symbols->store))
        r = store_frames(store, selection, query, limits, take_frame, &search, error);
    if (function.count == QUERY_FUNCTION_FRAMES_MAX)
        r = error_set(error, -E2BIG,
                      "The function has more than %u frames in this selection; select a shorter "
                      "time range or fewer series.",
                      QUERY_FUNCTION_FRAMES_MAX);
    if (r < 0) {
        query_function_release(&function);
        return r;
    }
    if (function.count)
        qsort(function.frames, function.count, sizeof(*function.frames), compare);
    function.found = (struct store_function){.name = names->name,
                                             .frames = function.frames,
                                             .frame_count = function.count,
                                             .frames_only = names->maps != NULL};
    *ret_function = function;
    return 0;
}
