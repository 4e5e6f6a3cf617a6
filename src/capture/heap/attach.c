// SPDX-License-Identifier: Apache-2.0
// Files with probes of memory: see attach.h.

#include "capture/heap/attach.h"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/bpf/many.h"
#include "capture/heap/reader.h"
#include "capture/record/module_file.h"
#include "elf/usdt/usdt.h"

#define MAP_LINE_BYTES 4600
#define TURN_NS 250000000
#define MODULES_PER_TURN 8
#define PROCESSES_PER_TURN 1
#define PROCESSES_FIRST_ROUND 16
#define LINES_PER_TURN 1024
#define FILES_PER_TURN 32
#define LINES_MAX 16384 /* of one process */
/* A file that no process was seen with for so long makes room for another. */
#define UNSEEN_NS 600000000000

void heap_attach_init(struct heap_attach *attach, struct bpf_probes *probes,
                      struct bpf_heap_place *places)
{
    *attach = (struct heap_attach){.probes = probes, .places = places};
}

static void detach_file(struct heap_attach *attach, struct heap_file *file)
{
    if (file->alloc_link >= 0)
        close(file->alloc_link);
    if (file->free_link >= 0)
        close(file->free_link);
    file->alloc_link = file->free_link = -1;
    memset(attach->taken + file->first, 0, file->count * sizeof(*attach->taken));
    file->count = 0;
}

static void close_maps(struct heap_attach *attach)
{
    if (attach->maps)
        fclose(attach->maps);
    attach->maps = NULL;
}

void heap_attach_release(struct heap_attach *attach)
{
    for (unsigned i = 0; i < BPF_HEAP_PLACES; i++)
        bpf_link__destroy(attach->links[i]);
    for (size_t i = 0; i < attach->file_count; i++) {
        detach_file(attach, &attach->files[i]);
        close(attach->files[i].fd);
    }
    close_maps(attach);
    if (attach->proc)
        closedir(attach->proc);
    id_table_release(&attach->looked);
    free(attach->looked_list);
    *attach = (struct heap_attach){0};
}

int heap_attach_choose_all(struct bpf_probes *probes, struct error *error)
{
    int r = uprobe_many_supported() ? 0 : -ENOTSUP;
    if (!r)
        r = uprobe_many_choose(bpf_probes_program(probes, "assay_alloc"));
    if (!r)
        r = uprobe_many_choose(bpf_probes_program(probes, "assay_free"));
    return r < 0 ? error_set(error, -ENOTSUP,
                             "Heap profiles of all processes require Linux 6.6 (uprobe links).")
                 : 0;
}

/* ---- probes ---- */

static void describe(const struct usdt_probe *probe, struct bpf_heap_place *ret_place)
{
    static const unsigned kinds[] = {[USDT_CONSTANT] = BPF_HEAP_CONSTANT,
                                     [USDT_REGISTER] = BPF_HEAP_REGISTER,
                                     [USDT_MEMORY] = BPF_HEAP_MEMORY};
    *ret_place = (struct bpf_heap_place){0};
    for (unsigned i = 0; i < MIN(probe->argument_count, (unsigned)BPF_HEAP_ARGUMENTS); i++) {
        const struct usdt_argument *argument = &probe->arguments[i];
        ret_place->arguments[i] = (struct bpf_heap_argument){.kind = kinds[argument->kind],
                                                             .number = argument->number,
                                                             .bytes = argument->bytes,
                                                             .is_signed = argument->is_signed,
                                                             .offset = argument->offset};
    }
}

/* `count` places that follow each other; BPF_HEAP_PLACES when there are none. */
static unsigned free_places(const struct heap_attach *attach, unsigned count)
{
    unsigned run = 0;
    for (unsigned at = 0; at < BPF_HEAP_PLACES; at++) {
        run = attach->taken[at] ? 0 : run + 1;
        if (run == count)
            return at + 1 - count;
    }
    return BPF_HEAP_PLACES;
}

/* The probes of the name that take enough arguments. */
static size_t find_probes(struct elf_file *file, bool is_alloc, struct usdt_probe *probes)
{
    size_t count = usdt_find(file, "otel_memory", is_alloc ? "alloc" : "free", probes), kept = 0;
    for (size_t i = 0; i < count; i++)
        if (probes[i].argument_count >= (is_alloc ? 3u : 1u))
            probes[kept++] = probes[i];
    return kept;
}

/* ---- one process ---- */

static unsigned attach_own(struct heap_attach *attach, struct elf_file *file, const char *path,
                           pid_t pid, bool is_alloc)
{
    struct usdt_probe probes[USDT_PROBES_MAX];
    size_t count = find_probes(file, is_alloc, probes);
    struct bpf_program *program =
        bpf_probes_program(attach->probes, is_alloc ? "assay_alloc" : "assay_free");
    unsigned attached = 0, at;
    for (size_t i = 0; i < count && (at = free_places(attach, 1)) < BPF_HEAP_PLACES; i++) {
        LIBBPF_OPTS(bpf_uprobe_opts, options, .ref_ctr_offset = (size_t)probes[i].semaphore,
                    .bpf_cookie = at);
        describe(&probes[i], &attach->places[at]);
        attach->links[at] =
            bpf_program__attach_uprobe_opts(program, pid, path, (size_t)probes[i].offset, &options);
        attach->taken[at] = attach->links[at] != NULL;
        attached += attach->taken[at];
    }
    return attached;
}

int heap_attach_file(struct heap_attach *attach, const char *path, struct error *error)
{
    struct elf_file file;
    int r = elf_open(path, &file, error);
    if (r < 0)
        return r;
    if (attach_own(attach, &file, path, -1, false))
        attach->allocs += attach_own(attach, &file, path, -1, true);
    elf_release(&file);
    return attach->allocs ? 0
                          : error_set(error, -ENOENT, "Cannot attach to the probes of %s.", path);
}

/* Whether the line is of a file, and of another one than the last line was. */
static bool is_next_file(struct heap_attach *attach, char *line, struct heap_map *ret_map)
{
    line[strcspn(line, "\n")] = '\0';
    if (!heap_map_parse(line, ret_map) || ret_map->path[0] != '/' || !ret_map->inode ||
        (ret_map->inode == attach->maps_inode && ret_map->device == attach->maps_device))
        return false;
    attach->maps_inode = ret_map->inode;
    attach->maps_device = ret_map->device;
    return true;
}

static int open_maps(struct heap_attach *attach, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    attach->maps = fopen(path, "re");
    attach->maps_pid = pid;
    attach->maps_lines = 0;
    attach->maps_device = attach->maps_inode = 0;
    return attach->maps ? 0 : -errno;
}

/* Releases first: an allocation that is seen must not stay live because its release was not. */
static void take_own_map(struct heap_attach *attach, const struct heap_map *map, pid_t pid)
{
    char name[64];
    struct elf_file file;
    struct error ignored = {0};
    int fd = module_file_in_root((uint32_t)pid, map->path);
    if (fd < 0)
        return;
    if (elf_open_fd(fd, &file, &ignored) < 0) {
        close(fd);
        return;
    }
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    if (attach_own(attach, &file, name, pid, false))
        attach->allocs += attach_own(attach, &file, name, pid, true);
    elf_release(&file);
}

int heap_attach_process(struct heap_attach *attach, pid_t pid, struct error *error)
{
    char line[MAP_LINE_BYTES];
    struct heap_map map;
    int r = open_maps(attach, pid);
    if (r < 0)
        return error_set_errno(error, r, "Cannot read /proc/%d/maps", (int)pid);
    while (fgets(line, sizeof(line), attach->maps))
        if (is_next_file(attach, line, &map))
            take_own_map(attach, &map, pid);
    close_maps(attach);
    if (!attach->allocs)
        return error_set(error, -ENOENT,
                         "Process %d has no otel_memory probes. Start it with "
                         "LD_PRELOAD=libassay_heap.so, or record it from its start: "
                         "`assay record --mode heap -- CMD`.",
                         (int)pid);
    return 0;
}

/* ---- all processes ---- */

/* Whether a file was looked at before and has no probes. */
static bool was_looked_at(struct heap_attach *attach, uint64_t device, uint64_t inode)
{
    uint64_t hash = hash_word(inode ^ device << 40);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&attach->looked, &probe)) != ID_NONE)
        if (attach->looked_list[id].inode == inode && attach->looked_list[id].device == device)
            return true;
    if (attach->looked_count == HEAP_FILES_LOOKED_MAX) {
        attach->looked_count = 0;
        id_table_clear(&attach->looked);
    }
    array_reserve(attach->looked_list, attach->looked_capacity, attach->looked_count + 1);
    attach->looked_list[attach->looked_count].device = device;
    attach->looked_list[attach->looked_count].inode = inode;
    id_table_insert(&attach->looked, hash, (uint32_t)attach->looked_count++);
    return false;
}

static struct heap_file *known_file(struct heap_attach *attach, uint64_t device, uint64_t inode)
{
    for (size_t i = 0; i < attach->file_count; i++)
        if (attach->files[i].inode == inode && attach->files[i].device == device)
            return &attach->files[i];
    return NULL;
}

/* A place for a file of this owner: one that has not been seen for long goes for it. */
static struct heap_file *file_place(struct heap_attach *attach, uint32_t owner)
{
    struct heap_file *oldest = NULL;
    size_t of_owner = 0;
    for (size_t i = 0; i < attach->file_count; i++) {
        struct heap_file *file = &attach->files[i];
        of_owner += owner && file->owner == owner;
        if (attach->turn_ns - file->seen_ns > UNSEEN_NS &&
            (!oldest || file->seen_ns < oldest->seen_ns))
            oldest = file;
    }
    bool full = attach->file_count == HEAP_FILES_MAX || of_owner >= HEAP_FILES_OF_USER_MAX;
    if (!full)
        return &attach->files[attach->file_count++];
    if (oldest && (attach->file_count == HEAP_FILES_MAX || oldest->owner == owner)) {
        detach_file(attach, oldest);
        close(oldest->fd);
    } else {
        attach->refused++;
        oldest = NULL;
    }
    return oldest;
}

static int attach_list(struct heap_attach *attach, const char *path, bool is_alloc,
                       const struct usdt_probe *probes, size_t count, unsigned first)
{
    struct uprobe_place places[USDT_PROBES_MAX];
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct uprobe_place){probes[i].offset, probes[i].semaphore, first + i};
        describe(&probes[i], &attach->places[first + i]);
    }
    return uprobe_many_attach(
        bpf_probes_program(attach->probes, is_alloc ? "assay_alloc" : "assay_free"), path, places,
        count);
}

/* False when the file has no probes of both kinds. */
static bool attach_file(struct heap_attach *attach, struct heap_file *file)
{
    _Static_assert(USDT_PROBES_MAX <= UPROBE_MANY_MAX, "one link is enough");
    struct usdt_probe allocs[USDT_PROBES_MAX], frees[USDT_PROBES_MAX];
    struct elf_file elf;
    struct error ignored = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
    if (elf_open(path, &elf, &ignored) < 0)
        return false;
    size_t alloc_count = find_probes(&elf, true, allocs);
    size_t free_count = find_probes(&elf, false, frees);
    elf_release(&elf);
    if (!alloc_count || !free_count)
        return false;
    unsigned count = (unsigned)(alloc_count + free_count), first = free_places(attach, count);
    if (first == BPF_HEAP_PLACES) {
        attach->refused++;
        return true;
    }
    file->first = first;
    file->count = count;
    memset(attach->taken + first, 1, count * sizeof(*attach->taken));
    file->free_link = attach_list(attach, path, false, frees, free_count, first);
    if (file->free_link >= 0)
        file->alloc_link =
            attach_list(attach, path, true, allocs, alloc_count, first + (unsigned)free_count);
    if (file->alloc_link < 0) {
        attach->refused++;
        detach_file(attach, file);
    }
    return true;
}

/* A file that some process has mapped; the descriptor is taken over. */
static void look_at(struct heap_attach *attach, int fd)
{
    struct stat found;
    if (fd < 0)
        return;
    if (fstat(fd, &found) < 0) {
        close(fd);
        return;
    }
    struct heap_file *known = known_file(attach, found.st_dev, found.st_ino);
    struct heap_file fresh = {.fd = fd,
                              .device = found.st_dev,
                              .inode = found.st_ino,
                              .owner = found.st_uid,
                              .free_link = -1,
                              .alloc_link = -1,
                              .seen_ns = attach->turn_ns};
    if (known)
        known->seen_ns = attach->turn_ns;
    if (!known && !was_looked_at(attach, found.st_dev, found.st_ino) &&
        attach_file(attach, &fresh) && (known = file_place(attach, found.st_uid)))
        *known = fresh;
    else {
        detach_file(attach, &fresh);
        close(fd);
    }
}

/* Files of sampled processes. */
static void look_at_modules(struct heap_attach *attach, const struct modules *modules)
{
    char path[MODULE_PATH_BYTES];
    if (attach->modules_seen > modules->count)
        attach->modules_seen = 0;
    for (unsigned i = 0; i < MODULES_PER_TURN && attach->modules_seen < modules->count; i++) {
        const struct module *module = modules->list[attach->modules_seen++];
        const char *at = module->is_vdso ? NULL : module_open_path(module, path);
        int handle = at ? open(at, O_PATH | O_CLOEXEC) : -1;
        if (handle >= 0)
            look_at(attach, file_open_regular(handle));
    }
}

/* The next process that is to be looked at; false: the round is over. */
static bool next_process(struct heap_attach *attach, const struct processes *processes)
{
    const struct dirent *entry;
    while ((entry = readdir(attach->proc))) {
        uint64_t pid;
        if (!text_to_u64(entry->d_name, strlen(entry->d_name), &pid) || pid > INT32_MAX)
            continue;
        const struct process *process = processes_find(processes, (uint32_t)pid);
        if (process && process->known && process->sampled && !attach->first_round)
            continue;
        open_maps(attach, (pid_t)pid);
        return true;
    }
    rewinddir(attach->proc);
    attach->first_round = true;
    return false;
}

/* Processes that hardly run are not sampled, and may hold much. A list of mappings that is long, or
 * has many files, is read over several turns. */
static void look_at_processes(struct heap_attach *attach, const struct processes *processes)
{
    unsigned left = attach->first_round ? PROCESSES_PER_TURN : PROCESSES_FIRST_ROUND;
    unsigned lines = LINES_PER_TURN, files = FILES_PER_TURN;
    char line[MAP_LINE_BYTES];
    if (!attach->proc)
        attach->proc = opendir("/proc");
    while (attach->proc && lines && files) {
        struct heap_map map;
        if (!attach->maps && (!left-- || !next_process(attach, processes)))
            return;
        if (!attach->maps)
            continue;
        lines--;
        if (attach->maps_lines++ == LINES_MAX || !fgets(line, sizeof(line), attach->maps)) {
            close_maps(attach);
        } else if (is_next_file(attach, line, &map)) {
            files--;
            look_at(attach, module_file_in_root((uint32_t)attach->maps_pid, map.path));
        }
    }
}

void heap_attach_turn(struct heap_attach *attach, const struct modules *modules,
                      const struct processes *processes, int64_t now_ns)
{
    if (now_ns - attach->turn_ns < TURN_NS || attach->off)
        return;
    attach->turn_ns = now_ns;
    look_at_modules(attach, modules);
    look_at_processes(attach, processes);
}

void heap_attach_set(struct heap_attach *attach, bool on)
{
    if (attach->off == !on)
        return;
    attach->off = !on;
    for (size_t i = 0; i < attach->file_count; i++) {
        if (on)
            attach_file(attach, &attach->files[i]);
        else
            detach_file(attach, &attach->files[i]);
    }
}
