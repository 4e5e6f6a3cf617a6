// SPDX-License-Identifier: Apache-2.0
// The colours of frames in static pictures: warm hues by package, cool ones for the kernel, red and
// blue for change. OKLCH keeps the lightness even, so that dark text reads well on all of them.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/picture/svg.h"
#include "profile/views/package.h"

#define WARM_HUES 8
#define SHADES 3
#define NAME_BYTES_MAX 1024 /* of a name, what its colour follows from */

/* Björn Ottosson's OKLab, out to sRGB. */
static struct svg_colour oklch(double lightness, double chroma, double hue)
{
    double a = chroma * cos(hue * M_PI / 180), b = chroma * sin(hue * M_PI / 180);
    double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
    double linear[3] = {
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    };
    unsigned bytes[3];
    for (int i = 0; i < 3; i++) {
        double c = linear[i];
        c = c <= 0.0031308 ? 12.92 * c : 1.055 * pow(c, 1 / 2.4) - 0.055;
        bytes[i] = (unsigned)lround(255 * fmin(1, fmax(0, c)));
    }
    struct svg_colour colour;
    snprintf(colour.text, sizeof(colour.text), "#%02x%02x%02x", bytes[0] & 255, bytes[1] & 255,
             bytes[2] & 255);
    return colour;
}

/* FNV-1a, so that a package has the same colour in every picture. */
static uint32_t hash_text(const char *text, size_t length)
{
    uint32_t hash = 0x811c9dc5;
    for (size_t i = 0; i < length && i < NAME_BYTES_MAX; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x01000193u;
    hash ^= hash >> 15;
    return hash * 0x2c1b3c6du;
}

/* Names that stand for the absence of one: "[unknown]", "(other)". */
static bool is_placeholder(const struct calltree_function *function)
{
    char first = function->name[0], last = function->name[function->length - 1];
    return function->unnamed || (first == '[' && last == ']') || (first == '(' && last == ')');
}

struct svg_colour svg_warm_colour(unsigned hue, int shade)
{
    return oklch(0.86 + 0.02 * shade, 0.092, 24 + 11.5 * (hue % WARM_HUES));
}

struct svg_colour svg_kernel_colour(void)
{
    return oklch(0.84, 0.055, 240);
}

struct svg_colour svg_plain_colour(void)
{
    return oklch(0.91, 0.003, 260);
}

struct svg_colour svg_frame_colour(const struct calltree_function *function)
{
    int shade = (int)(hash_text(function->name, function->length) % SHADES) - 1;
    if (function->kind == FRAME_KERNEL || !strncmp(function->binary, "[kernel", 7))
        return oklch(0.84 + 0.018 * shade, 0.055, 240);
    if (is_placeholder(function))
        return oklch(0.90 + 0.012 * shade, 0.003, 260);
    struct package package = package_of(function);
    if (!package.length) /* text formats often know nothing but names */
        package = (struct package){function->name, function->length};
    return svg_warm_colour(hash_text(package.text, package.length), shade);
}

int svg_diff_step(double before, double after)
{
    double larger = fmax(fabs(before), fabs(after));
    double change = larger > 0 ? fmin(1, fmax(-1, (after - before) / larger)) : 0;
    if (fabs(change) < 0.01)
        return 0;
    int step = (int)fmax(1, ceil(SVG_DIFF_STEPS * sqrt(fabs(change))));
    return change < 0 ? -step : step;
}

struct svg_colour svg_diff_colour(int step)
{
    if (!step)
        return svg_plain_colour();
    double strength = fabs((double)step) / SVG_DIFF_STEPS;
    return oklch(0.91 - 0.20 * strength, 0.02 + 0.12 * strength, step > 0 ? 25 : 253);
}
