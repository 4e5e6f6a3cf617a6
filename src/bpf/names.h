/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Query and answer of names.bpf.c: both sides see the same memory. */
#pragma once

#include <linux/types.h>

struct bpf_name_query_context {
    __u64 address;
    char answer[512 + 128]; /* "function+0x12/0x340 [module]", or the address itself */
};
