// SPDX-License-Identifier: Apache-2.0
// speedscope's own file format: what it looks like. Reading and writing are in the files named
// after this one.

#include "format/speedscope/speedscope.h"

static bool mentions(const uint8_t *bytes, size_t length, const char *text)
{
    return memmem(bytes, length, text, strlen(text));
}

static int speedscope_detect(const uint8_t *bytes, size_t length)
{
    if (!json_sniff_object(bytes, length))
        return 0;
    /* In two parts, as some escape the slash between them. */
    if (mentions(bytes, length, "speedscope.app") && mentions(bytes, length, "file-format-schema"))
        return 3;
    bool profiles = json_sniff_key(bytes, length, "profiles");
    bool frames = json_sniff_key(bytes, length, "frames");
    if (frames && (profiles || json_sniff_key(bytes, length, "shared")))
        return 2;
    if (profiles &&
        (mentions(bytes, length, "\"sampled\"") || mentions(bytes, length, "\"evented\"") ||
         json_sniff_key(bytes, length, "samples") || json_sniff_key(bytes, length, "events")))
        return 2;
    return 0;
}

const struct format format_speedscope = {
    .name = "speedscope",
    .text = true,
    .summary = "JSON of speedscope.app, sampled and evented",
    .extensions = ".speedscope.json .speedscope",
    .detail = PROFILE_LINES | PROFILE_TIMES,
    .detect = speedscope_detect,
    .read = speedscope_read,
    .write = speedscope_write,
};
