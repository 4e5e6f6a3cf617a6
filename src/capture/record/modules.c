// SPDX-License-Identifier: Apache-2.0
// The table of mapped binaries and the rows that are held of them: see modules.h.

#include "capture/record/modules.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/allowance.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "capture/record/module_file.h"
#include "elf/vdso.h"

#define LARGE_BYTES (4u << 20) /* of code, which takes up to 35 ms a MiB */
#define POSTPONE_MAX_NS 30000000000ll
/* Of memory while a file is read, which may be anybody's: the tables of Go programs have up to 60
 * MiB, most of them less than 20. */
#define FILE_BYTES (40u << 20)
#define LOOK_AGAIN_NS                                                                              \
    1000000000 /* at a file that may have changed, or that could not be opened                     \
                */

#define TRIM_BYTES (4u << 20) /* of freed rows, for which the heap is gone through */

/* ---- lifecycle ---- */

void modules_init(struct modules *modules)
{
    struct rlimit files;
    *modules = (struct modules){.open_max = MODULES_OPEN_MAX,
                                .held_bytes_soft = MODULES_ROWS_BYTES,
                                .held_bytes_max = MODULES_ROWS_BYTES_MAX};
    unwind_rules_init(&modules->rules);
    row_cache_init(&modules->cache, NULL);
    /* Events, maps and profiles need descriptors too. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < modules->open_max)
        modules->open_max = MAX(files.rlim_cur / 4, 1);
}

static void module_free(struct module *module)
{
    shared_fd_unref(module->held);
    unwind_rows_release(&module->rows);
    elf_release(&module->headers);
    free(module->python);
    free(module->hotspot);
    free(module->v8);
    free(module->php);
    free(module->ruby);
    free(module->go);
    free(module->thread_variable);
    free(module->go_labels);
    free(module->path);
    free(module->build_id);
    free(module);
}

void modules_release(struct modules *modules)
{
    for (size_t i = 0; i < modules->count; i++)
        module_free(modules->list[i]);
    free(modules->list);
    free(modules->held);
    id_table_release(&modules->index);
    id_table_release(&modules->build_id_index);
    unwind_rules_release(&modules->rules);
    row_cache_release(&modules->cache);
}

/* ---- opening ---- */

/* The part of a file's headers that a module keeps: where its code goes. Sections would be most of
 * what a module takes. */
static void keep_headers(struct elf_file *file, struct elf_file *ret_headers)
{
    size_t count = 0;
    for (size_t i = 0; i < file->segment_count; i++)
        if (file->segments[i].type == PT_LOAD)
            file->segments[count++] = file->segments[i];
    *ret_headers =
        (struct elf_file){.fd = -1,
                          .type = file->type,
                          .machine = file->machine,
                          .entry = file->entry,
                          .segments = memory_resize(file->segments, count, sizeof(*file->segments)),
                          .segment_count = count};
    file->segments = NULL;
    file->segment_count = 0;
}

static void read_identity(struct module *module, struct elf_file *file)
{
    struct rows_identity *identity = &module->identity;
    if (!elf_build_id(file, identity->build_id, &identity->build_id_length))
        identity->build_id_length = 0;
    identity->source_bytes = file->size_bytes;
    free(module->build_id);
    module->build_id = memory_zalloc(2 * identity->build_id_length + 1, 1);
    for (size_t i = 0; i < identity->build_id_length; i++)
        snprintf(module->build_id + 2 * i, 3, "%02x", identity->build_id[i]);
}

/* The same binary in many containers is many files. Whoever owns a file can give it any build ID,
 * so only those of people who are believed can stand for each other. */
static void find_same(struct modules *modules, struct module *module, uint32_t id)
{
    const struct rows_identity *identity = &module->identity;
    if (!module->trusted || !identity->build_id_length)
        return;
    uint64_t hash = identity->source_bytes;
    for (size_t i = 0; i < identity->build_id_length; i++)
        hash = hash_word(hash ^ identity->build_id[i]);
    struct id_probe probe = id_probe_start(hash);
    uint32_t other;
    while ((other = id_table_next(&modules->build_id_index, &probe)) != ID_NONE)
        if (!memcmp(&modules->list[other]->identity, identity, sizeof(*identity))) {
            module->same = modules->list[other];
            return;
        }
    id_table_insert(&modules->build_id_index, hash, id);
}

static void find_thread_variable(struct module *module, struct elf_file *file)
{
    struct thread_variable variable;
    if (module->is_vdso || !thread_variable_find(file, &variable))
        return;
    module->thread_variable = memory_alloc(sizeof(variable));
    *module->thread_variable = variable;
}

static void find_go_labels(struct module *module, struct elf_file *file)
{
    struct bpf_go go;
    if (module->is_vdso || !go_labels_find(file, &go))
        return;
    module->go_labels = memory_alloc(sizeof(go));
    *module->go_labels = go;
}

static void find_interpreter(struct module *module, struct elf_file *file)
{
    struct python_binary python;
    struct hotspot_binary hotspot;
    module->frame_kind = runtime_frame_of_path(module->path);
    if (module->is_vdso)
        return;
    if (hotspot_binary_find(file, &hotspot)) {
        module->hotspot = memory_alloc(sizeof(hotspot));
        *module->hotspot = hotspot;
    }
    struct v8_binary v8;
    if (v8_binary_find(file, &v8)) {
        module->v8 = memory_alloc(sizeof(v8));
        *module->v8 = v8;
    }
    struct php_binary php;
    if (php_binary_find(file, &php)) {
        module->php = memory_alloc(sizeof(php));
        *module->php = php;
    }
    struct ruby_binary ruby;
    if (ruby_binary_find(file, &ruby)) {
        module->ruby = memory_alloc(sizeof(ruby));
        *module->ruby = ruby;
    }
    struct go_binary go;
    if (go_binary_find(file, &go)) {
        module->go = memory_alloc(sizeof(go));
        *module->go = go;
    }
    if (python_binary_find(file, module->path, &python)) {
        module->python = memory_alloc(sizeof(python));
        *module->python = python;
    }
    if (module->python || module->php || module->ruby)
        module->frame_kind = RUNTIME_FRAME_INTERPRETER;
}

enum runtime_frame module_frame_kind(const struct module *module, uint64_t offset)
{
    bool evaluates = (module->python && offset == module->python->evaluate_offset) ||
                     (module->php && offset == module->php->evaluate_offset) ||
                     (module->ruby && offset == module->ruby->evaluate_offset);
    return evaluates ? RUNTIME_FRAME_EVALUATE : module->frame_kind;
}

/* A limit of CPU time for files comes with a limit of memory. */
static void limit_memory(const struct modules *modules)
{
    if (modules->pace.share > 0)
        memory_allow(FILE_BYTES);
}

/* Reads what is to be known of a file; `fd` is taken over. */
static void load(struct modules *modules, struct module *module, int fd, const struct stat *found)
{
    struct error error = {0};
    struct elf_file file;
    limit_memory(modules);
    int r = module->is_vdso ? vdso_open(&file, &error) : elf_open_fd(fd, &file, &error);
    if (!module->is_vdso)
        module->stamp = module_stamp_of(found);
    if (r < 0) {
        log_debug("%s: %s", module->path, error.text);
        memory_allow_end(NULL);
        if (fd >= 0)
            close(fd);
        return;
    }
    read_identity(module, &file);
    find_interpreter(module, &file);
    find_thread_variable(module, &file);
    find_go_labels(module, &file);
    memory_allow_end(NULL);
    keep_headers(&file, &module->headers);
    file.fd = -1; /* stays open, as the module's */
    elf_release(&file);
    module->readable = true;
    if (module->is_vdso)
        return;
    module->trusted = found->st_uid == 0 || found->st_uid == geteuid();
    module_file_keep(modules, module, fd);
}

/* ---- the table ---- */

bool modules_is_no_file(const char *path)
{
    static const char *const prefixes[] = {"//",    "/memfd:",        "/dev/",
                                           "/SYSV", "/anon_hugepage", "/[aio]"};
    if (path[0] != '/')
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
        if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

static size_t length_without_mark(const char *path)
{
    static const char mark[] = " (deleted)";
    size_t length = strlen(path), mark_length = sizeof(mark) - 1;
    bool marked = length > mark_length && !strcmp(path + length - mark_length, mark);
    return marked ? length - mark_length : length;
}

static uint64_t hash_of(uint64_t device, uint64_t inode)
{
    return hash_word(device ^ hash_word(inode));
}

static struct module *find(const struct modules *modules, uint64_t device, uint64_t inode,
                           const char *path, size_t path_length)
{
    struct id_probe probe = id_probe_start(hash_of(device, inode));
    uint32_t id;
    while ((id = id_table_next(&modules->index, &probe)) != ID_NONE) {
        struct module *module = modules->list[id];
        if (module->device == device && module->inode == inode && !module->stale &&
            !strncmp(module->path, path, path_length) && !module->path[path_length])
            return module;
    }
    return NULL;
}

static struct module *add(struct modules *modules, uint64_t device, uint64_t inode,
                          const char *path)
{
    if (modules->count == MODULES_MAX) {
        modules->refused++;
        return NULL;
    }
    struct module *module = memory_zalloc(1, sizeof(*module));
    *module = (struct module){.table = modules,
                              .path = memory_strdup(path),
                              .build_id = memory_strdup(""),
                              .device = device,
                              .inode = inode,
                              .same = module,
                              .is_vdso = path[0] == '[',
                              .fd = -1,
                              .headers = {.fd = -1}};
    array_reserve(modules->list, modules->capacity, modules->count + 1);
    id_table_insert(&modules->index, hash_of(device, inode), (uint32_t)modules->count);
    modules->list[modules->count++] = module;
    return module;
}

static bool same_stamp(const struct module *module, const struct stat *found)
{
    struct module_stamp stamp = module_stamp_of(found);
    return !memcmp(&stamp, &module->stamp, sizeof(stamp));
}

/* A file that is held open keeps its inode, so only a change in place can make it another one. One
 * that is closed may be another file by now, or can be opened at last. */
static bool still_good(struct modules *modules, struct module *module,
                       const struct module_request *request)
{
    int64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
    struct stat found;
    if (module->is_vdso || now - module->checked_ns < LOOK_AGAIN_NS)
        return true;
    module->checked_ns = now;
    if (module->fd >= 0)
        return fstat(module->fd, &found) < 0 || same_stamp(module, &found);
    int fd = module_file_find(modules, request, &found);
    if (fd < 0)
        return true; /* nobody knows better */
    bool same = same_stamp(module, &found);
    if (same && module->readable)
        module_file_keep(modules, module, fd);
    else
        close(fd);
    return same;
}

/* A file that is not in the table by what was asked for. `request` has the path as it is shown. */
static struct module *get_new(struct modules *modules, const struct module_request *request)
{
    bool is_vdso = request->path[0] == '[';
    uint64_t device = request->device, inode = request->inode;
    struct stat found = {0};
    struct module *module;
    int fd = is_vdso ? -1 : module_file_find(modules, request, &found);
    /* Shared memory without a program in it is a JIT's, and not worth a place in the table. */
    if (fd < 0 && module_file_is_memory(request->path))
        return NULL;
    if (!inode && !is_vdso) {
        device = found.st_dev;
        inode = found.st_ino;
        module = find(modules, device, inode, request->path, strlen(request->path));
        if (module && (fd < 0 || same_stamp(module, &found))) {
            if (fd >= 0 && module->fd < 0 && module->readable)
                module_file_keep(modules, module, fd);
            else if (fd >= 0)
                close(fd);
            return module;
        }
        if (module)
            module->stale = true;
    }
    module = add(modules, device, inode, request->path);
    if (module && (is_vdso || fd >= 0)) {
        load(modules, module, fd, &found);
        find_same(modules, module, (uint32_t)modules->count - 1);
    } else if (fd >= 0) {
        close(fd);
    }
    if (module)
        module->checked_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    return module;
}

struct module *modules_get(struct modules *modules, const struct module_request *request)
{
    bool is_vdso = !strcmp(request->path, VDSO_NAME),
         is_memory = module_file_is_memory(request->path);
    if (!is_vdso && !is_memory && modules_is_no_file(request->path))
        return NULL;
    struct module_request plain = *request;
    struct module *module = NULL;
    size_t length = length_without_mark(request->path);
    _cleanup_free_ char *path =
        request->path[length] ? memory_strndup(request->path, length) : NULL;
    if (path)
        plain.path = path;
    if (is_vdso)
        plain.device = plain.inode = 0;
    if (plain.inode || is_vdso)
        module = find(modules, plain.device, plain.inode, plain.path, length);
    if (module && !still_good(modules, module, &plain)) {
        module->stale = true;
        module = NULL;
    }
    if (!module)
        module = get_new(modules, &plain);
    if (!module)
        return NULL;
    module->used = ++modules->uses;
    if (plain.pid) {
        module->pid = plain.pid;
        module->start = plain.start;
        module->end = plain.end;
        memcpy(module->ancestors, plain.ancestors, sizeof(module->ancestors));
    }
    return module;
}

bool module_bias(const struct module *module, uint64_t start, uint64_t offset, uint64_t *ret_bias)
{
    return module->readable && elf_load_bias(&module->headers, start, offset, ret_bias);
}

/* ---- rows ---- */

static void release_rows(struct modules *modules, size_t position)
{
    struct module *module = modules->held[position];
    uint64_t bytes = unwind_rows_bytes(&module->rows);
    modules->held[position] = modules->held[--modules->held_count];
    modules->held_bytes -= bytes;
    modules->freed_bytes += bytes;
    unwind_rows_release(&module->rows);
    module->rows_state = MODULE_ROWS_NOT_HELD;
    modules->released++;
}

/* Freed memory lies between live objects, so the heap would keep it. */
static void trim(struct modules *modules)
{
    if (modules->freed_bytes < TRIM_BYTES)
        return;
    malloc_trim(0);
    modules->freed_bytes = 0;
}

/* Gives back what was used least recently, but not what has just been asked for. */
static void make_room(struct modules *modules, const struct module *keep, int64_t now)
{
    while (modules->held_bytes > modules->held_bytes_soft) {
        size_t least = modules->held_count;
        for (size_t i = 0; i < modules->held_count; i++)
            if (modules->held[i] != keep &&
                (least == modules->held_count ||
                 modules->held[i]->rows_used < modules->held[least]->rows_used))
                least = i;
        if (least == modules->held_count)
            return;
        if (modules->held_bytes <= modules->held_bytes_max &&
            now - modules->held[least]->rows_used_ns < MODULES_ROWS_MOMENT_NS)
            return;
        release_rows(modules, least);
    }
}

void modules_tidy(struct modules *modules)
{
    int64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
    for (size_t i = modules->held_count; i-- > 0;)
        if (now - modules->held[i]->rows_used_ns >= MODULES_ROWS_IDLE_NS)
            release_rows(modules, i);
    trim(modules);
}

/* By the file itself: that of the module asked for may be open when the one that stands for it is
 * not. */
static int compile(struct modules *modules, struct module *module, struct unwind_rows *ret_rows)
{
    struct error error = {0};
    struct elf_file file;
    uint64_t refusals = memory_refusals(), skipped;
    int r, fd = module->is_vdso ? -1 : module_file_open(modules, module);
    if (fd < 0 && !module->is_vdso)
        return fd;
    limit_memory(modules);
    r = module->is_vdso ? vdso_open(&file, &error) : elf_open_fd(fd, &file, &error);
    if (r == 0) {
        r = unwind_rows_compile(&file, &modules->rules, ret_rows, &error);
        file.fd = -1; /* the module's */
        elf_release(&file);
    }
    bool too_large = memory_allow_end(&skipped);
    if (!r && memory_refusals() - refusals > skipped) {
        /* Parts of the file may have been left out. */
        unwind_rows_release(ret_rows);
        *ret_rows = (struct unwind_rows){0};
        r = error_set(&error, -ENOMEM, "There was not enough memory for the whole file.");
    }
    if (r < 0) {
        log_debug("%s: %s", module->path, error.text);
        return r == -ENOMEM && !too_large ? r : -EBADMSG;
    }
    modules->compiled++;
    return 0;
}

static uint64_t code_bytes(const struct elf_file *file)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < file->segment_count; i++)
        if (file->segments[i].type == PT_LOAD && file->segments[i].flags & PF_X)
            bytes += file->segments[i].file_bytes;
    return bytes;
}

/* A compiler or a browser has rows that take a second to compile. While the last ones are not paid
 * for they wait, and stacks that go through it end there. */
static bool has_to_wait(struct modules *modules, struct module *module, int64_t now)
{
    bool waits =
        pace_owed_ns(&modules->pace, now) > 0 && code_bytes(&module->headers) >= LARGE_BYTES;
    if (!waits || (module->postponed_ns && now - module->postponed_ns >= POSTPONE_MAX_NS)) {
        module->postponed_ns = 0;
        return false;
    }
    if (!module->postponed_ns)
        module->postponed_ns = now;
    modules->postponed++;
    return true;
}

static int obtain(struct modules *modules, struct module *owner, struct module *module, int64_t now,
                  struct unwind_rows *ret_rows)
{
    if (owner->trusted &&
        row_cache_load(&modules->cache, &owner->identity, &modules->rules, ret_rows))
        return 0;
    if (has_to_wait(modules, owner, now))
        return -EAGAIN;
    int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int r = compile(modules, owner, ret_rows);
    if (r < 0 && r != -EBADMSG && module != owner)
        r = compile(modules, module, ret_rows);
    if (r == 0 && owner->trusted)
        row_cache_store(&modules->cache, &owner->identity, ret_rows, &modules->rules);
    pace_spend(&modules->pace, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    if (r < 0)
        return r;
    /* A walk doesn't ask for them. */
    free(ret_rows->functions);
    ret_rows->functions = NULL;
    ret_rows->function_count = 0;
    return 0;
}

static void hold_rows(struct modules *modules, struct module *owner, struct module *module,
                      int64_t now)
{
    struct unwind_rows rows = {0};
    if (owner->rows_tried_ns && now - owner->rows_tried_ns < LOOK_AGAIN_NS)
        return;
    int r = obtain(modules, owner, module, now, &rows);
    /* What can't be opened now may be opened later, through another process. */
    owner->rows_tried_ns = r < 0 ? now : 0;
    if (r == -EBADMSG || (r == 0 && !rows.page_count)) {
        owner->rows_state = MODULE_ROWS_NONE;
        unwind_rows_release(&rows);
    } else if (r == 0) {
        owner->rows_state = MODULE_ROWS_HELD;
        owner->rows = rows;
        array_reserve(modules->held, modules->held_capacity, modules->held_count + 1);
        modules->held[modules->held_count++] = owner;
        modules->held_bytes += unwind_rows_bytes(&owner->rows);
        make_room(modules, owner, now);
        trim(modules);
    }
}

const struct unwind_rows *module_rows(struct modules *modules, struct module *module)
{
    if (!module->readable)
        return NULL;
    struct module *owner = module->same;
    if (owner->rows_state == MODULE_ROWS_NONE)
        return NULL;
    int64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (owner->rows_state == MODULE_ROWS_NOT_HELD)
        hold_rows(modules, owner, module, now);
    if (owner->rows_state != MODULE_ROWS_HELD)
        return NULL;
    owner->rows_used_ns = now;
    owner->rows_used = ++modules->uses;
    return &owner->rows;
}
