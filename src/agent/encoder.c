// SPDX-License-Identifier: Apache-2.0
// The thread that encodes windows as requests. Windows wait for it in a short queue, and requests
// in the spool. Its one-time work, such as reading symbol tables, is paced.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"

/* No window waits longer for it than this. */
#define PAUSE_MAX_NS 5000000000ll

/* ---- the queue ---- */

void agent_hand_over(struct agent *agent, struct window *window)
{
    struct window *lost = NULL;
    pthread_mutex_lock(&agent->lock);
    if (!agent->queue_count) /* from now on it has something to do */
        watchdog_beat(agent->watchdog, WATCHDOG_WINDOWS);
    if (agent->queue_count == AGENT_QUEUE_MAX) {
        lost = agent->queue[0];
        memmove(agent->queue, agent->queue + 1, sizeof(lost) * --agent->queue_count);
        agent->stats.windows_dropped++;
    }
    agent->queue[agent->queue_count++] = window;
    agent->stats.windows++;
    pthread_cond_signal(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
    window_free(lost);
}

bool agent_has_unsent(struct agent *agent, const char *suffix)
{
    pthread_mutex_lock(&agent->lock);
    bool found = !strcmp(agent->encoding, suffix);
    for (size_t i = 0; i < agent->queue_count; i++)
        found = found || !strcmp(agent->queue[i]->suffix, suffix);
    pthread_mutex_unlock(&agent->lock);
    struct spool_stats waiting = spool_stats(agent->spool);
    return found || waiting.batches > waiting.deferred;
}

/* ---- its pace ---- */

/* Before a binary is opened: what the last ones cost is paid for first, unless windows wait. False
 * when it isn't by then. */
static bool pause_for(void *context)
{
    struct agent *agent = context;
    bool paid;
    pthread_mutex_lock(&agent->lock);
    for (;;) {
        int64_t now_ns = monotonic_ns();
        int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        pace_spend(&agent->pace, cpu_ns - agent->encoder_cpu_ns);
        agent->encoder_cpu_ns = cpu_ns;
        int64_t owed_ns = pace_owed_ns(&agent->pace, now_ns);
        paid = owed_ns <= 0 || agent->no_more;
        if (paid || now_ns >= agent->patience_ns || agent->queue_count)
            break;
        watchdog_beat(agent->watchdog, WATCHDOG_WINDOWS);
        condition_wait_until(&agent->changed, &agent->lock,
                             MIN(now_ns + owed_ns, agent->patience_ns));
    }
    pthread_mutex_unlock(&agent->lock);
    return paid;
}

/* ---- requests ---- */

static struct window *next_window(struct agent *agent)
{
    struct window *window = NULL;
    pthread_mutex_lock(&agent->lock);
    watchdog_idle(agent->watchdog, WATCHDOG_WINDOWS);
    while (!agent->queue_count && !agent->no_more) {
        if (agent->drop_caches) /* this thread's alone */
            namer_forget(agent->namer);
        agent->drop_caches = false;
        pthread_cond_wait(&agent->changed, &agent->lock);
    }
    watchdog_beat(agent->watchdog, WATCHDOG_WINDOWS);
    if (agent->queue_count) {
        window = agent->queue[0];
        memmove(agent->queue, agent->queue + 1, sizeof(window) * --agent->queue_count);
        memcpy(agent->encoding, window->suffix, sizeof(agent->encoding));
    }
    pthread_mutex_unlock(&agent->lock);
    return window;
}

static void *encode(void *argument)
{
    struct agent *agent = argument;
    struct window *window;
    pthread_setname_np(pthread_self(), "windows");
    watchdog_join(agent->watchdog, WATCHDOG_WINDOWS);
    pace_init(&agent->pace, agent_learning_share(agent->settings), monotonic_ns());
    namer_set_pause(agent->namer, pause_for, agent);
    while ((window = next_window(agent))) {
        _cleanup_buffer_ struct buffer body = {0};
        struct error error = {0};
        char id[SPOOL_ID_BYTES];
        /* By time, so that the oldest goes first; unique, even if the clock is set back. */
        snprintf(id, sizeof(id), "%016" PRIx64 "-%016" PRIx64 "%s", (uint64_t)window->time_ns,
                 agent->run++, window->suffix);
        agent->patience_ns = monotonic_ns() + PAUSE_MAX_NS;
        int r = window_encode(window, agent->namer, &body, &error);
        if (!r)
            r = spool_put(agent->spool, id, body.data, body.length, &error);
        if (r < 0)
            log_warning("Lost a window of %llu samples: %s", (unsigned long long)window->samples,
                        error.text);
        pthread_mutex_lock(&agent->lock);
        agent->stats.windows_dropped += r < 0;
        agent->stats.encoded_bytes += r < 0 ? 0 : body.length;
        agent->encoding[0] = 0;
        agent->stats.encode_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        pthread_mutex_unlock(&agent->lock);
        window_free(window);
    }
    return NULL;
}

int agent_encoder_start(struct agent *agent, struct error *error)
{
    int r = pthread_create(&agent->encoder, NULL, encode, agent);
    if (r)
        return error_set_errno(error, -r, "Failed to start a thread");
    agent->encoder_started = true;
    return 0;
}

void agent_encoder_stop(struct agent *agent)
{
    if (!agent->encoder_started)
        return;
    pthread_mutex_lock(&agent->lock);
    agent->no_more = true;
    pthread_cond_signal(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
    pthread_join(agent->encoder, NULL);
}
