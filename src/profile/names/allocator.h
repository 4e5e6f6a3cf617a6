/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that only pass allocations on: allocators, and the containers and strings of standard
 * libraries. Memory belongs to the function of the program that called them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool name_is_allocator(const char *name, size_t length);
