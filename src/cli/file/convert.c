// SPDX-License-Identifier: Apache-2.0
// `assay convert` and `assay merge`: reading one or many profiles and writing one. Both are the
// same act, since reading adds to what is there.

#include <string.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/output.h"
#include "profile/naming.h"
#include "symbol/recorded/names.h"

struct convert_options {
    struct input_options input;
    struct filter_options filter;
    const char *output, *format, *type;
    bool symbolize;
};

/* Names what has only an address, from the binaries of this machine that are the same by their
 * build ID. */
static int symbolize(struct profile *profile, enum profile_detail detail)
{
    struct error error = {0};
    return recorded_name(profile, detail, &error) < 0 ? fail(&error) : 0;
}

static int run(const char *command, const struct convert_options *options,
               const struct command_line *line)
{
    const struct format *format;
    int r = output_format(command, options->format, options->output, &format);
    if (r)
        return r;
    _cleanup_profile_ struct profile profile;
    enum profile_detail detail = format->detail | input_filter_detail(&options->filter);
    profile_init(&profile, detail);
    r = input_read(&options->input, line->values, line->count, &profile, NULL);
    if (!r && options->symbolize)
        r = symbolize(&profile, detail);
    if (!r)
        r = input_filter(&options->filter, command, &profile);
    struct write_options write = {.type = -1, .title = path_base(input_name(line->values[0]))};
    if (!r && options->type) {
        unsigned type;
        r = input_type(&profile, options->type, line->values[0], &type);
        write.type = (int)type;
    }
    if (r)
        return r;
    struct error error = {0};
    if (format_write_file(options->output, format, &profile, &write, &error) < 0)
        return fail(&error);
    return EXIT_FINE;
}

static int parse_and_run(struct command_line *line, int argc, char **argv)
{
    struct convert_options options = {0};
    const struct option own[] = {
        {"Writing", .kind = OPTION_GROUP},
        {"output", 'o', OPTION_TEXT, "OUT", "the file to write; - is standard output",
         &options.output},
        {"to", 0, OPTION_TEXT, "NAME", "write this format instead of the one of OUT's extension",
         &options.format},
        {"sample-type", 't', OPTION_TEXT, "T", "sample type, for formats that hold only one",
         &options.type},
        {"symbolize", 0, OPTION_FLAG, NULL,
         "symbolize addresses from the same binaries on this machine", &options.symbolize},
        {0}};
    const struct option common[] = {
        FILTER_OPTIONS(&options.filter), INPUT_OPTIONS(&options.input), {0}};
    char *formats = output_format_list();
    line->notes = formats;
    line->options = own;
    line->more_options = common;
    int r = options_parse(line, argc, argv);
    if (r < 0)
        r = run(line->command, &options, line);
    free(formats);
    return r;
}

int command_convert(int argc, char **argv)
{
    struct command_line line = {
        .command = "convert",
        .arguments = "IN -o OUT",
        .summary = "Writes a profile in another format, chosen by OUT's extension. - is "
                   "standard\ninput or output. OUT is written atomically.",
        .least = 1,
        .most = 1,
    };
    return parse_and_run(&line, argc, argv);
}

int command_merge(int argc, char **argv)
{
    struct command_line line = {
        .command = "merge",
        .arguments = "IN... -o OUT",
        .summary = "Merges profiles into one. Their formats and sample types can differ: "
                   "samples\nof the same stack, labels and type add up, and so do durations.",
        .least = 1,
        .most = -1,
    };
    return parse_and_run(&line, argc, argv);
}
