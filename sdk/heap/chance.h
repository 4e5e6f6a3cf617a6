/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mathematics of Poisson sampling over bytes, without libm. With points at a mean distance of
 * `mean` bytes, an allocation is sampled when at least one falls into it: with probability
 * 1 - exp(-size / mean). Dividing its size by that makes sums unbiased, whatever the sizes are.
 */
#pragma once

#include <stdint.h>

/* A new state from an older one: splitmix64. */
uint64_t chance_next(uint64_t *state);
/* Bytes to the next point, exponentially distributed. */
int64_t chance_gap(uint64_t *state, uint64_t mean);
/* The bytes that a sampled allocation stands for. */
uint64_t chance_weight(uint64_t size, uint64_t mean);
