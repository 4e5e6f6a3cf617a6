// SPDX-License-Identifier: Apache-2.0
// OTLP's samples: telling their layouts apart, and keeping them as rows of raw indexes until the
// dictionary is known. This is the hot path of ingest: a sample costs a walk over its few fields,
// one hash of its attributes and one append.
//
// Field:      1      2           3            4       5
// 1.8, 1.9    stack  values      attributes   link    timestamps
// 1.10, 1.11  stack  attributes  link         values  timestamps

#include <stdlib.h>
#include <string.h>

#include "format/otlp/model.h"

#define DECIDED_BY_VOTES 16           /* a lead that ends the doubt before the Profile does */
#define DOUBT_LIMIT_BYTES (64u << 20) /* samples held because nothing has told their layout */
#define NEITHER INT32_MIN

static int refuse_old(const struct otlp_model *model, struct error *error)
{
    return error_set(error, -ENOTSUP,
                     "The Sample that ends at offset %llu has the layout of OTLP profiles 1.7 or "
                     "older; supported are 1.8 to 1.11: update the sender.",
                     (unsigned long long)model->offset);
}

static inline void gather(struct otlp_numbers *numbers, const struct wire_field *field)
{
    struct wire bytes = wire_repeated(field);
    size_t length = (size_t)(bytes.end - bytes.at);
    if (!numbers->fields++) {
        numbers->data = bytes.at;
        numbers->length = length;
        numbers->packed = field->type == WIRE_BYTES;
        return;
    }
    numbers->packed |= field->type == WIRE_BYTES;
    if (numbers->fields == 2) {
        numbers->joined.length = 0;
        buffer_add(&numbers->joined, numbers->data, numbers->length);
    }
    buffer_add(&numbers->joined, bytes.at, length);
    numbers->data = (const uint8_t *)numbers->joined.data;
    numbers->length = numbers->joined.length;
}

/* Takes a Sample apart into model->numbers. */
static int parse(struct otlp_model *model, const void *data, size_t length, struct error *error)
{
    struct otlp_numbers *numbers = model->numbers;
    for (int i = 1; i <= 5; i++) {
        numbers[i].data = (const uint8_t *)"";
        numbers[i].fields = 0;
        numbers[i].length = 0;
        numbers[i].packed = false;
    }
    struct wire wire = wire_of(data, length);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        bool fits = field.type == WIRE_BYTES ||
                    field.type == (field.number == 5 ? WIRE_FIXED64 : WIRE_VARINT);
        if (field.number <= 5 && fits)
            gather(&numbers[field.number], &field);
    }
    if (r < 0 || numbers[5].length % 8)
        return otlp_malformed(model, "Sample", error);
    return 0;
}

static size_t count_varints(const struct otlp_numbers *numbers)
{
    size_t count = 0;
    for (size_t i = 0; i < numbers->length; i++)
        count += numbers->data[i] < 0x80;
    return count;
}

/* The last of a field's numbers, which is what counts for one that isn't repeated; 0 if none. */
static bool last_number(const struct otlp_numbers *numbers, uint64_t *ret_value)
{
    struct wire wire = wire_of(numbers->data, numbers->length);
    *ret_value = 0;
    while (wire.at < wire.end)
        if (!wire_varint(&wire, ret_value))
            return false;
    return true;
}

enum evidence {
    CERTAIN = 4, /* the shape is impossible in the other layout */
    LIKELY = 2,  /* the other layout would make it a sample without a value */
    WEAK = 1,    /* encoders that are known write it so */
};

/* Positive for 1.10, negative for 1.8 and 1.9, 0: it could be both; NEITHER. */
static int judge(const struct otlp_numbers *numbers)
{
    const struct otlp_numbers *second = &numbers[2], *third = &numbers[3], *fourth = &numbers[4];
    /* A link is one plain number; attributes and values are lists, packed by most encoders. */
    bool third_is_list = third->packed || third->fields > 1;
    bool fourth_is_list = fourth->packed || fourth->fields > 1;
    if (third_is_list || fourth_is_list)
        return third_is_list && fourth_is_list ? NEITHER : third_is_list ? -CERTAIN : CERTAIN;
    size_t times = numbers[5].length / 8, count = count_varints(second);
    bool old = times ? !count || count == times : count == 1;
    bool new = times ? !fourth->fields || times == 1 : fourth->fields;
    if (old != new)
        return old ? -LIKELY : LIKELY;
    /* Both fit (a link, or a value that async-profiler writes unpacked), or neither does. */
    if (count && fourth->fields)
        return second->packed ? -WEAK : WEAK;
    return !old && count ? -WEAK : 0;
}

/* ---- rows ---- */

static uint32_t attributes_id(struct otlp_model *model, const uint8_t *data, size_t length)
{
    if (!length || !(model->profile->detail & PROFILE_LABELS))
        return 0;
    struct otlp_blob *last = &model->last_attributes;
    if (last->length != length || memcmp(last->data, data, length)) {
        model->last_attributes_id = otlp_blob(&model->blobs, data, length);
        *last = model->blobs.items[model->last_attributes_id];
    }
    return model->last_attributes_id;
}

/* Field by field into its place: a copy would be loaded in larger pieces than it was just written
 * in, for which the CPU has to wait. */
static inline int add_row(struct otlp_model *model, struct otlp_row row, struct error *error)
{
    if (unlikely(model->row_count > PROFILE_IDS_MAX || memory_full()))
        return error_set(error, -E2BIG, "There are too many samples before offset %llu.",
                         (unsigned long long)model->offset);
    array_reserve(model->rows, model->row_capacity, model->row_count + 1);
    struct otlp_row *added = &model->rows[model->row_count++];
    added->series = row.series;
    added->stack = row.stack;
    added->link = row.link;
    added->attributes = row.attributes;
    added->value = row.value;
    added->time_ns = row.time_ns;
    return 0;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* One row per observation, where times are wanted and each has one. */
static int add_events(struct otlp_model *model, struct otlp_row *row, struct wire values,
                      struct wire times, struct error *error)
{
    bool counted = values.at == values.end;
    while (times.at < times.end) {
        uint64_t value = 1;
        if (!wire_fixed64(&times, &row->time_ns) || (!counted && !wire_varint(&values, &value)))
            return otlp_malformed(model, "Sample", error);
        row->value = (int64_t)value;
        int r = add_row(model, *row, error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Makes rows of the Sample in model->numbers, once its layout is known. */
static int add_sample(struct otlp_model *model, uint32_t series, enum otlp_layout layout,
                      struct error *error)
{
    const struct otlp_numbers *numbers = model->numbers;
    bool new = layout == OTLP_1_10;
    const struct otlp_numbers *attributes = &numbers[new ? 2 : 3], *link = &numbers[new ? 3 : 4],
                              *values = &numbers[new ? 4 : 2];
    size_t times = numbers[5].length / 8;
    uint64_t stack_index, link_index;
    struct otlp_row row = {.series = series};
    if (!last_number(&numbers[1], &stack_index) || !last_number(link, &link_index))
        return otlp_malformed(model, "Sample", error);
    int r = otlp_index(model, stack_index, "Sample", &row.stack, error);
    if (!r)
        r = otlp_index(model, link_index, "Sample", &row.link, error);
    if (r < 0)
        return r;
    if (!(model->profile->detail & PROFILE_LINKS))
        row.link = 0;
    row.attributes = attributes_id(model, attributes->data, attributes->length);
    if (!values->length && !times)
        return 0;
    struct wire wire = wire_of(values->data, values->length);
    if (times && model->profile->detail & PROFILE_TIMES &&
        (!values->length || count_varints(values) == times))
        return add_events(model, &row, wire, wire_of(numbers[5].data, numbers[5].length), error);
    if (!values->length)
        row.value = (int64_t)times;
    while (wire.at < wire.end) {
        uint64_t value;
        if (!wire_varint(&wire, &value))
            return otlp_malformed(model, "Sample", error);
        row.value = saturating_add(row.value, (int64_t)value);
    }
    return add_row(model, row, error);
}

/* A Sample as encoders write those of 1.10: each field once and in order, one value and no times.
 * Its values are packed and its link isn't, so that it can't be an older one. False: anything else,
 * for parse() to take apart. */
static bool plain_row(struct otlp_model *model, const void *data, size_t length,
                      struct otlp_row *row)
{
    enum {
        STACK = WIRE_TAG(1, WIRE_VARINT),
        ATTRIBUTES = WIRE_TAG(2, WIRE_BYTES),
        LINK = WIRE_TAG(3, WIRE_VARINT),
        VALUES = WIRE_TAG(4, WIRE_BYTES),
    };
    struct wire wire = wire_of(data, length);
    uint64_t stack = 0, link = 0, attributes = 0, values, value;
    if (wire.at < wire.end && *wire.at == STACK && !wire_tagged(&wire, &stack))
        return false;
    const uint8_t *attribute_data = wire.at;
    if (wire.at < wire.end && *wire.at == ATTRIBUTES) {
        if (!wire_tagged(&wire, &attributes) || attributes > (size_t)(wire.end - wire.at))
            return false;
        attribute_data = wire.at;
        wire.at += attributes;
    }
    if (wire.at < wire.end && *wire.at == LINK && !wire_tagged(&wire, &link))
        return false;
    if (wire.at == wire.end || *wire.at != VALUES || !wire_tagged(&wire, &values) ||
        values != (size_t)(wire.end - wire.at) || !wire_varint_near_end(&wire, data, &value) ||
        wire.at != wire.end || stack > OTLP_INDEX_MAX || link > OTLP_INDEX_MAX)
        return false;
    row->stack = (uint32_t)stack;
    row->link = model->profile->detail & PROFILE_LINKS ? (uint32_t)link : 0;
    row->attributes = attributes_id(model, attribute_data, (size_t)attributes);
    row->value = (int64_t)value;
    row->time_ns = 0;
    return true;
}

/* ---- doubt ---- */

static enum otlp_layout layout_by_votes(int64_t votes)
{
    return votes < 0 ? OTLP_1_9 : OTLP_1_10;
}

/* Makes rows of the samples in doubtful[start..end). */
static int add_doubtful(struct otlp_model *model, uint32_t series, size_t start, size_t end,
                        enum otlp_layout layout, struct error *error)
{
    while (start < end) {
        uint32_t length;
        memcpy(&length, model->doubtful.data + start, sizeof(length));
        start += sizeof(length);
        int r = parse(model, model->doubtful.data + start, length, error);
        if (!r)
            r = add_sample(model, series, layout, error);
        if (r < 0)
            return r;
        start += length;
    }
    return 0;
}

int otlp_decide(struct otlp_model *model, enum otlp_layout layout, struct error *error)
{
    struct otlp_profile_state *current = &model->current;
    size_t end = model->doubtful.length;
    current->decided = true;
    current->layout = layout;
    int r = 0;
    if (end > current->doubt_start)
        r = add_doubtful(model, current->series, current->doubt_start, end, layout, error);
    model->doubtful.length = current->doubt_start;
    return r;
}

/* Out of room or with a clear lead: by what this Profile has shown, or else the others. */
static int decide_early(struct otlp_model *model, struct error *error)
{
    struct otlp_profile_state *current = &model->current;
    int64_t votes = current->votes ? current->votes : model->votes ? model->votes : current->weak;
    if (!votes)
        model->summary.guessed++;
    return otlp_decide(model, layout_by_votes(votes), error);
}

static int hold(struct otlp_model *model, const void *data, size_t length, struct error *error)
{
    uint32_t prefix = (uint32_t)length;
    buffer_add(&model->doubtful, &prefix, sizeof(prefix));
    buffer_add(&model->doubtful, data, length);
    int votes = model->current.votes;
    if (votes >= DECIDED_BY_VOTES || votes <= -DECIDED_BY_VOTES ||
        model->doubtful.length > DOUBT_LIMIT_BYTES)
        return decide_early(model, error);
    return 0;
}

int otlp_sample(struct otlp_model *model, const void *data, size_t length, struct error *error)
{
    struct otlp_profile_state *current = &model->current;
    struct otlp_numbers *numbers = model->numbers;
    if (model->row_count >= model->compact_at)
        otlp_compact(model);
    struct otlp_row row;
    bool plain = !model->json && plain_row(model, data, length, &row);
    int r = plain ? 0 : parse(model, data, length, error);
    if (r < 0)
        return r;
    model->summary.samples++;
    current->samples++;
    uint32_t series = otlp_current_series(model);
    if (plain) {
        current->votes++;
        row.series = series;
        return add_row(model, row, error);
    }
    if (model->json || !(numbers[2].fields | numbers[3].fields | numbers[4].fields))
        return add_sample(model, series, OTLP_1_10, error);
    int verdict = judge(numbers);
    if (verdict == NEITHER)
        return refuse_old(model, error);
    int sign = (verdict > 0) - (verdict < 0), weight = abs(verdict);
    if (weight >= LIKELY)
        current->votes += sign;
    else
        current->weak += sign;
    if (weight == CERTAIN)
        return add_sample(model, series, layout_by_votes(sign), error);
    if (current->decided)
        return add_sample(model, series, current->layout, error);
    return hold(model, data, length, error);
}

/* ---- after the last message: Profiles that left a doubt ---- */

static bool all_below(const struct otlp_numbers *numbers, size_t count)
{
    struct wire wire = wire_of(numbers->data, numbers->length);
    uint64_t index;
    while (wire.at < wire.end)
        if (!wire_varint(&wire, &index) || (index && index >= count))
            return false;
    return true;
}

/* Which of the layouts gives indexes that exist: bit 0 for 1.9, bit 1 for 1.10. */
static int plausible(struct otlp_model *model, const struct otlp_undecided *doubt,
                     struct error *error)
{
    size_t attributes = model->dictionary.attribute_count, links = model->dictionary.link_count;
    int layouts = 3;
    for (size_t at = doubt->start; at < doubt->end && layouts;) {
        uint32_t length;
        memcpy(&length, model->doubtful.data + at, sizeof(length));
        at += sizeof(length);
        int r = parse(model, model->doubtful.data + at, length, error);
        if (r < 0)
            return r;
        const struct otlp_numbers *numbers = model->numbers;
        if (!all_below(&numbers[3], attributes) || !all_below(&numbers[4], links))
            layouts &= ~1;
        if (!all_below(&numbers[2], attributes) || !all_below(&numbers[3], links))
            layouts &= ~2;
        at += length;
    }
    return layouts;
}

/* One request comes from one encoder, so other Profiles' votes are the best sign; then indexes
 * that exist in one layout only; then the habits of known encoders. */
static int decide_one(struct otlp_model *model, const struct otlp_undecided *doubt,
                      struct error *error)
{
    int64_t votes = model->votes;
    if (!votes) {
        int layouts = plausible(model, doubt, error);
        if (layouts < 0)
            return layouts;
        votes = layouts == 1 ? -1 : layouts == 2 ? 1 : doubt->weak;
    }
    if (!votes)
        model->summary.guessed++;
    enum otlp_layout layout = layout_by_votes(votes);
    model->summary.by_layout[layout]++;
    return add_doubtful(model, doubt->series, doubt->start, doubt->end, layout, error);
}

int otlp_decide_rest(struct otlp_model *model, struct error *error)
{
    for (size_t i = 0; i < model->undecided_count; i++) {
        int r = decide_one(model, &model->undecided[i], error);
        if (r < 0)
            return r;
    }
    return 0;
}
