// SPDX-License-Identifier: Apache-2.0
// Links of many uprobes: see many.h.

#include "capture/bpf/many.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

#define ATTACH_TYPE 48 /* BPF_TRACE_UPROBE_MULTI, which older headers don't have */

/* The kernel's struct for BPF_LINK_CREATE with that type. */
struct link_create {
    uint32_t program, target, type, flags;
    uint64_t path, offsets, semaphores, cookies;
    uint32_t count, link_flags, pid;
    uint32_t unused;
};

static int create(int program, const char *path, const uint64_t *offsets,
                  const uint64_t *semaphores, const uint64_t *cookies, size_t count)
{
    struct link_create wanted = {.program = (uint32_t)program,
                                 .type = ATTACH_TYPE,
                                 .path = (uint64_t)(uintptr_t)path,
                                 .offsets = (uint64_t)(uintptr_t)offsets,
                                 .semaphores = (uint64_t)(uintptr_t)semaphores,
                                 .cookies = (uint64_t)(uintptr_t)cookies,
                                 .count = (uint32_t)count};
    long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &wanted, sizeof(wanted));
    return fd < 0 ? -errno : (int)fd;
}

/* A program that does nothing, for a directory: kernels that know the type refuse the directory. */
bool uprobe_many_supported(void)
{
    const struct bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    const uint64_t offset = 0;
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = ATTACH_TYPE);
    int program =
        bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", nothing, ARRAY_LENGTH(nothing), &options);
    if (program < 0)
        return false;
    int r = create(program, "/", &offset, NULL, NULL, 1);
    if (r >= 0)
        close(r);
    close(program);
    return r == -EBADF;
}

int uprobe_many_choose(struct bpf_program *program)
{
    return program ? bpf_program__set_expected_attach_type(program, ATTACH_TYPE) : -ENOENT;
}

int uprobe_many_attach(const struct bpf_program *program, const char *path,
                       const struct uprobe_place *places, size_t count)
{
    uint64_t offsets[UPROBE_MANY_MAX], semaphores[UPROBE_MANY_MAX], cookies[UPROBE_MANY_MAX];
    count = MIN(count, (size_t)UPROBE_MANY_MAX);
    for (size_t i = 0; i < count; i++) {
        offsets[i] = places[i].offset;
        semaphores[i] = places[i].semaphore;
        cookies[i] = places[i].cookie;
    }
    return create(bpf_program__fd(program), path, offsets, semaphores, cookies, count);
}
