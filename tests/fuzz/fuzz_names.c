// SPDX-License-Identifier: Apache-2.0
// The fuzzer of readable names. A line break parts a function's own name from the system's. What
// was made readable once stays as it is, and the original comes back.

#include <string.h>

#include "profile/profile.h"
#include "profile/unresolved.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct name_text text_of(const struct profile *profile, uint32_t string)
{
    return (struct name_text){profile->strings[string].data, profile->strings[string].length};
}

static uint64_t hash_of(struct name_text text)
{
    return unresolved_string_hash(text.data, text.length, 7);
}

/* Stores find functions by hashes that are made without a profile. */
static void check_hashes(struct name_text own, struct name_text system,
                         const struct profile *profile, uint32_t id)
{
    const struct profile_function *function = &profile->functions[id];
    struct unresolved_function unresolved = {.name = hash_of(own), .system_name = hash_of(system)};
    unresolved_choose_name(&unresolved, own, system, 7);
    require(unresolved.name == hash_of(text_of(profile, function->name)));
    require(unresolved.system_name == hash_of(text_of(profile, function->system_name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    const uint8_t *line = length ? memchr(data, '\n', length) : NULL;
    size_t own = line ? (size_t)(line - data) : length;
    struct name_text names[2] = {{(const char *)data, own},
                                 {(const char *)data + own + !!line, length - own - !!line}};
    _cleanup_profile_ struct profile readable, original;
    profile_init(&readable, PROFILE_ALL);
    profile_init(&original, PROFILE_ALL | PROFILE_ORIGINAL_NAMES);
    struct profile_function function = {
        .name = profile_string(&readable, names[0].data, names[0].length),
        .system_name = profile_string(&readable, names[1].data, names[1].length)};
    uint32_t id = profile_function(&readable, &function);
    require(profile_function(&readable, &readable.functions[id]) == id);
    check_hashes(names[0], names[1], &readable, id);

    struct name_text shown = text_of(&readable, readable.functions[id].name);
    struct name_text system = text_of(&readable, readable.functions[id].system_name);
    function = (struct profile_function){
        .name = profile_string(&original, shown.data, shown.length),
        .system_name = profile_string(&original, system.data, system.length)};
    id = profile_function(&original, &function);
    if (own && !names[1].length)
        require(original.functions[id].name ==
                profile_string(&original, names[0].data, names[0].length));
    return 0;
}
