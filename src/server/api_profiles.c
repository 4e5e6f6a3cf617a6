// SPDX-License-Identifier: Apache-2.0
// The API's merged profiles: as a flame graph, a file of any format, a table, a difference.

#include <string.h>

#include "format/flamedata.h"
#include "format/format.h"
#include "format/pictures.h"
#include "profile/calltree.h"
#include "profile/diff.h"
#include "profile/rank.h"
#include "server/question.h"

#define DEFAULT_NODES 8192
#define NODES_MAX (1u << 20)
#define DEFAULT_ROWS 100
#define ROWS_MAX 1000000

static const char *content_type(const struct format *format)
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

static int write_format(struct http_request *request, const struct profile *profile,
                        const struct format *format, const char *title, struct error *error)
{
    struct write_options options = {.type = -1, .title = title};
    struct buffer out = {0}, compressed = {0};
    int r = format->write(&out, profile, &options, error);
    if (!r && format->gzip && format_compress_gzip(&out, &compressed) < 0)
        r = error_set(error, -ENOMEM, "The profile can't be compressed.");
    if (!r)
        http_respond(request, 200, content_type(format), format->gzip ? &compressed : &out);
    buffer_release(&out);
    buffer_release(&compressed);
    return r;
}

static int write_flame(struct http_request *request, const struct profile *profile,
                       const struct store_quality *quality, const char *title, uint64_t nodes,
                       struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    struct buffer out = {0};
    calltree_init(&tree);
    int r = calltree_add(&tree, profile, CALLTREE_NEW, error);
    if (!r) {
        struct flame_options options = {.title = title};
        options.dropped = calltree_limit(&tree, (uint32_t)nodes);
        buffer_add_char(&out, '{');
        quality_write(quality, profile, &out);
        buffer_add_text(&out, ",\"flame\":");
        r = flamedata_write(&out, &tree, &options, error);
        buffer_add_text(&out, "}\n");
    }
    if (!r)
        http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
    return r;
}

/* The format that is asked for; NULL for JSON. */
static int asked_format(struct http_request *request, const char *otherwise,
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

static void respond_profile(struct http_request *request, struct server *server,
                            const char *otherwise)
{
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    const struct format *format = NULL;
    uint64_t nodes = DEFAULT_NODES;
    struct store_quality quality = {0};
    _cleanup_profile_ struct profile profile;
    int r = asked_format(request, otherwise, &format, &error);
    profile_init(&profile, format ? format->detail : 0);
    if (!r)
        r = question_number(request, "max_nodes", 2, NODES_MAX, &nodes, &error);
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = question_merge(&question, &profile, &quality, &error);
    if (!r)
        r = format ? write_format(request, &profile, format, question.query.type, &error)
                   : write_flame(request, &profile, &quality, question.query.type, nodes, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}

void api_flame(struct http_request *request, void *server)
{
    respond_profile(request, server, "json");
}

void api_profile(struct http_request *request, void *server)
{
    respond_profile(request, server, "pprof");
}

static void put_function(struct buffer *out, const struct naming_entry *entry)
{
    buffer_add_text(out, "{\"function\":");
    json_put_text(out, entry->name);
    buffer_add_text(out, ",\"file\":");
    json_put_text(out, entry->file);
    buffer_add_text(out, ",\"binary\":");
    json_put_text(out, entry->binary);
}

static void put_unit(struct buffer *out, const char *type)
{
    size_t length;
    const char *unit = query_type_part(type, 2, &length);
    buffer_add_text(out, "\"type\":");
    json_put_text(out, type);
    buffer_printf(out, ",\"unit\":\"%.*s\"", (int)length, unit);
}

static void write_top(struct http_request *request, const struct profile *profile,
                      const struct store_quality *quality, const char *type, uint64_t limit)
{
    const char *sort = http_request_query(request, "sort");
    _cleanup_naming_ struct naming naming = {0};
    _cleanup_ranking_ struct ranking ranking = {0};
    struct buffer out = {0};
    naming_init(&naming, profile);
    rank_functions(profile, &naming, 0,
                   sort && !strcmp(sort, "cum") ? RANK_BY_CUMULATIVE : RANK_BY_FLAT, &ranking);
    buffer_add_char(&out, '{');
    put_unit(&out, type);
    buffer_printf(&out, ",\"total\":%lld,", (long long)ranking.total);
    quality_write(quality, profile, &out);
    buffer_printf(&out, ",\"function_count\":%zu,\"functions\":[", ranking.count);
    for (size_t i = 0; i < ranking.count && i < limit; i++) {
        const struct rank_row *row = &ranking.rows[i];
        buffer_add_text(&out, i ? ",\n" : "\n");
        put_function(&out, &naming.entries[row->entry]);
        buffer_printf(&out, ",\"flat\":%lld,\"cum\":%lld}", (long long)row->flat,
                      (long long)row->cumulative);
    }
    buffer_add_text(&out, "]}\n");
    http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
}

void api_top(struct http_request *request, void *server)
{
    _cleanup_question_ struct question question = {0};
    struct error error = {0};
    uint64_t limit = DEFAULT_ROWS;
    struct store_quality quality = {0};
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, 0);
    int r = question_number(request, "limit", 1, ROWS_MAX, &limit, &error);
    if (!r)
        r = question_read(&question, request, server, "", true, &error);
    if (!r)
        r = question_merge(&question, &profile, &quality, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    else
        write_top(request, &profile, &quality, question.query.type, limit);
}

/* ---- differences ---- */

struct comparison {
    struct question base, new_side;
    struct profile profiles[2];
    struct store_quality quality[2];
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
    static const char *const names[] = {"total", "duration", "none"};
    const char *normalize = http_request_query(request, "normalize");
    bool known = !normalize;
    for (size_t i = 0; normalize && i < ARRAY_LENGTH(names); i++)
        if (!strcmp(normalize, names[i])) {
            comparison->normalize = (enum diff_normalize)i;
            known = true;
        }
    if (!known)
        return error_set(error, -EINVAL, "normalize is total, duration or none, not \"%.40s\".",
                         normalize);
    const char *query = http_request_query(request, "query");
    int r = question_read(&comparison->new_side, request, server, "", true, error);
    const struct store_selection *selection = &comparison->new_side.selection;
    if (!r)
        r = question_read_from(&comparison->base, request, server, "base_", query ? query : "",
                               selection->from_ns, selection->to_ns, true, error);
    if (!r)
        r = question_merge(&comparison->base, &comparison->profiles[0], &comparison->quality[0],
                           error);
    if (!r)
        r = question_merge(&comparison->new_side, &comparison->profiles[1], &comparison->quality[1],
                           error);
    return r;
}

static void write_diff(struct http_request *request, const struct comparison *comparison,
                       const struct diff *diff, uint64_t limit)
{
    struct buffer out = {0};
    buffer_add_char(&out, '{');
    put_unit(&out, comparison->new_side.query.type);
    buffer_printf(&out, ",\"base_total\":%lld,\"new_total\":%lld,\"scale\":%.9g,\"base\":{",
                  (long long)diff->base_total, (long long)diff->new_total, diff->scale);
    quality_write(&comparison->quality[0], NULL, &out);
    buffer_add_text(&out, "},\"new\":{");
    quality_write(&comparison->quality[1], NULL, &out);
    buffer_printf(&out, "},\"function_count\":%zu,\"functions\":[", diff->count);
    /* Both ends matter: the widest growth and the greatest shrinkage. */
    size_t shown = MIN(diff->count, limit), head = (shown + 1) / 2;
    for (size_t i = 0; i < shown; i++) {
        const struct diff_row *row =
            &diff->rows[shown == diff->count || i < head ? i : diff->count - (shown - i)];
        buffer_add_text(&out, i ? ",\n" : "\n");
        put_function(&out, row->entry);
        buffer_printf(&out,
                      ",\"flat_change\":%lld,\"cum_change\":%lld,\"base_flat\":%lld,"
                      "\"base_cum\":%lld,\"new_flat\":%lld,\"new_cum\":%lld}",
                      (long long)row->flat_change, (long long)row->cumulative_change,
                      (long long)row->base_flat, (long long)row->base_cumulative,
                      (long long)row->new_flat, (long long)row->new_cumulative);
    }
    buffer_add_text(&out, "]}\n");
    http_respond(request, 200, "application/json", &out);
    buffer_release(&out);
}

static int draw_diff(struct http_request *request, const struct comparison *comparison,
                     const struct format *format, struct error *error)
{
    static const enum flame_normalize normalize[] = {
        FLAME_NORMALIZE_TOTAL, FLAME_NORMALIZE_DURATION, FLAME_NORMALIZE_NONE};
    _cleanup_calltree_ struct calltree tree;
    struct buffer out = {0};
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
        r = format == &format_svg ? svg_draw(&out, &tree, &options, error)
            : format == &format_html
                ? html_draw(&out, &tree, &options, error)
                : error_set(error, -EINVAL, "A difference comes as json, svg or html.");
    if (!r)
        http_respond(request, 200, content_type(format), &out);
    buffer_release(&out);
    return r;
}

void api_diff(struct http_request *request, void *server)
{
    _cleanup_(comparison_release) struct comparison comparison = {0};
    struct error error = {0};
    const struct format *format = NULL;
    uint64_t limit = DEFAULT_ROWS;
    profile_init(&comparison.profiles[0], 0);
    profile_init(&comparison.profiles[1], 0);
    int r = asked_format(request, "json", &format, &error);
    if (!r)
        r = question_number(request, "limit", 1, ROWS_MAX, &limit, &error);
    if (!r)
        r = read_comparison(&comparison, request, server, &error);
    if (!r && strcmp(comparison.base.query.type, comparison.new_side.query.type))
        r = error_set(&error, -EINVAL, "Profiles of different types can't be compared.");
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    _cleanup_naming_ struct naming base = {0}, new_side = {0};
    _cleanup_diff_ struct diff diff = {0};
    naming_init(&base, &comparison.profiles[0]);
    naming_init(&new_side, &comparison.profiles[1]);
    struct diff_side sides[] = {{&comparison.profiles[0], &base, 0},
                                {&comparison.profiles[1], &new_side, 0}};
    comparison.scale = diff_scale(&sides[0], &sides[1], comparison.normalize);
    if (format) {
        if (draw_diff(request, &comparison, format, &error) < 0)
            http_respond_failure(request, &error);
        return;
    }
    const char *sort = http_request_query(request, "sort");
    diff_functions(&sides[0], &sides[1], comparison.scale,
                   sort && !strcmp(sort, "cum") ? RANK_BY_CUMULATIVE : RANK_BY_FLAT, &diff);
    write_diff(request, &comparison, &diff, limit);
}
