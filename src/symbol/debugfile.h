/* SPDX-License-Identifier: Apache-2.0 */
/* The separate file with the symbols of a stripped one. */
#pragma once

#include "elf/file.h"

#define DEBUG_FILE_BYTES_MAX (4ull << 30) /* of a file whose checksum must be computed */

/*
 * By build ID in /usr/lib/debug/.build-id, else by the file's debug link: beside it, in .debug/ and
 * under /usr/lib/debug. `path` is where the file was opened; with /proc/PID/root/... the places
 * are looked for in that root too, with /proc/PID/fd/N where the descriptor's file is. Only a file
 * with the same build ID, or of the right checksum and with no other build ID, is taken. Gives 0 or
 * -ENOENT.
 */
int debug_file_open(struct elf_file *file, const char *path, struct elf_file *ret_debug);

/*
 * The file in which a debug file has what it shares with others, where dwz made it: by the build ID
 * that the debug file wants, or by the name that it gives, as seen from its own directory. Gives 0
 * or -ENOENT. `path` is the program's, for its root.
 */
int debug_file_open_alternate(struct elf_file *debug, const char *path,
                              struct elf_file *ret_alternate);

/* A file's build ID in lower-case hexadecimal; empty when it has none. */
#define BUILD_ID_TEXT_BYTES (2 * ELF_BUILD_ID_MAX + 1)
void build_id_text(struct elf_file *file, char ret_text[BUILD_ID_TEXT_BYTES]);

/* The checksum in a debug link: that of zlib. Starts with 0. */
uint32_t debug_file_checksum(uint32_t checksum, const void *bytes, size_t length);
