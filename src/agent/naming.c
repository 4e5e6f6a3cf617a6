// SPDX-License-Identifier: Apache-2.0
// Names that are remembered from window to window: see naming.h.

#include "agent/naming.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/digests.h"
#include "base/memory.h"
#include "capture/bpf/kernel_names.h"
#include "profile/rename.h"
#include "symbol/naming/naming.h"
#include "symbol/naming/symbolizer.h"

/* Of each of two generations: when the younger is full, the older goes. What is used moves on. */
#define GENERATION_BYTES (6u << 20)
#define TABLES_BYTES (24u << 20) /* of symbol tables, from window to window */
#define FILE_BYTES                                                                                 \
    (32u << 20)                /* of those of one file: the server may name what has larger ones   \
                                */
#define LARGE_BYTES (4u << 20) /* of a file whose names may have to wait */
/* Of names of JITs' code: memory of all users together, of a process; and what is read of files for
 * each window, which takes some 50 ms. */
#define JIT_BYTES (16u << 20)
#define JIT_PROCESS_BYTES (4u << 20)
#define JIT_READ_BYTES (16u << 20)
#define RENEW_NS (60 * 1000000000ll) /* not more often than that */

/* The name of an address. */
struct known_name {
    const struct symbol_frame *frames; /* innermost first */
    uint32_t count;                    /* 0: it has no name */
    uint64_t distance;                 /* from the start of its function, where that is all */
};

struct generation {
    struct digest_table index;
    struct known_name *names;
    size_t count, capacity;
    struct digest_table text_index;
    const char **texts;
    size_t text_count, text_capacity;
    struct arena arena;
};

struct namer {
    struct generation young, old;
    struct symbolizer *symbolizer;
    struct kernel_names *kernel;
    struct jit_names *jit;
    int64_t renewed_ns;
    bool (*pause)(void *context);
    void *pause_context;
    const struct named_file *files;  /* of the profile that is being named */
    struct symbolizer_file **opened; /* by mapping */
    bool *tried;
    _Atomic uint64_t frames, unnamed, found, postponed;
    _Atomic uint64_t too_large, too_large_now; /* of tables that are gone, and of these */
    pthread_mutex_t lock;                      /* over what follows */
    struct jit_excess excess[NAMER_EXCESS_MAX];
    size_t excess_count;
};

static void generation_release(struct generation *generation)
{
    digest_table_release(&generation->index);
    digest_table_release(&generation->text_index);
    free(generation->names);
    free(generation->texts);
    arena_release(&generation->arena);
    *generation = (struct generation){0};
}

static size_t generation_bytes(const struct generation *generation)
{
    return generation->arena.total_bytes + digest_table_bytes(&generation->index) +
           digest_table_bytes(&generation->text_index) +
           generation->capacity * sizeof(*generation->names) +
           generation->text_capacity * sizeof(*generation->texts);
}

static void start_jit(struct namer *namer)
{
    namer->jit = jit_names_new();
    jit_names_limit(namer->jit, &(struct jit_limits){.memory_bytes = JIT_BYTES,
                                                     .process_bytes = JIT_PROCESS_BYTES,
                                                     .read_bytes = JIT_READ_BYTES});
}

static void renew_tables(struct namer *namer)
{
    if (namer->symbolizer)
        namer->too_large += symbolizer_stats(namer->symbolizer).too_large;
    namer->too_large_now = 0;
    symbolizer_free(namer->symbolizer);
    namer->symbolizer = symbolizer_new();
    symbolizer_use_tables_only(namer->symbolizer);
    symbolizer_limit_file(namer->symbolizer, FILE_BYTES);
    symbolizer_set_jit(namer->symbolizer, namer->jit);
    namer->renewed_ns = monotonic_ns();
}

struct namer *namer_new(void)
{
    struct namer *namer = memory_zalloc(1, sizeof(*namer));
    pthread_mutex_init(&namer->lock, NULL);
    namer->kernel = kernel_names_new();
    start_jit(namer);
    renew_tables(namer);
    return namer;
}

void namer_set_pause(struct namer *namer, bool (*pause)(void *context), void *context)
{
    namer->pause = pause;
    namer->pause_context = context;
}

void namer_free(struct namer *namer)
{
    if (!namer)
        return;
    generation_release(&namer->young);
    generation_release(&namer->old);
    symbolizer_free(namer->symbolizer);
    kernel_names_free(namer->kernel);
    jit_names_free(namer->jit);
    pthread_mutex_destroy(&namer->lock);
    free(namer);
}

struct namer_stats namer_stats(const struct namer *namer)
{
    return (struct namer_stats){.frames = namer->frames,
                                .unnamed = namer->unnamed,
                                .found = namer->found,
                                .postponed = namer->postponed,
                                .too_large = namer->too_large + namer->too_large_now};
}

size_t namer_excess(struct namer *namer, struct jit_excess *ret_list, size_t room)
{
    pthread_mutex_lock(&namer->lock);
    size_t count = MIN(namer->excess_count, room);
    memcpy(ret_list, namer->excess, count * sizeof(*ret_list));
    pthread_mutex_unlock(&namer->lock);
    return count;
}

static void note_excess(struct namer *namer)
{
    pthread_mutex_lock(&namer->lock);
    namer->excess_count = jit_names_excess(namer->jit, namer->excess, NAMER_EXCESS_MAX);
    pthread_mutex_unlock(&namer->lock);
}

/* ---- what is known ---- */

static struct digest digest_of(const void *bytes, size_t length, uint64_t seed)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, length, seed);
    return (struct digest){.low = hash.low64, .high = hash.high64};
}

static const char *keep_text(struct generation *generation, const char *text)
{
    if (!text)
        return NULL;
    size_t length = strlen(text);
    struct digest digest = digest_of(text, length, 0);
    uint32_t id = digest_table_find(&generation->text_index, digest);
    if (id != ID_NONE)
        return generation->texts[id];
    array_reserve(generation->texts, generation->text_capacity, generation->text_count + 1);
    const char *kept = arena_strndup(&generation->arena, text, length);
    generation->texts[generation->text_count] = kept;
    digest_table_insert(&generation->text_index, digest, (uint32_t)generation->text_count++);
    return kept;
}

static const struct known_name *keep(struct namer *namer, struct digest digest,
                                     const struct known_name *name)
{
    struct generation *young = &namer->young;
    struct symbol_frame *frames = arena_alloc(&young->arena, name->count * sizeof(*frames));
    for (uint32_t i = 0; i < name->count; i++) {
        frames[i] = name->frames[i];
        frames[i].name = keep_text(young, frames[i].name);
        frames[i].system_name = keep_text(young, frames[i].system_name);
        frames[i].file = keep_text(young, frames[i].file);
    }
    array_reserve(young->names, young->capacity, young->count + 1);
    young->names[young->count] =
        (struct known_name){.frames = frames, .count = name->count, .distance = name->distance};
    digest_table_insert(&young->index, digest, (uint32_t)young->count);
    return &young->names[young->count++];
}

static const struct known_name *recall(struct namer *namer, struct digest digest)
{
    uint32_t id = digest_table_find(&namer->young.index, digest);
    if (id != ID_NONE)
        return &namer->young.names[id];
    id = digest_table_find(&namer->old.index, digest);
    return id == ID_NONE ? NULL : keep(namer, digest, &namer->old.names[id]);
}

/* ---- looking for names ---- */

static bool is_large(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && (uint64_t)found.st_size >= LARGE_BYTES;
}

static bool is_named_here(const struct namer *namer, const struct profile_frame *frame)
{
    return namer->files && namer->files[frame->mapping].key;
}

static struct symbolizer_file *file_of(struct namer *namer, const struct profile *from, uint32_t id)
{
    if (!namer->tried[id]) {
        const char *path = namer->files[id].path;
        const char *file = profile_text(from, from->mappings[id].file);
        namer->tried[id] = true;
        if (path && namer->pause && !namer->pause(namer->pause_context) && is_large(path))
            namer->postponed++;
        else if (path || file[0] == '[') /* the vDSO */
            namer->opened[id] = symbolizer_file(namer->symbolizer, path ? path : file,
                                                profile_text(from, from->mappings[id].build_id));
    }
    return namer->opened[id];
}

static const struct known_name *find_in_file(struct namer *namer, const struct profile *from,
                                             const struct profile_frame *frame)
{
    const char *key = namer->files[frame->mapping].key;
    struct digest digest = digest_of(key, strlen(key), frame->address);
    const struct known_name *known = recall(namer, digest);
    if (known)
        return known;
    struct symbolizer_file *file = file_of(namer, from, frame->mapping);
    static const struct known_name none = {0};
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct known_name name = {.frames = frames};
    struct symbol symbol;
    if (!file) /* what can't be opened now may be the next time: this isn't remembered */
        return &none;
    namer->found++;
    name.count = (uint32_t)symbolizer_file_frames(file, frame->address, frames);
    if (!name.count && symbolizer_file_find(file, frame->address, &symbol))
        name.distance = symbol.distance;
    return keep(namer, digest, &name);
}

static const struct known_name *find_in_kernel(struct namer *namer,
                                               const struct profile_frame *frame)
{
    struct digest digest = digest_of("[kernel]", 8, frame->address);
    const struct known_name *known = recall(namer, digest);
    if (known)
        return known;
    struct symbol symbol;
    struct symbol_frame named = {0};
    struct known_name name = {.frames = &named};
    namer->found++;
    bool found = namer->kernel ? kernel_names_find(namer->kernel, frame->address, &symbol)
                               : symbolizer_find_kernel(namer->symbolizer, frame->address, &symbol);
    if (found && symbol.name) {
        named.name = symbol.name;
        named.file = symbol.module; /* of a kernel's name: the module it is in */
        name.count = 1;
    }
    return keep(namer, digest, &name);
}

/* ---- frames ---- */

/* A frame that is only a name: its address is meaningless elsewhere, and private. */
static size_t put_word(struct profile *to, const char *word, struct profile_frame *renamed)
{
    renamed->function =
        profile_function(to, &(struct profile_function){.name = profile_cstring(to, word)});
    renamed->address = 0;
    renamed->mapping = 0;
    return 1;
}

static size_t put_kernel(struct namer *namer, const struct profile_frame *frame, struct profile *to,
                         struct profile_frame *renamed)
{
    const struct known_name *name = find_in_kernel(namer, frame);
    char module[128] = "[kernel.kallsyms]";
    if (!name->count) {
        namer->unnamed++;
        return put_word(to, "[kernel]", renamed);
    }
    if (name->frames[0].file)
        snprintf(module, sizeof(module), "[%s]", name->frames[0].file);
    put_word(to, name->frames[0].name, renamed);
    renamed->mapping = profile_mapping(
        to, &(struct profile_mapping){.limit = UINT64_MAX, .file = profile_cstring(to, module)});
    return 1;
}

static size_t put_jit(struct namer *namer, uint32_t pid, const struct profile_frame *frame,
                      struct profile *to, struct profile_frame *renamed)
{
    struct symbol_frame named;
    enum frame_kind kind;
    if (!symbolizer_find_jit(namer->symbolizer, pid, frame->address, &named, &kind)) {
        namer->unnamed++;
        return put_word(to, "[jit]", renamed);
    }
    renamed->kind = (uint32_t)kind & 63;
    renamed->function = symbol_function(to, &named);
    renamed->line = named.line;
    renamed->address = 0;
    renamed->mapping = 0;
    return 1;
}

static size_t put_native(struct namer *namer, const struct profile *from,
                         const struct profile_frame *frame, struct profile *to,
                         struct profile_frame renamed[PROFILE_EXPANSION_MAX])
{
    const struct known_name *name = find_in_file(namer, from, frame);
    if (!name->count) {
        namer->unnamed++;
        renamed[0].address -= name->distance;
        return 1;
    }
    return symbol_put_frames(to, name->frames, name->count, renamed);
}

static size_t name_frame(void *context, const struct profile *from, uint32_t id, struct profile *to,
                         struct profile_frame renamed[PROFILE_EXPANSION_MAX])
{
    struct namer *namer = context;
    const struct profile_frame *frame = &from->frames[id];
    uint32_t jit_pid;
    namer->frames++;
    if (frame->kind == FRAME_KERNEL)
        return put_kernel(namer, frame, to, renamed);
    if (!frame->mapping) {
        namer->unnamed++;
        return put_word(to, "[unknown]", renamed);
    }
    if (jit_mapping_pid(profile_text(from, from->mappings[frame->mapping].file), &jit_pid))
        return put_jit(namer, jit_pid, frame, to, renamed);
    return is_named_here(namer, frame) ? put_native(namer, from, frame, to, renamed) : 1;
}

/* File by file, so that never more symbol tables are held than the limit and those of one file:
 * what is found is remembered, and asked for again when frames are renamed. */
static void find_all(struct namer *namer, const struct profile *from)
{
    size_t count = from->mapping_count;
    _cleanup_free_ uint32_t *first = memory_zalloc(count + 1, sizeof(*first));
    _cleanup_free_ uint32_t *order = memory_zalloc(from->frame_count, sizeof(*order));
    for (uint32_t i = 1; i < from->frame_count; i++)
        first[from->frames[i].mapping + 1]++;
    for (size_t i = 0; i < count; i++)
        first[i + 1] += first[i];
    for (uint32_t i = 1; i < from->frame_count; i++)
        order[first[from->frames[i].mapping]++] = i;
    for (uint32_t at = 0; at + 1 < from->frame_count; at++) {
        const struct profile_frame *frame = &from->frames[order[at]];
        uint32_t jit_pid;
        if (frame->function || !frame->mapping || frame->kind == FRAME_KERNEL ||
            !is_named_here(namer, frame) ||
            jit_mapping_pid(profile_text(from, from->mappings[frame->mapping].file), &jit_pid))
            continue;
        find_in_file(namer, from, frame);
        bool last =
            at + 2 == from->frame_count || from->frames[order[at + 1]].mapping != frame->mapping;
        if (last && symbolizer_stats(namer->symbolizer).bytes > TABLES_BYTES) {
            renew_tables(namer);
            memset(namer->opened, 0, count * sizeof(*namer->opened));
            malloc_trim(0);
        }
    }
}

/* A cache that is too large starts again empty. */
static void keep_within_limits(struct namer *namer)
{
    if (generation_bytes(&namer->young) > GENERATION_BYTES) {
        generation_release(&namer->old);
        namer->old = namer->young;
        namer->young = (struct generation){0};
    }
    struct symbolizer_stats tables = symbolizer_stats(namer->symbolizer);
    if (tables.refused && monotonic_ns() - namer->renewed_ns > RENEW_NS)
        renew_tables(namer);
}

void namer_forget(struct namer *namer)
{
    generation_release(&namer->young);
    generation_release(&namer->old);
    jit_names_forget(namer->jit);
    renew_tables(namer);
    malloc_trim(0);
}

int namer_name(struct namer *namer, const struct profile *from, const struct named_file *files,
               struct profile *to, struct error *error)
{
    namer->files = files;
    namer->opened = memory_zalloc(from->mapping_count, sizeof(*namer->opened));
    namer->tried = memory_zalloc(from->mapping_count, sizeof(*namer->tried));
    jit_names_load_sampled(namer->jit, from);
    note_excess(namer);
    if (files)
        find_all(namer, from);
    int r = profile_rename(from, name_frame, namer, to, error);
    namer->too_large_now = symbolizer_stats(namer->symbolizer).too_large;
    free(namer->opened);
    free(namer->tried);
    keep_within_limits(namer);
    return r;
}
