/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: reading whole small ones, and writing so that a crash, a full disk or Ctrl-C never leaves
 * half a file under the final name.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

/* Reads at most `limit_bytes`; more is an error (-E2BIG). */
int file_read(const char *path, size_t limit_bytes, struct buffer *ret_content,
              struct error *error);

/* Writes to a temporary file in the same directory, fsyncs it, renames it over `path` and fsyncs
 * the directory. `-` writes to standard output. What is no regular file (a pipe, /dev/null) is
 * written straight. */
int file_write_atomic(const char *path, const void *data, size_t length, struct error *error);

/* Whether file_write_atomic could write there now: found out before the work that fills it. */
int file_can_write(const char *path, struct error *error);

/* Makes the directory when it is missing, and locks it by a file "lock" in it until `ret_fd` is
 * closed. -EBUSY: another process holds the lock. */
int file_take_directory(const char *path, int *ret_fd, struct error *error);

/* A descriptor to read a regular file by, from one of it that was opened with O_PATH, which is
 * closed. Of whatever else somebody has put under a name, nothing is opened: to open a device can
 * do something. -EINVAL: not a regular file. */
int file_open_regular(int handle);

/* All of it, in the face of short writes and signals. */
int file_write_all(int fd, const void *data, size_t length);
