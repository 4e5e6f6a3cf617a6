/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread may take for one untrusted input: memory_try_*() fail for blocks of at least 64 KiB
 * beyond it, as if there was no more memory. Freed memory isn't given back by itself, so it is an
 * upper bound, for short pieces of work. Other allocations are not limited.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void memory_allow(size_t bytes);

/* Before a part of the input is read that the result can do without: false, and counted among
 * memory_refusals(), when it would take more than half of what is left. */
bool memory_allows(size_t bytes);

/* Gives back a block of the thread that is freed now. */
void memory_allow_again(size_t bytes);

/* Ends the limit. True: an allocation was refused since it began. `ret_skipped` may be NULL: how
 * often memory_allows() said no. */
bool memory_allow_end(uint64_t *ret_skipped);
