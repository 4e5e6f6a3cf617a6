// SPDX-License-Identifier: Apache-2.0
// Records of perf.data, taken apart by what their event's attributes say they hold.

#include "format/perfdata/perfdata.h"

struct words {
    const uint8_t *at, *end;
    bool short_of;
};

static uint64_t take_u64(struct words *words)
{
    if (words->end - words->at < 8) {
        words->short_of = true;
        return 0;
    }
    uint64_t value = perf_load_u64(words->at);
    words->at += 8;
    return value;
}

static const uint8_t *take_bytes(struct words *words, uint64_t count)
{
    const uint8_t *bytes = words->at;
    if ((uint64_t)(words->end - words->at) < count) {
        words->short_of = true;
        return bytes;
    }
    words->at += count;
    return bytes;
}

static const uint8_t *take_words(struct words *words, uint64_t count)
{
    if (count > (uint64_t)(words->end - words->at) / 8) {
        words->short_of = true;
        return words->at;
    }
    return take_bytes(words, count * 8);
}

uint32_t perf_find_event(const struct perf_data *data, uint64_t id)
{
    struct id_probe probe = id_probe_start(hash_word(id ^ data->seed));
    uint32_t found;
    while ((found = id_table_next(&data->id_index, &probe)) != ID_NONE)
        if (data->ids[found].id == id)
            return data->ids[found].event;
    return 0;
}

/* Words of a sample before the event's id. */
static int id_position(uint64_t type)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        return 0;
    if (!(type & PERF_SAMPLE_ID))
        return -1;
    return !!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID) + !!(type & PERF_SAMPLE_TIME) +
           !!(type & PERF_SAMPLE_ADDR);
}

/* Words from a record's end to the start of a field of its trailer; 0: it has none. */
static unsigned trailer_position(uint64_t type, uint64_t field)
{
    static const uint64_t order[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU,
                                     PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_ID,
                                     PERF_SAMPLE_TIME,       PERF_SAMPLE_TID};
    unsigned words = 0;
    for (size_t i = 0; type & field && i < ARRAY_LENGTH(order); i++) {
        words += !!(type & order[i]);
        if (order[i] == field)
            return words;
    }
    return 0;
}

static bool word_at(const struct perf_event_header *header, size_t offset, uint64_t *ret_value)
{
    if (offset < sizeof(*header) || offset + 8 > header->size)
        return false;
    *ret_value = perf_load_u64((const uint8_t *)header + offset);
    return true;
}

static uint32_t event_by(const struct perf_data *data, const struct perf_event_header *header,
                         size_t offset)
{
    uint64_t id;
    return word_at(header, offset, &id) ? perf_find_event(data, id) : 0;
}

/* All events of a recording have their ids in the same place. */
uint32_t perf_record_event(const struct perf_data *data, const struct perf_event_header *header,
                           uint64_t *ret_time)
{
    const struct perf_event_attr *first = &data->events[0].attr;
    bool is_sample = header->type == PERF_RECORD_SAMPLE;
    uint32_t event = 0;
    *ret_time = 0;
    if (!is_sample && !first->sample_id_all)
        return 0;
    if (data->event_count > 1 && is_sample && id_position(first->sample_type) >= 0) {
        event =
            event_by(data, header, sizeof(*header) + 8 * (size_t)id_position(first->sample_type));
    } else if (data->event_count > 1 && !is_sample) {
        uint64_t field =
            first->sample_type & PERF_SAMPLE_IDENTIFIER ? PERF_SAMPLE_IDENTIFIER : PERF_SAMPLE_ID;
        unsigned back = trailer_position(first->sample_type, field);
        event =
            back && header->size > 8 * back ? event_by(data, header, header->size - 8 * back) : 0;
    }
    uint64_t type = data->events[event].attr.sample_type;
    if (!(type & PERF_SAMPLE_TIME))
        return event;
    size_t before =
        !!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID);
    size_t back = 8 * (size_t)trailer_position(type, PERF_SAMPLE_TIME);
    if (is_sample)
        word_at(header, sizeof(*header) + 8 * before, ret_time);
    else if (header->size > back)
        word_at(header, header->size - back, ret_time);
    return event;
}

static void skip_read(struct words *words, uint64_t format)
{
    uint64_t times =
        !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
    uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_DATA_FORMAT_LOST);
    if (!(format & PERF_FORMAT_GROUP)) {
        take_words(words, each + times);
        return;
    }
    uint64_t count = take_u64(words);
    take_words(words, times);
    if (count > 4096)
        words->short_of = true;
    else
        take_words(words, count * each);
}

static void take_branches(struct words *words, uint64_t branch_type, struct perf_sample *ret)
{
    uint64_t count = take_u64(words);
    if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
        take_u64(words);
    if (count > 4096)
        words->short_of = true;
    else
        ret->branches = take_words(words, count * 3);
    if (words->short_of)
        return;
    ret->branch_count = count;
    ret->branch_bytes = 3 * 8;
    /* Counters come behind all branches. */
    if (branch_type & PERF_DATA_BRANCH_COUNTERS)
        take_words(words, count);
}

static void skip_raw(struct words *words)
{
    const uint8_t *at = take_bytes(words, 4);
    if (words->short_of)
        return;
    /* Padded so that the next field is aligned. */
    uint64_t bytes = perf_load_u32(at);
    take_bytes(words, bytes);
    while (!words->short_of && (bytes + 4) % 8) {
        take_bytes(words, 1);
        bytes++;
    }
}

bool perf_decode_sample(const struct perf_data *data, const struct perf_event_kind *event,
                        const struct perf_event_header *header, struct perf_sample *ret)
{
    (void)data;
    const struct perf_event_attr *attr = &event->attr;
    uint64_t type = attr->sample_type;
    struct words words = {.at = (const uint8_t *)(header + 1),
                          .end = (const uint8_t *)header + header->size};
    *ret = (struct perf_sample){.period = attr->freq ? 1 : attr->sample_period};
    if (type & PERF_SAMPLE_IDENTIFIER)
        take_u64(&words);
    if (type & PERF_SAMPLE_IP)
        ret->ip = take_u64(&words), ret->has_ip = true;
    if (type & PERF_SAMPLE_TID) {
        uint64_t both = take_u64(&words);
        ret->pid = (uint32_t)both;
        ret->tid = (uint32_t)(both >> 32);
        ret->has_tid = true;
    }
    if (type & PERF_SAMPLE_TIME)
        ret->time = take_u64(&words), ret->has_time = true;
    /* ADDR, ID, STREAM_ID, CPU */
    take_words(&words, (unsigned)(!!(type & PERF_SAMPLE_ADDR) + !!(type & PERF_SAMPLE_ID) +
                                  !!(type & PERF_SAMPLE_STREAM_ID) + !!(type & PERF_SAMPLE_CPU)));
    if (type & PERF_SAMPLE_PERIOD)
        ret->period = take_u64(&words), ret->has_period = true;
    if (type & PERF_SAMPLE_READ)
        skip_read(&words, attr->read_format);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        ret->chain_count = take_u64(&words);
        ret->chain = take_words(&words, ret->chain_count);
    }
    if (type & PERF_SAMPLE_RAW)
        skip_raw(&words);
    if (type & PERF_SAMPLE_BRANCH_STACK)
        take_branches(&words, attr->branch_sample_type, ret);
    if (type & PERF_SAMPLE_REGS_USER) {
        ret->registers_abi = take_u64(&words);
        if (ret->registers_abi)
            ret->registers =
                take_words(&words, (unsigned)__builtin_popcountll(attr->sample_regs_user));
    }
    if (type & PERF_SAMPLE_STACK_USER) {
        uint64_t size = take_u64(&words);
        ret->stack = take_bytes(&words, size);
        if (size)
            ret->stack_bytes = MIN(take_u64(&words), size);
    }
    return !words.short_of;
}
