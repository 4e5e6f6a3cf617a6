// SPDX-License-Identifier: Apache-2.0
// The parts of an OTLP request other than samples and tables: resources, scopes and Profiles. Each
// Profile with samples is a series, which defines the meaning of its rows.

#include "format/otlp/model.h"

#include <stddef.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/random.h"

#define COMPACT_ROWS (1u << 18)
#define COMMENTS_MAX 256

void otlp_model_init(struct otlp_model *model, struct profile *profile)
{
    *model = (struct otlp_model){.profile = profile, .compact_at = COMPACT_ROWS};
    /* Early in boot there may be no entropy yet; a fixed seed is still correct. */
    model->blobs.seed = random_bits();
    otlp_blob(&model->blobs, NULL, 0);
}

void otlp_model_release(struct otlp_model *model)
{
    otlp_dictionary_release(&model->dictionary);
    otlp_blobs_release(&model->blobs);
    otlp_labels_free(model->labels);
    free(model->series);
    free(model->rows);
    free(model->types);
    free(model->undecided);
    free(model->comments);
    digest_table_release(&model->ids);
    buffer_release(&model->doubtful);
    buffer_release(&model->field_7);
    buffer_release(&model->field_11);
    buffer_release(&model->field_12);
    for (size_t i = 0; i < ARRAY_LENGTH(model->numbers); i++)
        buffer_release(&model->numbers[i].joined);
}

const char *otlp_layout_name(enum otlp_layout layout)
{
    static const char *const names[OTLP_LAYOUTS] = {"1.8", "1.9", "1.10/1.11"};
    return names[layout];
}

void otlp_summary_text(const struct otlp_summary *summary, struct buffer *out)
{
    bool any = false;
    buffer_add_text(out, "OTLP");
    for (int i = 0; i < OTLP_LAYOUTS; i++) {
        if (!summary->by_layout[i])
            continue;
        buffer_printf(out, "%s %s", any ? " and" : "", otlp_layout_name(i));
        any = true;
    }
    buffer_printf(out, "%s%s, %llu profile%s, %llu sample%s", any ? " layout" : "",
                  summary->guessed ? " (guessed)" : "", (unsigned long long)summary->profiles,
                  summary->profiles == 1 ? "" : "s", (unsigned long long)summary->samples,
                  summary->samples == 1 ? "" : "s");
}

/* ---- series ---- */

uint32_t otlp_current_series(struct otlp_model *model)
{
    if (model->current.series == UINT32_MAX) {
        array_reserve(model->series, model->series_capacity, model->series_count + 1);
        model->series[model->series_count] = (struct otlp_series){0};
        model->current.series = (uint32_t)model->series_count++;
    }
    return model->current.series;
}

/* A scope and a resource may be told after the Profiles they hold for, so series learn of them when
 * the message that has both ends. */
void otlp_end_scope(struct otlp_model *model)
{
    for (size_t i = model->scope_series; i < model->series_count; i++)
        model->series[i].scope = model->scope;
    model->scope_series = model->series_count;
    model->scope = 0;
}

void otlp_end_resource(struct otlp_model *model)
{
    for (size_t i = model->resource_series; i < model->series_count; i++)
        model->series[i].resource = model->resource;
    model->resource_series = model->series_count;
    model->resource = 0;
    model->summary.resources++;
}

void otlp_resource(struct otlp_model *model, const void *data, size_t length)
{
    model->resource = otlp_blob(&model->blobs, data, length);
}

void otlp_scope(struct otlp_model *model, const void *data, size_t length)
{
    model->scope = otlp_blob(&model->blobs, data, length);
}

/* Makes equal series one; those of the resource being read may still change and stay apart. */
static void merge_series(struct otlp_model *model, uint32_t *map)
{
    struct id_table index = {0};
    size_t complete = model->resource_series, kept = 0;
    for (size_t i = 0; i < complete; i++) {
        struct otlp_series series = model->series[i];
        uint64_t hash = XXH3_64bits_withSeed(&series, sizeof(series), model->blobs.seed);
        struct id_probe probe = id_probe_start(hash);
        uint32_t found;
        while ((found = id_table_next(&index, &probe)) != ID_NONE)
            if (!memcmp(&model->series[found], &series, sizeof(series)))
                break;
        if (found == ID_NONE) {
            found = (uint32_t)kept++;
            model->series[found] = series;
            id_table_insert(&index, hash, found);
        }
        map[i] = found;
    }
    id_table_release(&index);
    size_t shift = complete - kept;
    for (size_t i = complete; i < model->series_count; i++) {
        model->series[i - shift] = model->series[i];
        map[i] = (uint32_t)(i - shift);
    }
    model->series_count -= shift;
    model->resource_series -= shift;
    model->scope_series -= shift;
    if (model->current.series != UINT32_MAX)
        model->current.series -= (uint32_t)shift;
    for (size_t i = 0; i < model->undecided_count; i++)
        model->undecided[i].series = map[model->undecided[i].series];
}

/* Adds up rows that differ in nothing but their value, so that memory follows the number of
 * distinct stacks and not the length of the input. Called each time the rows have doubled. */
void otlp_compact(struct otlp_model *model)
{
    _cleanup_free_ uint32_t *map = memory_alloc((model->series_count + 1) * sizeof(*map));
    merge_series(model, map);
    struct id_table index = {0};
    size_t kept = 0;
    for (size_t i = 0; i < model->row_count; i++) {
        struct otlp_row row = model->rows[i];
        row.series = map[row.series];
        uint64_t hash = XXH3_64bits_withSeed(&row, OTLP_IDENTITY_BYTES, model->blobs.seed);
        struct id_probe probe = id_probe_start(hash);
        uint32_t found = ID_NONE;
        while (!row.time_ns && (found = id_table_next(&index, &probe)) != ID_NONE)
            if (!memcmp(&model->rows[found], &row, OTLP_IDENTITY_BYTES))
                break;
        if (found != ID_NONE) {
            int64_t *value = &model->rows[found].value;
            if (__builtin_add_overflow(*value, row.value, value))
                *value = row.value < 0 ? INT64_MIN : INT64_MAX;
            continue;
        }
        if (!row.time_ns)
            id_table_insert(&index, hash, (uint32_t)kept);
        model->rows[kept++] = row;
    }
    id_table_release(&index);
    model->row_count = kept;
    model->compact_at = MAX(kept * 2, (size_t)COMPACT_ROWS);
}

/* ---- Profile ---- */

void otlp_begin_profile(struct otlp_model *model)
{
    model->summary.profiles++;
    model->current = (struct otlp_profile_state){
        .series = UINT32_MAX,
        .doubt_start = model->doubtful.length,
    };
    model->field_7.length = model->field_11.length = model->field_12.length = 0;
}

static int read_value_type(struct otlp_model *model, const struct wire_field *message,
                           struct profile_type *type, bool *ret_temporality, struct error *error)
{
    struct wire wire = wire_of_field(message);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.type != WIRE_VARINT)
            continue;
        r = 0;
        if (field.number == 1)
            r = otlp_index(model, field.value, "ValueType", &type->type, error);
        else if (field.number == 2)
            r = otlp_index(model, field.value, "ValueType", &type->unit, error);
        else if (field.number == 3 && field.value && ret_temporality)
            *ret_temporality = true;
        if (r < 0)
            return r;
    }
    return r < 0 ? otlp_malformed(model, "ValueType", error) : 0;
}

static void keep_numbers(struct buffer *out, const struct wire_field *field)
{
    if (field->type != WIRE_BYTES && field->type != WIRE_VARINT)
        return;
    struct wire bytes = wire_repeated(field);
    size_t length = (size_t)(bytes.end - bytes.at);
    if (out->length + length <= OTLP_FIELD_LIMIT)
        buffer_add(out, bytes.at, length);
}

/* Fields 3 to 6 have changed their wire types since 1.7, so that none can be taken for another. */
static int refuse_old_profile(const struct otlp_model *model, struct error *error)
{
    return error_set(error, -ENOTSUP,
                     "The Profile before offset %llu has the layout of OTLP profiles 1.7 or older; "
                     "supported are 1.8 to 1.11: update the sender.",
                     (unsigned long long)model->offset);
}

static void note_id(struct otlp_profile_state *current, const struct wire_field *field)
{
    if (field->type == WIRE_BYTES && field->length == OTLP_PROFILE_ID_BYTES)
        memcpy(current->id, field->data, OTLP_PROFILE_ID_BYTES);
}

int otlp_profile_field(struct otlp_model *model, const struct wire_field *field,
                       struct error *error)
{
    static const uint8_t types[] = {[1] = WIRE_BYTES,  [2] = WIRE_BYTES, [3] = WIRE_FIXED64,
                                    [4] = WIRE_VARINT, [5] = WIRE_BYTES, [6] = WIRE_VARINT};
    struct otlp_profile_state *current = &model->current;
    if (field->number < ARRAY_LENGTH(types) && field->type != types[field->number])
        return field->number < 3 ? otlp_malformed(model, "Profile", error)
                                 : refuse_old_profile(model, error);
    switch (field->number) {
    case 1:
        return read_value_type(model, field, &current->type, &current->is_1_8, error);
    case 2:
        return otlp_sample(model, field->data, field->length, error);
    case 3:
        current->time_ns = field->value;
        return 0;
    case 4:
        current->duration_ns = field->value;
        return 0;
    case 5:
        return read_value_type(model, field, &current->period_type, NULL, error);
    case 6:
        current->period = (int64_t)field->value;
        return 0;
    case 7: /* 1.8: comments; since: the Profile's id */
        current->is_1_8 |= field->type == WIRE_VARINT;
        note_id(current, field);
        keep_numbers(&model->field_7, field);
        return 0;
    case 8: /* 1.8: the Profile's id; since: a count */
        current->is_1_8 |= field->type == WIRE_BYTES;
        note_id(current, field);
        return 0;
    case 9: /* 1.8: a count; since: a name */
        current->is_1_8 |= field->type == WIRE_VARINT;
        return 0;
    case 11: /* 1.8: a payload; since: attributes */
        keep_numbers(&model->field_11, field);
        return 0;
    case 12: /* 1.8: attributes */
        current->is_1_8 |= field->type == WIRE_BYTES || field->type == WIRE_VARINT;
        keep_numbers(&model->field_12, field);
        return 0;
    default:
        return 0;
    }
}

static int add_type(struct otlp_model *model, struct profile_type type, uint32_t *ret_index,
                    struct error *error)
{
    for (size_t i = 0; i < model->type_count; i++) {
        if (model->types[i].type == type.type && model->types[i].unit == type.unit) {
            *ret_index = (uint32_t)i;
            return 0;
        }
    }
    if (model->type_count == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "There are more than %d sample types before offset %llu.",
                         PROFILE_TYPES_MAX, (unsigned long long)model->offset);
    array_reserve(model->types, model->type_capacity, model->type_count + 1);
    *ret_index = (uint32_t)model->type_count;
    model->types[model->type_count++] = type;
    return 0;
}

static void add_comments(struct otlp_model *model)
{
    if (!model->field_7.length)
        return;
    struct wire wire = wire_of(model->field_7.data, model->field_7.length);
    uint64_t index;
    while (wire.at < wire.end && wire_varint(&wire, &index)) {
        if (!index || index > OTLP_INDEX_MAX || model->comment_count == COMMENTS_MAX)
            continue;
        array_reserve(model->comments, model->comment_capacity, model->comment_count + 1);
        model->comments[model->comment_count++] = (uint32_t)index;
    }
}

/* The layout of the Profile that ends here, or else a note to decide it later. */
static int decide_profile(struct otlp_model *model, struct error *error)
{
    struct otlp_profile_state *current = &model->current;
    if (current->votes > 0)
        current->is_1_8 = false;
    bool old = current->votes < 0 || current->is_1_8;
    bool doubt = !old && !current->votes && model->doubtful.length > current->doubt_start;
    if (doubt && !current->decided) {
        array_reserve(model->undecided, model->undecided_capacity, model->undecided_count + 1);
        model->undecided[model->undecided_count++] = (struct otlp_undecided){
            .series = current->series,
            .weak = current->weak,
            .start = current->doubt_start,
            .end = model->doubtful.length,
        };
        return 0;
    }
    int r = current->decided ? 0 : otlp_decide(model, old ? OTLP_1_9 : OTLP_1_10, error);
    if (current->layout == OTLP_1_9 && current->is_1_8)
        current->layout = OTLP_1_8;
    if (current->samples)
        model->summary.by_layout[current->layout]++;
    model->votes += current->votes;
    return r;
}

static void note_time(struct otlp_model *model)
{
    uint64_t start = model->current.time_ns, end;
    if (!start)
        return;
    if (__builtin_add_overflow(start, model->current.duration_ns, &end))
        end = UINT64_MAX;
    if (!model->start_ns || start < model->start_ns)
        model->start_ns = start;
    if (end > model->end_ns)
        model->end_ns = end;
}

/* ---- Profiles that come again ---- */

/* Some senders use one id for all profiles, so the time is a part of the identity. */
struct profile_identity {
    uint8_t id[OTLP_PROFILE_ID_BYTES];
    uint64_t time_ns, duration_ns;
    struct profile_type type; /* string indexes: of this request */
};

static struct digest digest_of(const void *data, size_t length)
{
    XXH128_hash_t hash = XXH3_128bits(data, length);
    return (struct digest){.low = hash.low64, .high = hash.high64};
}

/* Whether a Profile of the same id and type was there in this request; notes it otherwise. */
static bool is_repeated(struct otlp_model *model)
{
    static const uint8_t none[OTLP_PROFILE_ID_BYTES];
    const struct otlp_profile_state *current = &model->current;
    struct otlp_summary *summary = &model->summary;
    struct profile_identity identity = {
        .time_ns = current->time_ns, .duration_ns = current->duration_ns, .type = current->type};
    if (!memcmp(current->id, none, sizeof(none)))
        return false;
    memcpy(identity.id, current->id, sizeof(identity.id));
    struct digest digest = digest_of(&identity, sizeof(identity));
    if (digest_table_find(&model->ids, digest) != ID_NONE) {
        summary->repeated++;
        return true;
    }
    digest_table_insert(&model->ids, digest, 0);
    digest = digest_of(&identity, offsetof(struct profile_identity, type));
    summary->identified++;
    summary->ids.low += digest.low;
    summary->ids.high += digest.high;
    return false;
}

/* Takes all back that the Profile has brought: its rows are the last, of a series of its own. */
static void drop_profile(struct otlp_model *model)
{
    uint32_t series = model->current.series;
    model->doubtful.length = model->current.doubt_start;
    if (series == UINT32_MAX)
        return;
    while (model->row_count && model->rows[model->row_count - 1].series == series)
        model->row_count--;
    model->series_count = series;
}

int otlp_end_profile(struct otlp_model *model, struct error *error)
{
    struct otlp_profile_state *current = &model->current;
    uint32_t type = 0;
    if (is_repeated(model)) {
        drop_profile(model);
        return 0;
    }
    int r = add_type(model, current->type, &type, error);
    if (!r)
        r = decide_profile(model, error);
    if (r < 0)
        return r;
    const struct buffer *attributes =
        current->is_1_8 && !model->json ? &model->field_12 : &model->field_11;
    if (current->is_1_8)
        add_comments(model);
    if (current->samples || attributes->length) {
        uint32_t index = otlp_current_series(model); /* may move the array */
        struct otlp_series *series = &model->series[index];
        series->type = type;
        series->attributes = otlp_blob(&model->blobs, attributes->data, attributes->length);
        series->period_type = current->period_type.type;
        series->period_unit = current->period_type.unit;
        series->period = current->period;
    }
    if (!model->period) {
        model->period_type = current->period_type;
        model->period = MAX(current->period, 0);
    } else if (!memcmp(&model->period_type, &current->period_type, sizeof(model->period_type))) {
        model->period = MAX(model->period, current->period);
    }
    note_time(model);
    return 0;
}
