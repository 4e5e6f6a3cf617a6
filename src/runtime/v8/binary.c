// SPDX-License-Identifier: Apache-2.0
// Recognising V8 in files: see binary.h.

#include "runtime/v8/binary.h"

#include <stdio.h>

#include "base/memory.h"

#define OFFSETS_MAX 4096
#define SMI_SHIFT 31           /* of 64-bit pointers; compressed ones have 0 */
#define FUNCTION_TYPES_MORE 16 /* subclasses, where the last isn't exported */

/* An exported number; several names where versions differ. */
static bool read_number(struct elf_file *file, const char *const names[4], int32_t *ret_number)
{
    for (unsigned i = 0; i < 4 && names[i]; i++) {
        struct elf_symbol symbol;
        int32_t number = 0;
        if (!elf_dynamic_symbol(file, names[i], &symbol))
            continue;
        /* One that is 0 may have no bytes in the file. */
        if (elf_read_address(file, symbol.address, &number, sizeof(number)) < 0)
            number = 0;
        *ret_number = number;
        return true;
    }
    return false;
}

#define NAMES(...) ((const char *const[4]){__VA_ARGS__})

static bool read_offset(struct elf_file *file, const char *const names[4], uint16_t *ret_offset)
{
    int32_t number;
    if (!read_number(file, names, &number) || number < 0 || number > OFFSETS_MAX)
        return false;
    *ret_offset = (uint16_t)number;
    return true;
}

static bool read_frame(struct elf_file *file, const char *name, short *ret_offset)
{
    int32_t number;
    if (!read_number(file, NAMES(name), &number) || number >= 0 || number < -128)
        return false;
    *ret_offset = (short)number;
    return true;
}

#define SHARED "v8dbg_class_SharedFunctionInfo__"

static bool read_offsets(struct elf_file *file, struct v8_binary *binary)
{
    struct bpf_v8 *walk = &binary->walk;
    return read_frame(file, "v8dbg_off_fp_context", &walk->frame_context) &&
           read_frame(file, "v8dbg_off_fp_function", &walk->frame_function) &&
           read_offset(file, NAMES("v8dbg_class_Map__instance_type__uint16_t"), &walk->map_type) &&
           read_offset(file, NAMES("v8dbg_class_JSFunction__shared__SharedFunctionInfo"),
                       &walk->function_shared) &&
           read_offset(file,
                       NAMES(SHARED "name_or_scope_info__Object",
                             SHARED "name_or_scope_info__Tagged_Object_",
                             SHARED "name_or_scope_info__Tagged_NameOrScopeInfoT_"),
                       &walk->shared_name) &&
           read_offset(file,
                       NAMES(SHARED "script_or_debug_info__HeapObject",
                             SHARED "script__Tagged_HeapObject_",
                             SHARED "raw_script__Tagged_Object_"),
                       &walk->shared_script) &&
           read_offset(file, NAMES("v8dbg_class_String__length__int32_t"),
                       &binary->string_length) &&
           read_offset(file, NAMES("v8dbg_class_SeqOneByteString__chars__char"),
                       &binary->string_chars) &&
           read_offset(file, NAMES("v8dbg_class_Script__name__Object"), &binary->script_name) &&
           read_offset(file, NAMES("v8dbg_scopeinfo_idx_ncontextlocals"), &binary->scope_locals) &&
           read_offset(file, NAMES("v8dbg_scopeinfo_idx_first_vars"), &binary->scope_first);
}

/* Version 9.4 doesn't export where a script has its source: in all versions it is first. */
static void find_source(struct elf_file *file, struct v8_binary *binary)
{
    if (!read_offset(file, NAMES("v8dbg_class_Script__source__Object"), &binary->script_source))
        binary->script_source = 8;
}

static bool read_types(struct elf_file *file, struct v8_binary *binary)
{
    unsigned short *functions = binary->walk.function_type;
    if (!read_offset(file, NAMES("v8dbg_type_JSFunction__JS_FUNCTION_TYPE"), &functions[0]) ||
        !read_offset(file, NAMES("v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"),
                     &binary->shared_type) ||
        !read_offset(file, NAMES("v8dbg_type_Script__SCRIPT_TYPE"), &binary->script_type) ||
        !read_offset(file, NAMES("v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE"), &binary->scope_type) ||
        !read_offset(file, NAMES("v8dbg_FirstNonstringType"), &binary->first_other_type))
        return false;
    if (!read_offset(file, NAMES("v8dbg_LastJSFunctionType"), &functions[1]))
        functions[1] = (unsigned short)(functions[0] + FUNCTION_TYPES_MORE);
    return true;
}

static void find_version(struct elf_file *file, struct v8_binary *binary)
{
    int32_t major, minor;
    if (read_number(file, NAMES("_ZN2v88internal7Version6major_E"), &major) &&
        read_number(file, NAMES("_ZN2v88internal7Version6minor_E"), &minor) && major > 0)
        snprintf(binary->version, sizeof(binary->version), "%d.%d", major, minor);
}

bool v8_binary_find(struct elf_file *file, struct v8_binary *ret_binary)
{
    struct v8_binary binary = {0};
    int32_t shift;
    if (!read_number(file, NAMES("v8dbg_SmiShiftSize"), &shift) || shift != SMI_SHIFT ||
        !read_offsets(file, &binary) || !read_types(file, &binary))
        return false;
    const struct bpf_v8 *walk = &binary.walk;
    if (MAX(walk->function_shared, MAX(walk->shared_name, walk->shared_script)) > BPF_V8_BYTES - 8)
        return false;
    find_version(file, &binary);
    find_source(file, &binary);
    *ret_binary = binary;
    return true;
}
