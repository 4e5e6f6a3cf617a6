// SPDX-License-Identifier: Apache-2.0
// Mapped binaries: see modules.h.

#include "capture/modules.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

void modules_init(struct modules *modules)
{
    *modules = (struct modules){0};
    unwind_rules_init(&modules->rules);
}

static void module_free(struct module *module)
{
    if (module->readable) {
        unwind_rows_release(&module->rows);
        elf_release(&module->file);
    }
    free(module->path);
    free(module->build_id);
    free(module);
}

void modules_release(struct modules *modules)
{
    for (size_t i = 0; i < modules->count; i++)
        module_free(modules->list[i]);
    free(modules->list);
    id_table_release(&modules->index);
    unwind_rules_release(&modules->rules);
}

static void read_identity(struct module *module)
{
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length = 0;
    if (!elf_build_id(&module->file, id, &length))
        length = 0;
    module->build_id = memory_zalloc(2 * length + 1, 1);
    for (size_t i = 0; i < length; i++)
        snprintf(module->build_id + 2 * i, 3, "%02x", id[i]);
}

/* Our own vDSO stands for everybody's: one kernel maps one image. */
static int open_vdso(struct elf_file *ret_file, struct error *error)
{
    uint64_t image = getauxval(AT_SYSINFO_EHDR), start, end = 0;
    char line[4600];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start == image)
            break;
    if (maps)
        fclose(maps);
    if (!image || end <= image)
        return error_set(error, -ENOENT, "There is no vDSO.");
    return elf_open_memory((const void *)image, end - image, ELF_LAYOUT_FILE, ret_file, error);
}

static void load(struct modules *modules, struct module *module, int fd)
{
    struct error error = {0};
    bool vdso = fd < 0;
    int r = vdso ? open_vdso(&module->file, &error) : elf_open_fd(fd, &module->file, &error);
    if (r < 0) {
        if (!vdso)
            close(fd);
        module->build_id = memory_strdup("");
        log_debug("%s: %s", module->path, error.text);
        return;
    }
    module->readable = true;
    read_identity(module);
    if (unwind_rows_compile(&module->file, &modules->rules, &module->rows, &error) < 0)
        log_debug("%s: %s", module->path, error.text);
}

static struct module *find(struct modules *modules, uint64_t hash, const struct module *key)
{
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&modules->index, &probe)) != ID_NONE) {
        struct module *module = modules->list[id];
        if (module->device == key->device && module->inode == key->inode &&
            module->size_bytes == key->size_bytes && !strcmp(module->path, key->path))
            return module;
    }
    return NULL;
}

struct module *modules_get(struct modules *modules, const char *path, const char *open_path)
{
    bool vdso = !strcmp(path, "[vdso]");
    struct module key = {.path = (char *)path};
    int fd = -1;
    if (!vdso) {
        struct stat found;
        if (path[0] != '/' || !strncmp(path, "//anon", 6))
            return NULL;
        fd = open(open_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) {
            key.device = found.st_dev;
            key.inode = found.st_ino;
            key.size_bytes = (uint64_t)found.st_size;
        }
    }
    uint64_t hash = hash_word(key.device ^ hash_word(key.inode ^ hash_word(key.size_bytes)));
    struct module *module = find(modules, hash, &key);
    if (module || modules->count == MODULES_MAX) {
        modules->refused += !module;
        if (fd >= 0)
            close(fd);
        return module;
    }
    module = memory_zalloc(1, sizeof(*module));
    *module = key;
    module->path = memory_strdup(path);
    if (vdso || key.inode) {
        load(modules, module, fd);
    } else {
        if (fd >= 0)
            close(fd);
        module->build_id = memory_strdup("");
    }
    array_reserve(modules->list, modules->capacity, modules->count + 1);
    id_table_insert(&modules->index, hash, (uint32_t)modules->count);
    modules->list[modules->count++] = module;
    return module;
}
