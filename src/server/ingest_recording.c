// SPDX-License-Identifier: Apache-2.0
// What recordings of Java's flight recorder need before they are split: names of generated classes
// that add up, and CPU time where only the wall clock was sampled.

#include <ctype.h>
#include <string.h>

#include "server/ingest.h"

/* ---- generated classes ---- */

/* Classes that a JVM makes while it runs (of lambdas, reflection, proxies) have a number or an
 * address in their name, which is another one in each process. */

/* How much of the text is what a lambda's class has after its name: "$669.0x0000000800fd7318",
 * ".0x00007ffa600c4da0", "/0x0000000800fd7318" or "14". */
static size_t lambda_number(const char *text, size_t length)
{
    size_t at = 0;
    bool dollar = length && text[0] == '$';
    at += dollar;
    while (at < length && isdigit((unsigned char)text[at]))
        at++;
    size_t plain = at > dollar ? at : 0;
    if (at + 1 >= length || (text[at] != '.' && text[at] != '/' && text[at] != '+'))
        return plain;
    size_t digits = at + 1;
    if (digits + 2 < length && text[digits] == '0' && text[digits + 1] == 'x')
        digits += 2;
    else if (!plain)
        return 0; /* a package or a method */
    size_t end = digits;
    while (end < length && isxdigit((unsigned char)text[end]))
        end++;
    return end > digits && (end == length || text[end] == '.') ? end : plain;
}

static size_t decimal(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && isdigit((unsigned char)text[at]))
        at++;
    return at;
}

static size_t word(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && isalnum((unsigned char)text[at]))
        at++;
    return at;
}

/* Appends the name without its number, of which '_' is left; false: it has none. */
static bool merged(const char *name, size_t length, struct buffer *out)
{
    static const struct {
        const char *after;
        size_t (*number)(const char *, size_t);
    } generated[] = {{"$$Lambda", lambda_number},
                     {"reflect.GeneratedMethodAccessor", decimal},
                     {"reflect.GeneratedConstructorAccessor", decimal},
                     {"$$EnhancerBySpringCGLIB$$", word}};
    for (size_t i = 0; i < ARRAY_LENGTH(generated); i++) {
        const char *found = memmem(name, length, generated[i].after, strlen(generated[i].after));
        if (!found)
            continue;
        size_t before = (size_t)(found - name) + strlen(generated[i].after);
        size_t number = generated[i].number(name + before, length - before);
        if (!number)
            continue;
        buffer_add(out, name, before);
        buffer_add_char(out, '_');
        buffer_add(out, name + before + number, length - before - number);
        return true;
    }
    return false;
}

void ingest_merge_generated(struct profile *profile)
{
    _cleanup_buffer_ struct buffer out = {0};
    for (uint32_t i = 1; i < profile->function_count; i++) {
        struct profile_function *function = &profile->functions[i];
        const struct profile_string *name = &profile->strings[function->name];
        out.length = 0;
        if (merged(name->data, name->length, &out))
            function->name = profile_string(profile, out.data, out.length);
    }
}

/* ---- CPU time ---- */

static bool runs(const struct profile *profile, uint32_t label_set)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(profile_text(profile, labels[i].key), "state"))
            return strcmp(profile_text(profile, labels[i].text), "STATE_SLEEPING") != 0;
    return false;
}

void ingest_cpu_of_wall(struct profile *profile)
{
    uint32_t unit = profile_cstring(profile, "nanoseconds");
    unsigned wall = profile_find_type(profile, "wall/nanoseconds");
    if (wall == PROFILE_TYPES_MAX || profile->loose ||
        profile_find_type(profile, "cpu/nanoseconds") != PROFILE_TYPES_MAX)
        return;
    unsigned cpu = profile_type(profile, profile_cstring(profile, "cpu"), unit);
    if (cpu == PROFILE_TYPES_MAX)
        return;
    struct profile_samples *samples = &profile->samples;
    for (size_t i = 0; i < samples->count; i++)
        samples->values[cpu][i] = runs(profile, samples->labels[i]) ? samples->values[wall][i] : 0;
}
