// SPDX-License-Identifier: Apache-2.0
// Log lines: see log.h. One write per line, so that lines of several threads don't mix.

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

static enum log_level most = LOG_WARNING;
static bool as_json;

void log_set_level(enum log_level level)
{
    most = level;
}

void log_set_json(bool json)
{
    as_json = json;
}

bool log_is_json(void)
{
    return as_json;
}

void log_begin_json(enum log_level level, struct buffer *line)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    struct timespec now;
    struct tm date;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &date);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &date);
    buffer_printf(line, "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\"", text, now.tv_nsec / 1000000,
                  names[level]);
}

void log_line(struct buffer *line)
{
    buffer_add_char(line, '\n');
    file_write_all(STDERR_FILENO, line->data, line->length);
}

void log_at(enum log_level level, const char *format, ...)
{
    static const char *const marks[] = {"", "warning: ", "", "debug: "};
    if (level > most)
        return;
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    _cleanup_buffer_ struct buffer line = {0};
    if (as_json) {
        log_begin_json(level, &line);
        buffer_add_text(&line, ",\"message\":");
        text_escape_json(&line, text, strlen(text));
        buffer_add_char(&line, '}');
    } else {
        buffer_printf(&line, "assay: %s", marks[level]);
        text_escape_terminal(&line, text, strlen(text));
    }
    log_line(&line);
}
