/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that many programs share: the kernel's, the C library's and that of language runtimes. What
 * such a function did, it did for its caller: the program's own function is the answer to "who
 * waits?" and "who allocates?".
 */
#pragma once

#include "profile/profile.h"

bool shared_code(const struct profile *profile, uint32_t node);
