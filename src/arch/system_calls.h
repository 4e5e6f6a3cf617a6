/* SPDX-License-Identifier: Apache-2.0 */
/* Which wait a system call means, by its number on this CPU architecture. */
#pragma once

#include "bpf/wall.h"

/* An enum bpf_state per system call; 0 stands for BPF_STATE_OTHER. */
extern const unsigned char system_call_states[BPF_SYSTEM_CALLS];
