// SPDX-License-Identifier: Apache-2.0
// `assay doctor`: what this kernel and this user can do, and how to get what they can't.

#include <stdio.h>
#include <string.h>

#include <gnutls/crypto.h>

#include "base/text.h"
#include "capture/abilities.h"
#include "capture/bpf/object.h"
#include "capture/runtimes.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "io/json_write.h"
#include "profile/naming.h"

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

static void write_runtimes(const struct found_runtimes *runtimes, bool colour, struct buffer *out)
{
    _cleanup_buffer_ struct buffer name = {0};
    buffer_printf(out, "\nruntimes of %u processes:%s\n", runtimes->processes,
                  runtimes->count ? "" : " none");
    for (size_t i = 0; i < runtimes->count; i++) {
        const struct found_runtime *found = &runtimes->list[i];
        name.length = 0;
        buffer_printf(&name, "%s %s", found->name, found->version);
        buffer_add_text(out, "  ");
        add_state(out, ability_state_name(found->state), found->state, colour);
        text_escape_terminal(out, name.data, name.length);
        add_spaces(out, name.length < NAME_COLUMNS ? NAME_COLUMNS - name.length : 1);
        const char *binary = path_base(found->binary);
        buffer_printf(out, "%u process%s, such as %u: ", found->processes,
                      found->processes == 1 ? "" : "es", found->pid);
        text_escape_terminal(out, binary, strlen(binary));
        buffer_add_char(out, '\n');
        add_spaces(out, STATE_COLUMNS + 2);
        add_wrapped(out, found->meaning, STATE_COLUMNS + 2, "");
    }
    if (runtimes->unreadable)
        buffer_printf(out, "  processes of other users, which cannot be read: %u\n",
                      runtimes->unreadable);
    if (runtimes->refused)
        buffer_printf(out, "  processes with a runtime that are not listed: %u\n",
                      runtimes->refused);
}

static void write_text(const struct abilities *abilities, const struct found_runtimes *runtimes,
                       bool colour, struct buffer *out)
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
    write_runtimes(runtimes, colour, out);
}

/* Of the bytes that this program would load, so that they can be compared with the SBOM's. */
static void add_bpf_objects(struct json_writer *json)
{
    for (size_t i = 0; i < bpf_embedded_count; i++) {
        const struct bpf_embedded *object = &bpf_embedded[i];
        unsigned char digest[32];
        char hex[2 * sizeof(digest) + 1] = "";
        if (!gnutls_hash_fast(GNUTLS_DIG_SHA256, object->bytes, *object->length, digest))
            for (size_t at = 0; at < sizeof(digest); at++)
                snprintf(hex + 2 * at, 3, "%02x", digest[at]);
        json_write_line(json);
        json_write_object(json);
        json_member_unsigned(json, "bytes", *object->length);
        json_member_text(json, "name", object->name);
        json_member_text(json, "sha256", hex);
        json_write_object_end(json);
    }
}

static void add_runtimes(struct json_writer *json, const struct found_runtimes *runtimes)
{
    for (size_t i = 0; i < runtimes->count; i++) {
        const struct found_runtime *found = &runtimes->list[i];
        json_write_line(json);
        json_write_object(json);
        json_member_text(json, "state", ability_state_name(found->state));
        json_member_text(json, "name", found->name);
        json_member_text(json, "version", found->version);
        json_member_text(json, "binary", found->binary);
        json_member_unsigned(json, "processes", found->processes);
        json_member_unsigned(json, "pid", found->pid);
        json_member_text(json, "meaning", found->meaning);
        json_write_object_end(json);
    }
}

static void write_json(const struct abilities *abilities, const struct found_runtimes *runtimes,
                       struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_write_key(&json, "commands");
    json_write_array(&json);
    for (size_t i = 0; i < ABILITY_COMMANDS; i++) {
        const struct ability_command *command = &abilities->commands[i];
        json_write_line(&json);
        json_write_object(&json);
        json_member_bool(&json, "works", command->works);
        json_member_text(&json, "command", command->command);
        json_member_text(&json, "means", command->means);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_key(&json, "checks");
    json_write_array(&json);
    for (size_t i = 0; i < abilities->count; i++) {
        const struct ability *ability = &abilities->list[i];
        json_write_line(&json);
        json_write_object(&json);
        json_member_text(&json, "state", ability_state_name(ability->state));
        json_member_text(&json, "name", ability->name);
        json_member_text(&json, "found", ability->found);
        json_member_text(&json, "meaning", ability->meaning);
        json_member_text(&json, "fix", ability->fix);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_key(&json, "runtimes");
    json_write_array(&json);
    add_runtimes(&json, runtimes);
    json_write_array_end(&json);
    json_member_unsigned(&json, "processes", runtimes->processes);
    json_member_unsigned(&json, "processes_unreadable", runtimes->unreadable);
    json_write_key(&json, "bpf_objects");
    json_write_array(&json);
    add_bpf_objects(&json);
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
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
                   "user,\nand how to enable the rest. Lists the "
                   "interpreters and virtual machines that\nrun, and what can be seen of each. It "
                   "changes nothing.",
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
    const struct ability *bpf = abilities_get(&abilities, "bpf-sampler");
    struct found_runtimes runtimes;
    found_runtimes_find(bpf && bpf->state != ABILITY_NO, &runtimes);
    if (json || format == TABLE_JSON)
        write_json(&abilities, &runtimes, &out);
    else
        write_text(&abilities, &runtimes, terminal_colour(), &out);
    print_buffer(&out);
    found_runtimes_release(&runtimes);
    return abilities.commands[ABILITY_RECORD_COMMAND].works ? EXIT_FINE : EXIT_FAILED;
}
