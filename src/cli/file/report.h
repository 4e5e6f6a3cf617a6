/* SPDX-License-Identifier: Apache-2.0 */
/* The views of `assay report`: report.c chooses; report_tree.c, report_lines.c and report_asm.c
 * hold the larger ones. */
#pragma once

#include "cli/file/report_source.h"
#include "cli/table.h"
#include "profile/naming.h"
#include "profile/profile.h"
#include "profile/views/rank.h"

struct report {
    const char *title;
    const struct profile *profile;
    const struct naming *naming;
    unsigned type;
    int64_t whole;  /* what percentages are of: the total before filters */
    uint64_t limit; /* rows; 0: all */
    double least_percent;
    enum table_format format;
    bool colour;
    struct report_sources *sources; /* of --lines and --asm */
    struct buffer *out;
};

static inline const char *report_unit(const struct report *report)
{
    const struct profile *profile = report->profile;
    return profile->type_count ? profile_text(profile, profile->types[report->type].unit) : "";
}

/* Opens and closes the JSON object around a table; in text a heading line. `key` and `what` say
 * what the table is about, or are NULL. */
void report_begin(struct report *report, const char *heading, const char *key, const char *what);
void report_end(struct report *report);

void report_tree(struct report *report);
void report_lines(struct report *report, const bool *chosen);
/* Returns 0 or an exit code, after it said why. */
int report_asm(struct report *report, const bool *chosen, const char *name);
/* The same as JSON for a page, with what was left out: `functions` there are, `read` of them shown,
 * `lost` the value without instructions, and `why`. */
int report_asm_json(struct report *report, const bool *chosen, const char *name,
                    struct error *error);

/* The value that is 100%. */
int64_t report_total(const struct profile *profile, unsigned type);
