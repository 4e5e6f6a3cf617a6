// SPDX-License-Identifier: Apache-2.0
// Tables that are read back from where they were kept: what is in them was interned once, and most
// of them are only looked at.

#include "profile/tables.h"

void profile_append_string(struct profile *profile, const char *text, size_t length)
{
    uint32_t id = table_add(profile, strings, string_count, string_capacity);
    profile->strings[id].data = arena_strndup(&profile->tables->text, text, length);
    profile->strings[id].length = length;
    profile->tables->appended = true;
}

void profile_append_function(struct profile *profile, const struct profile_function *function)
{
    uint32_t id = table_add(profile, functions, function_count, function_capacity);
    profile->functions[id] = *function;
    profile->tables->appended = true;
}

void profile_append_frame(struct profile *profile, const struct profile_frame *frame)
{
    uint32_t id = table_add(profile, frames, frame_count, frame_capacity);
    profile->frames[id] = *frame;
    profile->tables->appended = true;
}

/* Ids are given to an index in order, so it has those below as many as it holds. "None" is not in
 * there, but for the empty string. */
void index_appended(struct profile *profile)
{
    struct profile_tables *tables = profile->tables;
    tables->appended = false;
    id_table_reserve(&tables->string_index, profile->string_count);
    id_table_reserve(&tables->function_index, profile->function_count);
    id_table_reserve(&tables->frame_index, profile->frame_count);
    for (uint32_t id = (uint32_t)tables->string_index.used; id < profile->string_count; id++) {
        const struct profile_string *text = &profile->strings[id];
        id_table_insert(&tables->string_index, hash_string(tables, text->data, text->length), id);
    }
    for (uint32_t id = (uint32_t)tables->function_index.used + 1; id < profile->function_count;
         id++)
        id_table_insert(&tables->function_index, hash_function(tables, &profile->functions[id]),
                        id);
    for (uint32_t id = (uint32_t)tables->frame_index.used + 1; id < profile->frame_count; id++)
        id_table_insert(&tables->frame_index, hash_frame(tables, &profile->frames[id]), id);
}
