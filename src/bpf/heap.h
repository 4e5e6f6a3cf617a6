/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of heap profiles and user space share. */
#pragma once

#include "bpf/shared.h"

#define BPF_HEAP_PLACES 256 /* probes; a program's cookie says which it is at */
#define BPF_HEAP_ARGUMENTS 3

enum bpf_heap_kind { BPF_HEAP_CONSTANT, BPF_HEAP_REGISTER, BPF_HEAP_MEMORY };

/* Where an argument is when the probe is passed. */
struct bpf_heap_argument {
    unsigned int kind;
    unsigned int number; /* the register's, in DWARF */
    unsigned int bytes;  /* 1, 2, 4 or 8 */
    unsigned int is_signed;
    long long offset;
};

struct bpf_heap_place {
    struct bpf_heap_argument arguments[BPF_HEAP_ARGUMENTS];
};

/* A sample is an allocation: `id` is its address, `value` what it stands for, detail[0] its size. A
 * note is a release. */
struct bpf_heap_free {
    struct bpf_note note;
    unsigned int pid, unused;
    unsigned long long pointer;
};
