/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From JSON to protobuf, one OTLP message at a time, so that both encodings share all that comes
 * after. Samples come out in the layout of 1.10. Private to the files otlp*.c.
 */
#pragma once

#include "format/otlp/model.h"
#include "io/json.h"

enum otlp_message {
    OTLP_ANY_VALUE,
    OTLP_ARRAY,
    OTLP_KEY_VALUE_LIST,
    OTLP_KEY_VALUE,
    OTLP_RESOURCE,
    OTLP_SCOPE,
    OTLP_VALUE_TYPE,
    OTLP_SAMPLE,
    OTLP_MAPPING,
    OTLP_LOCATION,
    OTLP_LINE,
    OTLP_FUNCTION,
    OTLP_LINK,
    OTLP_ATTRIBUTE,
    OTLP_STACK,
    OTLP_MESSAGES,
};

/* Appends the object that comes next in the JSON as a message of this kind, without a tag. */
int otlp_transcode(struct json *json, enum otlp_message kind, struct buffer *out);

/* Appends an array of numbers (or a lone one) as they stand in a packed field. */
int otlp_transcode_numbers(struct json *json, struct buffer *out);

/* Appends the bytes of an id: hexadecimal, or base64 where its length is that of neither 8 nor 16
 * bytes in hexadecimal. */
int otlp_transcode_id(struct json *json, struct buffer *out);

/* True when `key` is `name` (which is in lowerCamelCase) or the same in snake_case. */
bool otlp_key_is(const struct json_string *key, const char *name);

/* Fails when the key is one that only layouts before 1.8 have. */
int otlp_refuse_old_key(struct json *json, const struct json_string *key);
