// SPDX-License-Identifier: Apache-2.0
// Builds a symbol index in a confined child, and checks the result: see index_build.h.

#include "symbol/index/build.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/cursor.h"
#include "elf/file.h"
#include "symbol/debugfile.h"
#include "symbol/index/child.h"
#include "symbol/index/splits.h"

/* ---- what a child is asked, and says ---- */

static void fill_job(const struct confined_program *program, const struct symbol_index_input *input,
                     int split, const uint64_t *wanted, size_t count, struct confined_job *job)
{
    const struct index_child_request request = {.has_splits = split >= 0};
    const int files[CONFINED_FILES_MAX] = {
        [INDEX_CHILD_FILE] = input->file,
        [INDEX_CHILD_DEBUG] = input->debug,
        [INDEX_CHILD_SHARED] = input->shared,
        [INDEX_CHILD_SPLIT] = split >= 0 ? split : input->package,
    };
    job->program = program;
    for (int i = 0; i < CONFINED_FILES_MAX; i++)
        job->files[i] = files[i] < 0 ? -1 : fcntl(files[i], F_DUPFD_CLOEXEC, 0);
    buffer_add(&job->request, &request, sizeof(request));
    if (count)
        buffer_add(&job->request, wanted, count * sizeof(*wanted));
}

static int refuse(const struct confined_job *job, struct error *error)
{
    const struct confined_program *program = job->program;
    switch (job->end) {
    case CONFINED_DIED:
        if (WIFSIGNALED(job->status) && WTERMSIG(job->status) == SIGKILL)
            return error_set(
                error, -E2BIG,
                "The process that reads the file's debug information was killed: it used more than "
                "%u s of CPU time, or this machine is out of memory. The file is rejected.",
                program->cpu_seconds);
        return error_set(error, -EBADMSG,
                         "The file's debug information crashed its reader (signal %d): it is "
                         "damaged, or exceeds the memory limit. The file is rejected.",
                         WIFSIGNALED(job->status) ? WTERMSIG(job->status) : 0);
    case CONFINED_LATE:
        return error_set(error, -E2BIG,
                         "Reading the file's debug information took more than %u s and was "
                         "stopped. The file is rejected.",
                         program->deadline_ms / 1000);
    case CONFINED_TOO_LONG:
        return error_set(error, -E2BIG,
                         "The file's names exceed the limit of %zu MiB. The file is rejected.",
                         program->output_max_bytes >> 20);
    default:
        return error_set(error, -EIO,
                         "Failed to start the process that reads the file's debug information, "
                         "possibly for lack of memory.");
    }
}

static int take_result(const struct confined_job *job, struct buffer *ret_result,
                       struct error *error)
{
    struct cursor cursor = cursor_of(job->output.data, job->output.length);
    if (job->end != CONFINED_FINE)
        return refuse(job, error);
    char kind = (char)cursor_u8(&cursor);
    if (kind == INDEX_CHILD_RESULT) {
        buffer_add(ret_result, cursor.at, cursor_left(&cursor));
        return 0;
    }
    int32_t code = (int32_t)cursor_u32(&cursor);
    return error_set(error, kind == INDEX_CHILD_ERROR && code < 0 ? code : -EBADMSG, "%.*s",
                     (int)MIN(cursor_left(&cursor), (size_t)ERROR_TEXT_BYTES),
                     (const char *)cursor.at);
}

/* ---- one child ---- */

struct child {
    const struct confined_program *program;
    const struct symbol_index_input *input;
    int split;       /* instead of a package; -1 when there is one, or nothing */
    bool is_started; /* there is only one */
    struct buffer *result;
    struct error *error;
    int code;
};

static bool next_job(void *context, struct confined_job *job)
{
    struct child *child = context;
    if (child->is_started)
        return false;
    child->is_started = true;
    fill_job(child->program, child->input, child->split, NULL, 0, job);
    return true;
}

static void job_done(void *context, struct confined_job *job)
{
    struct child *child = context;
    child->code = take_result(job, child->result, child->error);
}

static int run_child(const struct confined_program *program, const struct symbol_index_input *input,
                     int split, struct buffer *result, struct error *error)
{
    struct child child = {.program = program,
                          .input = input,
                          .split = split,
                          .result = result,
                          .error = error,
                          .code = -EIO};
    struct confined_jobs jobs = {.next = next_job, .done = job_done, .context = &child};
    confined_run(&jobs);
    return child.code;
}

/* ---- split units ---- */

/* Only with addresses of their own can units be split; nearly no other program is. */
static bool may_be_split(int fd)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct elf_section section;
    int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return false;
    if (elf_open_foreign_fd(own, &file, NULL) < 0) {
        close(own);
        return false;
    }
    return elf_find_section(&file, ".debug_addr", &section);
}

struct split_pack {
    int fd;
    struct index_split *list;
    size_t count, capacity;
    uint64_t bytes;
};

/* Copies a file behind what is there. */
static int pack_file(struct split_pack *pack, int fd, uint64_t id, struct error *error)
{
    struct stat found;
    if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode) || found.st_size <= 0)
        return 0;
    if (pack->count == SYMBOL_INDEX_SPLIT_MAX ||
        (uint64_t)found.st_size > SYMBOL_INDEX_SPLIT_BYTES_MAX - pack->bytes)
        return error_set(error, -E2BIG,
                         "The program is split into more than %d files, or %llu GiB. Build a "
                         "package (.dwp) of them.",
                         SYMBOL_INDEX_SPLIT_MAX,
                         (unsigned long long)(SYMBOL_INDEX_SPLIT_BYTES_MAX >> 30));
    uint64_t offset = pack->bytes;
    char piece[65536];
    ssize_t got;
    while ((got = read(fd, piece, sizeof(piece))) > 0) {
        if (file_write_all(pack->fd, piece, (size_t)got) < 0)
            return error_set(error, -EIO,
                             "Failed to copy the split units, possibly for lack of memory.");
        pack->bytes += (uint64_t)got;
        if (pack->bytes > SYMBOL_INDEX_SPLIT_BYTES_MAX)
            break;
    }
    array_reserve(pack->list, pack->capacity, pack->count + 1);
    pack->list[pack->count++] = (struct index_split){id, offset, pack->bytes - offset};
    /* The next one is aligned as sections want to be. */
    static const char padding[16];
    size_t missing = -pack->bytes % sizeof(padding);
    pack->bytes += missing;
    return file_write_all(pack->fd, padding, missing);
}

static size_t count_listed(const struct buffer *list)
{
    size_t count = 0;
    for (struct cursor at = cursor_of(list->data, list->length); cursor_left(&at) > 10; count++) {
        cursor_u64(&at);
        at.at += strnlen((const char *)at.at, cursor_left(&at));
        cursor_u8(&at);
        at.at += strnlen((const char *)at.at, cursor_left(&at));
        cursor_u8(&at);
    }
    return count;
}

/* The directory comes first, but is known last: offsets count from behind the room for it. */
static int pack_files(const struct symbol_index_input *input, const struct buffer *list,
                      size_t count, struct split_pack *pack, struct error *error)
{
    struct cursor cursor = cursor_of(list->data, list->length);
    int r = 0;
    count = MIN(count, (size_t)SYMBOL_INDEX_SPLIT_MAX);
    pack->bytes = 16 + count * sizeof(struct index_split);
    pack->bytes += -pack->bytes % 16;
    if (ftruncate(pack->fd, (off_t)pack->bytes) < 0 || lseek(pack->fd, 0, SEEK_END) < 0)
        return error_set(error, -EIO,
                         "Failed to copy the split units, possibly for lack of memory.");
    while (r >= 0 && cursor_left(&cursor) > 10 && pack->count < count) {
        uint64_t id = cursor_u64(&cursor);
        const char *folder = (const char *)cursor.at;
        cursor_take(&cursor, strnlen(folder, cursor_left(&cursor)) + 1);
        const char *name = (const char *)cursor.at;
        cursor_take(&cursor, strnlen(name, cursor_left(&cursor)) + 1);
        if (cursor.bad)
            return error_set(error, -EBADMSG, "The list of split units is malformed.");
        int fd = input->find_split(input->context, folder, name);
        if (fd < 0)
            continue;
        r = pack_file(pack, fd, id, error);
        close(fd);
    }
    uint64_t packed = pack->count;
    if (r >= 0 && (pwrite(pack->fd, &packed, sizeof(packed), 0) < 0 ||
                   (packed && pwrite(pack->fd, pack->list, packed * sizeof(*pack->list), 8) < 0)))
        r = error_set(error, -EIO, "Failed to copy the split units, possibly for lack of memory.");
    return r;
}

int symbol_index_collect_splits(const struct symbol_index_input *input, int *ret_fd,
                                size_t *ret_units, struct error *error)
{
    _cleanup_buffer_ struct buffer list = {0};
    *ret_fd = -1;
    *ret_units = 0;
    if (input->package >= 0 || !input->find_split ||
        !(may_be_split(input->file) || may_be_split(input->debug)))
        return 0;
    int r = run_child(&symbol_index_split_program, input, -1, &list, error);
    if (r < 0 || !list.length)
        return r;
    struct split_pack pack = {.fd = memfd_create("splits", MFD_CLOEXEC)};
    if (pack.fd < 0)
        return error_set_errno(error, -errno, "Not enough space for the split units");
    *ret_units = count_listed(&list);
    r = pack_files(input, &list, *ret_units, &pack, error);
    free(pack.list);
    if (r < 0 || !pack.count)
        close(pack.fd);
    else
        *ret_fd = pack.fd;
    return r;
}

/* ---- the whole ---- */

static int open_checked(const struct buffer *bytes, struct symbol_index *ret_index,
                        struct error *error)
{
    int r = symbol_index_open_memory(bytes->data, bytes->length, ret_index, error);
    return r < 0 ? r : symbol_index_check(ret_index, error);
}

int symbol_index_build(const struct symbol_index_input *input, struct buffer *ret_index,
                       struct error *error)
{
    _cleanup_buffer_ struct buffer result = {0};
    struct symbol_index index;
    int split;
    size_t units;
    int r = symbol_index_collect_splits(input, &split, &units, error);
    if (r >= 0)
        r = run_child(input->program ? input->program : &symbol_index_program, input, split,
                      &result, error);
    if (split >= 0)
        close(split);
    if (r >= 0)
        r = open_checked(&result, &index, error);
    if (r < 0)
        return r;
    buffer_release(ret_index);
    *ret_index = result;
    result = (struct buffer){0};
    return 0;
}

int symbol_names_ask(const struct symbol_index_input *input, const uint64_t *wanted, size_t count,
                     struct confined_job *job, struct error *error)
{
    int split;
    size_t units;
    int r = symbol_index_collect_splits(input, &split, &units, error);
    if (r < 0)
        return r;
    fill_job(&symbol_names_program, input, split, wanted, count, job);
    if (split >= 0)
        close(split);
    return 0;
}

int symbol_names_take(struct confined_job *job, struct buffer *ret_index,
                      struct symbol_index *ret_opened, struct error *error)
{
    int r = take_result(job, ret_index, error);
    if (r >= 0)
        r = open_checked(ret_index, ret_opened, error);
    if (r < 0)
        buffer_release(ret_index);
    return r;
}
