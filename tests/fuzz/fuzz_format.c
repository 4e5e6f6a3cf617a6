// SPDX-License-Identifier: Apache-2.0
// The fuzzer of every reader. Built once per format with FUZZ_FORMAT as its name, and once without
// it, where the format is detected. What was read is then merged, named and written in every
// format.

#include "base/memory.h"
#include "format/format.h"
#include "profile/naming.h"
#include "profile/unresolved.h"

#define EXPANSION_LIMIT (64u << 20)
#define WRITE_NODES_MAX 5000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

/* What every reader owes the model, whatever the input. */
static void check_model(const struct profile *profile)
{
    for (uint32_t i = 1; i < profile->node_count; i++)
        require(profile->nodes[i].parent < i && profile->nodes[i].frame < profile->frame_count);
    for (uint32_t i = 1; i < profile->frame_count; i++)
        require(profile->frames[i].function < profile->function_count &&
                profile->frames[i].mapping < profile->mapping_count);
    for (uint32_t i = 1; i < profile->function_count; i++)
        require(profile->functions[i].name < profile->string_count &&
                profile->functions[i].system_name < profile->string_count &&
                profile->functions[i].file < profile->string_count);
    for (size_t i = 0; i < profile->samples.count; i++)
        require(profile->samples.node[i] < profile->node_count &&
                profile->samples.labels[i] < profile_label_set_count(profile));
    require(profile->type_count <= PROFILE_TYPES_MAX);
}

static void use(const struct profile *profile)
{
    _cleanup_profile_ struct profile merged;
    profile_init(&merged, PROFILE_LINES | PROFILE_LABELS);
    if (profile_merge(&merged, profile, NULL) == 0)
        profile_merge(&merged, profile, NULL);
    check_model(&merged);

    _cleanup_naming_ struct naming naming;
    naming_init(&naming, profile);

    if (profile->node_count > WRITE_NODES_MAX || profile->samples.count > WRITE_NODES_MAX)
        return;
    const struct write_options options = {.type = -1};
    for (size_t i = 0; format_at(i); i++) {
        _cleanup_buffer_ struct buffer out = {0};
        struct error error = {0};
        if (format_at(i)->write)
            format_at(i)->write(&out, profile, &options, &error);
    }
}

/* Leaving stacks unresolved takes and refuses the same, and all of them can be put together. */
static void read_unresolved(const struct format *format, const uint8_t *data, size_t length)
{
    const enum profile_detail detail = PROFILE_ALL & ~PROFILE_TIMES;
    struct read_options options = {.format = format, .expansion_limit = EXPANSION_LIMIT};
    _cleanup_profile_ struct profile plain, unresolved;
    struct error error = {0};
    struct source source;
    profile_init(&plain, detail);
    profile_init(&unresolved, detail);
    int expected = format_read_memory("input", data, length, &options, &plain, NULL, &error);
    if (source_open_memory(&source, "input", data, length, EXPANSION_LIMIT, &error) < 0)
        return;
    int r = format->read_unresolved(&source, 1, &unresolved, &error);
    source_release(&source);
    require(!r == !expected);
    if (r < 0)
        return;
    require(unresolved.unresolved != NULL && unresolved.node_count == 1);
    profile_settle(&unresolved);
    check_model(&unresolved);
    require(unresolved.samples.count == plain.samples.count &&
            unresolved.frame_count <= plain.frame_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct read_options options = {.expansion_limit = EXPANSION_LIMIT};
#ifdef FUZZ_FORMAT
    options.format = format_by_name(FUZZ_FORMAT);
    require(options.format != NULL);
#endif
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    struct error error = {0};
    int r = format_read_memory("input", data, length, &options, &profile, NULL, &error);
    require(r <= 0);
    if (r == 0) {
        check_model(&profile);
        use(&profile);
    } else {
        require(error.code == r && error.text[0]);
    }
    if (options.format && options.format->read_unresolved)
        read_unresolved(options.format, data, length);
    return 0;
}
