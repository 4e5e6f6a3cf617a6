// SPDX-License-Identifier: Apache-2.0
// What `assay record --mode heap` prints at the end: the sites that hold most memory, and those
// that allocate most.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/live/record.h"
#include "profile/names/allocator.h"
#include "profile/shared.h"
#include "profile/units.h"

#define SITES_SHOWN 10
#define NAME_BYTES 72

/* A function that allocates, and the values of the profile that belong to it. */
struct site {
    uint32_t function;
    int64_t bytes, objects;
};

static const char *function_name(const struct profile *profile, uint32_t function)
{
    return profile_text(profile, profile->functions[function].name);
}

/* The innermost function that isn't an allocator's, and of the program itself where there is one.
 */
static uint32_t site_of(const struct profile *profile, uint32_t node)
{
    uint32_t found = 0;
    for (uint32_t at = node; at; at = profile->nodes[at].parent) {
        uint32_t function = profile->frames[profile->nodes[at].frame].function;
        const char *name = function_name(profile, function);
        if (!function || name_is_allocator(name, strlen(name)))
            continue;
        if (!shared_code(profile, at))
            return function;
        if (!found)
            found = function;
    }
    if (found)
        return found;
    return node ? profile->frames[profile->nodes[node].frame].function : 0;
}

static int larger_first(const void *first, const void *second)
{
    const struct site *a = first, *b = second;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static int type_of(const struct profile *profile, const char *name)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (strcmp(profile_text(profile, profile->types[i].type), name) == 0)
            return (int)i;
    return -1;
}

static void print_sites(const struct profile *profile, const struct site *sites, const char *title,
                        int64_t total)
{
    _cleanup_buffer_ struct buffer out = {0};
    buffer_add_text(&out, "assay: ");
    units_add(&out, &units_terminal, (double)total, "bytes");
    fprintf(stderr, "%s %s; most at\n", buffer_text(&out), title);
    for (size_t i = 0; i < SITES_SHOWN && sites[i].bytes > 0; i++) {
        const char *name = function_name(profile, sites[i].function);
        double share = 100.0 * (double)sites[i].bytes / (double)total;
        struct buffer bytes = {0}, average = {0};
        units_add(&bytes, &units_terminal, (double)sites[i].bytes, "bytes");
        units_add(&average, &units_terminal,
                  (double)sites[i].bytes / (double)MAX(sites[i].objects, 1), "bytes");
        out.length = 0;
        text_escape_terminal(&out, name, MIN(strlen(name), NAME_BYTES));
        if (sites[i].objects)
            fprintf(stderr, "  %8s %5.1f%%  %11lld x %-8s  %s\n", buffer_text(&bytes), share,
                    (long long)sites[i].objects, buffer_text(&average), buffer_text(&out));
        else
            fprintf(stderr, "  %8s %5.1f%%  %s\n", buffer_text(&bytes), share, buffer_text(&out));
        buffer_release(&bytes);
        buffer_release(&average);
    }
}

static void report_type(const struct profile *profile, const char *space, const char *objects,
                        const char *title)
{
    int space_type = type_of(profile, space), objects_type = type_of(profile, objects);
    if (space_type < 0)
        return;
    size_t count = MAX(profile->function_count, 1u) + SITES_SHOWN;
    _cleanup_free_ struct site *sites = memory_zalloc(count, sizeof(*sites));
    int64_t total = 0;
    for (size_t row = 0; row < profile->samples.count; row++) {
        uint32_t function = site_of(profile, profile->samples.node[row]);
        int64_t bytes = profile->samples.values[space_type][row];
        sites[function].function = function;
        sites[function].bytes += bytes;
        if (objects_type >= 0)
            sites[function].objects += profile->samples.values[objects_type][row];
        total += bytes;
    }
    qsort(sites, profile->function_count, sizeof(*sites), larger_first);
    if (total > 0)
        print_sites(profile, sites, title, total);
}

void report_heap(const struct profile *profile)
{
    report_type(profile, "inuse_space", "inuse_objects", "live at the end");
    report_type(profile, "alloc_space", "alloc_objects", "allocated in all");
}
