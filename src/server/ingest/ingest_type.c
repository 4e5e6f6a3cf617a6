// SPDX-License-Identifier: Apache-2.0
// Names of profile types: the five-part ids, by the rules that Pyroscope's senders expect, so that
// queries written for Pyroscope find the same types here.

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "server/ingest/ingest.h"

/* Parts of a sample type's name that give its profile's name; whole names, when `whole`. */
static const struct {
    const char *part, *name;
    bool whole;
} families[] = {
    {"offcpu", "off_cpu", false},   {"off_cpu", "off_cpu", false},
    {"cpu", "process_cpu", false},  {"samples", "process_cpu", true},
    {"alloc_", "memory", false},    {"inuse_", "memory", false},
    {"inuse-", "memory", false}, /* of old .NET clients */
    {"space", "memory", true},      {"objects", "memory", true},
    {"live", "memory", true},       {"mutex", "mutex", false},
    {"contentions", "mutex", true}, {"delay", "mutex", true},
    {"block_", "block", false},     {"alloc", "memory", true},
    {"inuse", "memory", true},      {"goroutine", "goroutines", false},
};

static const char *display_name(const struct ingest_source *source, const char *type)
{
    for (const struct ingest_display *at = source->displays; at && at->type; at++)
        if (!strcmp(at->type, type))
            return at->name;
    return type;
}

static bool is_type(const struct profile *profile, const struct profile_type *type,
                    const char *name, const char *unit)
{
    return !strcmp(profile_text(profile, type->type), name) &&
           !strcmp(profile_text(profile, type->unit), unit);
}

static bool has_cpu_time(const struct profile *profile)
{
    for (unsigned i = 0; i < profile->type_count; i++)
        if (is_type(profile, &profile->types[i], "cpu", "nanoseconds"))
            return true;
    return false;
}

/* Agents measure CPU time, waits and memory at once: each has the name that it would have alone,
 * and memory the period of Go's heap profiles. */
struct alone {
    const char *type, *name;
    const char *period_type, *period_unit; /* NULL: the profile's */
};

static const struct alone *find_alone(const char *type)
{
    static const struct alone list[] = {
        {"wall", "wall", NULL, NULL},
        {"off_cpu", "off_cpu", NULL, NULL},
        {"runq", "runq", NULL, NULL},
        {"io", "io", NULL, NULL},
        {"alloc_objects", "memory", "space", "bytes"},
        {"alloc_space", "memory", "space", "bytes"},
        {"inuse_objects", "memory", "space", "bytes"},
        {"inuse_space", "memory", "space", "bytes"},
        {"faulted_anon", "memory", "space", "bytes"},
        {"faulted_file", "memory", "space", "bytes"},
        {"faulted_shmem", "memory", "space", "bytes"},
        {"rss", "memory", "space", "bytes"},
        {"rss_pss", "memory", "space", "bytes"},
        {"rss_swap", "memory", "space", "bytes"},
        {"rss_page_tables", "memory", "space", "bytes"},
        {"rss_hugetlb", "memory", "space", "bytes"},
        {"rss_cgroup", "memory", "space", "bytes"},
        {"rss_limit", "memory", "space", "bytes"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(list); i++)
        if (!strcmp(type, list[i].type))
            return &list[i];
    return NULL;
}

/* The name that types of one profile share. One of which nothing is known is called by its last
 * type, as Pyroscope does, so that what was made for its names finds the profile. */
static const char *family(const struct profile *profile, const struct ingest_source *source)
{
    bool mixed = source->attributes && has_cpu_time(profile);
    for (unsigned i = 0; i < profile->type_count && !mixed; i++)
        if (!strcmp(profile_text(profile, profile->types[i].type), "wall"))
            return "wall";
    const char *type = "";
    for (unsigned i = 0; i < profile->type_count; i++) {
        type = display_name(source, profile_text(profile, profile->types[i].type));
        for (size_t k = 0; k < ARRAY_LENGTH(families); k++)
            if (families[k].whole ? !strcmp(type, families[k].part)
                                  : strstr(type, families[k].part) != NULL)
                return families[k].name;
    }
    return type;
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

/* A recording has types of many kinds, which Pyroscope stores as a profile each. NULL: by the
 * profile's name, as others. "": not stored, since another type says the same in time. */
static const char *recording_type(const char *type)
{
    static const struct {
        const char *type, *id;
    } ids[] = {
        {"samples", ""},
        {"cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
        {"wall_samples", ""},
        {"wall", "wall:wall:nanoseconds:wall:nanoseconds"},
        {"alloc_in_new_tlab_objects", "memory:alloc_in_new_tlab_objects:count:space:bytes"},
        {"alloc_in_new_tlab_bytes", "memory:alloc_in_new_tlab_bytes:bytes:space:bytes"},
        {"alloc_outside_tlab_objects", "memory:alloc_outside_tlab_objects:count:space:bytes"},
        {"alloc_outside_tlab_bytes", "memory:alloc_outside_tlab_bytes:bytes:space:bytes"},
        {"alloc_sample_objects", "memory:alloc_sample_objects:count:space:bytes"},
        {"alloc_sample_bytes", "memory:alloc_sample_bytes:bytes:space:bytes"},
        {"lock_contentions", "mutex:contentions:count:mutex:count"},
        {"lock_delay", "mutex:delay:nanoseconds:mutex:count"},
        {"park_contentions", "block:contentions:count:block:count"},
        {"park_delay", "block:delay:nanoseconds:block:count"},
        {"live_objects", "memory:live:count:objects:count"},
        {"live_bytes", "memory:live_bytes:bytes:objects:count"},
        {"malloc_objects", "memory:malloc_objects:count::"},
        {"malloc_bytes", "memory:malloc_bytes:bytes::"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(ids); i++)
        if (!strcmp(type, ids[i].type))
            return ids[i].id;
    return NULL;
}

/* Whether samples come as time, too. */
static bool is_timed(const struct profile *profile)
{
    for (unsigned i = 0; i < profile->type_count; i++) {
        const char *type = profile_text(profile, profile->types[i].type);
        if (!strcmp(type, "cpu") || !strcmp(type, "wall"))
            return true;
    }
    return false;
}

/* Whether the values of the only type fit the source's claim: time isn't memory. */
static bool fits(const struct profile *profile, const struct ingest_source *source)
{
    const char *unit = profile_text(profile, profile->types[0].unit);
    bool time = strstr(source->type, ":nanoseconds:") != NULL;
    return !source->in_units || !strcmp(unit, "count") || time == !strcmp(unit, "nanoseconds");
}

void ingest_types(const struct profile *profile, const struct ingest_source *source,
                  struct ingest_type *ret_types)
{
    bool timed = source->recording && is_timed(profile);
    const char *name = source->name && *source->name ? source->name : family(profile, source);
    const struct profile_type *period = &profile->period_type;
    bool has_cpu = has_cpu_time(profile);
    for (unsigned i = 0; i < profile->type_count; i++) {
        const struct profile_type *type = &profile->types[i];
        const char *known = source->recording && !(source->name && *source->name)
                                ? recording_type(profile_text(profile, type->type))
                                : NULL;
        ret_types[i] = (struct ingest_type){.factor = 1};
        if (known && (*known || timed)) {
            ret_types[i].id = *known ? memory_strdup(known) : NULL;
        } else if (source->type && profile->type_count == 1 && fits(profile, source)) {
            ret_types[i].id = memory_strdup(source->type);
            if (!source->in_units || is_type(profile, type, "samples", "count"))
                ret_types[i].factor = source->factor;
        } else if (source->attributes && !has_cpu && profile->period > 0 &&
                   is_type(profile, type, "samples", "count") &&
                   is_type(profile, period, "cpu", "nanoseconds")) {
            /* OpenTelemetry's agents count samples and say what one stands for. */
            ret_types[i].id = memory_strdup("process_cpu:cpu:nanoseconds:cpu:nanoseconds");
            ret_types[i].factor = profile->period;
        } else {
            const struct alone *alone = source->attributes && has_cpu
                                            ? find_alone(profile_text(profile, type->type))
                                            : NULL;
            bool own = alone && alone->period_type;
            ret_types[i].id =
                type_id(alone ? alone->name : name, profile_text(profile, type->type),
                        profile_text(profile, type->unit),
                        own ? alone->period_type : profile_text(profile, period->type),
                        own ? alone->period_unit : profile_text(profile, period->unit));
            for (char *at = ret_types[i].id; source->underscores && (at = strchr(at, '-')); at++)
                *at = '_';
        }
    }
}

static int bad_name(const char *text, struct error *error)
{
    return error_set(error, -EINVAL,
                     "\"%.100s\" is not an application name; use service{label=value}.", text);
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
        {"wall", "wall:wall:nanoseconds:cpu:nanoseconds", true},
        {"seconds", "wall:wall:nanoseconds:cpu:nanoseconds", true},
        {"milliseconds", "wall:wall:nanoseconds:cpu:nanoseconds", true},
        {"microseconds", "wall:wall:nanoseconds:cpu:nanoseconds", true},
        {"nanoseconds", "wall:wall:nanoseconds:cpu:nanoseconds", true},
        {"inuse_objects", "memory:inuse_objects:count::", false},
        {"inuse_space", "memory:inuse_space:bytes::", false},
        {"alloc_objects", "memory:alloc_objects:count::", false},
        {"alloc_space", "memory:alloc_space:bytes::", false},
        {"alloc_in_new_tlab_objects", "memory:alloc_in_new_tlab_objects:count::", false},
        {"alloc_in_new_tlab_bytes", "memory:alloc_in_new_tlab_bytes:bytes::", false},
        {"alloc_outside_tlab_objects", "memory:alloc_outside_tlab_objects:count::", false},
        {"alloc_outside_tlab_bytes", "memory:alloc_outside_tlab_bytes:bytes::", false},
        {"bytes", "memory:samples:bytes::", false},
        {"live", "memory:live:count::", false},
        {"goroutines", "goroutine:goroutines:count::", false},
        {"mutex_count", "mutex:contentions:count::", false},
        {"mutex_duration", "mutex:delay:nanoseconds::", false},
        {"block_count", "block:contentions:count::", false},
        {"block_duration", "block:delay:nanoseconds::", false},
        {"lock_count", "block:contentions:count::", false},
        {"lock_duration", "block:delay:nanoseconds::", false},
        {"exceptions", "exceptions:samples:count::", false},
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
