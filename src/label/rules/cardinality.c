// SPDX-License-Identifier: Apache-2.0
// Cardinality: two generations of hash sets per name. A value known from the older one moves to the
// newer when it is seen again; when the window ends the older one is forgotten.

#include "label/rules/cardinality.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/idtable.h"
#include "base/memory.h"
#include "base/random.h"

#define FIRST_SLOTS 16

/* Hashes, none of them 0; at most three quarters full. */
struct hash_set {
    uint64_t *slots;
    uint32_t mask, count;
};

struct counter {
    char *tenant, *name;
    struct hash_set recent, older;
    uint32_t moved; /* values of `older` that are in `recent` too */
    uint64_t refused;
    int64_t refused_ns;
};

struct tenant {
    char *name;
    uint32_t names;
};

struct cardinality {
    struct cardinality_limits limits;
    pthread_mutex_t lock;
    uint64_t seed;
    int64_t window_end_ns;
    struct counter *counters;
    size_t count, capacity;
    struct id_table by_name; /* of tenant and name */
    struct tenant *tenants;
    size_t tenant_count, tenant_capacity;
    struct id_table by_tenant;
    uint64_t total;
};

static bool set_has(const struct hash_set *set, uint64_t hash)
{
    if (!set->slots)
        return false;
    for (uint32_t at = (uint32_t)hash;; at++) {
        uint64_t slot = set->slots[at & set->mask];
        if (!slot || slot == hash)
            return slot;
    }
}

static void set_place(struct hash_set *set, uint64_t hash)
{
    uint32_t at = (uint32_t)hash;
    while (set->slots[at & set->mask])
        at++;
    set->slots[at & set->mask] = hash;
}

static void set_add(struct hash_set *set, uint64_t hash)
{
    if (!set->slots || set->count + 1 > (set->mask + 1) / 4 * 3) {
        uint32_t slots = set->slots ? (set->mask + 1) * 2 : FIRST_SLOTS;
        struct hash_set grown = {.slots = memory_zalloc(slots, sizeof(uint64_t)),
                                 .mask = slots - 1,
                                 .count = set->count};
        for (uint32_t i = 0; set->slots && i <= set->mask; i++)
            if (set->slots[i])
                set_place(&grown, set->slots[i]);
        free(set->slots);
        *set = grown;
    }
    set_place(set, hash);
    set->count++;
}

static void set_release(struct hash_set *set)
{
    free(set->slots);
    *set = (struct hash_set){0};
}

static uint32_t known_values(const struct counter *counter)
{
    return counter->recent.count + counter->older.count - counter->moved;
}

struct cardinality *cardinality_new(const struct cardinality_limits *limits)
{
    struct cardinality *cardinality = memory_zalloc(1, sizeof(*cardinality));
    cardinality->limits = *limits;
    cardinality->window_end_ns = INT64_MIN;
    pthread_mutex_init(&cardinality->lock, NULL);
    cardinality->seed = random_bits();
    return cardinality;
}

static void release_counter(struct counter *counter)
{
    free(counter->tenant);
    free(counter->name);
    set_release(&counter->recent);
    set_release(&counter->older);
}

void cardinality_free(struct cardinality *cardinality)
{
    if (!cardinality)
        return;
    for (size_t i = 0; i < cardinality->count; i++)
        release_counter(&cardinality->counters[i]);
    for (size_t i = 0; i < cardinality->tenant_count; i++)
        free(cardinality->tenants[i].name);
    free(cardinality->counters);
    free(cardinality->tenants);
    id_table_release(&cardinality->by_name);
    id_table_release(&cardinality->by_tenant);
    pthread_mutex_destroy(&cardinality->lock);
    free(cardinality);
}

static uint64_t hash_text(const struct cardinality *cardinality, const char *text, uint64_t more)
{
    return XXH3_64bits_withSeed(text, strlen(text), cardinality->seed ^ more);
}

static struct tenant *find_tenant(struct cardinality *cardinality, const char *name)
{
    uint64_t hash = hash_text(cardinality, name, 0);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&cardinality->by_tenant, &probe)) != ID_NONE)
        if (!strcmp(cardinality->tenants[id].name, name))
            return &cardinality->tenants[id];
    id = (uint32_t)cardinality->tenant_count++;
    array_reserve(cardinality->tenants, cardinality->tenant_capacity, cardinality->tenant_count);
    cardinality->tenants[id] = (struct tenant){.name = memory_strdup(name)};
    id_table_insert(&cardinality->by_tenant, hash, id);
    return &cardinality->tenants[id];
}

static uint64_t hash_name(const struct cardinality *cardinality, const char *tenant,
                          const char *name)
{
    return hash_text(cardinality, name, hash_text(cardinality, tenant, 1));
}

/* Takes over the counter. */
static void add_counter(struct cardinality *cardinality, struct counter counter)
{
    array_reserve(cardinality->counters, cardinality->capacity, cardinality->count + 1);
    id_table_insert(&cardinality->by_name, hash_name(cardinality, counter.tenant, counter.name),
                    (uint32_t)cardinality->count);
    cardinality->counters[cardinality->count++] = counter;
    find_tenant(cardinality, counter.tenant)->names++;
}

/* NULL: the tenant has too many names. */
static struct counter *find_counter(struct cardinality *cardinality, const char *tenant,
                                    const char *name)
{
    struct id_probe probe = id_probe_start(hash_name(cardinality, tenant, name));
    uint32_t id;
    while ((id = id_table_next(&cardinality->by_name, &probe)) != ID_NONE) {
        struct counter *counter = &cardinality->counters[id];
        if (!strcmp(counter->name, name) && !strcmp(counter->tenant, tenant))
            return counter;
    }
    if (cardinality->total >= cardinality->limits.total ||
        find_tenant(cardinality, tenant)->names >= cardinality->limits.names)
        return NULL;
    add_counter(cardinality,
                (struct counter){.tenant = memory_strdup(tenant), .name = memory_strdup(name)});
    return &cardinality->counters[cardinality->count - 1];
}

/* The window ends: what was not seen in it is forgotten, names without values too. */
static void turn_over(struct cardinality *cardinality)
{
    struct counter *before = cardinality->counters;
    size_t count = cardinality->count;
    cardinality->counters = NULL;
    cardinality->count = cardinality->capacity = 0;
    cardinality->total = 0;
    id_table_clear(&cardinality->by_name);
    for (size_t i = 0; i < cardinality->tenant_count; i++)
        free(cardinality->tenants[i].name);
    cardinality->tenant_count = 0;
    id_table_clear(&cardinality->by_tenant);
    for (size_t i = 0; i < count; i++) {
        struct counter *counter = &before[i];
        set_release(&counter->older);
        counter->older = counter->recent;
        counter->recent = (struct hash_set){0};
        counter->moved = 0;
        cardinality->total += counter->older.count;
        if (counter->older.count)
            add_counter(cardinality, *counter);
        else
            release_counter(counter);
    }
    free(before);
}

static void advance(struct cardinality *cardinality, int64_t now_ns)
{
    int64_t window_ns = cardinality->limits.window_ns;
    if (now_ns < cardinality->window_end_ns)
        return;
    if (cardinality->window_end_ns != INT64_MIN) {
        int64_t late_ns;
        bool both = __builtin_sub_overflow(now_ns, cardinality->window_end_ns, &late_ns) ||
                    late_ns >= window_ns;
        turn_over(cardinality);
        if (both)
            turn_over(cardinality);
    }
    if (__builtin_add_overflow(now_ns, window_ns, &cardinality->window_end_ns))
        cardinality->window_end_ns = INT64_MAX;
}

static enum cardinality_answer note(struct cardinality *cardinality, struct counter *counter,
                                    uint64_t hash, int64_t now_ns)
{
    if (set_has(&counter->recent, hash))
        return CARDINALITY_KNOWN;
    if (set_has(&counter->older, hash)) {
        set_add(&counter->recent, hash);
        counter->moved++;
        return CARDINALITY_KNOWN;
    }
    if (known_values(counter) >= cardinality->limits.values ||
        cardinality->total >= cardinality->limits.total) {
        counter->refused++;
        counter->refused_ns = now_ns;
        return CARDINALITY_FULL;
    }
    set_add(&counter->recent, hash);
    cardinality->total++;
    return CARDINALITY_NEW;
}

enum cardinality_answer cardinality_note(struct cardinality *cardinality, const char *tenant,
                                         const char *name, const char *value, int64_t now_ns)
{
    uint64_t hash = hash_text(cardinality, value, 2);
    hash = hash ? hash : 1; /* 0 is an empty slot */
    pthread_mutex_lock(&cardinality->lock);
    advance(cardinality, now_ns);
    struct counter *counter = find_counter(cardinality, tenant, name);
    enum cardinality_answer answer =
        counter ? note(cardinality, counter, hash, now_ns) : CARDINALITY_NAMES;
    pthread_mutex_unlock(&cardinality->lock);
    return answer;
}

void cardinality_each(struct cardinality *cardinality,
                      void (*callback)(void *context, const struct cardinality_stats *stats),
                      void *context)
{
    pthread_mutex_lock(&cardinality->lock);
    for (size_t i = 0; i < cardinality->count; i++) {
        const struct counter *counter = &cardinality->counters[i];
        struct cardinality_stats stats = {.tenant = counter->tenant,
                                          .name = counter->name,
                                          .values = known_values(counter),
                                          .refused = counter->refused,
                                          .refused_ns = counter->refused_ns};
        callback(context, &stats);
    }
    pthread_mutex_unlock(&cardinality->lock);
}
