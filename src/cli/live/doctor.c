// SPDX-License-Identifier: Apache-2.0
// `assay doctor`: what this kernel and this user can do, and how to get what they can't.

#include <stdio.h>
#include <string.h>

#include <gnutls/crypto.h>

#include "base/text.h"
#include "capture/abilities.h"
#include "capture/bpf/object.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"

#define COLUMNS 80
#define STATE_COLUMNS 9
#define NAME_COLUMNS 16

static const char *colour_of(enum ability_state state)
{
    static const char *const colours[] = {
        [ABILITY_OK] = "\033[32m", [ABILITY_LIMITED] = "\033[33m", [ABILITY_NO] = "\033[31m"};
    return colours[state];
}

static void add_spaces(struct buffer *out, size_t count)
{
    while (count-- > 0)
        buffer_add_char(out, ' ');
}

/* Words from column `indent` on, the first line having been begun. Lines but the last end with
 * `join`: a backslash keeps a command one. */
static void add_wrapped(struct buffer *out, const char *text, size_t indent, const char *join)
{
    size_t column = indent, room = COLUMNS - strlen(join);
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " ");
        size_t columns = utf8_columns(text, length);
        if (!first && column + 1 + columns > room) {
            buffer_add_text(out, join);
            buffer_add_char(out, '\n');
            add_spaces(out, indent);
            column = indent;
        } else if (!first) {
            buffer_add_char(out, ' ');
            column++;
        }
        text_escape_terminal(out, text, length);
        column += columns;
        text += length + (text[length] == ' ');
    }
    buffer_add_char(out, '\n');
}

static void add_state(struct buffer *out, const char *word, enum ability_state state, bool colour)
{
    buffer_printf(out, "%s%s%s", colour ? colour_of(state) : "", word, colour ? "\033[0m" : "");
    add_spaces(out, STATE_COLUMNS - strlen(word));
}

static void write_text(const struct abilities *abilities, bool colour, struct buffer *out)
{
    for (size_t i = 0; i < ABILITY_COMMANDS; i++) {
        const struct ability_command *command = &abilities->commands[i];
        buffer_printf(out, "assay %-14s  ", command->command);
        add_state(out, command->works ? "yes" : "no", command->works ? ABILITY_OK : ABILITY_NO,
                  colour);
        add_wrapped(out, command->means, 22 + STATE_COLUMNS, "");
    }
    buffer_add_char(out, '\n');
    for (size_t i = 0; i < abilities->count; i++) {
        const struct ability *ability = &abilities->list[i];
        add_state(out, ability_state_name(ability->state), ability->state, colour);
        buffer_printf(out, "%-*s", NAME_COLUMNS, ability->name);
        add_wrapped(out, ability->found, STATE_COLUMNS + NAME_COLUMNS, "");
        add_spaces(out, STATE_COLUMNS);
        add_wrapped(out, ability->meaning, STATE_COLUMNS, "");
        if (ability->fix[0]) {
            buffer_add_text(out, "  fix: ");
            add_wrapped(out, ability->fix, 7, " \\");
        }
    }
}

static void add_member(struct buffer *out, const char *key, const char *text)
{
    buffer_printf(out, ",\"%s\":", key);
    text_escape_json(out, text, strlen(text));
}

/* Of the bytes that this program would load, so that they can be compared with the SBOM's. */
static void add_bpf_objects(struct buffer *out)
{
    for (size_t i = 0; i < bpf_embedded_count; i++) {
        const struct bpf_embedded *object = &bpf_embedded[i];
        unsigned char digest[32];
        char hex[2 * sizeof(digest) + 1] = "";
        if (!gnutls_hash_fast(GNUTLS_DIG_SHA256, object->bytes, *object->length, digest))
            for (size_t at = 0; at < sizeof(digest); at++)
                snprintf(hex + 2 * at, 3, "%02x", digest[at]);
        buffer_printf(out, "%s\n{\"bytes\":%zu", i ? "," : "", *object->length);
        add_member(out, "name", object->name);
        add_member(out, "sha256", hex);
        buffer_add_char(out, '}');
    }
}

static void write_json(const struct abilities *abilities, struct buffer *out)
{
    buffer_add_text(out, "{\"commands\":[");
    for (size_t i = 0; i < ABILITY_COMMANDS; i++) {
        const struct ability_command *command = &abilities->commands[i];
        buffer_printf(out, "%s\n{\"works\":%s", i ? "," : "", command->works ? "true" : "false");
        add_member(out, "command", command->command);
        add_member(out, "means", command->means);
        buffer_add_char(out, '}');
    }
    buffer_add_text(out, "],\n\"checks\":[");
    for (size_t i = 0; i < abilities->count; i++) {
        const struct ability *ability = &abilities->list[i];
        buffer_printf(out, "%s\n{\"state\":\"%s\"", i ? "," : "",
                      ability_state_name(ability->state));
        add_member(out, "name", ability->name);
        add_member(out, "found", ability->found);
        add_member(out, "meaning", ability->meaning);
        add_member(out, "fix", ability->fix);
        buffer_add_char(out, '}');
    }
    buffer_add_text(out, "],\n\"bpf_objects\":[");
    add_bpf_objects(out);
    buffer_add_text(out, "]}\n");
}

int command_doctor(int argc, char **argv)
{
    const char *format_name = NULL;
    bool json = false;
    const struct option own[] = {{"Output", .kind = OPTION_GROUP},
                                 {"format", 'f', OPTION_TEXT, "F", "text or json", &format_name},
                                 {"json", 'j', OPTION_FLAG, NULL, "--format json", &json},
                                 {0}};
    struct command_line line = {
        .command = "doctor",
        .arguments = "",
        .summary = "Tests what recordings need and reports what works on this machine for this "
                   "user,\nand how to enable the rest. It changes nothing.",
        .notes = "The exit code is 0 if commands can be recorded in some way, else 1.",
        .options = own,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    enum table_format format;
    if (!table_format_parse(format_name, &format) || format == TABLE_CSV)
        return options_wrong("doctor", "--format must be text or json, not \"%s\".", format_name);
    struct abilities abilities;
    _cleanup_buffer_ struct buffer out = {0};
    abilities_find(&abilities);
    if (json || format == TABLE_JSON)
        write_json(&abilities, &out);
    else
        write_text(&abilities, terminal_colour(), &out);
    print_buffer(&out);
    return abilities.commands[ABILITY_RECORD_COMMAND].works ? EXIT_FINE : EXIT_FAILED;
}
