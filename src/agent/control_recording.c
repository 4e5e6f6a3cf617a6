// SPDX-License-Identifier: Apache-2.0
// Recordings: a second capture, of the processes of one service, for a limited time. Its windows go
// the way of all others, with two more labels.

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/control_parts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define STACKS_BYTES (8u << 20)
#define READ_MS 100
#define UPLOAD_LOOK_MS 200
#define UPLOAD_WAIT_NS (600 * 1000000000ll)
#define LABELS_MAX 256
#define LEARNING_SHARE 1.0 /* of one CPU, for unwind rows of large files */
#define FIND_NS (5 * 1000000000ll)
#define FIND_LOOK_MS 100

static const char *const names[] = {
    [JOB_NONE] = "",     [JOB_RUNNING] = "running", [JOB_UPLOADING] = "uploading",
    [JOB_DONE] = "done", [JOB_REFUSED] = "refused", [JOB_FAILED] = "failed"};

const char *job_state_name(enum job_state state)
{
    return names[state];
}

static bool is_over(enum job_state state)
{
    return state >= JOB_DONE;
}

/* The server hears of it at once. */
static void set_state(struct recording_job *job, enum job_state state, uint64_t samples,
                      const char *reason)
{
    struct agent_control *control = job->control;
    pthread_mutex_lock(&control->lock);
    job->state = state;
    job->samples = samples;
    snprintf(job->reason, sizeof(job->reason), "%s", reason);
    control->urgent = true;
    pthread_cond_broadcast(&control->wake);
    pthread_mutex_unlock(&control->lock);
    if (state == JOB_REFUSED || state == JOB_FAILED)
        log_warning("The recording %s is %s: %s", job->order.id, names[state], reason);
    else
        log_info("The recording %s of %s is %s.%s%s", job->order.id, job->order.service,
                 names[state], *reason ? " " : "", reason);
}

/* ---- what is captured ---- */

static bool is_of_service(struct recording_job *job, uint32_t pid)
{
    struct process_facts facts;
    _cleanup_labels_ struct labels labels = {0};
    process_facts_read(job->targets.proc, pid, "", NULL, &job->targets.settings->variables,
                       job->targets.user_wanted, &facts);
    bool wanted =
        !facts.gone && !facts.kernel && targets_describe(&job->targets, &facts, "", &labels);
    const char *service = wanted ? labels_get(&labels, LABEL_SERVICE_NAME) : NULL;
    process_facts_release(&facts);
    return service && !strcmp(service, job->order.service);
}

static bool is_running(const struct recording_job *job, uint32_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/%" PRIu32 "/exe", job->targets.proc, pid);
    return access(path, F_OK) == 0;
}

/* Processes that the continuous profile has under this service. It knows more than /proc says: what
 * they publish about themselves, their builds and runtimes. */
static size_t find_sampled(struct recording_job *job, pid_t *pids)
{
    struct agent *agent = job->control->agent;
    uint64_t hash = target_service_hash(job->order.service);
    size_t count = 0;
    pthread_mutex_lock(&agent->lock);
    for (size_t i = 0; i < agent->service_count && count < RECORDING_PIDS_MAX; i++)
        if (agent->services[i].hash == hash && is_running(job, agent->services[i].pid))
            pids[count++] = (pid_t)agent->services[i].pid;
    pthread_mutex_unlock(&agent->lock);
    return count;
}

static bool has_pid(const pid_t *pids, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

static int find_once(struct recording_job *job, pid_t *pids, size_t *ret_count, struct error *error)
{
    size_t sampled = find_sampled(job, pids), count = sampled;
    DIR *proc = opendir(job->targets.proc);
    struct dirent *entry;
    if (!proc)
        return error_set_errno(error, errno, "Failed to list the processes");
    while (count < RECORDING_PIDS_MAX && (entry = readdir(proc))) {
        uint64_t pid;
        if (text_to_u64(entry->d_name, strlen(entry->d_name), &pid) && pid < INT32_MAX &&
            !has_pid(pids, sampled, (pid_t)pid) && is_of_service(job, (uint32_t)pid))
            pids[count++] = (pid_t)pid;
    }
    closedir(proc);
    *ret_count = count;
    return 0;
}

static bool is_to_end(struct recording_job *job)
{
    struct agent *agent = job->control->agent;
    return atomic_load(&job->stop) || atomic_load(&agent->off) || atomic_load(&agent->stopping);
}

int recording_find_pids(struct recording_job *job, pid_t *pids, size_t *ret_count,
                        struct error *error)
{
    int64_t until_ns = monotonic_ns() + FIND_NS;
    size_t count = 0;
    int r;
    while (!(r = find_once(job, pids, &count, error)) && !count && monotonic_ns() < until_ns &&
           !is_to_end(job))
        usleep(FIND_LOOK_MS * 1000);
    if (!r && !count)
        r = error_set(error, -ESRCH, "No process of the service %.100s is running here.",
                      job->order.service);
    if (!r)
        *ret_count = count;
    return r;
}

/* As the continuous profile labels it; what its processes start may be another service. */
static uint32_t label(void *context, const struct capture_process *process, struct profile *profile)
{
    struct recording_job *job = context;
    struct profile_label list[LABELS_MAX];
    uint32_t set = targets_label(&job->targets, process, profile);
    size_t count;
    bool ours = false;
    if (set == CAPTURE_UNWANTED)
        return set;
    const struct profile_label *labels = profile_labels(profile, set, &count);
    count = MIN(count, (size_t)LABELS_MAX - 2);
    memcpy(list, labels, count * sizeof(*list));
    for (size_t i = 0; i < count; i++)
        ours = ours || (!strcmp(profile_text(profile, list[i].key), LABEL_SERVICE_NAME) &&
                        !strcmp(profile_text(profile, list[i].text), job->order.service));
    if (!ours)
        return CAPTURE_UNWANTED;
    list[count++] = (struct profile_label){.key = profile_cstring(profile, "recording"),
                                           .text = profile_cstring(profile, job->order.id)};
    list[count++] = (struct profile_label){.key = profile_cstring(profile, "recording_name"),
                                           .text = profile_cstring(profile, job->order.name)};
    return profile_label_set(profile, list, count);
}

static int open_capture(struct recording_job *job, struct capture **ret_capture,
                        struct error *error)
{
    const struct agent_settings *settings = job->control->agent->settings;
    _cleanup_free_ pid_t *pids = memory_zalloc(RECORDING_PIDS_MAX, sizeof(*pids));
    size_t count;
    int r = recording_find_pids(job, pids, &count, error);
    if (r < 0)
        return r;
    struct capture_options options = {.pids = pids,
                                      .pid_count = count,
                                      .frequency_hz = (unsigned)job->order.rate_hz,
                                      .kernel = settings->kernel_frames,
                                      .user = true,
                                      .unwind_pool_bytes = settings->unwind_pool_bytes,
                                      .interpreter_frames = settings->interpreter_frames,
                                      .stacks_bytes = STACKS_BYTES,
                                      .learning_share = LEARNING_SHARE,
                                      .label = label,
                                      .label_context = job,
                                      .thread_labels = true};
    return capture_new(&options, ret_capture, error);
}

/* ---- a recording ---- */

/* At most ten seconds, as windows are. Returns 1 when all has ended. */
static int capture_window(struct recording_job *job, struct capture *capture, int64_t end_ns,
                          uint64_t *samples, struct error *error)
{
    struct agent *agent = job->control->agent;
    struct window *window = window_new(clock_ns(CLOCK_REALTIME));
    window->profile.detail |= PROFILE_TIMES;
    int64_t began_ns = monotonic_ns();
    int64_t until_ns = MIN(end_ns, began_ns + AGENT_WINDOW_NS);
    int r = 0;
    snprintf(window->suffix, sizeof(window->suffix), "-%s", job->order.id);
    capture_into(capture, &window->profile);
    while (!r && monotonic_ns() < until_ns && !is_to_end(job)) {
        int64_t left_ms = (until_ns - monotonic_ns()) / 1000000 + 1;
        r = capture_read(capture, (int)MAX(MIN(left_ms, READ_MS), 1), false, error);
    }
    if (r >= 0)
        r = MAX(capture_read(capture, 0, true, error), r);
    capture_into(capture, NULL);
    if (r < 0) {
        window_free(window);
        return r;
    }
    struct capture_stats stats = capture_stats(capture);
    window->samples = stats.samples - *samples;
    *samples = stats.samples;
    window_note_losses(window, capture, job->losses, &job->loss_count);
    if (stats.bpf_ns > job->bpf_ns) {
        atomic_fetch_add(&agent->recorded_bpf_ns, stats.bpf_ns - job->bpf_ns);
        job->bpf_ns = stats.bpf_ns;
    }
    window_close(window, capture, monotonic_ns() - began_ns,
                 agent->settings->symbolize == SYMBOLIZE_HOST);
    encoder_take(agent->encoder, window);
    return r;
}

/* Whether windows of that suffix are still on their way. */
static bool has_unsent(struct agent *agent, const char *suffix)
{
    struct spool_stats waiting;
    if (encoder_has(agent->encoder, suffix))
        return true;
    waiting = spool_stats(agent->spool);
    return waiting.batches > waiting.deferred;
}

static void await_upload(struct recording_job *job, uint64_t samples, const char *reason)
{
    struct agent *agent = job->control->agent;
    char suffix[sizeof(((struct window *)0)->suffix)];
    int64_t until_ns = monotonic_ns() + UPLOAD_WAIT_NS;
    snprintf(suffix, sizeof(suffix), "-%s", job->order.id);
    while (has_unsent(agent, suffix) && !atomic_load(&agent->stopping)) {
        if (monotonic_ns() > until_ns) {
            set_state(job, JOB_FAILED, samples,
                      "The server rejects the recorded data; it stays in the spool.");
            return;
        }
        usleep(UPLOAD_LOOK_MS * 1000);
    }
    if (!atomic_load(&agent->stopping))
        set_state(job, JOB_DONE, samples, reason);
}

static void *record(void *argument)
{
    struct recording_job *job = argument;
    struct agent *agent = job->control->agent;
    struct capture *capture;
    struct error error = {0};
    pthread_setname_np(pthread_self(), "recording");
    char reason[128] = "";
    uint64_t samples = 0;
    pthread_setname_np(pthread_self(), "recording");
    targets_init(&job->targets, agent->settings);
    job->targets.pods = agent->targets.pods;
    int r = open_capture(job, &capture, &error);
    if (r < 0) {
        set_state(job, JOB_REFUSED, 0, error.text);
        targets_release(&job->targets);
        return NULL;
    }
    int64_t began_ns = monotonic_ns();
    int64_t end_ns = began_ns + (int64_t)job->order.seconds * 1000000000;
    set_state(job, JOB_RUNNING, 0, "");
    while (!r && monotonic_ns() < end_ns && !is_to_end(job))
        r = capture_window(job, capture, end_ns, &samples, &error);
    double seconds = (double)(monotonic_ns() - began_ns) / 1e9;
    capture_free(capture);
    targets_release(&job->targets);
    if (r == 1)
        snprintf(reason, sizeof(reason), "Its processes ended after %.1f s.", seconds);
    else if (atomic_load(&agent->off))
        snprintf(reason, sizeof(reason), "Capture was turned off after %.1f s.", seconds);
    else if (atomic_load(&job->stop))
        snprintf(reason, sizeof(reason), "Stopped after %.1f s.", seconds);
    if (r < 0) {
        set_state(job, JOB_FAILED, samples, error.text);
        return NULL;
    }
    set_state(job, JOB_UPLOADING, samples, reason);
    await_upload(job, samples, reason);
    return NULL;
}

/* ---- jobs ---- */

static void free_job(struct recording_job *job)
{
    if (job->has_thread)
        pthread_join(job->thread, NULL);
    *job = (struct recording_job){0};
}

static size_t running_jobs(struct agent_control *control)
{
    size_t count = 0;
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++)
        count += *control->jobs[i].order.id && control->jobs[i].has_thread &&
                 control->jobs[i].state <= JOB_RUNNING;
    pthread_mutex_unlock(&control->lock);
    return count;
}

/* Checks the request against this host's settings. */
static int check_limits(struct agent_control *control, const struct recording_order *order,
                        struct error *error)
{
    const struct agent_settings *settings = control->agent->settings;
    if (!settings->recordings)
        return error_set(error, -EPERM, "The configuration of this host forbids recordings.");
    if (atomic_load(&control->agent->off))
        return error_set(error, -EPERM, "Capture is off on this host.");
    if (!order->rate_hz || order->rate_hz > settings->recording_rate_max)
        return error_set(error, -EPERM,
                         "The configuration of this host allows %" PRIu64 " Hz at most.",
                         settings->recording_rate_max);
    if (!order->seconds || order->seconds > settings->recording_seconds_max)
        return error_set(error, -EPERM,
                         "The configuration of this host allows %" PRIu64 " s at most.",
                         settings->recording_seconds_max);
    if (running_jobs(control) >= settings->recordings_max)
        return error_set(
            error, -EBUSY,
            "%" PRIu64
            " recordings are already running, which is the limit of this host's configuration.",
            settings->recordings_max);
    return 0;
}

static void begin(struct agent_control *control, struct recording_job *job,
                  const struct recording_order *order)
{
    struct error error = {0};
    bool limited = check_limits(control, order, &error) < 0;
    *job = (struct recording_job){.control = control, .order = *order, .listed = true};
    /* The server knows of a beginning that this process doesn't. */
    if (!strcmp(order->state, "running"))
        set_state(job, JOB_FAILED, 0, "The agent restarted during the recording.");
    else if (!strcmp(order->state, "uploading"))
        set_state(job, JOB_DONE, 0, "The agent restarted; it sends the data recorded so far.");
    else if (limited)
        set_state(job, JOB_REFUSED, 0, error.text);
    else if (pthread_create(&job->thread, NULL, record, job))
        set_state(job, JOB_FAILED, 0, "Failed to start a thread.");
    else
        job->has_thread = true;
}

static struct recording_job *find_job(struct agent_control *control, const char *id)
{
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++)
        if (!strcmp(control->jobs[i].order.id, id))
            return &control->jobs[i];
    return NULL;
}

static enum job_state state_of(struct recording_job *job)
{
    pthread_mutex_lock(&job->control->lock);
    enum job_state state = job->state;
    pthread_mutex_unlock(&job->control->lock);
    return state;
}

void jobs_apply(struct agent_control *control, const struct recording_order *orders, size_t count)
{
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++)
        control->jobs[i].listed = false;
    for (size_t i = 0; i < count; i++) {
        struct recording_job *job = find_job(control, orders[i].id);
        if (job) {
            job->listed = true;
            if (orders[i].stop)
                atomic_store(&job->stop, true);
        }
    }
    /* Of what is over, and the server doesn't ask for any more, it knows. */
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++) {
        struct recording_job *job = &control->jobs[i];
        if (*job->order.id && !job->listed && is_over(state_of(job)))
            free_job(job);
    }
    for (size_t i = 0; i < count; i++) {
        struct recording_job *room = find_job(control, "");
        bool never = orders[i].stop && !strcmp(orders[i].state, "pending");
        if (!find_job(control, orders[i].id) && !never && room)
            begin(control, room, &orders[i]);
    }
}

void jobs_stop(struct agent_control *control)
{
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++)
        atomic_store(&control->jobs[i].stop, true);
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++)
        if (*control->jobs[i].order.id)
            free_job(&control->jobs[i]);
}

void jobs_write(struct agent_control *control, struct json_writer *json)
{
    json_write_key(json, "recordings");
    json_write_array(json);
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < CONTROL_JOBS_MAX; i++) {
        const struct recording_job *job = &control->jobs[i];
        if (!*job->order.id || job->state == JOB_NONE)
            continue;
        json_write_object(json);
        json_member_text(json, "id", job->order.id);
        json_member_text(json, "state", names[job->state]);
        json_member_unsigned(json, "samples", job->samples);
        json_member_text(json, "reason", job->reason);
        json_write_object_end(json);
    }
    pthread_mutex_unlock(&control->lock);
    json_write_array_end(json);
}
