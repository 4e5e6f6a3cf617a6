// SPDX-License-Identifier: Apache-2.0
// Files of both sides: see sides.h.

#include "cli/compare/sides.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "profile/filter.h"

void sides_release(struct sides *sides)
{
    compare_table_release(&sides->table);
    for (size_t i = 0; i < sides->count; i++) {
        naming_release(&sides->files[i].naming);
        profile_release(&sides->files[i].profile);
    }
    free(sides->files);
    free(sides->sources);
    *sides = (struct sides){0};
}

const char *sides_host_label(const struct profile *profile)
{
    static const char *const names[] = {"host", "host.name", "hostname", "instance"};
    for (size_t k = 0; k < ARRAY_LENGTH(names); k++) {
        uint32_t first = 0;
        for (uint32_t set = 1; set < profile_label_set_count(profile); set++) {
            size_t count;
            const struct profile_label *labels = profile_labels(profile, set, &count);
            for (size_t i = 0; i < count; i++) {
                if (!labels[i].text || strcmp(profile_text(profile, labels[i].key), names[k]))
                    continue;
                if (first && labels[i].text != first)
                    return names[k];
                first = labels[i].text;
            }
        }
    }
    return NULL;
}

static bool is_value(const struct profile *profile, unsigned type)
{
    const char *name = profile_text(profile, profile->types[type].type);
    return strcmp(name, COMPARE_COVERED_TYPE) && strcmp(name, "requests");
}

int sides_type(const struct profile *profile, const char *name, const char *command,
               unsigned *ret_type)
{
    int r = input_type(profile, name, command, ret_type);
    if (r || name || *ret_type >= profile->type_count || is_value(profile, *ret_type))
        return r;
    for (unsigned i = profile->type_count; i-- > 0;)
        if (is_value(profile, i)) {
            *ret_type = i;
            return 0;
        }
    return 0;
}

void sides_divide(struct profile *profile, unsigned type, double divisor)
{
    double rest = 0;
    for (size_t row = 0; divisor > 0 && row < profile->samples.count; row++) {
        int64_t *value = &profile->samples.values[type][row];
        rest += (double)*value / divisor;
        *value = llround(rest);
        rest -= (double)*value;
    }
}

/* A file, or a part of what a server has. */
struct input {
    const char *path;
    unsigned part;
    enum compare_side side;
};

static int read_file(struct sides_options *options, const char *command, const struct input *input,
                     struct sides_file *file)
{
    struct error error = {0};
    profile_init(&file->profile,
                 input_filter_detail(&options->filter) | PROFILE_TIMES | PROFILE_LABELS);
    int r = remote_input_is(input->path)
                ? remote_input_read(&options->remote, input->path, input->part, input->side,
                                    options->input.expansion_limit, &file->profile)
                : input_read(&options->input, &input->path, 1, &file->profile, NULL);
    if (!r && profile_prune(&file->profile, &error) < 0)
        return fail(&error);
    if (!r)
        r = input_filter(&options->filter, command, &file->profile);
    naming_init(&file->naming, &file->profile);
    return r;
}

static unsigned find_type(const struct profile *profile, const char *type, const char *unit)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), type) &&
            !strcmp(profile_text(profile, profile->types[i].unit), unit))
            return i;
    return PROFILE_TYPES_MAX;
}

/* Counts of samples become times by their period, so that rates of sampling may differ. */
static double rate_factor(const struct sides *sides, const struct profile *profile)
{
    const char *period_unit = profile_text(profile, profile->period_type.unit);
    bool counts = !strcmp(sides->type, "samples") && !strcmp(sides->unit, "count");
    return counts && profile->period > 0 && !strcmp(period_unit, "nanoseconds")
               ? (double)profile->period / 1e9
               : 1;
}

static int add_source(struct sides *sides, size_t index, const char *path, enum compare_side side)
{
    const struct profile *profile = &sides->files[index].profile;
    unsigned type = find_type(profile, sides->type, sides->unit);
    if (type == PROFILE_TYPES_MAX) {
        log_error("%s has no sample type %s/%s as the first new profile does; choose one that all "
                  "have with --sample-type.",
                  input_name(path), sides->type, sides->unit);
        return EXIT_FAILED;
    }
    if (!profile->samples.count) {
        log_error("%s has no samples; nothing can be compared.", input_name(path));
        return EXIT_FAILED;
    }
    compare_source_init(&sides->sources[index], profile, &sides->files[index].naming, type);
    sides->sources[index].side = side;
    sides->sources[index].factor = rate_factor(sides, profile);
    return 0;
}

/* A correction that only some files have would compare counts with times. */
static int check_factors(const struct sides *sides)
{
    bool same = true;
    for (size_t i = 1; i < sides->count; i++)
        same = same && (sides->sources[i].factor == 1) == (sides->sources[0].factor == 1);
    if (same)
        return 0;
    log_error("Some profiles don't say at which rate they were sampled, so their numbers of "
              "samples can't be compared; choose another type with --sample-type.");
    return EXIT_FAILED;
}

static void add_input(struct input **inputs, size_t *count, size_t *capacity, const char *path,
                      unsigned part, enum compare_side side)
{
    array_reserve(*inputs, *capacity, *count + 1);
    (*inputs)[(*count)++] = (struct input){path, part, side};
}

/* The inputs of both sides, those of the base first. */
static int list_inputs(struct sides_options *options, struct input **ret_inputs, size_t *ret_count)
{
    struct input *inputs = NULL;
    size_t count = 0, capacity = 0;
    int r = 0;
    for (int side = 0; !r && side < COMPARE_SIDES; side++)
        for (size_t i = 0; !r && i < options->files[side].count; i++) {
            const char *path = options->files[side].values[i];
            unsigned parts = 1;
            if (remote_input_is(path))
                r = remote_input_count(&options->remote, path, &parts);
            for (unsigned part = 0; !r && part < parts; part++)
                add_input(&inputs, &count, &capacity, path, part, (enum compare_side)side);
        }
    *ret_inputs = inputs;
    *ret_count = count;
    return r;
}

static const struct input *first_new(const struct input *inputs, size_t count)
{
    size_t at = 0;
    while (at + 1 < count && inputs[at].side != COMPARE_NEW)
        at++;
    return &inputs[at];
}

static int read_all(struct sides_options *options, const char *command, struct sides *sides)
{
    _cleanup_free_ struct input *inputs = NULL;
    size_t total;
    int r = list_inputs(options, &inputs, &total);
    if (r)
        return r;
    sides->files = memory_zalloc(total, sizeof(*sides->files));
    sides->sources = memory_zalloc(total, sizeof(*sides->sources));
    while (!r && sides->count < total) {
        size_t at = sides->count++;
        r = read_file(options, command, &inputs[at], &sides->files[at]);
    }
    if (r)
        return r;
    const struct input *leading = first_new(inputs, total);
    const struct profile *first = &sides->files[leading - inputs].profile;
    unsigned type;
    r = sides_type(first, options->type, command, &type);
    if (!r && type >= first->type_count) {
        log_error("%s has no values.", input_name(leading->path));
        r = EXIT_FAILED;
    }
    if (r)
        return r;
    sides->type = profile_text(first, first->types[type].type);
    sides->unit = profile_text(first, first->types[type].unit);
    for (size_t i = 0; !r && i < total; i++)
        r = add_source(sides, i, inputs[i].path, inputs[i].side);
    return r ? r : check_factors(sides);
}

/* Requests that were given divide over time as that is covered. */
void sides_set_requests(struct compare_table *table, const double *requests)
{
    for (int side = 0; side < COMPARE_SIDES; side++) {
        if (!(requests[side] > 0))
            continue;
        size_t count = 0;
        for (size_t i = 0; i < table->replicate_count; i++)
            count += table->replicates[i].side == (enum compare_side)side;
        for (size_t i = 0; i < table->replicate_count; i++) {
            struct compare_replicate *replicate = &table->replicates[i];
            if (replicate->side == (enum compare_side)side)
                replicate->requests =
                    table->seconds[side] > 0
                        ? requests[side] * replicate->seconds / table->seconds[side]
                        : requests[side] / (double)count;
        }
        table->requests[side] = requests[side];
    }
}

/* A selection is one more input of its side. */
static int add_queries(struct sides_options *options, char *texts[COMPARE_SIDES])
{
    for (int side = 0; side < COMPARE_SIDES; side++) {
        struct option_list *files = &options->files[side];
        const char *query = options->remote.query[side];
        if (!query)
            continue;
        if (files->count == OPTION_LIST_MAX) {
            log_error("A side takes at most %d inputs.", OPTION_LIST_MAX);
            return EXIT_USAGE;
        }
        struct buffer text = {0};
        buffer_printf(&text, "query:%s", query);
        texts[side] = memory_strdup(buffer_text(&text));
        buffer_release(&text);
        files->values[files->count++] = texts[side];
    }
    return 0;
}

int sides_read(struct sides_options *options, const char *command, struct sides *ret_sides)
{
    _cleanup_sides_ struct sides sides = {0};
    char *texts[COMPARE_SIDES] = {0};
    int r = add_queries(options, texts);
    if (!r)
        r = read_all(options, command, &sides);
    remote_inputs_close(&options->remote);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        if (texts[side])
            options->files[side].count--;
        free(texts[side]);
    }
    if (r)
        return r;
    /* Each file is a cluster of its own; one with hosts has those. */
    _cleanup_free_ char(*names)[16] = memory_alloc((sides.count + 1) * sizeof(*names));
    for (size_t i = 0; i < sides.count; i++) {
        snprintf(names[i], sizeof(names[i]), "%zu", i);
        sides.sources[i].cluster = names[i];
        sides.sources[i].cluster_label = sides_host_label(&sides.files[i].profile);
    }
    struct error error = {0};
    if (compare_table_build(sides.sources, sides.count, &sides.table, &error) < 0)
        return fail(&error);
    sides_set_requests(&sides.table, options->requests);
    *ret_sides = sides;
    sides = (struct sides){0};
    return 0;
}
