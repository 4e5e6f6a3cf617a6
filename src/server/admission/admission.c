// SPDX-License-Identifier: Apache-2.0
// Memory of pushes and queries, which take it from one account, with maintenance. A push takes by
// its length, since what it will hold isn't known before, and more when it turns out to hold more.
// A query begins with a small part of what its stacks and the picture of them may need, since most
// need no more, and takes all of it when it turns out to. Requests that don't fit get 503.
//
// The number of active queries is limited so that one of them can always take all it needs: queries
// that wait for more memory never wait for each other.

#include "server/admission/admission.h"

#include "base/memory.h"
#include "store/store.h"

#define EXPANSION 12             /* bytes in memory for each that is sent, most of the time */
#define PUSH_BYTES (128u << 10)  /* of any length */
#define UNKNOWN_BYTES (1u << 20) /* when the sender doesn't say its length */
#define PUSH_WAIT_MS 250
#define STEP_BYTES (1u << 20) /* taken at once when more is needed */
#define QUERY_WAIT_MS 10000
#define QUERY_PARTS 2      /* as stacks, and as what is sent */
#define COMPARISON_PARTS 3 /* the stacks of both sides */
#define STARTERS 6         /* queries at once that have begun with a part of what they may take */
#define FIRST_SHARE 4      /* of a profile's memory: what a query begins with */
#define FIRST_BYTES_MIN (64u << 10)

/* The memory of this thread's query, so that it can take more or give a part back early. */
static _Thread_local struct taken {
    struct admissions *admissions; /* NULL: no query */
    const atomic_bool *cancelled;
    size_t bytes, rest_bytes; /* the rest is what it may still take */
    size_t profile_bytes;     /* of them, for each profile that it merges */
} taken;

void admissions_init(struct admissions *admissions, size_t memory_bytes)
{
    budget_init(&admissions->memory, memory_bytes);
    budget_init(&admissions->starters, STARTERS);
}

void admissions_release(struct admissions *admissions)
{
    budget_release(&admissions->memory);
    budget_release(&admissions->starters);
}

/* ---- memory that grows ---- */

static bool take_more(struct memory_meter *meter)
{
    struct admission *admission = (struct admission *)meter; /* its first member */
    size_t needed = meter->used_bytes - meter->granted_bytes;
    size_t left = budget_fit(admission->budget, SIZE_MAX) - admission->taken_bytes;
    size_t step = MIN(MAX(needed, (size_t)STEP_BYTES), left);
    if (step < needed) {
        admission->too_large = true;
        return false;
    }
    if (!budget_wait_more(admission->budget, step, PUSH_WAIT_MS, admission->cancelled))
        return false;
    admission->taken_bytes += step;
    meter->granted_bytes += step;
    return true;
}

bool admission_begin(struct admission *admission, struct budget *budget, size_t bytes,
                     unsigned wait_ms, const atomic_bool *cancelled)
{
    bytes = budget_fit(budget, bytes);
    *admission = (struct admission){.budget = budget, .cancelled = cancelled, .taken_bytes = bytes};
    admission->meter = (struct memory_meter){.granted_bytes = bytes, .more = take_more};
    if (!memory_reserved() || !budget_wait(budget, bytes, wait_ms, cancelled))
        return false;
    memory_meter = &admission->meter;
    return true;
}

void admission_end(struct admission *admission)
{
    memory_meter = NULL;
    budget_give(admission->budget, admission->taken_bytes);
}

void admission_kept(size_t before, size_t bytes)
{
    if (!memory_meter)
        return;
    memory_meter->used_bytes = MIN(before + bytes, memory_meter->used_bytes);
    memory_meter->full = false;
}

int admission_explain(int r, struct error *error)
{
    if (r != -E2BIG || !memory_full())
        return r;
    const struct admission *admission = (const struct admission *)memory_meter;
    if (!admission->too_large)
        return error_set(error, -EAGAIN,
                         "Reading the body exceeds the free memory; try again later.");
    return error_set(error, -E2BIG,
                     "Reading the body takes more than %zu MiB, the limit for pushes; send less at "
                     "once, or give the server more memory.",
                     budget_fit(admission->budget, SIZE_MAX) >> 20);
}

/* ---- pushes and queries ---- */

static size_t push_memory(const struct admissions *admissions, const struct http_request *request,
                          uint64_t limit_bytes)
{
    int64_t length = http_request_content_length(request);
    uint64_t bytes = length < 0 ? UNKNOWN_BYTES : (uint64_t)length;
    bytes = PUSH_BYTES + EXPANSION * MIN(bytes, limit_bytes);
    return (size_t)MIN(bytes, (uint64_t)admissions->memory.limit_bytes / 2);
}

/* The memory that a query begins with: all of it where there is no room for several queries, or
 * where it is known to need that. */
static size_t first_bytes(struct admissions *admissions, enum admission_class class,
                          size_t profile_bytes)
{
    size_t largest = budget_fit(&admissions->memory, COMPARISON_PARTS * profile_bytes);
    size_t spare = budget_fit(&admissions->memory, SIZE_MAX) - largest;
    size_t first = MIN(profile_bytes / FIRST_SHARE, spare / STARTERS);
    bool whole =
        first < FIRST_BYTES_MIN || class == ADMIT_QUERY_WHOLE || class == ADMIT_COMPARISON_WHOLE;
    return whole ? SIZE_MAX : first;
}

static bool wait_for(struct budget *budget, size_t bytes)
{
    return budget_wait(budget, bytes, QUERY_WAIT_MS, taken.cancelled);
}

static bool take_first(struct admissions *admissions, enum admission_class class)
{
    bool compares = class == ADMIT_COMPARISON || class == ADMIT_COMPARISON_WHOLE;
    unsigned parts = compares ? COMPARISON_PARTS : QUERY_PARTS;
    size_t profile = atomic_load(&admissions->query_memory_bytes);
    size_t all = budget_fit(&admissions->memory, parts * profile);
    size_t first = MIN(first_bytes(admissions, class, profile), all);
    bool starter = first < all;
    if (!memory_reserved())
        return false;
    if (starter && !wait_for(&admissions->starters, 1))
        return false;
    if (!wait_for(&admissions->memory, first)) {
        if (starter)
            budget_give(&admissions->starters, 1);
        return false;
    }
    taken.admissions = admissions;
    taken.bytes = first;
    taken.rest_bytes = all - first;
    taken.profile_bytes = starter ? first / parts : profile;
    return true;
}

/* The query has begun; it no longer counts among those that may have to wait for the rest. */
static void end_start(struct taken *query)
{
    if (query->rest_bytes)
        budget_give(&query->admissions->starters, 1);
    query->rest_bytes = 0;
}

static void have_rest(struct taken *query)
{
    query->bytes += query->rest_bytes;
    query->profile_bytes = atomic_load(&query->admissions->query_memory_bytes);
    end_start(query);
}

static bool run_push(struct admissions *admissions, uint64_t limit_bytes,
                     struct http_request *request,
                     void (*handler)(struct http_request *request, void *userdata), void *userdata)
{
    struct admission admission;
    if (!admission_begin(&admission, &admissions->memory,
                         push_memory(admissions, request, limit_bytes), PUSH_WAIT_MS,
                         http_request_cancel_flag(request))) {
        atomic_fetch_add(&admissions->pushes_refused, 1);
        return false;
    }
    handler(request, userdata);
    admission_end(&admission);
    return true;
}

static void give_back(struct taken *query)
{
    end_start(query);
    budget_give(&query->admissions->memory, query->bytes);
    query->admissions = NULL;
    query->bytes = 0;
}

bool admissions_run(struct admissions *admissions, enum admission_class class,
                    uint64_t push_limit_bytes, struct http_request *request,
                    void (*handler)(struct http_request *request, void *userdata), void *userdata)
{
    if (class == ADMIT_PUSH)
        return run_push(admissions, push_limit_bytes, request, handler, userdata);
    taken.cancelled = http_request_cancel_flag(request);
    if (class != ADMIT_FREELY && !take_first(admissions, class))
        return false;
    handler(request, userdata);
    if (class != ADMIT_FREELY)
        give_back(&taken);
    return true;
}

bool admissions_run_job(struct admissions *admissions, enum admission_class class,
                        const atomic_bool *cancelled, void (*job)(void *context), void *context)
{
    taken.cancelled = cancelled;
    bool admitted = take_first(admissions, class);
    if (admitted) {
        job(context);
        give_back(&taken);
    }
    taken.cancelled = NULL;
    return admitted;
}

size_t admit_profile_bytes(struct admissions *admissions)
{
    return taken.admissions ? taken.profile_bytes : atomic_load(&admissions->query_memory_bytes);
}

bool admit_is_part(void)
{
    return taken.rest_bytes != 0;
}

int admit_rest(struct error *error)
{
    if (!taken.rest_bytes)
        return 0;
    if (!budget_wait_more(&taken.admissions->memory, taken.rest_bytes, QUERY_WAIT_MS,
                          taken.cancelled))
        return error_set(error, -EAGAIN, "The answer exceeds the free memory; try again later.");
    have_rest(&taken);
    return 0;
}

static size_t take_rest(void *context)
{
    struct taken *query = context;
    if (query->rest_bytes && budget_take(&query->admissions->memory, query->rest_bytes))
        have_rest(query);
    return query->profile_bytes;
}

void admit_limits(struct admissions *admissions, struct store_limits *limits)
{
    limits->memory_bytes = admit_profile_bytes(admissions);
    limits->more = taken.rest_bytes ? take_rest : NULL;
    limits->more_context = &taken;
}

void admit_keep(size_t bytes)
{
    size_t kept = MIN(bytes ? bytes : taken.bytes / 2, taken.bytes);
    end_start(&taken);
    if (kept < taken.bytes)
        budget_give(&taken.admissions->memory, taken.bytes - kept);
    taken.bytes = kept;
}
