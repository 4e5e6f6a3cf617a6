// SPDX-License-Identifier: Apache-2.0
// Code that many programs share, by the names of files: see shared.h.

#include "profile/shared.h"

#include <string.h>

#include "base/memory.h"

static const char *const files[] = {
    "[kernel",   "libc.",   "libc-",   "libpthread", "ld-",    "[vdso", /* of all programs */
    "libpython", "python3", "libruby", "ruby",       "libjvm",          /* of runtimes */
};

bool shared_code(const struct profile *profile, uint32_t node)
{
    const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
    const char *path = profile_text(profile, profile->mappings[frame->mapping].file);
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (!strncmp(file, files[i], strlen(files[i])))
            return true;
    return false;
}
