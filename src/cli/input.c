// SPDX-License-Identifier: Apache-2.0
// Reading and filtering for all commands: see input.h.

#include "cli/input.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/progress.h"
#include "profile/filter.h"
#include "symbol/recorded/names.h"
#include "symbol/recorded/walk.h"

int fail(const struct error *error)
{
    log_error("%s", error->text);
    return EXIT_FAILED;
}

const char *input_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

static void show_progress(void *context, const char *path, size_t index, size_t count)
{
    progress_file(context, path, index, count);
}

/* Warnings wait until the line of progress is gone. */
struct warnings {
    struct buffer lines; /* "name: sentence", each ended by NUL */
    size_t count;
};

#define WARNINGS_SHOWN 20

static void note_warning(void *context, const char *name, const char *warning)
{
    struct warnings *warnings = context;
    if (warnings->count++ < WARNINGS_SHOWN) {
        buffer_printf(&warnings->lines, "%s: %s", name, warning);
        buffer_add_char(&warnings->lines, '\0');
    }
}

static void show_warnings(const struct warnings *warnings)
{
    const char *end = warnings->lines.data + warnings->lines.length;
    for (const char *line = warnings->lines.data; line < end; line += strlen(line) + 1)
        log_warning("%s", line);
    if (warnings->count > WARNINGS_SHOWN)
        log_warning("Lines were skipped in %zu more files.", warnings->count - WARNINGS_SHOWN);
}

int input_read(const struct input_options *input, const char *const *paths, int count,
               struct profile *profile, const struct format **ret_format)
{
    struct read_options options = {.expansion_limit = input->expansion_limit};
    if (input->format) {
        options.format = format_by_name(input->format);
        if (!options.format || !format_readable(options.format)) {
            const char *meant = format_meant(input->format, false);
            if (meant)
                log_error("Unknown input format \"%s\"; did you mean \"%s\"?", input->format,
                          meant);
            else
                log_error("Unknown input format \"%s\"; `assay convert --help` lists the formats.",
                          input->format);
            return EXIT_USAGE;
        }
    }
    struct progress *progress = progress_start();
    struct error error = {0};
    bool addresses = false;
    options.ret_addresses = &addresses;
    perf_data_set_walker(&symbol_walker);
    options.progress = show_progress;
    options.progress_context = progress;
    struct warnings warnings = {0};
    options.warn = note_warning;
    options.warn_context = &warnings;
    int r = format_read_files(paths, (size_t)count, &options, profile, ret_format, &error);
    if (r >= 0 && addresses)
        r = recorded_name(profile, profile->detail, &error);
    progress_stop(&progress);
    show_warnings(&warnings);
    buffer_release(&warnings.lines);
    if (r >= 0 && !profile->samples.count)
        log_warning("%s: contains no samples.", input_name(paths[count - 1]));
    else if (r >= 0 && profile->node_count <= 1)
        log_warning("%s: no sample has a stack.", input_name(paths[count - 1]));
    return r < 0 ? fail(&error) : 0;
}

enum profile_detail input_filter_detail(const struct filter_options *filter)
{
    return (filter->tags.count ? PROFILE_LABELS : 0) |
           (filter->original_names ? PROFILE_ORIGINAL_NAMES : 0);
}

/* "k=v", "k!=v" or "k=~re", with the key's copy in `key`. False when there is no '='. */
static bool split_tag(const char *text, char **ret_key, struct tag_filter *ret_tag)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return false;
    size_t length = (size_t)(equals - text);
    ret_tag->value = equals + 1;
    ret_tag->relation = TAG_IS;
    if (equals[1] == '~') {
        ret_tag->relation = TAG_MATCHES;
        ret_tag->value++;
    } else if (length > 1 && equals[-1] == '!') {
        ret_tag->relation = TAG_IS_NOT;
        length--;
    }
    *ret_key = memory_strndup(text, length);
    ret_tag->key = *ret_key;
    return true;
}

struct compiled_filter {
    struct regex *focus, *ignore, *hide;
    struct regex *tag_patterns[OPTION_LIST_MAX];
    char *tag_keys[OPTION_LIST_MAX];
    struct tag_filter tags[OPTION_LIST_MAX];
};

static void compiled_filter_release(struct compiled_filter *filter)
{
    regex_free(filter->focus);
    regex_free(filter->ignore);
    regex_free(filter->hide);
    for (size_t i = 0; i < OPTION_LIST_MAX; i++) {
        regex_free(filter->tag_patterns[i]);
        free(filter->tag_keys[i]);
    }
}

static int compile(const struct filter_options *options, struct compiled_filter *filter,
                   struct error *error)
{
    const struct {
        const char *expression, *what;
        struct regex **pattern;
    } expressions[] = {{options->focus, "--focus", &filter->focus},
                       {options->ignore, "--ignore", &filter->ignore},
                       {options->hide, "--hide", &filter->hide}};
    for (size_t i = 0; i < ARRAY_LENGTH(expressions); i++) {
        if (!expressions[i].expression)
            continue;
        int r = regex_new(expressions[i].expression, false, expressions[i].what,
                          expressions[i].pattern, error);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < options->tags.count; i++) {
        struct tag_filter *tag = &filter->tags[i];
        if (!split_tag(options->tags.values[i], &filter->tag_keys[i], tag))
            return error_set(error, -EINVAL, "--tag requires KEY=VALUE, not \"%s\".",
                             options->tags.values[i]);
        if (tag->relation == TAG_MATCHES) {
            int r = regex_new(tag->value, false, "--tag", &filter->tag_patterns[i], error);
            if (r < 0)
                return r;
            tag->pattern = filter->tag_patterns[i];
        }
    }
    return 0;
}

int input_filter(const struct filter_options *options, const char *command, struct profile *profile)
{
    if (!options->focus && !options->ignore && !options->hide && !options->tags.count)
        return 0;
    _cleanup_(compiled_filter_release) struct compiled_filter compiled = {0};
    struct error error = {0};
    if (compile(options, &compiled, &error) < 0)
        return options_wrong(command, "%s", error.text);
    profile_filter(profile, &(struct profile_filter){.focus = compiled.focus,
                                                     .ignore = compiled.ignore,
                                                     .hide = compiled.hide,
                                                     .tags = compiled.tags,
                                                     .tag_count = options->tags.count});
    return 0;
}

int input_group(struct group_options *group, const char *command)
{
    struct error error = {0};
    if (!group->by)
        return 0;
    return profile_group_parse(group->by, &group->keys, &error) < 0
               ? options_wrong(command, "%s", error.text)
               : 0;
}

void input_group_apply(const struct group_options *group, struct profile *profile,
                       enum profile_group_form form)
{
    const char *missing = profile_group_missing(profile, &group->keys);
    if (missing)
        log_warning("No sample has a label \"%.100s\"; `assay info` lists the labels.", missing);
    profile_group(profile, &group->keys, form);
}

int input_type(const struct profile *profile, const char *name, const char *command,
               unsigned *ret_type)
{
    if (!name) {
        *ret_type = profile_default_type(profile);
        return 0;
    }
    *ret_type = profile_find_type(profile, name);
    if (*ret_type < profile->type_count)
        return 0;
    _cleanup_buffer_ struct buffer known = {0};
    for (unsigned i = 0; i < profile->type_count; i++)
        buffer_printf(&known, "%s%s", i ? ", " : "", profile_text(profile, profile->types[i].type));
    log_error("%s: the profile has no sample type \"%s\"; it has: %s.", command, name,
              buffer_text(&known));
    return EXIT_FAILED;
}
