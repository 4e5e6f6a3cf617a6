/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LZ4 frames, as Arrow's streams have them: reading alone, and of frames that are whole in memory.
 * Blocks may refer to those before them; dictionaries from elsewhere are not supported.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Appends the content of one frame to `out`; -E2BIG when it has more than `limit_bytes`. Memory
 * follows the content, not what the frame announces. */
int lz4_decompress(const uint8_t *bytes, size_t length, size_t limit_bytes, struct buffer *out,
                   struct error *error);
