// SPDX-License-Identifier: Apache-2.0
// Readable names of C++ and Rust functions, by libiberty within our own limits: see demangle.h.

#include "profile/names/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>

struct output {
    struct buffer *buffer;
    size_t start;
    jmp_buf too_long;
};

/*
 * A short mangled name can stand for a text of any length, since each part may refer to earlier
 * ones. The library knows no way to stop it, so it is left from here; it holds nothing then but the
 * stack (and, in Rust names with letters beyond ASCII, a few bytes that are lost).
 */
static void add_piece(const char *text, size_t length, void *context)
{
    struct output *output = context;
    if (length > DEMANGLE_OUTPUT_MAX - (output->buffer->length - output->start))
        longjmp(output->too_long, 1);
    buffer_add(output->buffer, text, length);
}

static bool run(const char *name, bool rust, struct buffer *buffer)
{
    struct output output = {.buffer = buffer, .start = buffer->length};
    if (!setjmp(output.too_long)) {
        int done = rust ? rust_demangle_callback(name, DMGL_NO_OPTS, add_piece, &output)
                        : cplus_demangle_v3_callback(name, DMGL_GNU_V3, add_piece, &output);
        if (done && buffer->length > output.start &&
            !memchr(buffer->data + output.start, '\0', buffer->length - output.start))
            return true;
    }
    buffer->length = output.start;
    return false;
}

bool demangle(const char *name, struct buffer *ret_name)
{
    if (name[0] == '_' && name[1] == '_' && (name[2] == 'Z' || name[2] == 'R'))
        name++; /* macOS puts an underscore before all names */
    if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
        strnlen(name, DEMANGLE_INPUT_MAX + 1) > DEMANGLE_INPUT_MAX)
        return false;
    /* Rust's older names are C++ ones with a hash; the Rust side takes those only. */
    return run(name, true, ret_name) || (name[1] == 'Z' && run(name, false, ret_name));
}
