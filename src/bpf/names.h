/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What names.bpf.c is asked, and where it answers: both sides see the same memory. */
#pragma once

#include <linux/types.h>

struct bpf_name_question {
    __u64 address;
    char answer[512 + 128]; /* "function+0x12/0x340 [module]", or the address itself */
};
