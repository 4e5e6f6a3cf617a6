// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Asks the running kernel what one of its addresses is called. Its list of all functions takes
// fifty milliseconds to print, and a recording wants a few hundred of them.

#include "bpf/names.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct bpf_name_question question;

SEC("syscall")
int assay_name(void *context)
{
    static const char format[] = "%pS";
    return (int)bpf_snprintf(question.answer, sizeof(question.answer), format, &question.address,
                             sizeof(question.address));
}
