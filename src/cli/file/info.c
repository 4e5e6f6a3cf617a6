// SPDX-License-Identifier: Apache-2.0
// `assay info`: what a profile file holds, and what it is worth.

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/table.h"
#include "io/json_write.h"
#include "profile/naming.h"
#include "profile/units.h"
#include "profile/views/rank.h"

/* Label keys shown, and values of each. */
#define KEYS_SHOWN 50
#define VALUES_SHOWN 5

struct label_key {
    uint32_t key;
    size_t sets;                                 /* label sets that have it */
    size_t values;                               /* distinct values */
    struct profile_label examples[VALUES_SHOWN]; /* those with the most of the default type */
    int64_t amounts[VALUES_SHOWN];
};

/* A label of a set, and what its samples have of the default type. */
struct label_amount {
    struct profile_label label;
    int64_t amount;
};

struct summary {
    const struct profile *profile;
    const char *path;
    const struct format *format;
    int64_t total[PROFILE_TYPES_MAX];
    size_t stacks; /* distinct nodes with samples */
    uint32_t deepest;
    double unnamed_frames; /* share of frames on sampled stacks, weighted by the default type */
    double unnamed_leaves; /* share of the value that ends in such a frame */
    struct label_key *keys;
    size_t key_count;
};

static void count_stacks(struct summary *summary)
{
    const struct profile *profile = summary->profile;
    _cleanup_free_ bool *sampled = memory_zalloc(profile->node_count, sizeof(bool));
    _cleanup_free_ uint32_t *depth = memory_zalloc(profile->node_count, sizeof(uint32_t));
    _cleanup_free_ uint32_t *unnamed = memory_zalloc(profile->node_count, sizeof(uint32_t));
    unsigned type = profile_default_type(profile);
    _cleanup_free_ int64_t *values = profile_node_values(profile, type);
    for (size_t row = 0; row < profile->samples.count; row++)
        sampled[profile->samples.node[row]] = true;
    double frames = 0, bare = 0, weight = 0, bare_leaves = 0;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        struct profile_node node = profile->nodes[i];
        bool named = profile->frames[node.frame].function;
        depth[i] = depth[node.parent] + 1;
        unnamed[i] = unnamed[node.parent] + !named;
        if (!sampled[i])
            continue;
        summary->stacks++;
        summary->deepest = MAX(summary->deepest, depth[i]);
        double value = (double)magnitude(values[i]);
        weight += value;
        frames += value * depth[i];
        bare += value * unnamed[i];
        bare_leaves += named ? 0 : value;
    }
    summary->unnamed_frames = frames > 0 ? bare / frames : 0;
    summary->unnamed_leaves = weight > 0 ? bare_leaves / weight : 0;
}

static int compare_label_rows(const void *a, const void *b)
{
    const struct profile_label *x = &((const struct label_amount *)a)->label;
    const struct profile_label *y = &((const struct label_amount *)b)->label;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->text != y->text)
        return x->text < y->text ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Keeps the value among the largest of its key. */
static void note_value(struct label_key *key, const struct label_amount *value)
{
    size_t place = MIN(key->values, (size_t)VALUES_SHOWN);
    key->values++;
    while (place && magnitude(key->amounts[place - 1]) < magnitude(value->amount))
        place--;
    if (place == VALUES_SHOWN)
        return;
    size_t behind = VALUES_SHOWN - 1 - place;
    memmove(key->examples + place + 1, key->examples + place, behind * sizeof(*key->examples));
    memmove(key->amounts + place + 1, key->amounts + place, behind * sizeof(*key->amounts));
    key->examples[place] = value->label;
    key->amounts[place] = value->amount;
}

static void count_labels(struct summary *summary)
{
    const struct profile *profile = summary->profile;
    struct label_amount *all = NULL;
    size_t count = 0, capacity = 0, key_capacity = 0;
    unsigned type = profile_default_type(profile);
    uint32_t sets = profile_label_set_count(profile);
    _cleanup_free_ int64_t *amounts = memory_zalloc(sets, sizeof(*amounts));
    for (size_t row = 0; type < profile->type_count && row < profile->samples.count; row++) {
        int64_t *amount = &amounts[profile->samples.labels[row]];
        *amount = add_saturated(*amount, profile->samples.values[type][row]);
    }
    for (uint32_t set = 1; set < sets; set++) {
        size_t labels;
        const struct profile_label *label = profile_labels(profile, set, &labels);
        array_reserve(all, capacity, count + labels);
        for (size_t i = 0; i < labels; i++)
            all[count++] = (struct label_amount){label[i], amounts[set]};
    }
    if (count)
        qsort(all, count, sizeof(*all), compare_label_rows);
    struct label_key *key = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!key || key->key != all[i].label.key) {
            array_reserve(summary->keys, key_capacity, summary->key_count + 1);
            key = &summary->keys[summary->key_count++];
            *key = (struct label_key){.key = all[i].label.key};
        }
        key->sets++;
        if (i + 1 < count && !compare_label_rows(&all[i], &all[i + 1]))
            all[i + 1].amount = add_saturated(all[i + 1].amount, all[i].amount);
        else
            note_value(key, &all[i]);
    }
    free(all);
}

static void add_json_text(struct json_writer *json, const char *key, const struct profile *profile,
                          uint32_t string)
{
    json_write_key(json, key);
    json_write_bytes(json, profile->strings[string].data, profile->strings[string].length);
}

static void write_json(const struct summary *summary, struct buffer *out)
{
    const struct profile *profile = summary->profile;
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "file", summary->path);
    json_member_text(&json, "format", summary->format->name);
    json_write_key(&json, "types");
    json_write_array(&json);
    for (unsigned i = 0; i < profile->type_count; i++) {
        json_write_object(&json);
        add_json_text(&json, "type", profile, profile->types[i].type);
        add_json_text(&json, "unit", profile, profile->types[i].unit);
        json_member_signed(&json, "total", summary->total[i]);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_member_unsigned(&json, "default_type", profile_default_type(profile));
    json_member_unsigned(&json, "samples", profile->samples.count);
    json_member_unsigned(&json, "stacks", summary->stacks);
    json_member_unsigned(&json, "deepest", summary->deepest);
    json_member_unsigned(&json, "functions", profile->function_count - 1);
    json_member_unsigned(&json, "mappings", profile->mapping_count - 1);
    json_member_signed(&json, "start_ns", profile->time_ns);
    json_member_signed(&json, "duration_ns", profile->duration_ns);
    json_member_signed(&json, "period", profile->period);
    json_member_digits(&json, "unnamed_frames", summary->unnamed_frames, 6);
    json_member_digits(&json, "unnamed_leaves", summary->unnamed_leaves, 6);
    json_write_key(&json, "labels");
    json_write_array(&json);
    for (size_t i = 0; i < summary->key_count; i++) {
        json_write_object(&json);
        add_json_text(&json, "key", profile, summary->keys[i].key);
        json_member_unsigned(&json, "values", summary->keys[i].values);
        json_write_key(&json, "largest");
        json_write_array(&json);
        for (size_t k = 0; k < MIN(summary->keys[i].values, (size_t)VALUES_SHOWN); k++) {
            const struct profile_label *label = &summary->keys[i].examples[k];
            json_write_object(&json);
            if (label->text)
                add_json_text(&json, "value", profile, label->text);
            else
                json_member_signed(&json, "value", label->number);
            json_member_signed(&json, "amount", summary->keys[i].amounts[k]);
            json_write_object_end(&json);
        }
        json_write_array_end(&json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_key(&json, "comments");
    json_write_array(&json);
    for (size_t i = 0; i < profile->comment_count; i++) {
        const struct profile_string *comment = &profile->strings[profile->comments[i]];
        json_write_bytes(&json, comment->data, comment->length);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

static void add_line(struct buffer *out, const char *what)
{
    buffer_printf(out, "%-10s ", what);
}

static void add_escaped(struct buffer *out, const struct profile *profile, uint32_t string)
{
    text_escape_terminal(out, profile->strings[string].data, profile->strings[string].length);
}

static void write_labels(const struct summary *summary, struct buffer *out)
{
    const struct profile *profile = summary->profile;
    for (size_t i = 0; i < MIN(summary->key_count, (size_t)KEYS_SHOWN); i++) {
        const struct label_key *key = &summary->keys[i];
        add_line(out, i ? "" : "labels");
        add_escaped(out, profile, key->key);
        buffer_printf(out, " (%zu value%s): ", key->values, key->values == 1 ? "" : "s");
        for (size_t k = 0; k < MIN(key->values, (size_t)VALUES_SHOWN); k++) {
            const struct profile_label *label = &key->examples[k];
            buffer_add_text(out, k ? ", " : "");
            if (label->text)
                add_escaped(out, profile, label->text);
            else if (label->unit)
                units_add(out, &units_terminal, (double)label->number,
                          profile_text(profile, label->unit));
            else
                buffer_add_i64(out, label->number); /* more often an id than an amount */
            unsigned type = profile_default_type(profile);
            if (type >= profile->type_count)
                continue;
            buffer_add_text(out, " (");
            units_add(out, &units_terminal, (double)key->amounts[k],
                      profile_text(profile, profile->types[type].unit));
            buffer_add_char(out, ')');
        }
        buffer_add_text(out, key->values > VALUES_SHOWN ? ", ...\n" : "\n");
    }
    if (summary->key_count > KEYS_SHOWN)
        buffer_printf(out, "%-10s and %zu more\n", "", summary->key_count - KEYS_SHOWN);
}

static void write_span(const struct profile *profile, struct buffer *out)
{
    if (!profile->time_ns && !profile->duration_ns)
        return;
    add_line(out, "span");
    units_add(out, &units_terminal, (double)profile->duration_ns, "nanoseconds");
    if (profile->time_ns) {
        time_t seconds = (time_t)(profile->time_ns / 1000000000);
        struct tm utc;
        char text[64];
        if (gmtime_r(&seconds, &utc) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc))
            buffer_printf(out, " from %s UTC", text);
    }
    buffer_add_char(out, '\n');
}

static void write_text(const struct summary *summary, struct buffer *out)
{
    const struct profile *profile = summary->profile;
    add_line(out, "file");
    text_escape_terminal(out, summary->path, strlen(summary->path));
    buffer_add_char(out, '\n');
    add_line(out, "format");
    buffer_printf(out, "%s\n", summary->format->name);
    for (unsigned i = 0; i < profile->type_count; i++) {
        add_line(out, i ? "" : "types");
        add_escaped(out, profile, profile->types[i].type);
        if (profile->types[i].unit) {
            buffer_add_char(out, '/');
            add_escaped(out, profile, profile->types[i].unit);
        }
        buffer_add_text(out, ": ");
        units_add(out, &units_terminal, (double)summary->total[i],
                  profile_text(profile, profile->types[i].unit));
        buffer_add_text(out, i == profile_default_type(profile) ? " (the default)\n" : "\n");
    }
    add_line(out, "samples");
    units_add_grouped(out, &units_terminal, (double)profile->samples.count);
    buffer_printf(out, " distinct, over %zu stacks, at most %u frames deep\n", summary->stacks,
                  summary->deepest);
    write_span(profile, out);
    if (profile->period) {
        add_line(out, "period");
        units_add(out, &units_terminal, (double)profile->period,
                  profile_text(profile, profile->period_type.unit));
        if (profile->period_type.type) {
            buffer_add_text(out, " of ");
            add_escaped(out, profile, profile->period_type.type);
        }
        buffer_add_char(out, '\n');
    }
    add_line(out, "symbols");
    buffer_printf(
        out, "%u functions in %u binaries; %.3g%% of frames and %.3g%% of leaves are unresolved\n",
        profile->function_count - 1, profile->mapping_count - 1, 100 * summary->unnamed_frames,
        100 * summary->unnamed_leaves);
    write_labels(summary, out);
    for (size_t i = 0; i < profile->comment_count; i++) {
        add_line(out, i ? "" : "comments");
        add_escaped(out, profile, profile->comments[i]);
        buffer_add_char(out, '\n');
    }
}

static int run(const struct input_options *input, enum table_format format, const char *path)
{
    _cleanup_profile_ struct profile profile;
    struct summary summary = {.profile = &profile, .path = input_name(path)};
    profile_init(&profile, PROFILE_LABELS);
    int r = input_read(input, &path, 1, &profile, &summary.format);
    if (r)
        return r;
    for (unsigned i = 0; i < profile.type_count; i++)
        for (size_t row = 0; row < profile.samples.count; row++)
            summary.total[i] = add_saturated(summary.total[i], profile.samples.values[i][row]);
    count_stacks(&summary);
    count_labels(&summary);
    _cleanup_buffer_ struct buffer out = {0};
    if (format == TABLE_JSON)
        write_json(&summary, &out);
    else
        write_text(&summary, &out);
    free(summary.keys);
    print_buffer(&out);
    return EXIT_FINE;
}

int command_info(int argc, char **argv)
{
    struct input_options input = {0};
    const char *format_name = NULL;
    const struct option own[] = {{"Output", .kind = OPTION_GROUP},
                                 {"format", 'f', OPTION_TEXT, "F", "text or json", &format_name},
                                 {0}};
    const struct option common[] = {INPUT_OPTIONS(&input), {0}};
    struct command_line line = {
        .command = "info",
        .arguments = "IN",
        .summary = "Describes a profile file: format, sample types with their totals, time "
                   "span,\nlabels, and the share of unresolved frames.",
        .options = own,
        .more_options = common,
        .least = 1,
        .most = 1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    enum table_format format;
    if (!table_format_parse(format_name, &format) || format == TABLE_CSV)
        return options_wrong("info", "--format must be text or json, not \"%s\".", format_name);
    return run(&input, format, line.values[0]);
}
