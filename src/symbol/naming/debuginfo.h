/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug information of a file about addresses: functions, what is inlined in them, files and
 * lines. Confined children (index_build.h) read it, each for all wanted addresses of one file. If a
 * file's child fails, the file counts as one without debug information; its symbols still work.
 */
#pragma once

#include "base/idtable.h"
#include "elf/file.h"
#include "symbol/index/index.h"

#define DEBUG_INFO_WANTED_MAX (16u << 20) /* addresses of one file */
#define DEBUG_INFO_TOTAL_MS 120000        /* for all files of one call; none is started later */

struct debug_info {
    const char *path; /* where the file can be opened; the owner's */
    const char *build_id;
    uint64_t *wanted; /* addresses in the file's own terms; sorted and unique while they are read */
    size_t wanted_count, wanted_capacity;
    struct debug_answer {
        struct buffer bytes;
        struct symbol_index index; /* of the units of what was wanted then */
    } * answers;
    size_t answer_count, answer_capacity;
    struct debug_asked {
        uint64_t address;
        uint32_t answer;
    } * asked;
    size_t asked_count, asked_capacity;
    struct id_table asked_index; /* by address */
    bool over;                   /* missing, or can't be read */
};

struct debug_info_stats {
    uint64_t files, failed; /* that were read, and that could not be */
    uint64_t late;          /* of the failed: there was no time left */
    uint64_t bytes;         /* of all names */
};

void debug_info_release(struct debug_info *info);
void debug_info_want(struct debug_info *info, uint64_t address);

/* Asked now and then, with the number of files that are done; false: the rest is left unread. */
typedef bool debug_info_watch_fn(void *context, size_t done, size_t count);

/* Reads what is wanted of all of them, and adds to the stats. `watch` may be NULL. */
void debug_info_read(struct debug_info *const infos[], size_t count, debug_info_watch_fn *watch,
                     void *watch_context, struct debug_info_stats *stats);

/* As many as there are; 0 when nothing is known. The name of a single one may be NULL. Strings live
 * as long as the information. */
size_t debug_info_frames(const struct debug_info *info, uint64_t address,
                         struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX]);
