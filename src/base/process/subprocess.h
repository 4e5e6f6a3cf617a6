/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running other programs: no shell, arguments as they are, output captured within a limit, and a
 * deadline after which the child is ended.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

struct subprocess_options {
    const void *input; /* written to the child's standard input; may be NULL */
    size_t input_bytes;
    size_t output_limit_bytes; /* 0: 64 MiB */
    unsigned timeout_ms;       /* 0: none */
};

/*
 * Runs argv[0] (found through PATH) and waits for it. Standard error is shared with the caller.
 * On success *ret_status is the exit status, or 128 + the signal that ended it. A child that
 * outlives the timeout is killed (-ETIME); one that writes too much is killed (-E2BIG).
 */
int subprocess_run(const char *const argv[], const struct subprocess_options *options,
                   struct buffer *ret_output, int *ret_status, struct error *error);
