// SPDX-License-Identifier: Apache-2.0
// Progress on a terminal: a thread that wakes twice a second and looks at a counter. See
// progress.h.

#include "cli/progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/memory.h"
#include "io/source.h"
#include "profile/naming.h"

#define FIRST_MS 2000
#define STEP_MS 500

struct progress {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    bool shown;
    const char *path;
    size_t index, count;
    char text[80]; /* instead of all that */
};

static void *watch(void *argument)
{
    struct progress *progress = argument;
    int64_t until_ns = monotonic_ns() + FIRST_MS * 1000000ll;
    pthread_mutex_lock(&progress->lock);
    while (!progress->stop) {
        while (!progress->stop && !condition_wait_until(&progress->wake, &progress->lock, until_ns))
            ;
        if (progress->stop)
            break;
        progress->shown = true;
        until_ns += STEP_MS * 1000000ll;
        if (*progress->text) {
            fprintf(stderr, "\r%s\033[K", progress->text);
            fflush(stderr);
            continue;
        }
        fprintf(stderr, "\rreading %.40s", path_base(progress->path ? progress->path : ""));
        if (progress->count > 1)
            fprintf(stderr, " (%zu of %zu)", progress->index + 1, progress->count);
        fprintf(stderr, ", %llu MiB\033[K", (unsigned long long)source_bytes_read() >> 20);
        fflush(stderr);
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

struct progress *progress_start(void)
{
    if (!isatty(STDERR_FILENO))
        return NULL;
    struct progress *progress = memory_zalloc(1, sizeof(*progress));
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->wake, NULL);
    if (pthread_create(&progress->thread, NULL, watch, progress)) {
        free(progress);
        return NULL;
    }
    return progress;
}

void progress_say(struct progress *progress, const char *text)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    snprintf(progress->text, sizeof(progress->text), "%s", text);
    pthread_mutex_unlock(&progress->lock);
}

void progress_file(struct progress *progress, const char *path, size_t index, size_t count)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->path = path;
    progress->index = index;
    progress->count = count;
    pthread_mutex_unlock(&progress->lock);
}

void progress_stop(struct progress **pointer)
{
    struct progress *progress = TAKE_PTR(*pointer);
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->stop = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    if (progress->shown)
        fprintf(stderr, "\r\033[K");
    pthread_cond_destroy(&progress->wake);
    pthread_mutex_destroy(&progress->lock);
    free(progress);
}
