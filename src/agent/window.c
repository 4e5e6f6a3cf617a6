// SPDX-License-Identifier: Apache-2.0
// A window's samples into a request: see window.h.

#include "agent/window.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/memory.h"
#include "base/process/shared_fd.h"
#include "format/otlp/otlp.h"

#define ADDRESS_DETAIL (PROFILE_LABELS | PROFILE_ADDRESSES)
#define NAMED_DETAIL (PROFILE_LABELS | PROFILE_ADDRESSES | PROFILE_LINES)
#define ZSTD_LEVEL 3
#define FILES_OPEN_MAX 64 /* of those without a build ID, which nothing else tells apart */

struct window_file {
    char *path; /* NULL: it can't be opened */
    char *key;
    struct shared_fd *held; /* NULL: its path is good for longer than the capture is */
};

struct window *window_new(int64_t time_ns)
{
    struct window *window = memory_zalloc(1, sizeof(*window));
    profile_init(&window->profile, ADDRESS_DETAIL);
    window->time_ns = time_ns;
    return window;
}

void window_free(struct window *window)
{
    if (!window)
        return;
    for (uint32_t i = 0; window->files && i < window->profile.mapping_count; i++) {
        free(window->files[i].path);
        free(window->files[i].key);
        shared_fd_unref(window->files[i].held);
    }
    free(window->files);
    profile_release(&window->profile);
    free(window);
}

static void use_held(struct window_file *file)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file->held->fd);
    file->path = memory_strdup(path);
}

/* Of a file without a build ID, which nothing else tells apart. */
static char *key_of(int fd)
{
    struct stat found;
    char text[96];
    if (fstat(fd, &found) < 0)
        return NULL;
    snprintf(text, sizeof(text), "%llx:%llx:%llx:%llx.%lx", (unsigned long long)found.st_dev,
             (unsigned long long)found.st_ino, (unsigned long long)found.st_size,
             (unsigned long long)found.st_ctim.tv_sec, (unsigned long)found.st_ctim.tv_nsec);
    return memory_strdup(text);
}

/* Files that the capture has open are held here, too: it may close them, or be gone, before names
 * are looked up. A path may lead to another file by then; the build ID tells. A file without one is
 * opened now. */
static void find_file(struct window_file *file, struct capture *capture,
                      const struct profile *profile, uint32_t mapping, size_t *opened)
{
    const char *build_id = profile_text(profile, profile->mappings[mapping].build_id);
    file->held = capture_hold(capture, profile, mapping);
    const char *path = file->held ? NULL : capture_locate(capture, profile, mapping);
    if (path && !*build_id && *opened < FILES_OPEN_MAX) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        file->held = fd < 0 ? NULL : shared_fd_new(fd);
        ++*opened;
    }
    if (file->held)
        use_held(file);
    else if (path && *build_id)
        file->path = memory_strdup(path);
    if (*build_id)
        file->key = memory_strdup(build_id);
    else if (file->held)
        file->key = key_of(file->held->fd);
    else
        file->key = memory_strdup(profile_text(profile, profile->mappings[mapping].file));
}

/* The server can identify a file by its build ID only; and the vDSO isn't a file. */
static bool is_known_elsewhere(const struct profile *profile, uint32_t mapping)
{
    return profile_text(profile, profile->mappings[mapping].build_id)[0] &&
           profile_text(profile, profile->mappings[mapping].file)[0] != '[';
}

void window_close(struct window *window, struct capture *capture, int64_t duration_ns, bool resolve)
{
    struct profile *profile = &window->profile;
    size_t opened = 0;
    window->duration_ns = duration_ns;
    window->files = memory_zalloc(profile->mapping_count, sizeof(*window->files));
    for (uint32_t i = 1; i < profile->mapping_count; i++)
        if (resolve || !is_known_elsewhere(profile, i))
            find_file(&window->files[i], capture, profile, i, &opened);
}

void window_note(struct window *window, const char *format, ...)
{
    va_list arguments;
    window->note_count = MIN(window->note_count, (size_t)WINDOW_NOTES_MAX - 1);
    va_start(arguments, format);
    vsnprintf(window->notes[window->note_count++], WINDOW_NOTE_BYTES, format, arguments);
    va_end(arguments);
}

void window_note_losses(struct window *window, const struct capture *capture,
                        struct capture_loss *last, size_t *last_count)
{
    struct capture_loss losses[CAPTURE_LOSSES_MAX];
    size_t count = capture_losses(capture, losses);
    for (size_t i = 0; i < count; i++) {
        uint64_t growth = losses[i].count;
        for (size_t j = 0; j < *last_count; j++)
            if (!strcmp(last[j].reason, losses[i].reason))
                growth -= MIN(growth, last[j].count);
        if (growth) {
            window->losses[window->loss_count] = losses[i];
            window->losses[window->loss_count++].count = growth;
        }
    }
    memcpy(last, losses, sizeof(losses[0]) * count);
    *last_count = count;
}

/* Losses, in words that readers see in any tool. */
static void add_comments(const struct window *window, struct profile *profile)
{
    for (size_t i = 0; i < window->loss_count; i++) {
        char text[192];
        snprintf(text, sizeof(text), "assay: %llu %s", (unsigned long long)window->losses[i].count,
                 window->losses[i].what);
        profile_add_comment(profile, profile_cstring(profile, text));
    }
    for (size_t i = 0; i < window->note_count; i++) {
        char text[WINDOW_NOTE_BYTES + 16];
        snprintf(text, sizeof(text), "assay: %s", window->notes[i]);
        profile_add_comment(profile, profile_cstring(profile, text));
    }
}

static int name_window(const struct window *window, struct namer *namer, struct profile *named,
                       struct error *error)
{
    const struct profile *profile = &window->profile;
    _cleanup_free_ struct named_file *files = memory_zalloc(profile->mapping_count, sizeof(*files));
    for (uint32_t i = 0; i < profile->mapping_count; i++)
        files[i] = (struct named_file){.path = window->files[i].path, .key = window->files[i].key};
    return namer_name(namer, profile, files, named, error);
}

static int compress(const struct buffer *plain, struct buffer *ret_body, struct error *error)
{
    size_t bound = ZSTD_compressBound(plain->length);
    char *room = buffer_try_reserve(ret_body, bound);
    if (!room)
        return error_set(error, -ENOMEM, "There is not enough memory to compress a window.");
    size_t length = ZSTD_compress(room, bound, plain->data, plain->length, ZSTD_LEVEL);
    if (ZSTD_isError(length))
        return error_set(error, -EIO, "Failed to compress a window: %s.",
                         ZSTD_getErrorName(length));
    ret_body->length += length;
    return 0;
}

int window_encode(const struct window *window, struct namer *namer, struct buffer *ret_body,
                  struct error *error)
{
    _cleanup_profile_ struct profile named;
    _cleanup_buffer_ struct buffer plain = {0};
    profile_init(&named, NAMED_DETAIL | (window->profile.detail & PROFILE_TIMES));
    int r = name_window(window, namer, &named, error);
    if (r < 0)
        return r;
    named.time_ns = window->time_ns;
    named.duration_ns = window->duration_ns;
    add_comments(window, &named);
    otlp_write_by_labels(&plain, &named);
    return compress(&plain, ret_body, error);
}
