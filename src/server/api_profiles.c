// SPDX-License-Identifier: Apache-2.0
// The API's merged profiles: as a flame graph, a file of any format, a table, and around a
// function.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/pictures.h"
#include "profile/calltree.h"
#include "query/focus.h"
#include "query/sandwich.h"
#include "server/answer.h"
#include "server/api.h"
#include "server/tree_part.h"

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

static int write_flame(struct http_request *request, const struct profile *profile,
                       const struct query_quality *quality, const char *title, uint64_t nodes,
                       struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, "application/json");
    answer.held_bytes = HELD_PARTS * profile_memory(profile);
    calltree_init(&tree);
    int r = calltree_add(&tree, profile, CALLTREE_NEW, error);
    if (!r) {
        struct flame_options options = {.title = title};
        options.dropped = calltree_limit(&tree, (uint32_t)nodes);
        buffer_add_char(&answer.out, '{');
        quality_write(quality, profile, &answer.out);
        buffer_add_text(&answer.out, ",\"flame\":");
        r = flamedata_write(&answer.out, &tree, &options, error);
        buffer_add_text(&answer.out, "}\n");
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
        return error_set(error, -EINVAL,
                         "There is no format \"%.40s\" to answer in; json, pprof, folded, svg, "
                         "html, otlp and speedscope are.",
                         name);
    return 0;
}

int api_asked_order(struct http_request *request, enum rank_order *ret_order, struct error *error)
{
    static const char *const words[] = {"flat", "cum", NULL};
    unsigned index;
    int r = question_word(request, "sort", words, 0, &index, error);
    *ret_order = index ? RANK_BY_CUMULATIVE : RANK_BY_FLAT;
    return r;
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

/* The store has a state as a label of series: each is asked for by itself. */
static int add_states(struct question *question, const struct tree_part *part,
                      struct calltree *tree, unsigned type, struct error *error)
{
    _cleanup_(state_list_release) struct state_list states = {0};
    int r = store_label_values(question->server->store, &question->selection, CALLTREE_STATE_LABEL,
                               gather_state, &states, error);
    for (size_t i = 0; r >= 0 && i < states.count; i++) {
        _cleanup_profile_ struct profile profile;
        struct error nothing = {0};
        profile_init(&profile, 0);
        r = question_merge_label(question, CALLTREE_STATE_LABEL, states.list[i], &profile, error);
        if (r >= 0 && keep_focus(part, &profile, &nothing) >= 0)
            calltree_add_state(tree, &profile, type, states.list[i]);
    }
    return r;
}

/* The profile is released once its tree is made: parts of it are to have its room. */
static int write_page(struct http_request *request, struct question *question,
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
    r = add_states(question, part, &tree, type, error);
    if (r >= 0)
        r = html_draw(&answer.out, &tree, &options, error);
    return answer_end(&answer, r, error);
}

static void respond_profile(struct http_request *request, struct server *server,
                            const char *otherwise, const char *pattern)
{
    if (!parameters_known(request, pattern))
        return;
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    const struct format *format = NULL;
    _cleanup_tree_part_ struct tree_part part = {0};
    struct query_quality quality = {0};
    _cleanup_profile_ struct profile profile;
    int r = api_asked_format(request, otherwise, &format, &error);
    profile_init(&profile, format ? format->detail : 0);
    if (!r)
        r = tree_part_read(&part, request, DEFAULT_NODES, NODES_MAX, &error);
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = question_read_links(&question, request, &error);
    /* A picture of so many nodes has none that is smaller; a fleet has them by the million. */
    question.whole = format != NULL;
    if (!format && !part.focus_count)
        question.limits.smallest_share = 1 / (4.0 * (double)part.nodes);
    if (!r)
        r = question_merge_measured(&question, &profile, &quality, &error);
    if (!r)
        r = keep_focus(&part, &profile, &error);
    /* A picture that is taken along says what it is of. */
    const char *asked = http_request_query(request, "query");
    const char *title = asked && *asked ? asked : question.query.type;
    if (!r)
        r = format == &format_html ? write_page(request, &question, &part, &profile, title, &error)
            : format
                ? api_write_format(request, &profile, format, title, &error)
                : write_flame(request, &profile, &quality, question.query.type, part.nodes, &error);
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

void api_put_function(struct buffer *out, const struct naming_entry *entry)
{
    buffer_add_text(out, "{\"function\":");
    json_put_text(out, entry->name);
    buffer_add_text(out, ",\"file\":");
    json_put_text(out, entry->file);
    buffer_add_text(out, ",\"binary\":");
    json_put_text(out, entry->binary);
}

void api_put_unit(struct buffer *out, const char *type)
{
    size_t length;
    const char *unit = query_type_part(type, 2, &length);
    buffer_add_text(out, "\"type\":");
    json_put_text(out, type);
    buffer_printf(out, ",\"unit\":\"%.*s\"", (int)length, unit);
}

static int write_top(struct http_request *request, const struct profile *profile,
                     const struct query_quality *quality, const char *type, enum rank_order order,
                     uint64_t limit, struct error *error)
{
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_ranking_ struct ranking ranking = {0};
    _cleanup_answer_ struct answer answer = {0};
    struct buffer *out = &answer.out;
    answer_init(&answer, request, "application/json");
    naming_init(&naming, profile);
    rank_functions(profile, &naming, 0, order, &ranking);
    buffer_add_char(out, '{');
    api_put_unit(out, type);
    buffer_printf(out, ",\"total\":%lld,", (long long)ranking.total);
    quality_write(quality, profile, out);
    buffer_printf(out, ",\"function_count\":%zu,\"functions\":[", ranking.count);
    for (size_t i = 0; i < ranking.count && i < limit && buffer_pass(out); i++) {
        const struct rank_row *row = &ranking.rows[i];
        buffer_add_text(out, i ? ",\n" : "\n");
        api_put_function(out, &naming.entries[row->entry]);
        buffer_printf(out, ",\"flat\":%lld,\"cum\":%lld}", (long long)row->flat,
                      (long long)row->cumulative);
    }
    buffer_add_text(out, "]}\n");
    return answer_end(&answer, 0, error);
}

void api_top(struct http_request *request, void *server)
{
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    uint64_t limit = API_ROWS;
    enum rank_order order = RANK_BY_FLAT;
    struct query_quality quality = {0};
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, 0);
    if (!parameters_known(request, "/api/v1/top"))
        return;
    int r = question_number(request, "limit", 1, API_ROWS_MAX, &limit, &error);
    if (!r)
        r = api_asked_order(request, &order, &error);
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = question_read_links(&question, request, &error);
    if (!r)
        r = question_merge_measured(&question, &profile, &quality, &error);
    if (!r)
        r = write_top(request, &profile, &quality, question.query.type, order, limit, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

/* ---- around one function ---- */

static void put_neighbours(struct buffer *out, const char *key, const struct naming *naming,
                           const struct ranking *ranking, uint64_t limit)
{
    buffer_printf(out, ",\n\"%s_count\":%zu,\"%s\":[", key, ranking->count, key);
    for (size_t i = 0; i < ranking->count && i < limit && buffer_pass(out); i++) {
        const struct rank_row *row = &ranking->rows[i];
        static const struct naming_entry root = {.name = "", .file = "", .binary = ""};
        buffer_add_text(out, i ? ",\n" : "\n");
        api_put_function(out, row->entry == RANK_ROOT ? &root : &naming->entries[row->entry]);
        buffer_printf(out, ",\"cum\":%lld}", (long long)row->cumulative);
    }
    buffer_add_char(out, ']');
}

static int put_tree(struct buffer *out, const char *key, const struct profile *profile,
                    const char *title, uint64_t nodes, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    int r = calltree_add(&tree, profile, CALLTREE_NEW, error);
    if (r < 0)
        return r;
    struct flame_options options = {.title = title};
    options.dropped = calltree_limit(&tree, (uint32_t)nodes);
    buffer_printf(out, ",\n\"%s\":", key);
    return flamedata_write(out, &tree, &options, error);
}

static int write_callers(struct http_request *request, const struct profile *profile,
                         const struct query_quality *quality, const char *type,
                         const char *function, uint64_t limit, uint64_t nodes, struct error *error)
{
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_sandwich_ struct sandwich sandwich;
    naming_init(&naming, profile);
    if (!sandwich_init(&sandwich, profile, &naming, function))
        return error_set(error, -ENOENT,
                         "No stack of the selection has a function \"%.200s\"; names are "
                         "compared exactly, as top shows them.",
                         function);
    _cleanup_answer_ struct answer answer = {0};
    struct buffer *out = &answer.out;
    answer_init(&answer, request, "application/json");
    buffer_add_char(out, '{');
    api_put_unit(out, type);
    buffer_add_text(out, ",\"function\":");
    json_put_text(out, function);
    buffer_printf(out, ",\"flat\":%lld,\"cum\":%lld,\"total\":%lld,", (long long)sandwich.flat,
                  (long long)sandwich.cumulative, (long long)sandwich.total);
    quality_write(quality, profile, out);
    put_neighbours(out, "callers", &naming, &sandwich.callers, limit);
    put_neighbours(out, "callees", &naming, &sandwich.callees, limit);
    int r = put_tree(out, "caller_tree", &sandwich.above, function, nodes, error);
    if (!r)
        r = put_tree(out, "callee_tree", &sandwich.below, function, nodes, error);
    buffer_add_text(out, "}\n");
    return answer_end(&answer, r, error);
}

void api_callers(struct http_request *request, void *server)
{
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    uint64_t limit = API_ROWS, nodes = DEFAULT_NODES;
    struct query_quality quality = {0};
    const char *function = http_request_query(request, "function");
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, 0);
    if (!parameters_known(request, "/api/v1/callers"))
        return;
    int r = !function || !*function
                ? error_set(&error, -EINVAL, "The parameter function is missing.")
                : question_number(request, "limit", 1, API_ROWS_MAX, &limit, &error);
    if (!r)
        r = question_number(request, "max_nodes", 2, NODES_MAX, &nodes, &error);
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = question_read_links(&question, request, &error);
    if (!r)
        r = question_merge_measured(&question, &profile, &quality, &error);
    if (!r)
        r = write_callers(request, &profile, &quality, question.query.type, function, limit, nodes,
                          &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
