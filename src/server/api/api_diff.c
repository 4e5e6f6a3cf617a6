// SPDX-License-Identifier: Apache-2.0
// The API's differences between two selections: as a table of functions or as a picture.

#include <string.h>

#include "format/picture/flamedata.h"
#include "format/picture/pictures.h"
#include "profile/level.h"
#include "profile/views/diff.h"
#include "query/covered.h"
#include "server/api/api.h"
#include "server/api/table_query.h"
#include "server/handler/answer.h"

/* A browser draws that many at once. */
#define DEFAULT_NODES 65536
#define NODES_MAX (1u << 20)

struct comparison {
    struct query_context base, new_side;
    struct profile profiles[2];
    struct query_quality quality[2];
    enum diff_normalize normalize;
    double scale;
};

static void comparison_release(struct comparison *comparison)
{
    query_context_release(&comparison->base);
    query_context_release(&comparison->new_side);
    profile_release(&comparison->profiles[0]);
    profile_release(&comparison->profiles[1]);
}

static int read_comparison(struct comparison *comparison, struct http_request *request,
                           struct server *server, struct error *error)
{
    static const char *const names[] = {"total", "duration", "none", NULL};
    unsigned normalize;
    int r = parameter_word(request, "normalize", names, DIFF_DEFAULT, &normalize, error);
    if (r < 0)
        return r;
    comparison->normalize = (enum diff_normalize)normalize;
    const char *query = http_request_query(request, "query");
    r = query_context_read(&comparison->new_side, request, server, "", true, error);
    const struct store_selection *selection = &comparison->new_side.selection;
    if (!r)
        r = query_context_read_from(&comparison->base, request, server, "base_", query ? query : "",
                                    selection->from_ns, selection->to_ns, true, error);
    if (!r && strcmp(comparison->base.query.type, comparison->new_side.query.type))
        r = error_set(error, -EINVAL, "Profiles of different types can't be compared.");
    if (!r)
        r = query_context_narrow(&comparison->new_side, request, error);
    return r < 0 ? r : query_context_narrow(&comparison->base, request, error);
}

/* ---- as a table ---- */

static double scale_of_table(void *context, const struct function_table *table)
{
    const struct comparison *comparison = context;
    const char *type = comparison->new_side.query.type;
    struct diff_sums sums[2] = {
        {table->total[CALLTREE_BASE], covered_duration(type, &comparison->quality[0].found),
         level_is_type(type)},
        {table->total[CALLTREE_NEW], covered_duration(type, &comparison->quality[1].found),
         level_is_type(type)}};
    return diff_scale_of(&sums[0], &sums[1], comparison->normalize);
}

static void put_row(struct json_writer *json, const struct function_table *table,
                    const struct function_row *row, double scale)
{
    int64_t base_flat = row->flat[CALLTREE_BASE], base_cum = row->cumulative[CALLTREE_BASE];
    int64_t new_flat = row->flat[CALLTREE_NEW], new_cum = row->cumulative[CALLTREE_NEW];
    json_write_line(json);
    json_write_object(json);
    table_put_function(json, table, row);
    json_member_signed(json, "flat_change", diff_change(base_flat, new_flat, scale));
    json_member_signed(json, "cum_change", diff_change(base_cum, new_cum, scale));
    json_member_signed(json, "base_flat", base_flat);
    json_member_signed(json, "base_cum", base_cum);
    json_member_signed(json, "new_flat", new_flat);
    json_member_signed(json, "new_cum", new_cum);
    json_write_object_end(json);
}

static void put_rows(struct json_writer *json, const struct table_query *query,
                     const struct function_table *table)
{
    /* Unless the request has an order, both ends matter: the largest growth and the largest
     * shrinkage. */
    size_t left = table->count - MIN(table->count, query->offset);
    size_t shown = MIN(left, query->limit), head = query->ends ? (shown + 1) / 2 : shown;
    json_write_array(json);
    for (size_t i = 0; i < shown && buffer_pass(json->out); i++)
        put_row(json, table,
                &table->rows[i < head ? query->offset + i : table->count - (shown - i)],
                query->sorting.scale);
    json_write_array_end(json);
}

/* The quality of both sides, as the members "base" and "new". `profiles` may be NULL. */
static void put_qualities(struct json_writer *json, const struct comparison *comparison,
                          const struct profile *profiles)
{
    static const char *const keys[] = {"base", "new"};
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        json_write_key(json, keys[i]);
        json_write_object(json);
        quality_write(&comparison->quality[i], profiles ? &profiles[i] : NULL, json);
        json_write_object_end(json);
    }
}

static int write_table(struct http_request *request, struct comparison *comparison,
                       struct table_query *query, struct error *error)
{
    _cleanup_function_table_ struct function_table table;
    struct table_side sides[] = {{&comparison->base, CALLTREE_BASE, &comparison->quality[0]},
                                 {&comparison->new_side, CALLTREE_NEW, &comparison->quality[1]}};
    function_table_init(&table);
    int r =
        table_make(query, sides, ARRAY_LENGTH(sides), scale_of_table, comparison, &table, error);
    if (r < 0)
        return r;
    _cleanup_answer_ struct answer answer = {0};
    struct json_writer writer = json_writer(&answer.out), *json = &writer;
    answer_init(&answer, request, "application/json");
    json_write_object(json);
    api_put_unit(json, comparison->new_side.query.type);
    json_member_signed(json, "base_total", table.total[CALLTREE_BASE]);
    json_member_signed(json, "new_total", table.total[CALLTREE_NEW]);
    json_member_number(json, "scale", query->sorting.scale);
    put_qualities(json, comparison, NULL);
    table_put_counts(json, query, &table, true);
    json_write_key(json, "functions");
    put_rows(json, query, &table);
    json_write_object_end(json);
    buffer_add_char(json->out, '\n');
    return answer_end(&answer, 0, error);
}

/* ---- as a picture ---- */

/* {"base":{quality},"new":{quality},"flame":{...}}, for pages that draw by themselves. */
static int write_flame(struct buffer *out, struct comparison *comparison,
                       const struct calltree *tree, const struct flame_options *options,
                       struct error *error)
{
    quality_note_cut(&comparison->quality[0], &comparison->profiles[0], 0, tree, CALLTREE_BASE);
    quality_note_cut(&comparison->quality[1], &comparison->profiles[1], 0, tree, CALLTREE_NEW);
    struct json_writer writer = json_writer(out), *json = &writer;
    json_write_object(json);
    put_qualities(json, comparison, comparison->profiles);
    json_write_key(json, "flame");
    int r = flamedata_write(json_write_value(json), tree, options, error);
    json_write_object_end(json);
    buffer_add_char(out, '\n');
    return r;
}

struct filling {
    struct calltree *tree;
    enum calltree_side side;
};

static int add_to_tree(void *context, struct profile *profile, struct error *error)
{
    struct filling *filling = context;
    return calltree_add(filling->tree, profile, filling->side, error);
}

/* Stacks were left out to find the largest nodes: all are added once more, for exact values. */
static int fill_tree(struct comparison *comparison, const struct tree_part *part,
                     struct calltree *tree, struct flame_options *options, struct error *error)
{
    struct filling filling = {.tree = tree, .side = CALLTREE_NEW};
    calltree_freeze(tree);
    int r = query_context_each(&comparison->new_side, 0, add_to_tree, &filling,
                               &comparison->quality[1], error);
    filling.side = CALLTREE_BASE;
    if (!r)
        r = query_context_each(&comparison->base, 0, add_to_tree, &filling, &comparison->quality[0],
                               error);
    return r < 0 ? r : tree_part_take(part, tree, NULL, options, error);
}

/* `format` is svg or html; NULL for the data of the picture. */
static int draw_diff(struct http_request *request, struct comparison *comparison,
                     const struct tree_part *part, const struct format *format, struct error *error)
{
    static const enum flame_normalize normalize[] = {
        FLAME_NORMALIZE_TOTAL, FLAME_NORMALIZE_DURATION, FLAME_NORMALIZE_NONE};
    _cleanup_calltree_ struct calltree tree;
    _cleanup_flame_table_ struct flame_table table = {0};
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, format ? api_content_type(format) : "application/json");
    double scales[PROFILE_TYPES_MAX];
    calltree_init(&tree);
    int r = calltree_add(&tree, &comparison->profiles[1], CALLTREE_NEW, error);
    if (!r)
        r = calltree_add(&tree, &comparison->profiles[0], CALLTREE_BASE, error);
    for (size_t i = 0; i < ARRAY_LENGTH(scales); i++)
        scales[i] = comparison->scale;
    struct flame_options options = {.title = comparison->new_side.query.type,
                                    .normalize = normalize[comparison->normalize],
                                    .scale = scales};
    if (!r)
        r = tree_part_take(part, &tree, format == &format_html ? &table : NULL, &options, error);
    if (!r && (comparison->quality[0].found.cut || comparison->quality[1].found.cut))
        r = fill_tree(comparison, part, &tree, &options, error);
    if (!r)
        r = !format                 ? write_flame(&answer.out, comparison, &tree, &options, error)
            : format == &format_svg ? svg_draw(&answer.out, &tree, &options, error)
                                    : html_draw(&answer.out, &tree, &options, error);
    return answer_end(&answer, r, error);
}

/* Merges both sides, and finds what the base has to be multiplied by. */
static int merge_sides(struct comparison *comparison, struct error *error)
{
    int r = query_context_merge_measured(&comparison->base, &comparison->profiles[0],
                                         &comparison->quality[0], error);
    if (!r)
        r = query_context_merge_measured(&comparison->new_side, &comparison->profiles[1],
                                         &comparison->quality[1], error);
    if (r < 0)
        return r;
    _cleanup_naming_ struct naming base = {0}, new_side = {0};
    naming_init(&base, &comparison->profiles[0]);
    naming_init(&new_side, &comparison->profiles[1]);
    struct diff_side sides[] = {{&comparison->profiles[0], &base, 0},
                                {&comparison->profiles[1], &new_side, 0}};
    comparison->normalize = diff_resolve(&sides[0], &sides[1], comparison->normalize);
    comparison->scale = diff_scale(&sides[0], &sides[1], comparison->normalize);
    return 0;
}

void api_diff(struct http_request *request, void *server)
{
    _cleanup_(comparison_release) struct comparison comparison = {0};
    struct error error = {0};
    const struct format *format = NULL;
    _cleanup_tree_part_ struct tree_part part = {0};
    _cleanup_table_query_ struct table_query query = {0};
    if (!parameters_known(request, "/api/v1/diff"))
        return;
    profile_init(&comparison.profiles[0], 0);
    profile_init(&comparison.profiles[1], 0);
    const char *asked = http_request_query(request, "format");
    bool flame = asked && !strcmp(asked, "flame");
    int r = flame ? 0 : api_asked_format(request, "json", &format, &error);
    if (!r && format && format != &format_svg && format != &format_html)
        r = error_set(&error, -EINVAL, "The formats of a diff are json, flame, svg and html.");
    if (!r)
        r = tree_part_read(&part, request, format == &format_html ? NODES_MAX : DEFAULT_NODES,
                           NODES_MAX, &error);
    if (!r)
        r = table_query_read(&query, request, true, &error);
    if (!r)
        r = read_comparison(&comparison, request, server, &error);
    /* A page that is taken along has a table, too. */
    comparison.base.whole = comparison.new_side.whole = format == &format_html;
    if (!r && (format || flame))
        r = merge_sides(&comparison, &error);
    if (!r)
        r = format || flame ? draw_diff(request, &comparison, &part, format, &error)
                            : write_table(request, &comparison, &query, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
