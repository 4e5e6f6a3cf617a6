/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by commands that read profiles: options, reading, filtering, sample types. */
#pragma once

#include "cli/options.h"
#include "format/format.h"
#include "profile/group.h"
#include "profile/profile.h"

struct input_options {
    const char *format;
    uint64_t expansion_limit;
};

struct filter_options {
    const char *focus, *ignore, *hide;
    struct option_list tags;
    bool original_names;
};

/* Of commands that divide samples into groups. */
struct group_options {
    const char *by;
    struct profile_group_keys keys;
};

#define GROUP_OPTION(group)                                                                        \
    {                                                                                              \
        "by", 0, OPTION_TEXT, "KEY[,KEY]", "by comm, pid, tid, binary or any label", &(group)->by  \
    }

#define INPUT_OPTIONS(input)                                                                       \
    {"Reading", .kind = OPTION_GROUP},                                                             \
        {"input-format",  0, OPTION_TEXT, "NAME", "read as this format instead of detecting it",   \
         &(input)->format},                                                                        \
    {                                                                                              \
        "max-expand", 0, OPTION_SIZE, "SIZE", "limit for decompressed input (4G)",                 \
            &(input)->expansion_limit                                                              \
    }

#define FILTER_OPTIONS(filter)                                                                       \
    {"Filters (regular expressions match function, source file and binary)",                         \
     .kind = OPTION_GROUP},                                                                          \
        {"focus", 0, OPTION_TEXT, "RE", "only stacks with a matching frame", &(filter)->focus},      \
        {"ignore", 0, OPTION_TEXT, "RE", "drop stacks with a matching frame", &(filter)->ignore},    \
        {"hide", 0, OPTION_TEXT, "RE", "remove matching frames from the stacks", &(filter)->hide},   \
        {"tag",          0, OPTION_LIST, "K=V", "only samples with this label; also K!=V and K=~RE", \
         &(filter)->tags},                                                                           \
        {"Names", .kind = OPTION_GROUP},                                                             \
    {                                                                                                \
        "original-names", 0, OPTION_FLAG, NULL,                                                      \
            "don't demangle, and keep process-specific parts of generated names",                    \
            &(filter)->original_names                                                                \
    }

/* Reads one file, or several into one profile, shows progress on a terminal when it takes long,
 * and explains what went wrong on stderr. Returns 0 or an exit code. */
int input_read(const struct input_options *input, const char *const *paths, int count,
               struct profile *profile, const struct format **ret_format);

/* Reads --by. Returns 0 or an exit code. To be released. */
int input_group(struct group_options *group, const char *command);

/* Groups the samples by it; warns when no sample has one of its labels. */
void input_group_apply(const struct group_options *group, struct profile *profile,
                       enum profile_group_form form);

/* Applies the options to the profile. Returns 0 or an exit code. */
int input_filter(const struct filter_options *filter, const char *command, struct profile *profile);

/* Detail that the profile needs for the filters and the choice of names. */
enum profile_detail input_filter_detail(const struct filter_options *filter);

/* The chosen sample type, or the default one for NULL. Returns 0 or an exit code. */
int input_type(const struct profile *profile, const char *name, const char *command,
               unsigned *ret_type);

/* The name of an input in titles: its path, or "standard input" for "-". */
const char *input_name(const char *path);

/* A sentence on stderr, "assay: " before it; returns EXIT_FAILED. */
int fail(const struct error *error);
