// SPDX-License-Identifier: Apache-2.0
// The code of samples: see codes.h.

#include "runtime/hotspot/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/hotspot/scopes.h"

#define STUB_NAME_BYTES 64
#define METHODS_MAX (1u << 18)

/* A method that was read once. Its address may be another one's later: what it says about itself
 * tells. */
struct hotspot_named {
    uint64_t address, const_method;
    uint32_t pid;
    bool named;
    struct hotspot_method method;
};

void hotspot_codes_release(struct hotspot_codes *codes)
{
    free(codes->list);
    free(codes->methods);
    id_table_release(&codes->index);
    id_table_release(&codes->method_index);
    arena_release(&codes->arena);
    *codes = (struct hotspot_codes){0};
}

void hotspot_codes_clear(struct hotspot_codes *codes)
{
    codes->count = codes->method_count = 0;
    id_table_clear(&codes->index);
    id_table_clear(&codes->method_index);
    arena_release(&codes->arena);
}

bool hotspot_codes_full(const struct hotspot_codes *codes)
{
    return codes->count >= HOTSPOT_CODES_MAX || codes->method_count >= METHODS_MAX ||
           codes->arena.total_bytes > HOTSPOT_CODES_BYTES_MAX;
}

static struct hotspot_known *find(const struct hotspot_codes *codes, uint64_t identity)
{
    struct id_probe probe = id_probe_start(hash_word(identity));
    uint32_t id;
    while ((id = id_table_next(&codes->index, &probe)) != ID_NONE)
        if (codes->list[id].identity == identity)
            return &codes->list[id];
    return NULL;
}

const struct hotspot_known *hotspot_codes_find(const struct hotspot_codes *codes, uint64_t identity)
{
    return find(codes, identity);
}

/* ---- methods ---- */

struct code_reader {
    struct hotspot_codes *codes;
    const struct hotspot_process *machine;
    const struct runtime_memory *memory;
    uint32_t pid;
};

/* The number of a method, which is read unless it is known. */
static uint32_t take_method(const struct code_reader *reader, uint64_t address)
{
    struct hotspot_codes *codes = reader->codes;
    uint64_t const_method = runtime_read_word(
        reader->memory, address + reader->machine->structs.value[HOTSPOT_METHOD_CONST]);
    uint64_t hash = hash_word(hash_word(address) ^ reader->pid);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&codes->method_index, &probe)) != ID_NONE) {
        const struct hotspot_named *known = &codes->methods[id];
        if (known->address == address && known->pid == reader->pid &&
            known->const_method == const_method)
            return id;
    }
    if (codes->method_count >= METHODS_MAX)
        return HOTSPOT_SCOPE_NONE;
    array_reserve(codes->methods, codes->method_capacity, codes->method_count + 1);
    id = (uint32_t)codes->method_count++;
    id_table_insert(&codes->method_index, hash, id);
    struct hotspot_named *named = &codes->methods[id];
    *named = (struct hotspot_named){
        .address = address, .const_method = const_method, .pid = reader->pid};
    named->named = hotspot_method_read(reader->machine, reader->memory, address, &codes->arena,
                                       &named->method);
    return id;
}

static uint32_t line_of(const struct hotspot_codes *codes, uint32_t method, uint32_t index)
{
    return method < codes->method_count && codes->methods[method].named
               ? hotspot_method_line(&codes->methods[method].method, index)
               : 0;
}

/* ---- compiled methods ---- */

/* Numbers of scopes by their place. */
struct scope_list {
    struct hotspot_scope *scopes;
    uint32_t *numbers; /* for each byte of the information; HOTSPOT_SCOPE_NONE: not read yet */
    size_t count, capacity;
};

/* The number of the scope at a place, with all that it is inlined into. */
static uint32_t take_scope(const struct code_reader *reader, const struct hotspot_debug *debug,
                           uint32_t at, struct scope_list *list)
{
    uint32_t first = HOTSPOT_SCOPE_NONE, inner = HOTSPOT_SCOPE_NONE;
    for (unsigned depth = 0; at && depth < HOTSPOT_INLINED_MAX; depth++) {
        struct hotspot_debug_scope scope;
        if (at >= debug->scopes_bytes)
            break;
        uint32_t number = list->numbers[at];
        bool known = number != HOTSPOT_SCOPE_NONE;
        if (!known) {
            if (!hotspot_debug_scope(debug, at, &scope))
                break;
            array_reserve(list->scopes, list->capacity, list->count + 1);
            number = list->numbers[at] = (uint32_t)list->count++;
            uint32_t method = take_method(reader, scope.method);
            list->scopes[number] =
                (struct hotspot_scope){.outer = HOTSPOT_SCOPE_NONE,
                                       .method = method,
                                       .line = line_of(reader->codes, method, scope.index)};
        }
        if (inner != HOTSPOT_SCOPE_NONE)
            list->scopes[inner].outer = number;
        else
            first = number;
        if (known)
            break;
        inner = number;
        at = scope.outer;
    }
    return first;
}

static void read_scopes(const struct code_reader *reader, struct hotspot_known *known)
{
    struct hotspot_debug debug;
    if (!hotspot_debug_read(reader->machine, reader->memory, known->mark.address, &debug))
        return;
    struct scope_list list = {0};
    list.numbers = memory_alloc(debug.scopes_bytes * sizeof(*list.numbers));
    memset(list.numbers, 0xff, debug.scopes_bytes * sizeof(*list.numbers));
    struct hotspot_pc *pcs = arena_alloc(&reader->codes->arena, debug.pc_count * sizeof(*pcs));
    uint32_t count = 0;
    for (size_t i = 0; i < debug.pc_count; i++) {
        const struct hotspot_debug_pc *pc = &debug.pcs[i];
        if (pc->offset < 0 || pc->scope <= 0 ||
            (count && (uint32_t)pc->offset < pcs[count - 1].offset))
            continue;
        uint32_t scope = take_scope(reader, &debug, (uint32_t)pc->scope, &list);
        if (scope != HOTSPOT_SCOPE_NONE)
            pcs[count++] = (struct hotspot_pc){.offset = (uint32_t)pc->offset, .scope = scope};
    }
    struct hotspot_scope *scopes =
        arena_alloc(&reader->codes->arena, MAX(list.count, 1u) * sizeof(*scopes));
    if (list.count)
        memcpy(scopes, list.scopes, list.count * sizeof(*scopes));
    known->pcs = count ? pcs : NULL;
    known->pc_count = count;
    known->scopes = scopes;
    free(list.scopes);
    free(list.numbers);
    hotspot_debug_release(&debug);
}

/* Whether the header is still that of the code which was met. */
static bool is_same_code(const struct code_reader *reader, const struct hotspot_mark *mark)
{
    const struct bpf_hotspot *walk = &reader->machine->walk;
    uint32_t number;
    return runtime_read_word(reader->memory, mark->address + walk->nmethod_method) == mark->file &&
           runtime_read(reader->memory, mark->address + walk->nmethod_compile_id, &number,
                        sizeof(number)) &&
           number == mark->lines;
}

/* ---- stubs ---- */

static const char *read_stub(const struct code_reader *reader, const struct hotspot_mark *mark)
{
    char bytes[STUB_NAME_BYTES + 1] = "";
    size_t length = STUB_NAME_BYTES;
    if (!runtime_read(reader->memory, mark->name, bytes, length)) {
        length = MIN(STUB_NAME_BYTES, 4096 - mark->name % 4096);
        if (!runtime_read(reader->memory, mark->name, bytes, length))
            return NULL;
    }
    bytes[length] = '\0';
    length = strlen(bytes);
    for (size_t i = 0; i < length; i++)
        if (bytes[i] < 0x20 || bytes[i] > 0x7e)
            return NULL;
    if (!length)
        return NULL;
    char *text = arena_alloc(&reader->codes->arena, length + 3);
    snprintf(text, length + 3, "[%s]", bytes);
    return text;
}

/* ---- code ---- */

static void read_code(const struct code_reader *reader, struct hotspot_known *known)
{
    struct hotspot_codes *codes = reader->codes;
    const struct hotspot_mark *mark = &known->mark;
    known->method = HOTSPOT_SCOPE_NONE;
    known->named = false;
    if (reader->machine && mark->kind == BPF_HOTSPOT_STUB) {
        known->stub = read_stub(reader, mark);
        known->named = known->stub != NULL;
    } else if (reader->machine && mark->kind == BPF_HOTSPOT_INTERPRETED) {
        known->method = take_method(reader, mark->address);
        known->named = known->method != HOTSPOT_SCOPE_NONE &&
                       codes->methods[known->method].const_method == mark->file &&
                       codes->methods[known->method].named;
    } else if (reader->machine && mark->kind == BPF_HOTSPOT_COMPILED) {
        known->method = take_method(reader, mark->file);
        read_scopes(reader, known);
        known->named = known->method != HOTSPOT_SCOPE_NONE && codes->methods[known->method].named &&
                       is_same_code(reader, mark);
    }
    codes->named += known->named;
    codes->unreadable += !known->named;
}

static bool same_mark(const struct hotspot_mark *a, const struct hotspot_mark *b)
{
    return a->address == b->address && a->file == b->file && a->name == b->name &&
           a->lines == b->lines && a->kind == b->kind;
}

void hotspot_codes_take(struct hotspot_codes *codes, const struct hotspot_process *machine,
                        const struct runtime_memory *memory, uint32_t pid, uint64_t identity,
                        const struct hotspot_mark *mark)
{
    struct code_reader reader = {.codes = codes, .machine = machine, .memory = memory, .pid = pid};
    struct hotspot_known *known = find(codes, identity);
    if (known && (known->pid != pid || !same_mark(&known->mark, mark))) {
        codes->ambiguous += !known->ambiguous;
        known->ambiguous = true;
        return;
    }
    if (known) {
        if (!known->named)
            read_code(&reader, known);
        return;
    }
    if (codes->count >= HOTSPOT_CODES_MAX)
        return;
    array_reserve(codes->list, codes->capacity, codes->count + 1);
    id_table_insert(&codes->index, hash_word(identity), (uint32_t)codes->count);
    known = &codes->list[codes->count++];
    *known = (struct hotspot_known){.identity = identity, .pid = pid, .mark = *mark};
    read_code(&reader, known);
}

/* ---- frames ---- */

static struct hotspot_frame frame_of(const struct hotspot_codes *codes, uint32_t method,
                                     uint32_t line)
{
    if (method >= codes->method_count || !codes->methods[method].named)
        return (struct hotspot_frame){.function = "[java frame not read]", .file = ""};
    const struct hotspot_method *named = &codes->methods[method].method;
    return (struct hotspot_frame){.function = named->name, .file = named->file, .line = line};
}

static const struct hotspot_pc *find_pc(const struct hotspot_known *known, uint32_t unit)
{
    size_t low = 0, high = known->pc_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (known->pcs[middle].offset < unit)
            low = middle + 1;
        else
            high = middle;
    }
    /* Behind the last place: handlers of exceptions and the like. */
    return &known->pcs[low < known->pc_count ? low : known->pc_count - 1];
}

size_t hotspot_codes_frames(const struct hotspot_codes *codes, const struct hotspot_known *known,
                            uint32_t unit, struct hotspot_frame ret_frames[HOTSPOT_INLINED_MAX])
{
    if (!known->named || known->ambiguous)
        return 0;
    if (known->mark.kind == BPF_HOTSPOT_STUB) {
        ret_frames[0] = (struct hotspot_frame){.function = known->stub, .file = ""};
        return 1;
    }
    if (known->mark.kind == BPF_HOTSPOT_INTERPRETED || !known->pcs) {
        uint32_t line = known->mark.kind == BPF_HOTSPOT_INTERPRETED && unit <= UINT16_MAX
                            ? line_of(codes, known->method, unit)
                            : 0;
        ret_frames[0] = frame_of(codes, known->method, line);
        return 1;
    }
    size_t count = 0;
    uint32_t scope = find_pc(known, unit)->scope;
    while (scope != HOTSPOT_SCOPE_NONE && count < HOTSPOT_INLINED_MAX) {
        const struct hotspot_scope *at = &known->scopes[scope];
        ret_frames[count] = frame_of(codes, at->method, at->line);
        ret_frames[count].inlined = at->outer != HOTSPOT_SCOPE_NONE;
        count++;
        scope = at->outer;
    }
    return count;
}
