// SPDX-License-Identifier: Apache-2.0
// Recognising interpreters in files: see binary.h.

#include "runtime/python/binary.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/part.h"

#define CONSTANTS_BYTES_MAX (8u << 20)
#define EVALUATE_BYTES_MIN 4096 /* with all instructions in it */

/* ---- version ---- */

static void set_version(struct python_binary *binary, unsigned major, unsigned minor,
                        unsigned micro)
{
    binary->major = (uint8_t)major;
    binary->minor = (uint8_t)minor;
    binary->micro = (uint8_t)micro;
    snprintf(binary->version, sizeof(binary->version), "%u.%u.%u", major, minor, micro);
}

/* File names have the minor version, that of the interpreter itself and that of the standard
 * library: "libpython3.8.so.1.0", "python3.8". */
static bool find_minor(const char *bytes, size_t length, unsigned *ret_minor)
{
    static const char name[] = "python3.";
    const char *at = memmem(bytes, length, name, sizeof(name) - 1);
    char text[3] = "";
    if (!at)
        return false;
    at += sizeof(name) - 1;
    memcpy(text, at, MIN((size_t)(bytes + length - at), sizeof(text) - 1));
    return sscanf(text, "%2u", ret_minor) == 1;
}

/* The text that sys.version begins with, "3.8.18": a constant, or the end of another one. */
static bool find_micro(const char *bytes, size_t length, unsigned minor, unsigned *ret_micro)
{
    char name[16];
    int name_length = snprintf(name, sizeof(name), "3.%u.", minor);
    const char *at = bytes, *end = bytes + length;
    while ((at = memmem(at, (size_t)(end - at), name, (size_t)name_length))) {
        bool begins = at > bytes && !isdigit((unsigned char)at[-1]) && at[-1] != '.';
        unsigned micro = 0;
        at += name_length;
        const char *digits = at;
        while (at < end && at - digits < 3 && isdigit((unsigned char)*at))
            micro = micro * 10 + (unsigned)(*at++ - '0');
        if (begins && at > digits && at < end && !*at && micro < 256) {
            *ret_micro = micro;
            return true;
        }
    }
    return false;
}

static void find_version(struct elf_file *file, const char *path, struct python_binary *binary)
{
    struct elf_symbol symbol;
    uint32_t number;
    if (elf_dynamic_symbol(file, "Py_Version", &symbol) &&
        elf_read_address(file, symbol.address, &number, sizeof(number)) == 0) {
        set_version(binary, number >> 24, number >> 16 & 255, number >> 8 & 255);
        return;
    }
    /* The symbol exists since 3.11. */
    struct elf_section constants;
    _cleanup_buffer_ struct buffer content = {0};
    unsigned minor, micro;
    if (elf_find_section(file, ".rodata", &constants) &&
        elf_read_section(file, &constants, CONSTANTS_BYTES_MAX, &content, NULL) == 0 &&
        (find_minor(path, strlen(path), &minor) ||
         find_minor(content.data, content.length, &minor)) &&
        find_micro(content.data, content.length, minor, &micro))
        set_version(binary, 3, minor, micro);
}

bool python_binary_find(struct elf_file *file, const char *path, struct python_binary *ret_binary)
{
    struct elf_symbol runtime, code_type, evaluate;
    if (!elf_dynamic_symbol(file, "_PyRuntime", &runtime) ||
        !elf_dynamic_symbol(file, "PyCode_Type", &code_type) ||
        !elf_dynamic_symbol(file, "_PyEval_EvalFrameDefault", &evaluate) || !evaluate.size_bytes ||
        evaluate.address > UINT64_MAX - evaluate.size_bytes)
        return false;
    struct python_binary binary = {
        .runtime = runtime.address,
        .code_type = code_type.address,
        .evaluate = {evaluate.address, evaluate.address + evaluate.size_bytes},
    };
    if (!elf_address_to_offset(file, evaluate.address, &binary.evaluate_offset))
        return false;
    binary.tail_calls = evaluate.size_bytes < EVALUATE_BYTES_MIN;
    find_version(file, path, &binary);
    runtime_find_part(file, binary.evaluate, binary.cold);
    *ret_binary = binary;
    return true;
}
