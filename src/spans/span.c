// SPDX-License-Identifier: Apache-2.0
// Batches of spans and their texts: see span.h.

#include "spans/span.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"

const char *const span_kind_names[SPAN_KINDS] = {"unspecified", "internal", "server",
                                                 "client",      "producer", "consumer"};
const char *const span_status_names[SPAN_STATUSES] = {"unset", "ok", "error"};

void span_batch_release(struct span_batch *batch)
{
    free(batch->list);
    free(batch->texts);
    id_table_release(&batch->index);
    arena_release(&batch->arena);
    *batch = (struct span_batch){0};
}

static uint32_t intern(struct span_batch *batch, const char *text, size_t length)
{
    if (!batch->seed)
        batch->seed = random_bits() | 1;
    uint64_t hash = XXH3_64bits_withSeed(text, length, batch->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&batch->index, &probe)) != ID_NONE)
        if (!strncmp(batch->texts[id], text, length) && !batch->texts[id][length])
            return id;
    array_reserve(batch->texts, batch->text_capacity, batch->text_count + 1);
    id = (uint32_t)batch->text_count++;
    batch->texts[id] = arena_strndup(&batch->arena, text, length);
    id_table_insert(&batch->index, hash, id);
    return id;
}

uint32_t span_batch_text(struct span_batch *batch, const char *text, size_t length)
{
    static const char invalid[] = "(invalid)";
    if (!batch->text_count)
        intern(batch, "", 0);
    if (!length)
        return 0;
    const char *nul = memchr(text, 0, length);
    if (nul)
        length = (size_t)(nul - text);
    if (length > SPAN_TEXT_MAX) {
        length = SPAN_TEXT_MAX;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    return utf8_valid(text, length) ? intern(batch, text, length)
                                    : intern(batch, invalid, sizeof(invalid) - 1);
}

struct span *span_batch_add(struct span_batch *batch)
{
    if (!batch->text_count)
        intern(batch, "", 0);
    array_reserve(batch->list, batch->capacity, batch->count + 1);
    struct span *span = &batch->list[batch->count++];
    *span = (struct span){0};
    return span;
}

bool span_id_is_zero(const uint8_t *id, size_t length)
{
    uint8_t any = 0;
    for (size_t i = 0; i < length; i++)
        any |= id[i];
    return !any;
}

bool span_is_request(const struct span *span)
{
    return span->kind == SPAN_SERVER || span->kind == SPAN_CONSUMER ||
           span_id_is_zero(span->parent_id, SPAN_ID_BYTES);
}

uint64_t span_trace_hash(const uint8_t trace_id[SPAN_TRACE_BYTES], uint64_t seed)
{
    return XXH3_64bits_withSeed(trace_id, SPAN_TRACE_BYTES, seed);
}

void span_batch_append(struct span_batch *to, const struct span_batch *from)
{
    _cleanup_free_ uint32_t *texts = memory_zalloc(from->text_count + 1, sizeof(*texts));
    span_batch_text(to, "", 0);
    for (size_t i = 0; i < from->text_count; i++)
        texts[i] = span_batch_text(to, from->texts[i], strlen(from->texts[i]));
    array_reserve(to->list, to->capacity, to->count + from->count);
    for (size_t i = 0; i < from->count; i++) {
        struct span *span = &to->list[to->count++];
        *span = from->list[i];
        span->service = texts[span->service];
        span->name = texts[span->name];
        span->method = texts[span->method];
        span->route = texts[span->route];
    }
}

void span_batch_clear(struct span_batch *batch)
{
    arena_release(&batch->arena);
    id_table_clear(&batch->index);
    batch->count = batch->text_count = 0;
}

size_t span_batch_memory(const struct span_batch *batch)
{
    return batch->capacity * sizeof(*batch->list) + batch->text_capacity * sizeof(*batch->texts) +
           (batch->index.slots ? (batch->index.mask + 1) * sizeof(uint64_t) : 0) +
           batch->arena.total_bytes;
}
