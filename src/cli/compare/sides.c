// SPDX-License-Identifier: Apache-2.0
// Files of both sides: see sides.h.

#include "cli/compare/sides.h"

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

static int read_file(const struct sides_options *options, const char *command, const char *path,
                     struct sides_file *file)
{
    struct error error = {0};
    profile_init(&file->profile, input_filter_detail(&options->filter) | PROFILE_TIMES);
    int r = input_read(&options->input, &path, 1, &file->profile, NULL);
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

static int read_all(const struct sides_options *options, const char *command, struct sides *sides)
{
    const struct option_list *files = options->files;
    size_t total = files[0].count + files[1].count;
    sides->files = memory_zalloc(total, sizeof(*sides->files));
    sides->sources = memory_zalloc(total, sizeof(*sides->sources));
    for (; sides->count < total; sides->count++) {
        size_t i = sides->count;
        const char *path =
            i < files[0].count ? files[0].values[i] : files[1].values[i - files[0].count];
        int r = read_file(options, command, path, &sides->files[i]);
        if (r) {
            sides->count++;
            return r;
        }
    }
    const struct profile *first = &sides->files[files[0].count].profile;
    unsigned type;
    int r = input_type(first, options->type, command, &type);
    if (!r && type >= first->type_count) {
        log_error("%s has no values.", input_name(files[1].values[0]));
        r = EXIT_FAILED;
    }
    if (r)
        return r;
    sides->type = profile_text(first, first->types[type].type);
    sides->unit = profile_text(first, first->types[type].unit);
    for (size_t i = 0; !r && i < total; i++) {
        bool base = i < files[0].count;
        r = add_source(sides, i, base ? files[0].values[i] : files[1].values[i - files[0].count],
                       base ? COMPARE_BASE : COMPARE_NEW);
    }
    return r ? r : check_factors(sides);
}

/* Requests that were given divide over time as that is covered. */
static void set_requests(struct compare_table *table, const double *requests)
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

int sides_read(const struct sides_options *options, const char *command, struct sides *ret_sides)
{
    _cleanup_sides_ struct sides sides = {0};
    int r = read_all(options, command, &sides);
    if (r)
        return r;
    char names[2 * OPTION_LIST_MAX][8]; /* each file is a cluster of its own */
    for (size_t i = 0; i < sides.count; i++) {
        snprintf(names[i], sizeof(names[i]), "%zu", i);
        sides.sources[i].cluster = names[i];
    }
    struct error error = {0};
    if (compare_table_build(sides.sources, sides.count, &sides.table, &error) < 0)
        return fail(&error);
    set_requests(&sides.table, options->requests);
    *ret_sides = sides;
    sides = (struct sides){0};
    return 0;
}
