/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process's code that is in no file: what it is called and where it is, or was. Compilers reuse
 * the memory of code that they drop, so stretches overlap: what was added last has an address,
 * unless somebody asks for an earlier time. Used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/idtable.h"

/* Of one process. A big application has a hundred thousand functions. */
#define JIT_CODES_MAX (1u << 20)
#define JIT_LINES_MAX (4u << 20)
#define JIT_TEXT_BYTES_MAX (64u << 20) /* of distinct names */
#define JIT_NAME_MAX 16384             /* a longer one is left out */
#define JIT_OVERLAPS_MAX 4096          /* pieces of code that are looked at for one earlier time */

#define JIT_TEXT_NONE UINT32_MAX

struct jit_code {
    uint64_t start, end;
    uint64_t time_ns;  /* since when it is there; 0 when nobody said */
    uint64_t compiled; /* where it was when its lines were written: code may be moved */
    uint32_t name;     /* text number */
    uint32_t line_start, line_count;
};

/* From an address on, code is of this line. */
struct jit_line {
    uint64_t address;
    uint32_t line;
    uint32_t file; /* text number */
};

/* From `start` on, up to the next one's start; JIT_TEXT_NONE for no code. */
struct jit_stretch {
    uint64_t start;
    uint32_t code;
};

/* Addresses that somebody wants to have named. */
#define JIT_WANTED_MAX 8192
struct jit_wanted {
    uint64_t *list; /* in order */
    size_t count, capacity;
};

void jit_wanted_release(struct jit_wanted *wanted);
/* False when it was there before. Beyond the limit, all others are forgotten. */
bool jit_wanted_add(struct jit_wanted *wanted, uint64_t address);

struct jit_codes {
    struct jit_code *list; /* in the order in which they came */
    size_t count, capacity;
    struct jit_line *lines;
    size_t line_count, line_capacity;
    const char **texts;
    size_t text_count, text_capacity;
    struct id_table text_index;
    struct arena arena;
    size_t text_bytes;

    const struct jit_wanted *wanted; /* NULL: all; else code without such an address is left out */
    size_t bytes_max;                /* that it may take; 0: only what the limits above say */
    uint64_t seed;                   /* of hashes, so that nobody can write texts that collide */
    bool has_times;                  /* code that was overwritten is still asked for */
    bool full;
    uint64_t refused; /* pieces of code, names and lines beyond the limits */

    /* Made when something is looked up after a change. */
    size_t ordered; /* of `count` */
    struct jit_stretch *stretches;
    size_t stretch_count;
    uint32_t *by_start; /* with times only: numbers of `list` */
    uint64_t *reach;    /* the furthest end of these and all before */
};

void jit_codes_init(struct jit_codes *codes, bool has_times);
void jit_codes_release(struct jit_codes *codes);

/* Whether code at [start, end) is to be added at all. */
bool jit_codes_want(const struct jit_codes *codes, uint64_t start, uint64_t end);

/* The number of a text, which is added if it is new; JIT_TEXT_NONE beyond the limits. */
uint32_t jit_codes_text(struct jit_codes *codes, const char *text, size_t length);

/* Its number, good until the next lookup; -1 when there is no room, or no such code can be. */
int64_t jit_codes_add(struct jit_codes *codes, const struct jit_code *code);
bool jit_codes_add_line(struct jit_codes *codes, const struct jit_line *line);

/* The code at an address at a time, or since: the one that was added last before, or else the first
 * one after. With 0 the one that was added last of all. NULL when there was none. */
const struct jit_code *jit_codes_find(struct jit_codes *codes, uint64_t address, uint64_t time_ns);
/* The line of an address in that code; NULL when it is not known. */
const struct jit_line *jit_codes_line(const struct jit_codes *codes, const struct jit_code *code,
                                      uint64_t address);

size_t jit_codes_bytes(const struct jit_codes *codes);
