// SPDX-License-Identifier: Apache-2.0
// A collector's own BPF object: see probes.h.

#include "capture/bpf/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/bpf/sampler.h"
#include "capture/bpf/sampler_parts.h"

#define LINKS_MAX 16
#define TABLES_MAX 8

struct bpf_probes {
    const char *name;
    struct bpf_object *object;
    struct {
        const char *program; /* its name, as the object has it */
        struct bpf_link *link;
    } links[LINKS_MAX];
    struct {
        const char *map;
        void *memory;
        size_t bytes;
    } tables[TABLES_MAX];
};

/* Maps that the sampler has are the same here. */
static int share_maps(struct bpf_object *object, const struct bpf_object *with)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, object)
    {
        const char *name = bpf_map__name(map);
        struct bpf_map *shared =
            bpf_map__is_internal(map) ? NULL : bpf_object__find_map_by_name(with, name);
        int r = shared ? bpf_map__reuse_fd(map, bpf_map__fd(shared)) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int bpf_probes_open(struct bpf_sampler *sampler, const char *name, const unsigned char *object,
                    size_t object_bytes, struct bpf_probes **ret_probes, struct error *error)
{
    struct bpf_probes *probes = memory_zalloc(1, sizeof(*probes));
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);
    probes->name = name;
    probes->object = bpf_object__open_mem(object, object_bytes, &options);
    struct bpf_settings settings = bpf_sampler_settings(sampler);
    int r = probes->object ? share_maps(probes->object, bpf_sampler_object_of(sampler)) : -errno;
    if (!r)
        r = bpf_probes_set_constants(probes, ".rodata", &settings, sizeof(settings));
    if (r < 0) {
        bpf_probes_free(probes);
        return error_set_errno(error, r, "Cannot open the BPF programs of the collector %s", name);
    }
    *ret_probes = probes;
    return 0;
}

void bpf_probes_free(struct bpf_probes *probes)
{
    if (!probes)
        return;
    for (size_t i = 0; i < LINKS_MAX; i++)
        bpf_link__destroy(probes->links[i].link);
    for (size_t i = 0; i < TABLES_MAX; i++)
        if (probes->tables[i].memory)
            munmap(probes->tables[i].memory, probes->tables[i].bytes);
    bpf_object__close(probes->object);
    free(probes);
}

int bpf_probes_set_constants(struct bpf_probes *probes, const char *section, const void *value,
                             size_t bytes)
{
    struct bpf_map *map = bpf_object__find_map_by_name(probes->object, section);
    return map ? bpf_map__set_initial_value(map, value, bytes) : -ENOENT;
}

int bpf_probes_leave_out(struct bpf_probes *probes, const char *program)
{
    struct bpf_program *found = bpf_probes_program(probes, program);
    return found ? bpf_program__set_autoload(found, false) : -ENOENT;
}

int bpf_probes_set_entries(struct bpf_probes *probes, const char *map, uint32_t entries)
{
    struct bpf_map *found = bpf_object__find_map_by_name(probes->object, map);
    return found ? bpf_map__set_max_entries(found, entries) : -ENOENT;
}

int bpf_probes_load(struct bpf_probes *probes, struct error *error)
{
    int r = bpf_object__load(probes->object);
    return r < 0 ? error_set_errno(error, r, "Cannot load the BPF programs of the collector %s",
                                   probes->name)
                 : 0;
}

void *bpf_probes_table(struct bpf_probes *probes, const char *name)
{
    size_t at = 0;
    while (at < TABLES_MAX && probes->tables[at].memory && strcmp(probes->tables[at].map, name))
        at++;
    if (at == TABLES_MAX || probes->tables[at].memory)
        return at == TABLES_MAX ? NULL : probes->tables[at].memory;
    struct bpf_map *map = bpf_object__find_map_by_name(probes->object, name);
    if (!map)
        return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
    bytes = (bytes + page - 1) / page * page;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_DONTFORK); /* not for children that read hostile files */
    probes->tables[at].map = bpf_map__name(map);
    probes->tables[at].memory = memory;
    probes->tables[at].bytes = bytes;
    return memory;
}

int bpf_probes_map(const struct bpf_probes *probes, const char *map)
{
    int fd = bpf_object__find_map_fd_by_name(probes->object, map);
    return fd < 0 ? -1 : fd;
}

struct bpf_program *bpf_probes_program(const struct bpf_probes *probes, const char *program)
{
    return bpf_object__find_program_by_name(probes->object, program);
}

static size_t find_link(const struct bpf_probes *probes, const char *program)
{
    size_t at = 0;
    while (at < LINKS_MAX &&
           (!probes->links[at].link || strcmp(probes->links[at].program, program) != 0))
        at++;
    return at;
}

int bpf_probes_attach(struct bpf_probes *probes, const char *name)
{
    struct bpf_program *program = bpf_probes_program(probes, name);
    size_t at = 0;
    if (find_link(probes, name) < LINKS_MAX)
        return 0;
    while (at < LINKS_MAX && probes->links[at].link)
        at++;
    if (!program || at == LINKS_MAX)
        return program ? -ENOSPC : -ENOENT;
    probes->links[at].program = bpf_program__name(program);
    probes->links[at].link = bpf_program__attach(program);
    if (!probes->links[at].link)
        return -errno;
    /* An iterator runs in our own read(), which the kernel counts as our time, and can be
     * preempted, which it would count as the program's: the link is all that is needed of it. */
    if (bpf_program__expected_attach_type(program) == BPF_TRACE_ITER)
        bpf_program__unload(program);
    return 0;
}

void bpf_probes_detach(struct bpf_probes *probes, const char *program)
{
    size_t at = find_link(probes, program);
    if (at == LINKS_MAX)
        return;
    bpf_link__destroy(probes->links[at].link);
    probes->links[at].link = NULL;
}

int bpf_probes_iterate(struct bpf_probes *probes, const char *program)
{
    size_t at = find_link(probes, program);
    if (at == LINKS_MAX)
        return -ENOENT;
    int fd = bpf_iter_create(bpf_link__fd(probes->links[at].link));
    if (fd < 0)
        return -errno;
    char nothing[64];
    ssize_t got;
    while ((got = read(fd, nothing, sizeof(nothing))) > 0 || (got < 0 && errno == EINTR))
        ;
    int r = got < 0 ? -errno : 0;
    close(fd);
    return r;
}

struct bpf_cost bpf_object_cost(const struct bpf_object *object)
{
    struct bpf_program *program;
    struct bpf_cost cost = {0};
    bpf_object__for_each_program(program, object)
    {
        struct bpf_prog_info info = {0};
        uint32_t length = sizeof(info);
        if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length) < 0)
            continue;
        cost.run_ns += info.run_time_ns;
        cost.runs += info.run_cnt;
    }
    return cost;
}

struct bpf_cost bpf_probes_cost(const struct bpf_probes *probes)
{
    return bpf_object_cost(probes->object);
}
