// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what is read of processes that run PHP or Ruby, and of what processes publish about
// themselves. The first byte chooses; all bytes are the process's memory from address 0 on. Words 1
// and 2 say where to begin.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "context/process.h"
#include "runtime/php/code.h"
#include "runtime/ruby/code.h"

#define READS_MAX 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

struct image {
    const uint8_t *bytes;
    size_t length;
    size_t reads;
};

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool read_image(void *context, uint64_t address, void *buffer, size_t length)
{
    struct image *image = context;
    require(++image->reads < READS_MAX && length <= 1u << 20);
    if (address > image->length || length > image->length - address)
        return false;
    memcpy(buffer, image->bytes + address, length);
    return true;
}

static void check_code(const struct runtime_codes *codes, uint64_t identity)
{
    const struct runtime_known *known = runtime_codes_find(codes, identity);
    require(known);
    if (!known->named)
        return;
    const struct runtime_code *code = &known->code;
    require(utf8_valid(code->file, strlen(code->file)));
    require(utf8_valid(code->function, strlen(code->function)));
    require(strlen(code->file) <= RUNTIME_FILE_MAX);
    require(strlen(code->function) <= RUNTIME_FILE_MAX + 2 * RUNTIME_NAME_MAX + 3);
    for (uint32_t i = 1; i < code->line_count; i++)
        require(code->lines[i - 1].end < code->lines[i].end);
    runtime_code_line(code, 0);
    runtime_code_line(code, UINT32_MAX);
}

/* The kernel's program has read the mark before. */
static void read_php(const struct runtime_memory *memory, uint64_t address)
{
    struct php_binary php = {.major = 8,
                             .walk = {.function_bytes = BPF_PYTHON_CODE_BYTES,
                                      .function_file = 96,
                                      .function_first_line = 104}};
    struct runtime_mark mark = {.address = address,
                                .name = runtime_read_word(memory, address + 8),
                                .lines = runtime_read_word(memory, address + 16)};
    if ((runtime_read_word(memory, address) & 255) != BPF_PHP_BUILT_IN) {
        mark.file = runtime_read_word(memory, address + php.walk.function_file);
        mark.first_line =
            (uint32_t)runtime_read_word(memory, address + php.walk.function_first_line);
    }
    struct runtime_codes codes = {0};
    const struct runtime_known met = {.identity = 7, .pid = 1, .mark = mark};
    runtime_codes_take(&codes, php_code_read, &php, memory, &met);
    check_code(&codes, met.identity);
    runtime_codes_release(&codes);
}

static void read_ruby(const struct runtime_memory *memory, uint64_t address, uint8_t minor)
{
    struct ruby_binary ruby = {.major = 3,
                               .minor = minor,
                               .code_lines = 120,
                               .code_line_count = 136,
                               .code_line_index = 144,
                               .walk = {.code_first_line = 88, .first_line_shift = minor & 1}};
    uint64_t body = runtime_read_word(memory, address + 16);
    struct runtime_mark mark = {.address = address,
                                .lines = body,
                                .file = runtime_read_word(memory, body + 64),
                                .name = runtime_read_word(memory, body + 80),
                                .first_line =
                                    (uint32_t)runtime_read_word(memory, body + 88) >> (minor & 1)};
    struct runtime_codes codes = {0};
    const struct runtime_known met = {.identity = 7, .pid = 1, .mark = mark};
    runtime_codes_take(&codes, ruby_code_read, &ruby, memory, &met);
    check_code(&codes, met.identity);
    runtime_codes_release(&codes);
}

static void read_context(const struct runtime_memory *memory, uint64_t address)
{
    struct process_context context = {0};
    for (int i = 0; i < 2; i++)
        process_context_update(memory, address, &context);
    require(context.key_count <= PROCESS_CONTEXT_KEYS_MAX);
    require(context.attribute_count <= PROCESS_CONTEXT_ATTRIBUTES_MAX);
    for (size_t i = 0; i < context.key_count; i++)
        require(utf8_valid(context.keys[i], strlen(context.keys[i])));
    for (size_t i = 0; i < context.attribute_count; i++) {
        const struct process_attribute *attribute = &context.attributes[i];
        require(*attribute->key && utf8_valid(attribute->key, strlen(attribute->key)));
        require(utf8_valid(attribute->value, strlen(attribute->value)));
        require(process_context_attribute(&context, attribute->key));
    }
    process_context_release(&context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct image image = {.bytes = data, .length = length};
    struct runtime_memory memory = {.read = read_image, .context = &image};
    if (length < 24)
        return 0;
    uint64_t at = runtime_read_word(&memory, 8);
    switch (data[0] & 3) {
    case 0:
        read_php(&memory, at);
        break;
    case 1:
        read_ruby(&memory, at, data[1] & 3);
        break;
    default:
        read_context(&memory, at);
    }
    return 0;
}
