/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled BPF programs, embedded. */
#pragma once

#include <stddef.h>

extern const unsigned char bpf_sampler_object[];
extern const size_t bpf_sampler_object_length;
extern const unsigned char bpf_names_object[];
extern const size_t bpf_names_object_length;
