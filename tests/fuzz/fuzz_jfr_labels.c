// SPDX-License-Identifier: Apache-2.0
// Labels of a recording's contexts, applied to samples of a few of them: no value is lost.

#include <stdlib.h>

#include "format/jfr/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    uint32_t key = profile_cstring(&profile, "context_id");
    unsigned type =
        profile_type(&profile, profile_cstring(&profile, "a"), profile_cstring(&profile, "b"));
    for (int64_t context = 0; context < 8; context++) {
        struct profile_label label = {.key = key, .number = context};
        size_t row = profile_sample(&profile, 0, profile_label_set(&profile, &label, 1), 0, 0);
        profile_add_value(&profile, row, type, 1);
    }
    jfr_labels_apply(data, length, &profile, &error);
    int64_t sum = 0;
    for (size_t i = 0; i < profile.samples.count; i++) {
        size_t count;
        profile_labels(&profile, profile.samples.labels[i], &count);
        sum += profile.samples.values[type][i];
    }
    if (sum != 8)
        abort();
    profile_release(&profile);
    return 0;
}
