// SPDX-License-Identifier: Apache-2.0
// The fuzzer of export files. The first byte says what the rest is: a whole file as it is, or the
// content of a batch, which is put into a record whose checksums are right, since wrong ones end
// everything early. What can be read must come out the same when it is written and read again.

#include <string.h>

#include "base/memory.h"
#include "store/transfer/export_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

struct input {
    const uint8_t *data;
    size_t left;
};

static ssize_t take(void *context, void *data, size_t room)
{
    struct input *input = context;
    size_t count = MIN(room, input->left);
    memcpy(data, input->data, count);
    input->data += count;
    input->left -= count;
    return (ssize_t)count;
}

static int put(void *context, const void *data, size_t length)
{
    buffer_add(context, data, length);
    return 0;
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Encoding what was decoded keeps its identity. */
static void write_again(struct export_batch *batch, struct block_codec *codec)
{
    struct buffer content = {0};
    struct export_batch again = {0};
    char id[EXPORT_ID_BYTES], other[EXPORT_ID_BYTES];
    export_batch_id(batch, id);
    export_batch_encode(batch, codec, &content);
    require(!export_batch_decode(content.data, content.length, codec, &again));
    export_batch_id(&again, other);
    require(!strcmp(id, other) && again.windows == batch->windows && again.rows == batch->rows);
    export_batch_release(&again);
    buffer_release(&content);
}

static void read_file(const uint8_t *data, size_t length, struct block_codec *codec)
{
    struct input input = {.data = data, .left = length};
    struct export_reader reader = {.source = take, .context = &input};
    struct buffer content = {0};
    int r = export_reader_begin(&reader, NULL);
    while (!r && (r = export_reader_next(&reader, &content, NULL)) == 1) {
        struct export_batch batch = {0};
        r = export_batch_decode(content.data, content.length, codec, &batch);
        if (!r) {
            export_reader_count(&reader, &batch);
            write_again(&batch, codec);
        }
        export_batch_release(&batch);
    }
    buffer_release(&content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (!length)
        return 0;
    struct block_codec *codec = block_codec_new();
    if (data[0] % 2) {
        read_file(data + 1, length - 1, codec);
    } else {
        struct buffer file = {0}, content = {.data = (char *)data + 1, .length = length - 1};
        struct export_writer writer = {.sink = put, .context = &file};
        struct export_batch none = {0};
        export_writer_begin(&writer);
        export_writer_batch(&writer, &content, &none);
        export_writer_end(&writer);
        read_file((uint8_t *)file.data, file.length, codec);
        buffer_release(&file);
    }
    block_codec_free(codec);
    return 0;
}
