// SPDX-License-Identifier: Apache-2.0
// OTLP profiles as protobuf: walking through a stream of them. Nothing larger than one sample, one
// resource or one entry of a table is ever held; what they mean is in otlp_model.h.

#include "format/otlp/otlp.h"

#include "format/format.h"
#include "format/otlp/model.h"

/* The content of a BYTES field, unless it is there already. */
static int take(struct wire_stream *stream, struct otlp_model *model, struct wire_field *field,
                bool whole, struct error *error)
{
    if (field->length > OTLP_MESSAGE_LIMIT)
        return error_set(error, -E2BIG, "The message at offset %llu is larger than %u MiB.",
                         (unsigned long long)source_offset(stream->source),
                         OTLP_MESSAGE_LIMIT >> 20);
    int r = whole ? 0 : wire_stream_bytes(stream, field, error);
    model->offset = source_offset(stream->source);
    return r;
}

/* The next field, with its content where all of it is in the window already: nearly always. */
static int next_field(struct wire_stream *stream, struct wire_field *field, bool *ret_whole,
                      struct error *error)
{
    *ret_whole = wire_stream_quick(stream, field);
    return *ret_whole ? 1 : wire_stream_next(stream, field, error);
}

/* Samples that follow each other in the window, up to anything else. */
static int read_samples(struct wire_stream *stream, struct otlp_model *model, struct error *error)
{
    struct wire wire;
    struct wire_field field;
    int r = 0;
    if (!wire_stream_rest(stream, &wire) || wire.end - wire.at > OTLP_MESSAGE_LIMIT)
        return 0;
    const uint8_t *start = wire.at;
    const uint64_t offset = source_offset(stream->source);
    while (!r && wire.at < wire.end && *wire.at == WIRE_TAG(2, WIRE_BYTES) &&
           wire_next(&wire, &field) > 0) {
        model->offset = offset + (uint64_t)(wire.at - start);
        r = otlp_sample(model, field.data, field.length, error);
    }
    source_skip(stream->source, (size_t)(wire.at - start));
    return r;
}

static int read_profile(struct wire_stream *stream, struct otlp_model *model, struct error *error)
{
    struct wire_field field;
    bool whole;
    int r;
    otlp_begin_profile(model);
    while ((r = read_samples(stream, model, error)) >= 0 &&
           (r = next_field(stream, &field, &whole, error)) > 0) {
        r = 0;
        model->offset = source_offset(stream->source);
        if (field.type == WIRE_BYTES) {
            if (field.number <= 2 || field.length <= OTLP_FIELD_LIMIT) {
                r = take(stream, model, &field, whole, error);
            } else { /* an original payload: skipped, however large */
                field.data = (const uint8_t *)"";
                field.length = 0;
            }
        }
        if (!r)
            r = otlp_profile_field(model, &field, error);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : otlp_end_profile(model, error);
}

/* Resources and scopes have the same shape: field 1 describes them, field 2 is what they hold. */
struct level {
    void (*describe)(struct otlp_model *model, const void *data, size_t length);
    int (*read_inner)(struct wire_stream *stream, struct otlp_model *model, struct error *error);
    void (*end)(struct otlp_model *model);
};

static int read_level(struct wire_stream *stream, struct otlp_model *model,
                      const struct level *level, struct error *error)
{
    struct wire_field field;
    int r;
    while ((r = wire_stream_next(stream, &field, error)) > 0) {
        r = source_check_memory(error);
        if (r < 0)
            return r;
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1) {
            r = take(stream, model, &field, false, error);
            if (!r)
                level->describe(model, field.data, field.length);
        } else if (field.number == 2) {
            r = wire_stream_enter(stream, &field, error);
            if (!r)
                r = level->read_inner(stream, model, error);
            wire_stream_leave(stream);
        }
        if (r < 0)
            return r;
    }
    level->end(model);
    return r;
}

static int read_scope(struct wire_stream *stream, struct otlp_model *model, struct error *error)
{
    static const struct level scope = {otlp_scope, read_profile, otlp_end_scope};
    return read_level(stream, model, &scope, error);
}

static int read_resource(struct wire_stream *stream, struct otlp_model *model, struct error *error)
{
    static const struct level resource = {otlp_resource, read_scope, otlp_end_resource};
    return read_level(stream, model, &resource, error);
}

/* The entries of a dictionary that is in the window, up to its end or to something that is wrong
 * with it, which is for the stream to say. */
static int read_entries(struct source *source, struct wire wire, struct otlp_model *model,
                        struct error *error)
{
    const uint8_t *start = wire.at;
    const uint64_t offset = source_offset(source);
    struct wire_field field;
    int r = 0;
    while (!r && wire_next(&wire, &field) > 0) {
        if (field.type != WIRE_BYTES || field.number > OTLP_STACKS)
            continue;
        model->offset = offset + (uint64_t)(wire.at - start);
        r = otlp_dictionary_entry(model, field.number, field.data, field.length, error);
    }
    source_skip(source, (size_t)(wire.at - start));
    return r;
}

static int read_dictionary(struct wire_stream *stream, struct otlp_model *model,
                           struct error *error)
{
    struct wire_field field;
    struct wire rest;
    bool whole;
    int r = 0;
    if (wire_stream_rest(stream, &rest) && rest.end - rest.at <= OTLP_MESSAGE_LIMIT)
        r = read_entries(stream->source, rest, model, error);
    if (r < 0)
        return r;
    while ((r = next_field(stream, &field, &whole, error)) > 0) {
        if (field.type != WIRE_BYTES || field.number > OTLP_STACKS)
            continue;
        r = take(stream, model, &field, whole, error);
        if (!r)
            r = otlp_dictionary_entry(model, field.number, field.data, field.length, error);
        if (r < 0)
            return r;
    }
    return r;
}

static int read_request(struct wire_stream *stream, struct otlp_model *model, struct error *error)
{
    struct wire_field field;
    int r;
    while ((r = wire_stream_next(stream, &field, error)) > 0) {
        if (field.type != WIRE_BYTES || field.number > 2)
            continue;
        if (field.number == 2)
            otlp_dictionary_reserve(&model->dictionary, field.length);
        r = wire_stream_enter(stream, &field, error);
        if (!r)
            r = field.number == 1 ? read_resource(stream, model, error)
                                  : read_dictionary(stream, model, error);
        wire_stream_leave(stream);
        if (r < 0)
            return r;
    }
    return r;
}

static int read_model(struct source *source, struct otlp_model *model,
                      struct otlp_summary *ret_summary, struct error *error)
{
    struct wire_stream stream;
    wire_stream_init(&stream, source);
    int r = read_request(&stream, model, error);
    model->offset = source_offset(source);
    struct otlp_summary summary = {0};
    if (!r)
        r = otlp_model_finish(model, &summary, error);
    if (!r && ret_summary)
        *ret_summary = summary;
    otlp_model_release(model);
    return r;
}

int otlp_read(struct source *source, struct profile *profile, struct otlp_summary *ret_summary,
              struct error *error)
{
    struct otlp_model model;
    otlp_model_init(&model, profile);
    return read_model(source, &model, ret_summary, error);
}

int otlp_read_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                         struct otlp_summary *ret_summary, struct error *error)
{
    struct otlp_model model;
    otlp_model_init(&model, profile);
    otlp_model_unresolve(&model, seed);
    return read_model(source, &model, ret_summary, error);
}

static int read_format_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                                  struct error *error)
{
    return otlp_read_unresolved(source, seed, profile, NULL, error);
}

static int read_format(struct source *source, struct profile *profile, struct error *error)
{
    return otlp_read(source, profile, NULL, error);
}

static int write_format(struct buffer *out, const struct profile *profile,
                        const struct write_options *options, struct error *error)
{
    (void)options;
    (void)error;
    otlp_write(out, profile);
    return 0;
}

const struct format format_otlp = {
    .name = "otlp",
    .summary = "OpenTelemetry profiles, protobuf; reads the layouts of 1.8 to 1.11",
    .extensions = ".otlp .otlp.pb .otlp.gz .otlp.pb.gz",
    .gzip = false,
    .detail = PROFILE_ALL,
    .detect = otlp_detect,
    .read = read_format,
    .read_unresolved = read_format_unresolved,
    .write = write_format,
};
