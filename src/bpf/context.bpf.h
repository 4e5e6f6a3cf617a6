/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading what the current thread works on: see context.h. The thread is the only one that writes
 * its record, and it is interrupted, so what is read is what it was at the moment of the sample.
 * Nothing that is read is believed: lengths are limited, and a pointer is only ever read from.
 */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

TABLE(contexts, struct bpf_context, BPF_CONTEXTS_MAX);
TABLE(known_attributes, __u64, BPF_KNOWN_ATTRIBUTES_MAX);

/* A record, or what is made to look like its attributes. The event with them is written over the
 * record's header once that has been used, right before them. */
struct context_scratch {
    __u32 unused;
    __u8 record[BPF_RECORD_BYTES + 4 + 512];
};
_Static_assert(offsetof(struct context_scratch, record) + BPF_RECORD_HEADER ==
                   8 + sizeof(struct bpf_attributes_event),
               "the event ends where attributes begin, at a whole word");

#define CONTEXT_WORDS(scratch) ((const __u64 *)((scratch)->record + BPF_RECORD_HEADER))
#define CONTEXT_EVENT(scratch) ((struct bpf_attributes_event *)((scratch)->record + 4))

enum { CONTEXT_NONE, CONTEXT_FOUND, CONTEXT_TORN, CONTEXT_UNREAD };

/* NULL: the process doesn't say. */
static __always_inline const struct bpf_context *context_of(__u32 number)
{
    struct bpf_context *all = table(&contexts);
    __u32 at = number;
    KEEP(at);
    if (!all || !number)
        return NULL;
    return &all[at & (BPF_CONTEXTS_MAX - 1)];
}

/* It may be another process's by now. */
static __always_inline int has_context(const struct bpf_context *context, __u32 number, __u32 kind)
{
    return context->generation == number >> BPF_CONTEXT_BITS && context->kinds & 1u << kind;
}

/* Its bytes beyond `bytes` may be anything. */
__noinline __u64 context_hash(struct context_scratch *scratch, __u32 bytes, __u32 number)
{
    __u64 hash;
    if (!scratch)
        return 0;
    hash = mix(number, bytes);
    for (__u32 i = 0; i < BPF_ATTRIBUTE_WORDS; i++) {
        __u32 left = bytes - 8 * i;
        if (8 * i >= bytes)
            break;
        __u64 word = CONTEXT_WORDS(scratch)[i];
        if (left < 8)
            word &= (1ull << (8 * left & 63)) - 1;
        hash = mix(hash, word);
    }
    return hash ? hash : 1;
}

/* Sends attributes that user space has not seen. 0: it will not know them. */
static __always_inline __u64 send_attributes(struct context_scratch *scratch, __u32 number,
                                             __u32 source, __u32 bytes)
{
    __u64 *known = table(&known_attributes), hash = context_hash(scratch, bytes, number);
    __u32 place = hash >> (64 - BPF_KNOWN_ATTRIBUTES_SHIFT);
    KEEP(place);
    if (!known)
        return 0;
    known += place & (BPF_KNOWN_ATTRIBUTES_MAX - 1);
    if (*known == hash)
        return hash;
    struct bpf_attributes_event *event = CONTEXT_EVENT(scratch);
    event->kind = BPF_EVENT_ATTRIBUTES;
    event->bytes = (unsigned short)bytes;
    event->source = (unsigned short)source;
    event->context = number;
    event->unused = 0;
    event->hash = hash;
    KEEP(bytes);
    if (bytes > BPF_ATTRIBUTE_BYTES ||
        bpf_ringbuf_output(&events, event, sizeof(*event) + bytes, BPF_RB_NO_WAKEUP))
        return 0;
    *known = hash;
    return hash;
}

/* ---- a thread's record ---- */

/* The address of the thread's variable; 0: the thread has not touched the library's variables. */
static __always_inline __u64 variable_of(const struct bpf_thread_context *thread, __u64 pointer)
{
    __u64 vector, block, entries;
    __u32 module = thread->module;
    if (thread->way == BPF_CONTEXT_STATIC)
        return pointer + (__u64)thread->offset;
    if (bpf_probe_read_user(&vector, sizeof(vector), (void *)(pointer + 8)))
        return 0;
    /* How many modules the vector has: before its beginning, or its first word. */
    __u64 count_at = thread->way == BPF_CONTEXT_GLIBC ? vector - 16 : vector;
    __u64 entry = vector + (__u64)module * (thread->way == BPF_CONTEXT_GLIBC ? 16 : 8);
    if (bpf_probe_read_user(&entries, sizeof(entries), (void *)count_at) || entries < module ||
        bpf_probe_read_user(&block, sizeof(block), (void *)entry) || !block || block == ~0ull)
        return 0;
    return block + (__u64)thread->offset;
}

/* Mostly one read: what is behind a short record is read with it, up to the page's end. */
static __always_inline int read_record(struct context_scratch *scratch, __u64 address,
                                       __u32 *ret_bytes)
{
    __u32 at_once = 4096 - (address & 4095);
    if (at_once > BPF_RECORD_AT_ONCE)
        at_once = BPF_RECORD_AT_ONCE;
    if (at_once < BPF_RECORD_HEADER)
        at_once = BPF_RECORD_HEADER;
    KEEP(at_once);
    if (at_once > BPF_RECORD_AT_ONCE ||
        bpf_probe_read_user(scratch->record, at_once, (void *)address))
        return -1;
    __u32 bytes = *(volatile __u16 *)(scratch->record + BPF_RECORD_SIZE);
    if (bytes > BPF_ATTRIBUTE_BYTES)
        bytes = BPF_ATTRIBUTE_BYTES;
    *ret_bytes = bytes;
    __u32 left = BPF_RECORD_HEADER + bytes - at_once;
    if (BPF_RECORD_HEADER + bytes <= at_once)
        return 0;
    KEEP(left);
    KEEP(at_once);
    if (left > BPF_RECORD_BYTES || at_once > BPF_RECORD_AT_ONCE)
        return -1;
    return (int)bpf_probe_read_user(scratch->record + at_once, left, (void *)(address + at_once));
}

/* Classifies a record after its header and attributes were read. An enum above. */
static __always_inline int take_record(struct context_scratch *scratch,
                                       struct bpf_sample_context *found, __u32 number, __u32 bytes)
{
    __u64 words[3];
    if (scratch->record[BPF_RECORD_VALID] != 1)
        return CONTEXT_TORN;
    __builtin_memcpy(words, scratch->record, sizeof(words));
    if (!words[0] && !words[1] && !words[2] && !bytes)
        return CONTEXT_NONE;
    /* One without the other is not what the record's writers do. */
    if ((!(words[0] | words[1])) != !words[2])
        return CONTEXT_UNREAD;
    __builtin_memcpy(found->trace_id, words, sizeof(found->trace_id));
    __builtin_memcpy(found->span_id, &words[2], sizeof(found->span_id));
    if (bytes)
        found->attributes = send_attributes(scratch, number, BPF_CONTEXT_THREAD, bytes);
    return CONTEXT_FOUND;
}

/* An enum above. */
__noinline int context_read_thread(struct context_scratch *scratch,
                                   struct bpf_sample_context *found, __u32 number)
{
    const struct bpf_context *context = context_of(number);
    __u64 record;
    __u32 bytes;
    if (!scratch || !found || !context || !has_context(context, number, BPF_CONTEXT_THREAD))
        return CONTEXT_NONE;
    __u64 at = variable_of(&context->thread, THREAD_POINTER(bpf_get_current_task_btf()));
    if (!at || bpf_probe_read_user(&record, sizeof(record), (void *)at) || !record)
        return CONTEXT_NONE;
    if (record < 4096 || record & 1 || read_record(scratch, record, &bytes))
        return CONTEXT_UNREAD;
    return take_record(scratch, found, number, bytes);
}
