/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `assay store` share. */
#pragma once

#include "base/error.h"
#include "query/query.h"
#include "store/store.h"

struct store_flags {
    const char *query, *from, *to, *tenant, *url, *token_file, *ca, *format;
    bool yes, dry_run;
    uint64_t limit;
};

/* The selection that the flags say; `query` owns its texts. Without times, all of it. */
int store_select(const struct store_flags *flags, struct store *store, struct query *query,
                 struct store_selection *ret_selection, struct error *error);

/* Each opens what it needs, says what went wrong, and returns an exit code. `place` is a directory,
 * or NULL with flags->url. */
int store_delete_command(const struct store_flags *flags, const char *place);
int store_export_command(const struct store_flags *flags, const char *directory, const char *file);
int store_import_command(const struct store_flags *flags, const char *directory, const char *file);

/* Notes in the directory's audit log what this user did. */
void store_note(const char *directory, const char *tenant, const char *action, const char *target,
                const char *outcome);
