// SPDX-License-Identifier: Apache-2.0
// What types of profiles are called: the five-part ids, by the rules that Pyroscope's senders
// expect, so that queries made for it find the same types here.

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "server/ingest.h"

static const struct {
    const char *part, *name;
} families[] = {
    {"offcpu", "off_cpu"},      {"off_cpu", "off_cpu"},   {"cpu", "process_cpu"},
    {"samples", "process_cpu"}, {"alloc", "memory"},      {"inuse", "memory"},
    {"space", "memory"},        {"objects", "memory"},    {"live", "memory"},
    {"mutex", "mutex"},         {"contentions", "mutex"}, {"delay", "mutex"},
    {"block_", "block"},        {"lock_", "mutex"},       {"goroutine", "goroutines"},
};

static const char *display_name(const struct ingest_source *source, const char *type)
{
    for (const struct ingest_display *at = source->displays; at && at->type; at++)
        if (!strcmp(at->type, type))
            return at->name;
    return type;
}

/* The name that types of one profile share. */
static const char *family(const struct profile *profile, const struct ingest_source *source)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), "wall"))
            return "wall";
    for (unsigned i = 0; i < profile->type_count; i++) {
        const char *type = display_name(source, profile_text(profile, profile->types[i].type));
        for (size_t k = 0; k < ARRAY_LENGTH(families); k++)
            if (strstr(type, families[k].part))
                return families[k].name;
    }
    return display_name(source, profile_text(profile, profile->types[0].type));
}

/* One part; what has a meaning in ids or queries can't be in it. */
static void add_part(struct buffer *id, const char *text)
{
    for (size_t i = 0; i < 120 && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        buffer_add_char(id,
                        isalnum(c) || c == '.' || c == '-' || c == '/' || c == '%' ? (char)c : '_');
    }
}

static char *type_id(const char *name, const char *type, const char *unit, const char *period_type,
                     const char *period_unit)
{
    struct buffer id = {0};
    const char *parts[] = {name, type, unit, period_type, period_unit};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        if (i)
            buffer_add_char(&id, ':');
        add_part(&id, parts[i]);
    }
    buffer_text(&id);
    return id.data;
}

static bool is_type(const struct profile *profile, const struct profile_type *type,
                    const char *name, const char *unit)
{
    return !strcmp(profile_text(profile, type->type), name) &&
           !strcmp(profile_text(profile, type->unit), unit);
}

void ingest_types(const struct profile *profile, const struct ingest_source *source,
                  struct ingest_type *ret_types)
{
    const char *name = source->name && *source->name ? source->name : family(profile, source);
    const struct profile_type *period = &profile->period_type;
    bool has_cpu = false;
    for (unsigned i = 0; i < profile->type_count; i++)
        has_cpu |= is_type(profile, &profile->types[i], "cpu", "nanoseconds");
    for (unsigned i = 0; i < profile->type_count; i++) {
        const struct profile_type *type = &profile->types[i];
        ret_types[i] = (struct ingest_type){.factor = 1};
        if (source->type && profile->type_count == 1) {
            ret_types[i].id = memory_strdup(source->type);
            ret_types[i].factor = source->factor;
        } else if (source->attributes && !has_cpu && profile->period > 0 &&
                   is_type(profile, type, "samples", "count") &&
                   is_type(profile, period, "cpu", "nanoseconds")) {
            /* OpenTelemetry's agents count samples and say what one stands for. */
            ret_types[i].id = memory_strdup("process_cpu:cpu:nanoseconds:cpu:nanoseconds");
            ret_types[i].factor = profile->period;
        } else {
            ret_types[i].id =
                type_id(name, profile_text(profile, type->type), profile_text(profile, type->unit),
                        profile_text(profile, period->type), profile_text(profile, period->unit));
        }
    }
}

static int bad_name(const char *text, struct error *error)
{
    return error_set(error, -EINVAL,
                     "\"%.100s\" is no name of an application; write service{label=value}.", text);
}

static void trim(const char **text, size_t *length)
{
    for (; *length && isspace((unsigned char)**text); (*length)--)
        (*text)++;
    while (*length && isspace((unsigned char)(*text)[*length - 1]))
        (*length)--;
}

int ingest_parse_name(const char *text, struct labels *labels, struct error *error)
{
    const char *application = text;
    size_t length = strcspn(text, "{");
    const char *at = text + length + (text[length] == '{');
    trim(&application, &length);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)application[i]) && !strchr("_.-/:", application[i]))
            return bad_name(text, error);
    while (*at && *at != '}') {
        const char *name = at;
        size_t name_length = strcspn(at, "=,}");
        if (name[name_length] != '=')
            return bad_name(text, error);
        const char *value = name + name_length + 1;
        size_t value_length = strcspn(value, ",}");
        at = value + value_length + (value[value_length] == ',');
        trim(&name, &name_length);
        trim(&value, &value_length);
        if (!name_length)
            return bad_name(text, error);
        if (name_length >= 2 && !memcmp(name, "__", 2))
            continue;
        labels_set_n(labels, name, name_length, value, value_length);
    }
    if (length && !labels_get(labels, LABEL_SERVICE_NAME))
        labels_set_n(labels, LABEL_SERVICE_NAME, strlen(LABEL_SERVICE_NAME), application, length);
    return labels_get(labels, LABEL_SERVICE_NAME) ? 0 : bad_name(text, error);
}

const char *ingest_suffix_type(char *application, uint64_t sample_rate, int64_t *ret_factor)
{
    static const struct {
        const char *suffix, *type;
        bool timed; /* counts samples that stand for time */
    } suffixes[] = {
        {"cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", true},
        {"itimer", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", true},
        {"wall", "wall:wall:nanoseconds:wall:nanoseconds", true},
        {"inuse_objects", "memory:inuse_objects:count:space:bytes", false},
        {"inuse_space", "memory:inuse_space:bytes:space:bytes", false},
        {"alloc_objects", "memory:alloc_objects:count:space:bytes", false},
        {"alloc_space", "memory:alloc_space:bytes:space:bytes", false},
        {"goroutines", "goroutines:goroutines:count:goroutine:count", false},
        {"mutex_count", "mutex:contentions:count:contentions:count", false},
        {"mutex_duration", "mutex:delay:nanoseconds:contentions:count", false},
        {"block_count", "block:contentions:count:contentions:count", false},
        {"block_duration", "block:delay:nanoseconds:contentions:count", false},
        {"lock_count", "mutex:contentions:count:contentions:count", false},
        {"lock_duration", "mutex:delay:nanoseconds:contentions:count", false},
    };
    const char *dot = strrchr(application, '.');
    size_t found = 0; /* CPU time unless it says otherwise */
    for (size_t i = 0; dot && i < ARRAY_LENGTH(suffixes); i++)
        if (!strcmp(dot + 1, suffixes[i].suffix)) {
            found = i;
            application[dot - application] = 0;
            break;
        }
    sample_rate = sample_rate && sample_rate <= 1000000000 ? sample_rate : 100;
    *ret_factor = suffixes[found].timed ? (int64_t)(1000000000 / sample_rate) : 1;
    return suffixes[found].type;
}
