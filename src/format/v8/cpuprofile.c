// SPDX-License-Identifier: Apache-2.0
// Reads V8's .cpuprofile (node --cpu-prof, Chrome DevTools): JSON with a table of call-tree nodes,
// or in old files a tree of nested nodes, and samples that refer to nodes. Keys may come in any
// order.

#include "format/v8/cpuprofile.h"

#include "base/memory.h"
#include "format/v8/call_frame.h"

/* ---- nodes ---- */

static int read_id(struct cpuprofile *file, uint32_t *ret_id)
{
    uint64_t id;
    int r = json_u64(&file->json, &id);
    if (r < 0)
        return r;
    if (id >= CPUPROFILE_NONE)
        return json_fail(&file->json, "The node id %llu is too large", (unsigned long long)id);
    *ret_id = (uint32_t)id;
    return 0;
}

static void set_frame(struct cpuprofile *file, const struct call_frame *call, int base,
                      struct cpuprofile_node *node)
{
    node->frame = call_frame_intern(file->profile, call, base);
    node->root = call_frame_is_root(file->profile, call);
}

static void add_edge(struct cpuprofile *file, uint32_t parent, uint32_t child)
{
    array_reserve(file->edges, file->edge_capacity, file->edge_count + 1);
    file->edges[file->edge_count++] = (struct cpuprofile_edge){parent, child};
}

/* Children may come before the id of the node that has them: their edges are completed later. */
static int read_children(struct cpuprofile *file)
{
    uint32_t child = 0;
    if (json_kind(&file->json) == JSON_NULL)
        return json_skip(&file->json);
    int r = json_array(&file->json);
    while (r >= 0 && (r = json_next_element(&file->json)) > 0) {
        r = read_id(file, &child);
        if (r >= 0)
            add_edge(file, CPUPROFILE_NONE, child);
    }
    return r;
}

static int read_node(struct cpuprofile *file)
{
    struct json *json = &file->json;
    struct cpuprofile_node node = {.id = CPUPROFILE_NONE, .parent = CPUPROFILE_NONE};
    struct call_frame call = {.line = -1, .column = -1};
    uint32_t parent = CPUPROFILE_NONE;
    size_t first_edge = file->edge_count;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "id"))
            r = read_id(file, &node.id);
        else if (json_is(&key, "callFrame"))
            r = call_frame_read(json, file->profile, &call);
        else if (json_is(&key, "children"))
            r = read_children(file);
        else if (json_is(&key, "parent"))
            r = read_id(file, &parent);
        else if (json_is(&key, "hitCount") && json_kind(json) == JSON_NUMBER)
            r = json_u64(json, &node.hits);
    }
    if (r < 0)
        return r;
    if (node.id == CPUPROFILE_NONE)
        return json_fail(json, "A node without an id ends");
    for (size_t i = first_edge; i < file->edge_count; i++)
        file->edges[i].parent = node.id;
    if (parent != CPUPROFILE_NONE)
        add_edge(file, parent, node.id);
    set_frame(file, &call, 0, &node);
    return cpuprofile_add_node(file, &node, NULL);
}

static int read_nodes(struct cpuprofile *file)
{
    int r = json_array(&file->json);
    while (r >= 0 && (r = json_next_element(&file->json)) > 0)
        r = read_node(file);
    return r;
}

/* ---- a tree of nested nodes: old CPU profiles, and heap profiles ---- */

struct nested_level {
    struct cpuprofile_node node;
    struct call_frame call;
    int base; /* number of the first line */
};

static int open_nested(struct cpuprofile *file, struct nested_level *level)
{
    *level = (struct nested_level){
        .node = {.id = CPUPROFILE_NONE, .parent = CPUPROFILE_NONE},
        .base = 1,
    };
    return json_object(&file->json);
}

/* One key of a node that isn't "children". */
static int read_nested_key(struct cpuprofile *file, const struct json_string *key,
                           struct nested_level *level)
{
    struct json *json = &file->json;
    if (json_is(key, "id"))
        return read_id(file, &level->node.id);
    if ((json_is(key, "hitCount") || json_is(key, "selfSize")) && json_kind(json) == JSON_NUMBER)
        return json_u64(json, &level->node.hits);
    if (json_is(key, "callFrame")) {
        level->call = (struct call_frame){.line = -1, .column = -1};
        level->base = 0;
        return call_frame_read(json, file->profile, &level->call);
    }
    return call_frame_read_key(json, file->profile, key, &level->call);
}

/*
 * A node is added when its object ends, after its children: these are put under it then. `orphans`
 * are the added nodes whose parents are still open, of which each level owns those from its `from`.
 */
struct nested_walk {
    struct nested_level levels[JSON_DEPTH_MAX];
    size_t from[JSON_DEPTH_MAX];
    size_t depth;
    uint32_t *orphans;
    size_t orphan_count, orphan_capacity;
};

static int enter_nested(struct cpuprofile *file, struct nested_walk *walk)
{
    int r = open_nested(file, &walk->levels[walk->depth]);
    if (r == 0)
        walk->from[walk->depth++] = walk->orphan_count;
    return r;
}

static int leave_nested(struct cpuprofile *file, struct nested_walk *walk)
{
    struct nested_level *level = &walk->levels[--walk->depth];
    uint32_t index = 0;
    set_frame(file, &level->call, level->base, &level->node);
    int r = cpuprofile_add_node(file, &level->node, &index);
    if (r < 0)
        return r;
    for (size_t i = walk->from[walk->depth]; i < walk->orphan_count; i++)
        file->nodes[walk->orphans[i]].parent = index;
    walk->orphan_count = walk->from[walk->depth];
    array_reserve(walk->orphans, walk->orphan_capacity, walk->orphan_count + 1);
    walk->orphans[walk->orphan_count++] = index;
    return 0;
}

static int walk_nested(struct cpuprofile *file, struct nested_walk *walk)
{
    struct json *json = &file->json;
    int r = enter_nested(file, walk);
    while (r >= 0 && walk->depth) {
        struct json_string key;
        bool sibling = false;
        r = json_next_key(json, &key);
        if (r == 0) {
            r = leave_nested(file, walk);
            sibling = walk->depth;
        } else if (r > 0 && json_is(&key, "children") && json_kind(json) == JSON_ARRAY) {
            r = json_array(json);
            sibling = true;
        } else if (r > 0) {
            r = read_nested_key(file, &key, &walk->levels[walk->depth - 1]);
        }
        if (r >= 0 && sibling) {
            r = json_next_element(json);
            if (r > 0)
                r = enter_nested(file, walk);
        }
    }
    return r;
}

int cpuprofile_read_head(struct cpuprofile *file)
{
    _cleanup_free_ struct nested_walk *walk = memory_zalloc(1, sizeof(*walk));
    int r = walk_nested(file, walk);
    free(walk->orphans);
    file->nested = true;
    return r;
}

/* ---- samples ---- */

static int read_samples(struct cpuprofile *file)
{
    uint32_t id = 0;
    int r = json_array(&file->json);
    while (r >= 0 && (r = json_next_element(&file->json)) > 0) {
        r = read_id(file, &id);
        if (r < 0)
            break;
        if (file->sample_count == PROFILE_IDS_MAX)
            return error_set(file->json.error, -E2BIG,
                             "The file has more samples than a profile can hold.");
        array_reserve(file->samples, file->sample_capacity, file->sample_count + 1);
        file->samples[file->sample_count++] = id;
    }
    return r;
}

static int read_times(struct cpuprofile *file, bool absolute)
{
    struct json_number number;
    int r = json_array(&file->json);
    if (file->time_count && file->absolute != absolute)
        return json_fail(&file->json, "The file has both timeDeltas and timestamps");
    file->absolute = absolute;
    while (r >= 0 && (r = json_next_element(&file->json)) > 0) {
        r = json_number(&file->json, &number);
        if (r < 0)
            break;
        array_reserve(file->times_ns, file->time_capacity, file->time_count + 1);
        file->times_ns[file->time_count++] = json_number_scaled(&number, 3);
    }
    return r;
}

int cpuprofile_read_member(struct cpuprofile *file, const struct json_string *key)
{
    struct json *json = &file->json;
    bool nodes = json_is(key, "nodes"), head = json_is(key, "head");
    if ((nodes || head) && file->has_nodes)
        return json_fail(json, "The file has a second tree of nodes");
    file->has_nodes |= nodes || head;
    if (nodes)
        return read_nodes(file);
    if (head)
        return cpuprofile_read_head(file);
    if (json_is(key, "samples"))
        return read_samples(file);
    if (json_is(key, "timeDeltas"))
        return read_times(file, false);
    if (json_is(key, "timestamps"))
        return read_times(file, true);
    if (json_is(key, "startTime")) {
        file->has_start = true;
        return json_number(json, &file->start);
    }
    if (json_is(key, "endTime")) {
        file->has_end = true;
        return json_number(json, &file->end);
    }
    return 0;
}

static int cpuprofile_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(cpuprofile_release) struct cpuprofile file;
    cpuprofile_init(&file, source, profile, error);
    struct json *json = &file.json;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = cpuprofile_read_member(&file, &key);
    if (r >= 0)
        r = json_end(json);
    if (r >= 0 && !file.has_nodes)
        r = json_fail(json, "The file has neither \"nodes\" nor \"head\" before its end");
    return r < 0 ? r : cpuprofile_resolve(&file);
}

static int cpuprofile_detect(const uint8_t *bytes, size_t length)
{
#define HAS(key) json_sniff_key(bytes, length, key)
    /* Chrome's traces and heap profiles have call frames too. */
    if (!json_sniff_object(bytes, length) || HAS("traceEvents") || HAS("selfSize"))
        return 0;
    if (HAS("nodes") && HAS("callFrame"))
        return 3;
    if (HAS("head") && HAS("functionName"))
        return 2;
    if (HAS("timeDeltas") || (HAS("callFrame") && HAS("functionName")))
        return 2;
    if (HAS("startTime") && HAS("endTime"))
        return HAS("samples") || HAS("nodes") || HAS("timestamps") ? 2 : 0;
    return HAS("samples") && !HAS("profiles") ? 1 : 0;
#undef HAS
}

const struct format format_cpuprofile = {
    .name = "cpuprofile",
    .text = true,
    .summary = "V8's .cpuprofile, of node --cpu-prof and Chrome DevTools",
    .extensions = "",
    .detect = cpuprofile_detect,
    .read = cpuprofile_read,
};
