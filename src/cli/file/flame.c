// SPDX-License-Identifier: Apache-2.0
// `assay flame`: a flame graph of a profile, as a page or a picture.

#include <string.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/output.h"
#include "profile/filter.h"
#include "profile/naming.h"

struct flame_command_options {
    struct input_options input;
    struct filter_options filter;
    struct group_options group;
    const char *output, *type, *title;
};

static int run(const struct flame_command_options *options, const struct command_line *line)
{
    const struct format *format;
    int r = output_format("flame", NULL, options->output, &format);
    if (r)
        return r;
    if (format != &format_svg && format != &format_html)
        return options_wrong(
            "flame", "flame draws .html and .svg; `assay convert` writes the other formats.");
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, format->detail | input_filter_detail(&options->filter) |
                               profile_group_detail(&options->group.keys));
    r = input_read(&options->input, line->values, line->count, &profile, NULL);
    struct error error = {0};
    if (!r && profile_prune(&profile, &error) < 0)
        return fail(&error);
    if (!r)
        r = input_filter(&options->filter, "flame", &profile);
    if (!r)
        input_group_apply(&options->group, &profile, PROFILE_GROUP_ROOTS);
    unsigned type;
    if (!r)
        r = input_type(&profile, options->type, line->values[0], &type);
    if (r)
        return r;
    struct write_options write = {
        .type = (int)type,
        .title = options->title ? options->title : path_base(input_name(line->values[0])),
    };
    if (format_write_file(options->output, format, &profile, &write, &error) < 0)
        return fail(&error);
    return EXIT_FINE;
}

int command_flame(int argc, char **argv)
{
    struct flame_command_options options = {0};
    const struct option own[] = {
        {"Picture", .kind = OPTION_GROUP},
        {"output", 'o', OPTION_TEXT, "OUT", "OUT.html, an interactive page, or OUT.svg, to print",
         &options.output},
        {"sample-type", 't', OPTION_TEXT, "T", "sample type to show first", &options.type},
        GROUP_OPTION(&options.group),
        {"title", 0, OPTION_TEXT, "TEXT", "the title (default: the file name)", &options.title},
        {0}};
    const struct option common[] = {
        FILTER_OPTIONS(&options.filter), INPUT_OPTIONS(&options.input), {0}};
    struct command_line line = {
        .command = "flame",
        .arguments = "IN... -o OUT.html|OUT.svg",
        .summary =
            "Draws a flame graph. The page is one file that needs no network: zoom, search,\n"
            "callers and callees, a table, every sample type.",
        .options = own,
        .more_options = common,
        .least = 1,
        .most = -1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    r = input_group(&options.group, "flame");
    if (!r)
        r = run(&options, &line);
    profile_group_release(&options.group.keys);
    return r;
}
