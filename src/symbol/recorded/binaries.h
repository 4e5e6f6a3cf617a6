/* SPDX-License-Identifier: Apache-2.0 */
/* Binaries that a recording names, on this machine: at their paths, or in perf's cache (~/.debug).
 * With a build ID only a file that has it is used. */
#pragma once

#include "elf/file.h"

#define RECORDED_PATH_BYTES 4352

struct recorded_binary {
    const char *path;
    const char *build_id; /* lower-case hexadecimal; "": not known */
    uint64_t inode;       /* has to match if there is no build ID; 0: unknown */
};

/* Opens it. `ret_path`, which may be NULL, is where it was found. */
bool recorded_open(const struct recorded_binary *binary, struct elf_file *ret_file,
                   char ret_path[RECORDED_PATH_BYTES]);

/* "HOME/.debug/.build-id/12/3456.../NAME"; false when there is no such place. */
bool recorded_cache_path(const char *build_id, const char *name,
                         char ret_path[RECORDED_PATH_BYTES]);

/* The build ID of the running kernel; false when it can't be read. */
bool recorded_running_kernel(char ret_text[41]);
