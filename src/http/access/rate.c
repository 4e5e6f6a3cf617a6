// SPDX-License-Identifier: Apache-2.0
// Limits the request rate of each sender: see rate.h.

#include "http/access/rate.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/random.h"

#define SETS 1024
#define WAYS 8

struct bucket {
    uint64_t key; /* hash; 0: empty */
    int64_t seen_ms;
    double left;
};

struct rates {
    pthread_mutex_t lock;
    double per_ms, burst;
    int64_t window_ms; /* 0: buckets fill all the time */
    uint64_t seed;     /* nobody can choose addresses that share a set */
    struct bucket buckets[SETS][WAYS];
};

struct rates *rates_new(double per_second, double burst)
{
    struct rates *rates = memory_zalloc(1, sizeof(*rates));
    pthread_mutex_init(&rates->lock, NULL);
    rates->per_ms = per_second / 1000;
    rates->burst = burst < 1 ? 1 : burst;
    rates->seed = random_bits();
    return rates;
}

struct rates *rates_new_windows(unsigned most, int64_t window_ms)
{
    struct rates *rates = rates_new(0, most);
    rates->window_ms = window_ms;
    return rates;
}

void rates_free(struct rates *rates)
{
    if (!rates)
        return;
    pthread_mutex_destroy(&rates->lock);
    free(rates);
}

static struct bucket *find(struct rates *rates, uint64_t key, int64_t now_ms)
{
    struct bucket *set = rates->buckets[key % SETS], *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].key == key)
            return &set[i];
        if (!set[i].key || (oldest->key && set[i].seen_ms < oldest->seen_ms))
            oldest = &set[i];
    }
    *oldest = (struct bucket){.key = key, .seen_ms = now_ms, .left = rates->burst};
    return oldest;
}

bool rates_allow(struct rates *rates, const char *key, int64_t now_ms, int64_t *ret_wait_ms)
{
    uint64_t hash = XXH3_64bits_withSeed(key, strlen(key), rates->seed);
    pthread_mutex_lock(&rates->lock);
    struct bucket *bucket = find(rates, hash ? hash : 1, now_ms);
    int64_t passed = MAX(now_ms - bucket->seen_ms, 0);
    if (!rates->window_ms) {
        bucket->left = fmin(rates->burst, bucket->left + (double)passed * rates->per_ms);
        bucket->seen_ms = now_ms;
    } else if (passed >= rates->window_ms) {
        bucket->left = rates->burst;
        bucket->seen_ms = now_ms;
    }
    bool allowed = bucket->left >= 1;
    if (allowed)
        bucket->left -= 1;
    else
        *ret_wait_ms = rates->window_ms ? rates->window_ms - passed
                                        : (int64_t)ceil((1 - bucket->left) / rates->per_ms);
    pthread_mutex_unlock(&rates->lock);
    return allowed;
}

void rates_network(const struct sockaddr *address, char *ret_text, size_t room)
{
    if (address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, ret_text,
                  (socklen_t)room);
        return;
    }
    struct in6_addr network = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&network)) {
        inet_ntop(AF_INET, &network.s6_addr[12], ret_text, (socklen_t)room);
        return;
    }
    memset(&network.s6_addr[8], 0, 8);
    inet_ntop(AF_INET6, &network, ret_text, (socklen_t)room);
}
