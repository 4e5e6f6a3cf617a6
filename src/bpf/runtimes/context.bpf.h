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
    __u64 labels[1 + 4 * BPF_GO_LABELS_MAX]; /* of a goroutine, as Go has them */
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

/* ---- labels of a goroutine ---- */

#define GO_NAME_BYTES 64 /* longer names and values are left out */
#define GO_VALUE_BYTES 128
#define GO_TRACE_BYTES 32 /* digits */
#define GO_SPAN_BYTES 16
#define GO_TRACE_NAME 0x64695f6563617274 /* "trace_id" */
#define GO_SPAN_NAME 0x64695f6e61707300  /* "span_id", after a byte */

struct go_text {
    __u64 address, length;
};

/* A label's place among those that were read. Zeros: there is none. */
static __always_inline struct go_text go_text_at(const struct context_scratch *scratch, __u32 word)
{
    KEEP(word);
    if (word >= 4 * BPF_GO_LABELS_MAX)
        return (struct go_text){0, 0};
    const __u64 *at = scratch->labels + word;
    KEEP(at);
    return (struct go_text){at[0], at[1]};
}

/* Returns how many may be there, or -1. A list is an address and a length; a map, if it has one
 * bucket only, a byte for each label, then all names, then all values. */
static __always_inline int go_read_labels(struct context_scratch *scratch, const struct bpf_go *go,
                                          __u64 address)
{
    struct {
        __u64 count;
        __u8 flags, buckets_shift, unused[6];
        __u64 buckets;
    } map;
    struct go_text list;
    if (!go->list) {
        if (bpf_probe_read_user(&address, sizeof(address), (void *)address))
            return -1;
        if (!address)
            return 0;
        if (bpf_probe_read_user(&map, sizeof(map), (void *)address))
            return -1;
        if (!map.count)
            return 0;
        if (map.count > BPF_GO_LABELS_MAX || map.buckets_shift ||
            bpf_probe_read_user(scratch->labels, sizeof(scratch->labels), (void *)map.buckets))
            return -1;
        return BPF_GO_LABELS_MAX;
    }
    if (bpf_probe_read_user(&list, sizeof(list), (void *)address))
        return -1;
    __u32 count = list.length < BPF_GO_LABELS_MAX ? (__u32)list.length : BPF_GO_LABELS_MAX;
    KEEP(count);
    if (!count)
        return 0;
    if (count > BPF_GO_LABELS_MAX ||
        bpf_probe_read_user(scratch->labels + 1, count * 4 * sizeof(__u64), (void *)list.address))
        return -1;
    return (int)count;
}

/* Into the place that the next attribute has; the text's bytes, or -1. */
static __always_inline int go_read_text(struct context_scratch *scratch, struct go_text text,
                                        __u32 at, __u32 max)
{
    __u32 length = (__u32)text.length;
    if (text.length > max)
        return -1;
    KEEP(length);
    KEEP(at);
    if (at > BPF_RECORD_BYTES || length > GO_VALUE_BYTES)
        return -1;
    if (length && bpf_probe_read_user(scratch->record + at, length, (void *)text.address))
        return -1;
    return (int)length;
}

static __always_inline int go_digit(__u8 character)
{
    __u8 decimal = character - '0', letter = (character | 0x20) - 'a';
    return decimal <= 9 ? decimal : letter <= 5 ? letter + 10 : -1;
}

/* Hexadecimal digits at `at` of the record, as the trace's id or the span's. Ids that are not valid
 * are none. */
__noinline int go_read_id(struct context_scratch *scratch, struct bpf_sample_context *found,
                          __u32 at, __u32 is_trace)
{
    int wrong = 0;
    if (!scratch || !found || at > BPF_RECORD_BYTES)
        return 0;
    for (__u32 i = 0; i < sizeof(found->trace_id); i++) {
        if (!is_trace && i >= sizeof(found->span_id))
            break;
        int high = go_digit(scratch->record[at + 2 * i]);
        int low = go_digit(scratch->record[at + 2 * i + 1]);
        wrong |= high | low;
        if (is_trace)
            found->trace_id[i] = (__u8)(high << 4 | (low & 15));
        else
            found->span_id[i & 7] = (__u8)(high << 4 | (low & 15));
    }
    if (wrong < 0 && is_trace)
        __builtin_memset(found->trace_id, 0, sizeof(found->trace_id));
    if (wrong < 0 && !is_trace)
        __builtin_memset(found->span_id, 0, sizeof(found->span_id));
    return 0;
}

/* One label, whose name and value are at these words: ids go where ids are, others become
 * attributes. Returns the bytes of attributes. */
__noinline __u32 go_take_label(struct context_scratch *scratch, struct bpf_sample_context *found,
                               __u32 name_word, __u32 value_word, __u32 used)
{
    __u64 first;
    if (!scratch || !found || used > BPF_RECORD_BYTES)
        return 0;
    struct go_text name = go_text_at(scratch, name_word);
    struct go_text value = go_text_at(scratch, value_word);
    __u32 at = BPF_RECORD_HEADER + used;
    KEEP(at);
    if (!name.address || !name.length || at > BPF_RECORD_BYTES - 2 - GO_NAME_BYTES - GO_VALUE_BYTES)
        return used;
    int name_bytes = go_read_text(scratch, name, at + 2, GO_NAME_BYTES);
    if (name_bytes <= 0)
        return used;
    __builtin_memcpy(&first, scratch->record + at + 2, sizeof(first));
    __u32 value_at = at + 2 + (__u32)name_bytes;
    int value_bytes = go_read_text(scratch, value, value_at, GO_VALUE_BYTES);
    if (value_bytes < 0)
        return used;
    int is_trace = name_bytes == 8 && first == GO_TRACE_NAME && value_bytes == GO_TRACE_BYTES;
    int is_span = name_bytes == 7 && first << 8 == GO_SPAN_NAME && value_bytes == GO_SPAN_BYTES;
    if (is_trace || is_span) {
        go_read_id(scratch, found, value_at, (__u32)is_trace);
        return used;
    }
    scratch->record[at] = (__u8)name_bytes;
    scratch->record[at + 1] = (__u8)value_bytes;
    return used + 2 + (__u32)name_bytes + (__u32)value_bytes;
}

/* The goroutine whose work the current thread does, even on a stack of the runtime's own. */
static __always_inline __u64 go_labels_of(const struct bpf_go *go, __u64 pointer)
{
    __u64 g, m, labels;
    if (bpf_probe_read_user(&g, sizeof(g), (void *)(pointer + (__s64)go->g)) || !g ||
        bpf_probe_read_user(&m, sizeof(m), (void *)(g + go->g_m)) || !m ||
        bpf_probe_read_user(&g, sizeof(g), (void *)(m + go->m_curg)) || !g ||
        bpf_probe_read_user(&labels, sizeof(labels), (void *)(g + go->g_labels)))
        return 0;
    return labels;
}

/* An enum above. */
__noinline int context_read_go(struct context_scratch *scratch, struct bpf_sample_context *found,
                               __u32 number)
{
    const struct bpf_context *context = context_of(number);
    if (!scratch || !found || !context || !has_context(context, number, BPF_CONTEXT_GO))
        return CONTEXT_NONE;
    const struct bpf_go *go = &context->go;
    __u64 address = go_labels_of(go, THREAD_POINTER(bpf_get_current_task_btf()));
    if (!address)
        return CONTEXT_NONE;
    int count = go_read_labels(scratch, go, address);
    __u32 used = 0, list = go->list;
    if (count < 0)
        return CONTEXT_UNREAD;
    for (__u32 i = 0; i < BPF_GO_LABELS_MAX; i++) {
        if ((int)i >= count)
            break;
        /* In a map, a byte below 5 stands for a place without a label. */
        if (!list && ((const __u8 *)scratch->labels)[i] < 5)
            continue;
        used = go_take_label(scratch, found, list ? 1 + 4 * i : 1 + 2 * i,
                             list ? 3 + 4 * i : 1 + 2 * BPF_GO_LABELS_MAX + 2 * i, used);
    }
    const __u64 *ids = (const __u64 *)found->trace_id;
    if (used)
        found->attributes = send_attributes(scratch, number, BPF_CONTEXT_GO, used);
    return used || ids[0] || ids[1] || ids[2] ? CONTEXT_FOUND : CONTEXT_NONE;
}
