// SPDX-License-Identifier: Apache-2.0
// Random numbers: see random.h.

#include "base/random.h"

#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

uint64_t random_bits(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) == sizeof(bits))
        return bits;
    bits = (uint64_t)clock_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40 ^ (uintptr_t)&bits;
    return bits * 0x9e3779b97f4a7c15ull;
}
