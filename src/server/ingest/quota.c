// SPDX-License-Identifier: Apache-2.0
// Rate limits of senders: see quota.h.

#include "server/ingest/quota.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"

#define SETS 512
#define WAYS 8

enum resource { REQUESTS, BYTES, SAMPLES, RESOURCES };

static const char *const names[RESOURCES] = {"requests", "bytes", "samples"};

struct account {
    uint64_t key; /* hash; 0: empty */
    int64_t seen_ms;
    double left[RESOURCES]; /* below 0: overdrawn */
};

struct quotas {
    pthread_mutex_t lock;
    double per_ms[RESOURCES], burst[RESOURCES]; /* 0: no limit */
    bool per_tenant, any;
    uint64_t seed; /* random, so that names which share a set can't be chosen */
    struct account accounts[SETS][WAYS];
};

void quotas_set(struct quotas *quotas, const struct quota_limits *limits)
{
    const uint64_t per_second[RESOURCES] = {limits->requests, limits->bytes, limits->samples};
    pthread_mutex_lock(&quotas->lock);
    quotas->any = false;
    quotas->per_tenant = limits->per_tenant;
    for (unsigned i = 0; i < RESOURCES; i++) {
        quotas->per_ms[i] = (double)per_second[i] / 1000;
        quotas->burst[i] = fmax(quotas->per_ms[i] * ((double)limits->burst_ns / 1e6), 1);
        quotas->any |= per_second[i] != 0;
    }
    pthread_mutex_unlock(&quotas->lock);
}

struct quotas *quotas_new(const struct quota_limits *limits)
{
    struct quotas *quotas = memory_zalloc(1, sizeof(*quotas));
    pthread_mutex_init(&quotas->lock, NULL);
    quotas->seed = random_bits();
    quotas_set(quotas, limits);
    return quotas;
}

void quotas_free(struct quotas *quotas)
{
    if (!quotas)
        return;
    pthread_mutex_destroy(&quotas->lock);
    free(quotas);
}

/* The sender's account with what has come in since. The lock is held. */
static struct account *find(struct quotas *quotas, const char *tenant, const char *sender,
                            int64_t now_ms)
{
    uint64_t key = XXH3_64bits_withSeed(tenant, strlen(tenant), quotas->seed);
    if (!quotas->per_tenant)
        key = XXH3_64bits_withSeed(sender, strlen(sender), key);
    key = key ? key : 1;
    struct account *set = quotas->accounts[key % SETS], *found = NULL, *oldest = set;
    for (size_t i = 0; i < WAYS && !found; i++) {
        if (set[i].key == key)
            found = &set[i];
        else if (!set[i].key || (oldest->key && set[i].seen_ms < oldest->seen_ms))
            oldest = &set[i];
    }
    if (!found) {
        found = oldest;
        *found = (struct account){.key = key, .seen_ms = now_ms};
        memcpy(found->left, quotas->burst, sizeof(found->left));
    }
    double passed = (double)MAX(now_ms - found->seen_ms, 0ll);
    for (unsigned i = 0; i < RESOURCES; i++)
        found->left[i] = fmin(quotas->burst[i], found->left[i] + passed * quotas->per_ms[i]);
    found->seen_ms = now_ms;
    return found;
}

bool quotas_allow(struct quotas *quotas, const char *tenant, const char *sender, int64_t now_ms,
                  int64_t *ret_wait_ms, const char **ret_what)
{
    double wait_ms = 0;
    pthread_mutex_lock(&quotas->lock);
    struct account *account = quotas->any ? find(quotas, tenant, sender, now_ms) : NULL;
    for (unsigned i = 0; account && i < RESOURCES; i++) {
        double wanted = i == REQUESTS ? 1 : 0;
        if (!(quotas->per_ms[i] > 0) || account->left[i] >= wanted)
            continue;
        double needs = (wanted - account->left[i]) / quotas->per_ms[i];
        if (needs > wait_ms) {
            wait_ms = needs;
            *ret_what = names[i];
        }
    }
    if (account && !(wait_ms > 0))
        account->left[REQUESTS] -= 1;
    pthread_mutex_unlock(&quotas->lock);
    *ret_wait_ms = (int64_t)ceil(fmin(wait_ms, 86400000));
    return !(wait_ms > 0);
}

void quotas_charge(struct quotas *quotas, const char *tenant, const char *sender, uint64_t bytes,
                   uint64_t samples, int64_t now_ms)
{
    pthread_mutex_lock(&quotas->lock);
    if (quotas->any) {
        struct account *account = find(quotas, tenant, sender, now_ms);
        account->left[BYTES] -= (double)bytes;
        account->left[SAMPLES] -= (double)samples;
    }
    pthread_mutex_unlock(&quotas->lock);
}
