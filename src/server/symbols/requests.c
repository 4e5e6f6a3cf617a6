// SPDX-License-Identifier: Apache-2.0
// Which builds are wanted, and of whom: see symbol requests.h.

#include "server/symbols/requests.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "io/json_write.h"

void symbol_requests_init(struct symbol_requests *symbol_requests)
{
    *symbol_requests = (struct symbol_requests){0};
    pthread_mutex_init(&symbol_requests->lock, NULL);
}

void symbol_requests_release(struct symbol_requests *symbol_requests)
{
    free(symbol_requests->list);
    pthread_mutex_destroy(&symbol_requests->lock);
    *symbol_requests = (struct symbol_requests){0};
}

/* ---- with the lock held ---- */

static struct symbol_request *find(const struct symbol_requests *symbol_requests,
                                   const char *tenant, const char *key)
{
    for (size_t i = 0; i < symbol_requests->count; i++)
        if (!strcmp(symbol_requests->list[i].key, key) &&
            !strcmp(symbol_requests->list[i].tenant, tenant))
            return &symbol_requests->list[i];
    return NULL;
}

static void drop(struct symbol_requests *symbol_requests, size_t at)
{
    symbol_requests->list[at] = symbol_requests->list[--symbol_requests->count];
}

static bool is_leased(const struct symbol_request *symbol_request, int64_t now_s)
{
    return *symbol_request->agent && now_s < symbol_request->leased_until_s;
}

static bool is_leased_to(const struct symbol_request *symbol_request, const char *agent,
                         int64_t now_s)
{
    return is_leased(symbol_request, now_s) && !strcmp(symbol_request->agent, agent);
}

/* Ends leases of agents that fell silent, and symbol requests for files that no agent has any more;
 * refusals are kept. */
static void tidy(struct symbol_requests *symbol_requests, int64_t now_s)
{
    for (size_t i = symbol_requests->count; i-- > 0;) {
        struct symbol_request *symbol_request = &symbol_requests->list[i];
        if (*symbol_request->agent && now_s >= symbol_request->leased_until_s) {
            symbol_request->agent[0] = '\0';
            symbol_requests->expired++;
        }
        if (now_s - symbol_request->asked_s > SYMBOL_REQUEST_AGE_S && !*symbol_request->agent &&
            now_s >= symbol_request->not_before_s)
            drop(symbol_requests, i);
    }
}

/* In a full list, the one that was asked for longest ago and isn't on its way makes room. */
static bool make_room(struct symbol_requests *symbol_requests)
{
    struct symbol_request *oldest = NULL;
    if (symbol_requests->count < SYMBOL_REQUESTS_MAX)
        return true;
    for (size_t i = 0; i < symbol_requests->count; i++)
        if (!*symbol_requests->list[i].agent &&
            (!oldest || symbol_requests->list[i].asked_s < oldest->asked_s))
            oldest = &symbol_requests->list[i];
    symbol_requests->dropped++;
    if (oldest)
        drop(symbol_requests, (size_t)(oldest - symbol_requests->list));
    return oldest;
}

static void note_refusal(struct symbol_request *symbol_request, const char *reason, bool final,
                         int64_t now_s)
{
    symbol_request->agent[0] = '\0';
    symbol_request->refusals++;
    snprintf(symbol_request->reason, sizeof(symbol_request->reason), "%s", reason);
    if (final || symbol_request->refusals >= SYMBOL_REQUEST_REFUSALS_MAX) {
        symbol_request->not_before_s = now_s + SYMBOL_REQUEST_REFUSED_S;
        symbol_request->refusals = 0;
    }
}

/* ---- what is wanted ---- */

void symbol_requests_add(struct symbol_requests *symbol_requests, const char *tenant,
                         const char *key, int64_t now_s)
{
    pthread_mutex_lock(&symbol_requests->lock);
    struct symbol_request *symbol_request = find(symbol_requests, tenant, key);
    if (!symbol_request) {
        tidy(symbol_requests, now_s);
        if (make_room(symbol_requests)) {
            array_reserve(symbol_requests->list, symbol_requests->capacity,
                          symbol_requests->count + 1);
            symbol_request = &symbol_requests->list[symbol_requests->count++];
            *symbol_request = (struct symbol_request){.first_s = now_s};
            snprintf(symbol_request->tenant, sizeof(symbol_request->tenant), "%s", tenant);
            snprintf(symbol_request->key, sizeof(symbol_request->key), "%s", key);
        }
    }
    if (symbol_request)
        symbol_request->asked_s = now_s;
    pthread_mutex_unlock(&symbol_requests->lock);
}

void symbol_requests_set_value(struct symbol_requests *symbol_requests, const char *tenant,
                               const char *key, double value)
{
    pthread_mutex_lock(&symbol_requests->lock);
    struct symbol_request *symbol_request = find(symbol_requests, tenant, key);
    if (symbol_request)
        symbol_request->value = value;
    pthread_mutex_unlock(&symbol_requests->lock);
}

void symbol_requests_fulfil(struct symbol_requests *symbol_requests, const char *tenant,
                            const char *key)
{
    pthread_mutex_lock(&symbol_requests->lock);
    struct symbol_request *symbol_request = find(symbol_requests, tenant, key);
    if (symbol_request)
        drop(symbol_requests, (size_t)(symbol_request - symbol_requests->list));
    pthread_mutex_unlock(&symbol_requests->lock);
}

/* ---- agents ---- */

/* The most expensive file that an agent has, if it may send one now. */
static void lease(struct symbol_requests *symbol_requests, const char *tenant, const char *agent,
                  const struct symbol_request_word *words, size_t count, int64_t now_s)
{
    struct symbol_request *best = NULL;
    size_t leases = 0;
    for (size_t i = 0; i < symbol_requests->count; i++) {
        bool own = is_leased_to(&symbol_requests->list[i], agent, now_s) &&
                   !strcmp(symbol_requests->list[i].tenant, tenant);
        leases += is_leased(&symbol_requests->list[i], now_s);
        if (own)
            return;
    }
    for (size_t i = 0; i < count && leases < SYMBOL_REQUEST_LEASES_MAX; i++) {
        struct symbol_request *symbol_request = words[i].state == SYMBOL_REQUEST_HAVE
                                                    ? find(symbol_requests, tenant, words[i].key)
                                                    : NULL;
        if (symbol_request && !is_leased(symbol_request, now_s) &&
            now_s >= symbol_request->not_before_s && (!best || symbol_request->value > best->value))
            best = symbol_request;
    }
    if (!best)
        return;
    snprintf(best->agent, sizeof(best->agent), "%s", agent);
    best->leased_until_s = now_s + SYMBOL_REQUEST_LEASE_S;
}

void symbol_requests_hear(struct symbol_requests *symbol_requests, const char *tenant,
                          const char *agent, const struct symbol_request_word *words, size_t count,
                          int64_t now_s)
{
    pthread_mutex_lock(&symbol_requests->lock);
    tidy(symbol_requests, now_s);
    for (size_t i = 0; i < count; i++) {
        struct symbol_request *symbol_request = find(symbol_requests, tenant, words[i].key);
        if (!symbol_request || !is_leased_to(symbol_request, agent, now_s))
            continue;
        if (words[i].state == SYMBOL_REQUEST_SENDING)
            symbol_request->leased_until_s = now_s + SYMBOL_REQUEST_LEASE_S;
        if (words[i].state == SYMBOL_REQUEST_REFUSED) {
            note_refusal(symbol_request, words[i].reason, false, now_s);
            symbol_requests->refused++;
        }
    }
    lease(symbol_requests, tenant, agent, words, count, now_s);
    pthread_mutex_unlock(&symbol_requests->lock);
}

void symbol_requests_write(struct symbol_requests *symbol_requests, const char *tenant,
                           const char *agent, int64_t now_s, struct buffer *out)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct json_writer json = json_writer(&text);
    size_t shown = 0, sent = 0, i = 0;
    json_write_object(&json);
    json_write_key(&json, "wanted");
    json_write_array(&json);
    pthread_mutex_lock(&symbol_requests->lock);
    for (; i < symbol_requests->count && shown < SYMBOL_REQUESTS_SHOWN; i++) {
        const struct symbol_request *symbol_request =
            &symbol_requests->list[(symbol_requests->shown + i) % symbol_requests->count];
        if (strcmp(symbol_request->tenant, tenant) || is_leased(symbol_request, now_s) ||
            now_s < symbol_request->not_before_s)
            continue;
        json_write_text(&json, symbol_request->key);
        shown++;
    }
    json_write_array_end(&json);
    json_write_key(&json, "send");
    json_write_array(&json);
    symbol_requests->shown =
        symbol_requests->count ? (symbol_requests->shown + i) % symbol_requests->count : 0;
    for (size_t k = 0; k < symbol_requests->count; k++)
        if (is_leased_to(&symbol_requests->list[k], agent, now_s) &&
            !strcmp(symbol_requests->list[k].tenant, tenant)) {
            json_write_text(&json, symbol_requests->list[k].key);
            sent++;
        }
    pthread_mutex_unlock(&symbol_requests->lock);
    json_write_array_end(&json);
    json_write_object_end(&json);
    if (shown || sent) {
        struct json_writer members = {.out = out, .comma = true};
        json_write_key(&members, "symbols");
        json_write_raw(&members, buffer_text(&text), text.length);
    }
}

int symbol_requests_begin(struct symbol_requests *symbol_requests, const char *tenant,
                          const char *agent, const char *key, int64_t now_s, struct error *error)
{
    pthread_mutex_lock(&symbol_requests->lock);
    struct symbol_request *symbol_request = find(symbol_requests, tenant, key);
    bool own = symbol_request && is_leased_to(symbol_request, agent, now_s);
    if (own)
        symbol_request->leased_until_s = now_s + SYMBOL_REQUEST_LEASE_S;
    pthread_mutex_unlock(&symbol_requests->lock);
    return own ? 0
               : error_set(error, -EBUSY,
                           "The lease for the build %.120s does not belong to the agent %.64s.",
                           key, agent);
}

void symbol_requests_end(struct symbol_requests *symbol_requests, const char *tenant,
                         const char *agent, const char *key, const char *failure, bool final,
                         int64_t now_s)
{
    pthread_mutex_lock(&symbol_requests->lock);
    struct symbol_request *symbol_request = find(symbol_requests, tenant, key);
    if (failure && symbol_request && !strcmp(symbol_request->agent, agent)) {
        note_refusal(symbol_request, failure, final, now_s);
        symbol_requests->refused++;
    }
    symbol_requests->taken += !failure;
    pthread_mutex_unlock(&symbol_requests->lock);
    if (!failure)
        symbol_requests_fulfil(symbol_requests, tenant, key);
}

/* ---- for people ---- */

bool symbol_requests_say(struct symbol_requests *symbol_requests, const char *tenant,
                         const char *key, int64_t now_s, struct buffer *ret_text)
{
    pthread_mutex_lock(&symbol_requests->lock);
    const struct symbol_request *symbol_request = find(symbol_requests, tenant, key);
    if (symbol_request && is_leased(symbol_request, now_s))
        buffer_printf(ret_text, "The agent %s is uploading it.", symbol_request->agent);
    else if (symbol_request && *symbol_request->reason)
        buffer_printf(ret_text, "Refused: %s", symbol_request->reason);
    else if (symbol_request)
        buffer_add_text(ret_text, "Requested; no agent has it yet.");
    pthread_mutex_unlock(&symbol_requests->lock);
    return symbol_request;
}

struct symbol_requests_pending symbol_requests_pending(struct symbol_requests *symbol_requests,
                                                       const char *tenant, int64_t now_s)
{
    struct symbol_requests_pending pending = {0};
    pthread_mutex_lock(&symbol_requests->lock);
    for (size_t i = 0; i < symbol_requests->count; i++) {
        const struct symbol_request *symbol_request = &symbol_requests->list[i];
        if (strcmp(symbol_request->tenant, tenant))
            continue;
        if (is_leased(symbol_request, now_s))
            pending.uploading++;
        else if (now_s >= symbol_request->not_before_s &&
                 now_s - symbol_request->first_s < SYMBOL_REQUEST_PENDING_S)
            pending.requested++;
    }
    pthread_mutex_unlock(&symbol_requests->lock);
    return pending;
}

void symbol_requests_write_metrics(struct symbol_requests *symbol_requests, int64_t now_s,
                                   struct buffer *out)
{
    size_t leased = 0;
    pthread_mutex_lock(&symbol_requests->lock);
    tidy(symbol_requests, now_s);
    for (size_t i = 0; i < symbol_requests->count; i++)
        leased += is_leased(&symbol_requests->list[i], now_s);
    buffer_printf(
        out,
        "# HELP assay_symbols_wanted Builds requested from agents.\n# TYPE assay_symbols_wanted "
        "gauge\nassay_symbols_wanted %zu\n# HELP assay_symbols_sending Requested builds with a "
        "lease.\n# TYPE assay_symbols_sending gauge\nassay_symbols_sending %zu\n# HELP "
        "assay_symbols_from_agents_total Files uploaded by agents, by outcome.\n# TYPE "
        "assay_symbols_from_agents_total "
        "counter\nassay_symbols_from_agents_total{outcome=\"taken\"} "
        "%llu\nassay_symbols_from_agents_total{outcome=\"refused\"} "
        "%llu\nassay_symbols_from_agents_total{outcome=\"expired\"} %llu\n# HELP "
        "assay_symbols_not_wanted_total Builds not requested because the list was full.\n# TYPE "
        "assay_symbols_not_wanted_total counter\nassay_symbols_not_wanted_total %llu\n",
        symbol_requests->count, leased, (unsigned long long)symbol_requests->taken,
        (unsigned long long)symbol_requests->refused, (unsigned long long)symbol_requests->expired,
        (unsigned long long)symbol_requests->dropped);
    pthread_mutex_unlock(&symbol_requests->lock);
}
