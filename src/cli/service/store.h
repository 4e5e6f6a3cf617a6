/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of `assay store`. */
#pragma once

#include "base/error.h"
#include "http/client/client.h"
#include "query/query.h"
#include "store/store.h"

struct store_flags {
    const char *query, *from, *to, *tenant, *url, *token_file, *ca, *format, *reason, *store;
    bool yes, dry_run;
    uint64_t limit;
};

/* The selection that the flags say; `query` owns its texts. Without times, all of it. */
int store_select(const struct store_flags *flags, struct store *store, struct query *query,
                 struct store_selection *ret_selection, struct error *error);

/* A place is a directory, or the URL of a store on ClickHouse. */
bool store_is_url(const char *place);
int store_open_place(const char *place, bool read_only, struct store **ret_store,
                     struct error *error);

/* Each opens what it needs, says what went wrong, and returns an exit code. `place` is a directory,
 * or NULL with flags->url. */
int store_delete_command(const struct store_flags *flags, const char *place);
int store_export_command(const struct store_flags *flags, const char *directory, const char *file);
int store_import_command(const struct store_flags *flags, const char *directory, const char *file);

int store_compare_command(const struct store_flags *flags, const char *first, const char *second);

int store_acknowledge_command(const struct store_flags *flags, const char *file);
int store_resume_command(const struct store_flags *flags, const char *place);

/* For flags->url: a client with its token, an address of the API, and a parameter for that. */
int store_client(const struct store_flags *flags, struct http_client **ret_client,
                 struct error *error);
void store_address(const struct store_flags *flags, const char *path, struct buffer *url);
void store_address_add(struct buffer *url, const char *name, const char *value);

/* Notes in the directory's audit log what this user did. */
void store_note(const char *directory, const char *tenant, const char *action, const char *target,
                const char *outcome);
