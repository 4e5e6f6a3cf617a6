// SPDX-License-Identifier: Apache-2.0
// The symbol store as a debuginfod server, for gdb, perf and elfutils:
// /buildid/ID/debuginfo, /executable, /section/NAME and, of sources that were sent, /source/PATH.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elf/file.h"
#include "http/access/tokens.h"
#include "server/symbols/api/symbols_api.h"

#define SECTION_BYTES_MAX (256u << 20)

static bool has_debug_information(int fd)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct symbol_identity identity;
    int copy = dup(fd);
    if (copy < 0 || elf_open_foreign_fd(copy, &file, NULL) < 0) {
        if (copy >= 0)
            close(copy);
        return false;
    }
    return symbol_identify(&file, &identity, NULL) == 0 && identity.has_debug_information;
}

/* A binary that was not stripped is its own debug file. */
static int open_debuginfo(struct symbol_store *store, const char *tenant, const char *key,
                          uint64_t *ret_bytes)
{
    int fd = symbol_store_open_file(store, tenant, key, SYMBOL_DEBUGINFO, ret_bytes);
    if (fd >= 0)
        return fd;
    fd = symbol_store_open_file(store, tenant, key, SYMBOL_EXECUTABLE, ret_bytes);
    if (fd >= 0 && !has_debug_information(fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* `store` is NULL for a source, which has no name. Where there are tokens, a cache between us and
 * several readers must not keep for one what another one was given. */
static void put_headers(struct http_request *request, const struct server *server,
                        struct symbol_store *store, const char *key, uint64_t bytes)
{
    const char *tenant = http_request_identity(request)->tenant;
    char text[32];
    struct symbol_entry entry;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
    http_respond_header(request, "X-DEBUGINFOD-SIZE", text);
    if (store && symbol_store_find(store, tenant, key, &entry) && *entry.name)
        http_respond_header(request, "X-DEBUGINFOD-FILE", entry.name);
    http_respond_header(request, "Cache-Control",
                        store && !server->tokens ? "public, max-age=86400"
                                                 : "private, max-age=86400");
}

static bool read_section(int fd, const char *name, struct buffer *ret_content)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct elf_section section;
    if (elf_open_foreign_fd(fd, &file, NULL) < 0) {
        close(fd);
        return false;
    }
    return elf_find_section(&file, name, &section) && section.type != SHT_NOBITS &&
           elf_read_section(&file, &section, SECTION_BYTES_MAX, ret_content, NULL) == 0;
}

/* From the debug file, or else from the binary. */
static bool respond_section(struct http_request *request, const struct server *server,
                            const char *key, const char *name)
{
    struct symbol_store *store = symbols_store(server->symbols);
    const char *tenant = http_request_identity(request)->tenant;
    struct buffer content = {0};
    uint64_t bytes;
    bool found = false;
    for (int i = 0; !found && i < 2; i++) {
        int fd = symbol_store_open_file(store, tenant, key,
                                        i ? SYMBOL_EXECUTABLE : SYMBOL_DEBUGINFO, &bytes);
        content.length = 0;
        found = fd >= 0 && read_section(fd, name, &content);
    }
    if (found) {
        put_headers(request, server, store, key, content.length);
        http_respond(request, 200, "application/octet-stream", &content);
    }
    buffer_release(&content);
    return found;
}

/* Sources belong to a tenant: without a token, on a server with tokens, there are none. */
static void respond_source(struct http_request *request, struct server *server, const char *key,
                           const char *path)
{
    const struct http_identity *identity = http_request_identity(request);
    struct buffer text = {0};
    struct error error = {0};
    if (!(identity->roles & (HTTP_ROLE_READ | HTTP_ROLE_ADMIN)))
        error_set(&error, -ENOENT,
                  "Sources require a token, even with symbols.debuginfod_open; use /api/v1/source "
                  "with one.");
    else
        sources_read(request, server, key, path, &text, &error);
    if (error.code < 0) {
        http_respond_failure(request, &error);
        return;
    }
    put_headers(request, server, NULL, key, text.length);
    http_respond(request, 200, "application/octet-stream", &text);
    buffer_release(&text);
}

void debuginfod_get(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct symbol_store *store = symbols_store(server->symbols);
    const char *tenant = http_request_identity(request)->tenant;
    const char *rest = http_request_rest(request), *slash = strchr(rest, '/');
    char id[SYMBOL_KEY_BYTES], key[SYMBOL_KEY_BYTES];
    size_t length = slash ? (size_t)(slash - rest) : 0;
    if (!length || length >= sizeof(id)) {
        http_respond_error(request, 404,
                           "Use /buildid/ID/debuginfo, executable, section/NAME or source/PATH.");
        return;
    }
    snprintf(id, sizeof(id), "%.*s", (int)length, rest);
    const char *what = slash + 1;
    uint64_t bytes = 0;
    int fd = -1;
    bool is_id = symbol_key(id, key);
    if (is_id && !strncmp(what, "source/", 7)) {
        respond_source(request, server, key, what + 7);
        return;
    }
    if (is_id && !strcmp(what, "debuginfo"))
        fd = open_debuginfo(store, tenant, key, &bytes);
    else if (is_id && !strcmp(what, "executable"))
        fd = symbol_store_open_file(store, tenant, key, SYMBOL_EXECUTABLE, &bytes);
    else if (is_id && !strncmp(what, "section/", 8) &&
             respond_section(request, server, key, what + 8))
        return;
    if (fd < 0) {
        http_respond_error(request, 404, "No %.40s of the build %.120s found.", what, id);
        return;
    }
    put_headers(request, server, store, key, bytes);
    http_respond_file(request, 200, "application/octet-stream", fd, bytes);
}
