// SPDX-License-Identifier: Apache-2.0
// Which builds are wanted, and of whom: see wishes.h.

#include "server/wishes.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void wishes_init(struct wishes *wishes)
{
    *wishes = (struct wishes){0};
    pthread_mutex_init(&wishes->lock, NULL);
}

void wishes_release(struct wishes *wishes)
{
    free(wishes->list);
    pthread_mutex_destroy(&wishes->lock);
    *wishes = (struct wishes){0};
}

/* ---- with the lock held ---- */

static struct wish *find(const struct wishes *wishes, const char *tenant, const char *key)
{
    for (size_t i = 0; i < wishes->count; i++)
        if (!strcmp(wishes->list[i].key, key) && !strcmp(wishes->list[i].tenant, tenant))
            return &wishes->list[i];
    return NULL;
}

static void drop(struct wishes *wishes, size_t at)
{
    wishes->list[at] = wishes->list[--wishes->count];
}

static bool is_leased(const struct wish *wish, int64_t now_s)
{
    return *wish->agent && now_s < wish->leased_until_s;
}

static bool is_leased_to(const struct wish *wish, const char *agent, int64_t now_s)
{
    return is_leased(wish, now_s) && !strcmp(wish->agent, agent);
}

/* Leases whose agents fell silent end; so do wishes that nobody has any more, but not what is
 * remembered of refusals. */
static void tidy(struct wishes *wishes, int64_t now_s)
{
    for (size_t i = wishes->count; i-- > 0;) {
        struct wish *wish = &wishes->list[i];
        if (*wish->agent && now_s >= wish->leased_until_s) {
            wish->agent[0] = '\0';
            wishes->expired++;
        }
        if (now_s - wish->asked_s > WISH_AGE_S && !*wish->agent && now_s >= wish->not_before_s)
            drop(wishes, i);
    }
}

/* In a full list, the one that was asked for longest ago and isn't on its way makes room. */
static bool make_room(struct wishes *wishes)
{
    struct wish *oldest = NULL;
    if (wishes->count < WISHES_MAX)
        return true;
    for (size_t i = 0; i < wishes->count; i++)
        if (!*wishes->list[i].agent && (!oldest || wishes->list[i].asked_s < oldest->asked_s))
            oldest = &wishes->list[i];
    wishes->dropped++;
    if (oldest)
        drop(wishes, (size_t)(oldest - wishes->list));
    return oldest;
}

static void note_refusal(struct wish *wish, const char *reason, bool final, int64_t now_s)
{
    wish->agent[0] = '\0';
    wish->refusals++;
    snprintf(wish->reason, sizeof(wish->reason), "%s", reason);
    if (final || wish->refusals >= WISH_REFUSALS_MAX) {
        wish->not_before_s = now_s + WISH_REFUSED_S;
        wish->refusals = 0;
    }
}

/* ---- what is wanted ---- */

void wishes_add(struct wishes *wishes, const char *tenant, const char *key, int64_t now_s)
{
    pthread_mutex_lock(&wishes->lock);
    struct wish *wish = find(wishes, tenant, key);
    if (!wish) {
        tidy(wishes, now_s);
        if (make_room(wishes)) {
            array_reserve(wishes->list, wishes->capacity, wishes->count + 1);
            wish = &wishes->list[wishes->count++];
            *wish = (struct wish){0};
            snprintf(wish->tenant, sizeof(wish->tenant), "%s", tenant);
            snprintf(wish->key, sizeof(wish->key), "%s", key);
        }
    }
    if (wish)
        wish->asked_s = now_s;
    pthread_mutex_unlock(&wishes->lock);
}

void wishes_set_value(struct wishes *wishes, const char *tenant, const char *key, double value)
{
    pthread_mutex_lock(&wishes->lock);
    struct wish *wish = find(wishes, tenant, key);
    if (wish)
        wish->value = value;
    pthread_mutex_unlock(&wishes->lock);
}

void wishes_fulfil(struct wishes *wishes, const char *key)
{
    pthread_mutex_lock(&wishes->lock);
    for (size_t i = wishes->count; i-- > 0;)
        if (!strcmp(wishes->list[i].key, key))
            drop(wishes, i);
    pthread_mutex_unlock(&wishes->lock);
}

/* ---- agents ---- */

/* The dearest of what an agent has, if it may send one now. */
static void lease(struct wishes *wishes, const char *tenant, const char *agent,
                  const struct wish_word *words, size_t count, int64_t now_s)
{
    struct wish *best = NULL;
    size_t leases = 0;
    for (size_t i = 0; i < wishes->count; i++) {
        bool own =
            is_leased_to(&wishes->list[i], agent, now_s) && !strcmp(wishes->list[i].tenant, tenant);
        leases += is_leased(&wishes->list[i], now_s);
        if (own)
            return;
    }
    for (size_t i = 0; i < count && leases < WISH_LEASES_MAX; i++) {
        struct wish *wish = words[i].state == WISH_HAVE ? find(wishes, tenant, words[i].key) : NULL;
        if (wish && !is_leased(wish, now_s) && now_s >= wish->not_before_s &&
            (!best || wish->value > best->value))
            best = wish;
    }
    if (!best)
        return;
    snprintf(best->agent, sizeof(best->agent), "%s", agent);
    best->leased_until_s = now_s + WISH_LEASE_S;
}

void wishes_hear(struct wishes *wishes, const char *tenant, const char *agent,
                 const struct wish_word *words, size_t count, int64_t now_s)
{
    pthread_mutex_lock(&wishes->lock);
    tidy(wishes, now_s);
    for (size_t i = 0; i < count; i++) {
        struct wish *wish = find(wishes, tenant, words[i].key);
        if (!wish || !is_leased_to(wish, agent, now_s))
            continue;
        if (words[i].state == WISH_SENDING)
            wish->leased_until_s = now_s + WISH_LEASE_S;
        if (words[i].state == WISH_REFUSED) {
            note_refusal(wish, words[i].reason, false, now_s);
            wishes->refused++;
        }
    }
    lease(wishes, tenant, agent, words, count, now_s);
    pthread_mutex_unlock(&wishes->lock);
}

void wishes_write(struct wishes *wishes, const char *tenant, const char *agent, int64_t now_s,
                  struct buffer *out)
{
    _cleanup_buffer_ struct buffer wanted = {0}, send = {0};
    size_t shown = 0, i = 0;
    pthread_mutex_lock(&wishes->lock);
    for (; i < wishes->count && shown < WISHES_SHOWN; i++) {
        const struct wish *wish = &wishes->list[(wishes->shown + i) % wishes->count];
        if (strcmp(wish->tenant, tenant) || is_leased(wish, now_s) || now_s < wish->not_before_s)
            continue;
        buffer_printf(&wanted, "%s\"%s\"", shown++ ? "," : "", wish->key);
    }
    wishes->shown = wishes->count ? (wishes->shown + i) % wishes->count : 0;
    for (size_t k = 0; k < wishes->count; k++)
        if (is_leased_to(&wishes->list[k], agent, now_s) && !strcmp(wishes->list[k].tenant, tenant))
            buffer_printf(&send, "%s\"%s\"", send.length ? "," : "", wishes->list[k].key);
    pthread_mutex_unlock(&wishes->lock);
    if (wanted.length || send.length)
        buffer_printf(out, ",\"symbols\":{\"wanted\":[%s],\"send\":[%s]}", buffer_text(&wanted),
                      buffer_text(&send));
}

int wishes_begin(struct wishes *wishes, const char *tenant, const char *agent, const char *key,
                 int64_t now_s, struct error *error)
{
    pthread_mutex_lock(&wishes->lock);
    struct wish *wish = find(wishes, tenant, key);
    bool own = wish && is_leased_to(wish, agent, now_s);
    if (own)
        wish->leased_until_s = now_s + WISH_LEASE_S;
    pthread_mutex_unlock(&wishes->lock);
    return own ? 0
               : error_set(error, -EBUSY,
                           "The build %.120s is not, or not any more, for the agent %.64s to send.",
                           key, agent);
}

void wishes_end(struct wishes *wishes, const char *tenant, const char *agent, const char *key,
                const char *failure, bool final, int64_t now_s)
{
    pthread_mutex_lock(&wishes->lock);
    struct wish *wish = find(wishes, tenant, key);
    if (failure && wish && !strcmp(wish->agent, agent)) {
        note_refusal(wish, failure, final, now_s);
        wishes->refused++;
    }
    wishes->taken += !failure;
    pthread_mutex_unlock(&wishes->lock);
    if (!failure)
        wishes_fulfil(wishes, key);
}

/* ---- for people ---- */

bool wishes_say(struct wishes *wishes, const char *tenant, const char *key, int64_t now_s,
                struct buffer *ret_text)
{
    pthread_mutex_lock(&wishes->lock);
    const struct wish *wish = find(wishes, tenant, key);
    if (wish && is_leased(wish, now_s))
        buffer_printf(ret_text, "The agent %s sends it.", wish->agent);
    else if (wish && *wish->reason)
        buffer_printf(ret_text, "Refused: %s", wish->reason);
    else if (wish)
        buffer_add_text(ret_text, "Wanted; no agent has it at hand yet.");
    pthread_mutex_unlock(&wishes->lock);
    return wish;
}

void wishes_write_metrics(struct wishes *wishes, int64_t now_s, struct buffer *out)
{
    size_t leased = 0;
    pthread_mutex_lock(&wishes->lock);
    tidy(wishes, now_s);
    for (size_t i = 0; i < wishes->count; i++)
        leased += is_leased(&wishes->list[i], now_s);
    buffer_printf(
        out,
        "# HELP assay_symbols_wanted Builds that agents are asked for.\n"
        "# TYPE assay_symbols_wanted gauge\nassay_symbols_wanted %zu\n"
        "# HELP assay_symbols_sending Of them, those that an agent is to send now.\n"
        "# TYPE assay_symbols_sending gauge\nassay_symbols_sending %zu\n"
        "# HELP assay_symbols_from_agents_total Files that agents sent, by what became of them.\n"
        "# TYPE assay_symbols_from_agents_total counter\n"
        "assay_symbols_from_agents_total{outcome=\"taken\"} %llu\n"
        "assay_symbols_from_agents_total{outcome=\"refused\"} %llu\n"
        "assay_symbols_from_agents_total{outcome=\"expired\"} %llu\n"
        "# HELP assay_symbols_not_wanted_total Builds not asked for since too many were.\n"
        "# TYPE assay_symbols_not_wanted_total counter\nassay_symbols_not_wanted_total %llu\n",
        wishes->count, leased, (unsigned long long)wishes->taken,
        (unsigned long long)wishes->refused, (unsigned long long)wishes->expired,
        (unsigned long long)wishes->dropped);
    pthread_mutex_unlock(&wishes->lock);
}
