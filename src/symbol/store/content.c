// SPDX-License-Identifier: Apache-2.0
// Contents of the symbol store, each on disk once: CONTENTS/ab/cdef... for the SHA-256 abcdef...,
// and hard links to it from the builds of tenants. The file system counts the references; a content
// with no other link is unused. See store.h.

#include <dirent.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"
#include "symbol/store/internal.h"

#define PIECE_BYTES (256u << 10)
#define HASH_BYTES 32
#define HASH_TEXT (2 * HASH_BYTES + 1)

static int hash_file(int fd, char ret_hash[HASH_TEXT])
{
    _cleanup_free_ char *piece = memory_alloc(PIECE_BYTES);
    uint8_t digest[HASH_BYTES];
    gnutls_hash_hd_t state;
    ssize_t got;
    if (gnutls_hash_init(&state, GNUTLS_DIG_SHA256) < 0)
        return -EIO;
    int r = 0;
    for (off_t at = 0; !r && (got = pread(fd, piece, PIECE_BYTES, at)) > 0; at += got)
        r = gnutls_hash(state, piece, (size_t)got) < 0 ? -EIO : 0;
    if (!r && got < 0)
        r = -errno;
    gnutls_hash_deinit(state, digest);
    hex_encode(digest, HASH_BYTES, ret_hash);
    return r;
}

/* A content that was damaged on disk is not what its name says. */
static bool is_sound(const char *path, const char *hash)
{
    char found[HASH_TEXT];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool sound = hash_file(fd, found) == 0 && !strcmp(found, hash);
    close(fd);
    return sound;
}

/* Makes `temporary` a link to the content; a damaged one is replaced. False: the file system has no
 * links, or no more of this file, and `temporary` stays a file of its own. */
static bool share(const char *temporary, const char *content, const char *hash)
{
    _cleanup_buffer_ struct buffer other = {0};
    if (link(temporary, content) == 0)
        return true;
    if (errno != EEXIST)
        return false;
    buffer_printf(&other, "%s.link", temporary);
    if (!is_sound(content, hash))
        return link(temporary, buffer_text(&other)) == 0 && rename(other.data, content) == 0;
    return link(content, buffer_text(&other)) == 0 && rename(other.data, temporary) == 0;
}

int symbol_content_place(const struct symbol_store *store, int fd, const char *temporary,
                         const char *path, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    char hash[HASH_TEXT];
    int r = fsync(fd) < 0 ? -errno : hash_file(fd, hash);
    if (r < 0)
        return error_set_errno(error, r, "Failed to write %s", path);
    buffer_printf(&content, "%s/" SYMBOL_CONTENTS "/%.2s", store->directory, hash);
    mkdir(buffer_text(&content), 0700); /* where that fails, so does the link */
    buffer_printf(&content, "/%s", hash + 2);
    share(temporary, buffer_text(&content), hash);
    if (rename(temporary, path) < 0)
        return error_set_errno(error, -errno, "Failed to write %s", path);
    unlink(temporary); /* rename() leaves it where both were links to one file already */
    return 0;
}

static uint64_t sweep_folder(const char *path)
{
    DIR *listing = opendir(path);
    struct dirent *entry;
    struct stat status;
    uint64_t bytes = 0;
    while (listing && (entry = readdir(listing))) {
        if (fstatat(dirfd(listing), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode))
            continue;
        if (status.st_nlink > 1)
            bytes += (uint64_t)status.st_blocks * 512;
        else
            unlinkat(dirfd(listing), entry->d_name, 0);
    }
    if (listing)
        closedir(listing);
    return bytes;
}

uint64_t symbol_content_sweep(const struct symbol_store *store)
{
    _cleanup_buffer_ struct buffer path = {0};
    uint64_t bytes = 0;
    for (unsigned first = 0; first < 256; first++) {
        path.length = 0;
        buffer_printf(&path, "%s/" SYMBOL_CONTENTS "/%02x", store->directory, first);
        bytes += sweep_folder(buffer_text(&path));
    }
    return bytes;
}
