// SPDX-License-Identifier: Apache-2.0
// Finding the binaries of a recording: see binaries.h.

#include "symbol/recorded/binaries.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/memory.h"
#include "elf/vdso.h"

#define NOTES_BYTES_MAX (1u << 20)

static bool same_build_id(struct elf_file *file, const char *expected)
{
    uint8_t id[ELF_BUILD_ID_MAX];
    char text[2 * ELF_BUILD_ID_MAX + 1];
    size_t length;
    if (!elf_build_id(file, id, &length))
        return false;
    hex_encode(id, length, text);
    return !strcmp(text, expected);
}

/* Paths of a recording may lead anywhere: only plain files are read. */
static bool open_file(const char *path, const struct recorded_binary *binary, bool check_inode,
                      struct elf_file *ret_file)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode) ||
        (check_inode && found.st_ino != binary->inode) || elf_open_fd(fd, ret_file, NULL) < 0) {
        close(fd);
        return false;
    }
    if (*binary->build_id && !same_build_id(ret_file, binary->build_id)) {
        elf_release(ret_file);
        return false;
    }
    return true;
}

bool recorded_cache_path(const char *build_id, const char *name, char ret_path[RECORDED_PATH_BYTES])
{
    const char *home = getenv("HOME");
    if (!home || strlen(build_id) < 3 || strspn(build_id, "0123456789abcdef") != strlen(build_id))
        return false;
    int length = snprintf(ret_path, RECORDED_PATH_BYTES, "%s/.debug/.build-id/%.2s/%s/%s", home,
                          build_id, build_id + 2, name);
    return length > 0 && length < RECORDED_PATH_BYTES;
}

static bool open_cached(const struct recorded_binary *binary, const char *name,
                        struct elf_file *ret_file, char ret_path[RECORDED_PATH_BYTES])
{
    return recorded_cache_path(binary->build_id, name, ret_path) &&
           open_file(ret_path, binary, false, ret_file);
}

bool recorded_open(const struct recorded_binary *binary, struct elf_file *ret_file,
                   char ret_path[RECORDED_PATH_BYTES])
{
    char own[RECORDED_PATH_BYTES];
    char *path = ret_path ? ret_path : own;
    bool check_inode = !*binary->build_id && binary->inode;
    if (strlen(binary->path) >= RECORDED_PATH_BYTES)
        return false;
    strcpy(path, binary->path);
    if (!strcmp(binary->path, VDSO_NAME)) {
        if (vdso_open(ret_file, NULL) == 0) {
            if (!*binary->build_id || same_build_id(ret_file, binary->build_id))
                return true;
            elf_release(ret_file);
        }
        return open_cached(binary, "vdso", ret_file, path);
    }
    return (binary->path[0] == '/' && open_file(binary->path, binary, check_inode, ret_file)) ||
           open_cached(binary, "elf", ret_file, path);
}

bool recorded_running_kernel(char ret_text[41])
{
    _cleanup_buffer_ struct buffer notes = {0};
    if (file_read("/sys/kernel/notes", NOTES_BYTES_MAX, &notes, NULL) < 0)
        return false;
    for (size_t at = 0; notes.length - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        memcpy(&note, notes.data + at, sizeof(note));
        at += sizeof(note);
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t content = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > notes.length - at || content > notes.length - at - name)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            !memcmp(notes.data + at, "GNU", 4) && note.n_descsz <= 20) {
            hex_encode(notes.data + at + name, note.n_descsz, ret_text);
            return true;
        }
        at += name + content;
    }
    return false;
}
