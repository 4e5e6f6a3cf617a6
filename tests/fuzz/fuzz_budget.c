// SPDX-License-Identifier: Apache-2.0
// The fuzzer of budget files: what is accepted has limits, each a number of at least 0; what is not
// has a sentence and, for mistakes in the content, a list of them.

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compare/gate/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    int file = memfd_create("budget", MFD_CLOEXEC);
    if (file < 0 || write(file, data, length) != (ssize_t)length)
        abort();
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    _cleanup_gate_limits_ struct gate_limits limits = {0};
    _cleanup_buffer_ struct buffer problems = {0};
    struct error error = {0};
    int r = gate_limits_read(&limits, path, &problems, &error);
    close(file);
    if (r < 0 ? !error.text[0] : (!limits.count || problems.length))
        abort();
    for (size_t i = 0; i < limits.count; i++)
        if (!(limits.limits[i].limit >= 0) || !isfinite(limits.limits[i].limit))
            abort();
    return 0;
}
