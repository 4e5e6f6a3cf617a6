// SPDX-License-Identifier: Apache-2.0
// Exact totals and sampled waits into one profile: see accounts.h.

#include "capture/wall/accounts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/record/vocabulary.h"
#include "capture/wall/locks.h"
#include "capture/wall/names.h"
#include "capture/wall/wall.h"
#include "profile/triage/triage.h"

#define UNIT 1099511627776.0 /* of rates in the kernel: 2^40 */
#define ALL 4294967296.0     /* of probabilities there: 2^32 */

/* A thread's time in one state, exact and by samples. */
struct wall_account {
    uint32_t pid, tid;
    uint8_t state;
    char comm[17];
    uint32_t labels; /* without the state, once it is settled */
    double weight_ns;
    double exact_ns;
};

/* Time in one state of all threads that share their labels. */
struct wall_pool {
    uint32_t labels;
    uint8_t state;
    double weight_ns;    /* of what was sampled */
    double unsampled_ns; /* of threads of which nothing was */
};

/* A stack whose time is known when its account is settled. */
struct wall_pending {
    uint32_t node;
    uint32_t account;
    uint32_t link, context; /* what the thread worked on: its span, and labels */
    uint64_t time_ns;
    uint8_t state;  /* finer than the account's */
    uint32_t other; /* runnable: the process that had the CPU; a lock: the thread that owns it */
    double weight_ns;
    double waits; /* that it stands for */
};

#define STATE(name) (1u << BPF_STATE_##name)
#define STATES_ALL ((1u << BPF_STATES) - 1)

/* The values of a row: which modes have them, and in which states. */
static const struct value_type {
    unsigned mode, states;
    const char *name, *unit;
    bool counts; /* waits instead of their time */
} value_types[WALL_VALUE_TYPES] = {
    {CAPTURE_WALL, STATES_ALL, "wall", "nanoseconds", false},
    {CAPTURE_OFF_CPU, STATES_ALL & ~STATE(RUNNING), "off_cpu", "nanoseconds", false},
    {CAPTURE_LOCK, STATE(LOCK), "contentions", "count", true},
    {CAPTURE_LOCK, STATE(LOCK), "delay", "nanoseconds", false},
    {CAPTURE_IO, STATE(DISK) | STATE(NETWORK) | STATE(PIPE) | STATE(IO_URING), "io", "nanoseconds",
     false},
    {CAPTURE_RUN_QUEUE, STATE(RUNNABLE), "runq", "nanoseconds", false},
};

const char *wall_state_name(enum bpf_state state)
{
    static const char *const names[BPF_STATES] = {
        [BPF_STATE_RUNNING] = "running",   [BPF_STATE_RUNNABLE] = "runnable",
        [BPF_STATE_LOCK] = "lock",         [BPF_STATE_DISK] = "disk",
        [BPF_STATE_NETWORK] = "network",   [BPF_STATE_SLEEP] = "sleep",
        [BPF_STATE_PIPE] = "pipe",         [BPF_STATE_CHILD] = "child",
        [BPF_STATE_IO_URING] = "io_uring", [BPF_STATE_OTHER] = "other",
        [BPF_STATE_DESCRIPTOR] = "other",
    };
    return (unsigned)state < BPF_STATES ? names[state] : "other";
}

void wall_accounts_init(struct wall_accounts *accounts, struct recorder *recorder, unsigned modes)
{
    *accounts = (struct wall_accounts){.recorder = recorder,
                                       .modes = modes,
                                       .weight = 1,
                                       .names = wall_names_new(recorder),
                                       .locks = wall_locks_new(recorder)};
}

void wall_accounts_release(struct wall_accounts *accounts)
{
    free(accounts->list);
    free(accounts->pools);
    free(accounts->pending);
    id_table_release(&accounts->index);
    id_table_release(&accounts->pool_index);
    wall_names_free(accounts->names);
    wall_locks_free(accounts->locks);
}

static void begin_epoch(struct wall_accounts *accounts)
{
    struct profile *profile = accounts->recorder->profile;
    if (accounts->epoch == accounts->recorder->epoch)
        return;
    accounts->epoch = accounts->recorder->epoch;
    accounts->count = accounts->pending_count = 0;
    id_table_clear(&accounts->index);
    memset(accounts->errors, 0, sizeof(accounts->errors));
    for (size_t i = 0; profile && i < WALL_VALUE_TYPES; i++)
        if (accounts->modes & value_types[i].mode)
            accounts->types[i] =
                profile_type(profile, profile_cstring(profile, value_types[i].name),
                             profile_cstring(profile, value_types[i].unit));
    if (profile && accounts->recorder->no_cpu && profile->type_count)
        profile->default_type = profile->types[profile->type_count - 1].type;
}

static struct wall_account *find_account(struct wall_accounts *accounts, uint32_t pid, uint32_t tid,
                                         unsigned state, const char *comm)
{
    uint64_t hash = hash_word((uint64_t)tid << 8 | state);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&accounts->index, &probe)) != ID_NONE) {
        struct wall_account *account = &accounts->list[id];
        if (account->tid != tid || account->state != state || account->pid != pid)
            continue;
        memcpy(account->comm, comm, sizeof(account->comm)); /* the last name counts */
        return account;
    }
    array_reserve(accounts->list, accounts->capacity, accounts->count + 1);
    id_table_insert(&accounts->index, hash, (uint32_t)accounts->count);
    struct wall_account *account = &accounts->list[accounts->count++];
    *account = (struct wall_account){.pid = pid, .tid = tid, .state = (uint8_t)state};
    memcpy(account->comm, comm, sizeof(account->comm));
    return account;
}

/* Where a thread waits; for a lock, with its name and the stack of the thread that let it go on
 * behind it: its holder. */
static uint32_t waiting_stack(struct wall_accounts *accounts, const struct recorder_sample *sample,
                              unsigned state, const char *lock)
{
    struct recorder *recorder = accounts->recorder;
    bool second = state == BPF_STATE_LOCK && sample->second_count;
    if (!second && !lock)
        return profile_stack(recorder->profile, sample->frames, sample->frame_count);
    uint32_t frames[3 * RECORDER_FRAMES_MAX];
    size_t count = MIN(sample->frame_count, (size_t)2 * RECORDER_FRAMES_MAX - 2);
    memcpy(frames, sample->frames, count * sizeof(*frames));
    if (lock)
        frames[count++] = recorder_mark(recorder, lock);
    if (!second)
        return profile_stack(recorder->profile, frames, count);
    size_t others = MIN(sample->second_count, (size_t)RECORDER_FRAMES_MAX);
    frames[count++] = recorder_mark(recorder, TRIAGE_HOLDER_MARK);
    memcpy(frames + count, sample->second_frames, others * sizeof(*frames));
    return profile_stack(recorder->profile, frames, count + others);
}

static struct wall_pending *add_pending(struct wall_accounts *accounts,
                                        const struct recorder_sample *sample, unsigned state,
                                        unsigned accounted, double weight_ns, const char *lock)
{
    struct recorder *recorder = accounts->recorder;
    char comm[17] = "";
    snprintf(comm, sizeof(comm), "%s", sample->comm);
    struct wall_account *account =
        find_account(accounts, sample->pid, sample->tid, accounted, comm);
    account->weight_ns += weight_ns;
    array_reserve(accounts->pending, accounts->pending_capacity, accounts->pending_count + 1);
    struct wall_pending *pending = &accounts->pending[accounts->pending_count++];
    *pending =
        (struct wall_pending){.node = waiting_stack(accounts, sample, state, lock),
                              .account = (uint32_t)(account - accounts->list),
                              .link = sample->context ? sample->context->link : 0,
                              .context = sample_context_set(recorder->profile, sample->context),
                              .time_ns = sample->time_ns + (uint64_t)recorder->epoch_ns,
                              .state = (uint8_t)state,
                              .weight_ns = weight_ns};
    return pending;
}

void wall_accounts_tick(struct wall_accounts *accounts, const struct recorder_sample *sample,
                        double scale)
{
    begin_epoch(accounts);
    if (sample->cpu_ns > 0)
        add_pending(accounts, sample, BPF_STATE_RUNNING, BPF_STATE_RUNNING,
                    (double)sample->cpu_ns * scale, NULL);
}

static void count_wait(struct wall_accounts *accounts, unsigned state, double weight)
{
    struct wall_error *error = &accounts->errors[state];
    error->waits++;
    error->weight += weight;
    error->weight_2 += weight * weight;
}

/* When the thread had a CPU again; waits whose stacks are kept have the time at which they began.
 */
static int64_t end_of(const struct recorder *recorder, const struct recorder_sample *sample,
                      const struct bpf_sample_event *event, const struct bpf_wait *wait)
{
    int64_t time_ns = (int64_t)sample->time_ns + recorder->epoch_ns;
    if (wait->flags & BPF_WAIT_BEGUN)
        time_ns =
            add_saturated(add_saturated(time_ns, (int64_t)event->value), (int64_t)wait->queued_ns);
    return time_ns;
}

void wall_accounts_wait(struct wall_accounts *accounts, const struct recorder_sample *sample,
                        const struct bpf_sample_event *event, double scale)
{
    const struct bpf_wait *wait = (const struct bpf_wait *)event->detail;
    begin_epoch(accounts);
    double blocked_ns = (double)event->value, queued_ns = (double)wait->queued_ns;
    double chance =
        wait->flags & BPF_WAIT_BEGUN
            ? wait->rate / ALL
            : -expm1(-fmin(blocked_ns + queued_ns, BPF_WAIT_NS_MAX) * wait->rate / UNIT);
    unsigned state = MIN((unsigned)wait->state, BPF_STATES - 1u);
    unsigned accounted = MIN((unsigned)wait->account, BPF_STATES - 1u);
    bool sleeps = wait->flags & BPF_WAIT_SLEEPS;
    if (chance <= 0)
        return;
    chance /= scale;
    /* A row has the time at which it ended, as that of a CPU sample. */
    int64_t end_ns = end_of(accounts->recorder, sample, event, wait);
    if (accounted != BPF_STATE_RUNNING && blocked_ns > 0) {
        const char *lock = state == BPF_STATE_LOCK && accounts->modes & CAPTURE_LOCK
                               ? wall_locks_name(accounts->locks, event)
                               : NULL;
        struct wall_pending *pending =
            add_pending(accounts, sample, state, accounted, blocked_ns / chance, lock);
        pending->waits = 1 / chance;
        pending->time_ns = (uint64_t)MAX(end_ns - (int64_t)wait->queued_ns, 1);
        if (state == BPF_STATE_LOCK && sleeps)
            pending->other = wall_lock_owner(sample->pid, sample->tid, wait->other);
        count_wait(accounts, state, blocked_ns / chance);
    }
    if (queued_ns > 0) {
        struct wall_pending *pending = add_pending(accounts, sample, BPF_STATE_RUNNABLE,
                                                   BPF_STATE_RUNNABLE, queued_ns / chance, NULL);
        pending->waits = 1 / chance;
        pending->time_ns = (uint64_t)end_ns;
        pending->other = sleeps ? 0 : wait->other;
        wall_names_note_other(accounts->names, pending->other);
        count_wait(accounts, BPF_STATE_RUNNABLE, queued_ns / chance);
    }
}

void wall_accounts_exact(struct wall_accounts *accounts, const struct bpf_thread *thread,
                         const struct bpf_thread *before, double scale)
{
    bool same = before && before->tid == thread->tid && before->tgid == thread->tgid;
    begin_epoch(accounts);
    char comm[sizeof(thread->comm) + 1] = "";
    memcpy(comm, thread->comm, sizeof(thread->comm));
    for (unsigned state = 0; state < BPF_STATES; state++) {
        uint64_t start_ns = same ? before->ns[state] : 0;
        if (thread->ns[state] <= start_ns)
            continue;
        double exact_ns = (double)(thread->ns[state] - start_ns) * accounts->weight * scale;
        find_account(accounts, thread->tgid, thread->tid, state, comm)->exact_ns += exact_ns;
        /* Chosen with probability 1/scale, and counted for that. */
        accounts->errors[state].total_ns += exact_ns;
        accounts->errors[state].variance += exact_ns * exact_ns * (1 - 1 / scale);
    }
}

/* ---- settling ---- */

static struct wall_pool *find_pool(struct wall_accounts *accounts, uint32_t labels, unsigned state)
{
    uint64_t hash = hash_word((uint64_t)labels << 8 | state);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&accounts->pool_index, &probe)) != ID_NONE)
        if (accounts->pools[id].labels == labels && accounts->pools[id].state == state)
            return &accounts->pools[id];
    array_reserve(accounts->pools, accounts->pool_capacity, accounts->pool_count + 1);
    id_table_insert(&accounts->pool_index, hash, (uint32_t)accounts->pool_count);
    accounts->pools[accounts->pool_count] =
        (struct wall_pool){.labels = labels, .state = (uint8_t)state};
    return &accounts->pools[accounts->pool_count++];
}

static void label_accounts(struct wall_accounts *accounts)
{
    struct recorder *recorder = accounts->recorder;
    for (size_t i = 0; i < accounts->count; i++) {
        struct wall_account *account = &accounts->list[i];
        struct recorder_sample sample = {
            .pid = account->pid, .tid = account->tid, .comm = account->comm};
        account->labels = recorder_process(recorder, account->pid, false)
                              ? recorder_labels(recorder, &sample)
                              : CAPTURE_UNWANTED;
        if (account->labels == CAPTURE_UNWANTED)
            continue;
        if (recorder->label) /* others have the thread's name and number among their labels */
            account->labels =
                wall_names_add_thread(accounts->names, account->labels, account->comm);
        struct wall_pool *pool = find_pool(accounts, account->labels, account->state);
        if (account->weight_ns > 0)
            pool->weight_ns += account->exact_ns;
        else
            pool->unsampled_ns += account->exact_ns;
    }
}

static bool has_values(const struct wall_accounts *accounts, unsigned state)
{
    for (size_t i = 0; i < WALL_VALUE_TYPES; i++)
        if (accounts->modes & value_types[i].mode && value_types[i].states >> state & 1)
            return true;
    return false;
}

static void add_row(struct wall_accounts *accounts, const struct wall_pending *pending,
                    uint32_t labels, double scale)
{
    struct profile *profile = accounts->recorder->profile;
    if (!has_values(accounts, pending->state))
        return;
    labels = wall_names_add_state(accounts->names, labels,
                                  wall_state_name((enum bpf_state)pending->state));
    if (pending->state == BPF_STATE_RUNNABLE && pending->other)
        labels = wall_names_add_other(accounts->names, labels, pending->other);
    labels = sample_context_add(profile, labels, pending->context);
    size_t row = profile_sample(profile, pending->node, labels, pending->link, pending->time_ns);
    for (size_t i = 0; i < WALL_VALUE_TYPES; i++) {
        const struct value_type *type = &value_types[i];
        if (accounts->modes & type->mode && type->states >> pending->state & 1)
            profile_add_value(
                profile, row, accounts->types[i],
                (int64_t)((type->counts ? pending->waits : pending->weight_ns) * scale + 0.5));
    }
}

/* The waits of a thread add up to what it spent; and what threads without a sample spent is
 * thought to be spent as others with the same labels did. */
static void add_sampled(struct wall_accounts *accounts, const struct wall_pending *pending,
                        double factor)
{
    const struct wall_account *account = &accounts->list[pending->account];
    if (account->labels == CAPTURE_UNWANTED || account->exact_ns <= 0)
        return;
    const struct wall_pool *pool = find_pool(accounts, account->labels, account->state);
    double scale = account->exact_ns / account->weight_ns * factor;
    add_row(accounts, pending, account->labels, scale * (1 + pool->unsampled_ns / pool->weight_ns));
}

static void add_unsampled(struct wall_accounts *accounts, const struct wall_pool *pool,
                          double factor)
{
    struct recorder *recorder = accounts->recorder;
    uint32_t frame = recorder_mark(recorder, "[not sampled]");
    add_row(accounts,
            &(struct wall_pending){.node = profile_stack(recorder->profile, &frame, 1),
                                   .time_ns = (uint64_t)(monotonic_ns() + recorder->epoch_ns),
                                   .state = pool->state,
                                   .weight_ns = pool->unsampled_ns},
            pool->labels, factor);
}

/* Frames of a stack, outermost first. */
static size_t list_frames(const struct profile *profile, uint32_t node, uint32_t *ret_frames,
                          size_t most)
{
    size_t count = 0;
    for (uint32_t at = node; at && count < most; at = profile->nodes[at].parent)
        count++;
    size_t left = count;
    for (uint32_t at = node; left; at = profile->nodes[at].parent)
        ret_frames[--left] = profile->nodes[at].frame;
    return count;
}

/* The last stack of a thread that was sampled; 0: none was. */
static uint32_t last_stack(const struct wall_accounts *accounts, uint32_t tid)
{
    uint32_t node = 0;
    uint64_t last_ns = 0;
    for (size_t i = 0; i < accounts->pending_count; i++) {
        const struct wall_pending *pending = &accounts->pending[i];
        if (accounts->list[pending->account].tid == tid && pending->time_ns >= last_ns) {
            last_ns = pending->time_ns;
            node = pending->node;
        }
    }
    return node;
}

/* Of waits that have not ended: behind the waiter, where the lock's owner was last seen. */
static void add_owners(struct wall_accounts *accounts)
{
    struct recorder *recorder = accounts->recorder;
    uint32_t frames[3 * RECORDER_FRAMES_MAX];
    for (size_t i = 0; i < accounts->pending_count; i++) {
        struct wall_pending *pending = &accounts->pending[i];
        if (pending->state != BPF_STATE_LOCK || !pending->other)
            continue;
        uint32_t owner = last_stack(accounts, pending->other);
        size_t count =
            list_frames(recorder->profile, pending->node, frames, 2 * RECORDER_FRAMES_MAX - 2);
        frames[count++] = recorder_mark(recorder, TRIAGE_HOLDER_MARK);
        if (owner) {
            count += list_frames(recorder->profile, owner, frames + count, RECORDER_FRAMES_MAX);
        } else {
            char name[WALL_LOCK_BYTES];
            wall_thread_mark(accounts->list[pending->account].pid, pending->other, name);
            frames[count++] = recorder_mark(recorder, name);
        }
        pending->node = profile_stack(recorder->profile, frames, count);
    }
}

void wall_accounts_weigh(struct wall_accounts *accounts, double weight)
{
    accounts->weight = weight;
}

void wall_accounts_end_slice(struct wall_accounts *accounts, int64_t length_ns)
{
    double span_ns = (double)length_ns * accounts->weight;
    accounts->weight = 1;
    if (length_ns <= 0)
        return;
    accounts->slices++;
    accounts->spans += span_ns;
    accounts->spans_2 += span_ns * span_ns;
    for (unsigned state = 0; state < BPF_STATES; state++) {
        struct wall_error *error = &accounts->errors[state];
        double in_state_ns = error->total_ns - error->slice_ns;
        error->slice_ns = error->total_ns;
        error->rates += in_state_ns * span_ns;
        error->rates_2 += in_state_ns * in_state_ns;
    }
}

/* The relative variance of a total that was measured in some slices of the time: it is a ratio, of
 * time in a state to time. */
static double slice_variance(const struct wall_accounts *accounts, const struct wall_error *error,
                             double measured)
{
    double count = accounts->slices;
    if (measured >= 1 || error->total_ns <= 0)
        return 0;
    if (count < 2) /* nothing to tell it by */
        return 1;
    double rate = error->total_ns / accounts->spans;
    double squares =
        fmax(error->rates_2 - 2 * rate * error->rates + rate * rate * accounts->spans_2, 0);
    return squares / (error->total_ns * error->total_ns) * count / (count - 1) * (1 - measured);
}

/* Stacks of short waits are as likely as those of long ones then. */
#define BEGUN_COMMENT                                                                              \
    "wall time: the stacks of waits were chosen when the waits began, since the kernel has no "    \
    "hook behind context switches"

/* How exact each state is, as comments: the total and its standard error, and of how many
 * independent waits the stacks are. The share x of a stack has the standard error
 * sqrt(x (1 - x) / waits). */
static void add_errors(struct wall_accounts *accounts, double factor, double measured)
{
    struct profile *profile = accounts->recorder->profile;
    char text[TRIAGE_ERROR_BYTES];
    for (unsigned state = BPF_STATE_RUNNING; state < BPF_STATES; state++) {
        const struct wall_error *error = &accounts->errors[state];
        double total_ns = error->total_ns * factor;
        double variance = error->variance * factor * factor +
                          total_ns * total_ns * slice_variance(accounts, error, measured);
        double waits = error->weight_2 > 0 ? error->weight * error->weight / error->weight_2 : 0;
        if ((total_ns <= 0 && !error->waits) || !has_values(accounts, state))
            continue;
        /* The kind of a descriptor is known for sampled waits only, so they have a total of their
         * own. */
        const char *name =
            state == BPF_STATE_DESCRIPTOR ? "descriptor" : wall_state_name((enum bpf_state)state);
        snprintf(text, sizeof(text), TRIAGE_ERROR_FORMAT, name, total_ns / 1e9,
                 sqrt(variance) / 1e9, waits);
        profile_add_comment(profile, profile_cstring(profile, text));
    }
    if (accounts->begun)
        profile_add_comment(profile, profile_cstring(profile, BEGUN_COMMENT));
}

void wall_accounts_settle(struct wall_accounts *accounts, double factor, double measured)
{
    begin_epoch(accounts);
    if (accounts->recorder->profile) {
        add_owners(accounts);
        label_accounts(accounts);
        for (size_t i = 0; i < accounts->pending_count; i++)
            add_sampled(accounts, &accounts->pending[i], factor);
        for (size_t i = 0; i < accounts->pool_count; i++)
            if (accounts->pools[i].unsampled_ns > 0 && accounts->pools[i].weight_ns <= 0)
                add_unsampled(accounts, &accounts->pools[i], factor);
        add_errors(accounts, factor, measured);
    }
    accounts->count = accounts->pending_count = accounts->pool_count = 0;
    accounts->slices = 0;
    accounts->spans = accounts->spans_2 = 0;
    id_table_clear(&accounts->index);
    id_table_clear(&accounts->pool_index);
    wall_names_clear(accounts->names);
    wall_locks_clear(accounts->locks);
    memset(accounts->errors, 0, sizeof(accounts->errors));
}
