// SPDX-License-Identifier: Apache-2.0
// The instructions of a function, for the page of `assay view`: `report --asm` as JSON. The profile
// is of binaries of this machine, and so is the page.

#include <string.h>

#include "base/memory.h"
#include "cli/file/report.h"
#include "cli/file/view_asm.h"

#define FUNCTIONS_MAX 20 /* of binaries, that have the same name */

int view_put_assembly(struct buffer *out, const struct profile *profile, const char *function,
                      const char *type, struct error *error)
{
    _cleanup_naming_ struct naming naming;
    struct report_sources sources = {0};
    unsigned found = type ? profile_find_type(profile, type) : profile->type_count;
    if (found >= profile->type_count)
        found = profile_default_type(profile);
    if (found >= profile->type_count)
        return error_set(error, -ENOENT, "The profile has no samples.");
    naming_init(&naming, profile);
    _cleanup_free_ bool *chosen = memory_zalloc(naming.count + 1, sizeof(bool));
    size_t length = strlen(function);
    bool any = false;
    for (uint32_t i = 0; i < naming.count; i++)
        any |= chosen[i] =
            naming.entries[i].length == length && !memcmp(naming.entries[i].name, function, length);
    struct report report = {
        .title = "",
        .profile = profile,
        .naming = &naming,
        .type = found,
        .whole = report_total(profile, found),
        .limit = FUNCTIONS_MAX,
        .sources = &sources,
        .out = out,
    };
    int r = any ? report_asm_json(&report, chosen, function, error)
                : error_set(error, -ENOENT, "The profile has no function with this name.");
    report_sources_release(&sources);
    return r;
}
