/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities as people write them, in configuration files and on the command line. All of the text
 * has to be one; what doesn't fit into the result is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "10s", "1h30m", "250ms": whole numbers with ns, us, ms, s, m, h, d, w or y (365 days), as in
 * Prometheus largest unit first and each unit once; "0" needs no unit. */
bool quantity_duration(const char *text, int64_t *ret_ns);

/* "256MiB", "10GB", "4096": bytes. K, KiB, M, MiB, ... are powers of 1024, KB, MB, ... of 1000. */
bool quantity_size(const char *text, uint64_t *ret_bytes);

/* true, yes, on; false, no, off. */
bool quantity_bool(const char *text, bool *ret_value);
