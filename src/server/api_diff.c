// SPDX-License-Identifier: Apache-2.0
// The API's differences between two selections: as a table of functions or as a picture.

#include <string.h>

#include "format/flamedata.h"
#include "format/pictures.h"
#include "profile/diff.h"
#include "server/answer.h"
#include "server/api.h"
#include "server/tree_part.h"

/* A browser draws that many at once. */
#define DEFAULT_NODES 65536
#define NODES_MAX (1u << 20)

struct comparison {
    struct question base, new_side;
    struct profile profiles[2];
    struct query_quality quality[2];
    enum diff_normalize normalize;
    double scale;
};

static void comparison_release(struct comparison *comparison)
{
    question_release(&comparison->base);
    question_release(&comparison->new_side);
    profile_release(&comparison->profiles[0]);
    profile_release(&comparison->profiles[1]);
}

static int read_comparison(struct comparison *comparison, struct http_request *request,
                           struct server *server, struct error *error)
{
    static const char *const names[] = {"total", "duration", "none", NULL};
    unsigned normalize;
    int r = question_word(request, "normalize", names, 0, &normalize, error);
    if (r < 0)
        return r;
    comparison->normalize = (enum diff_normalize)normalize;
    const char *query = http_request_query(request, "query");
    r = question_read(&comparison->new_side, request, server, "", true, error);
    const struct store_selection *selection = &comparison->new_side.selection;
    if (!r)
        r = question_read_from(&comparison->base, request, server, "base_", query ? query : "",
                               selection->from_ns, selection->to_ns, true, error);
    if (!r)
        r = question_merge_measured(&comparison->base, &comparison->profiles[0],
                                    &comparison->quality[0], error);
    if (!r)
        r = question_merge_measured(&comparison->new_side, &comparison->profiles[1],
                                    &comparison->quality[1], error);
    return r;
}

static int write_diff(struct http_request *request, const struct comparison *comparison,
                      enum rank_order order, uint64_t limit, struct error *error)
{
    _cleanup_naming_ struct naming base = {0}, new_side = {0};
    _cleanup_diff_ struct diff found = {0};
    struct diff *diff = &found;
    _cleanup_answer_ struct answer answer = {0};
    struct buffer *out = &answer.out;
    answer_init(&answer, request, "application/json");
    naming_init(&base, &comparison->profiles[0]);
    naming_init(&new_side, &comparison->profiles[1]);
    struct diff_side sides[] = {{&comparison->profiles[0], &base, 0},
                                {&comparison->profiles[1], &new_side, 0}};
    diff_functions(&sides[0], &sides[1], comparison->scale, order, diff);
    buffer_add_char(out, '{');
    api_put_unit(out, comparison->new_side.query.type);
    buffer_printf(out, ",\"base_total\":%lld,\"new_total\":%lld,\"scale\":%.9g,\"base\":{",
                  (long long)diff->base_total, (long long)diff->new_total, diff->scale);
    quality_write(&comparison->quality[0], &comparison->profiles[0], out);
    buffer_add_text(out, "},\"new\":{");
    quality_write(&comparison->quality[1], &comparison->profiles[1], out);
    buffer_printf(out, "},\"function_count\":%zu,\"functions\":[", diff->count);
    /* Both ends matter: the widest growth and the greatest shrinkage. */
    size_t shown = MIN(diff->count, limit), head = (shown + 1) / 2;
    for (size_t i = 0; i < shown && buffer_pass(out); i++) {
        const struct diff_row *row =
            &diff->rows[shown == diff->count || i < head ? i : diff->count - (shown - i)];
        buffer_add_text(out, i ? ",\n" : "\n");
        api_put_function(out, row->entry);
        buffer_printf(out,
                      ",\"flat_change\":%lld,\"cum_change\":%lld,\"base_flat\":%lld,"
                      "\"base_cum\":%lld,\"new_flat\":%lld,\"new_cum\":%lld}",
                      (long long)row->flat_change, (long long)row->cumulative_change,
                      (long long)row->base_flat, (long long)row->base_cumulative,
                      (long long)row->new_flat, (long long)row->new_cumulative);
    }
    buffer_add_text(out, "]}\n");
    return answer_end(&answer, 0, error);
}

/* {"base":{quality},"new":{quality},"flame":{...}}, for pages that draw by themselves. */
static int write_flame(struct buffer *out, const struct comparison *comparison,
                       const struct calltree *tree, const struct flame_options *options,
                       struct error *error)
{
    buffer_add_text(out, "{\"base\":{");
    quality_write(&comparison->quality[0], &comparison->profiles[0], out);
    buffer_add_text(out, "},\"new\":{");
    quality_write(&comparison->quality[1], &comparison->profiles[1], out);
    buffer_add_text(out, "},\"flame\":");
    int r = flamedata_write(out, tree, options, error);
    buffer_add_text(out, "}\n");
    return r;
}

/* `format` is svg or html; NULL for the data of the picture. */
static int draw_diff(struct http_request *request, const struct comparison *comparison,
                     const struct tree_part *part, const struct format *format, struct error *error)
{
    static const enum flame_normalize normalize[] = {
        FLAME_NORMALIZE_TOTAL, FLAME_NORMALIZE_DURATION, FLAME_NORMALIZE_NONE};
    _cleanup_calltree_ struct calltree tree;
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
        r = tree_part_take(part, &tree, &options.dropped, error);
    if (!r)
        r = !format                 ? write_flame(&answer.out, comparison, &tree, &options, error)
            : format == &format_svg ? svg_draw(&answer.out, &tree, &options, error)
                                    : html_draw(&answer.out, &tree, &options, error);
    return answer_end(&answer, r, error);
}

/* What the base has to be multiplied by. */
static void choose_scale(struct comparison *comparison)
{
    _cleanup_naming_ struct naming base = {0}, new_side = {0};
    naming_init(&base, &comparison->profiles[0]);
    naming_init(&new_side, &comparison->profiles[1]);
    struct diff_side sides[] = {{&comparison->profiles[0], &base, 0},
                                {&comparison->profiles[1], &new_side, 0}};
    comparison->scale = diff_scale(&sides[0], &sides[1], comparison->normalize);
}

void api_diff(struct http_request *request, void *server)
{
    _cleanup_(comparison_release) struct comparison comparison = {0};
    struct error error = {0};
    const struct format *format = NULL;
    _cleanup_tree_part_ struct tree_part part = {0};
    uint64_t limit = API_ROWS;
    enum rank_order order;
    if (!parameters_known(request, "/api/v1/diff"))
        return;
    profile_init(&comparison.profiles[0], 0);
    profile_init(&comparison.profiles[1], 0);
    const char *asked = http_request_query(request, "format");
    bool flame = asked && !strcmp(asked, "flame");
    int r = flame ? 0 : api_asked_format(request, "json", &format, &error);
    if (!r && format && format != &format_svg && format != &format_html)
        r = error_set(&error, -EINVAL, "A difference comes as json, flame, svg or html.");
    if (!r)
        r = question_number(request, "limit", 1, API_ROWS_MAX, &limit, &error);
    if (!r)
        r = tree_part_read(&part, request, DEFAULT_NODES, NODES_MAX, &error);
    if (!r)
        r = api_asked_order(request, &order, &error);
    if (!r)
        r = read_comparison(&comparison, request, server, &error);
    if (!r && strcmp(comparison.base.query.type, comparison.new_side.query.type))
        r = error_set(&error, -EINVAL, "Profiles of different types can't be compared.");
    if (!r) {
        choose_scale(&comparison);
        if (format || flame)
            r = draw_diff(request, &comparison, &part, format, &error);
        else
            r = write_diff(request, &comparison, order, limit, &error);
    }
    if (r < 0)
        http_respond_failure(request, &error);
}
