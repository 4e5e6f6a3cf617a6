// SPDX-License-Identifier: Apache-2.0
// Removes secrets from the names of functions and files before they are stored. Off by default:
// most programs have no secrets there, and checking every name costs time.

#include "server/ingest/ingest.h"

static uint32_t redacted(struct redactor *redactor, struct profile *profile, uint32_t string,
                         struct buffer *out)
{
    const struct profile_string *text = &profile->strings[string];
    if (!string || !redactor_text(redactor, REDACT_NAME, NULL, text->data, text->length, out))
        return string;
    return profile_string(profile, out->data ? out->data : "", out->length);
}

void ingest_redact_names(struct redactor *redactor, struct profile *profile)
{
    _cleanup_buffer_ struct buffer out = {0};
    /* In place: nothing is interned by these any more, and equal functions still add up by name. */
    for (uint32_t i = 1; i < profile->function_count; i++) {
        struct profile_function *function = &profile->functions[i];
        function->name = redacted(redactor, profile, function->name, &out);
        function->system_name = redacted(redactor, profile, function->system_name, &out);
        function->file = redacted(redactor, profile, function->file, &out);
    }
    for (uint32_t i = 1; i < profile->mapping_count; i++)
        profile->mappings[i].file = redacted(redactor, profile, profile->mappings[i].file, &out);
}
