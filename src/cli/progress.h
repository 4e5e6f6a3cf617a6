/* SPDX-License-Identifier: Apache-2.0 */
/* A line on stderr that shows how far reading has come: only on a terminal, only after 2 s. */
#pragma once

#include <stddef.h>

struct progress;

struct progress *progress_start(void);
void progress_file(struct progress *progress, const char *path, size_t index, size_t count);
/* Shows a text of the caller's instead, from now on. Takes NULL. */
void progress_say(struct progress *progress, const char *text);
/* Wipes the line. Takes a pointer to NULL, and leaves one. */
void progress_stop(struct progress **progress);
