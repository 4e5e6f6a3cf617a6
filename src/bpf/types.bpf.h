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

struct inode {
    unsigned short i_mode;
};

struct file {
    struct inode *f_inode;
};

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

struct sched_entity {
    __u64 sum_exec_runtime;
};

struct sched_info {
    unsigned long long run_delay;
    unsigned long long last_arrival;
    unsigned long long last_queued; /* 0: it isn't in a queue */
};

struct thread_struct {
    unsigned long fsbase; /* THREAD_POINTER() of x86_64.bpf.h */
};

struct kernfs_node {
    __u64 id;
};

struct cgroup {
    int level;
    struct kernfs_node *kn;
    struct cgroup *ancestors[]; /* the root first */
};

struct cgroup___old { /* before Linux 6.1 */
    int level;
    __u64 ancestor_ids[];
};

struct css_set {
    struct cgroup *dfl_cgrp;
};

struct task_struct {
    int pid;
    int tgid;
    struct mm_struct *mm;
    struct task_struct *group_leader;
    __u64 start_time;
    __u64 self_exec_id; /* another one with each program that it executes */
    struct files_struct *files;
    struct css_set *cgroups;
    int on_cpu;
    struct sched_entity se;
    struct sched_info sched_info;
    unsigned long nvcsw, nivcsw;
    unsigned in_iowait : 1;
    char comm[16];
    struct thread_struct thread;
};

struct bpf_iter__task {
    struct task_struct *task;
};

#pragma clang attribute pop
