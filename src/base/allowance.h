/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread may take for one untrusted input: memory_try_*() fail for blocks of at least 64 KiB
 * beyond it, as if there was no more memory. Freed memory isn't given back to it, so it is an upper
 * bound, for short pieces of work. Other allocations are not limited.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void memory_allow(size_t bytes);

/* Ends the limit. True: something was refused since it began. */
bool memory_allow_end(void);
