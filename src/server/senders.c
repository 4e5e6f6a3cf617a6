// SPDX-License-Identifier: Apache-2.0
// The table of senders.

#include "server/senders.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

struct senders {
    pthread_mutex_t lock;
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

void senders_add(struct senders *senders, const struct sender *seen)
{
    pthread_mutex_lock(&senders->lock);
    struct sender *row = find(senders, seen);
    add(row, seen);
    add(&senders->total, seen);
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

static void write_row(const struct sender *row, struct buffer *out)
{
    buffer_add_text(out, "{\"sender\":");
    text_escape_json(out, row->name, strlen(row->name));
    buffer_add_text(out, ",\"agent\":");
    text_escape_json(out, row->agent, strlen(row->agent));
    buffer_printf(out,
                  ",\"first\":%.3f,\"last\":%.3f,\"pushes\":%llu,\"repeats\":%llu,"
                  "\"windows\":%llu,\"samples\":%llu,\"exemplars\":%llu,\"corrected\":%llu,"
                  "\"cut\":%llu,\"clock_skew_seconds\":%.3f,\"refused\":{",
                  (double)row->first_ns / 1e9, (double)row->last_ns / 1e9,
                  (unsigned long long)row->pushes, (unsigned long long)row->repeats,
                  (unsigned long long)row->windows, (unsigned long long)row->rows,
                  (unsigned long long)row->exemplars, (unsigned long long)row->corrected,
                  (unsigned long long)row->cut, (double)row->skew_ns / 1e9);
    const char *comma = "";
    for (int i = 0; i < INGEST_REFUSALS; i++)
        if (row->refused[i]) {
            buffer_printf(out, "%s\"%s\":%llu", comma, names[i],
                          (unsigned long long)row->refused[i]);
            comma = ",";
        }
    buffer_add_text(out, "}}");
}

static int later_first(const void *a, const void *b)
{
    int64_t x = ((const struct sender *)a)->last_ns, y = ((const struct sender *)b)->last_ns;
    return x > y ? -1 : x < y;
}

void senders_write(struct senders *senders, const char *tenant, struct buffer *out)
{
    const char *comma = "";
    pthread_mutex_lock(&senders->lock);
    if (senders->count)
        qsort(senders->rows, senders->count, sizeof(*senders->rows), later_first);
    buffer_add_char(out, '[');
    for (size_t i = 0; i < senders->count; i++)
        if (!strcmp(senders->rows[i].tenant, tenant)) {
            buffer_add_text(out, comma);
            write_row(&senders->rows[i], out);
            comma = ",";
        }
    buffer_add_char(out, ']');
    pthread_mutex_unlock(&senders->lock);
}
