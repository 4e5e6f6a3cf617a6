// SPDX-License-Identifier: Apache-2.0
// Rows of samples as Parca's agent sends them: see parca.h. A row has one value, of the type that
// its columns name, so a batch becomes a profile for each type that occurs in it.

#include "format/parca/parca.h"

#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "format/parca/internal.h"
#include "io/source.h"

/* The agent sends every so often, and doesn't tell how often: this is its default. Rows may be
 * rare, so that the time between the first and the last says less. */
#define INTERVAL_NS 5000000000ll

#define KINDS_MAX 32
#define LABEL_PREFIX "labels."

/* Rows with equal keys are one profile. */
enum kind_column { SAMPLE_TYPE, SAMPLE_UNIT, PERIOD_TYPE, PERIOD_UNIT, TEMPORALITY, KIND_COLUMNS };
static const char *const kind_names[KIND_COLUMNS] = {"sample_type", "sample_unit", "period_type",
                                                     "period_unit", "temporality"};

struct text {
    const char *data;
    size_t length;
};

struct kind {
    struct text texts[KIND_COLUMNS];
    int64_t period;
};

struct label {
    struct text name;
    const struct arrow_array *array;
};

struct samples {
    const struct parca_input *input;
    enum profile_detail detail;
    parca_take_fn *take;
    void *context;
    struct parca_frames frames;
    uint64_t rows; /* of all batches so far */

    /* of the batch at hand */
    const struct arrow_array *batch;
    const struct arrow_array *stack, *stack_id, *value, *timestamp, *period;
    const struct arrow_array *kind_columns[KIND_COLUMNS];
    struct label labels[PARCA_LABELS_MAX];
    size_t label_count;
    struct kind kinds[KINDS_MAX];
    size_t kind_count;
    uint8_t *kind_of; /* by row */
    int64_t first_ns, last_ns;

    /* stacks by id, of version 1 */
    const struct arrow_array *known_ids, *known_stacks;
    struct id_table known;
};

static void samples_release(struct samples *samples)
{
    parca_frames_release(&samples->frames);
    id_table_release(&samples->known);
    free(samples->kind_of);
}

/* ---- columns ---- */

static int add_label(struct samples *samples, const struct arrow_array *array, struct text name,
                     struct error *error)
{
    if (samples->label_count == PARCA_LABELS_MAX)
        return error_set(error, -E2BIG, "The samples have more than %d labels.", PARCA_LABELS_MAX);
    samples->labels[samples->label_count++] = (struct label){name, array};
    return 0;
}

/* Labels are a structure, or columns of their own in version 1. */
static int find_labels(struct samples *samples, struct error *error)
{
    const struct arrow_array *batch = samples->batch;
    size_t prefix = strlen(LABEL_PREFIX);
    int r = 0;
    samples->label_count = 0;
    for (unsigned i = 0; !r && i < batch->field->child_count; i++) {
        const struct arrow_array *column = &batch->children[i];
        const struct arrow_field *field = column->field;
        if (field->name_length > prefix && !memcmp(field->name, LABEL_PREFIX, prefix))
            r = add_label(samples, column,
                          (struct text){field->name + prefix, field->name_length - prefix}, error);
        if (!arrow_is_named(field, "labels") || field->kind != ARROW_STRUCT || column->values)
            continue;
        for (unsigned k = 0; !r && k < field->child_count; k++) {
            const struct arrow_field *label = column->children[k].field;
            r = add_label(samples, &column->children[k],
                          (struct text){label->name, label->name_length}, error);
        }
    }
    return r;
}

static int find_columns(struct samples *samples, struct error *error)
{
    const struct arrow_array *batch = samples->batch;
    samples->stack = arrow_child(batch, "stacktrace");
    samples->stack_id = arrow_child(batch, "stacktrace_id");
    samples->value = arrow_child(batch, "value");
    samples->timestamp = arrow_child(batch, "timestamp");
    samples->period = arrow_child(batch, "period");
    for (size_t i = 0; i < KIND_COLUMNS; i++)
        samples->kind_columns[i] = arrow_child(batch, kind_names[i]);
    if (!samples->value || samples->value->values || samples->value->field->kind != ARROW_INTEGER ||
        samples->value->length < batch->length || !samples->timestamp ||
        (!samples->stack && !samples->stack_id))
        return error_set(error, -EBADMSG,
                         "The Arrow data has no columns of values, times and stacks: it is not of "
                         "Parca's schemas 1 and 2.");
    if ((samples->rows += batch->length) > samples->input->row_limit)
        return error_set(error, -E2BIG, "The request has more than %llu samples.",
                         (unsigned long long)samples->input->row_limit);
    return find_labels(samples, error);
}

static int64_t number_at(const struct arrow_array *array, uint64_t row)
{
    int64_t number = 0;
    arrow_number(arrow_cell(array, row), &number);
    return number;
}

static struct text text_at(const struct arrow_array *array, uint64_t row)
{
    struct text text = {"", 0};
    arrow_text(arrow_cell(array, row), &text.data, &text.length);
    return text;
}

static bool same_text(struct text a, struct text b)
{
    return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* ---- kinds ---- */

static struct kind kind_at(const struct samples *samples, uint64_t row, uint64_t *ret_end)
{
    struct kind kind = {.period = number_at(samples->period, row)};
    *ret_end = samples->period ? arrow_run_end(samples->period, row) : UINT64_MAX;
    for (size_t i = 0; i < KIND_COLUMNS; i++) {
        kind.texts[i] = text_at(samples->kind_columns[i], row);
        if (samples->kind_columns[i])
            *ret_end = MIN(*ret_end, arrow_run_end(samples->kind_columns[i], row));
    }
    return kind;
}

static size_t find_kind(struct samples *samples, const struct kind *kind)
{
    for (size_t i = 0; i < samples->kind_count; i++) {
        bool same = samples->kinds[i].period == kind->period;
        for (size_t k = 0; k < KIND_COLUMNS; k++)
            same = same && same_text(samples->kinds[i].texts[k], kind->texts[k]);
        if (same)
            return i;
    }
    if (samples->kind_count < KINDS_MAX)
        samples->kinds[samples->kind_count] = *kind;
    return samples->kind_count++;
}

/* Finds the types that there are, which rows are of which, and when the rows are of. */
static int find_kinds(struct samples *samples, struct error *error)
{
    uint64_t rows = samples->batch->length, end = 0;
    size_t kind = 0;
    free(samples->kind_of);
    samples->kind_of = memory_alloc(rows + 1);
    samples->kind_count = 0;
    samples->first_ns = INT64_MAX;
    samples->last_ns = 0;
    for (uint64_t row = 0; row < rows; row++) {
        if (row >= end) {
            struct kind found = kind_at(samples, row, &end);
            kind = find_kind(samples, &found);
            if (kind >= KINDS_MAX)
                return error_set(error, -E2BIG, "The request has more than %d types of samples.",
                                 KINDS_MAX);
        }
        samples->kind_of[row] = (uint8_t)kind;
        int64_t time_ns = number_at(samples->timestamp, row);
        if (time_ns <= 0)
            return error_set(error, -EBADMSG, "A sample has no valid timestamp.");
        samples->first_ns = MIN(samples->first_ns, time_ns);
        samples->last_ns = MAX(samples->last_ns, time_ns);
    }
    return source_check_memory(error);
}

/* ---- rows ---- */

static bool is_label(const struct label *label, const char *name)
{
    return label->name.length == strlen(name) &&
           !memcmp(label->name.data, name, label->name.length);
}

/* Parca has no services: its scrapers have jobs, and its agent what relabelling makes of the
 * process and its container. */
static struct text service_of(const struct samples *samples, uint64_t row)
{
    static const char *const names[] = {"service_name", "job", "comm", "container"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t k = 0; k < samples->label_count; k++) {
            struct text text = is_label(&samples->labels[k], names[i])
                                   ? text_at(samples->labels[k].array, row)
                                   : (struct text){"", 0};
            if (text.length)
                return text;
        }
    return (struct text){"", 0};
}

static struct profile_label make_label(struct profile *profile, struct text name, struct text value)
{
    return (struct profile_label){.key = profile_string(profile, name.data, name.length),
                                  .text = profile_string(profile, value.data, value.length)};
}

/* The labels of a row, which hold for all rows before *ret_end. */
static uint32_t labels_at(const struct samples *samples, struct profile *profile, uint64_t row,
                          uint64_t *ret_end)
{
    struct profile_label list[PARCA_LABELS_MAX + 1];
    size_t count = 0;
    *ret_end = UINT64_MAX;
    for (size_t i = 0; i < samples->label_count; i++) {
        const struct label *label = &samples->labels[i];
        struct text value = text_at(label->array, row);
        *ret_end = MIN(*ret_end, arrow_run_end(label->array, row));
        if (value.length && label->name.length && !is_label(label, "service_name"))
            list[count++] = make_label(profile, label->name, value);
    }
    struct text service = service_of(samples, row);
    if (service.length)
        list[count++] =
            make_label(profile, (struct text){"service_name", strlen("service_name")}, service);
    return profile_label_set(profile, list, count);
}

static uint32_t find_stack(const struct samples *samples, struct text id)
{
    struct id_probe probe = id_probe_start(XXH3_64bits(id.data, id.length));
    uint32_t found;
    while ((found = id_table_next(&samples->known, &probe)) != ID_NONE)
        if (same_text(text_at(samples->known_ids, found), id))
            break;
    return found;
}

static struct arrow_cell stack_at(const struct samples *samples, uint64_t row)
{
    if (samples->stack)
        return arrow_cell(samples->stack, row);
    uint32_t found = find_stack(samples, text_at(samples->stack_id, row));
    return arrow_cell(found == ID_NONE ? NULL : samples->known_stacks, found);
}

static int add_rows(struct samples *samples, size_t kind, struct profile *profile,
                    struct error *error)
{
    uint64_t end = 0;
    uint32_t labels = 0, node;
    for (uint64_t row = 0; row < samples->batch->length; row++) {
        if (samples->kind_of[row] != kind)
            continue;
        if (row >= end)
            labels = labels_at(samples, profile, row, &end);
        int r = parca_node(&samples->frames, stack_at(samples, row), &node, error);
        if (!r && !(row % 4096))
            r = source_check_memory(error);
        if (r < 0)
            return r;
        size_t at =
            profile_sample(profile, node, labels, 0, (uint64_t)number_at(samples->timestamp, row));
        profile_add_value(profile, at, 0, number_at(samples->value, row));
    }
    return 0;
}

static uint32_t kind_string(struct profile *profile, const struct kind *kind,
                            enum kind_column column)
{
    return profile_string(profile, kind->texts[column].data, kind->texts[column].length);
}

static int take_kind(struct samples *samples, size_t index, struct error *error)
{
    _cleanup_profile_ struct profile profile;
    const struct kind *kind = &samples->kinds[index];
    bool total = !same_text(kind->texts[TEMPORALITY], (struct text){"delta", strlen("delta")});
    profile_init(&profile, samples->detail);
    profile_type(&profile, kind_string(&profile, kind, SAMPLE_TYPE),
                 kind_string(&profile, kind, SAMPLE_UNIT));
    profile_note_period(&profile, kind_string(&profile, kind, PERIOD_TYPE),
                        kind_string(&profile, kind, PERIOD_UNIT), kind->period);
    profile_note_source(&profile, samples->first_ns,
                        MAX(samples->last_ns - samples->first_ns, INTERVAL_NS));
    parca_frames_begin(&samples->frames, &profile);
    int r = add_rows(samples, index, &profile, error);
    return r < 0 ? r : samples->take(samples->context, &profile, total, error);
}

static int take_batch(struct samples *samples, struct error *error)
{
    int r = find_columns(samples, error);
    if (!r && samples->batch->length)
        r = find_kinds(samples, error);
    for (size_t i = 0; !r && samples->batch->length && i < samples->kind_count; i++)
        r = take_kind(samples, i, error);
    return r;
}

/* ---- stacks by id ---- */

/* The second stream of version 1: ids, and a list of locations for each. */
static int read_stacks(struct samples *samples, struct arrow_stream *stream, struct error *error)
{
    const struct parca_input *input = samples->input;
    const struct arrow_array *batch;
    int r = arrow_open(stream, input->stacks, input->stacks_length, input->expansion_limit, error);
    if (!r)
        r = arrow_next(stream, &batch, error);
    if (r <= 0)
        return r < 0 ? r : error_set(error, -EBADMSG, "The Arrow data has no stacks.");
    samples->known_ids = arrow_child(batch, "stacktrace_id");
    for (unsigned i = 0; i < batch->field->child_count; i++)
        if (arrow_is_named(&batch->field->children[i], "locations"))
            samples->known_stacks = &batch->children[i];
    if (!samples->known_ids || samples->known_ids->values ||
        samples->known_ids->field->kind != ARROW_TEXT || !samples->known_stacks)
        return error_set(error, -EBADMSG, "The Arrow data has no stacks.");
    uint64_t count = samples->known_ids->length;
    if (count > input->row_limit)
        return error_set(error, -E2BIG, "The request has more than %llu stacks.",
                         (unsigned long long)input->row_limit);
    for (uint64_t i = 0; i < count; i++) {
        struct text id = text_at(samples->known_ids, i);
        if (find_stack(samples, id) == ID_NONE)
            id_table_insert(&samples->known, XXH3_64bits(id.data, id.length), (uint32_t)i);
    }
    return source_check_memory(error);
}

int parca_read(const struct parca_input *input, enum profile_detail detail, parca_take_fn *take,
               void *context, struct error *error)
{
    _cleanup_(samples_release) struct samples samples = {
        .input = input, .detail = detail, .take = take, .context = context};
    _cleanup_arrow_ struct arrow_stream stream = {0}, stacks = {0};
    samples.frames.left = PARCA_FRAMES_MAX;
    int r = input->stacks ? read_stacks(&samples, &stacks, error) : 0;
    if (!r)
        r = arrow_open(&stream, input->samples, input->samples_length,
                       input->stacks ? stacks.limit_bytes : input->expansion_limit, error);
    while (!r && (r = arrow_next(&stream, &samples.batch, error)) > 0)
        r = take_batch(&samples, error);
    return r;
}
