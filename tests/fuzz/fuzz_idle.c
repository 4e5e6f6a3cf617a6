// SPDX-License-Identifier: Apache-2.0
// The fuzzer of rules on idle threads: whatever is read can be matched.

#include <string.h>

#include "profile/triage/idle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct idle_rules *rules = NULL;
    struct error error = {0};
    if (idle_rules_parse((const char *)data, length, "rules", &rules, &error) < 0)
        return error.text[0] && !rules ? 0 : (__builtin_trap(), 0);
    struct profile profile;
    profile_init(&profile, PROFILE_LABELS);
    struct profile_function function = {.name = profile_cstring(&profile, "pthread_cond_wait")};
    struct profile_frame frame = {.function = profile_function(&profile, &function)};
    uint32_t frames[] = {profile_frame(&profile, &frame)};
    idle_matches(rules, &profile, profile_stack(&profile, frames, 1), "lock");
    profile_release(&profile);
    idle_rules_free(rules);
    return 0;
}
