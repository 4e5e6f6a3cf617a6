// SPDX-License-Identifier: Apache-2.0
// Whether all threads get on: see watchdog.h.

#include "agent/guard/watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"

#define LOOK_NS 1000000000ll
#define IDLE 0u

struct watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;
    int64_t limit_ns;
    _Atomic uint64_t beats[WATCHDOG_THREADS]; /* IDLE, or another number with each sign of life */
    uint64_t seen[WATCHDOG_THREADS];
    int64_t silent_ns[WATCHDOG_THREADS];
    _Atomic int schedstat[WATCHDOG_THREADS]; /* the thread's file; -1: none */
    int64_t waited_ns[WATCHDOG_THREADS];     /* for a CPU, by that file when last read */
    int notify;                              /* systemd's socket; -1: not used */
    int64_t notify_ns;                       /* how often it wants to hear; 0: not at all */
    int64_t told_ns;                         /* since it last did */
};

/* A window is one piece of work, which takes long where there is little CPU time to be had. */
static const struct {
    const char *name;
    unsigned times; /* the limit */
} threads[WATCHDOG_THREADS] = {
    [WATCHDOG_CAPTURE] = {"takes samples", 1},
    [WATCHDOG_WINDOWS] = {"builds requests", 5},
};

/* ---- systemd ---- */

static void tell(const struct watchdog *watchdog, const char *text)
{
    if (watchdog->notify >= 0)
        (void)!send(watchdog->notify, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void open_notify(struct watchdog *watchdog)
{
    const char *path = getenv("NOTIFY_SOCKET"), *interval = getenv("WATCHDOG_USEC");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    watchdog->notify = -1;
    if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(address.sun_path))
        return;
    size_t length = strlen(path);
    memcpy(address.sun_path, path, length);
    if (*path == '@') /* a name without a file */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address,
                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0) {
        close(fd);
        fd = -1;
    }
    watchdog->notify = fd;
    if (interval)
        watchdog->notify_ns = (int64_t)MIN(strtoull(interval, NULL, 10), 1ull << 40) * 1000 / 2;
}

/* ---- watching ---- */

/* How long it has waited for a CPU since the last call. A wait counts when it ends. */
static int64_t wait_for_cpu_ns(struct watchdog *watchdog, int who)
{
    char text[64];
    long long waited_ns;
    int fd = atomic_load(&watchdog->schedstat[who]);
    ssize_t length = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    if (sscanf(text, "%*d %lld", &waited_ns) != 1)
        return 0;
    int64_t more_ns = waited_ns - watchdog->waited_ns[who];
    watchdog->waited_ns[who] = waited_ns;
    return more_ns;
}

static void look(struct watchdog *watchdog, int64_t passed_ns)
{
    for (int i = 0; i < WATCHDOG_THREADS; i++) {
        uint64_t beats = atomic_load(&watchdog->beats[i]);
        bool alive = beats == IDLE || beats != watchdog->seen[i];
        watchdog->seen[i] = beats;
        int64_t silent_ns = watchdog->silent_ns[i] + passed_ns - wait_for_cpu_ns(watchdog, i);
        watchdog->silent_ns[i] = alive ? 0 : MAX(silent_ns, 0);
        int64_t limit_ns = watchdog->limit_ns * threads[i].times;
        if (limit_ns && watchdog->silent_ns[i] >= limit_ns) {
            log_error("The thread that %s made no progress for %lld s: aborting the agent, to be "
                      "restarted.",
                      threads[i].name, (long long)(limit_ns / 1000000000));
            abort();
        }
    }
    watchdog->told_ns += passed_ns;
    if (watchdog->notify_ns && watchdog->told_ns >= watchdog->notify_ns) {
        tell(watchdog, "WATCHDOG=1");
        watchdog->told_ns = 0;
    }
}

static void *watch(void *argument)
{
    struct watchdog *watchdog = argument;
    int64_t step_ns = LOOK_NS;
    pthread_setname_np(pthread_self(), "watchdog");
    if (watchdog->notify_ns)
        step_ns = MAX(MIN(step_ns, watchdog->notify_ns), LOOK_NS / 100);
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->stop) {
        if (condition_wait_for(&watchdog->changed, &watchdog->lock, step_ns) == ETIMEDOUT)
            look(watchdog, step_ns);
    }
    pthread_mutex_unlock(&watchdog->lock);
    return NULL;
}

int watchdog_start(int64_t limit_ns, struct watchdog **ret_watchdog, struct error *error)
{
    struct watchdog *watchdog = memory_zalloc(1, sizeof(*watchdog));
    watchdog->limit_ns = limit_ns;
    for (int i = 0; i < WATCHDOG_THREADS; i++)
        watchdog->schedstat[i] = -1;
    open_notify(watchdog);
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_cond_init(&watchdog->changed, NULL);
    int r = pthread_create(&watchdog->thread, NULL, watch, watchdog);
    if (r) {
        if (watchdog->notify >= 0)
            close(watchdog->notify);
        free(watchdog);
        return error_set_errno(error, -r, "Failed to start a thread");
    }
    *ret_watchdog = watchdog;
    return 0;
}

void watchdog_stop(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    tell(watchdog, "STOPPING=1");
    pthread_mutex_lock(&watchdog->lock);
    watchdog->stop = true;
    pthread_cond_signal(&watchdog->changed);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
    pthread_mutex_destroy(&watchdog->lock);
    pthread_cond_destroy(&watchdog->changed);
    if (watchdog->notify >= 0)
        close(watchdog->notify);
    for (int i = 0; i < WATCHDOG_THREADS; i++)
        if (watchdog->schedstat[i] >= 0)
            close(watchdog->schedstat[i]);
    free(watchdog);
}

void watchdog_join(struct watchdog *watchdog, enum watchdog_who who)
{
    if (watchdog && atomic_load(&watchdog->schedstat[who]) < 0)
        atomic_store(&watchdog->schedstat[who],
                     open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
}

void watchdog_ready(struct watchdog *watchdog)
{
    if (watchdog)
        tell(watchdog, "READY=1");
}

void watchdog_beat(struct watchdog *watchdog, enum watchdog_who who)
{
    if (watchdog && atomic_fetch_add(&watchdog->beats[who], 1) + 1 == IDLE)
        atomic_fetch_add(&watchdog->beats[who], 1);
}

void watchdog_idle(struct watchdog *watchdog, enum watchdog_who who)
{
    if (watchdog)
        atomic_store(&watchdog->beats[who], IDLE);
}
