/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes compilers' names of their code apart: V8's, Java's and CPython's each contain the function
 * and its place in the source in their own way. Interpreted, quickly and well compiled versions of
 * a function get one name.
 */
#pragma once

#include "base/arena.h"
#include "profile/profile.h"

struct jit_name {
    const char *name;        /* for people */
    const char *system_name; /* as it came; NULL when it is the same */
    const char *file;        /* NULL when it doesn't say */
    uint32_t start_line;     /* 0 when it doesn't say */
    enum frame_kind kind;
};

/* A function of JavaScript, as V8 calls it. */
bool jit_name_is_v8(const char *text);

/* The parts live in the arena; the text must outlive them. */
struct jit_name jit_name_read(const char *text, struct arena *arena);
