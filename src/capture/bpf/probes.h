/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF programs of one collector: an object of their own that shares the sampler's maps, so that
 * they walk stacks by the same tables and send events through the same ring buffer
 * (src/bpf/emit.bpf.h). An object that can't be loaded is its collector's loss alone.
 *
 *     bpf_probes_open; bpf_probes_set_constants; bpf_probes_load; bpf_probes_attach...
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct bpf_sampler;
struct bpf_program;
struct bpf_probes;

/* `name`: as the kernel lists it. The object's bytes and the sampler outlive it. */
int bpf_probes_open(struct bpf_sampler *sampler, const char *name, const unsigned char *object,
                    size_t object_bytes, struct bpf_probes **ret_probes, struct error *error);
void bpf_probes_free(struct bpf_probes *probes);

/* Before it is loaded: the value of a section such as ".rodata.wall". */
int bpf_probes_set_constants(struct bpf_probes *probes, const char *section, const void *value,
                             size_t bytes);
/* Before it is loaded: without a program that this kernel can't have. */
int bpf_probes_leave_out(struct bpf_probes *probes, const char *program);
/* Before it is loaded: a map of another size than it was compiled with. */
int bpf_probes_set_entries(struct bpf_probes *probes, const char *map, uint32_t entries);
int bpf_probes_load(struct bpf_probes *probes, struct error *error);

/* A map of the object with BPF_F_MMAPABLE, mapped for as long as the probes live; NULL: there is no
 * such map. */
void *bpf_probes_table(struct bpf_probes *probes, const char *map);
/* The descriptor of a map of another kind; -1: there is no such map. */
int bpf_probes_map(const struct bpf_probes *probes, const char *map);

/* For programs whose section says what they belong to. Others, such as uprobes, are attached by the
 * collector itself with what bpf_probes_program gives. */
int bpf_probes_attach(struct bpf_probes *probes, const char *program);
void bpf_probes_detach(struct bpf_probes *probes, const char *program);
struct bpf_program *bpf_probes_program(const struct bpf_probes *probes, const char *program);
/* Runs an iterator that is attached. */
int bpf_probes_iterate(struct bpf_probes *probes, const char *program);

/* How long and how often the programs ran, while somebody has the kernel measure it
 * (bpf_sampler_measure). */
struct bpf_cost {
    uint64_t run_ns, runs;
};
struct bpf_cost bpf_probes_cost(const struct bpf_probes *probes);
