// SPDX-License-Identifier: Apache-2.0
// Encodes windows as requests: see encoder.h.

#include "agent/encoder.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/limits/pace.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

#define QUEUE_MAX 3 /* windows */
/* No window waits longer for the pace than this. */
#define PAUSE_MAX_NS 5000000000ll

struct encoder {
    struct encoder_options options;
    pthread_t thread;

    /* The thread's own. */
    uint64_t run; /* a number that no other run has; each request takes the next */
    struct pace pace;
    int64_t paced_cpu_ns; /* of its CPU time, what the pace knows of */
    int64_t patience_ns;  /* and until when the window at hand may wait for it */

    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    struct window *queue[QUEUE_MAX];
    size_t count;
    bool no_more, drop_caches;
    char encoding[WINDOW_SUFFIX_BYTES]; /* of the window at hand; "": none, or the continuous */
    struct encoder_stats stats;
};

/* ---- the queue ---- */

static struct window *take_first(struct encoder *encoder)
{
    struct window *first = encoder->queue[0];
    memmove(encoder->queue, encoder->queue + 1, sizeof(first) * --encoder->count);
    return first;
}

void encoder_take(struct encoder *encoder, struct window *window)
{
    struct window *lost = NULL;
    pthread_mutex_lock(&encoder->lock);
    if (!encoder->count) /* from now on it has something to do */
        watchdog_beat(encoder->options.watchdog, WATCHDOG_WINDOWS);
    if (encoder->count == QUEUE_MAX) {
        lost = take_first(encoder);
        encoder->stats.dropped++;
    }
    encoder->queue[encoder->count++] = window;
    encoder->stats.windows++;
    pthread_cond_signal(&encoder->changed);
    pthread_mutex_unlock(&encoder->lock);
    window_free(lost);
}

bool encoder_has(struct encoder *encoder, const char *suffix)
{
    pthread_mutex_lock(&encoder->lock);
    bool found = !strcmp(encoder->encoding, suffix);
    for (size_t i = 0; i < encoder->count; i++)
        found = found || !strcmp(encoder->queue[i]->suffix, suffix);
    pthread_mutex_unlock(&encoder->lock);
    return found;
}

void encoder_drop_caches(struct encoder *encoder)
{
    pthread_mutex_lock(&encoder->lock);
    encoder->drop_caches = true;
    pthread_cond_signal(&encoder->changed);
    pthread_mutex_unlock(&encoder->lock);
}

struct encoder_stats encoder_stats(struct encoder *encoder)
{
    struct encoder_stats stats = {0};
    if (!encoder)
        return stats;
    pthread_mutex_lock(&encoder->lock);
    stats = encoder->stats;
    pthread_mutex_unlock(&encoder->lock);
    return stats;
}

/* ---- its pace ---- */

/* Before a binary is opened: what the last ones cost is paid for first, unless windows wait. False
 * when it isn't by then. */
static bool pause_for(void *context)
{
    struct encoder *encoder = context;
    bool paid;
    pthread_mutex_lock(&encoder->lock);
    for (;;) {
        int64_t now_ns = monotonic_ns();
        int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        pace_spend(&encoder->pace, cpu_ns - encoder->paced_cpu_ns);
        encoder->paced_cpu_ns = cpu_ns;
        int64_t owed_ns = pace_owed_ns(&encoder->pace, now_ns);
        paid = owed_ns <= 0 || encoder->no_more;
        if (paid || now_ns >= encoder->patience_ns || encoder->count)
            break;
        watchdog_beat(encoder->options.watchdog, WATCHDOG_WINDOWS);
        condition_wait_until(&encoder->changed, &encoder->lock,
                             MIN(now_ns + owed_ns, encoder->patience_ns));
    }
    pthread_mutex_unlock(&encoder->lock);
    return paid;
}

/* ---- requests ---- */

static struct window *next_window(struct encoder *encoder)
{
    struct window *window = NULL;
    pthread_mutex_lock(&encoder->lock);
    watchdog_idle(encoder->options.watchdog, WATCHDOG_WINDOWS);
    while (!encoder->count && !encoder->no_more) {
        if (encoder->drop_caches)
            namer_forget(encoder->options.namer);
        encoder->drop_caches = false;
        pthread_cond_wait(&encoder->changed, &encoder->lock);
    }
    watchdog_beat(encoder->options.watchdog, WATCHDOG_WINDOWS);
    if (encoder->count) {
        window = take_first(encoder);
        memcpy(encoder->encoding, window->suffix, sizeof(encoder->encoding));
    }
    pthread_mutex_unlock(&encoder->lock);
    return window;
}

static int put_window(struct encoder *encoder, const struct window *window, size_t *ret_bytes,
                      struct error *error)
{
    _cleanup_buffer_ struct buffer body = {0};
    char id[SPOOL_ID_BYTES];
    /* By time, so that the oldest goes first; unique, even if the clock is set back. */
    snprintf(id, sizeof(id), "%016" PRIx64 "-%016" PRIx64 "%s", (uint64_t)window->time_ns,
             encoder->run++, window->suffix);
    encoder->patience_ns = monotonic_ns() + PAUSE_MAX_NS;
    int r = window_encode(window, encoder->options.namer, &body, error);
    if (!r)
        r = spool_put(encoder->options.spool, id, body.data, body.length, error);
    if (!r)
        *ret_bytes = body.length;
    return r;
}

static void *encode(void *argument)
{
    struct encoder *encoder = argument;
    struct window *window;
    pthread_setname_np(pthread_self(), "windows");
    watchdog_join(encoder->options.watchdog, WATCHDOG_WINDOWS);
    pace_init(&encoder->pace, encoder->options.learning_share, monotonic_ns());
    namer_set_pause(encoder->options.namer, pause_for, encoder);
    while ((window = next_window(encoder))) {
        struct error error = {0};
        size_t bytes = 0;
        int r = put_window(encoder, window, &bytes, &error);
        if (r < 0)
            log_warning("Lost a window of %llu samples: %s", (unsigned long long)window->samples,
                        error.text);
        pthread_mutex_lock(&encoder->lock);
        encoder->stats.dropped += r < 0;
        encoder->stats.bytes += bytes;
        encoder->encoding[0] = 0;
        encoder->stats.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        pthread_mutex_unlock(&encoder->lock);
        window_free(window);
    }
    return NULL;
}

static void encoder_free(struct encoder *encoder)
{
    pthread_mutex_destroy(&encoder->lock);
    pthread_cond_destroy(&encoder->changed);
    free(encoder);
}

int encoder_start(const struct encoder_options *options, struct encoder **ret_encoder,
                  struct error *error)
{
    struct encoder *encoder = memory_zalloc(1, sizeof(*encoder));
    encoder->options = *options;
    encoder->run = random_bits();
    pthread_mutex_init(&encoder->lock, NULL);
    pthread_cond_init(&encoder->changed, NULL);
    int r = pthread_create(&encoder->thread, NULL, encode, encoder);
    if (r) {
        encoder_free(encoder);
        return error_set_errno(error, -r, "Failed to start a thread");
    }
    *ret_encoder = encoder;
    return 0;
}

void encoder_stop(struct encoder *encoder)
{
    if (!encoder)
        return;
    pthread_mutex_lock(&encoder->lock);
    encoder->no_more = true;
    pthread_cond_signal(&encoder->changed);
    pthread_mutex_unlock(&encoder->lock);
    pthread_join(encoder->thread, NULL);
    while (encoder->count)
        window_free(take_first(encoder));
    encoder_free(encoder);
}
