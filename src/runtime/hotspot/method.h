/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A method of a class in another process: class, name, file and lines. A class may be unloaded, and
 * its memory used for something else, while it is read: what was read counts only if all of it fits
 * together, before and after.
 */
#pragma once

#include "base/arena.h"
#include "runtime/hotspot/attach.h"

#define HOTSPOT_NAME_MAX 512 /* bytes of a class's or a method's name; longer ones are cut */
#define HOTSPOT_LINES_MAX 4096
#define HOTSPOT_LINE_TABLE_MAX (64u << 10)

/* From `index` on, bytecodes are of this line. */
struct hotspot_line {
    uint32_t index;
    uint32_t line;
};

struct hotspot_method {
    const char *name; /* "java.lang.String.hashCode"; in the arena, as the rest */
    const char *file; /* "String.java"; "": not known */
    const struct hotspot_line *lines;
    uint32_t line_count;
};

/* False when there is no method. */
bool hotspot_method_read(const struct hotspot_process *machine, const struct runtime_memory *memory,
                         uint64_t address, struct arena *arena, struct hotspot_method *ret_method);

/* The line of a bytecode, or 0. */
uint32_t hotspot_method_line(const struct hotspot_method *method, uint32_t index);

/* The lines of a compressed table, in the order of their bytecodes; at most HOTSPOT_LINES_MAX. */
size_t hotspot_lines_decode(const uint8_t *table, size_t length, bool new_numbers,
                            struct hotspot_line *ret_lines);

/* A number of HotSpot's compressed streams. Newer ones (from 20 on) have no zero bytes. False at
 * the end. */
bool hotspot_number_read(const uint8_t *bytes, size_t length, size_t *at, bool new_numbers,
                         uint32_t *ret_number);
