/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch as a file of the spool: a header with a checksum, then the body. A file is there whole
 * under its name or not at all, whenever the power goes; what is damaged later is noticed when it
 * is read. docs/formats/spool.md has the bytes. Private to the spool.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"

#define SPOOL_SUFFIX ".batch"
#define SPOOL_TEMPORARY ".part" /* of a file that is being written */
#define SPOOL_HEADER_BYTES 32
#define SPOOL_BODY_BYTES_MAX (64u << 20)

/* Returns 0 or a negative errno; the file is on disk then, and so is its name. */
int spool_file_write(const char *folder, const char *id, const void *body, size_t length,
                     int64_t time_ns);

/* Returns 0, -EBADMSG when the file isn't what was written, or another negative errno. */
int spool_file_read(const char *folder, const char *id, struct buffer *ret_body);

/* The check of spool_file_read(): finds the body in the bytes of a file. */
int spool_file_parse(const char *id, const char *data, size_t length, size_t *ret_body_length);

void spool_file_remove(const char *folder, const char *id);

/* Moves the file to the directory `aside` in `directory`, for inspection, and removes the oldest
 * files there while they are more than `limit_bytes` or `limit_count`. A file that can't be moved
 * is removed. */
void spool_file_set_aside(const char *folder, const char *id, const char *aside,
                          uint64_t limit_bytes, size_t limit_count);
