// SPDX-License-Identifier: Apache-2.0
// Splits a profile into windows of series and stores them.

#include "server/ingest/ingest.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "profile/unresolved.h"

#define YEAR_NS (365 * 86400 * 1000000000ll)

struct group {
    struct labels labels;
    uint64_t hash; /* of the labels before any rule */
    bool dropped;
    size_t rows, links; /* counted, then filled */
    size_t first_row, first_link;
};

/* A profile of a batch and all that its windows point to. */
struct ingest_part {
    struct ingest_part *next;
    struct profile profile;
    struct ingest_type types[PROFILE_TYPES_MAX];
    struct labels *kept; /* of the groups */
    size_t kept_count;
    struct store_row *rows;           /* by type, then group */
    struct store_exemplar *exemplars; /* likewise */
};

/* While a profile is split. */
struct split {
    struct ingest_batch *batch;
    const struct ingest_source *source;
    struct profile *profile;
    struct group *groups;
    size_t count, capacity;
    struct id_table index;      /* of the groups, by hash */
    uint32_t *group_of;         /* per label set; ID_NONE: not looked at yet */
    struct profile_link *links; /* per label set: trace and span that its labels name */
    int64_t time_ns, duration_ns;
    struct ingest_limits limits;
};

struct ingest_limits ingest_limits(struct ingest *ingest)
{
    pthread_rwlock_rdlock(&ingest->rules_lock);
    struct ingest_limits limits = ingest->limits;
    pthread_rwlock_unlock(&ingest->rules_lock);
    return limits;
}

static void part_free(struct ingest_part *part)
{
    for (size_t i = 0; i < part->kept_count; i++)
        labels_release(&part->kept[i]);
    for (size_t i = 0; i < PROFILE_TYPES_MAX; i++)
        free(part->types[i].id);
    free(part->kept);
    free(part->rows);
    free(part->exemplars);
    profile_release(&part->profile);
    free(part);
}

/* Of many pushes that wait for one commit only what the store has made of them is in memory, so
 * that those which are read meanwhile get memory that is still in the CPU's cache. */
static void drop_profiles(void *context)
{
    struct ingest_batch *batch = context;
    while (batch->parts) {
        struct ingest_part *part = batch->parts;
        batch->parts = part->next;
        part_free(part);
    }
    free(batch->windows);
    batch->windows = NULL;
    batch->count = batch->capacity = 0;
}

static void done_reading(void *context)
{
    struct ingest_batch *batch = context;
    drop_profiles(batch);
    if (batch->waits)
        batch->waits(batch->waits_context);
}

void ingest_batch_release(struct ingest_batch *batch)
{
    ingest_deltas_end(batch, false);
    drop_profiles(batch);
}

static void split_release(struct split *split)
{
    for (size_t i = 0; i < split->count; i++)
        labels_release(&split->groups[i].labels);
    free(split->groups);
    free(split->group_of);
    free(split->links);
    id_table_release(&split->index);
}

/* Traces and spans are too many to be series: they go with their samples. */
static bool take_link(const struct profile *profile, const struct profile_label *label,
                      struct profile_link *link)
{
    const char *key = profile_text(profile, label->key);
    const struct profile_string *text = &profile->strings[label->text];
    if (!strcmp(key, "trace_id")) {
        hex_decode(text->data, text->length, link->trace_id, sizeof(link->trace_id));
        return true;
    }
    if (strcmp(key, "span_id") && strcmp(key, "profile_id"))
        return false;
    hex_decode(text->data, text->length, link->span_id, sizeof(link->span_id));
    return true;
}

/* OpenTelemetry's names for labels that other senders have under shorter names: groups and rollups
 * need one name for all senders. */
static const char *label_name(const char *name)
{
    static const struct {
        const char *theirs, *ours;
    } names[] = {{"service.name", LABEL_SERVICE_NAME},
                 {"service.version", "version"},
                 {"service.instance.id", "instance"},
                 {"host.name", "host"}};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (!strcmp(name, names[i].theirs))
            return names[i].ours;
    return name;
}

static bool is_unkept(const struct ingest_source *source, const char *name)
{
    for (const char *const *at = source->unkept; at && *at; at++)
        if (!strcmp(*at, name))
            return true;
    return false;
}

/* Labels that tell processes apart, which OTLP's senders put on samples too. Others that come with
 * samples divide a process's profile. */
static bool names_process(const char *name)
{
    static const char *const whole[] = {LABEL_SERVICE_NAME, "version",   "host", "hostname",
                                        "instance",         "namespace", "pod",  "container",
                                        "region",           "pid",       "job",  "cluster"};
    static const char *const beginnings[] = {"process.", "container.", "k8s.",   "host.",
                                             "service.", "os.",        "cloud.", "deployment."};
    for (size_t i = 0; i < ARRAY_LENGTH(whole); i++)
        if (!strcmp(name, whole[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LENGTH(beginnings); i++)
        if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
            return true;
    return false;
}

static void note_split(struct labels *labels, const char *name)
{
    if (names_process(name))
        return;
    const char *before = labels_get(labels, LABEL_SPLIT);
    _cleanup_buffer_ struct buffer names = {0};
    buffer_printf(&names, "%s%s%s", before ? before : "", before ? LABEL_SPLIT_SEPARATOR : "",
                  name);
    labels_set(labels, LABEL_SPLIT, buffer_text(&names));
}

static void set_labels(struct split *split, uint32_t set, struct labels *labels)
{
    const struct profile *profile = split->profile;
    bool attributes = split->source->attributes;
    size_t count;
    const struct profile_label *list = profile_labels(profile, set, &count);
    labels_copy(labels, split->source->labels);
    for (size_t i = 0; i < count; i++) {
        const struct profile_string *key = &profile->strings[list[i].key];
        const struct profile_string *text = &profile->strings[list[i].text];
        if (take_link(profile, &list[i], &split->links[set]))
            continue;
        const char *name = attributes ? label_name(key->data) : key->data;
        if (!strncmp(name, "__", 2) || is_unkept(split->source, name))
            continue;
        /* The sender's labels of the whole profile win, as in Pyroscope. */
        if (!attributes && labels_get(split->source->labels, name))
            continue;
        if (list[i].text) {
            note_split(labels, name);
            labels_set_n(labels, name, strlen(name), text->data, text->length);
        } else if (attributes && !list[i].unit) {
            /* In pprof a number is a measurement, as the size of an object is. */
            char number[24];
            snprintf(number, sizeof(number), "%lld", (long long)list[i].number);
            note_split(labels, name);
            labels_set(labels, name, number);
        }
    }
}

/* Relabelling may have renamed what samples brought. */
static void keep_split(struct labels *labels, const struct labels *before)
{
    const char *split = labels_get(before, LABEL_SPLIT);
    _cleanup_buffer_ struct buffer names = {0};
    bool missing = false;
    for (const char *at = split; at && *at;) {
        size_t length = strcspn(at, LABEL_SPLIT_SEPARATOR);
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)MIN(length, sizeof(name) - 1), at);
        if (labels_get(labels, name))
            buffer_printf(&names, "%s%s", names.length ? LABEL_SPLIT_SEPARATOR : "", name);
        else
            missing = true;
        at += length + (at[length] != 0);
    }
    for (size_t i = 0; missing && i < labels->count; i++)
        if (!labels_get(before, labels->list[i].name) && !names_process(labels->list[i].name))
            buffer_printf(&names, "%s%s", names.length ? LABEL_SPLIT_SEPARATOR : "",
                          labels->list[i].name);
    labels_set(labels, LABEL_SPLIT, buffer_text(&names));
}

/* Labels that the server sets, whatever the sender's are. */
static void set_internal(struct split *split, struct labels *labels, const struct labels *before)
{
    const struct ingest_source *source = split->source;
    const char *otherwise = source->attributes ? "agent" : "push";
    labels_set(labels, LABEL_SOURCE, source->observer ? source->observer : otherwise);
    keep_split(labels, before);
}

static void finish_labels(struct split *split, struct group *group)
{
    struct ingest *ingest = split->batch->ingest;
    struct labels *labels = &group->labels;
    if (!labels_get(labels, LABEL_SERVICE_NAME)) {
        const char *program = labels_get(labels, "process.executable.name");
        char name[256];
        snprintf(name, sizeof(name), "unknown_service%s%.200s", program ? ":" : "",
                 program ? program : "");
        labels_set(labels, LABEL_SERVICE_NAME, name);
    }
    unsigned reasons = 0;
    _cleanup_labels_ struct labels before = {0};
    labels_copy(&before, labels);
    labels_remove(labels, LABEL_SPLIT);
    pthread_rwlock_rdlock(&ingest->rules_lock);
    group->dropped = !label_rules_apply(&ingest->rules, split->batch->tenant,
                                        split->source->received_ns, labels, &reasons);
    pthread_rwlock_unlock(&ingest->rules_lock);
    if (reasons & (1u << LABEL_TOO_MANY_VALUES | 1u << LABEL_TOO_MANY_NAMES))
        split->batch->seen->capped++;
    /* Relabelling may take the service away, which no series goes without. */
    if (!group->dropped && !labels_get(labels, LABEL_SERVICE_NAME))
        labels_set(labels, LABEL_SERVICE_NAME, "unknown_service");
    set_internal(split, labels, &before);
}

/* The group of a label set. Sets that differ in traces or numbers only are one. */
static uint32_t find_group(struct split *split, uint32_t set)
{
    if (split->group_of[set] != ID_NONE)
        return split->group_of[set];
    struct labels labels = {0};
    set_labels(split, set, &labels);
    uint64_t hash = labels_hash(&labels);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    /* The rules have changed what the group holds since: 64 bits of hash must do. */
    while ((id = id_table_next(&split->index, &probe)) != ID_NONE)
        if (split->groups[id].hash == hash)
            break;
    if (id == ID_NONE) {
        id = (uint32_t)split->count;
        array_reserve(split->groups, split->capacity, split->count + 1);
        split->groups[split->count++] = (struct group){.labels = labels, .hash = hash};
        labels = (struct labels){0};
        finish_labels(split, &split->groups[id]);
        id_table_insert(&split->index, hash, id);
    }
    labels_release(&labels);
    return split->group_of[set] = id;
}

static int group_samples(struct split *split, struct error *error)
{
    const struct profile *profile = split->profile;
    size_t sets = MAX(profile_label_set_count(profile), 1u);
    split->group_of = memory_alloc(sets * sizeof(*split->group_of));
    memset(split->group_of, 0xff, sets * sizeof(*split->group_of));
    split->links = memory_zalloc(sets, sizeof(*split->links));
    if (!profile->samples.count)
        find_group(split, 0);
    for (size_t i = 0; i < profile->samples.count; i++) {
        find_group(split, profile->samples.labels[i]);
        if (split->count > split->limits.series)
            return error_set(error, -E2BIG,
                             "The labels of the samples make more than %llu series of one profile.",
                             (unsigned long long)split->limits.series);
    }
    return 0;
}

static bool has_link(const struct profile_link *link)
{
    static const struct profile_link none;
    return memcmp(link, &none, sizeof(none));
}

static const struct profile_link *sample_link(const struct split *split, size_t row)
{
    const struct profile *profile = split->profile;
    if (profile->samples.link && profile->samples.link[row])
        return &profile->links[profile->samples.link[row]];
    return &split->links[profile->samples.labels[row]];
}

static int64_t scaled(int64_t value, int64_t factor)
{
    int64_t product;
    if (__builtin_mul_overflow(value, factor, &product))
        return value < 0 ? INT64_MIN : INT64_MAX;
    return product;
}

/* Rows of one type, group after group. */
static void fill_type(struct split *split, struct ingest_part *part, unsigned type, bool linked,
                      size_t *rows, size_t *exemplars)
{
    const struct profile_samples *samples = &split->profile->samples;
    const int64_t *values = samples->values[type];
    for (size_t g = 0; g < split->count; g++)
        split->groups[g].rows = split->groups[g].links = 0;
    for (size_t i = 0; i < samples->count; i++) {
        struct group *group = &split->groups[split->group_of[samples->labels[i]]];
        if (group->dropped || !values[i])
            continue;
        group->rows++;
        group->links += linked && has_link(sample_link(split, i));
    }
    for (size_t g = 0; g < split->count; g++) {
        struct group *group = &split->groups[g];
        group->first_row = *rows;
        group->first_link = *exemplars;
        *rows += group->rows;
        *exemplars += group->links;
        group->rows = group->links = 0;
    }
    for (size_t i = 0; i < samples->count; i++) {
        struct group *group = &split->groups[split->group_of[samples->labels[i]]];
        if (group->dropped || !values[i])
            continue;
        int64_t value = scaled(values[i], part->types[type].factor);
        part->rows[group->first_row + group->rows++] =
            (struct store_row){.node = samples->node[i], .value = value};
        const struct profile_link *link = linked ? sample_link(split, i) : NULL;
        if (linked && has_link(link))
            part->exemplars[group->first_link + group->links++] = (struct store_exemplar){
                .node = samples->node[i], .value = value, .time_ns = split->time_ns, .link = *link};
    }
}

static void add_windows(struct split *split, struct ingest_part *part, unsigned type)
{
    struct ingest_batch *batch = split->batch;
    int64_t since_ns = part->types[type].since_ns;
    for (size_t g = 0; g < split->count; g++) {
        const struct group *group = &split->groups[g];
        /* An empty window shows that the process was sampled; per label set that would be noise. */
        if (group->dropped || (!group->rows && split->count > 1))
            continue;
        array_reserve(batch->windows, batch->capacity, batch->count + 1);
        batch->windows[batch->count++] =
            (struct store_profile){.labels = &part->kept[g],
                                   .type = part->types[type].id,
                                   .time_ns = split->time_ns - since_ns,
                                   .duration_ns = since_ns ? since_ns : split->duration_ns,
                                   .profile = &part->profile,
                                   .rows = part->rows + group->first_row,
                                   .row_count = group->rows,
                                   .exemplars = part->exemplars + group->first_link,
                                   .exemplar_count = group->links};
        batch->seen->windows++;
        batch->seen->rows += group->rows;
        batch->seen->exemplars += group->links;
    }
}

static int choose_times(struct split *split, struct error *error)
{
    const struct ingest_source *source = split->source;
    const struct ingest_limits *limits = &split->limits;
    struct sender *seen = split->batch->seen;
    struct profile *profile = split->profile;
    int64_t given = source->to_ns > source->from_ns ? source->to_ns - source->from_ns : 0;
    /* Several profiles of one message are one sender's at one time; their durations were added. */
    int64_t duration = profile->duration_ns / (int64_t)MAX(profile->source_count, 1u);
    duration = duration > 0 && !(source->times_given && given) ? duration
               : given                                         ? given
               : source->attributes                            ? 10000000000ll
                                                               : 0;
    duration = MIN(duration, 10 * YEAR_NS);
    bool own_time = profile->time_ns > YEAR_NS && !(source->times_given && source->from_ns > 0);
    int64_t time = own_time              ? profile->time_ns
                   : source->from_ns > 0 ? source->from_ns
                                         : source->received_ns - duration;
    int64_t skew = 0;
    if (source->sent_ns > 0)
        skew = source->sent_ns - source->received_ns;
    else if (time > source->received_ns - duration)
        skew = time - (source->received_ns - duration);
    if (magnitude(skew) > limits->clock_skew_ns) {
        time -= skew;
        seen->corrected++;
        seen->skew_ns = skew;
    }
    if (limits->age_ns && time < source->received_ns - limits->age_ns)
        return error_set(error, -ERANGE, "The profile is older than the limit.");
    if (time <= 0)
        return error_set(error, -EINVAL, "Invalid profile timestamp.");
    split->time_ns = time;
    split->duration_ns = duration;
    return 0;
}

void ingest_redact(struct ingest *ingest, struct profile *profile)
{
    pthread_rwlock_rdlock(&ingest->rules_lock);
    if (ingest->rules.redact_names) {
        profile_settle(profile);
        ingest_redact_names(ingest->rules.redactor, profile);
    }
    pthread_rwlock_unlock(&ingest->rules_lock);
}

int ingest_batch_add(struct ingest_batch *batch, const struct ingest_source *source,
                     struct profile *profile, struct error *error)
{
    const struct ingest_limits given = ingest_limits(batch->ingest), *limits = &given;
    if (profile->samples.count > limits->samples)
        return error_set(error, -E2BIG, "The profile has %zu samples; the limit is %llu.",
                         profile->samples.count, (unsigned long long)limits->samples);
    if (!profile->type_count)
        return error_set(error, -EBADMSG, "The profile has no sample types.");
    struct ingest_part *part = memory_zalloc(1, sizeof(*part));
    part->next = batch->parts;
    batch->parts = part;
    part->profile = *profile;
    if (part->profile.unresolved)
        part->profile.unresolved->profile = &part->profile;
    profile_init(profile, 0);
    _cleanup_(split_release) struct split split = {
        .batch = batch, .source = source, .profile = &part->profile, .limits = given};
    int r = choose_times(&split, error);
    if (!r)
        r = group_samples(&split, error);
    if (r < 0)
        return r;
    if (part->profile.unresolved && part->profile.unresolved->deepest > limits->depth &&
        limits->depth)
        profile_settle(&part->profile);
    ingest_redact(batch->ingest, &part->profile);
    ingest_types(&part->profile, source, part->types);
    batch->seen->cut += ingest_cut_stacks(&part->profile, limits->depth);
    ingest_deltas(batch, source, &part->profile, part->types);
    size_t cells = part->profile.samples.count * part->profile.type_count, rows = 0, links = 0;
    part->rows = memory_alloc((cells + 1) * sizeof(*part->rows));
    bool linked = part->profile.samples.link != NULL;
    for (size_t i = 0; i < profile_label_set_count(&part->profile) && !linked; i++)
        linked = has_link(&split.links[i]);
    part->exemplars = memory_alloc((linked ? cells + 1 : 1) * sizeof(*part->exemplars));
    part->kept = memory_zalloc(split.count, sizeof(*part->kept));
    part->kept_count = split.count;
    for (size_t g = 0; g < split.count; g++) {
        part->kept[g] = split.groups[g].labels;
        split.groups[g].labels = (struct labels){0};
    }
    for (unsigned type = 0; type < part->profile.type_count; type++)
        if (part->types[type].id) {
            fill_type(&split, part, type, linked, &rows, &links);
            add_windows(&split, part, type);
        }
    return 0;
}

int ingest_batch_write(struct ingest_batch *batch, const char *batch_id, struct error *error)
{
    if (!batch->count) { /* a push without profiles is a way to ask whether we are there */
        batch->seen->refused[REFUSED_RELABELLED] += batch->parts != NULL && !batch->steps;
        ingest_deltas_end(batch, true);
        return 0;
    }
    struct store_batch written = {.tenant = batch->tenant,
                                  .batch_id = batch_id,
                                  .profiles = batch->windows,
                                  .count = batch->count,
                                  .done_reading = done_reading,
                                  .context = batch};
    int r = store_write(batch->ingest->store, &written, error);
    /* Damage, permissions and the like are the store's trouble, not the sender's: try again. */
    if (r == -EBADMSG || r == -ENOENT || r == -EACCES || r == -EPERM || r == -ENOTSUP ||
        r == -EBUSY || r == -EIO)
        r = error->code = -EAGAIN;
    ingest_deltas_end(batch, !r);
    return r;
}
