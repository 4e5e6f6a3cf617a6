// SPDX-License-Identifier: Apache-2.0
// Choosing an output format: see output.h.

#include "cli/output.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

int output_format(const char *command, const char *name, const char *path,
                  const struct format **ret_format)
{
    if (!path)
        return options_wrong(command, "specify the output with -o FILE (- is standard output).");
    const struct format *format = name ? format_by_name(name) : format_by_extension(path);
    const char *meant = !format && name ? format_meant(name, true) : NULL;
    if (meant)
        return options_wrong(command, "unknown format \"%s\"; did you mean \"%s\"?", name, meant);
    if (!format && name)
        return options_wrong(command, "unknown format \"%s\".", name);
    if (!format && !strcmp(path, "-"))
        return options_wrong(command, "standard output has no extension: choose a format with "
                                      "--to.");
    if (!format)
        return options_wrong(
            command, "the extension of \"%s\" doesn't match a format; choose one with --to.", path);
    if (!format->write)
        return options_wrong(command, "the %s format can be read but not written.", format->name);
    *ret_format = format;
    return 0;
}

char *output_format_list(void)
{
    struct buffer text = {0};
    buffer_add_text(&text, "Formats (r: read, w: written; input is recognised by its content):\n");
    for (size_t i = 0; format_at(i); i++) {
        const struct format *format = format_at(i);
        buffer_printf(&text, "  %-16s %c%c  %s\n", format->name,
                      format_readable(format) ? 'r' : '-', format->write ? 'w' : '-',
                      format->summary);
        if (format->write)
            buffer_printf(&text, "  %-16s     written for %s\n", "", format->extensions);
    }
    text.length--;
    buffer_text(&text);
    return text.data;
}
