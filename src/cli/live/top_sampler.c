// SPDX-License-Identifier: Apache-2.0
// Samples for `assay top`, named and handed over a refresh at a time: see top_sampler.h.

#include "cli/live/top_sampler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "capture/bpf/kernel_names.h"
#include "symbol/naming/naming.h"

#define READ_EVERY_MS 100 /* also how soon the end is noticed */
#define RENEW_NS (60 * 1000000000ll)
#define TABLES_BYTES_MAX (64u << 20) /* of symbols, when it is worth it */
#define QUEUE_MAX 4                  /* slices that wait for a screen that doesn't take them */

struct top_sampler {
    struct capture *capture;
    struct symbolizer *symbolizer;
    struct kernel_names *kernel; /* NULL: the symbolizer reads the kernel's list */
    int64_t renewed_ns;          /* when the symbolizer began */
    struct jit_names *jit;
    struct profile addresses; /* what the capture adds to */
    const struct profile_group_keys *group;
    int64_t refresh_ns;
    int64_t began_ns;       /* of the slice that is being sampled */
    uint64_t samples, lost; /* until then */

    struct capture_loss losses[CAPTURE_LOSSES_MAX];
    size_t loss_count;

    pthread_t thread;
    bool started;
    atomic_bool stop;
    int ready;            /* an eventfd */
    pthread_mutex_t lock; /* over what follows */
    struct top_slice *queue[QUEUE_MAX];
    size_t count;
    int state;
    struct error error;
};

/* Labels distinguish processes; all other details are left out. */
#define ADDRESS_DETAIL (PROFILE_LABELS | PROFILE_ADDRESSES)
#define NAMED_DETAIL PROFILE_LABELS

/* Symbol tables are enough for names of functions, and are there at once. */
static void renew_symbolizer(struct top_sampler *sampler)
{
    symbolizer_free(sampler->symbolizer);
    sampler->symbolizer = symbolizer_new();
    sampler->renewed_ns = monotonic_ns();
    symbolizer_use_tables_only(sampler->symbolizer);
    symbolizer_set_jit(sampler->symbolizer, sampler->jit);
    if (sampler->kernel)
        symbolizer_ask_kernel(sampler->symbolizer, kernel_names_find, sampler->kernel);
}

int top_sampler_new(const struct capture_options *options, int64_t refresh_ns,
                    const struct profile_group_keys *group, struct top_sampler **ret_sampler,
                    struct error *error)
{
    struct top_sampler *sampler = memory_zalloc(1, sizeof(*sampler));
    struct capture_options rooted = *options;
    rooted.root_by_process = true;
    sampler->refresh_ns = refresh_ns;
    sampler->group = group;
    sampler->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&sampler->lock, NULL);
    int r = sampler->ready < 0 ? error_set_errno(error, -errno, "Failed to create an eventfd")
                               : capture_new(&rooted, &sampler->capture, error);
    if (r < 0) {
        top_sampler_free(sampler);
        return r;
    }
    sampler->jit = jit_names_new();
    sampler->kernel = kernel_names_new();
    renew_symbolizer(sampler);
    sampler->began_ns = monotonic_ns();
    *ret_sampler = sampler;
    return 0;
}

void top_sampler_free(struct top_sampler *sampler)
{
    if (!sampler)
        return;
    atomic_store(&sampler->stop, true);
    if (sampler->started)
        pthread_join(sampler->thread, NULL);
    capture_free(sampler->capture);
    profile_release(&sampler->addresses);
    symbolizer_free(sampler->symbolizer);
    kernel_names_free(sampler->kernel);
    jit_names_free(sampler->jit);
    for (size_t i = 0; i < sampler->count; i++)
        top_slice_free(sampler->queue[i]);
    if (sampler->ready >= 0)
        close(sampler->ready);
    pthread_mutex_destroy(&sampler->lock);
    free(sampler);
}

/* Samples for a refresh. Returns 0, 1 at the end of all that is looked at, or a negative code. */
static int sample(struct top_sampler *sampler, struct error *error)
{
    struct profile fresh;
    int state = 0;
    profile_init(&fresh, ADDRESS_DETAIL);
    profile_release(&sampler->addresses);
    sampler->addresses = fresh;
    capture_into(sampler->capture, &sampler->addresses);
    int64_t until_ns = sampler->began_ns + sampler->refresh_ns;
    while (!state && !atomic_load(&sampler->stop)) {
        int64_t left_ms = (until_ns - monotonic_ns() + 999999) / 1000000;
        if (left_ms <= 0)
            break;
        state = capture_read(sampler->capture, (int)MIN(left_ms, READ_EVERY_MS), false, error);
    }
    int r = state < 0 ? state : capture_read(sampler->capture, 0, true, error);
    return r ? r : state;
}

/* The kind of loss that grew most since the last time. */
static void note_losses(struct top_sampler *sampler, struct top_slice *slice)
{
    struct capture_loss losses[CAPTURE_LOSSES_MAX];
    size_t count = capture_losses(sampler->capture, losses);
    for (size_t i = 0; i < count; i++) {
        uint64_t growth = losses[i].count;
        for (size_t j = 0; j < sampler->loss_count; j++)
            if (!strcmp(sampler->losses[j].what, losses[i].what))
                growth -= MIN(growth, sampler->losses[j].count);
        if (growth <= slice->loss_count)
            continue;
        slice->loss_count = growth;
        snprintf(slice->loss, sizeof(slice->loss), "%s", losses[i].what);
    }
    memcpy(sampler->losses, losses, sizeof(losses[0]) * count);
    sampler->loss_count = count;
}

static void count_slice(struct top_sampler *sampler, struct top_slice *slice)
{
    struct capture_stats stats = capture_stats(sampler->capture);
    int64_t now_ns = monotonic_ns();
    slice->duration_ns = now_ns - sampler->began_ns;
    slice->samples = stats.samples - sampler->samples;
    slice->lost = stats.lost - sampler->lost;
    sampler->began_ns = now_ns;
    sampler->samples = stats.samples;
    sampler->lost = stats.lost;
    note_losses(sampler, slice);
}

/* Over hours many programs come and go, and a symbolizer keeps them all: then it begins anew. */
static void keep_within_limits(struct top_sampler *sampler)
{
    struct symbolizer_stats stats = symbolizer_stats(sampler->symbolizer);
    if ((stats.refused || stats.bytes > TABLES_BYTES_MAX) &&
        monotonic_ns() - sampler->renewed_ns > RENEW_NS)
        renew_symbolizer(sampler);
}

int top_sampler_take(struct top_sampler *sampler, struct top_slice **ret_slice, struct error *error)
{
    int state = sample(sampler, error);
    if (state < 0)
        return state;
    struct top_slice *slice = top_slice_new(NAMED_DETAIL);
    count_slice(sampler, slice);
    jit_names_load_mappings(sampler->jit, &sampler->addresses, 0);
    int r = symbol_name_profile(sampler->symbolizer, &sampler->addresses, &slice->profile,
                                capture_locate, sampler->capture, error);
    if (r < 0) {
        top_slice_free(slice);
        return r;
    }
    profile_group(&slice->profile, sampler->group, PROFILE_GROUP_UNDER_ROOT);
    keep_within_limits(sampler);
    *ret_slice = slice;
    return state;
}

static void tell(struct top_sampler *sampler)
{
    uint64_t one = 1;
    file_write_all(sampler->ready, &one, sizeof(one));
}

/* A screen that is stuck gets the newest slices; what it missed counts as lost. */
static void enqueue(struct top_sampler *sampler, struct top_slice *slice)
{
    if (sampler->count == QUEUE_MAX) {
        struct top_slice *oldest = sampler->queue[0];
        sampler->queue[1]->lost += oldest->samples + oldest->lost;
        sampler->queue[1]->duration_ns += oldest->duration_ns;
        top_slice_free(oldest);
        memmove(sampler->queue, sampler->queue + 1, (QUEUE_MAX - 1) * sizeof(slice));
        sampler->count--;
    }
    sampler->queue[sampler->count++] = slice;
}

static void *run(void *argument)
{
    struct top_sampler *sampler = argument;
    int state = 0;
    while (!state && !atomic_load(&sampler->stop)) {
        struct top_slice *slice = NULL;
        struct error error = {0};
        state = top_sampler_take(sampler, &slice, &error);
        pthread_mutex_lock(&sampler->lock);
        if (slice)
            enqueue(sampler, slice);
        sampler->state = state;
        sampler->error = error;
        pthread_mutex_unlock(&sampler->lock);
        tell(sampler);
    }
    return NULL;
}

int top_sampler_start(struct top_sampler *sampler, struct error *error)
{
    int r = pthread_create(&sampler->thread, NULL, run, sampler);
    if (r)
        return error_set_errno(error, -r, "Failed to start a thread");
    sampler->started = true;
    return 0;
}

int top_sampler_fd(const struct top_sampler *sampler)
{
    return sampler->ready;
}

struct top_slice *top_sampler_next(struct top_sampler *sampler, int *ret_state, struct error *error)
{
    struct top_slice *slice = NULL;
    uint64_t told;
    pthread_mutex_lock(&sampler->lock);
    if (sampler->count) {
        slice = sampler->queue[0];
        memmove(sampler->queue, sampler->queue + 1, --sampler->count * sizeof(slice));
    }
    *ret_state = sampler->count ? 0 : sampler->state;
    if (*ret_state < 0)
        *error = sampler->error;
    /* Readable for as long as something waits. */
    if (!sampler->count)
        while (read(sampler->ready, &told, sizeof(told)) < 0 && errno == EINTR)
            ;
    pthread_mutex_unlock(&sampler->lock);
    return slice;
}

const char *top_sampler_backend(const struct top_sampler *sampler)
{
    return capture_backend_name(capture_backend(sampler->capture));
}

const char *top_sampler_shortcoming(const struct top_sampler *sampler)
{
    return capture_shortcoming(sampler->capture);
}
