/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options from a table: parsing, --help and the errors come from the same rows, so
 * that help cannot lie.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* struct option_list: may be given several times */
    OPTION_COUNT,  /* uint64_t */
    OPTION_SIZE,   /* uint64_t: bytes, with K, M, G suffixes */
    OPTION_NUMBER, /* double */
    OPTION_GROUP,  /* no option: a heading in --help; `name` is its text */
};

#define OPTION_LIST_MAX 64
struct option_list {
    const char *values[OPTION_LIST_MAX];
    size_t count;
};

struct option {
    const char *name; /* long name without dashes; NULL ends a table */
    char letter;      /* short name or 0 */
    enum option_kind kind;
    const char *argument; /* what to call it in --help; NULL for flags */
    const char *help;     /* one line */
    void *target;
};

struct command_line {
    const char *command;   /* "report" */
    const char *arguments; /* "FILE..." */
    const char *summary;   /* one sentence */
    const char *notes;     /* more lines for --help, or NULL */
    const struct option *options;
    const struct option *more_options; /* a second table, or NULL */
    int least, most;                   /* positional arguments; most -1: any number */

    const char **values; /* out: the positional arguments, at most argc */
    int count;
};

enum {
    EXIT_FINE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
};

/* Returns -1 to go on, or an exit code: EXIT_FINE after --help, EXIT_USAGE after a mistake (which
 * has been explained on stderr). `values` points into argv, which is reordered. */
int options_parse(struct command_line *line, int argc, char **argv);

/* "assay report: message" and a pointer to --help on stderr; returns EXIT_USAGE. */
int options_wrong(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
