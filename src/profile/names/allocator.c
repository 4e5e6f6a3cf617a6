// SPDX-License-Identifier: Apache-2.0
// Names of functions that pass allocations on: see allocator.h.

#include "profile/names/allocator.h"

#include <string.h>

#include "base/memory.h"

static const char *const names[] = {
    "malloc",       "calloc",        "realloc",       "reallocarray",   "aligned_alloc",
    "memalign",     "valloc",        "pvalloc",       "posix_memalign", "strdup",
    "strndup",      "__libc_malloc", "__libc_calloc", "__libc_realloc", "_int_malloc",
    "_int_realloc", "mmap",          "mmap64",
};

static const char *const prefixes[] = {
    /* C++ */
    "operator new",
    "std::",
    "__gnu_cxx::",
    /* Rust; its std:: is above */
    "alloc::",
    "<alloc::",
    "core::",
    "<core::",
    "<std::",
    "hashbrown::",
    "<hashbrown::",
    "__rust_",
    "__rustc::",
    "__rdl_",
    /* Go, CPython, GLib */
    "runtime.",
    "_PyObject_",
    "PyObject_Malloc",
    "PyMem_",
    "_PyMem_",
    "g_malloc",
    "g_realloc",
};

bool name_is_allocator(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (length == strlen(names[i]) && memcmp(name, names[i], length) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
        size_t prefix = strlen(prefixes[i]);
        if (length >= prefix && memcmp(name, prefixes[i], prefix) == 0)
            return true;
    }
    /* Rust: a trait of its alloc library, whatever the type. Other traits are the program's own. */
    const char *as = length && name[0] == '<' ? memmem(name, length, " as alloc::", 11) : NULL;
    return as && !memchr(name, '(', (size_t)(as - name));
}
