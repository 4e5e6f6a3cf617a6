// SPDX-License-Identifier: Apache-2.0
// The functions of V8's profiles: see call_frame.h.

#include "format/v8/call_frame.h"

#include <stdio.h>

#include "base/memory.h"
#include "profile/naming.h"

static int read_text(struct json *json, struct profile *profile, uint32_t *ret_string)
{
    struct json_string text;
    if (json_kind(json) != JSON_STRING)
        return json_skip(json);
    int r = json_string(json, &text);
    if (r == 0)
        *ret_string = profile_string(profile, text.data, text.length);
    return r;
}

int call_frame_read_key(struct json *json, struct profile *profile, const struct json_string *key,
                        struct call_frame *frame)
{
    int r;
    if (json_is(key, "functionName")) {
        r = read_text(json, profile, &frame->name);
    } else if (json_is(key, "url")) {
        r = read_text(json, profile, &frame->url);
    } else if (json_is(key, "lineNumber") || json_is(key, "columnNumber")) {
        int64_t *position = json_is(key, "lineNumber") ? &frame->line : &frame->column;
        r = json_kind(json) == JSON_NUMBER ? json_i64(json, position) : json_skip(json);
    } else {
        return 0;
    }
    return r < 0 ? r : 1;
}

int call_frame_read(struct json *json, struct profile *profile, struct call_frame *frame)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = call_frame_read_key(json, profile, &key, frame);
    return r;
}

static uint32_t anonymous_name(struct profile *profile, uint32_t url, int64_t line)
{
    char name[300];
    const char *file = path_base(profile_text(profile, url));
    if (!*file)
        return profile_cstring(profile, "(anonymous)");
    snprintf(name, sizeof(name), "(anonymous) %.255s:%lld", file, (long long)line);
    return profile_cstring(profile, name);
}

uint32_t call_frame_intern(struct profile *profile, const struct call_frame *call, int base)
{
    const int64_t column_limit = (1 << 24) - 1; /* also what stands for a column beyond */
    int64_t line = call->line < base || call->line >= UINT32_MAX ? 0 : call->line + 1 - base;
    int64_t column =
        call->column < base ? 0 : MIN(call->column, column_limit - 1 + base) + 1 - base;
    struct profile_function function = {
        .name = call->name ? call->name : anonymous_name(profile, call->url, line),
        .file = call->url,
        .start_line = (uint32_t)line,
    };
    struct profile_frame frame = {
        .function = profile_function(profile, &function),
        .line = (uint32_t)line,
        .column = (uint32_t)column & 0xffffff,
        .kind = FRAME_V8JS,
    };
    return profile_frame(profile, &frame);
}

bool call_frame_is_root(const struct profile *profile, const struct call_frame *call)
{
    return !strcmp(profile_text(profile, call->name), "(root)");
}
