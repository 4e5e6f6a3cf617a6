// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what is read of a process with V8: its memory from address 0 on, with a function's
// SharedFunctionInfo at 0x40. Whatever it is, reads are limited in number and length.

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "runtime/v8/code.h"
#include "runtime/v8/lines.h"

#define READS_MAX 4000
#define LENGTH_MAX 16384 /* a piece of a source */

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
    require(++image->reads < READS_MAX && length <= LENGTH_MAX);
    if (address > image->length || length > image->length - address)
        return false;
    memcpy(buffer, image->bytes + address, length);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 0x80)
        return 0;
    struct image image = {.bytes = data, .length = length};
    struct runtime_memory memory = {.read = read_image, .context = &image};
    const struct v8_binary binary = {
        .walk = {.map_type = 12, .shared_name = 16, .shared_script = 32},
        .shared_type = 262,
        .script_type = 167,
        .scope_type = 261,
        .first_other_type = 128,
        .string_length = 12,
        .string_chars = 16,
        .script_name = 16,
        .script_source = 24,
        .scope_locals = 2,
        .scope_first = 3};
    struct runtime_known met = {.identity = 1, .pid = 1, .mark.address = 0x41};
    memcpy(&met.mark.name, data + 0x50, sizeof(met.mark.name));
    memcpy(&met.mark.file, data + 0x60, sizeof(met.mark.file));
    struct runtime_codes codes = {0};
    struct v8_scripts scripts = {0};
    struct v8_context context = {.binary = &binary, .scripts = &scripts, .pid = 1};
    runtime_codes_take(&codes, v8_code_read, &context, &memory, &met);
    const struct runtime_known *known = runtime_codes_find(&codes, 1);
    require(known);
    if (known->named) {
        require(utf8_valid(known->code.function, strlen(known->code.function)));
        require(utf8_valid(known->code.file, strlen(known->code.file)));
        require(strlen(known->code.function) <= 3 * V8_NAME_MAX);
    }
    runtime_codes_release(&codes);
    v8_scripts_release(&scripts);
    return 0;
}
