// SPDX-License-Identifier: Apache-2.0
// Constant pools: a checkpoint record holds, type by type, numbered values that events and other
// constants refer to. Values stay in place in the chunk; only their offsets are stored, and each is
// decoded on demand. See jfr.h.

#include "format/jfr/jfr.h"

#include "base/memory.h"

static uint64_t hash_id(const struct jfr_chunk *chunk, int64_t id)
{
    return hash_word((uint64_t)id ^ chunk->metadata.seed);
}

struct jfr_constant *jfr_pool_find(struct jfr_chunk *chunk, enum jfr_role role, int64_t id)
{
    struct jfr_pool *pool = &chunk->pools[role];
    struct id_probe probe = id_probe_start(hash_id(chunk, id));
    uint32_t index;
    while ((index = id_table_next(&pool->index, &probe)) != ID_NONE)
        if (pool->constants[index].id == id)
            return &pool->constants[index];
    return NULL;
}

struct jfr_cursor jfr_constant_value(const struct jfr_chunk *chunk,
                                     const struct jfr_constant *constant)
{
    return (struct jfr_cursor){
        .at = constant->value, .end = chunk->data + chunk->length, .compressed = chunk->compressed};
}

/* A JVM may write a constant again in a later checkpoint of the chunk; the first is as good. */
static void add_constant(struct jfr_chunk *chunk, enum jfr_role role, int64_t id,
                         const uint8_t *value)
{
    struct jfr_pool *pool = &chunk->pools[role];
    if (jfr_pool_find(chunk, role, id))
        return;
    array_reserve(pool->constants, pool->capacity, pool->count + 1);
    pool->constants[pool->count] = (struct jfr_constant){.id = id, .value = value};
    id_table_insert(&pool->index, hash_id(chunk, id), (uint32_t)pool->count++);
}

static int read_pool(struct jfr_chunk *chunk, struct jfr_cursor *cursor, struct error *error)
{
    int64_t class_id = jfr_read_long(cursor);
    int32_t count = jfr_read_int(cursor);
    if (cursor->failed || count < 0)
        return error_set(error, -EBADMSG, "it is truncated");
    struct jfr_class *class = jfr_metadata_class(&chunk->metadata, class_id);
    if (!class)
        return error_set(error, -EBADMSG, "it holds constants of type %lld, which is not described",
                         (long long)class_id);
    if (!class->layout.ready) {
        int r = jfr_layout_make(&chunk->metadata, class, jfr_constant_bindings,
                                jfr_constant_binding_count, &class->layout, error);
        if (r < 0)
            return r;
    }
    if (class->role)
        chunk->pools[class->role].layout = class->layout;
    for (int32_t i = 0; i < count; i++) {
        int64_t id = jfr_read_long(cursor);
        const uint8_t *value = cursor->at;
        jfr_layout_run(&chunk->metadata, &class->layout, cursor, NULL);
        if (cursor->failed)
            return error_set(error, -EBADMSG, "a constant of type %.60s is truncated or damaged",
                             class->name);
        if (class->role)
            add_constant(chunk, class->role, id, value);
    }
    return 0;
}

int jfr_pools_read(struct jfr_chunk *chunk, struct jfr_cursor body, struct error *error)
{
    jfr_read_long(&body); /* start time */
    jfr_read_long(&body); /* duration */
    jfr_read_long(&body); /* distance to the checkpoint before it */
    jfr_read_byte(&body); /* why it was written */
    int32_t count = jfr_read_int(&body);
    if (body.failed || count < 0)
        return error_set(error, -EBADMSG, "it is truncated");
    for (int32_t i = 0; i < count; i++) {
        int r = read_pool(chunk, &body, error);
        if (r < 0)
            return r;
    }
    return 0;
}

void jfr_pools_release(struct jfr_chunk *chunk)
{
    for (enum jfr_role role = 0; role < JFR_ROLES; role++) {
        id_table_release(&chunk->pools[role].index);
        free(chunk->pools[role].constants);
        chunk->pools[role] = (struct jfr_pool){0};
    }
}
