// SPDX-License-Identifier: Apache-2.0
// The API's merged profiles: as a flame graph, and as a file of any format.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/picture/pictures.h"
#include "profile/views/calltree.h"
#include "query/focus.h"
#include "server/api/api.h"
#include "server/api/tree_part.h"
#include "server/api/tree_split.h"
#include "server/handler/answer.h"
#include "server/query/rates.h"

#define DEFAULT_NODES 8192
#define NODES_MAX (1u << 20)
#define HELD_PARTS 2 /* a profile, and what is made of it to write it */

const char *api_content_type(const struct format *format)
{
    if (format == &format_svg)
        return "image/svg+xml";
    if (format == &format_html)
        return "text/html; charset=utf-8";
    if (format == &format_folded)
        return "text/plain; charset=utf-8";
    if (format == &format_otlp)
        return "application/x-protobuf";
    if (format == &format_speedscope)
        return "application/json";
    return "application/octet-stream";
}

int api_write_format(struct http_request *request, const struct profile *profile,
                     const struct format *format, const char *title, struct error *error)
{
    struct write_options options = {.type = -1, .title = title};
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, api_content_type(format));
    answer.gzip = format->gzip;
    answer.held_bytes = HELD_PARTS * profile_memory(profile);
    int r = format->write(&answer.out, profile, &options, error);
    return answer_end(&answer, r, error);
}

static int keep_focus(const struct tree_part *part, struct profile *profile, struct error *error)
{
    _cleanup_naming_ struct naming naming = {0};
    if (!part->focus_count)
        return 0;
    naming_init(&naming, profile);
    return focus_below(profile, &naming, part->focus, part->focus_count) ? 0
                                                                         : tree_part_missing(error);
}

struct filling {
    struct calltree *tree;
    const struct tree_part *part;
};

static int add_to_tree(void *context, struct profile *profile, struct error *error)
{
    struct filling *filling = context;
    struct error nothing = {0};
    return keep_focus(filling->part, profile, &nothing) < 0
               ? 0
               : calltree_add(filling->tree, profile, CALLTREE_NEW, error);
}

/* The tree of the largest nodes, with exact values: where stacks were left out to find those nodes,
 * all are added once more. */
static int make_picture(struct query_context *query_context, const struct tree_part *part,
                        const struct profile *profile, struct calltree *tree,
                        struct query_quality *quality, uint32_t *ret_dropped, struct error *error)
{
    struct filling filling = {.tree = tree, .part = part};
    uint32_t nodes = (uint32_t)part->nodes;
    bool cut = quality->found.cut != 0;
    int r = calltree_add(tree, profile, CALLTREE_NEW, error);
    if (r < 0)
        return r;
    *ret_dropped = calltree_limit(tree, nodes);
    if (cut) {
        calltree_freeze(tree);
        r = query_context_each(query_context, 0, add_to_tree, &filling, quality, error);
        *ret_dropped += calltree_limit(tree, nodes);
    }
    quality_note_cut(quality, profile, 0, tree, CALLTREE_NEW);
    return r;
}

/* With which a page shows CPU time as money. */
static void put_price(struct json_writer *json, const struct query_context *query_context)
{
    const struct server *server = query_context->server;
    if (!(server->core_hour > 0) || rates_check_cpu(query_context->query.type, NULL) < 0)
        return;
    json_write_key(json, "price");
    json_write_object(json);
    json_member_number(json, "core_hour", server->core_hour);
    json_member_text(json, "currency", server->currency);
    json_write_object_end(json);
}

/* The same with a frame for each value of a label in front of all stacks. */
static int make_split_picture(struct query_context *query_context, const char *split,
                              const struct tree_part *part, const struct profile *profile,
                              struct calltree *tree, struct query_quality *quality,
                              struct flame_options *options, struct error *error)
{
    int r = tree_split_fill(query_context, split, tree, error);
    if (r >= 0)
        r = tree_part_take(part, tree, NULL, options, error);
    if (r >= 0)
        quality_note_cut(quality, profile, 0, tree, CALLTREE_NEW);
    return r;
}

static int write_flame(struct http_request *request, struct query_context *query_context,
                       const char *split, const struct tree_part *part,
                       const struct profile *profile, struct query_quality *quality,
                       struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, "application/json");
    answer.held_bytes = HELD_PARTS * profile_memory(profile);
    calltree_init(&tree);
    struct flame_options options = {.title = query_context->query.type};
    int r =
        split ? make_split_picture(query_context, split, part, profile, &tree, quality, &options,
                                   error)
              : make_picture(query_context, part, profile, &tree, quality, &options.dropped, error);
    if (!r) {
        struct json_writer json = json_writer(&answer.out);
        json_write_object(&json);
        quality_write(quality, NULL, &json);
        put_price(&json, query_context);
        json_write_key(&json, "flame");
        r = flamedata_write(json_write_value(&json), &tree, &options, error);
        json_write_object_end(&json);
        buffer_add_char(&answer.out, '\n');
    }
    return answer_end(&answer, r, error);
}

int api_asked_format(struct http_request *request, const char *otherwise,
                     const struct format **ret_format, struct error *error)
{
    const char *name = http_request_query(request, "format");
    name = name && *name ? name : otherwise;
    *ret_format = NULL;
    if (!strcmp(name, "json"))
        return 0;
    *ret_format = format_by_name(name);
    if (!*ret_format || !(*ret_format)->write)
        return error_set(
            error, -EINVAL,
            "Unknown format \"%.40s\"; use json, pprof, folded, svg, html, otlp or speedscope.",
            name);
    return 0;
}

int api_asked_order(struct http_request *request, enum rank_order *ret_order, struct error *error)
{
    static const char *const words[] = {"flat", "cum", NULL};
    unsigned index;
    int r = parameter_word(request, "sort", words, 0, &index, error);
    *ret_order = index ? RANK_BY_CUMULATIVE : RANK_BY_FLAT;
    return r;
}

struct state_list {
    char *list[CALLTREE_STATES_MAX];
    size_t count;
};

static void state_list_release(struct state_list *states)
{
    for (size_t i = 0; i < states->count; i++)
        free(states->list[i]);
}

static int gather_state(void *context, const char *text)
{
    struct state_list *states = context;
    if (*text && states->count < CALLTREE_STATES_MAX)
        states->list[states->count++] = memory_strdup(text);
    return 0;
}

/* The store has a state as a label of series, so each state is a query of its own. */
static int add_states(struct query_context *query_context, const struct tree_part *part,
                      struct calltree *tree, unsigned type, struct error *error)
{
    _cleanup_(state_list_release) struct state_list states = {0};
    int r = store_label_values(query_context->server->store, &query_context->selection,
                               CALLTREE_STATE_LABEL, gather_state, &states, error);
    for (size_t i = 0; r >= 0 && i < states.count; i++) {
        _cleanup_profile_ struct profile profile;
        struct error nothing = {0};
        struct store_quality quality = {0};
        profile_init(&profile, 0);
        struct matcher matcher = {MATCH_EQUAL, CALLTREE_STATE_LABEL, states.list[i], NULL};
        r = query_context_merge_matching(query_context, &matcher, &profile, &quality, error);
        if (r >= 0 && keep_focus(part, &profile, &nothing) >= 0)
            calltree_add_state(tree, &profile, type, states.list[i]);
    }
    return r;
}

/* The profile is released once its tree is made: parts of it are to have its room. */
static int write_page(struct http_request *request, struct query_context *query_context,
                      const struct tree_part *part, struct profile *profile, const char *title,
                      struct error *error)
{
    const struct write_options chosen = {.type = -1};
    _cleanup_calltree_ struct calltree tree;
    _cleanup_answer_ struct answer answer = {0};
    unsigned type;
    answer_init(&answer, request, api_content_type(&format_html));
    answer.held_bytes = HELD_PARTS * profile_memory(profile);
    calltree_init(&tree);
    int r = picture_tree(&tree, profile, &chosen, &type, error);
    if (r < 0)
        return answer_end(&answer, r, error);
    _cleanup_flame_notes_ struct flame_notes notes;
    flame_notes_init(&notes, profile, &tree, type);
    profile_release(profile);
    profile_init(profile, 0);
    struct flame_options options = {.title = title,
                                    .notes = (const char *const *)notes.list,
                                    .note_count = notes.count,
                                    .default_type = type};
    r = add_states(query_context, part, &tree, type, error);
    if (r >= 0)
        r = html_draw(&answer.out, &tree, &options, error);
    return answer_end(&answer, r, error);
}

static void respond_profile(struct http_request *request, struct server *server,
                            const char *otherwise, const char *pattern)
{
    if (!parameters_known(request, pattern))
        return;
    _cleanup_query_context_ struct query_context query_context = {0};
    struct error error = {0};
    const struct format *format = NULL;
    const char *split = NULL;
    _cleanup_tree_part_ struct tree_part part = {0};
    struct query_quality quality = {0};
    _cleanup_profile_ struct profile profile;
    int r = api_asked_format(request, otherwise, &format, &error);
    profile_init(&profile, format ? format->detail : 0);
    if (!r)
        r = tree_part_read(&part, request, DEFAULT_NODES, NODES_MAX, &error);
    if (!r)
        r = tree_part_read_split(&split, request, &error);
    if (!r && split && format)
        r = error_set(&error, -EINVAL, "split is for format json.");
    if (!r)
        r = query_context_read_level(&query_context, request, server, &error);
    if (!r)
        r = query_context_read_links(&query_context, request, &error);
    /* Smaller frames can't be in a picture of so many nodes; a fleet has millions of them. */
    query_context.whole = format != NULL;
    if (!format && !part.focus_count && !split)
        query_context.limits.smallest_share = 1 / (4.0 * (double)part.nodes);
    if (!r)
        r = query_context_merge_measured(&query_context, &profile, &quality, &error);
    if (!r)
        r = split ? 0 : keep_focus(&part, &profile, &error);
    /* A picture that is taken along says what it is of. */
    const char *asked = http_request_query(request, "query");
    const char *title = asked && *asked ? asked : query_context.query.type;
    if (!r)
        r = format == &format_html
                ? write_page(request, &query_context, &part, &profile, title, &error)
            : format
                ? api_write_format(request, &profile, format, title, &error)
                : write_flame(request, &query_context, split, &part, &profile, &quality, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

void api_flame(struct http_request *request, void *server)
{
    respond_profile(request, server, "json", "/api/v1/flame");
}

void api_profile(struct http_request *request, void *server)
{
    respond_profile(request, server, "pprof", "/api/v1/profile");
}

void api_put_function(struct json_writer *json, const struct naming_entry *entry)
{
    json_member_text(json, "function", entry->name);
    json_member_text(json, "file", entry->file);
    json_member_text(json, "binary", entry->binary);
}

void api_put_unit(struct json_writer *json, const char *type)
{
    size_t length;
    const char *unit = query_type_part(type, 2, &length);
    json_member_text(json, "type", type);
    json_write_key(json, "unit");
    json_write_bytes(json, unit, length);
}

int api_missing_function(const char *function, struct error *error)
{
    return error_set(error, -ENOENT,
                     "No stack of the selection has a function \"%.200s\"; names must match "
                     "exactly, as shown by top.",
                     function);
}
