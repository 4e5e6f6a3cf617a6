/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of src/simulate. A location is a place in a function, its number function *
 * PARTS_SITES + site; the last site is where samples end.
 */
#pragma once

#include "simulate/fleet.h"
#include "simulate/random.h"

#define PARTS_SITES 8
#define FLEET_DEPTH_MAX 96

/* Binaries: 0 is a service's own, then shared libraries, then the kernel. */
enum { PARTS_KERNEL = 4 };
struct parts_binary {
    const char *file, *prefix;
    uint64_t start;
};
const struct parts_binary *parts_binary(uint32_t binary);

/* Goes on from the first `length` locations of `stack`, which has room for FLEET_DEPTH_MAX, to a
 * leaf, and returns the depth. */
uint32_t fleet_walk(const struct fleet *fleet, const struct fleet_service *service, uint32_t *stack,
                    uint32_t length, struct random *random);

/* A stack's number, by Zipf's law. */
uint32_t fleet_draw(const struct fleet *fleet, struct random *random);
