/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on stderr. Library code logs at debug only; what a user must know is returned as an
 * error or counted.
 */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Messages above this level are not printed; LOG_WARNING unless set. */
void log_set_level(enum log_level level);

/* Lines as objects instead: {"time":"2026-11-15T10:00:00.000Z","level":"error","message":"..."}.
 * Both settings are for the beginning, before there are threads. */
void log_set_json(bool json);
bool log_is_json(void);

/* One line, "assay: " before it, control characters escaped. */
void log_at(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For lines with more to say: the beginning of an object, `{"time":...,"level":...`, and one line
 * from what is in `line`, in one write. */
void log_begin_json(enum log_level level, struct buffer *line);
void log_line(struct buffer *line);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
