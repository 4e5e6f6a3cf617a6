// SPDX-License-Identifier: Apache-2.0
// Option tables: see options.h.

#include "cli/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"

int options_wrong(const char *command, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "assay %s: ", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nTry `assay %s --help`.\n", command);
    return EXIT_USAGE;
}

static void print_table(const struct option *options)
{
    for (const struct option *option = options; option && option->name; option++) {
        if (option->kind == OPTION_GROUP) {
            printf("\n%s:\n", option->name);
            continue;
        }
        char head[64];
        snprintf(head, sizeof(head), "%s%c%s--%s%s%s", option->letter ? "-" : " ",
                 option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->name,
                 option->argument ? " " : "", option->argument ? option->argument : "");
        printf("  %-26s  %s\n", head, option->help);
    }
}

static void print_help(const struct command_line *line)
{
    printf("Usage: assay %s [options] %s\n\n%s\n", line->command, line->arguments, line->summary);
    print_table(line->options);
    print_table(line->more_options);
    printf("\n  -h, --help                  show this help\n");
    if (line->notes)
        printf("\n%s\n", line->notes);
    printf("\nMan page: man assay-%s\n", line->command);
}

static const struct option *find_in(const struct option *options, const char *name, size_t length,
                                    char letter)
{
    for (const struct option *option = options; option && option->name; option++) {
        if (option->kind == OPTION_GROUP)
            continue;
        if (letter ? option->letter == letter
                   : strlen(option->name) == length && !memcmp(option->name, name, length))
            return option;
    }
    return NULL;
}

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
    size_t digits = strspn(text, "0123456789");
    static const char suffixes[] = "kmgt";
    uint64_t value;
    unsigned shift = 0;
    if (!text_to_u64(text, digits, &value))
        return false;
    const char *suffix = text + digits;
    if (*suffix) {
        const char *found = strchr(suffixes, tolower((unsigned char)*suffix));
        if (!found)
            return false;
        shift = 10 * (unsigned)(found - suffixes + 1);
        suffix++;
        if (!strcasecmp(suffix, "ib") || !strcasecmp(suffix, "b"))
            suffix = "";
    }
    if (*suffix || value > UINT64_MAX >> shift)
        return false;
    *ret_bytes = value << shift;
    return true;
}

static int assign(const struct command_line *line, const struct option *option, const char *value)
{
    bool valid = true;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)option->target = true;
        break;
    case OPTION_TEXT:
        *(const char **)option->target = value;
        break;
    case OPTION_LIST: {
        struct option_list *list = option->target;
        if (list->count == OPTION_LIST_MAX)
            return options_wrong(line->command, "--%s can be given at most %d times.", option->name,
                                 OPTION_LIST_MAX);
        list->values[list->count++] = value;
        break;
    }
    case OPTION_COUNT:
        valid = text_to_u64(value, strlen(value), option->target);
        break;
    case OPTION_SIZE:
        valid = parse_size(value, option->target);
        break;
    case OPTION_NUMBER:
        valid = text_to_double(value, option->target);
        break;
    case OPTION_GROUP:
        break;
    }
    if (valid)
        return -1;
    return options_wrong(line->command, "--%s requires %s, not \"%s\".", option->name,
                         option->kind == OPTION_SIZE ? "a size such as 512M or 4G" : "a number",
                         value);
}

/* The option that is most like a word; NULL when none is. */
static const char *meant_option(const struct command_line *line, const char *name, size_t length)
{
    const struct option *tables[] = {line->options, line->more_options};
    const char *best = NULL;
    uint32_t nearest = UINT32_MAX;
    for (size_t i = 0; i < ARRAY_LENGTH(tables); i++)
        for (const struct option *option = tables[i]; option && option->name; option++) {
            size_t own = strlen(option->name);
            uint32_t distance = option->kind == OPTION_GROUP
                                    ? UINT32_MAX
                                    : text_distance(name, length, option->name, own);
            /* "--dur" is short for "--duration". */
            if (option->kind != OPTION_GROUP && length >= 3 && length < own &&
                !memcmp(name, option->name, length))
                distance = 1;
            if (distance < nearest) {
                nearest = distance;
                best = option->name;
            }
        }
    return text_similar(nearest, length) ? best : NULL;
}

/* Handles argv[*at] as an option; moves *at past its value when it takes one. */
static int take_option(const struct command_line *line, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    bool is_long = word[1] == '-';
    const char *name = word + 1 + is_long;
    const char *equals = is_long ? strchr(name, '=') : NULL;
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    if ((is_long && length == 4 && !memcmp(name, "help", 4)) || (!is_long && !strcmp(name, "h"))) {
        print_help(line);
        return EXIT_FINE;
    }
    char letter = is_long ? 0 : *name;
    const struct option *option = find_in(line->options, name, length, letter);
    if (!option)
        option = find_in(line->more_options, name, length, letter);
    if (!option) {
        const char *meant = is_long ? meant_option(line, name, length) : NULL;
        return meant ? options_wrong(line->command, "unknown option %s; did you mean --%s?", word,
                                     meant)
                     : options_wrong(line->command, "unknown option %s.", word);
    }
    const char *value = equals ? equals + 1 : !is_long && name[1] ? name + 1 : NULL;
    if (option->kind == OPTION_FLAG) {
        if (value)
            return options_wrong(line->command, "%s takes no value.", word);
    } else if (!value) {
        if (*at + 1 >= argc)
            return options_wrong(line->command, "%s requires a value (%s).", word,
                                 option->argument);
        value = argv[++*at];
    }
    return assign(line, option, value);
}

int options_parse(struct command_line *line, int argc, char **argv)
{
    bool only_values = false;
    line->values = (const char **)argv;
    line->count = 0;
    for (int i = 1; i < argc; i++) {
        if (!only_values && !strcmp(argv[i], "--")) {
            only_values = true;
        } else if (!only_values && argv[i][0] == '-' && argv[i][1]) {
            int r = take_option(line, argc, argv, &i);
            if (r >= 0)
                return r;
        } else {
            line->values[line->count++] = argv[i];
        }
    }
    if (line->count < line->least)
        return options_wrong(line->command, "missing argument; usage: assay %s %s", line->command,
                             line->arguments);
    if (line->most >= 0 && line->count > line->most)
        return options_wrong(line->command, "unexpected argument \"%s\".",
                             line->values[line->most]);
    return -1;
}
