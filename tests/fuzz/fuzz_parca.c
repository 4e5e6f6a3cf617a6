// SPDX-License-Identifier: Apache-2.0
// Samples of Parca's agent: Arrow streams in one piece and in two, and LZ4 frames alone.

#include <string.h>

#include "format/parca/parca.h"
#include "io/lz4.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static int take(void *context, struct profile *profile, bool total, struct error *error)
{
    (void)total, (void)error;
    *(size_t *)context += 1;
    require(profile->type_count == 1);
    for (size_t i = 0; i < profile->samples.count; i++)
        require(profile->samples.node[i] < profile->node_count);
    return 0;
}

static void check_samples(const struct parca_input *input)
{
    struct error error = {0};
    struct buffer ids = {0};
    size_t taken = 0;
    int64_t count = parca_ask(input, &ids, &error);
    require(count >= 0 ? (count > 0) == (ids.length > 0) : error.text[0]);
    int r = parca_read(input, PROFILE_ALL & ~PROFILE_TIMES, take, &taken, &error);
    require(r <= 0 && (!r || error.text[0]));
    buffer_release(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 5)
        return 0;
    uint8_t kind = *data++ & 3;
    length--;
    struct parca_input input = {
        .samples = data, .samples_length = length, .expansion_limit = 1 << 20, .row_limit = 1000};
    if (kind == 1) {
        uint32_t first;
        memcpy(&first, data, sizeof(first));
        data += sizeof(first);
        length -= sizeof(first);
        input.samples = data;
        input.samples_length = MIN((size_t)first, length);
        input.stacks = data + input.samples_length;
        input.stacks_length = length - input.samples_length;
    }
    if (kind == 2) {
        struct buffer out = {0};
        struct error error = {0};
        int r = lz4_decompress(data, length, 1 << 20, &out, &error);
        require(out.length <= 1 << 20 && (!r || error.text[0]));
        buffer_release(&out);
    } else {
        check_samples(&input);
    }
    return 0;
}
