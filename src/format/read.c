// SPDX-License-Identifier: Apache-2.0
// Reading files through the table of formats: one, or many with a pipeline of threads. The threads
// inflate and parse; only adding to the profile, in the files' order, is the caller's.

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/format.h"

#define WORKERS_MAX 4

/* Errors of the source itself already name the file. */
static int name_error(const char *name, int code, const struct error *inner, struct error *error)
{
    if (!strncmp(inner->text, name, strlen(name)))
        return error_set(error, code, "%s", inner->text);
    return error_set(error, code, "%s: %s", name, inner->text);
}

/* A file on its way into the profile: opened and recognised, and collected where its format can. */
struct job {
    const char *path;
    struct source source;
    const struct format *format;
    void *collected;
    int result;
    struct error error;
};

static void job_release(struct job *job)
{
    if (job->format && job->format->phases)
        job->format->phases->discard(job->collected);
    source_release(&job->source);
    *job = (struct job){0};
}

static int recognise(struct job *job, const struct read_options *options)
{
    job->format = options ? options->format : NULL;
    int r = 0;
    if (!job->format)
        r = format_detect(&job->source, &job->format, &job->error);
    else if (job->format->text)
        r = source_decode_text(&job->source, &job->error);
    if (r < 0)
        return r;
    if (!format_readable(job->format))
        return error_set(&job->error, -ENOTSUP, "%s: the %s format can be written but not read.",
                         job->source.name, job->format->name);
    return 0;
}

/* Everything that needs no profile. */
static void job_collect(struct job *job, const struct read_options *options,
                        enum profile_detail detail)
{
    job->result = recognise(job, options);
    if (job->result < 0 || !job->format->phases)
        return;
    struct error inner = {0};
    job->collected = job->format->phases->collect(&job->source, detail, &inner);
    if (!job->collected)
        job->result = name_error(job->source.name, inner.code, &inner, &job->error);
}

static int job_add(struct job *job, const struct read_options *options, struct profile *profile,
                   const struct format **ret_format, struct error *error)
{
    if (job->result < 0)
        return error_set(error, job->result, "%s", job->error.text);
    struct error inner = {0};
    int r = job->format->phases ? job->format->phases->resolve(job->collected, profile, &inner)
                                : job->format->read(&job->source, profile, &inner);
    if (r < 0)
        return name_error(job->source.name, r, &inner, error);
    if (job->source.warning[0] && options && options->warn)
        options->warn(options->warn_context, job->source.name, job->source.warning);
    if (options && options->ret_addresses && job->format->addresses)
        *options->ret_addresses = true;
    if (ret_format)
        *ret_format = job->format;
    return 0;
}

static void job_start(struct job *job, const char *path, const struct read_options *options,
                      enum profile_detail detail)
{
    *job = (struct job){.path = path};
    const char *directory = format_foreign_directory(path);
    if (directory) {
        job->result = error_set(&job->error, -EISDIR, "%s is %s.", path, directory);
        return;
    }
    job->result =
        source_open(&job->source, path, options ? options->expansion_limit : 0, &job->error);
    if (job->result >= 0)
        job_collect(job, options, detail);
}

int format_read_file(const char *path, const struct read_options *options, struct profile *profile,
                     const struct format **ret_format, struct error *error)
{
    _cleanup_(job_release) struct job job;
    job_start(&job, path, options, profile->detail);
    return job_add(&job, options, profile, ret_format, error);
}

int format_read_memory(const char *name, const void *data, size_t length,
                       const struct read_options *options, struct profile *profile,
                       const struct format **ret_format, struct error *error)
{
    _cleanup_(job_release) struct job job = {.path = name};
    job.result = source_open_memory(&job.source, name, data, length,
                                    options ? options->expansion_limit : 0, &job.error);
    if (job.result >= 0)
        job_collect(&job, options, profile->detail);
    return job_add(&job, options, profile, ret_format, error);
}

/* A ring of jobs: workers fill file `next`, the caller empties file `taken`. */
struct pipeline {
    const char *const *paths;
    size_t count;
    const struct read_options *options;
    enum profile_detail detail;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *ring; /* each is one thread's at a time, handed over by `done` and `taken` */
    bool *done;       /* of each in the ring; under the lock */
    size_t ring_size;
    size_t next, taken;
    bool stop;
    pthread_t workers[WORKERS_MAX];
    size_t worker_count;
};

static void *work(void *argument)
{
    struct pipeline *pipeline = argument;
    pthread_mutex_lock(&pipeline->lock);
    for (;;) {
        while (!pipeline->stop && pipeline->next < pipeline->count &&
               pipeline->next >= pipeline->taken + pipeline->ring_size)
            pthread_cond_wait(&pipeline->changed, &pipeline->lock);
        if (pipeline->stop || pipeline->next == pipeline->count)
            break;
        size_t index = pipeline->next++;
        struct job *job = &pipeline->ring[index % pipeline->ring_size];
        pthread_mutex_unlock(&pipeline->lock);
        job_start(job, pipeline->paths[index], pipeline->options, pipeline->detail);
        pthread_mutex_lock(&pipeline->lock);
        pipeline->done[index % pipeline->ring_size] = true;
        pthread_cond_broadcast(&pipeline->changed);
    }
    pthread_mutex_unlock(&pipeline->lock);
    return NULL;
}

static struct job *wait_for(struct pipeline *pipeline, size_t index)
{
    size_t at = index % pipeline->ring_size;
    pthread_mutex_lock(&pipeline->lock);
    while (!pipeline->done[at])
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    pthread_mutex_unlock(&pipeline->lock);
    return &pipeline->ring[at];
}

static void give_back(struct pipeline *pipeline, struct job *job)
{
    job_release(job);
    pthread_mutex_lock(&pipeline->lock);
    pipeline->done[job - pipeline->ring] = false;
    pipeline->taken++;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
}

static void pipeline_start(struct pipeline *pipeline)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = MIN((size_t)MAX(cores - 1, 1), (size_t)WORKERS_MAX);
    pipeline->ring_size = wanted + 1;
    pipeline->ring = memory_zalloc(pipeline->ring_size, sizeof(*pipeline->ring));
    pipeline->done = memory_zalloc(pipeline->ring_size, sizeof(*pipeline->done));
    pthread_mutex_init(&pipeline->lock, NULL);
    pthread_cond_init(&pipeline->changed, NULL);
    while (pipeline->worker_count < wanted &&
           !pthread_create(&pipeline->workers[pipeline->worker_count], NULL, work, pipeline))
        pipeline->worker_count++;
}

static void pipeline_stop(struct pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    pipeline->stop = true;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
    for (size_t i = 0; i < pipeline->worker_count; i++)
        pthread_join(pipeline->workers[i], NULL);
    for (size_t i = 0; i < pipeline->ring_size; i++)
        job_release(&pipeline->ring[i]);
    free(pipeline->ring);
    free(pipeline->done);
    pthread_cond_destroy(&pipeline->changed);
    pthread_mutex_destroy(&pipeline->lock);
}

int format_read_files(const char *const *paths, size_t count, const struct read_options *options,
                      struct profile *profile, const struct format **ret_format,
                      struct error *error)
{
    struct pipeline pipeline = {
        .paths = paths, .count = count, .options = options, .detail = profile->detail};
    if (count > 1)
        pipeline_start(&pipeline);
    int r = 0;
    for (size_t i = 0; !r && i < count; i++) {
        if (options && options->progress)
            options->progress(options->progress_context, paths[i], i, count);
        if (pipeline.worker_count) {
            struct job *job = wait_for(&pipeline, i);
            r = job_add(job, options, profile, ret_format, error);
            give_back(&pipeline, job);
        } else {
            r = format_read_file(paths[i], options, profile, ret_format, error);
        }
    }
    if (count > 1)
        pipeline_stop(&pipeline);
    return r;
}
