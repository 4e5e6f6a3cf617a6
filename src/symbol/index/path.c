// SPDX-License-Identifier: Apache-2.0
// Finding what belongs to a binary on this machine, for its symbol index: see index_build.h.

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "elf/file.h"
#include "profile/naming.h"
#include "symbol/debugfile.h"
#include "symbol/index/build.h"

static int open_for_reading(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int __attribute__((format(printf, 1, 2))) open_formatted(const char *format, ...)
{
    char path[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, sizeof(path), format, arguments);
    va_end(arguments);
    return length < 0 || length >= (int)sizeof(path) ? -1 : open_for_reading(path);
}

/* Where it was made, or else beside the binary. */
static int find_split(void *context, const char *folder, const char *name)
{
    const char *path = context, *slash = strrchr(path, '/');
    int fd = name[0] == '/' || !folder[0] ? open_for_reading(name)
                                          : open_formatted("%s/%s", folder, name);
    if (fd >= 0)
        return fd;
    int beside = slash ? (int)(slash - path) : 1;
    fd = open_formatted("%.*s/%s", beside, slash ? path : ".", path_base(name));
    return fd >= 0 || name[0] == '/' ? fd
                                     : open_formatted("%.*s/%s", beside, slash ? path : ".", name);
}

/* A descriptor of a file that was found, in place of the file. */
static int take_descriptor(struct elf_file *file)
{
    int fd = file->fd < 0 ? -1 : fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    elf_release(file);
    *file = (struct elf_file){.fd = -1};
    return fd;
}

/* Of any machine. */
static int open_binary(const char *path, struct elf_file *ret_file, struct error *error)
{
    int fd = open_for_reading(path);
    if (fd < 0)
        return error_set_errno(error, -errno, "Failed to open the file");
    int r = elf_open_foreign_fd(fd, ret_file, error);
    if (r < 0)
        close(fd);
    return r;
}

static bool has_section(struct elf_file *file, const char *name)
{
    struct elf_section section;
    return elf_find_section(file, name, &section) && section.type != SHT_NOBITS;
}

static bool has_debug_info(struct elf_file *file)
{
    return file->fd >= 0 && (has_section(file, ".debug_info") || has_section(file, ".zdebug_info"));
}

int symbol_index_find(const char *path, const char *debug, struct symbol_index_found *ret_found,
                      struct error *error)
{
    _cleanup_elf_ struct elf_file file = {.fd = -1}, other = {.fd = -1}, shared = {.fd = -1};
    struct symbol_index_input *input = &ret_found->input;
    *ret_found = (struct symbol_index_found){.input = {.file = -1,
                                                       .debug = -1,
                                                       .shared = -1,
                                                       .package = -1,
                                                       .find_split = find_split,
                                                       .context = (void *)(uintptr_t)path}};
    int r = open_binary(path, &file, error);
    if (r < 0)
        return r;
    if (debug) {
        r = open_binary(debug, &other, error);
        if (r < 0)
            return error_prefix(error, "%s", debug);
    } else if (!has_debug_info(&file)) {
        debug_file_open(&file, path, &other);
    }
    build_id_text(&file, ret_found->build_id);
    ret_found->has_debug_info = has_debug_info(&file) || has_debug_info(&other);
    if (debug_file_open_alternate(other.fd >= 0 ? &other : &file, path, &shared) == 0)
        input->shared = take_descriptor(&shared);
    if (other.fd >= 0)
        input->debug = take_descriptor(&other);
    input->file = take_descriptor(&file);
    input->package = open_formatted("%s.dwp", path);
    if (input->package < 0 && debug)
        input->package = open_formatted("%s.dwp", debug);
    return 0;
}

void symbol_index_close_input(struct symbol_index_input *input)
{
    int *files[] = {&input->file, &input->debug, &input->shared, &input->package};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        if (*files[i] >= 0)
            close(*files[i]);
        *files[i] = -1;
    }
}

int symbol_index_build_path(const char *path, const char *debug, struct buffer *ret_index,
                            struct error *error)
{
    struct symbol_index_found found;
    int r = symbol_index_find(path, debug, &found, error);
    if (r >= 0)
        r = symbol_index_build(&found.input, ret_index, error);
    symbol_index_close_input(&found.input);
    return r < 0 ? error_prefix(error, "%s", path) : 0;
}
