/* SPDX-License-Identifier: Apache-2.0 */
/* A line on stderr that shows how far reading has come: only on a terminal, only after 2 s. */
#pragma once

struct progress;

struct progress *progress_start(void);
void progress_file(struct progress *progress, const char *path, int index, int count);
/* Wipes the line. Takes a pointer to NULL, and leaves one. */
void progress_stop(struct progress **progress);
#define _cleanup_progress_ __attribute__((cleanup(progress_stop)))
