// SPDX-License-Identifier: Apache-2.0
// OTLP profiles as JSON: walking through the document. Each message is transcoded to protobuf and
// handed on as if it had come so. Names tell 1.8 apart, and 1.9 to 1.11 have the same ones.

#include <string.h>

#include "format/format.h"
#include "format/otlp/otlp.h"
#include "format/otlp/transcode.h"

struct reader {
    struct json json;
    struct otlp_model model;
    struct buffer message;
};

/* The next value as a message in reader->message. */
static int transcode(struct reader *reader, enum otlp_message kind)
{
    reader->message.length = 0;
    buffer_reserve(&reader->message, 1); /* an empty message has an address, too */
    int r = otlp_transcode(&reader->json, kind, &reader->message);
    reader->model.offset = source_offset(reader->json.source);
    if (!r && reader->message.length > OTLP_MESSAGE_LIMIT)
        return json_fail(&reader->json, "The JSON has a message that is too large");
    return r;
}

static int message_field(struct reader *reader, uint32_t number, enum otlp_message kind,
                         struct error *error)
{
    int r = transcode(reader, kind);
    struct wire_field field = {.number = number,
                               .type = WIRE_BYTES,
                               .data = (const uint8_t *)reader->message.data,
                               .length = reader->message.length};
    return r ? r : otlp_profile_field(&reader->model, &field, error);
}

static int number_field(struct reader *reader, uint32_t number, enum wire_type type,
                        struct error *error)
{
    struct wire_field field = {.number = number, .type = type};
    int r = number == 6 ? json_i64_or_text(&reader->json, (int64_t *)&field.value)
                        : json_u64_or_text(&reader->json, &field.value);
    return r ? r : otlp_profile_field(&reader->model, &field, error);
}

static int list_field(struct reader *reader, uint32_t number, struct error *error)
{
    reader->message.length = 0;
    buffer_reserve(&reader->message, 1);
    int r = otlp_transcode_numbers(&reader->json, &reader->message);
    struct wire_field field = {.number = number,
                               .type = WIRE_BYTES,
                               .data = (const uint8_t *)reader->message.data,
                               .length = reader->message.length};
    return r ? r : otlp_profile_field(&reader->model, &field, error);
}

/* Calls `element` for each object of the array that comes next. */
static int each(struct reader *reader, int (*element)(struct reader *, struct error *),
                struct error *error)
{
    struct json *json = &reader->json;
    if (json_null(json))
        return json->failed;
    int r = json_array(json);
    while (!r && (r = json_next_element(json)) > 0)
        r = element(reader, error);
    return r;
}

static int read_sample(struct reader *reader, struct error *error)
{
    return message_field(reader, 2, OTLP_SAMPLE, error);
}

#define PROFILE_ID 0xff /* its number depends on the layout */

/* The members of a Profile that are read, by field number; 1.8 called its samples "sample". */
static const struct {
    const char *name;
    uint8_t number;
    bool is_1_8;
} members[] = {
    {"sampleType", 1, false},
    {"samples", 2, false},
    {"sample", 2, true},
    {"timeUnixNano", 3, false},
    {"durationNano", 4, false},
    {"periodType", 5, false},
    {"period", 6, false},
    {"commentStrindices", 7, true},
    {"attributeIndices", 11, false},
    {"profileId", PROFILE_ID, false},
};

static int read_profile_id(struct reader *reader)
{
    reader->message.length = 0;
    int r = otlp_transcode_id(&reader->json, &reader->message);
    if (!r && reader->message.length == OTLP_PROFILE_ID_BYTES)
        memcpy(reader->model.current.id, reader->message.data, OTLP_PROFILE_ID_BYTES);
    return r;
}

static int read_profile_member(struct reader *reader, const struct json_string *key,
                               struct error *error)
{
    unsigned number = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(members) && !number; i++) {
        if (!otlp_key_is(key, members[i].name))
            continue;
        number = members[i].number;
        reader->model.current.is_1_8 |= members[i].is_1_8;
    }
    if (!number)
        return otlp_refuse_old_key(&reader->json, key);
    if (json_null(&reader->json))
        return reader->json.failed;
    switch (number) {
    case 1:
    case 5:
        return message_field(reader, number, OTLP_VALUE_TYPE, error);
    case 2:
        return each(reader, read_sample, error);
    case 3:
        return number_field(reader, number, WIRE_FIXED64, error);
    case PROFILE_ID:
        return read_profile_id(reader);
    case 4:
    case 6:
        return number_field(reader, number, WIRE_VARINT, error);
    default:
        return list_field(reader, number, error);
    }
}

static int read_profile(struct reader *reader, struct error *error)
{
    struct json_string key;
    otlp_begin_profile(&reader->model);
    int r = json_object(&reader->json);
    while (!r && (r = json_next_key(&reader->json, &key)) > 0)
        r = read_profile_member(reader, &key, error);
    return r ? r : otlp_end_profile(&reader->model, error);
}

static int read_scope(struct reader *reader, struct error *error)
{
    struct json_string key;
    int r = json_object(&reader->json);
    while (!r && (r = json_next_key(&reader->json, &key)) > 0) {
        r = 0;
        if (json_is(&key, "profiles")) {
            r = each(reader, read_profile, error);
        } else if (json_is(&key, "scope")) {
            r = transcode(reader, OTLP_SCOPE);
            if (!r)
                otlp_scope(&reader->model, reader->message.data, reader->message.length);
        }
    }
    otlp_end_scope(&reader->model);
    return r;
}

static int read_resource(struct reader *reader, struct error *error)
{
    struct json_string key;
    int r = json_object(&reader->json);
    while (!r && (r = json_next_key(&reader->json, &key)) > 0) {
        r = 0;
        if (otlp_key_is(&key, "scopeProfiles")) {
            r = each(reader, read_scope, error);
        } else if (json_is(&key, "resource")) {
            r = transcode(reader, OTLP_RESOURCE);
            if (!r)
                otlp_resource(&reader->model, reader->message.data, reader->message.length);
        }
    }
    otlp_end_resource(&reader->model);
    return r;
}

static int read_table(struct reader *reader, unsigned table, enum otlp_message kind,
                      struct error *error)
{
    struct json *json = &reader->json;
    if (json_null(json))
        return json->failed;
    int r = json_array(json);
    while (!r && (r = json_next_element(json)) > 0) {
        struct json_string text;
        if (table == OTLP_STRINGS) {
            r = json_string(json, &text);
            reader->model.offset = source_offset(json->source);
            if (!r)
                r = otlp_dictionary_entry(&reader->model, table, text.data, text.length, error);
        } else {
            r = transcode(reader, kind);
            if (!r)
                r = otlp_dictionary_entry(&reader->model, table, reader->message.data,
                                          reader->message.length, error);
        }
    }
    return r;
}

static int read_dictionary(struct reader *reader, struct error *error)
{
    static const struct {
        const char *name;
        enum otlp_table table;
        enum otlp_message message;
    } tables[] = {
        {"mappingTable", OTLP_MAPPINGS, OTLP_MAPPING},
        {"locationTable", OTLP_LOCATIONS, OTLP_LOCATION},
        {"functionTable", OTLP_FUNCTIONS, OTLP_FUNCTION},
        {"linkTable", OTLP_LINKS, OTLP_LINK},
        {"stringTable", OTLP_STRINGS, 0},
        {"attributeTable", OTLP_ATTRIBUTES, OTLP_ATTRIBUTE},
        {"stackTable", OTLP_STACKS, OTLP_STACK},
    };
    struct json_string key;
    int r = json_object(&reader->json);
    while (!r && (r = json_next_key(&reader->json, &key)) > 0) {
        r = 0;
        for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
            if (!otlp_key_is(&key, tables[i].name))
                continue;
            r = read_table(reader, tables[i].table, tables[i].message, error);
            break;
        }
    }
    return r;
}

static int read_request(struct reader *reader, struct error *error)
{
    struct json *json = &reader->json;
    struct json_string key;
    int r = json_object(json);
    while (!r && (r = json_next_key(json, &key)) > 0) {
        if (otlp_key_is(&key, "resourceProfiles"))
            r = each(reader, read_resource, error);
        else if (json_is(&key, "dictionary"))
            r = json_null(json) ? json->failed : read_dictionary(reader, error);
        else
            r = otlp_refuse_old_key(json, &key);
    }
    return r ? r : json_end(json);
}

static int read_model(struct source *source, struct reader *reader,
                      struct otlp_summary *ret_summary, struct error *error)
{
    json_init(&reader->json, source, error);
    reader->model.json = true;
    int r = read_request(reader, error);
    reader->model.offset = source_offset(source);
    struct otlp_summary summary = {0};
    if (!r)
        r = otlp_model_finish(&reader->model, &summary, error);
    if (!r && ret_summary)
        *ret_summary = summary;
    otlp_model_release(&reader->model);
    buffer_release(&reader->message);
    json_release(&reader->json);
    return r;
}

int otlp_read_json(struct source *source, struct profile *profile, struct otlp_summary *ret_summary,
                   struct error *error)
{
    struct reader reader = {0};
    otlp_model_init(&reader.model, profile);
    return read_model(source, &reader, ret_summary, error);
}

int otlp_read_json_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                              struct otlp_summary *ret_summary, struct error *error)
{
    struct reader reader = {0};
    otlp_model_init(&reader.model, profile);
    otlp_model_unresolve(&reader.model, seed);
    return read_model(source, &reader, ret_summary, error);
}

static int read_format_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                                  struct error *error)
{
    return otlp_read_json_unresolved(source, seed, profile, NULL, error);
}

static int read_format(struct source *source, struct profile *profile, struct error *error)
{
    return otlp_read_json(source, profile, NULL, error);
}

/* By the first key of the document; of "dictionary", which others may have too, what follows. */
static int detect(const uint8_t *bytes, size_t length)
{
    const char *at = (const char *)bytes, *end = at + length;
    if (length >= 3 && !memcmp(at, "\xef\xbb\xbf", 3))
        at += 3;
    while (at < end && strchr(" \t\r\n", *at) && *at)
        at++;
    if (at == end || *at++ != '{')
        return 0;
    while (at < end && strchr(" \t\r\n", *at) && *at)
        at++;
    if (at == end || *at++ != '"')
        return 0;
    const char *quote = memchr(at, '"', (size_t)(end - at));
    if (!quote)
        return 0;
    struct json_string key = {.data = at, .length = (size_t)(quote - at)};
    if (otlp_key_is(&key, "resourceProfiles"))
        return 3;
    if (!json_is(&key, "dictionary"))
        return 0;
    static const char *const signs[] = {"Table\"", "_table\"", "trindex\""};
    for (size_t i = 0; i < ARRAY_LENGTH(signs); i++)
        if (memmem(quote, (size_t)(end - quote), signs[i], strlen(signs[i])))
            return 3;
    return 1;
}

const struct format format_otlp_json = {
    .name = "otlp-json",
    .text = true,
    .summary = "OpenTelemetry profiles, JSON; reads the names of 1.8 to 1.11",
    .extensions = "",
    .detect = detect,
    .read = read_format,
    .read_unresolved = read_format_unresolved,
};
