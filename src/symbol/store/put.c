// SPDX-License-Identifier: Apache-2.0
// Taking files into the symbol store: who they are, whether they are better than what there is, and
// so that a crash leaves the old or the new, never half of either. See store.h.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/limits/budget.h"
#include "base/memory.h"
#include "elf/file.h"
#include "symbol/index/build.h"
#include "symbol/store/internal.h"

#define ALTERNATE_BYTES_MAX 8192

/* ---- the bytes ---- */

int symbol_upload_begin(struct symbol_store *store, struct symbol_upload *ret_upload,
                        struct error *error)
{
    struct buffer path = {0};
    buffer_printf(&path, "%s/incoming/XXXXXX", store->directory);
    buffer_text(&path);
    int fd = mkostemp(path.data, O_CLOEXEC);
    if (fd < 0) {
        int code = -errno;
        buffer_release(&path);
        return error_set_errno(error, code, "Failed to create a file for the upload in %s",
                               store->directory);
    }
    *ret_upload = (struct symbol_upload){.store = store, .fd = fd, .path = path.data};
    return 0;
}

int symbol_upload_write(struct symbol_upload *upload, const void *bytes, size_t length,
                        struct error *error)
{
    uint64_t limit = upload->store->options.file_bytes_max;
    if (length > limit - upload->bytes)
        return error_set(error, -E2BIG,
                         "The file exceeds the limit of %llu MiB (symbols.file_limit); upload only "
                         "its debug sections, as written by objcopy --only-keep-debug.",
                         (unsigned long long)(limit >> 20));
    int r = file_write_all(upload->fd, bytes, length);
    if (r < 0)
        return error_set_errno(error, r, "Failed to write the upload");
    upload->bytes += length;
    return 0;
}

void symbol_upload_release(struct symbol_upload *upload)
{
    if (!upload->path)
        return;
    close(upload->fd);
    unlink(upload->path);
    free(upload->path);
    *upload = (struct symbol_upload){0};
}

/* ---- an index of what there is ---- */

static void close_files(struct symbol_index_input *input, int borrowed)
{
    const int files[] = {input->file, input->debug, input->shared, input->package};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (files[i] >= 0 && files[i] != borrowed)
            close(files[i]);
}

/* A file of shared parts that dwz made has its own build ID and its own upload. */
static int open_shared(struct symbol_store *store, const char *tenant, int debug)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_buffer_ struct buffer link = {0};
    struct elf_section section;
    uint64_t bytes;
    char key[SYMBOL_KEY_BYTES] = "";
    int copy = debug < 0 ? -1 : fcntl(debug, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return -1;
    if (elf_open_foreign_fd(copy, &file, NULL) < 0) {
        close(copy);
        return -1;
    }
    if (!elf_find_section(&file, ".gnu_debugaltlink", &section) ||
        elf_read_section(&file, &section, ALTERNATE_BYTES_MAX, &link, NULL) < 0)
        return -1;
    size_t name = strnlen(link.data, link.length) + 1;
    if (name < link.length)
        hex_encode(link.data + name, MIN(link.length - name, (sizeof(key) - 2) / 2), key);
    if (!*key)
        return -1;
    int fd = symbol_store_open_file(store, tenant, key, SYMBOL_DEBUGINFO, &bytes);
    return fd >= 0 ? fd : symbol_store_open_file(store, tenant, key, SYMBOL_EXECUTABLE, &bytes);
}

/* From a new file, -1 for none, and what else there is of the build. */
static int build(struct symbol_store *store, const char *tenant,
                 const struct symbol_identity *identity, int file, struct buffer *ret_index,
                 struct error *error)
{
    struct symbol_index_input input = {.file = -1, .debug = -1, .shared = -1, .package = -1};
    uint64_t bytes;
    int package = identity->is_package ? file : -1, borrowed = file;
    if (identity->is_package)
        file = -1;
    bool is_debug = file >= 0 && !identity->has_code;
    input.debug = is_debug ? file : -1;
    input.file = file >= 0 && !is_debug ? file
                                        : symbol_store_open_file(store, tenant, identity->key,
                                                                 SYMBOL_EXECUTABLE, &bytes);
    if (input.debug < 0 && !(file >= 0 && identity->has_debug_information))
        input.debug =
            symbol_store_open_file(store, tenant, identity->key, SYMBOL_DEBUGINFO, &bytes);
    if (input.file < 0) {
        input.file = input.debug;
        input.debug = -1;
    }
    if (input.file < 0)
        return error_set(error, -ENOENT, "No file of the build %s is stored%s.", identity->key,
                         package >= 0 ? "; upload the program before its package" : "");
    input.shared = open_shared(store, tenant, input.debug >= 0 ? input.debug : input.file);
    input.package =
        package >= 0 ? package
                     : symbol_store_open_file(store, tenant, identity->key, SYMBOL_PACKAGE, &bytes);
    int r = symbol_index_build(&input, ret_index, error);
    close_files(&input, borrowed);
    return r;
}

/* ---- memory for it ---- */

#define INDEX_PART 8 /* of a file, its index: a tenth is usual */
#define INDEX_FLOOR (1u << 20)
#define MEMORY_WAIT_MS 60000

/* An index is in memory until it is written. */
static int take_memory(struct symbol_store *store, uint64_t file_bytes, size_t *ret_taken,
                       struct error *error)
{
    struct budget *memory = store->options.memory;
    size_t bytes = memory ? budget_fit(memory, file_bytes / INDEX_PART + INDEX_FLOOR) : 0;
    if (memory && !budget_wait(memory, bytes, MEMORY_WAIT_MS, NULL))
        return error_set(
            error, -EAGAIN,
            "Not enough memory for the file's index at the moment; upload it again later.");
    *ret_taken = bytes;
    return 0;
}

static void give_memory(struct symbol_store *store, size_t taken)
{
    if (store->options.memory)
        budget_give(store->options.memory, taken);
}

/* ---- keeping it ---- */

static int make_folder(const char *path, struct error *error)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST
               ? 0
               : error_set_errno(error, -errno, "Cannot create %s", path);
}

/* The tenant's, and the one of all builds whose keys begin alike. */
static int make_outer_folders(struct symbol_store *store, const char *tenant, const char *key,
                              struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    symbol_store_path(store, tenant, "", "", &path);
    int r = make_folder(buffer_text(&path), error);
    buffer_printf(&path, "/%.2s", key);
    return r < 0 ? r : make_folder(buffer_text(&path), error);
}

static int make_folders(struct symbol_store *store, const char *tenant, const char *key,
                        struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    int r = make_outer_folders(store, tenant, key, error);
    symbol_store_path(store, tenant, key, "", &path);
    return r < 0 ? r : make_folder(buffer_text(&path), error);
}

/* A Go program may have a build ID of the linker's, too; a sender may have a hash of its own for a
 * file. Profiles know either. */
static void link_other(struct symbol_store *store, const char *tenant, const char *key,
                       const char *other)
{
    _cleanup_buffer_ struct buffer path = {0}, target = {0};
    if (!*other || !strcmp(other, key) || make_outer_folders(store, tenant, other, NULL) < 0)
        return;
    symbol_store_path(store, tenant, other, "", &path);
    buffer_printf(&target, "../%.2s/%s", key, key + 2);
    if (symlink(buffer_text(&target), buffer_text(&path)) < 0 && errno != EEXIST)
        return; /* it is found by the other one */
    symbol_store_forget(store, tenant, other);
}

/* A debug file's own name says little, where the binary's is known. */
static int write_name(struct symbol_store *store, const char *tenant, const char *key,
                      const char *name, bool is_debug, struct error *error)
{
    _cleanup_buffer_ struct buffer path = {0};
    const char *slash = strrchr(name, '/');
    symbol_store_path(store, tenant, key, "name", &path);
    if (is_debug && access(buffer_text(&path), F_OK) == 0)
        return 0;
    name = slash ? slash + 1 : name;
    return file_write_atomic(buffer_text(&path), name, strnlen(name, SYMBOL_NAME_BYTES - 1), error);
}

/* The bytes are on their way as those of an upload are. */
static int write_index(struct symbol_store *store, const char *tenant, const char *key,
                       const struct buffer *index, struct error *error)
{
    _cleanup_symbol_upload_ struct symbol_upload upload = {0};
    _cleanup_buffer_ struct buffer path = {0};
    symbol_store_path(store, tenant, key, "index", &path);
    bool first = access(buffer_text(&path), F_OK) < 0;
    int r = symbol_upload_begin(store, &upload, error);
    if (!r && file_write_all(upload.fd, index->data, index->length) < 0)
        r = error_set_errno(error, -errno, "Failed to write %s", buffer_text(&path));
    symbol_store_touch(store, tenant, key);
    if (!r)
        r = symbol_content_place(store, upload.fd, upload.path, buffer_text(&path), error);
    symbol_store_forget(store, tenant, key);
    if (!r) { /* the next round corrects the stats, whatever was replaced */
        store->made++;
        store->builds += first;
        store->bytes += index->length;
    }
    return r;
}

/* The index comes last: a build without one isn't there. */
static int keep(struct symbol_upload *upload, const char *tenant,
                const struct symbol_identity *identity, const char *name,
                const struct buffer *index, struct error *error)
{
    struct symbol_store *store = upload->store;
    _cleanup_buffer_ struct buffer path = {0};
    int r = symbol_store_make_room(store, upload->bytes + index->length, error);
    if (!r)
        r = make_folders(store, tenant, identity->key, error);
    symbol_store_path(store, tenant, identity->key, symbol_file_names[symbol_file_of(identity)],
                      &path);
    if (!r)
        r = symbol_content_place(store, upload->fd, upload->path, buffer_text(&path), error);
    if (!r)
        r = write_name(store, tenant, identity->key, name, !identity->has_code, error);
    if (!r)
        r = write_index(store, tenant, identity->key, index, error);
    if (!r)
        link_other(store, tenant, identity->key, identity->other);
    store->bytes += r < 0 ? 0 : upload->bytes;
    return r;
}

static int identify(struct symbol_upload *upload, struct symbol_identity *ret_identity,
                    struct error *error)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    int copy = fcntl(upload->fd, F_DUPFD_CLOEXEC, 0);
    int r = copy < 0 ? error_set_errno(error, -errno, "Failed to read the upload")
                     : elf_open_foreign_fd(copy, &file, error);
    if (r < 0) {
        if (copy >= 0)
            close(copy);
        return error_prefix(error, "The upload is not a binary or debug file");
    }
    return symbol_identify(&file, ret_identity, error);
}

int symbol_upload_finish(struct symbol_upload *upload, const char *tenant, const char *expected,
                         const char *name, struct symbol_stored *ret_stored, struct error *error)
{
    struct symbol_store *store = upload->store;
    struct symbol_identity identity;
    struct symbol_stored stored = {0};
    _cleanup_buffer_ struct buffer index = {0};
    size_t taken = 0;
    int r = identify(upload, &identity, error);
    if (!r && identity.is_package && !expected)
        r = error_set(error, -EINVAL,
                      "A package of split units has no build ID; specify that of its program.");
    if (!r && identity.is_package) {
        strcpy(identity.key, expected);
        identity.other[0] = '\0';
    }
    if (!r && expected && strcmp(expected, identity.key) && strcmp(expected, identity.other))
        r = error_set(
            error, -EINVAL,
            "The file's build ID is %.120s, but it was uploaded as %.120s; nothing was stored.",
            identity.key, expected);
    if (r < 0) {
        store->refused++;
        return r;
    }
    strcpy(stored.key, identity.key);
    /* One after the other, so that a burst of uploads takes little of the memory. */
    pthread_mutex_lock(&store->turn);
    r = take_memory(store, upload->bytes, &taken, error);
    if (r < 0) {
        pthread_mutex_unlock(&store->turn);
        return r;
    }
    pthread_mutex_lock(&store->making);
    r = build(store, tenant, &identity, upload->fd, &index, error);
    if (r < 0)
        store->refused++;
    else if (symbol_store_improves(store, tenant, &identity, upload->fd, &index, &stored.quality)) {
        r = keep(upload, tenant, &identity, name ? name : "", &index, error);
        stored.stored = !r;
    } else {
        store->kept_out++;
    }
    if (!r)
        link_other(store, tenant, identity.key, upload->alias);
    pthread_mutex_unlock(&store->making);
    buffer_release(&index);
    give_memory(store, taken);
    pthread_mutex_unlock(&store->turn);
    if (!r)
        *ret_stored = stored;
    return r;
}

/* ---- without an upload ---- */

int symbol_store_index_path(struct symbol_store *store, const char *tenant, const char *path,
                            const char *key, struct error *error)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    _cleanup_buffer_ struct buffer index = {0};
    struct symbol_identity identity;
    enum symbol_index_quality quality;
    size_t taken = 0;
    int r = elf_open(path, &file, error);
    if (!r)
        r = symbol_identify(&file, &identity, error);
    if (!r && strcmp(key, identity.key) && strcmp(key, identity.other))
        r = error_set(error, -EINVAL, "%.200s has the build ID %.120s, not %.120s.", path,
                      identity.key, key);
    if (!r && !identity.has_code)
        r = error_set(error, -EINVAL, "%.200s has no code.", path);
    if (!r)
        r = take_memory(store, file.size_bytes, &taken, error);
    if (r < 0)
        return r;
    r = symbol_index_build_path(path, NULL, &index, error);
    if (r < 0) {
        give_memory(store, taken);
        return r;
    }
    pthread_mutex_lock(&store->making);
    if (symbol_store_improves(store, tenant, &identity, -1, &index, &quality)) {
        r = symbol_store_make_room(store, index.length, error);
        if (!r)
            r = make_folders(store, tenant, identity.key, error);
        if (!r)
            r = write_name(store, tenant, identity.key, path, false, error);
        if (!r)
            r = write_index(store, tenant, identity.key, &index, error);
        if (!r)
            link_other(store, tenant, identity.key, identity.other);
    }
    pthread_mutex_unlock(&store->making);
    buffer_release(&index);
    give_memory(store, taken);
    return r;
}

/* A crash, or an index of another version, leaves files without a good index. */
void symbol_store_mend(struct symbol_store *store, const char *tenant, const char *key)
{
    struct symbol_identity identity = {0};
    struct symbol_index index;
    _cleanup_buffer_ struct buffer path = {0}, made = {0};
    symbol_store_path(store, tenant, key, "index", &path);
    if (symbol_index_open(buffer_text(&path), &index, NULL) == 0) {
        symbol_index_close(&index);
        return;
    }
    strcpy(identity.key, key);
    if (build(store, tenant, &identity, -1, &made, NULL) < 0 ||
        write_index(store, tenant, key, &made, NULL) < 0)
        symbol_store_remove(store, tenant, key);
}
