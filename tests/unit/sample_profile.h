/* SPDX-License-Identifier: Apache-2.0 */
/* A profile built by hand from folded text, for tests of what works on the model. */
#pragma once

#include "profile/profile.h"
#include "unit.h"

/* Adds "main;work;leaf 5 k=v" lines: frames outermost first, a value for samples/count, and
 * optional labels. A frame "+name" is inlined, "name:12" has a line, and "0x40" is an address in
 * the binary app, mapped at 0x1000. */
static inline void add_stack(struct profile *profile, const char *line)
{
    char text[512];
    snprintf(text, sizeof(text), "%s", line);
    char *rest = text, *stack = strsep(&rest, " "), *value = strsep(&rest, " ");
    uint32_t frames[64];
    size_t depth = 0;
    for (char *name; (name = strsep(&stack, ";")) && *name;) {
        struct profile_frame frame = {0};
        frame.inlined = *name == '+';
        name += *name == '+';
        char *colon = strrchr(name, ':');
        if (colon) {
            frame.line = (uint32_t)atoi(colon + 1);
            *colon = '\0';
        }
        if (!strncmp(name, "0x", 2)) {
            frame.address = strtoull(name, NULL, 16);
            frame.mapping = profile_mapping(
                profile, &(struct profile_mapping){.start = 0x1000,
                                                   .limit = 0x9000,
                                                   .file = profile_cstring(profile, "/bin/app")});
        } else {
            frame.function = profile_function(
                profile, &(struct profile_function){.name = profile_cstring(profile, name),
                                                    .file = profile_cstring(profile, "app.c")});
        }
        frames[depth++] = profile_frame(profile, &frame);
    }
    struct profile_label labels[8];
    size_t label_count = 0;
    for (char *label; (label = strsep(&rest, " "));) {
        char *key = strsep(&label, "=");
        labels[label_count++] = (struct profile_label){.key = profile_cstring(profile, key),
                                                       .text = profile_cstring(profile, label)};
    }
    unsigned type = profile_type(profile, profile_cstring(profile, "samples"),
                                 profile_cstring(profile, "count"));
    size_t row = profile_sample(profile, profile_stack(profile, frames, depth),
                                profile_label_set(profile, labels, label_count), 0, 0);
    profile_add_value(profile, row, type, atoll(value));
}

#define add_stacks(profile, ...)                                                                   \
    do {                                                                                           \
        const char *const lines_[] = {__VA_ARGS__};                                                \
        for (size_t i_ = 0; i_ < sizeof(lines_) / sizeof(lines_[0]); i_++)                         \
            add_stack(profile, lines_[i_]);                                                        \
    } while (0)
