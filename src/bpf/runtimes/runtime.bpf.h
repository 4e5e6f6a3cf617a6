/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the walks of all runtimes: descriptions, reads, and sending code objects. */
#pragma once

#include "bpf/shared.h"
#include "bpf/types.bpf.h"

TABLE(runtimes, struct bpf_runtime, BPF_RUNTIMES_MAX);
TABLE(known_codes, __u64, BPF_KNOWN_CODES_MAX);

/* NULL when the process has none of that kind. */
static __always_inline const struct bpf_runtime *runtime_of(const struct walk *walk, __u32 kind)
{
    struct bpf_runtime *all = table(&runtimes);
    __u32 at = walk->runtime;
    KEEP(at);
    if (!all || !walk->runtime)
        return NULL;
    const struct bpf_runtime *runtime = &all[at & (BPF_RUNTIMES_MAX - 1)];
    return runtime->generation == walk->runtime >> BPF_RUNTIME_GENERATION_SHIFT &&
                   runtime->kind == kind
               ? runtime
               : NULL;
}

static __always_inline int load_word(__u64 address, __u64 *ret_word)
{
    return address < 4096 ? -1 : (int)bpf_probe_read_user(ret_word, 8, (void *)address);
}

/* A field of a structure that was copied. */
static __always_inline __u64 field_of(const __u8 *bytes, __u32 offset, __u32 room)
{
    KEEP(offset);
    return offset > room - 8 ? 0 : *(const __u64 *)(bytes + offset);
}

/* Sends a code object that user space has not seen. */
static __always_inline void send_code(const struct bpf_code_event *code, __u64 hash)
{
    __u64 *known = table(&known_codes);
    __u32 place = hash >> (64 - BPF_KNOWN_CODES_SHIFT);
    KEEP(place);
    if (!known)
        return;
    known += place & (BPF_KNOWN_CODES_MAX - 1);
    if (*known == hash)
        return;
    /* At once: the object may go away soon. */
    if (!bpf_ringbuf_output(&events, (void *)code, sizeof(*code), BPF_RB_FORCE_WAKEUP))
        *known = hash;
}
