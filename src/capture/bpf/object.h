/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled BPF programs, embedded. */
#pragma once

#include <stddef.h>

extern const unsigned char bpf_sampler_object[];
extern const size_t bpf_sampler_object_length;
extern const unsigned char bpf_wall_object[];
extern const size_t bpf_wall_object_length;
extern const unsigned char bpf_events_object[];
extern const size_t bpf_events_object_length;
extern const unsigned char bpf_heap_object[];
extern const size_t bpf_heap_object_length;
extern const unsigned char bpf_faults_object[];
extern const size_t bpf_faults_object_length;
extern const unsigned char bpf_names_object[];
extern const size_t bpf_names_object_length;

/* All of them by the name of the compiled file, for an inventory. */
struct bpf_embedded {
    const char *name; /* "sampler.bpf.o" */
    const unsigned char *bytes;
    const size_t *length;
};
extern const struct bpf_embedded bpf_embedded[];
extern const size_t bpf_embedded_count;
