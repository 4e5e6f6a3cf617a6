// SPDX-License-Identifier: Apache-2.0
// Heap profiles through BPF: see collector.h.

#include "capture/heap/collector.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "bpf/heap.h"
#include "capture/bpf/object.h"
#include "capture/heap/heap.h"
#include "capture/heap/reader.h"
#include "elf/usdt/usdt.h"

#define FILES_MAX 4096 /* mapped by one process */
#define MAP_LINE_BYTES 4600

struct heap_collector {
    struct heap heap;
    struct bpf_probes *probes;
    struct bpf_heap_place *places;
    uint64_t *lost_frees;
    struct bpf_link *links[BPF_HEAP_PLACES];
    unsigned link_count;
    unsigned allocs_attached;
};

static void heap_stop(void *state)
{
    struct heap_collector *collector = state;
    if (!collector)
        return;
    for (unsigned i = 0; i < collector->link_count; i++)
        bpf_link__destroy(collector->links[i]);
    bpf_probes_free(collector->probes);
    heap_release(&collector->heap);
    free(collector);
}

/* ---- attaching ---- */

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

/* Attaches the program to all probes of the name that take so many arguments. */
static unsigned attach_name(struct heap_collector *collector, struct elf_file *file,
                            const char *path, pid_t pid, const char *name, unsigned arguments,
                            const char *program)
{
    struct usdt_probe probes[USDT_PROBES_MAX];
    size_t count = usdt_find(file, "otel_memory", name, probes);
    unsigned attached = 0;
    for (size_t i = 0; i < count && collector->link_count < BPF_HEAP_PLACES; i++) {
        LIBBPF_OPTS(bpf_uprobe_opts, options, .ref_ctr_offset = (size_t)probes[i].semaphore,
                    .bpf_cookie = collector->link_count);
        if (probes[i].argument_count < arguments)
            continue;
        describe(&probes[i], &collector->places[collector->link_count]);
        struct bpf_link *link =
            bpf_program__attach_uprobe_opts(bpf_probes_program(collector->probes, program), pid,
                                            path, (size_t)probes[i].offset, &options);
        if (!link)
            continue;
        collector->links[collector->link_count++] = link;
        attached++;
    }
    return attached;
}

/* Releases first: an allocation that is seen must not stay live because its release was not. */
static void attach_file(struct heap_collector *collector, const char *path, pid_t pid)
{
    struct elf_file file;
    struct error ignored = {0};
    if (elf_open(path, &file, &ignored) < 0)
        return;
    if (attach_name(collector, &file, path, pid, "free", 1, "assay_free"))
        collector->allocs_attached +=
            attach_name(collector, &file, path, pid, "alloc", 3, "assay_alloc");
    elf_release(&file);
}

static int attach_process(struct heap_collector *collector, pid_t pid, struct error *error)
{
    char path[64], line[MAP_LINE_BYTES], name[MAP_LINE_BYTES + 64];
    uint64_t last_inode = 0, last_device = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(error, -errno, "Cannot read %s", path);
    for (unsigned files = 0; files < FILES_MAX && fgets(line, sizeof(line), file);) {
        struct heap_map map;
        line[strcspn(line, "\n")] = '\0';
        if (!heap_map_parse(line, &map) || map.path[0] != '/' || !map.inode ||
            (map.inode == last_inode && map.device == last_device))
            continue;
        last_inode = map.inode;
        last_device = map.device;
        files++;
        /* As the process sees it, which may be in a container. */
        snprintf(name, sizeof(name), "/proc/%d/root%s", (int)pid, map.path);
        attach_file(collector, name, pid);
    }
    fclose(file);
    if (!collector->allocs_attached)
        return error_set(error, -ENOENT,
                         "Process %d has no otel_memory probes. Start it with "
                         "LD_PRELOAD=libassay_heap.so, or record it from its start: "
                         "`assay record --mode heap -- CMD`.",
                         (int)pid);
    return 0;
}

static int load(struct heap_collector *collector, const struct collector_setup *setup,
                struct error *error)
{
    int r = bpf_probes_open(setup->sampler, "assay_heap", bpf_heap_object, bpf_heap_object_length,
                            &collector->probes, error);
    if (!r)
        r = bpf_probes_load(collector->probes, error);
    if (r < 0)
        return r;
    collector->places = bpf_probes_table(collector->probes, "heap_places");
    collector->lost_frees = bpf_probes_table(collector->probes, "heap_lost_frees");
    return collector->places && collector->lost_frees
               ? 0
               : error_set_errno(error, -ENOMEM, "Cannot map the tables of the heap collector");
}

static int heap_start(const struct collector_setup *setup, void **ret_state, struct error *error)
{
    if (!setup->collect->pid_count)
        return error_set(error, -ENOTSUP,
                         "Mode heap records a command or processes (--pid), not everything.");
    struct heap_collector *collector = memory_zalloc(1, sizeof(*collector));
    heap_init(&collector->heap, setup->recorder);
    int r = load(collector, setup, error);
    for (size_t i = 0; !r && i < setup->collect->pid_count; i++)
        r = attach_process(collector, setup->collect->pids[i], error);
    if (r < 0) {
        heap_stop(collector);
        return r;
    }
    *ret_state = collector;
    return 0;
}

/* ---- events ---- */

static void heap_take_sample(void *state, const struct recorder_sample *sample,
                             const struct bpf_sample_event *event)
{
    struct heap_collector *collector = state;
    struct recorder_sample shorter = *sample;
    shorter.frame_count =
        heap_caller_count(collector->heap.recorder, sample->frames, sample->frame_count);
    heap_take_alloc(&collector->heap, &shorter,
                    &(struct heap_alloc){event->id, event->detail[0], event->value});
}

static void heap_take_note(void *state, const struct bpf_note *note)
{
    struct heap_collector *collector = state;
    struct bpf_heap_free event;
    if (note->bytes < sizeof(event))
        return;
    memcpy(&event, note, sizeof(event));
    heap_take_free(&collector->heap, event.pid, event.pointer);
}

static void heap_settle_all(void *state)
{
    heap_settle(&((struct heap_collector *)state)->heap);
}

static struct bpf_cost heap_cost(const void *state)
{
    return bpf_probes_cost(((const struct heap_collector *)state)->probes);
}

static void heap_losses(const void *state, struct capture_loss *losses, size_t *count)
{
    const struct heap_collector *collector = state;
    if (collector->heap.live.refused && *count < CAPTURE_LOSSES_MAX)
        losses[(*count)++] = (struct capture_loss){
            "heap_live_full", "allocations don't count as live: too many were live at once",
            collector->heap.live.refused};
    if (*collector->lost_frees && *count < CAPTURE_LOSSES_MAX)
        losses[(*count)++] = (struct capture_loss){
            "heap_frees_lost", "releases lost: as many samples count as live that are not",
            *collector->lost_frees};
}

const struct collector_kind heap_collector = {
    .name = "heap",
    .collector = BPF_COLLECTOR_HEAP,
    .modes = CAPTURE_HEAP,
    .start = heap_start,
    .stop = heap_stop,
    .take_sample = heap_take_sample,
    .take_note = heap_take_note,
    .settle = heap_settle_all,
    .cost = heap_cost,
    .losses = heap_losses,
};
