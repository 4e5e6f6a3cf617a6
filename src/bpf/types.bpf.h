/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few of the kernel's types that the programs touch, with the fields they touch. Offsets are
 * the running kernel's: the loader relocates them by its BTF, so nothing here depends on the
 * machine that compiles.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;

struct task_struct {
    int pid;
    int tgid;
    struct mm_struct *mm;
};

#pragma clang attribute pop
