// SPDX-License-Identifier: Apache-2.0
// Which file has the debug information of another, and having it read: see debuginfo.h.

#include "symbol/debuginfo.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/debugfile.h"
#include "symbol/dwarf.h"

void debug_info_release(struct debug_info *info)
{
    free(info->wanted);
    dwarf_names_release(&info->names);
}

void debug_info_want(struct debug_info *info, uint64_t address)
{
    if (info->over || info->wanted_count == DEBUG_INFO_WANTED_MAX)
        return;
    array_reserve(info->wanted, info->wanted_capacity, info->wanted_count + 1);
    info->wanted[info->wanted_count++] = address;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* What is left to ask: each address once, and none that was asked before. */
static void order_wanted(struct debug_info *info)
{
    size_t kept = 0;
    if (info->wanted_count)
        qsort(info->wanted, info->wanted_count, sizeof(*info->wanted), compare_addresses);
    for (size_t i = 0; i < info->wanted_count; i++)
        if ((!kept || info->wanted[i] != info->wanted[kept - 1]) &&
            !dwarf_names_find(&info->names, info->wanted[i]))
            info->wanted[kept++] = info->wanted[i];
    info->wanted_count = kept;
}

/* ---- files ---- */

static bool has_dwarf(struct elf_file *file)
{
    struct elf_section section;
    return (elf_find_section(file, ".debug_info", &section) ||
            elf_find_section(file, ".zdebug_info", &section)) &&
           section.type != SHT_NOBITS && section.size_bytes;
}

static bool is_the_build(struct elf_file *file, const char *build_id)
{
    char own[BUILD_ID_TEXT_BYTES];
    build_id_text(file, own);
    return !build_id[0] || !strcmp(own, build_id);
}

static int keep_fd(const struct elf_file *file)
{
    return file->fd < 0 ? -1 : fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
}

/* The descriptors for the child; false when there is no debug information. */
static bool open_files(const struct debug_info *info, int ret_files[CONFINED_FILES_MAX])
{
    _cleanup_elf_ struct elf_file file = {.fd = -1}, debug = {.fd = -1}, alternate = {.fd = -1};
    if (elf_open(info->path, &file, NULL) < 0 || !is_the_build(&file, info->build_id))
        return false;
    struct elf_file *with = has_dwarf(&file) ? &file : NULL;
    if (!with && debug_file_open(&file, info->path, &debug) == 0 && has_dwarf(&debug))
        with = &debug;
    if (!with)
        return false;
    ret_files[DWARF_FILE] = keep_fd(with);
    if (debug_file_open_alternate(with, info->path, &alternate) == 0)
        ret_files[DWARF_ALTERNATE] = keep_fd(&alternate);
    return ret_files[DWARF_FILE] >= 0;
}

/* ---- jobs ---- */

struct reading {
    struct debug_info *const *infos;
    size_t count, next;
    int64_t deadline_ms;
    struct debug_info_figures *figures;
};

static bool next_job(void *context, struct confined_job *job)
{
    struct reading *reading = context;
    while (reading->next < reading->count) {
        struct debug_info *info = reading->infos[reading->next++];
        order_wanted(info);
        if (info->over || !info->wanted_count)
            continue;
        bool late = monotonic_ns() / 1000000 >= reading->deadline_ms;
        if (late || !open_files(info, job->files)) {
            reading->figures->failed += late;
            info->over = true;
            continue;
        }
        job->program = &dwarf_program;
        job->context = info;
        buffer_add(&job->request, info->wanted, info->wanted_count * sizeof(*info->wanted));
        return true;
    }
    return false;
}

static void take_answer(void *context, struct confined_job *job)
{
    struct reading *reading = context;
    struct debug_info *info = job->context;
    size_t before = dwarf_names_bytes(&info->names);
    if (job->end == CONFINED_FINE &&
        dwarf_names_add(&info->names, info->wanted, info->wanted_count, job->output.data,
                        job->output.length, NULL) == 0) {
        reading->figures->files++;
        reading->figures->bytes += dwarf_names_bytes(&info->names) - before;
    } else {
        reading->figures->failed++;
        info->over = true;
    }
    info->wanted_count = 0;
}

void debug_info_read(struct debug_info *const infos[], size_t count,
                     struct debug_info_figures *figures)
{
    struct reading reading = {.infos = infos,
                              .count = count,
                              .deadline_ms = monotonic_ns() / 1000000 + DEBUG_INFO_TOTAL_MS,
                              .figures = figures};
    confined_run(&(struct confined_jobs){next_job, take_answer, &reading});
}

size_t debug_info_frames(const struct debug_info *info, uint64_t address,
                         const struct symbol_frame **ret_frames)
{
    const struct dwarf_chain *chain = dwarf_names_find(&info->names, address);
    if (!chain || !chain->count)
        return 0;
    *ret_frames = &info->names.frames[chain->first];
    return chain->count;
}
