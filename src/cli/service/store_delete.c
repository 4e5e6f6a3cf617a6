// SPDX-License-Identifier: Apache-2.0
// `assay store delete`: from a directory that no server uses, or through a running server's API.
// Asks for confirmation on a terminal.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/service/store.h"
#include "http/client/client.h"
#include "io/json.h"
#include "query/spans.h"
#include "server/audit/audit.h"

/* The amounts that were deleted, or would be. */
struct removal {
    struct store_deleted store;
    uint64_t spans;
};

static bool is_any(const struct removal *removal)
{
    return removal->store.windows || removal->spans;
}

/* True when it may go on. */
static bool is_meant(const struct store_flags *flags, const struct removal *found)
{
    char answer[16];
    if (flags->yes)
        return true;
    if (!isatty(STDIN_FILENO)) {
        fprintf(stderr, "assay: nothing was deleted; without a terminal, use --yes.\n");
        return false;
    }
    fprintf(stderr,
            "Delete %" PRIu64 " windows with %" PRIu64 " samples and %" PRIu64
            " spans permanently? [y/N] ",
            found->store.windows, found->store.rows, found->spans);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void print_deleted(const struct removal *deleted, bool dry_run)
{
    printf("%" PRIu64 " windows with %" PRIu64 " samples %s.\n", deleted->store.windows,
           deleted->store.rows, dry_run ? "would be deleted" : "were deleted");
    if (deleted->spans)
        printf("%" PRIu64 " spans %s.\n", deleted->spans,
               dry_run ? "would be deleted" : "were deleted");
    if (deleted->store.pending)
        printf("Names that only they used are still in files; the server removes them when no "
               "query or push is active.\n");
}

static void note(const struct store_flags *flags, const char *directory,
                 const struct removal *deleted, int r, const struct error *error)
{
    char target[AUDIT_TEXT_MAX], outcome[ERROR_TEXT_BYTES + 96];
    snprintf(target, sizeof(target), "%s from %s to %s", flags->query, flags->from, flags->to);
    snprintf(outcome, sizeof(outcome),
             "%" PRIu64 " windows, %" PRIu64 " samples, %" PRIu64 " spans%s%s",
             deleted->store.windows, deleted->store.rows, deleted->spans, r < 0 ? "; " : "",
             r < 0 ? error->text : "");
    store_note(directory, flags->tenant, "delete", target, outcome);
}

/* Spans of the selected services; a selection by type has none. */
static int remove_spans(const char *directory, const struct query *query,
                        const struct store_selection *selection, bool dry_run, uint64_t *ret_spans,
                        struct error *error)
{
    struct span_options options = {.read_only = dry_run};
    struct span_query range = {
        .tenant = selection->tenant, .from_ns = selection->from_ns, .to_ns = selection->to_ns};
    struct span_index *index;
    int r = span_index_open(directory, &options, &index, error);
    if (r < 0)
        return r;
    r = query_spans_delete(index, query, &range, dry_run, ret_spans, error);
    span_index_close(index);
    return r;
}

static int remove_all(const char *directory, struct store *store, const struct query *query,
                      const struct store_selection *selection, bool dry_run,
                      struct removal *deleted, struct error *error)
{
    struct error spans_error = {0};
    int r = store_delete(store, selection, dry_run, &deleted->store, error);
    int spans = r && r != -ENOTSUP ? 0
                                   : remove_spans(directory, query, selection, dry_run,
                                                  &deleted->spans, &spans_error);
    if (spans < 0) {
        *error = spans_error;
        r = spans;
    }
    return r;
}

static int delete_here(const struct store_flags *flags, const char *directory)
{
    _cleanup_query_ struct query query = {0};
    struct store_selection selection;
    struct removal deleted = {0};
    struct store *store;
    struct error error = {0};
    struct store_class for_ever = {.name =
                                       "default"}; /* what is too old is the server's business */
    struct store_options options = {.directory = directory,
                                    .classes = &for_ever,
                                    .class_count = 1,
                                    .read_only = flags->dry_run};
    if (access(directory, F_OK) < 0) {
        error_set_errno(&error, -errno, "Failed to open %s", directory);
        return fail(&error);
    }
    if (store_open_embedded(&options, &store, &error) < 0)
        return fail(&error);
    int r = store_select(flags, store, &query, &selection, &error);
    if (!r)
        r = remove_all(directory, store, &query, &selection, true, &deleted, &error);
    bool selected = !r || r == -ENOTSUP, goes = selected && !flags->dry_run;
    if (goes && is_any(&deleted))
        goes = is_meant(flags, &deleted);
    if (goes) {
        r = remove_all(directory, store, &query, &selection, false, &deleted, &error);
        note(flags, directory, &deleted, r, &error);
    }
    store_close(store);
    if (goes || (selected && flags->dry_run))
        print_deleted(&deleted, flags->dry_run);
    if (r < 0)
        return fail(&error);
    return goes || flags->dry_run ? EXIT_FINE : EXIT_FAILED;
}

/* ---- by the API ---- */

static uint64_t number_of(const struct buffer *body, const char *name)
{
    char key[64];
    snprintf(key, sizeof(key), "\"%s\":", name);
    const char *at = body->length ? memmem(body->data, body->length, key, strlen(key)) : NULL;
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static int call(struct http_client *client, const struct store_flags *flags, bool dry_run,
                struct removal *deleted, struct error *error)
{
    _cleanup_buffer_ struct buffer url = {0};
    store_address(flags, "/api/v1/admin/delete", &url);
    store_address_add(&url, "query", flags->query);
    store_address_add(&url, "from", flags->from);
    store_address_add(&url, "to", flags->to);
    store_address_add(&url, "dry_run", dry_run ? "true" : "false");
    static const char *const headers[] = {"X-Assay-Confirm: delete"};
    struct http_call call = {
        .method = "POST", .url = buffer_text(&url), .headers = headers, .header_count = 1};
    _cleanup_http_reply_ struct http_reply reply = {0};
    int r = http_client_call(client, &call, &reply, error);
    if (r < 0)
        return r;
    if (reply.status != 200 && reply.status != 409)
        return http_reply_error(&call, &reply, error);
    buffer_text(&reply.body); /* ends it, for strtoull */
    deleted->store.windows = number_of(&reply.body, "windows");
    deleted->store.rows = number_of(&reply.body, "samples");
    deleted->spans = number_of(&reply.body, "spans");
    deleted->store.pending =
        memmem(reply.body.data, reply.body.length, "\"pending\":true", 14) != NULL;
    return reply.status == 409 ? (http_reply_error(&call, &reply, error), -ENOTSUP) : 0;
}

static int delete_there(const struct store_flags *flags)
{
    struct removal deleted = {0};
    struct error error = {0};
    struct http_client *client;
    if (flags->tenant)
        return options_wrong("store", "--url uses the token's tenant.");
    if (store_client(flags, &client, &error) < 0)
        return fail(&error);
    int r = call(client, flags, true, &deleted, &error);
    bool selected = !r || r == -ENOTSUP, goes = selected && !flags->dry_run;
    if (goes && is_any(&deleted))
        goes = is_meant(flags, &deleted);
    if (goes)
        r = call(client, flags, false, &deleted, &error);
    http_client_free(client);
    if (selected && (goes || flags->dry_run))
        print_deleted(&deleted, flags->dry_run);
    if (r < 0)
        return fail(&error);
    return goes || flags->dry_run ? EXIT_FINE : EXIT_FAILED;
}

int store_delete_command(const struct store_flags *flags, const char *place)
{
    struct store_flags own = *flags;
    if (flags->url)
        return delete_there(flags);
    own.tenant = flags->tenant ? flags->tenant : "anonymous";
    return delete_here(&own, place);
}
