// SPDX-License-Identifier: Apache-2.0
// Where Go has labels of goroutines: see labels.h.

#include "runtime/go/labels.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define BUILD_INFO_BYTES 32 /* before the version, which has its length before it */
#define BUILD_INFO_INLINE 2 /* in its flags: the version is here, since 1.18 */
#define WORD 8

/* Where versions have what is read. */
static const struct {
    unsigned first, last;
    struct bpf_go go;
} layouts[] = {
    {17, 20, {.g_m = 48, .m_curg = 192, .g_labels = 360}},
    {21, 22, {.g_m = 48, .m_curg = 192, .g_labels = 344}},
    {23, 23, {.g_m = 48, .m_curg = 192, .g_labels = 352}},
    {24, 24, {.g_m = 48, .m_curg = 192, .g_labels = 352, .list = 1}},
    {25, 25, {.g_m = 48, .m_curg = 184, .g_labels = 344, .list = 1}},
    {26, 26, {.g_m = 48, .m_curg = 184, .g_labels = 352, .list = 1}},
};

/* The version's second number; 0: not known. Before 1.18 the file has the address of a string. */
static unsigned find_minor(struct elf_file *file)
{
    struct elf_section info;
    uint8_t head[BUILD_INFO_BYTES];
    char text[16] = "";
    unsigned minor;
    if (!elf_find_section(file, ".go.buildinfo", &info) ||
        elf_read_address(file, info.address, head, sizeof(head)) < 0 ||
        memcmp(head, "\xff Go buildinf:", 14) != 0)
        return 0;
    uint64_t at = info.address + BUILD_INFO_BYTES + 1;
    if (!(head[15] & BUILD_INFO_INLINE)) {
        uint64_t pointer, where[2];
        memcpy(&pointer, head + 16, sizeof(pointer));
        if (head[14] != WORD || elf_read_address(file, pointer, where, sizeof(where)) < 0)
            return 0;
        at = where[0];
    }
    return elf_read_address(file, at, text, sizeof(text) - 1) == 0 &&
                   sscanf(text, "go1.%3u", &minor) == 1
               ? minor
               : 0;
}

/* The linker of Go puts its variable right before the thread pointer. That of C puts it among all
 * thread-local variables, whose block ends there. */
static bool find_variable(struct elf_file *file, int *ret_offset)
{
    const struct elf_segment *block = elf_find_segment(file, PT_TLS);
    if (!block || block->memory_bytes <= WORD) {
        *ret_offset = -WORD;
        return true;
    }
    struct elf_variable variable = {
        .name = "runtime.tlsg", .bytes_min = WORD, .bytes_max = WORD, .is_thread_local = true};
    uint64_t alignment = block->alignment ? block->alignment : 1;
    if (block->memory_bytes > (1u << 28) || alignment & (alignment - 1) ||
        elf_variables(file, &variable, 1) != 1 || variable.address >= block->memory_bytes)
        return false;
    uint64_t end = block->address + block->memory_bytes;
    *ret_offset = (int)((int64_t)variable.address -
                        (int64_t)(block->memory_bytes + (-end & (alignment - 1))));
    return true;
}

bool go_labels_find(struct elf_file *file, struct bpf_go *ret_go)
{
    unsigned minor = find_minor(file);
    for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++)
        if (minor >= layouts[i].first && minor <= layouts[i].last) {
            struct bpf_go go = layouts[i].go;
            if (!find_variable(file, &go.g))
                return false;
            *ret_go = go;
            return true;
        }
    return false;
}
