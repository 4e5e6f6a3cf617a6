// SPDX-License-Identifier: Apache-2.0
// The API's answers about profiles that come with the query: drawn, converted and compared with
// each other or with what is stored. Nothing of them is kept.

#include "server/api/api_files.h"

#include <string.h>

#include "compare/picture/changes.h"
#include "format/picture/flamedata.h"
#include "format/picture/pictures.h"
#include "format/picture/times.h"
#include "profile/filter.h"
#include "profile/level.h"
#include "profile/views/calltree.h"
#include "server/admission/admission.h"
#include "server/api/api.h"
#include "server/handler/answer.h"
#include "server/ingest/ingest.h"
#include "server/ingest/receive.h"

/* ---- answers ---- */

/* The quality of a profile that isn't in a store. */
static void put_quality(struct json_writer *json, const struct file_profile *file,
                        const struct calltree *tree, enum calltree_side side)
{
    const struct profile *profile = file->profile;
    struct query_quality quality = {.covered = -1};
    struct store_quality *found = &quality.found;
    unsigned type = profile_default_type(profile);
    found->rows = profile->samples.count;
    found->windows = found->series = 1;
    found->first_ns = profile->time_ns;
    found->last_ns = profile->time_ns + (profile->time_ns ? profile->duration_ns : 0);
    found->duration_ns = found->covered_ns = found->per_ns = profile->duration_ns;
    for (size_t i = 0; type < profile->type_count && i < profile->samples.count; i++)
        if (__builtin_add_overflow(found->total, profile->samples.values[type][i], &found->total))
            found->total = INT64_MAX;
    quality_note_cut(&quality, profile, type, tree, side);
    json_member_text(json, "format", file->format ? file->format->name : "");
    quality_write(&quality, profile, json);
}

int files_put_flame(struct buffer *out, const struct file_profile *file,
                    const struct tree_part *part, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    struct write_options write = {.type = -1};
    unsigned type;
    _cleanup_flame_table_ struct flame_table table = {0};
    calltree_init(&tree);
    int r = picture_tree(&tree, file->profile, &write, &type, error);
    if (r < 0)
        return r;
    _cleanup_flame_notes_ struct flame_notes notes;
    flame_notes_init(&notes, file->profile, &tree, type);
    struct flame_options options = {.title = file->name,
                                    .notes = (const char *const *)notes.list,
                                    .note_count = notes.count,
                                    .default_type = type};
    calltree_add_states(&tree, file->profile, profile_default_type(file->profile));
    _cleanup_flame_times_ struct flame_times times;
    flame_times_init(&times, &tree, file->profile, profile_default_type(file->profile));
    options.times = &times;
    r = tree_part_take(part, &tree, &table, &options, error);
    if (r < 0)
        return r;
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    put_quality(&json, file, &tree, CALLTREE_NEW);
    json_write_key(&json, "flame");
    r = flamedata_write(json_write_value(&json), &tree, &options, error);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
    return r;
}

static unsigned type_of(const struct profile *profile, const struct calltree_type *wanted)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), wanted->name) &&
            !strcmp(profile_text(profile, profile->types[i].unit), wanted->unit))
            return i;
    return PROFILE_TYPES_MAX;
}

static void put_types(struct buffer *out, const struct profile *profile)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        buffer_printf(out, "%s%.60s/%.60s", i ? ", " : "",
                      profile_text(profile, profile->types[i].type),
                      profile_text(profile, profile->types[i].unit));
}

/* Each type has its own totals, so its own factor. The type to show is one that both sides have:
 * the new side's default, or else the last. */
static int choose_types(const struct calltree *tree, const struct profile *const sides[2],
                        enum diff_normalize normalize, double *scales, unsigned *ret_type,
                        struct error *error)
{
    _cleanup_naming_ struct naming base = {0}, new_side = {0};
    unsigned usual = calltree_type_of(tree, sides[1], profile_default_type(sides[1]));
    unsigned chosen = PROFILE_TYPES_MAX;
    naming_init(&base, sides[0]);
    naming_init(&new_side, sides[1]);
    for (unsigned i = 0; i < tree->type_count; i++) {
        struct diff_side both[] = {{sides[0], &base, type_of(sides[0], &tree->types[i])},
                                   {sides[1], &new_side, type_of(sides[1], &tree->types[i])}};
        scales[i] = diff_scale(&both[0], &both[1], normalize);
        bool common = both[0].type < PROFILE_TYPES_MAX && both[1].type < PROFILE_TYPES_MAX;
        if (common && chosen != usual)
            chosen = i;
    }
    if (chosen == PROFILE_TYPES_MAX) {
        _cleanup_buffer_ struct buffer text = {0};
        buffer_add_text(&text, "The profiles can't be compared: the base has ");
        put_types(&text, sides[0]);
        buffer_add_text(&text, ", the other ");
        put_types(&text, sides[1]);
        buffer_add_text(&text, ", and they have no type in common.");
        return error_set(error, -EINVAL, "%s", buffer_text(&text));
    }
    *ret_type = chosen;
    return 0;
}

/* Which changes are certain, by the numbers of samples. Where that can't be judged there are no
 * rows, and changes are drawn by their size alone. */
struct judgement {
    struct naming namings[COMPARE_SIDES];
    struct compare_table table;
    struct comparison comparison;
};

#define JUDGED_FUNCTIONS_MAX 20000 /* about 10 MB */

static void judge(const struct profile *const profiles[2], const struct diff_side sides[2],
                  enum diff_normalize normalize, struct judgement *judgement)
{
    static const enum compare_normalize by[] = {[DIFF_BY_TOTAL] = COMPARE_PER_TOTAL,
                                                [DIFF_BY_DURATION] = COMPARE_PER_SECOND,
                                                [DIFF_ABSOLUTE] = COMPARE_RAW};
    static const char *const names[] = {"base", "new"};
    struct compare_source sources[COMPARE_SIDES];
    struct compare_options options = {.normalize =
                                          by[normalize == DIFF_DEFAULT ? DIFF_BY_TOTAL : normalize],
                                      .false_discovery_rate = 0.05};
    struct error ignored = {0};
    const struct profile_type *type = &profiles[1]->types[sides[1].type];
    if (level_is_sample_type(profile_text(profiles[1], type->type)))
        return;
    size_t functions = 0;
    for (int i = 0; i < COMPARE_SIDES; i++) {
        naming_init(&judgement->namings[i], profiles[i]);
        functions += judgement->namings[i].count;
        compare_source_init(&sources[i], profiles[i], &judgement->namings[i], sides[i].type);
        sources[i].side = (enum compare_side)i;
        sources[i].cluster = names[i];
    }
    if (functions <= JUDGED_FUNCTIONS_MAX &&
        !compare_table_build(sources, COMPARE_SIDES, &judgement->table, &ignored))
        compare(&judgement->table, &options, &judgement->comparison, &ignored);
}

static void judgement_release(struct judgement *judgement)
{
    comparison_release(&judgement->comparison);
    compare_table_release(&judgement->table);
    for (int i = 0; i < COMPARE_SIDES; i++)
        naming_release(&judgement->namings[i]);
}

int files_put_diff(struct buffer *out, const struct files_comparison *comparison,
                   const struct tree_part *part, struct error *error)
{
    static const enum flame_normalize words[] = {FLAME_NORMALIZE_TOTAL, FLAME_NORMALIZE_DURATION,
                                                 FLAME_NORMALIZE_NONE};
    const struct file_profile *base = comparison->base, *new_side = comparison->new_side;
    const struct profile *const sides[] = {base->profile, new_side->profile};
    enum diff_normalize normalize = comparison->normalize;
    const struct format *format = comparison->format;
    _cleanup_calltree_ struct calltree tree;
    _cleanup_flame_table_ struct flame_table table = {0};
    double scales[PROFILE_TYPES_MAX];
    unsigned type = 0;
    calltree_init(&tree);
    if (normalize == DIFF_BY_DURATION && (!sides[0]->duration_ns || !sides[1]->duration_ns))
        return error_set(error, -EINVAL,
                         "One of the profiles has no duration; use normalize=total or none.");
    /* The new side first, so that its types keep their order. */
    int r = calltree_add(&tree, sides[1], CALLTREE_NEW, error);
    if (!r)
        r = calltree_add(&tree, sides[0], CALLTREE_BASE, error);
    if (!r)
        r = choose_types(&tree, sides, normalize, scales, &type, error);
    const struct diff_side both[] = {{sides[0], NULL, type_of(sides[0], &tree.types[type])},
                                     {sides[1], NULL, type_of(sides[1], &tree.types[type])}};
    _cleanup_(judgement_release) struct judgement judgement = {0};
    const struct compare_causes unknown = {0};
    _cleanup_free_ struct flame_change *changes = NULL;
    size_t change_count = 0;
    if (!r) {
        normalize = diff_resolve(&both[0], &both[1], normalize);
        judge(sides, both, normalize, &judgement);
        changes = changes_list(&judgement.table, &judgement.comparison, &unknown, &change_count);
    }
    _cleanup_buffer_ struct buffer title = {0};
    buffer_printf(&title, "%s against %s", new_side->name, base->name);
    struct flame_options options = {
        .title = buffer_text(&title),
        .default_type = type,
        .normalize = words[normalize == DIFF_DEFAULT ? DIFF_BY_TOTAL : normalize],
        .scale = scales,
        .changes = changes,
        .change_count = change_count};
    if (!r)
        r = tree_part_take(part, &tree, &table, &options, error);
    if (r < 0)
        return r;
    if (format)
        return (format == &format_svg ? svg_draw : html_draw)(out, &tree, &options, error);
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_write_key(&json, "base");
    json_write_object(&json);
    put_quality(&json, base, &tree, CALLTREE_BASE);
    json_write_object_end(&json);
    json_write_key(&json, "new");
    json_write_object(&json);
    put_quality(&json, new_side, &tree, CALLTREE_NEW);
    json_write_object_end(&json);
    json_write_key(&json, "flame");
    r = flamedata_write(json_write_value(&json), &tree, &options, error);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
    return r;
}

/* ---- queries ---- */

/* A name that is only for titles, and comes from outside. */
static const char *asked_name(struct http_request *request, const char *parameter,
                              const char *otherwise)
{
    const char *name = http_request_query(request, parameter);
    return name && *name ? name : otherwise;
}

/* Of what a file may expand to. What is noted is a bound from above: readers reserve room that they
 * may never touch. */
#define GRANTED_PARTS 6

static bool no_more(struct memory_meter *meter)
{
    (void)meter;
    return false;
}

int files_read_profile(struct source *source, struct profile *profile,
                       const struct format **ret_format, struct error *error)
{
    struct memory_meter meter = {.granted_bytes = GRANTED_PARTS * (size_t)source->expansion_limit,
                                 .more = no_more};
    memory_meter = &meter;
    int r = receive_format(source, ret_format, profile, error);
    memory_meter = NULL;
    return r < 0 ? r : profile_prune(profile, error);
}

static int read_part(const struct multipart_part *part, uint64_t limit, struct profile *profile,
                     const struct format **ret_format, struct error *error)
{
    struct source source;
    int r = source_open_memory(&source, part->name, part->data, part->length, limit, error);
    if (r < 0)
        return r;
    r = files_read_profile(&source, profile, ret_format, error);
    source_release(&source);
    return r;
}

/* The parts `base` and `new` of a form. */
static int read_form(struct http_request *request, uint64_t limit, struct source *body,
                     struct profile profiles[2], const struct format *formats[2],
                     struct error *error)
{
    static const char *const names[] = {"base", "new"};
    struct multipart parts;
    struct multipart_part part;
    bool found[2] = {false, false};
    int r = source_need_all(body, limit, error);
    if (!r)
        r = multipart_init(&parts, http_request_header(request, "Content-Type"), source_data(body),
                           source_available(body), error);
    if (r < 0)
        return r;
    while ((r = multipart_next(&parts, &part, error)) > 0)
        for (int i = 0; i < 2; i++)
            if (!found[i] && !strcmp(part.name, names[i])) {
                if ((r = read_part(&part, limit, &profiles[i], &formats[i], error)) < 0)
                    return r;
                found[i] = true;
            }
    if (!r && (!found[0] || !found[1]))
        r = error_set(error, -EINVAL, "The form requires two files: the parts base and new.");
    return r;
}

/* The body is one side, what is stored the other: the base if base_query is given. */
static int read_and_ask(struct http_request *request, struct server *server, struct source *body,
                        struct profile profiles[2], const struct format *formats[2],
                        struct error *error)
{
    _cleanup_query_context_ struct query_context query_context = {0};
    struct query_quality quality = {0};
    bool base = http_request_query(request, "base_query") != NULL;
    int stored = base ? 0 : 1;
    if (!server || base == (http_request_query(request, "query") != NULL))
        return error_set(error, -EINVAL,
                         "A file is compared with the selection of either base_query or query, or "
                         "with another file in a form with the parts base and new.");
    int r = query_context_read(&query_context, request, server, base ? "base_" : "", true, error);
    if (!r)
        r = query_context_merge_measured(&query_context, &profiles[stored], &quality, error);
    if (!r)
        r = files_read_profile(body, &profiles[!stored], &formats[!stored], error);
    return r;
}

int files_read_comparison(struct files_comparison *comparison, struct http_request *request,
                          struct error *error)
{
    static const char *const words[] = {"total", "duration", "none", NULL};
    unsigned normalize;
    int r = parameter_word(request, "normalize", words, DIFF_DEFAULT, &normalize, error);
    if (!r)
        r = api_asked_format(request, "json", &comparison->format, error);
    if (!r && comparison->format && comparison->format != &format_svg &&
        comparison->format != &format_html)
        r = error_set(error, -EINVAL, "The formats of a diff are json, svg and html.");
    if (!r)
        comparison->normalize = (enum diff_normalize)normalize;
    return r;
}

void files_answer_flame(struct http_request *request, uint64_t limit)
{
    const struct format *written = NULL, *found = NULL;
    _cleanup_tree_part_ struct tree_part part = {0};
    struct http_source *source = NULL;
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/files/flame"))
        return;
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, "application/json");
    _cleanup_profile_ struct profile profile;
    enum profile_detail names = 0;
    int r = api_asked_format(request, "json", &written, &error);
    if (!r)
        r = parameter_names(request, &names, &error);
    profile_init(&profile, (written ? written->detail : format_html.detail) | names);
    if (!r)
        r = tree_part_read(&part, request, FILES_NODES, FILES_NODES_MAX, &error);
    if (!r)
        r = http_source_open(request, limit, &source, &error);
    if (!r)
        r = files_read_profile(http_source(source), &profile, &found, &error);
    struct file_profile file = {asked_name(request, "name", "profile"), found, &profile};
    if (!r && written)
        r = api_write_format(request, &profile, written, file.name, &error);
    else if (!r)
        r = answer_end(&answer, files_put_flame(&answer.out, &file, &part, &error), &error);
    if (r < 0)
        http_respond_failure(request, &error);
    http_source_close(source);
}

void files_answer_diff(struct http_request *request, uint64_t limit, struct server *server)
{
    struct profile profiles[2];
    const struct format *formats[2] = {NULL, NULL};
    struct files_comparison comparison = {0};
    _cleanup_tree_part_ struct tree_part part = {0};
    struct http_source *source = NULL;
    struct error error = {0};
    if (!parameters_known(request, "/api/v1/files/diff"))
        return;
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, "application/json");
    enum profile_detail names = 0;
    int r = parameter_names(request, &names, &error);
    profile_init(&profiles[0], names);
    profile_init(&profiles[1], names);
    if (!r)
        r = files_read_comparison(&comparison, request, &error);
    if (!r)
        r = tree_part_read(&part, request, FILES_NODES, FILES_NODES_MAX, &error);
    if (!r)
        r = http_source_open(request, limit, &source, &error);
    if (!r)
        r = http_request_is_type(request, "multipart/form-data")
                ? read_form(request, limit, http_source(source), profiles, formats, &error)
                : read_and_ask(request, server, http_source(source), profiles, formats, &error);
    struct file_profile base = {asked_name(request, "base_name", "base"), formats[0], &profiles[0]},
                        new_side = {asked_name(request, "name", "new"), formats[1], &profiles[1]};
    comparison.base = &base;
    comparison.new_side = &new_side;
    if (comparison.format)
        answer.content_type = api_content_type(comparison.format);
    if (!r)
        r = answer_end(&answer, files_put_diff(&answer.out, &comparison, &part, &error), &error);
    if (r < 0)
        http_respond_failure(request, &error);
    http_source_close(source);
    profile_release(&profiles[0]);
    profile_release(&profiles[1]);
}

/* Bodies count as much as a query may take: both are memory of one who asks. */
uint64_t files_expansion_limit(const struct server *server)
{
    return MIN(ingest_limits(server->ingest).expansion_bytes,
               atomic_load(&server->admissions->query_memory_bytes));
}

void api_files_flame(struct http_request *request, void *server)
{
    files_answer_flame(request, files_expansion_limit(server));
}

void api_files_diff(struct http_request *request, void *server)
{
    files_answer_diff(request, files_expansion_limit(server), server);
}
