// SPDX-License-Identifier: Apache-2.0
// `assay debuginfo`: builds and queries symbol indexes of binaries, and uploads files to a server.

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/remote/debuginfo.h"
#include "cli/table.h"
#include "io/json_write.h"
#include "profile/naming.h"
#include "symbol/index/build.h"
#include "symbol/index/index.h"

#define COMMAND "debuginfo"
#define OUTPUT_BYTES (1u << 20)

struct debuginfo_options {
    const char *output, *debug, *format;
    bool offsets;
};

/* ---- index ---- */

static void add_identity(struct buffer *text, const struct symbol_index_header *header)
{
    if (header->id_kind == SYMBOL_INDEX_ID_GO) {
        text_escape_terminal(text, (const char *)header->id, header->id_bytes);
        return;
    }
    for (unsigned i = 0; i < header->id_bytes; i++)
        buffer_printf(text, "%02x", header->id[i]);
    if (!header->id_bytes)
        buffer_add_text(text, "none");
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void describe(const char *path, const struct symbol_index *index)
{
    const struct symbol_index_header *header = index->header;
    _cleanup_buffer_ struct buffer said = {0};
    buffer_add_text(&said, "assay: ");
    text_escape_terminal(&said, path, strlen(path));
    buffer_printf(&said, ": %s; build ID ", symbol_index_quality_text(symbol_index_quality(index)));
    add_identity(&said, header);
    buffer_printf(&said, "\nassay: %.1f%% of the code has a name, %.1f%% a line; %zu bytes",
                  share(header->named_bytes, header->code_bytes),
                  share(header->line_bytes, header->code_bytes), index->length);
    if (header->debug_bytes)
        buffer_printf(&said, ", %.1f%% of the debug information",
                      share(index->length, header->debug_bytes));
    buffer_add_char(&said, '\n');
    if (header->missing_units)
        buffer_printf(&said,
                      "assay: %" PRIu64 " of %" PRIu64
                      " units are in files (.dwo or .dwp) that are missing\n",
                      header->missing_units, header->unit_count);
    fputs(buffer_text(&said), stderr);
}

static int make_index(const struct debuginfo_options *options, const char *path)
{
    _cleanup_buffer_ struct buffer content = {0}, name = {0};
    struct symbol_index index;
    struct error error = {0};
    if (options->output)
        buffer_add_text(&name, options->output);
    else
        buffer_printf(&name, "%s.symbols", path_base(path));
    if (symbol_index_build_path(path, options->debug, &content, &error) < 0 ||
        symbol_index_open_memory(content.data, content.length, &index, &error) < 0 ||
        file_write_atomic(buffer_text(&name), content.data, content.length, &error) < 0)
        return fail(&error);
    describe(buffer_text(&name), &index);
    return EXIT_FINE;
}

/* ---- look-up ---- */

struct asking {
    struct symbol_index index;
    enum table_format format;
    bool offsets;
    uint64_t asked;
    struct buffer out;
};

static void flush(struct asking *asking, size_t beyond)
{
    if (asking->out.length < beyond)
        return;
    print_buffer(&asking->out);
    asking->out.length = 0;
}

static void add_json_text(struct json_writer *json, const char *name, const char *text)
{
    if (text)
        json_member_text(json, name, text);
}

static void add_json(struct asking *asking, uint64_t address, const struct symbol_frame *frames,
                     size_t count, uint64_t start)
{
    struct json_writer json = json_writer(&asking->out);
    buffer_add_text(&asking->out, asking->asked ? ",\n" : "[");
    json_write_object(&json);
    json_member_unsigned(&json, "address", address);
    json_member_unsigned(&json, "start", start);
    json_write_key(&json, "frames");
    json_write_array(&json);
    for (size_t i = 0; i < count; i++) {
        json_write_object(&json);
        json_member_bool(&json, "inlined", i + 1 < count);
        add_json_text(&json, "function", frames[i].name);
        add_json_text(&json, "system_name", frames[i].system_name);
        add_json_text(&json, "file", frames[i].file);
        json_member_unsigned(&json, "line", frames[i].line);
        json_member_unsigned(&json, "start_line", frames[i].start_line);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
}

static void add_shown(struct buffer *out, const char *text)
{
    text_escape_terminal(out, text ? text : "??", text ? strlen(text) : 2);
}

/* One line per frame: address, function, file and line, the linker's name. */
static void add_text(struct asking *asking, uint64_t address, const struct symbol_frame *frames,
                     size_t count, uint64_t start)
{
    struct buffer *out = &asking->out;
    static const struct symbol_frame nothing;
    for (size_t i = 0; i < MAX(count, 1); i++) {
        const struct symbol_frame *frame = count ? &frames[i] : &nothing;
        buffer_printf(out, "0x%" PRIx64 "\t", address);
        if (!frame->name && start)
            buffer_printf(out, "[starts at 0x%" PRIx64 "]", start);
        else
            add_shown(out, frame->name);
        buffer_add_char(out, '\t');
        add_shown(out, frame->file);
        buffer_add_char(out, ':');
        buffer_add_u64(out, frame->line);
        buffer_add_char(out, '\t');
        add_shown(out, frame->system_name ? frame->system_name : frame->name);
        buffer_add_text(out, i + 1 < count ? "\tinlined\n" : "\t\n");
    }
}

static void ask(struct asking *asking, uint64_t asked)
{
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    uint64_t address = asked, start = 0;
    size_t count = 0;
    if (!asking->offsets || symbol_index_address(&asking->index, asked, &address))
        count = symbol_index_look_up(&asking->index, address, frames, SYMBOL_FRAMES_MAX, &start);
    if (asking->format == TABLE_JSON)
        add_json(asking, asked, frames, count, start);
    else
        add_text(asking, asked, frames, count, start);
    asking->asked++;
    flush(asking, OUTPUT_BYTES);
}

/* Hexadecimal, with or without 0x, as all tools print addresses. */
static bool parse_address(const char *text, uint64_t *ret_address)
{
    char *end;
    if (!isxdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *ret_address = strtoull(text, &end, 16);
    while (isspace((unsigned char)*end))
        end++;
    return !*end && !errno;
}

static int ask_all(struct asking *asking, const char *const *texts, int count)
{
    uint64_t address;
    char line[128];
    for (int i = 0; i < count; i++) {
        if (!parse_address(texts[i], &address))
            return options_wrong(COMMAND, "\"%s\" is not a hexadecimal address.", texts[i]);
        ask(asking, address);
    }
    while (!count && fgets(line, sizeof(line), stdin)) {
        if (!parse_address(line, &address)) {
            line[strcspn(line, "\n")] = '\0';
            return options_wrong(COMMAND, "\"%s\" is not a hexadecimal address.", line);
        }
        ask(asking, address);
    }
    return EXIT_FINE;
}

static int look_up(const struct debuginfo_options *options, const char *const *values, int count)
{
    struct asking asking = {.offsets = options->offsets};
    struct error error = {0};
    if (!table_format_parse(options->format, &asking.format) || asking.format == TABLE_CSV)
        return options_wrong(COMMAND, "--format must be text or json, not \"%s\".",
                             options->format);
    if (symbol_index_open(values[0], &asking.index, &error) < 0)
        return fail(&error);
    int r = ask_all(&asking, values + 1, count - 1);
    if (asking.format == TABLE_JSON && r == EXIT_FINE)
        buffer_add_text(&asking.out, asking.asked ? "]\n" : "[]\n");
    flush(&asking, 0);
    buffer_release(&asking.out);
    symbol_index_close(&asking.index);
    return r;
}

int command_debuginfo(int argc, char **argv)
{
    struct debuginfo_options options = {0};
    struct debuginfo_sending sending = {0};
    const struct option own[] = {
        {"Building an index", .kind = OPTION_GROUP},
        {"output", 'o', OPTION_TEXT, "FILE", "output file (default: FILE.symbols here)",
         &options.output},
        {"debug", 0, OPTION_TEXT, "FILE", "separate debug file (default: found by build ID)",
         &options.debug},
        {"Looking up addresses", .kind = OPTION_GROUP},
        {"offsets", 0, OPTION_FLAG, NULL, "addresses are offsets in the binary's file",
         &options.offsets},
        {"format", 'f', OPTION_TEXT, "F", "output format: text or json", &options.format},
        {"Uploading to a server", .kind = OPTION_GROUP},
        {"server", 0, OPTION_TEXT, "URL", "URL of the server", &sending.server},
        {"token-file", 0, OPTION_TEXT, "FILE", "file with the token; default: $ASSAY_TOKEN",
         &sending.token_file},
        {"ca", 0, OPTION_TEXT, "FILE", "certificate authorities to trust instead of the system's",
         &sending.ca},
        {"sources", 0, OPTION_FLAG, NULL, "also upload the source files of binaries",
         &sending.sources},
        {"source-root", 0, OPTION_LIST, "DIR",
         "root of the sources (default: the current directory)", &sending.source_roots},
        {"source-map", 0, OPTION_LIST, "OLD=NEW", "look for paths that begin with OLD in NEW",
         &sending.source_maps},
        {"jobs", 'j', OPTION_COUNT, "N", "parallel uploads (4)", &sending.jobs},
        {"service", 0, OPTION_TEXT, "NAME",
         "upload the source maps or mapping file of this service", &sending.service},
        {"version", 0, OPTION_TEXT, "V", "version of the service", &sending.version},
        {0}};
    struct command_line line = {
        .command = COMMAND,
        .arguments = "index FILE | look-up INDEX [ADDRESS...] | upload FILE|DIRECTORY...",
        .summary = "Builds symbol indexes of binaries, looks up addresses in them, and "
                   "uploads\nbinaries and debug files to a server.",
        .notes = "Addresses are hexadecimal; without any, they are read from standard input.",
        .options = own,
        .least = 2,
        .most = -1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (!strcmp(line.values[0], "index") && line.count == 2)
        return make_index(&options, line.values[1]);
    if (!strcmp(line.values[0], "look-up"))
        return look_up(&options, line.values + 1, line.count - 1);
    if (!strcmp(line.values[0], "upload")) {
        if (!sending.server)
            return options_wrong(COMMAND, "upload requires --server URL.");
        if (!sending.service && sending.version)
            return options_wrong(COMMAND, "--version requires --service NAME.");
        if (sending.service && !sending.version)
            return options_wrong(COMMAND, "--service requires --version V, which can be ''.");
        if (sending.service)
            return debuginfo_upload_maps(&sending, line.values + 1, line.count - 1);
        return debuginfo_upload(&sending, line.values + 1, line.count - 1);
    }
    return options_wrong(COMMAND,
                         "Use index FILE, look-up INDEX ADDRESS..., or upload FILE|DIRECTORY...");
}
