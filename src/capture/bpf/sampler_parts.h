/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the sampler and the objects of collectors (probes.c). */
#pragma once

#include "bpf/shared.h"
#include "capture/bpf/probes.h"

struct bpf_object;

struct bpf_object *bpf_sampler_object_of(const struct bpf_sampler *sampler);
struct bpf_settings bpf_sampler_settings(const struct bpf_sampler *sampler);

struct bpf_cost bpf_object_cost(const struct bpf_object *object);
