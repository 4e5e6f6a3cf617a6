/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uprobes at many places of a file through one link, in all processes that have the file mapped,
 * now and later. Linux has them since 6.6. Unlike uprobes by perf events they don't take
 * CAP_SYS_ADMIN, which an agent gives up; older libbpf doesn't know them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_program;

#define UPROBE_MANY_MAX 64

struct uprobe_place {
    uint64_t offset;    /* in the file */
    uint64_t semaphore; /* likewise; 0: none */
    uint64_t cookie;
};

bool uprobe_many_supported(void);
/* Before it is loaded: the program is attached by the function below, and in no other way. */
int uprobe_many_choose(struct bpf_program *program);
/* Returns a descriptor that holds the link, or a negative code. */
int uprobe_many_attach(const struct bpf_program *program, const char *path,
                       const struct uprobe_place *places, size_t count);
