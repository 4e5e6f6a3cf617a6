// SPDX-License-Identifier: Apache-2.0
// Writing OTLP profiles in the layout of 1.10 and 1.11: one resource, one scope, and a Profile for
// each sample type. Labels that all samples share go to the resource. Or, where label sets are what
// was profiled, a resource for each of them, with one dictionary for all.

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "format/otlp/tables.h"

#define PIECE_BYTES (64u << 10)

struct writer {
    const struct profile *profile;
    struct otlp_tables tables;
    struct profile_label *shared; /* labels of all samples, in the order of label sets */
    size_t shared_count;
    uint32_t *order;   /* rows, those of one identity next to each other; NULL: as they are */
    size_t first, end; /* of the rows that are written */
    struct buffer sample, values, times, attributes;
};

static void writer_release(struct writer *writer)
{
    otlp_tables_release(&writer->tables);
    free(writer->shared);
    free(writer->order);
    buffer_release(&writer->sample);
    buffer_release(&writer->values);
    buffer_release(&writer->times);
    buffer_release(&writer->attributes);
}

/* ---- labels that all samples share ---- */

static bool row_counts(const struct profile *profile, size_t row)
{
    for (unsigned type = 0; type < profile->type_count; type++)
        if (profile->samples.values[type][row])
            return true;
    return false;
}

/* Keeps the shared labels that this set has, with no other label of the same key beside them: of
 * several labels of one key, readers take the sample's own. Both lists are sorted. */
static void intersect(struct writer *writer, uint32_t label_set)
{
    size_t count, kept = 0, at = 0;
    const struct profile_label *labels = profile_labels(writer->profile, label_set, &count);
    for (size_t i = 0; i < writer->shared_count; i++) {
        uint32_t key = writer->shared[i].key;
        while (at < count && labels[at].key < key)
            at++;
        bool alone = at < count && (at + 1 == count || labels[at + 1].key != key);
        if (alone && !memcmp(&labels[at], &writer->shared[i], sizeof(*labels)))
            writer->shared[kept++] = writer->shared[i];
    }
    writer->shared_count = kept;
}

static void find_shared(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    _cleanup_free_ bool *seen = memory_zalloc(profile_label_set_count(profile), sizeof(bool));
    bool first = true;
    for (size_t row = 0; row < profile->samples.count && (first || writer->shared_count); row++) {
        uint32_t set = profile->samples.labels[row];
        if (seen[set] || !row_counts(profile, row))
            continue;
        seen[set] = true;
        if (first) {
            size_t count;
            const struct profile_label *labels = profile_labels(profile, set, &count);
            writer->shared = memory_alloc((count + 1) * sizeof(*labels));
            /* A resource's attributes have no units. */
            for (size_t i = 0; i < count; i++)
                if (labels[i].key && !labels[i].unit)
                    writer->shared[writer->shared_count++] = labels[i];
            first = false;
        }
        intersect(writer, set);
    }
    writer->tables.shared = writer->shared;
    writer->tables.shared_count = writer->shared_count;
}

static void put_key_value(struct buffer *out, uint32_t number, const struct profile_string *key,
                          const struct buffer *any)
{
    size_t mark = wire_begin(out, number);
    wire_put_bytes(out, 1, key->data, key->length);
    wire_put_bytes(out, 2, any->data, any->length);
    wire_end(out, mark);
}

/* ---- rows to Samples ---- */

static uint32_t row_link(const struct profile_samples *samples, size_t row)
{
    return samples->link ? samples->link[row] : 0;
}

static uint64_t row_time(const struct profile_samples *samples, size_t row)
{
    return samples->time_ns ? samples->time_ns[row] : 0;
}

/* By identity; rows without a time first, then in the order they have. */
static int compare_rows(const void *a, const void *b, void *context)
{
    const struct profile_samples *samples = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (samples->labels[x] != samples->labels[y])
        return samples->labels[x] < samples->labels[y] ? -1 : 1;
    if (samples->node[x] != samples->node[y])
        return samples->node[x] < samples->node[y] ? -1 : 1;
    if (row_link(samples, x) != row_link(samples, y))
        return row_link(samples, x) < row_link(samples, y) ? -1 : 1;
    if (!row_time(samples, x) != !row_time(samples, y))
        return row_time(samples, x) ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void order_rows(struct writer *writer)
{
    const struct profile_samples *samples = &writer->profile->samples;
    writer->order = memory_alloc((samples->count + 1) * sizeof(*writer->order));
    for (size_t i = 0; i < samples->count; i++)
        writer->order[i] = (uint32_t)i;
    qsort_r(writer->order, samples->count, sizeof(*writer->order), compare_rows, (void *)samples);
}

static bool same_sample(const struct profile_samples *samples, size_t a, size_t b)
{
    return samples->node[a] == samples->node[b] && samples->labels[a] == samples->labels[b] &&
           row_link(samples, a) == row_link(samples, b) && row_time(samples, a) &&
           row_time(samples, b);
}

static void put_sample(struct writer *writer, struct buffer *out, size_t row)
{
    const struct profile_samples *samples = &writer->profile->samples;
    struct buffer *sample = &writer->sample;
    const struct otlp_table_list *labels =
        otlp_tables_labels(&writer->tables, samples->labels[row]);
    writer->attributes.length = sample->length = 0;
    for (size_t i = 0; i < labels->count; i++)
        wire_put_varint(&writer->attributes, labels->data[i]);
    wire_put_u64(sample, 1, otlp_tables_stack(&writer->tables, samples->node[row]));
    if (writer->attributes.length)
        wire_put_bytes(sample, 2, writer->attributes.data, writer->attributes.length);
    wire_put_u64(sample, 3, row_link(samples, row));
    wire_put_bytes(sample, 4, writer->values.data, writer->values.length);
    if (writer->times.length)
        wire_put_bytes(sample, 5, writer->times.data, writer->times.length);
    wire_put_bytes(out, 2, sample->data, sample->length);
}

static void put_samples(struct writer *writer, struct buffer *out, unsigned type)
{
    const struct profile_samples *samples = &writer->profile->samples;
    for (size_t i = writer->first; i < writer->end;) {
        size_t row = writer->order ? writer->order[i] : i, next = row;
        writer->values.length = writer->times.length = 0;
        do {
            if (samples->values[type][next]) {
                uint64_t time = row_time(samples, next);
                wire_put_varint(&writer->values, (uint64_t)samples->values[type][next]);
                if (time)
                    buffer_add(&writer->times, &time, sizeof(time));
            }
            if (++i < writer->end)
                next = writer->order ? writer->order[i] : i;
        } while (i < writer->end && same_sample(samples, row, next));
        if (writer->values.length)
            put_sample(writer, out, row);
        if (!buffer_pass(out))
            return;
    }
}

/* ---- Profiles ---- */

static void put_value_type(struct writer *writer, struct buffer *out, uint32_t number,
                           struct profile_type type)
{
    uint32_t name = otlp_tables_string(&writer->tables, type.type);
    uint32_t unit = otlp_tables_string(&writer->tables, type.unit);
    size_t mark = wire_begin(out, number);
    wire_put_u64(out, 1, name);
    wire_put_u64(out, 2, unit);
    wire_end(out, mark);
}

static void put_text_attribute(struct writer *writer, struct buffer *indexes, const char *key,
                               uint32_t text)
{
    const struct profile_string *string = &writer->profile->strings[text];
    if (!text)
        return;
    _cleanup_buffer_ struct buffer any = {0};
    otlp_put_any_text(&any, string->data, string->length);
    wire_put_varint(indexes, otlp_tables_attribute(&writer->tables, key, &any));
}

/* pprof's facts about a whole profile, by the names of the semantic conventions. */
static void profile_attributes(struct writer *writer, struct buffer *indexes)
{
    const struct profile *profile = writer->profile;
    if (profile->comment_count) {
        _cleanup_buffer_ struct buffer any = {0};
        size_t list = wire_begin(&any, 5);
        for (size_t i = 0; i < profile->comment_count; i++) {
            const struct profile_string *text = &profile->strings[profile->comments[i]];
            size_t mark = wire_begin(&any, 1);
            otlp_put_any_text(&any, text->data, text->length);
            wire_end(&any, mark);
        }
        wire_end(&any, list);
        wire_put_varint(indexes,
                        otlp_tables_attribute(&writer->tables, "pprof.profile.comment", &any));
    }
    put_text_attribute(writer, indexes, "pprof.profile.doc_url", profile->doc_url);
    put_text_attribute(writer, indexes, "pprof.profile.drop_frames", profile->drop_frames);
    put_text_attribute(writer, indexes, "pprof.profile.keep_frames", profile->keep_frames);
}

/* The model has one period for all types; CPU time between samples doesn't apply to time off the
 * CPU, and other readers name a Profile after its period. */
static bool has_period(const struct profile *profile, unsigned type)
{
    const char *name = profile_text(profile, profile->types[type].type);
    return profile->period && (strcmp(profile_text(profile, profile->period_type.type), "cpu") ||
                               !strcmp(name, "cpu") || !strcmp(name, "samples"));
}

/* All but what is made of it. */
static void put_profile_content(struct writer *writer, struct buffer *out, unsigned type)
{
    const struct profile *profile = writer->profile;
    put_value_type(writer, out, 1, profile->types[type]);
    put_samples(writer, out, type);
    wire_put_fixed64(out, 3, (uint64_t)profile->time_ns);
    wire_put_i64(out, 4, profile->duration_ns);
    if (has_period(profile, type)) {
        put_value_type(writer, out, 5, profile->period_type);
        wire_put_i64(out, 6, profile->period);
    }
}

/* Profiles of two resources can have the same content, such as the memory of a cgroup that two
 * services share, and are two profiles. */
static uint64_t resource_seed(const struct writer *writer)
{
    uint64_t seed = 0;
    for (size_t i = 0; i < writer->shared_count; i++) {
        const struct profile_label *label = &writer->shared[i];
        const struct profile_string *key = &writer->profile->strings[label->key];
        const struct profile_string *text = &writer->profile->strings[label->text];
        seed = XXH3_64bits_withSeed(key->data, key->length, seed);
        seed = XXH3_64bits_withSeed(text->data, text->length, seed ^ (uint64_t)label->number);
    }
    return seed;
}

/* The id is derived from the content and the resource: the same profile is the same bytes, and
 * another has another id. */
static void put_profile_end(struct buffer *out, XXH128_hash_t hash, const struct buffer *attributes)
{
    uint64_t id[2] = {hash.high64, hash.low64 | 1};
    wire_put_bytes(out, 7, id, sizeof(id));
    if (attributes->length)
        wire_put_bytes(out, 11, attributes->data, attributes->length);
}

/* ---- the whole ---- */

static const struct profile_label *shared_label(const struct writer *writer, const char *key)
{
    for (size_t i = 0; i < writer->shared_count; i++)
        if (writer->shared[i].text &&
            !strcmp(profile_text(writer->profile, writer->shared[i].key), key))
            return &writer->shared[i];
    return NULL;
}

static void put_resource(const struct writer *writer, struct buffer *out,
                         const struct profile_label *scope_name,
                         const struct profile_label *scope_version)
{
    const struct profile *profile = writer->profile;
    size_t mark = wire_begin(out, 1);
    for (size_t i = 0; i < writer->shared_count; i++) {
        const struct profile_label *label = &writer->shared[i];
        if (label == scope_name || label == scope_version)
            continue;
        _cleanup_buffer_ struct buffer any = {0};
        otlp_put_any_label(&any, profile, label);
        put_key_value(out, 1, &profile->strings[label->key], &any);
    }
    wire_end(out, mark);
}

static void put_scope(const struct writer *writer, struct buffer *out,
                      const struct profile_label *name, const struct profile_label *version)
{
    static const struct profile_string key = {"pprof.scope.default_sample_type", 31};
    const struct profile *profile = writer->profile;
    const char *name_text = name ? profile_text(profile, name->text) : "assay";
    const char *version_text = version ? profile_text(profile, version->text)
                               : name  ? ""
                                       : ASSAY_VERSION;
    size_t mark = wire_begin(out, 1);
    wire_put_bytes(out, 1, name_text, strlen(name_text));
    if (*version_text)
        wire_put_bytes(out, 2, version_text, strlen(version_text));
    if (profile->type_count) {
        const struct profile_type *type = &profile->types[profile_default_type(profile)];
        const struct profile_string *text = &profile->strings[type->type];
        _cleanup_buffer_ struct buffer any = {0};
        otlp_put_any_text(&any, text->data, text->length);
        put_key_value(out, 3, &key, &any);
    }
    wire_end(out, mark);
}

/* The rows from `first` to `end`. */
static void put_resource_profiles(struct writer *writer, struct buffer *out,
                                  const struct buffer *attributes)
{
    const struct profile *profile = writer->profile;
    _cleanup_buffer_ struct buffer scope = {0}, resource = {0}, content = {0};
    const struct profile_label *name = shared_label(writer, "otel.scope.name");
    const struct profile_label *version = name ? shared_label(writer, "otel.scope.version") : NULL;
    uint64_t seed = resource_seed(writer);
    put_scope(writer, &scope, name, version);
    for (unsigned type = 0; type < profile->type_count; type++) {
        content.length = 0;
        put_profile_content(writer, &content, type);
        put_profile_end(&content, XXH3_128bits_withSeed(content.data, content.length, seed),
                        attributes);
        wire_put_bytes(&scope, 2, content.data, content.length);
    }
    put_resource(writer, &resource, name, version);
    wire_put_bytes(&resource, 2, scope.data, scope.length);
    wire_put_bytes(out, 1, resource.data, resource.length);
}

/* ---- in pieces ---- */

/* A Profile's length and digest stand before it or in it, so it is written twice: the first time
 * without output. */
struct measured {
    uint64_t bytes; /* of the content */
    XXH128_hash_t hash;
    struct buffer end;
};

static int digest_piece(void *context, const void *bytes, size_t length)
{
    XXH3_128bits_update(context, bytes, length);
    return 0;
}

static void measure_profile(struct writer *writer, unsigned type, const struct buffer *attributes,
                            struct measured *ret)
{
    XXH3_state_t *state = XXH3_createState();
    struct buffer_drain drain = {
        .take = digest_piece, .context = state, .piece_bytes = PIECE_BYTES};
    _cleanup_buffer_ struct buffer nowhere = {.drain = &drain};
    XXH3_128bits_reset_withSeed(state, resource_seed(writer));
    put_profile_content(writer, &nowhere, type);
    buffer_drain(&nowhere);
    ret->bytes = drain.taken;
    ret->hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    put_profile_end(&ret->end, ret->hash, attributes);
}

static void put_length(struct buffer *out, uint32_t number, uint64_t length)
{
    wire_put_tag(out, number, WIRE_BYTES);
    wire_put_varint(out, length);
}

/* The encoded size of a field with this many bytes. */
static uint64_t field_bytes(uint64_t length)
{
    uint64_t bytes = 2;
    for (uint64_t rest = length >> 7; rest; rest >>= 7)
        bytes++;
    return bytes + length;
}

/* As put_resource_profiles, with none of it in memory. While Profiles are measured, the tables
 * that they need go out; after that nothing is new. */
static void stream_resource_profiles(struct writer *writer, struct buffer *out,
                                     const struct buffer *attributes)
{
    const struct profile *profile = writer->profile;
    _cleanup_buffer_ struct buffer scope = {0}, resource = {0};
    struct measured profiles[PROFILE_TYPES_MAX] = {0};
    const struct profile_label *name = shared_label(writer, "otel.scope.name");
    const struct profile_label *version = name ? shared_label(writer, "otel.scope.version") : NULL;
    put_scope(writer, &scope, name, version);
    put_resource(writer, &resource, name, version);
    otlp_tables_stream(&writer->tables, out);
    uint64_t scope_bytes = scope.length;
    for (unsigned type = 0; type < profile->type_count; type++) {
        measure_profile(writer, type, attributes, &profiles[type]);
        scope_bytes += field_bytes(profiles[type].bytes + profiles[type].end.length);
    }
    otlp_tables_stream(&writer->tables, NULL);
    put_length(out, 1, resource.length + field_bytes(scope_bytes));
    buffer_add(out, resource.data, resource.length);
    put_length(out, 2, scope_bytes);
    buffer_add(out, scope.data, scope.length);
    for (unsigned type = 0; type < profile->type_count; type++) {
        put_length(out, 2, profiles[type].bytes + profiles[type].end.length);
        put_profile_content(writer, out, type);
        buffer_add(out, profiles[type].end.data, profiles[type].end.length);
        buffer_release(&profiles[type].end);
    }
}

void otlp_write(struct buffer *out, const struct profile *profile)
{
    struct writer writer = {.profile = profile, .end = profile->samples.count};
    _cleanup_buffer_ struct buffer attributes = {0};
    otlp_tables_init(&writer.tables, profile);
    find_shared(&writer);
    /* Rows without times are unique already; those with times are put together. */
    if (profile->samples.time_ns)
        order_rows(&writer);
    profile_attributes(&writer, &attributes);
    if (out->drain)
        stream_resource_profiles(&writer, out, &attributes);
    else
        put_resource_profiles(&writer, out, &attributes);
    otlp_tables_write(&writer.tables, out);
    writer_release(&writer);
}

/* All labels of the set of a row are its resource's. */
static void share_labels_of(struct writer *writer, size_t row)
{
    size_t count;
    const struct profile_label *labels =
        profile_labels(writer->profile, writer->profile->samples.labels[row], &count);
    writer->shared = memory_resize(writer->shared, count + 1, sizeof(*labels));
    writer->shared_count = 0;
    for (size_t i = 0; i < count; i++)
        if (labels[i].key && !labels[i].unit)
            writer->shared[writer->shared_count++] = labels[i];
    writer->tables.shared = writer->shared;
    writer->tables.shared_count = writer->shared_count;
}

void otlp_write_by_labels(struct buffer *out, const struct profile *profile)
{
    const struct profile_samples *samples = &profile->samples;
    struct writer writer = {.profile = profile};
    _cleanup_buffer_ struct buffer attributes = {0};
    otlp_tables_init(&writer.tables, profile);
    order_rows(&writer);
    profile_attributes(&writer, &attributes);
    for (; writer.first < samples->count; writer.first = writer.end) {
        uint32_t set = samples->labels[writer.order[writer.first]];
        writer.end = writer.first;
        while (writer.end < samples->count && samples->labels[writer.order[writer.end]] == set)
            writer.end++;
        share_labels_of(&writer, writer.order[writer.first]);
        put_resource_profiles(&writer, out, &attributes);
    }
    otlp_tables_write(&writer.tables, out);
    writer_release(&writer);
}
