// SPDX-License-Identifier: Apache-2.0
// Contexts of threads in processes: see contexts.h.

#include "capture/record/contexts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/record/processes.h"

/* A program that is starting has not relocated its libraries yet. */
#define LOOK_FIRST_NS 1000000
#define LOOKS_MAX 14
/* A process may publish at any time, and change it: it is asked at growing distances. */
#define PUBLISHED_FIRST_NS 5000000
#define PUBLISHED_LOOKS_MAX 14 /* from then on at the same distance, of 41 s */
#define PUBLISHED_WANTED_NS 20000000
#define MAPS_BYTES_MAX (4u << 20)
#define ATTRIBUTES_BYTES_MAX (4u << 20)

void contexts_init(struct contexts *contexts)
{
    *contexts = (struct contexts){0};
}

void contexts_release(struct contexts *contexts)
{
    arena_release(&contexts->arena);
    free(contexts->sets);
    id_table_release(&contexts->index);
}

/* ---- ways ---- */

static void unref(struct thread_contexts *threads)
{
    if (!threads || --threads->users)
        return;
    struct contexts *owner = threads->owner;
    if (threads->number) {
        uint32_t at = threads->number & (BPF_CONTEXTS_MAX - 1);
        if (owner->table)
            owner->table[at].generation = 0;
        owner->places[at] = NULL;
    }
    free(threads);
}

void contexts_share(struct process_contexts *child, const struct process_contexts *parent)
{
    *child = (struct process_contexts){.threads = parent->threads};
    if (child->threads)
        child->threads->users++;
}

void contexts_leave(struct process_contexts *contexts)
{
    unref(contexts->threads);
    free(contexts->requests);
    if (contexts->published) {
        process_context_release(contexts->published);
        free(contexts->published);
    }
    *contexts = (struct process_contexts){0};
}

/* Tells the kernel. Places are used in turn, as those of interpreters are. */
static void describe(struct contexts *contexts, struct thread_contexts *threads)
{
    for (uint32_t i = 0; contexts->table && i < BPF_CONTEXTS_MAX; i++) {
        uint32_t at = contexts->next_place++ % BPF_CONTEXTS_MAX;
        struct bpf_context *place = &contexts->table[at];
        if (contexts->places[at])
            continue;
        uint32_t generation = 1 + contexts->generation++ % ((1u << (32 - BPF_CONTEXT_BITS)) - 1);
        threads->described.generation = 0;
        *place = threads->described;
        __atomic_store_n(&place->generation, generation, __ATOMIC_RELEASE);
        threads->described.generation = generation;
        threads->number = generation << BPF_CONTEXT_BITS | at;
        contexts->places[at] = threads;
        return;
    }
    contexts->places_full += contexts->table != NULL;
}

static bool runs_musl(const struct process *process)
{
    for (size_t i = 0; i < process->count; i++) {
        const struct module *module = process->mappings[i].module;
        const char *slash = module ? strrchr(module->path, '/') : NULL;
        if (slash && (!strncmp(slash, "/ld-musl", 8) || !strncmp(slash, "/libc.musl", 10)))
            return true;
    }
    return false;
}

/* The executable's variable is the one that all libraries use. */
static const struct mapping *find_variable(const struct process *process)
{
    const struct mapping *found = NULL;
    for (size_t i = 0; i < process->count; i++) {
        const struct module *module = process->mappings[i].module;
        if (!module || !module->thread_variable)
            continue;
        if (module->thread_variable->access == THREAD_ACCESS_STATIC)
            return &process->mappings[i];
        found = found ? found : &process->mappings[i];
    }
    return found;
}

static const struct mapping *find_go(const struct process *process)
{
    for (size_t i = 0; i < process->count; i++)
        if (process->mappings[i].module && process->mappings[i].module->go_labels)
            return &process->mappings[i];
    return NULL;
}

/* False: not yet. */
static bool attach(struct process *process, struct runtime_reader *reader,
                   struct bpf_context *ret_context)
{
    const struct process_context *published = process->contexts.published;
    const struct mapping *mapping = find_variable(process), *go = find_go(process);
    *ret_context = (struct bpf_context){0};
    if (go) {
        ret_context->go = *go->module->go_labels;
        ret_context->kinds = 1u << BPF_CONTEXT_GO;
    }
    if (published && published->schema == PROCESS_SCHEMA_UNKNOWN)
        return true;
    if (!mapping)
        return true;
    struct runtime_memory memory = runtime_reader_of(reader, process->pid);
    if (!thread_variable_attach(mapping->module->thread_variable, mapping->bias, runs_musl(process),
                                &memory, &ret_context->thread))
        return false;
    ret_context->kinds |= 1u << BPF_CONTEXT_THREAD;
    return true;
}

static bool is_same(const struct thread_contexts *threads, const struct bpf_context *found)
{
    if (!threads)
        return !found->kinds;
    struct bpf_context described = threads->described;
    described.generation = 0;
    return !memcmp(&described, found, sizeof(described));
}

/* A library that was there may be gone: what its slots say is looked at again whenever the
 * process's mappings have changed. */
bool contexts_look(struct contexts *contexts, struct process *process,
                   struct runtime_reader *reader, int64_t now_ns)
{
    struct process_contexts *own = &process->contexts;
    struct bpf_context found;
    bool changed = own->seen != process->mapped + 1;
    if (contexts->off || (!changed && (!own->looks || now_ns < own->next_ns)))
        return false;
    if (changed)
        own->looks = 0;
    own->seen = process->mapped + 1;
    bool done = attach(process, reader, &found);
    own->next_ns = now_ns + ((int64_t)LOOK_FIRST_NS << own->looks);
    own->looks = done || own->looks == LOOKS_MAX ? 0 : own->looks + 1;
    if (is_same(own->threads, &found))
        return false;
    unref(own->threads);
    own->threads = NULL;
    if (!found.kinds)
        return true;
    own->threads = memory_zalloc(1, sizeof(*own->threads));
    *own->threads = (struct thread_contexts){.users = 1, .owner = contexts, .described = found};
    describe(contexts, own->threads);
    contexts->attached++;
    return true;
}

/* ---- what is published ---- */

static uint64_t find_header(uint32_t pid)
{
    char path[64], line[4600];
    uint64_t address = 0, left = MAPS_BYTES_MAX;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && left && fgets(line, sizeof(line), file)) {
        left -= MIN(left, strlen(line));
        if (process_context_of_mapping(line, &address))
            break;
    }
    if (file)
        fclose(file);
    return address;
}

static bool search(struct processes *processes, struct process *process, int64_t now_ns)
{
    if (!processes_may_search(processes, process, now_ns))
        return false;
    int64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    process->contexts.published_at = find_header(process->pid);
    processes_searched(processes, process, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
    return process->contexts.published_at;
}

bool contexts_look_published(struct contexts *contexts, struct processes *processes,
                             struct process *process, struct runtime_reader *reader, bool wanted,
                             int64_t now_ns)
{
    struct process_contexts *own = &process->contexts;
    if (contexts->off || now_ns < own->published_next_ns)
        return false;
    if (own->published_looks < PUBLISHED_LOOKS_MAX)
        own->published_looks++;
    own->published_next_ns =
        now_ns +
        (wanted ? PUBLISHED_WANTED_NS : (int64_t)PUBLISHED_FIRST_NS << (own->published_looks - 1));
    if (!own->published_at && !search(processes, process, now_ns))
        return false;
    struct process_context none = {0}, *published = own->published ? own->published : &none;
    struct runtime_memory memory = runtime_reader_of(reader, process->pid);
    enum process_context_read read = process_context_update(&memory, own->published_at, published);
    if (read == PROCESS_CONTEXT_INVALID) {
        contexts->unreadable++;
        own->published_at = 0;
    }
    if (read != PROCESS_CONTEXT_READ)
        return false;
    if (!own->published) {
        own->published = memory_alloc(sizeof(*published));
        *own->published = none;
        contexts->published++;
    }
    own->seen = 0; /* what it says of its threads may be another thing */
    return true;
}

/* ---- attributes ---- */

static const struct attribute_set *find_set(const struct contexts *contexts, uint64_t hash)
{
    struct id_probe probe = id_probe_start(hash_word(hash));
    uint32_t id;
    while ((id = id_table_next(&contexts->index, &probe)) != ID_NONE)
        if (contexts->sets[id].hash == hash)
            return &contexts->sets[id];
    return NULL;
}

void contexts_take_attributes(struct contexts *contexts, const struct bpf_attributes_event *event)
{
    if (find_set(contexts, event->hash))
        return;
    uint8_t *bytes = arena_alloc(&contexts->arena, event->bytes + 1u);
    memcpy(bytes, event + 1, event->bytes);
    array_reserve(contexts->sets, contexts->set_capacity, contexts->set_count + 1);
    id_table_insert(&contexts->index, hash_word(event->hash), (uint32_t)contexts->set_count);
    contexts->sets[contexts->set_count++] = (struct attribute_set){
        .hash = event->hash, .bytes = bytes, .length = event->bytes, .source = event->source};
}

/* Texts one after the other. */
struct texts {
    char *text;
    size_t used;
};

/* NULL: it isn't text, or there is no room. */
static const char *add_text(struct texts *texts, const uint8_t *bytes, size_t length)
{
    if (length + 1 > CONTEXT_TEXT_BYTES - texts->used || memchr(bytes, 0, length) ||
        !utf8_valid((const char *)bytes, length))
        return NULL;
    char *at = texts->text + texts->used;
    memcpy(at, bytes, length);
    at[length] = '\0';
    texts->used += length + 1;
    return at;
}

/* The last occurrence of a name counts. */
static size_t add_attribute(struct context_attribute *attributes, size_t count, const char *name,
                            const char *value)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(attributes[i].name, name)) {
            attributes[i].value = value;
            return count;
        }
    if (count == CONTEXT_ATTRIBUTES_MAX)
        return count;
    attributes[count] = (struct context_attribute){.name = name, .value = value};
    return count + 1;
}

/* {key, length, value}: an entry that isn't whole ends them. */
static size_t thread_attributes(const struct attribute_set *set,
                                const struct process_context *published, struct texts *texts,
                                struct context_attribute *attributes, bool *ret_unnamed)
{
    size_t count = 0;
    for (size_t at = 0; at + 2 <= set->length;) {
        size_t key = set->bytes[at], length = set->bytes[at + 1];
        if (at + 2 + length > set->length)
            break;
        if (!published || key >= published->key_count) {
            *ret_unnamed = true;
        } else if (*published->keys[key]) {
            const char *value = add_text(texts, set->bytes + at + 2, length);
            if (value)
                count = add_attribute(attributes, count, published->keys[key], value);
        }
        at += 2 + length;
    }
    return count;
}

/* {length of the name, length of the value, name, value}. */
static size_t go_attributes(const struct attribute_set *set, struct texts *texts,
                            struct context_attribute *attributes)
{
    size_t count = 0;
    for (size_t at = 0; at + 2 <= set->length;) {
        size_t name_bytes = set->bytes[at], value_bytes = set->bytes[at + 1];
        const uint8_t *text = set->bytes + at + 2;
        at += 2 + name_bytes + value_bytes;
        if (at > set->length)
            break;
        const char *name = add_text(texts, text, name_bytes);
        const char *value = name ? add_text(texts, text + name_bytes, value_bytes) : NULL;
        if (value)
            count = add_attribute(attributes, count, name, value);
    }
    return count;
}

size_t contexts_attributes(struct contexts *contexts, const struct process *process, uint64_t hash,
                           char text[CONTEXT_TEXT_BYTES],
                           struct context_attribute ret_attributes[CONTEXT_ATTRIBUTES_MAX],
                           bool *ret_unnamed)
{
    const struct attribute_set *set = find_set(contexts, hash);
    struct texts texts = {.text = text};
    *ret_unnamed = false;
    if (!set) {
        contexts->unknown_sets++;
        return 0;
    }
    if (set->source == BPF_CONTEXT_GO)
        return go_attributes(set, &texts, ret_attributes);
    return thread_attributes(set, process->contexts.published, &texts, ret_attributes, ret_unnamed);
}

void contexts_clear_attributes(struct contexts *contexts)
{
    contexts->set_count = 0;
    id_table_clear(&contexts->index);
    arena_release(&contexts->arena);
}

bool contexts_attributes_full(const struct contexts *contexts)
{
    return contexts->arena.total_bytes > ATTRIBUTES_BYTES_MAX;
}
