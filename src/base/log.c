// SPDX-License-Identifier: Apache-2.0
// Log lines: see log.h. One write per line, so that lines of several threads don't mix.

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

static enum log_level most = LOG_WARNING;

void log_set_level(enum log_level level)
{
    most = level;
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
    buffer_printf(&line, "assay: %s", marks[level]);
    text_escape_terminal(&line, text, strlen(text));
    buffer_add_char(&line, '\n');
    file_write_all(STDERR_FILENO, line.data, line.length);
}
