/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that are longer than a copy: the kernel sends them in parts (struct bpf_copy_event in
 * bpf/shared.h), which are put together here. Of each CPU and collector one is held at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

struct long_stack {
    uint64_t time_ns; /* of the sample, and its thread; tid 0: none */
    uint32_t tid;
    uint16_t cpu, collector;
    uint64_t address; /* of the first byte */
    size_t bytes;
    uint8_t *data; /* room for BPF_COPY_PARTS_MAX parts */
};

struct long_stacks {
    struct long_stack *list;
    size_t count, capacity;
};

void long_stacks_release(struct long_stacks *stacks);

/* A part. One that doesn't continue what came before is the first of another stack. */
void long_stacks_take(struct long_stacks *stacks, const struct bpf_copy_event *part);

/* The stack of a copy, with all parts of it that have come: `ret_address` is where it begins. Good
 * until the next call, and as long as the event. */
const uint8_t *long_stacks_join(struct long_stacks *stacks, const struct bpf_copy_event *copy,
                                uint64_t *ret_address, size_t *ret_bytes);
