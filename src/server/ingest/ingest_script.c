// SPDX-License-Identifier: Apache-2.0
// Names of functions of scripts, as Pyroscope shows those of its old clients.

#include "profile/unresolved.h"
#include "server/ingest/ingest.h"

void ingest_name_scripts(struct profile *profile, bool absolute)
{
    _cleanup_buffer_ struct buffer name = {0};
    profile_settle(profile);
    for (uint32_t i = 1; i < profile->function_count; i++) {
        struct profile_function *function = &profile->functions[i];
        const struct profile_string *file = &profile->strings[function->file];
        const struct profile_string *own = &profile->strings[function->name];
        if (!file->length || (file->data[0] == '/' && !absolute))
            continue;
        name.length = 0;
        buffer_add(&name, file->data, file->length);
        buffer_add_char(&name, ' ');
        buffer_add(&name, own->data, own->length);
        function->name = profile_string(profile, name.data, name.length);
    }
}
