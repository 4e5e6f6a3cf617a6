// SPDX-License-Identifier: Apache-2.0
// The table of senders.

#include "server/ingest/senders.h"

#include <errno.h>
#include <pthread.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/json_write.h"

#define MINUTE_NS 60000000000ll

/* A tenant's pushes, minute by minute. */
struct recent {
    char tenant[SENDER_TEXT_BYTES];
    struct recent_minute {
        int64_t minute;
        uint64_t pushes, refused;
    } minutes[SENDER_MINUTES];
};

struct senders {
    pthread_mutex_t lock;
    struct recent *recent;
    size_t recent_count, recent_capacity;
    struct sender *rows;
    size_t count, capacity;
    struct sender total;
};

static const char *const names[INGEST_REFUSALS] = {
    [REFUSED_MALFORMED] = "malformed",   [REFUSED_UNSUPPORTED] = "unsupported",
    [REFUSED_TOO_LARGE] = "too_large",   [REFUSED_TOO_OLD] = "too_old",
    [REFUSED_RELABELLED] = "relabelled", [REFUSED_BROKEN_OFF] = "broken_off",
    [REFUSED_STORE] = "store",           [REFUSED_RATE] = "rate_limited",
};

const char *ingest_refusal_name(enum ingest_refusal reason)
{
    return names[reason];
}

enum ingest_refusal ingest_refusal_of(int code)
{
    switch (code) {
    case -EBADMSG:
    case -EINVAL:
        return REFUSED_MALFORMED;
    case -ENOTSUP:
        return REFUSED_UNSUPPORTED;
    case -E2BIG:
        return REFUSED_TOO_LARGE;
    case -ERANGE:
        return REFUSED_TOO_OLD;
    case -EUSERS:
        return REFUSED_RATE;
    case -ECONNRESET:
    case -ECANCELED:
    case -ETIME:
        return REFUSED_BROKEN_OFF;
    default:
        return REFUSED_STORE;
    }
}

struct senders *senders_new(void)
{
    struct senders *senders = memory_zalloc(1, sizeof(*senders));
    pthread_mutex_init(&senders->lock, NULL);
    return senders;
}

void senders_free(struct senders *senders)
{
    if (!senders)
        return;
    pthread_mutex_destroy(&senders->lock);
    free(senders->rows);
    free(senders->recent);
    free(senders);
}

static void add(struct sender *to, const struct sender *seen)
{
    to->pushes += seen->pushes;
    to->repeats += seen->repeats;
    to->windows += seen->windows;
    to->rows += seen->rows;
    to->exemplars += seen->exemplars;
    to->corrected += seen->corrected;
    to->cut += seen->cut;
    to->capped += seen->capped;
    for (int i = 0; i < INGEST_REFUSALS; i++)
        to->refused[i] += seen->refused[i];
}

static struct sender *find(struct senders *senders, const struct sender *seen)
{
    struct sender *oldest = NULL;
    for (size_t i = 0; i < senders->count; i++) {
        struct sender *row = &senders->rows[i];
        if (!strcmp(row->name, seen->name) && !strcmp(row->tenant, seen->tenant))
            return row;
        if (!oldest || row->last_ns < oldest->last_ns)
            oldest = row;
    }
    if (senders->count < SENDERS_MAX) {
        array_reserve(senders->rows, senders->capacity, senders->count + 1);
        oldest = &senders->rows[senders->count++];
    }
    *oldest = (struct sender){.first_ns = seen->last_ns};
    memcpy(oldest->name, seen->name, sizeof(oldest->name));
    memcpy(oldest->tenant, seen->tenant, sizeof(oldest->tenant));
    return oldest;
}

static struct recent *recent_of(struct senders *senders, const char *tenant)
{
    for (size_t i = 0; i < senders->recent_count; i++)
        if (!strcmp(senders->recent[i].tenant, tenant))
            return &senders->recent[i];
    return NULL;
}

static void note_recent(struct senders *senders, const struct sender *seen)
{
    struct recent *recent = recent_of(senders, seen->tenant);
    if (!recent && senders->recent_count < SENDER_TENANTS_MAX) {
        array_reserve(senders->recent, senders->recent_capacity, senders->recent_count + 1);
        recent = &senders->recent[senders->recent_count++];
        *recent = (struct recent){0};
        memcpy(recent->tenant, seen->tenant, sizeof(recent->tenant));
    }
    if (!recent || seen->last_ns < 0)
        return;
    int64_t minute = seen->last_ns / MINUTE_NS;
    struct recent_minute *slot = &recent->minutes[minute % SENDER_MINUTES];
    if (slot->minute != minute)
        *slot = (struct recent_minute){.minute = minute};
    slot->pushes += seen->pushes;
    for (int i = 0; i < INGEST_REFUSALS; i++)
        slot->refused += seen->refused[i];
}

double senders_success(struct senders *senders, const char *tenant, int64_t since_ns)
{
    uint64_t pushes = 0, refused = 0;
    pthread_mutex_lock(&senders->lock);
    const struct recent *recent = recent_of(senders, tenant);
    for (size_t i = 0; recent && i < SENDER_MINUTES; i++)
        if (recent->minutes[i].minute >= since_ns / MINUTE_NS) {
            pushes += recent->minutes[i].pushes;
            refused += recent->minutes[i].refused;
        }
    pthread_mutex_unlock(&senders->lock);
    return pushes ? 1 - (double)MIN(refused, pushes) / (double)pushes : NAN;
}

void senders_add(struct senders *senders, const struct sender *seen)
{
    pthread_mutex_lock(&senders->lock);
    struct sender *row = find(senders, seen);
    add(row, seen);
    add(&senders->total, seen);
    note_recent(senders, seen);
    memcpy(row->agent, seen->agent, sizeof(row->agent));
    row->last_ns = MAX(row->last_ns, seen->last_ns);
    if (seen->corrected)
        row->skew_ns = seen->skew_ns;
    pthread_mutex_unlock(&senders->lock);
}

struct sender senders_total(struct senders *senders)
{
    pthread_mutex_lock(&senders->lock);
    struct sender total = senders->total;
    pthread_mutex_unlock(&senders->lock);
    return total;
}

static void write_row(const struct sender *row, struct json_writer *json)
{
    json_write_object(json);
    json_member_text(json, "sender", row->name);
    json_member_text(json, "agent", row->agent);
    json_member_fixed(json, "first", (double)row->first_ns / 1e9, 3);
    json_member_fixed(json, "last", (double)row->last_ns / 1e9, 3);
    json_member_unsigned(json, "pushes", row->pushes);
    json_member_unsigned(json, "repeats", row->repeats);
    json_member_unsigned(json, "windows", row->windows);
    json_member_unsigned(json, "samples", row->rows);
    json_member_unsigned(json, "exemplars", row->exemplars);
    json_member_unsigned(json, "corrected", row->corrected);
    json_member_unsigned(json, "cut", row->cut);
    json_member_unsigned(json, "capped", row->capped);
    json_member_fixed(json, "clock_skew_seconds", (double)row->skew_ns / 1e9, 3);
    json_write_key(json, "refused");
    json_write_object(json);
    for (int i = 0; i < INGEST_REFUSALS; i++)
        if (row->refused[i])
            json_member_unsigned(json, names[i], row->refused[i]);
    json_write_object_end(json);
    json_write_object_end(json);
}

static int later_first(const void *a, const void *b)
{
    int64_t x = ((const struct sender *)a)->last_ns, y = ((const struct sender *)b)->last_ns;
    return x > y ? -1 : x < y;
}

void senders_write(struct senders *senders, const char *tenant, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    pthread_mutex_lock(&senders->lock);
    if (senders->count)
        qsort(senders->rows, senders->count, sizeof(*senders->rows), later_first);
    json_write_array(&json);
    for (size_t i = 0; i < senders->count; i++)
        if (!strcmp(senders->rows[i].tenant, tenant))
            write_row(&senders->rows[i], &json);
    json_write_array_end(&json);
    pthread_mutex_unlock(&senders->lock);
}
