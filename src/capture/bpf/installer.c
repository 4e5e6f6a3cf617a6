// SPDX-License-Identifier: Apache-2.0
// Telling the kernel what it needs for walks: see installer.h.

#include "capture/bpf/installer.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

void installer_init(struct installer *installer, struct bpf_sampler *sampler,
                    struct modules *modules, struct segments *segments)
{
    *installer = (struct installer){.sampler = sampler, .modules = modules, .segments = segments};
    struct unwind_tables tables = bpf_sampler_tables(sampler);
    unwind_pool_init(&installer->pool, &tables);
}

void installer_release(struct installer *installer)
{
    unwind_pool_release(&installer->pool);
    free(installer->files);
    id_table_release(&installer->index);
    free(installer->mappings);
}

/* ---- files ---- */

static const struct module *owner_of(const struct module *module)
{
    return module->same ? module->same : module;
}

static uint32_t find_file(const struct installer *installer, const struct module *owner)
{
    struct id_probe probe = id_probe_start(hash_word((uint64_t)(uintptr_t)owner));
    uint32_t id;
    while ((id = id_table_next(&installer->index, &probe)) != ID_NONE)
        if (installer->files[id].module == owner)
            return id;
    return ID_NONE;
}

/* The file of a module, with a place in the tables; ID_NONE when there is no room for it. */
static uint32_t get_file(struct installer *installer, struct module *module)
{
    const struct module *owner = owner_of(module);
    uint32_t id = find_file(installer, owner);
    if (id != ID_NONE)
        return id;
    struct installed_file file = {.module = owner};
    const struct unwind_rows *rows = module_rows(installer->modules, module);
    if (!rows && owner->postponed_ns)
        return ID_NONE;
    if (rows) {
        file.number = unwind_pool_add_file(&installer->pool, rows);
        if (!file.number)
            return ID_NONE;
        unwind_pool_rules(&installer->pool, &installer->modules->rules);
        unwind_pool_load_all(&installer->pool, file.number, rows);
    }
    id = (uint32_t)installer->file_count;
    array_reserve(installer->files, installer->file_capacity, installer->file_count + 1);
    installer->files[installer->file_count++] = file;
    id_table_insert(&installer->index, hash_word((uint64_t)(uintptr_t)owner), id);
    return id;
}

/* Tells the kernel of a segment whose file has been needed. */
static void install_segment(struct installer *installer, uint32_t number)
{
    struct unwind_pool *pool = &installer->pool;
    if (unwind_pool_knows_segment(pool, number))
        return;
    struct module *module = installer->segments->list[number].module;
    uint32_t id = get_file(installer, module);
    if (id == ID_NONE)
        return;
    uint32_t file = installer->files[id].number;
    const struct unwind_rows *rows = file ? module_rows(installer->modules, module) : NULL;
    if (rows || !file)
        unwind_pool_set_segment(pool, number, file, rows);
}

bool installer_place(void *context, uint64_t address, struct unwind_place *ret_place)
{
    const struct installer_view *view = context;
    struct installer *installer = view->installer;
    struct mapping *mapping = process_find(view->process, address);
    if (!mapping)
        return false;
    *ret_place = (struct unwind_place){.bias = mapping->bias, .generated = mapping->generated};
    struct module *module = mapping->module;
    if (!module)
        return true;
    uint32_t id = get_file(installer, module);
    ret_place->rows = module_rows(installer->modules, module);
    if (ret_place->rows && id != ID_NONE && installer->files[id].number) {
        unwind_pool_rules(&installer->pool, &installer->modules->rules);
        unwind_pool_load(&installer->pool, installer->files[id].number, ret_place->rows,
                         address - mapping->bias);
    }
    uint32_t segment = segments_of(installer->segments, mapping);
    if (segment)
        install_segment(installer, segment);
    return true;
}

void installer_prepare(struct installer *installer, struct mapping *mapping)
{
    uint32_t segment = segments_of(installer->segments, mapping);
    if (segment)
        install_segment(installer, segment);
}

void installer_load(struct installer *installer, struct process *process, uint64_t address)
{
    struct installer_view view = {.installer = installer, .process = process};
    struct unwind_place place;
    /* A return address is looked up one before, where another page or mapping may be. */
    installer_place(&view, address, &place);
    installer_place(&view, address - 1, &place);
}

/* ---- processes ---- */

static bool make_list(struct installer *installer, struct process *process,
                      struct pool_list **ret_list)
{
    array_reserve(installer->mappings, installer->mapping_capacity, process->count);
    for (size_t i = 0; i < process->count; i++) {
        struct mapping *mapping = &process->mappings[i];
        uint32_t segment = segments_of(installer->segments, mapping);
        installer->mappings[i] = (struct bpf_mapping){.start = mapping->start,
                                                      .end = mapping->end,
                                                      .bias = mapping->bias,
                                                      .offset = mapping->start - mapping->offset,
                                                      .segment = segment};
    }
    *ret_list =
        unwind_pool_add_list(&installer->pool, installer->mappings, process->count, monotonic_ns());
    return *ret_list;
}

/* All but its mappings. */
static void describe(const struct process *process, struct bpf_process *described)
{
    described->started = process->started;
    described->runtime = process->interpreter ? process->interpreter->runtime : 0;
    described->context = process->contexts.threads ? process->contexts.threads->number : 0;
}

void installer_install(struct installer *installer, struct process *process, uint64_t until_ns)
{
    struct pool_list *list, *before = process->list;
    process->changed = false;
    if (!process->count)
        return;
    if (!make_list(installer, process, &list)) {
        installer->refused++;
        return;
    }
    struct bpf_process described = list->described;
    describe(process, &described);
    if (bpf_sampler_set_process(installer->sampler, process->pid, &described) < 0) {
        installer->refused++;
        unwind_pool_leave_list(&installer->pool, list, monotonic_ns());
        return;
    }
    process->list = list;
    process->told_ns = (uint64_t)monotonic_ns();
    process_note_list(process, list->described.list, until_ns);
    unwind_pool_leave_list(&installer->pool, before, (int64_t)process->told_ns);
}

void installer_describe(struct installer *installer, struct process *process)
{
    if (!process->list)
        return;
    struct bpf_process described = process->list->described;
    describe(process, &described);
    bpf_sampler_set_process(installer->sampler, process->pid, &described);
}

void installer_share(struct installer *installer, struct process *child,
                     const struct process *parent)
{
    unwind_pool_leave_list(&installer->pool, child->list, monotonic_ns());
    child->list = parent->list;
    child->told_ns = parent->told_ns;
    if (child->list)
        child->list->users++;
    /* The kernel copied its parent's entry at the fork, maybe before the interpreter was known. */
    if (child->interpreter || child->contexts.threads)
        installer_describe(installer, child);
}

void installer_forget(struct installer *installer, struct process *process)
{
    if (!process->list)
        return;
    bpf_sampler_forget_process(installer->sampler, process->pid);
    unwind_pool_leave_list(&installer->pool, process->list, monotonic_ns());
    process->list = NULL;
    process->first_list = 0;
}

bool installer_crowded(const struct installer *installer)
{
    return installer_full(installer) || installer->pool.mappings_used > BPF_MAPPINGS_MAX / 2 ||
           installer->pool.directory_used > BPF_DIRECTORY_MAX / 2 ||
           installer->segments->count > BPF_SEGMENTS_MAX / 2;
}

bool installer_full(const struct installer *installer)
{
    return installer->pool.full || installer->segments->refused;
}

void installer_reset(struct installer *installer)
{
    unwind_pool_reset(&installer->pool);
    segments_clear(installer->segments);
    installer->file_count = 0;
    id_table_clear(&installer->index);
}
