/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of V8's profiles: what CPU profiles, heap profiles and traces call a call frame. */
#pragma once

#include "io/json.h"
#include "profile/profile.h"

struct call_frame {
    uint32_t name, url; /* strings */
    int64_t line, column;
};

/* Reads the value of a key when it belongs to a call frame: returns 1 then, 0 when it doesn't, or
 * an error. */
int call_frame_read_key(struct json *json, struct profile *profile, const struct json_string *key,
                        struct call_frame *frame);

/* Reads the object that comes next. */
int call_frame_read(struct json *json, struct profile *profile, struct call_frame *frame);

/* The frame in the model. `base` is the number of the file's first line and column. Functions
 * without a name are called "(anonymous) file.js:12", which tells them apart. */
uint32_t call_frame_intern(struct profile *profile, const struct call_frame *call, int base);

/* True for V8's "(root)", which is below all stacks. */
bool call_frame_is_root(const struct profile *profile, const struct call_frame *call);
