// SPDX-License-Identifier: Apache-2.0
// `assay store acknowledge` and `assay store retention resume`: what an operator decides, in a
// directory that no server has, or by a running server's API. Both are in the audit log.

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/service/store.h"

static int call(const struct store_flags *flags, const char *path, const char *file,
                const char *confirm, struct error *error)
{
    _cleanup_buffer_ struct buffer url = {0};
    _cleanup_http_reply_ struct http_reply reply = {0};
    struct http_client *client;
    const char *const headers[] = {confirm};
    store_address(flags, path, &url);
    if (file)
        store_address_add(&url, "file", file);
    if (flags->reason)
        store_address_add(&url, "reason", flags->reason);
    int r = store_client(flags, &client, error);
    if (r < 0)
        return r;
    struct http_call call = {
        .method = "POST", .url = buffer_text(&url), .headers = headers, .header_count = 1};
    r = http_client_call(client, &call, &reply, error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    http_client_free(client);
    return r;
}

static int open_store(const char *directory, struct store **ret_store, struct error *error)
{
    struct store_options options = {.directory = directory};
    if (access(directory, F_OK) < 0)
        return error_set_errno(error, -errno, "Failed to open %s", directory);
    int r = store_open_embedded(&options, ret_store, error);
    if (r == -EBUSY)
        error_prefix(error, "Use --url with a running server");
    return r;
}

/* DIR/TENANT/FILE: the directory is two up. */
static int directory_of(const char *file, char directory[static PATH_MAX], struct error *error)
{
    const char *end = strrchr(file, '/');
    const char *above = end ? memrchr(file, '/', (size_t)(end - file)) : NULL;
    if (!end)
        return error_set(error, -EINVAL, "%.300s is not in the directory of a tenant.", file);
    if (above)
        snprintf(directory, PATH_MAX, "%.*s", (int)MAX(above - file, 1), file);
    else
        snprintf(directory, PATH_MAX, ".");
    return 0;
}

static int acknowledge_here(const struct store_flags *flags, const char *file, struct error *error)
{
    char directory[PATH_MAX], path[PATH_MAX] = "";
    struct store *store;
    int r = directory_of(file, directory, error);
    if (!r)
        r = open_store(directory, &store, error);
    if (r < 0)
        return r;
    /* The store calls it DIRECTORY/TENANT/FILE, as it was opened. */
    const char *name = !strcmp(directory, ".") ? file : file + strlen(directory) + 1;
    r = store_acknowledge(store, NULL, name, path, error);
    store_close(store);
    if (!r)
        store_note(directory, NULL, "acknowledge", path, flags->reason);
    return r;
}

int store_acknowledge_command(const struct store_flags *flags, const char *file)
{
    struct error error = {0};
    int r = flags->url ? call(flags, "/api/v1/admin/acknowledge", file,
                              "X-Assay-Confirm: acknowledge", &error)
                       : acknowledge_here(flags, file, &error);
    if (r < 0)
        return fail(&error);
    printf("%s is acknowledged as damaged.\n", file);
    return EXIT_FINE;
}

static int resume_here(const struct store_flags *flags, const char *directory, struct error *error)
{
    struct store *store;
    int r = open_store(directory, &store, error);
    if (r < 0)
        return r;
    r = store_resume_retention(store, error);
    store_close(store);
    if (!r)
        store_note(directory, NULL, "retention resume", "store",
                   flags->reason ? flags->reason : "done");
    return r;
}

int store_resume_command(const struct store_flags *flags, const char *place)
{
    struct error error = {0};
    int r = flags->url ? call(flags, "/api/v1/admin/retention/resume", NULL,
                              "X-Assay-Confirm: resume", &error)
                       : resume_here(flags, place, &error);
    if (r < 0)
        return fail(&error);
    printf("Retention continues.\n");
    return EXIT_FINE;
}
