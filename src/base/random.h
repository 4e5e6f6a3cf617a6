/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that others can't guess: for seeds of hash tables, ids of runs, and waits. Secrets
 * need getrandom() itself, which can fail. */
#pragma once

#include <stdint.h>

/* Never waits. Where the kernel has none yet, they come from the clock and the process's layout. */
uint64_t random_bits(void);
