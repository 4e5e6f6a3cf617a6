/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A HotSpot virtual machine in a process: where its code cache is and the layout of its frames.
 * Nothing is written and no thread is stopped.
 */
#pragma once

#include "bpf/runtimes/runtime.h"
#include "runtime/hotspot/structs.h"

struct hotspot_process {
    struct hotspot_structs structs;
    struct bpf_hotspot walk;
    unsigned major;   /* 8 to 25 */
    char version[32]; /* "17.0.12" */
};

enum hotspot_attach {
    HOTSPOT_ATTACHED,
    HOTSPOT_NOT_YET, /* the machine is starting: try again later */
    HOTSPOT_REFUSED, /* a version that is not known, or another program */
};

enum hotspot_attach hotspot_attach(const struct hotspot_binary *binary, uint64_t bias,
                                   const struct runtime_memory *memory,
                                   struct hotspot_process *ret_machine, const char **ret_reason);
