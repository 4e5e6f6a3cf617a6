// SPDX-License-Identifier: Apache-2.0
// Hiding frames of interpreters: see frames.h.

#include "runtime/frames.h"

#include <stdbool.h>
#include <string.h>

/* Beyond the outermost evaluation, where the program was started: all that is left are the
 * interpreter and the C library, unless it is embedded in another program. */
static void hide_start(uint8_t *kinds, size_t from, size_t count)
{
    for (size_t i = from; i < count; i++)
        if (kinds[i] != RUNTIME_FRAME_START && kinds[i] != RUNTIME_FRAME_HIDDEN)
            return;
    memset(kinds + from, RUNTIME_FRAME_HIDDEN, count - from);
}

void runtime_frames_hide(uint8_t *kinds, size_t count)
{
    bool inside = false;
    size_t outermost = 0;
    for (size_t i = 0; i < count; i++) {
        inside |= kinds[i] == RUNTIME_FRAME_PROGRAM || kinds[i] == RUNTIME_FRAME_EVALUATE;
        if (kinds[i] == RUNTIME_FRAME_PROGRAM || kinds[i] == RUNTIME_FRAME_EVALUATE)
            outermost = i + 1;
        if (kinds[i] == RUNTIME_FRAME_EVALUATE || (inside && kinds[i] == RUNTIME_FRAME_INTERPRETER))
            kinds[i] = RUNTIME_FRAME_HIDDEN;
    }
    if (inside)
        hide_start(kinds, outermost, count);
}

enum runtime_frame runtime_frame_of_path(const char *path)
{
    static const struct {
        const char *begins;
        enum runtime_frame kind;
    } names[] = {
        {"python", RUNTIME_FRAME_INTERPRETER}, {"libpython", RUNTIME_FRAME_INTERPRETER},
        {"ruby", RUNTIME_FRAME_INTERPRETER},   {"libruby", RUNTIME_FRAME_INTERPRETER},
        {"php", RUNTIME_FRAME_INTERPRETER},    {"libphp", RUNTIME_FRAME_INTERPRETER},
        {"libc.so", RUNTIME_FRAME_START},      {"libc-2", RUNTIME_FRAME_START},
        {"libpthread", RUNTIME_FRAME_START},   {"ld-", RUNTIME_FRAME_START},
    };
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strncmp(base, names[i].begins, strlen(names[i].begins)))
            return names[i].kind;
    return RUNTIME_FRAME_OTHER;
}
