// SPDX-License-Identifier: Apache-2.0
// The model's tables: interning of strings, functions, mappings, frames, stacks, labels and links.
// See profile.h for the contract; samples.c holds the rows.

#include "profile/profile.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"
#include "profile/names/readable.h"
#include "profile/tables.h"
#include "profile/unresolved.h"

void profile_init(struct profile *profile, enum profile_detail detail)
{
    static _Atomic uint64_t last;
    memset(profile, 0, sizeof(*profile));
    profile->detail = detail;
    profile->serial = ++last;
    struct profile_tables *tables = profile->tables = memory_zalloc(1, sizeof(*tables));
    /* Early in boot there may be no entropy yet; a fixed seed is still correct. */
    tables->seed = random_bits();
    profile_string(profile, "", 0);
    table_add(profile, functions, function_count, function_capacity);
    table_add(profile, mappings, mapping_count, mapping_capacity);
    table_add(profile, frames, frame_count, frame_capacity);
    table_add(profile, nodes, node_count, node_capacity);
    table_add(profile, links, link_count, link_capacity);
    array_reserve(tables->label_sets, tables->label_set_capacity, 1);
    tables->label_sets[tables->label_set_count++] = (struct label_set){0};
}

void profile_release(struct profile *profile)
{
    struct profile_tables *tables = profile->tables;
    if (!tables)
        return;
    if (profile->unresolved)
        profile->unresolved->free(profile->unresolved);
    arena_release(&tables->text);
    free(tables->labels);
    free(tables->label_sets);
    digest_table_release(&tables->stacks);
    id_table_release(&tables->string_index);
    id_table_release(&tables->function_index);
    id_table_release(&tables->mapping_index);
    id_table_release(&tables->frame_index);
    id_table_release(&tables->node_index);
    id_table_release(&tables->link_index);
    id_table_release(&tables->label_set_index);
    id_table_release(&tables->sample_index);
    id_table_release(&tables->comment_index);
    free(tables);
    free(profile->strings);
    free(profile->functions);
    free(profile->mappings);
    free(profile->frames);
    free(profile->nodes);
    free(profile->links);
    free(profile->types);
    free(profile->comments);
    free(profile->samples.node);
    free(profile->samples.labels);
    free(profile->samples.link);
    free(profile->samples.time_ns);
    for (unsigned i = 0; i < profile->type_count; i++)
        free(profile->samples.values[i]);
    memset(profile, 0, sizeof(*profile));
}

static size_t id_table_bytes(const struct id_table *table)
{
    return table->slots ? (table->mask + 1) * sizeof(*table->slots) : 0;
}

size_t profile_memory(const struct profile *profile)
{
    const struct profile_tables *t = profile->tables;
    const struct profile_samples *samples = &profile->samples;
    size_t row = 2 * sizeof(uint32_t) + profile->type_count * sizeof(int64_t) +
                 (samples->link ? sizeof(uint32_t) : 0) + (samples->time_ns ? sizeof(uint64_t) : 0);
    return sizeof(*profile) + sizeof(*t) + t->text.total_bytes +
           t->string_capacity * sizeof(*profile->strings) +
           t->function_capacity * sizeof(*profile->functions) +
           t->mapping_capacity * sizeof(*profile->mappings) +
           t->frame_capacity * sizeof(*profile->frames) +
           t->node_capacity * sizeof(*profile->nodes) + t->link_capacity * sizeof(*profile->links) +
           t->label_capacity * sizeof(*t->labels) + t->label_set_capacity * sizeof(*t->label_sets) +
           digest_table_bytes(&t->stacks) + samples->capacity * row +
           id_table_bytes(&t->string_index) + id_table_bytes(&t->function_index) +
           id_table_bytes(&t->mapping_index) + id_table_bytes(&t->frame_index) +
           id_table_bytes(&t->node_index) + id_table_bytes(&t->link_index) +
           id_table_bytes(&t->label_set_index) + id_table_bytes(&t->sample_index);
}

bool profile_full(const struct profile *profile)
{
    return memory_full() || profile->string_count > PROFILE_IDS_MAX ||
           profile->function_count > PROFILE_IDS_MAX || profile->frame_count > PROFILE_IDS_MAX ||
           profile->node_count > PROFILE_IDS_MAX ||
           profile->tables->label_count > PROFILE_IDS_MAX ||
           profile->samples.count > PROFILE_IDS_MAX;
}

uint32_t profile_string(struct profile *profile, const char *text, size_t length)
{
    struct profile_tables *tables = profile->tables;
    if (!length && profile->string_count)
        return 0; /* also for a NULL without a length */
    if (unlikely(tables->appended))
        index_appended(profile);
    uint64_t hash = hash_string(tables, text, length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->string_index, &probe)) != ID_NONE)
        if (profile->strings[id].length == length &&
            !memcmp(profile->strings[id].data, text, length))
            return id;
    id = table_add(profile, strings, string_count, string_capacity);
    profile->strings[id].data = arena_strndup(&tables->text, text, length);
    profile->strings[id].length = length;
    id_table_insert(&tables->string_index, hash, id);
    return id;
}

uint32_t profile_cstring(struct profile *profile, const char *text)
{
    return profile_string(profile, text, strlen(text));
}

static struct name_text name_text(const struct profile *profile, uint32_t string)
{
    return (struct name_text){profile->strings[string].data, profile->strings[string].length};
}

static void choose_name(struct profile *profile, struct profile_function *function)
{
    _cleanup_buffer_ struct buffer name = {0};
    struct name_text own = name_text(profile, function->name);
    struct name_text system = name_text(profile, function->system_name);
    if (profile->detail & PROFILE_ORIGINAL_NAMES) {
        if (name_readable(system.data, system.length, &name) && name.length == own.length &&
            !memcmp(name.data, own.data, own.length))
            function->name = function->system_name;
    } else if (name_of_function(own, system, &name)) {
        if (!function->system_name)
            function->system_name = function->name;
        function->name = profile_string(profile, name.data, name.length);
    }
}

uint32_t profile_function(struct profile *profile, const struct profile_function *function)
{
    struct profile_tables *tables = profile->tables;
    struct profile_function key = *function;
    choose_name(profile, &key);
    if (unlikely(tables->appended))
        index_appended(profile);
    uint64_t hash = hash_function(tables, &key);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->function_index, &probe)) != ID_NONE)
        if (!memcmp(&profile->functions[id], &key, sizeof(key)))
            return id;
    id = table_add(profile, functions, function_count, function_capacity);
    profile->functions[id] = key;
    id_table_insert(&tables->function_index, hash, id);
    return id;
}

uint32_t profile_mapping(struct profile *profile, const struct profile_mapping *mapping)
{
    struct profile_tables *tables = profile->tables;
    /* A file name says little without a build ID, but a profile that has no ids has nothing else.
     */
    uint64_t key[2] = {mapping->offset,
                       mapping->build_id ? (uint64_t)mapping->build_id << 32 : mapping->file};
    uint64_t hash = XXH3_64bits_withSeed(key, sizeof(key), tables->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->mapping_index, &probe)) != ID_NONE) {
        struct profile_mapping *known = &profile->mappings[id];
        if (known->offset != mapping->offset || known->build_id != mapping->build_id ||
            (!known->build_id && known->file != mapping->file))
            continue;
        /* Without a name or an id, only the addresses can tell two mappings apart. */
        if (!known->build_id && !known->file && known->start != mapping->start)
            continue;
        if (mapping->limit - mapping->start > known->limit - known->start)
            known->limit = known->start + (mapping->limit - mapping->start);
        return id;
    }
    id = table_add(profile, mappings, mapping_count, mapping_capacity);
    profile->mappings[id] = *mapping;
    id_table_insert(&tables->mapping_index, hash, id);
    return id;
}

uint32_t profile_frame(struct profile *profile, const struct profile_frame *frame)
{
    struct profile_tables *tables = profile->tables;
    struct profile_frame key = *frame;
    if (key.function && !(profile->detail & PROFILE_LINES))
        key.line = key.column = 0;
    if (key.function && !(profile->detail & PROFILE_ADDRESSES))
        key.address = 0;
    if (unlikely(tables->appended))
        index_appended(profile);
    uint64_t words[3], other[3];
    memcpy(words, &key, sizeof(words));
    uint64_t hash = hash_frame(tables, &key);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->frame_index, &probe)) != ID_NONE) {
        memcpy(other, &profile->frames[id], sizeof(other));
        if (words[0] == other[0] && words[1] == other[1] && words[2] == other[2])
            return id;
    }
    id = table_add(profile, frames, frame_count, frame_capacity);
    profile->frames[id] = key;
    id_table_insert(&tables->frame_index, hash, id);
    return id;
}

/*
 * Children of a node. A node's first child most often follows it at once, because a new stack's
 * nodes are added in a row; such a child is found by looking there. The index holds only the
 * others, the ones at which stacks branch: from a quarter to a fourteenth of the nodes.
 */
static inline uint64_t child_hash(const struct profile *profile, uint32_t parent, uint32_t frame)
{
    return hash_word(((uint64_t)parent << 32 | frame) ^ profile->tables->seed);
}

static inline uint32_t find_child(const struct profile *profile, uint32_t parent, uint32_t frame)
{
    const struct profile_node *next = &profile->nodes[parent + 1];
    if (parent + 1 == profile->node_count)
        return ID_NONE; /* children come after their parent */
    if (next->parent == parent && next->frame == frame)
        return parent + 1;
    struct id_probe probe = id_probe_start(child_hash(profile, parent, frame));
    uint32_t id;
    while ((id = id_table_next(&profile->tables->node_index, &probe)) != ID_NONE)
        if (profile->nodes[id].parent == parent && profile->nodes[id].frame == frame)
            break;
    return id;
}

static uint32_t add_child(struct profile *profile, uint32_t parent, uint32_t frame)
{
    array_reserve(profile->nodes, profile->tables->node_capacity, profile->node_count + 1ul);
    uint32_t id = profile->node_count++;
    profile->nodes[id] = (struct profile_node){.parent = parent, .frame = frame};
    if (id != parent + 1)
        id_table_insert(&profile->tables->node_index, child_hash(profile, parent, frame), id);
    return id;
}

uint32_t profile_child(struct profile *profile, uint32_t parent, uint32_t frame)
{
    uint32_t id = find_child(profile, parent, frame);
    return id != ID_NONE ? id : add_child(profile, parent, frame);
}

static uint32_t insert_stack(struct profile *profile, const uint32_t *frames, size_t count)
{
    uint32_t node = 0;
    size_t i = 0;
    for (; i < count; i++) {
        uint32_t child = find_child(profile, node, frames[i]);
        if (child == ID_NONE)
            break;
        node = child;
    }
    for (; i < count; i++) /* below a new node all is new */
        node = add_child(profile, node, frames[i]);
    return node;
}

uint32_t profile_path(struct profile *profile, const uint32_t *frames, size_t count)
{
    return insert_stack(profile, frames, count);
}

void profile_reserve(struct profile *profile, size_t strings, size_t functions, size_t frames,
                     size_t stacks, size_t samples)
{
    struct profile_tables *tables = profile->tables;
    array_reserve(profile->strings, tables->string_capacity, profile->string_count + strings);
    array_reserve(profile->functions, tables->function_capacity,
                  profile->function_count + functions);
    array_reserve(profile->frames, tables->frame_capacity, profile->frame_count + frames);
    /* Stacks of one program leave each other near their ends. */
    array_reserve(profile->nodes, tables->node_capacity, profile->node_count + 8 * stacks);
    id_table_reserve(&tables->string_index, tables->string_index.used + strings);
    id_table_reserve(&tables->function_index, tables->function_index.used + functions);
    id_table_reserve(&tables->frame_index, tables->frame_index.used + frames);
    id_table_reserve(&tables->node_index, tables->node_index.used + stacks);
    id_table_reserve(&tables->sample_index, tables->sample_index.used + samples);
}

uint32_t profile_stack(struct profile *profile, const uint32_t *frames, size_t count)
{
    struct profile_tables *tables = profile->tables;
    XXH128_hash_t hash = XXH3_128bits_withSeed(frames, count * sizeof(*frames), tables->seed);
    struct digest digest = {.low = hash.low64, .high = hash.high64};
    uint32_t node = digest_table_find(&tables->stacks, digest);
    if (node == ID_NONE) {
        node = insert_stack(profile, frames, count);
        digest_table_insert(&tables->stacks, digest, node);
    }
    return node;
}

static int compare_labels(const void *a, const void *b)
{
    const struct profile_label *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->text != y->text)
        return x->text < y->text ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

uint32_t profile_label_set(struct profile *profile, struct profile_label *labels, size_t count)
{
    struct profile_tables *tables = profile->tables;
    if (!count || !(profile->detail & PROFILE_LABELS))
        return 0;
    for (size_t i = 0; i < count; i++) {
        labels[i].unused = 0;
        if (labels[i].text)
            labels[i].number = 0;
    }
    qsort(labels, count, sizeof(*labels), compare_labels);
    size_t unique = 1;
    for (size_t i = 1; i < count; i++)
        if (compare_labels(&labels[i], &labels[unique - 1]))
            labels[unique++] = labels[i];
    count = unique;
    uint64_t hash = XXH3_64bits_withSeed(labels, count * sizeof(*labels), tables->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->label_set_index, &probe)) != ID_NONE) {
        const struct label_set *set = &tables->label_sets[id];
        if (set->count == count &&
            !memcmp(&tables->labels[set->first], labels, count * sizeof(*labels)))
            return id;
    }
    array_reserve(tables->labels, tables->label_capacity, tables->label_count + count);
    memcpy(&tables->labels[tables->label_count], labels, count * sizeof(*labels));
    array_reserve(tables->label_sets, tables->label_set_capacity, tables->label_set_count + 1);
    id = (uint32_t)tables->label_set_count++;
    tables->label_sets[id] =
        (struct label_set){.first = (uint32_t)tables->label_count, .count = (uint32_t)count};
    tables->label_count += count;
    id_table_insert(&tables->label_set_index, hash, id);
    return id;
}

uint32_t profile_link(struct profile *profile, const struct profile_link *link)
{
    static const struct profile_link none;
    struct profile_tables *tables = profile->tables;
    if (!(profile->detail & PROFILE_LINKS) || !memcmp(link, &none, sizeof(none)))
        return 0;
    uint64_t hash = XXH3_64bits_withSeed(link, sizeof(*link), tables->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->link_index, &probe)) != ID_NONE)
        if (!memcmp(&profile->links[id], link, sizeof(*link)))
            return id;
    id = table_add(profile, links, link_count, link_capacity);
    profile->links[id] = *link;
    id_table_insert(&tables->link_index, hash, id);
    return id;
}

const struct profile_label *profile_labels(const struct profile *profile, uint32_t label_set,
                                           size_t *ret_count)
{
    const struct label_set *set = &profile->tables->label_sets[label_set];
    *ret_count = set->count;
    return set->count ? profile->tables->labels + set->first : NULL;
}

uint32_t profile_label_set_count(const struct profile *profile)
{
    return (uint32_t)profile->tables->label_set_count;
}

void profile_add_comment(struct profile *profile, uint32_t text)
{
    struct profile_tables *tables = profile->tables;
    uint64_t hash = hash_word(text ^ tables->seed);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&tables->comment_index, &probe)) != ID_NONE)
        if (profile->comments[id] == text)
            return;
    id_table_insert(&tables->comment_index, hash, (uint32_t)profile->comment_count);
    array_reserve(profile->comments, tables->comment_capacity, profile->comment_count + 1);
    profile->comments[profile->comment_count++] = text;
}

void profile_note_source(struct profile *profile, int64_t time_ns, int64_t duration_ns)
{
    if (time_ns > 0 && (!profile->time_ns || time_ns < profile->time_ns))
        profile->time_ns = time_ns;
    if (duration_ns > 0 &&
        __builtin_add_overflow(profile->duration_ns, duration_ns, &profile->duration_ns))
        profile->duration_ns = INT64_MAX;
    profile->source_count++;
}

void profile_note_period(struct profile *profile, uint32_t type, uint32_t unit, int64_t period)
{
    if (!profile->period_type.type && !profile->period_type.unit)
        profile->period_type = (struct profile_type){.type = type, .unit = unit};
    if (period > profile->period)
        profile->period = period;
}
