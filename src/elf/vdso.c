// SPDX-License-Identifier: Apache-2.0
// The vDSO's image, from our own memory: see vdso.h.

#include "elf/vdso.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/auxv.h>

int vdso_open(struct elf_file *ret_file, struct error *error)
{
    uint64_t image = getauxval(AT_SYSINFO_EHDR), start, end = 0, length = 0;
    char line[4600];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !length && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start == image)
            length = end - start;
    if (maps)
        fclose(maps);
    if (!image || !length)
        return error_set(error, -ENOENT, "No vDSO found.");
    return elf_open_memory((const void *)image, length, ELF_LAYOUT_FILE, ret_file, error);
}
