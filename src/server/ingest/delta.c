// SPDX-License-Identifier: Apache-2.0
// Differences of cumulative values: see delta.h.

#include "server/ingest/delta.h"

#include <pthread.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

#define SERIES_BUCKETS 4096
#define FORGET_AFTER 10 /* profiles without a stack, after which it would be a new one */

/* A value per stack and type, sorted by the stacks' hashes. Values of stack i start at
 * values[i * types]. */
struct delta_table {
    size_t count;
    unsigned types;
    uint64_t *hashes;
    uint8_t *missed; /* profiles since it was seen */
    int64_t *values;
};

/* The last values of one series. */
struct delta_series {
    struct delta_series *chain;           /* of its bucket */
    struct delta_series *older, *younger; /* by when they were used */
    uint64_t key, version;
    int64_t time_ns; /* of the last profile; 0: it had none */
    struct delta_table *table;
};

struct deltas {
    pthread_mutex_t lock;
    size_t limit_bytes;
    struct delta_series *buckets[SERIES_BUCKETS];
    struct delta_series *oldest, *youngest;
    uint64_t version;
    struct delta_stats stats;
};

bool delta_is_known_type(const char *type)
{
    static const char *const known[] = {"alloc_objects", "alloc_space", "contentions", "delay"};
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (!strcmp(type, known[i]))
            return true;
    return false;
}

/* ---- tables ---- */

static size_t table_bytes(const struct delta_table *table)
{
    return table ? sizeof(*table) +
                       table->count * (sizeof(uint64_t) + 1 + table->types * sizeof(int64_t))
                 : 0;
}

static struct delta_table *table_new(size_t room, unsigned types)
{
    struct delta_table *table = memory_zalloc(1, sizeof(*table));
    table->types = types;
    table->hashes = memory_zalloc(MAX(room, 1u), sizeof(uint64_t));
    table->missed = memory_zalloc(MAX(room, 1u), 1);
    table->values = memory_zalloc(MAX(room * types, 1u), sizeof(int64_t));
    return table;
}

static void table_free(struct delta_table *table)
{
    if (!table)
        return;
    free(table->hashes);
    free(table->missed);
    free(table->values);
    free(table);
}

static int64_t *row(const struct delta_table *table, size_t index)
{
    return &table->values[index * table->types];
}

/* Moves *at, which only ever goes up, to where the hash is; false when it isn't there. */
static bool find_from(const struct delta_table *table, size_t *at, uint64_t hash)
{
    while (*at < table->count && table->hashes[*at] < hash)
        ++*at;
    return *at < table->count && table->hashes[*at] == hash;
}

/* ---- stacks ---- */

static uint64_t hash_text(uint64_t seed, const struct profile *profile, uint32_t string)
{
    const struct profile_string *text = &profile->strings[string];
    return XXH3_64bits_withSeed(text->data, text->length, seed);
}

static uint64_t hash_frame(const struct profile *profile, const struct profile_frame *frame)
{
    if (!frame->function)
        return hash_word(frame->address ^
                         hash_text(1, profile, profile->mappings[frame->mapping].file));
    const struct profile_function *function = &profile->functions[frame->function];
    uint64_t hash = hash_text(2, profile, function->name);
    return hash_word(hash_text(hash, profile, function->file) + frame->line);
}

static uint64_t hash_labels(const struct profile *profile, uint32_t set)
{
    size_t count;
    const struct profile_label *labels = profile_labels(profile, set, &count);
    uint64_t hash = 3;
    for (size_t i = 0; i < count; i++) {
        hash = hash_text(hash, profile, labels[i].key);
        hash = hash_text(hash, profile, labels[i].text);
        hash = hash_word(hash ^ (uint64_t)labels[i].number);
    }
    return hash;
}

struct sample_hash {
    uint64_t hash;
    size_t sample;
};

static int by_hash(const void *a, const void *b)
{
    const struct sample_hash *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->sample < y->sample ? -1 : 1;
}

/* The samples in the order of hashes that are the same in any profile. */
static struct sample_hash *order_samples(const struct profile *profile)
{
    uint64_t *frames = memory_alloc(MAX(profile->frame_count, 1u) * sizeof(uint64_t));
    uint64_t *nodes = memory_alloc(MAX(profile->node_count, 1u) * sizeof(uint64_t));
    uint32_t set_count = MAX(profile_label_set_count(profile), 1u);
    uint64_t *sets = memory_zalloc(set_count, sizeof(uint64_t));
    struct sample_hash *order =
        memory_alloc((profile->samples.count + 1) * sizeof(struct sample_hash));
    frames[0] = nodes[0] = 0;
    for (uint32_t i = 1; i < profile->frame_count; i++)
        frames[i] = hash_frame(profile, &profile->frames[i]);
    for (uint32_t i = 1; i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        nodes[i] = hash_word(nodes[node->parent] * 31 + frames[node->frame]);
    }
    for (uint32_t i = 1; i < set_count; i++)
        sets[i] = hash_labels(profile, i);
    for (size_t i = 0; i < profile->samples.count; i++)
        order[i] = (struct sample_hash){
            .hash = hash_word(nodes[profile->samples.node[i]] ^ sets[profile->samples.labels[i]]),
            .sample = i};
    qsort(order, profile->samples.count, sizeof(*order), by_hash);
    free(frames);
    free(nodes);
    free(sets);
    return order;
}

/* The profile's current values. */
static struct delta_table *table_of(const struct profile *profile, const bool *cumulative,
                                    unsigned types, const struct sample_hash *order)
{
    struct delta_table *table = table_new(profile->samples.count, types);
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (!i || order[i].hash != order[i - 1].hash)
            table->hashes[table->count++] = order[i].hash;
        int64_t *values = row(table, table->count - 1);
        for (unsigned type = 0; type < profile->type_count; type++)
            if (cumulative[type]) {
                *values = add_saturated(*values, profile->samples.values[type][order[i].sample]);
                values++;
            }
    }
    return table;
}

/* ---- series; the lock is held ---- */

static struct delta_series **series_place(struct deltas *deltas, uint64_t key)
{
    struct delta_series **place = &deltas->buckets[key % SERIES_BUCKETS];
    while (*place && (*place)->key != key)
        place = &(*place)->chain;
    return place;
}

static void unlink_age(struct deltas *deltas, struct delta_series *series)
{
    *(series->older ? &series->older->younger : &deltas->oldest) = series->younger;
    *(series->younger ? &series->younger->older : &deltas->youngest) = series->older;
}

static void make_youngest(struct deltas *deltas, struct delta_series *series)
{
    series->older = deltas->youngest;
    series->younger = NULL;
    *(deltas->youngest ? &deltas->youngest->younger : &deltas->oldest) = series;
    deltas->youngest = series;
}

static void forget(struct deltas *deltas, struct delta_series *series)
{
    struct delta_series **place = series_place(deltas, series->key);
    *place = series->chain;
    unlink_age(deltas, series);
    deltas->stats.series--;
    deltas->stats.bytes -= sizeof(*series) + table_bytes(series->table);
    table_free(series->table);
    free(series);
}

static struct delta_series *find_or_add(struct deltas *deltas, uint64_t key)
{
    struct delta_series **place = series_place(deltas, key), *series = *place;
    if (series) {
        unlink_age(deltas, series);
    } else {
        *place = series = memory_zalloc(1, sizeof(*series));
        series->key = key;
        deltas->stats.series++;
        deltas->stats.bytes += sizeof(*series);
    }
    make_youngest(deltas, series);
    return series;
}

static void set_table(struct deltas *deltas, struct delta_series *series, struct delta_table *table)
{
    deltas->stats.bytes += table_bytes(table);
    deltas->stats.bytes -= table_bytes(series->table);
    series->table = table;
    series->version = ++deltas->version;
}

/* ---- steps ---- */

static bool went_down(const struct delta_table *before, const struct delta_table *now)
{
    size_t old = 0;
    for (size_t i = 0; i < now->count; i++)
        if (find_from(before, &old, now->hashes[i]))
            for (unsigned type = 0; type < now->types; type++)
                if (row(now, i)[type] < row(before, old)[type])
                    return true;
    return false;
}

/* Half of it: sampled values are estimates, which may go down a little. */
static bool mostly_gone(const struct delta_table *before, const struct delta_table *now)
{
    for (unsigned type = 0; type < now->types; type++) {
        double then = 0, left = 0;
        for (size_t i = 0; i < before->count; i++)
            then += before->missed[i] ? 0 : (double)row(before, i)[type];
        for (size_t i = 0; i < now->count; i++)
            left += (double)row(now, i)[type];
        if (left < then / 2)
            return true;
    }
    return false;
}

static void append(struct delta_table *to, const struct delta_table *from, size_t index,
                   uint8_t missed)
{
    to->hashes[to->count] = from->hashes[index];
    to->missed[to->count] = missed;
    memcpy(row(to, to->count), row(from, index), to->types * sizeof(int64_t));
    to->count++;
}

/* `now` with the stacks that were missed not for long. */
static struct delta_table *with_missed(const struct delta_table *before, struct delta_table *now)
{
    size_t missed = 0, at = 0;
    for (size_t i = 0; i < before->count; i++)
        missed += before->missed[i] < FORGET_AFTER && !find_from(now, &at, before->hashes[i]);
    if (!missed)
        return now;
    struct delta_table *all = table_new(now->count + missed, now->types);
    size_t i = 0;
    for (size_t old = 0; old < before->count; old++) {
        for (; i < now->count && now->hashes[i] < before->hashes[old]; i++)
            append(all, now, i, 0);
        bool there = i < now->count && now->hashes[i] == before->hashes[old];
        if (!there && before->missed[old] < FORGET_AFTER)
            append(all, before, old, (uint8_t)(before->missed[old] + 1));
    }
    for (; i < now->count; i++)
        append(all, now, i, 0);
    table_free(now);
    return all;
}

/* The difference of a stack goes to its first sample: others of the same stack differ in addresses
 * only. Without `before`, all is 0. */
static void subtract(const struct delta_table *before, const struct delta_table *now,
                     const bool *cumulative, const struct sample_hash *order,
                     struct profile *profile)
{
    size_t stack = 0, old = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        bool again = i && order[i].hash == order[i - 1].hash;
        bool known = before && find_from(before, &old, order[i].hash);
        stack += i && !again;
        for (unsigned type = 0, column = 0; type < profile->type_count; type++) {
            if (!cumulative[type])
                continue;
            int64_t value = 0, base = before && known ? row(before, old)[column] : 0;
            if (before && !again && __builtin_sub_overflow(row(now, stack)[column], base, &value))
                value = INT64_MAX;
            profile->samples.values[type][order[i].sample] = value;
            column++;
        }
    }
}

struct delta_step *deltas_apply(struct deltas *deltas, uint64_t key, const bool *cumulative,
                                bool complete, struct profile *profile)
{
    unsigned types = 0;
    for (unsigned type = 0; type < profile->type_count; type++)
        types += cumulative[type];
    struct sample_hash *order = order_samples(profile);
    struct delta_table *now = table_of(profile, cumulative, types, order);
    struct delta_step *step = memory_zalloc(1, sizeof(*step));
    step->key = key;
    pthread_mutex_lock(&deltas->lock);
    struct delta_series *series = find_or_add(deltas, key);
    struct delta_table *before = series->table;
    if (!before || before->types != types)
        step->outcome = DELTA_FIRST;
    else if (!went_down(before, now) && !(complete && mostly_gone(before, now)))
        step->outcome = DELTA_KNOWN;
    else if (profile->time_ns && profile->time_ns < series->time_ns)
        step->outcome = DELTA_STALE;
    else
        step->outcome = DELTA_RESTART;
    subtract(step->outcome == DELTA_KNOWN ? before : NULL, now, cumulative, order, profile);
    if (step->outcome == DELTA_KNOWN) {
        if (profile->time_ns > series->time_ns && series->time_ns)
            step->since_ns = profile->time_ns - series->time_ns;
        now = with_missed(before, now);
    }
    deltas->stats.first += step->outcome == DELTA_FIRST;
    deltas->stats.restarts += step->outcome == DELTA_RESTART;
    deltas->stats.stale += step->outcome == DELTA_STALE;
    if (step->outcome == DELTA_STALE) {
        table_free(now);
    } else {
        step->before_version = series->version;
        set_table(deltas, series, now);
        step->before = before;
        step->before_ns = series->time_ns;
        step->version = series->version;
        series->time_ns = profile->time_ns;
    }
    while (deltas->stats.bytes > deltas->limit_bytes && deltas->oldest) {
        forget(deltas, deltas->oldest);
        deltas->stats.forgotten++;
    }
    pthread_mutex_unlock(&deltas->lock);
    free(order);
    return step;
}

void deltas_commit(struct deltas *deltas, struct delta_step *step)
{
    (void)deltas;
    table_free(step->before);
    free(step);
}

void deltas_revert(struct deltas *deltas, struct delta_step *step)
{
    pthread_mutex_lock(&deltas->lock);
    struct delta_series *series = *series_place(deltas, step->key);
    /* Another profile may have continued from this one: then it can't be undone. */
    if (series && step->version && series->version == step->version) {
        struct delta_table *undone = series->table;
        set_table(deltas, series, step->before);
        series->version = step->before_version; /* a step before this one goes back, too */
        series->time_ns = step->before_ns;
        step->before = undone;
        if (!series->table)
            forget(deltas, series);
    }
    pthread_mutex_unlock(&deltas->lock);
    table_free(step->before);
    free(step);
}

struct deltas *deltas_new(size_t limit_bytes)
{
    struct deltas *deltas = memory_zalloc(1, sizeof(*deltas));
    deltas->limit_bytes = limit_bytes;
    pthread_mutex_init(&deltas->lock, NULL);
    return deltas;
}

void deltas_free(struct deltas *deltas)
{
    if (!deltas)
        return;
    while (deltas->oldest)
        forget(deltas, deltas->oldest);
    pthread_mutex_destroy(&deltas->lock);
    free(deltas);
}

struct delta_stats deltas_stats(struct deltas *deltas)
{
    pthread_mutex_lock(&deltas->lock);
    struct delta_stats stats = deltas->stats;
    pthread_mutex_unlock(&deltas->lock);
    return stats;
}
