// SPDX-License-Identifier: Apache-2.0
// The last step of reading OTLP: the dictionary is complete, so that everything which was kept by
// raw index becomes rows of the model.

#include <string.h>

#include "format/otlp/model.h"
#include "profile/unresolved.h"

/* Limits on the expansion of a few bytes of input: inlined frames and shared labels repeat
 * themselves, but not without end. */
#define FRAMES_PER_BYTE 8
#define LABELS_PER_BYTE 4
#define BYTES_PER_BYTE 16
#define FREE_ALLOWANCE (1u << 20)

/* Where the rows of a series go. */
struct target {
    uint32_t context;
    unsigned type;
    unsigned cpu_type; /* PROFILE_TYPES_MAX: none */
    int64_t period;
};

struct finish {
    struct otlp_model *model;
    struct profile_type names[PROFILE_TYPES_MAX]; /* of the types as sent, by string id */
    unsigned types[PROFILE_TYPES_MAX];            /* in the profile */
    struct target *targets;                       /* by series */
    bool has_cpu;
};

static uint64_t budget(uint64_t bytes, unsigned per_byte)
{
    uint64_t count;
    if (__builtin_mul_overflow(bytes, per_byte, &count) || count > PROFILE_IDS_MAX - FREE_ALLOWANCE)
        return PROFILE_IDS_MAX;
    return count + FREE_ALLOWANCE;
}

static bool is_type(const struct otlp_model *model, struct profile_type type, const char *name,
                    const char *unit)
{
    return !strcmp(profile_text(model->profile, type.type), name) &&
           !strcmp(profile_text(model->profile, type.unit), unit);
}

static int type_names(struct otlp_model *model, struct profile_type raw,
                      struct profile_type *ret_names, struct error *error)
{
    int r = otlp_string_id(model, raw.type, "A sample type", &ret_names->type, error);
    return r ? r : otlp_string_id(model, raw.unit, "A sample type", &ret_names->unit, error);
}

static int too_many_types(struct error *error)
{
    return error_set(error, -E2BIG, "There are more than %d sample types.", PROFILE_TYPES_MAX);
}

static int add_types(struct finish *finish, struct error *error)
{
    struct otlp_model *model = finish->model;
    for (size_t i = 0; i < model->type_count; i++) {
        struct profile_type *names = &finish->names[i];
        int r = type_names(model, model->types[i], names, error);
        if (r < 0)
            return r;
        if (!names->type && !names->unit)
            *names = (struct profile_type){.type = profile_cstring(model->profile, "samples"),
                                           .unit = profile_cstring(model->profile, "count")};
        finish->types[i] = profile_type(model->profile, names->type, names->unit);
        if (finish->types[i] == PROFILE_TYPES_MAX)
            return too_many_types(error);
        finish->has_cpu |= is_type(model, *names, "cpu", "nanoseconds");
    }
    return 0;
}

/* Samplers send how often they saw a stack and, as the period, how much CPU time that stands for:
 * the time is what people look for, so it becomes a type of its own. */
static int derive_cpu(struct finish *finish, const struct otlp_series *series,
                      struct target *target, struct error *error)
{
    struct otlp_model *model = finish->model;
    struct profile_type period = {0};
    if (finish->has_cpu || series->period <= 0 ||
        !is_type(model, finish->names[series->type], "samples", "count"))
        return 0;
    struct profile_type raw = {.type = series->period_type, .unit = series->period_unit};
    int r = type_names(model, raw, &period, error);
    if (r < 0 || !is_type(model, period, "cpu", "nanoseconds"))
        return r;
    target->period = series->period;
    target->cpu_type = profile_type(model->profile, period.type, period.unit);
    return target->cpu_type == PROFILE_TYPES_MAX ? too_many_types(error) : 0;
}

static int make_targets(struct finish *finish, struct error *error)
{
    struct otlp_model *model = finish->model;
    finish->targets = memory_zalloc(model->series_count + 1, sizeof(*finish->targets));
    for (size_t i = 0; i < model->series_count; i++) {
        const struct otlp_series *series = &model->series[i];
        struct target *target = &finish->targets[i];
        target->type = finish->types[series->type];
        target->cpu_type = PROFILE_TYPES_MAX;
        int r = derive_cpu(finish, series, target, error);
        if (!r)
            r = otlp_label_context(model, series, &target->context, error);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_rows(struct finish *finish, struct error *error)
{
    struct otlp_model *model = finish->model;
    /* Of several types, those of one stack have one row: columns are as long as all rows. */
    bool append = model->unresolved && model->type_count == 1;
    if (append)
        profile_reserve_rows(model->profile, model->row_count);
    int r = model->unresolved ? otlp_digest_stacks(model, error) : 0;
    if (r < 0)
        return r;
    for (size_t i = 0; i < model->row_count; i++) {
        const struct otlp_row *row = &model->rows[i];
        const struct target *target = &finish->targets[row->series];
        uint32_t node = row->stack, link, labels;
        r = model->unresolved ? 0 : otlp_stack_node(model, row->stack, &node, error);
        if (!r)
            r = otlp_link_id(model, row->link, &link, error);
        if (!r)
            r = otlp_label_set(model, target->context, row->attributes, &labels, error);
        if (r < 0)
            return r;
        size_t sample = append ? profile_append_sample(model->profile, node, labels, link)
                               : profile_sample(model->profile, node, labels, link, row->time_ns);
        profile_add_value(model->profile, sample, target->type, row->value);
        if (target->cpu_type != PROFILE_TYPES_MAX) {
            int64_t time;
            if (__builtin_mul_overflow(row->value, target->period, &time))
                time = row->value < 0 ? INT64_MIN : INT64_MAX;
            profile_add_value(model->profile, sample, target->cpu_type, time);
        }
        if (!(i & 0xffff) && profile_full(model->profile))
            return error_set(error, -E2BIG, "The profile is too large.");
    }
    return 0;
}

/* By OTLP's own words the first Profile is to be shown first; but CPU time, where there is any, is
 * what one expects, and hosts' profilers send their Profiles in no order. */
static void choose_default_type(struct finish *finish)
{
    struct profile *profile = finish->model->profile;
    if (profile->default_type || !finish->model->type_count)
        return;
    profile->default_type = finish->names[0].type;
    for (unsigned i = 0; i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), "cpu"))
            profile->default_type = profile->types[i].type;
}

static int note_source(struct otlp_model *model, struct error *error)
{
    int64_t start = (int64_t)MIN(model->start_ns, (uint64_t)INT64_MAX);
    int64_t end = (int64_t)MIN(model->end_ns, (uint64_t)INT64_MAX);
    profile_note_source(model->profile, start, end - start);
    struct profile_type period = {0};
    int r = type_names(model, model->period_type, &period, error);
    if (!r && model->period)
        profile_note_period(model->profile, period.type, period.unit, model->period);
    for (size_t i = 0; !r && i < model->comment_count; i++) {
        uint32_t text;
        r = otlp_string_id(model, model->comments[i], "A comment", &text, error);
        if (!r && text)
            profile_add_comment(model->profile, text);
    }
    return r;
}

int otlp_model_finish(struct otlp_model *model, struct otlp_summary *ret_summary,
                      struct error *error)
{
    struct finish finish = {.model = model};
    model->frame_budget = budget(model->offset, FRAMES_PER_BYTE);
    model->label_budget = budget(model->offset, LABELS_PER_BYTE);
    model->byte_budget = budget(model->offset, BYTES_PER_BYTE);
    int r = otlp_decide_rest(model, error);
    if (r < 0)
        return r;
    /* One encoder wrote all of it: where one Profile has the marks of 1.8, those without are, too.
     */
    uint64_t *by_layout = model->summary.by_layout;
    if (by_layout[OTLP_1_8]) {
        by_layout[OTLP_1_8] += by_layout[OTLP_1_9];
        by_layout[OTLP_1_9] = 0;
    }
    otlp_dictionary_prepare(&model->dictionary);
    model->alone = model->profile->node_count == 1;
    if (!model->unresolved)
        profile_reserve(model->profile, 0, model->dictionary.function_count,
                        model->dictionary.line_count, model->dictionary.stack_count,
                        model->row_count);
    r = add_types(&finish, error);
    if (!r)
        r = make_targets(&finish, error);
    if (!r)
        r = add_rows(&finish, error);
    free(finish.targets);
    if (r < 0)
        return r;
    choose_default_type(&finish);
    r = note_source(model, error);
    *ret_summary = model->summary;
    if (!r && model->unresolved)
        otlp_give_unresolved(model);
    return r;
}
