// SPDX-License-Identifier: Apache-2.0
// `assay store export` and `import`: a store's content to a file or a pipe and back.

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/service/store.h"

struct stream {
    int fd;
    const char *verb;
    uint64_t bytes;
    struct progress *progress;
};

static void show(struct stream *stream, size_t length)
{
    char text[64];
    stream->bytes += length;
    snprintf(text, sizeof(text), "%s, %" PRIu64 " MiB", stream->verb, stream->bytes >> 20);
    progress_say(stream->progress, text);
}

static int write_stream(void *context, const void *data, size_t length)
{
    struct stream *stream = context;
    show(stream, length);
    return file_write_all(stream->fd, data, length);
}

static ssize_t read_stream(void *context, void *data, size_t room)
{
    struct stream *stream = context;
    ssize_t got;
    do
        got = read(stream->fd, data, room);
    while (got < 0 && errno == EINTR);
    show(stream, got > 0 ? (size_t)got : 0);
    return got < 0 ? -errno : got;
}

static int export_to(const struct store_flags *flags, const char *directory, int fd,
                     struct store_transfer *transfer, struct error *error)
{
    _cleanup_query_ struct query query = {0};
    struct store_selection selection;
    struct store *store;
    struct stream stream = {.fd = fd, .verb = "exporting", .progress = progress_start()};
    int r = store_open_place(directory, true, &store, error);
    if (!r) {
        r = store_select(flags, store, &query, &selection, error);
        if (!r)
            r = store_export(store, &selection, NULL, write_stream, &stream, transfer, error);
        if (r < 0 && !error->code)
            error_set_errno(error, r, "Failed to write the export");
        store_close(store);
    }
    progress_stop(&stream.progress);
    return r;
}

/* Under another name first: a file that is there is whole. */
int store_export_command(const struct store_flags *flags, const char *directory, const char *file)
{
    bool pipe = !strcmp(file, "-");
    char partial[PATH_MAX];
    struct store_transfer transfer = {0};
    struct error error = {0};
    snprintf(partial, sizeof(partial), "%s.partial", file);
    if (pipe && isatty(STDOUT_FILENO))
        return options_wrong("store", "An export is binary; specify a file.");
    int fd = pipe ? STDOUT_FILENO : open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = fd < 0 ? error_set_errno(&error, -errno, "Failed to write %s", partial)
                   : export_to(flags, directory, fd, &transfer, &error);
    if (!pipe && fd >= 0) {
        if (!r && (fsync(fd) < 0 || rename(partial, file) < 0))
            r = error_set_errno(&error, -errno, "Failed to write %s", file);
        close(fd);
        if (r < 0)
            unlink(partial);
    }
    if (r < 0)
        return fail(&error);
    fprintf(stderr,
            "assay: %" PRIu64 " windows with %" PRIu64 " rows in %" PRIu64 " batches, %.1f MiB.\n",
            transfer.windows, transfer.rows, transfer.batches, (double)transfer.bytes / (1 << 20));
    if (transfer.damaged_blocks || transfer.damaged_files) {
        fprintf(
            stderr,
            "assay: %u blocks and %u files could not be read and are missing from the export.\n",
            transfer.damaged_blocks, transfer.damaged_files);
        return EXIT_FAILED;
    }
    return EXIT_FINE;
}

static int import_from(const struct store_flags *flags, const char *directory, int fd,
                       struct store_transfer *transfer, struct error *error)
{
    struct store *store;
    struct stream stream = {.fd = fd, .verb = "importing", .progress = progress_start()};
    int r = store_open_place(directory, false, &store, error);
    if (!r) {
        r = store_import(store, read_stream, &stream, flags->tenant, transfer, error);
        store_close(store);
    }
    progress_stop(&stream.progress);
    return r;
}

int store_import_command(const struct store_flags *flags, const char *directory, const char *file)
{
    bool pipe = !strcmp(file, "-");
    struct store_transfer transfer = {0};
    struct error error = {0};
    char outcome[ERROR_TEXT_BYTES + 96];
    if (flags->query || flags->from || flags->to)
        return options_wrong("store",
                             "import reads all of a file, or one --tenant; select with export.");
    int fd = pipe ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? error_set_errno(&error, -errno, "Failed to read %s", file)
                   : import_from(flags, directory, fd, &transfer, &error);
    if (!pipe && fd >= 0)
        close(fd);
    if (transfer.batches && !store_is_url(directory)) {
        snprintf(outcome, sizeof(outcome), "%" PRIu64 " windows%s%s", transfer.windows,
                 r < 0 ? "; " : "", r < 0 ? error.text : "");
        store_note(directory, flags->tenant, "import", input_name(file), outcome);
    }
    fprintf(stderr,
            "assay: %" PRIu64 " windows were stored; of %" PRIu64 " batches %" PRIu64
            " existed already and %" PRIu64 " refused.\n",
            transfer.windows, transfer.batches, transfer.repeated_batches,
            transfer.refused_batches);
    if (transfer.refused_batches)
        fprintf(stderr, "assay: reason for the first refusal: %s\n", transfer.refusal);
    if (r < 0)
        return fail(&error);
    return transfer.refused_batches ? EXIT_FAILED : EXIT_FINE;
}
