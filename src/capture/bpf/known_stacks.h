/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of callers that the kernel has sent: each comes once, and samples name it by its hash. The
 * frames that a chain stands for are looked up once in each profile.
 */
#pragma once

#include "base/arena.h"
#include "base/idtable.h"
#include "bpf/shared.h"
#include "capture/record/recorder.h"

/* A chain of callers, and its frames in the profile of some epoch. */
struct known_stack {
    uint64_t hash;
    const uint64_t *words; /* innermost first, as the kernel sent them */
    uint32_t *frames; /* outermost first; of `epoch` and, where `pid` is not 0, of that process */
    uint32_t count;
    uint32_t epoch;
    uint32_t pid;
    uint8_t end;    /* enum unwind_end */
    bool has_raw;   /* with code of no file: what it is depends on the process */
    uint32_t shown; /* frames; the others say nothing (runtime/frames.h) */
    uint32_t room;  /* for frames */
};

/* Ready when zeroed with `recorder` set, which outlives it. */
struct known_stacks {
    struct recorder *recorder;
    struct known_stack *list;
    size_t count, capacity;
    struct id_table index; /* of the list, by hash */
    struct arena arena;    /* of words and frames */
    uint64_t unknown;      /* samples whose stack never came */
};
void known_stacks_release(struct known_stacks *stacks);

/* Forgets all of them. */
void known_stacks_clear(struct known_stacks *stacks);

void known_stacks_take(struct known_stacks *stacks, const struct bpf_stack_event *event);

/* The frames of a sample's leaf and its callers, outermost first. Returns how many. */
size_t known_stacks_add(struct known_stacks *stacks, const struct bpf_sample_event *event,
                        bool kernel, uint32_t *frames);
/* The same of the sample's second stack. */
size_t known_stacks_add_second(struct known_stacks *stacks, const struct bpf_sample_event *event,
                               uint32_t *frames);
/* The same without the frames of interpreters, which a copy of the stack doesn't have. */
size_t known_stacks_native(struct known_stacks *stacks, const struct bpf_sample_event *event,
                           uint32_t *frames);
