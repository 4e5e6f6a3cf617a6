// SPDX-License-Identifier: Apache-2.0
// A file of the agent's spool, and the batch that an uploader sends of it: whatever is accepted has
// its whole body behind the header, and is accepted under no other name.

#include <stdlib.h>
#include <string.h>

#include "agent/send/spool_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    const char *content = (const char *)data;
    size_t body_length = SIZE_MAX;
    int r = spool_file_parse("seed", content, length, &body_length);
    if (r < 0) {
        if (body_length != SIZE_MAX)
            abort();
        return 0;
    }
    if (body_length + SPOOL_HEADER_BYTES != length)
        abort();
    if (spool_file_parse("other", content, length, &body_length) == 0)
        abort();
    return 0;
}
