// SPDX-License-Identifier: Apache-2.0
// Recognising PHP in files: see binary.h.

#include "runtime/php/binary.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/part.h"

#define CONSTANTS_BYTES_MAX (16u << 20)

/* Where versions have what a walk reads: the variable with the innermost call, and of a function
 * the number of its instructions and where they are, its file, and its first line. */
static const struct {
    uint8_t minor;
    uint16_t current, last, instructions, file, first_line;
} layouts[] = {
    {0, 488, 68, 72, 144, 152}, {1, 488, 68, 72, 144, 152},  {2, 488, 80, 88, 152, 160},
    {3, 488, 76, 80, 144, 152}, {4, 488, 96, 104, 168, 176}, {5, 512, 96, 104, 168, 176},
};

/* The constant of a header of answers: "X-Powered-By: PHP/8.2.7". */
static void find_version(struct elf_file *file, struct php_binary *binary)
{
    static const char before[] = "X-Powered-By: PHP/";
    struct elf_section constants;
    _cleanup_buffer_ struct buffer content = {0};
    char text[32] = "";
    unsigned major, minor;
    if (!elf_find_section(file, ".rodata", &constants) ||
        elf_read_section(file, &constants, CONSTANTS_BYTES_MAX, &content, NULL) < 0)
        return;
    const char *at = memmem(content.data, content.length, before, sizeof(before) - 1);
    if (!at)
        return;
    at += sizeof(before) - 1;
    memcpy(text, at, MIN((size_t)(content.data + content.length - at), sizeof(text) - 1));
    text[strspn(text, "0123456789.")] = '\0';
    if (sscanf(text, "%3u.%3u.", &major, &minor) != 2 || major > 255 || minor > 255)
        return;
    binary->major = (uint8_t)major;
    binary->minor = (uint8_t)minor;
    memcpy(binary->version, text, sizeof(binary->version));
}

bool php_binary_find(struct elf_file *file, struct php_binary *ret_binary)
{
    struct elf_symbol globals, evaluate;
    if (!elf_dynamic_symbol(file, "executor_globals", &globals) ||
        !elf_dynamic_symbol(file, "execute_ex", &evaluate) || !evaluate.size_bytes ||
        evaluate.address > UINT64_MAX - evaluate.size_bytes)
        return false;
    struct php_binary binary = {
        .walk = {.evaluate = {evaluate.address, evaluate.address + evaluate.size_bytes}}};
    if (!elf_address_to_offset(file, evaluate.address, &binary.evaluate_offset))
        return false;
    find_version(file, &binary);
    const uint64_t function[2] = {evaluate.address, evaluate.address + evaluate.size_bytes};
    uint64_t part[2] = {0, 0};
    runtime_find_part(file, function, part);
    binary.walk.cold[0] = part[0];
    binary.walk.cold[1] = part[1];
    for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++) {
        if (binary.major != 8 || binary.minor != layouts[i].minor ||
            globals.size_bytes < layouts[i].current + 8u)
            continue;
        binary.walk.current = globals.address + layouts[i].current;
        binary.walk.function_last = layouts[i].last;
        binary.walk.function_instructions = layouts[i].instructions;
        binary.walk.function_file = layouts[i].file;
        binary.walk.function_first_line = layouts[i].first_line;
        binary.walk.function_bytes = (uint16_t)(layouts[i].first_line + 8);
    }
    *ret_binary = binary;
    return true;
}

bool php_binary_known(const struct php_binary *binary, const char **ret_reason)
{
    if (!binary->walk.current)
        *ret_reason = "this version of PHP is not supported (8.0 to 8.5 are)";
    return binary->walk.current;
}
