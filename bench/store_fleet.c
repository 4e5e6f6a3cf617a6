// SPDX-License-Identifier: Apache-2.0
// The fleet of bench-store: services with call graphs, hosts, and senders that push at once.

#include "store_fleet.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define FUNCTIONS 600 /* of a service */
#define DEPTH_MAX 40
#define SENDERS 32 /* threads that push at once */

struct fleet fleet = {
    .services = 100, .hosts = 1, .hours = 25, .window_s = 10, .rows = 40, .new_share = 0.001};
_Atomic int64_t fleet_now_ns = FLEET_BEGIN_NS;

double cpu_seconds(void)
{
    return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*seed >> 33);
}

/* ---- each service's stacks as function numbers ---- */

struct stack {
    uint16_t functions[DEPTH_MAX];
    uint8_t depth;
};

static struct stack *stacks; /* services x FLEET_STACKS */

static void extend(struct stack *stack, uint64_t *seed)
{
    unsigned more = 3 + next_random(seed) % 6;
    while (more-- && stack->depth < DEPTH_MAX)
        stack->functions[stack->depth++] = (uint16_t)(next_random(seed) % FUNCTIONS);
}

/* Each leaves an earlier stack near its end, as call graphs do. */
void fleet_make(void)
{
    stacks = memory_zalloc((size_t)fleet.services * FLEET_STACKS, sizeof(*stacks));
    for (unsigned service = 0; service < fleet.services; service++) {
        uint64_t seed = service + 1;
        struct stack *list = stacks + (size_t)service * FLEET_STACKS;
        for (unsigned i = 0; i < FLEET_STACKS; i++) {
            if (i) {
                list[i] = list[next_random(&seed) % i];
                unsigned keep = list[i].depth / 2 + next_random(&seed) % (list[i].depth / 2u + 1);
                list[i].depth = (uint8_t)keep;
            }
            extend(&list[i], &seed);
        }
    }
}

static uint32_t intern(struct profile *profile, unsigned service, const struct stack *stack)
{
    uint32_t frames[DEPTH_MAX];
    char name[64];
    for (unsigned i = 0; i < stack->depth; i++) {
        unsigned number = stack->functions[i];
        /* Half of the functions are libraries' that all services have. */
        int length =
            number % 2
                ? snprintf(name, sizeof(name), "library::module%u::function%u", number % 17, number)
                : snprintf(name, sizeof(name), "service%u::function%u", service, number);
        struct profile_function function = {
            .name = profile_string(profile, name, (size_t)length),
            .file = profile_cstring(profile, number % 2 ? "library.cc" : "service.cc")};
        frames[i] = profile_frame(
            profile, &(struct profile_frame){.function = profile_function(profile, &function),
                                             .line = number,
                                             .kind = FRAME_NATIVE});
    }
    return profile_stack(profile, frames, stack->depth);
}

/* ---- senders ---- */

struct push {
    struct profile profile;
    struct labels *labels;
    struct store_profile *windows;
    struct store_row *rows;
    unsigned count;
};

/* One host's push: windows of several services, a thousand rows or more together. */
static void make_push(struct push *push, unsigned host, unsigned first_service, unsigned count,
                      int64_t time_ns, uint64_t *seed)
{
    char text[32];
    memset(push, 0, sizeof(*push));
    push->count = count;
    push->labels = memory_zalloc(count, sizeof(*push->labels));
    push->windows = memory_zalloc(count, sizeof(*push->windows));
    push->rows = memory_zalloc((size_t)count * fleet.rows, sizeof(*push->rows));
    profile_init(&push->profile, PROFILE_ALL);
    for (unsigned i = 0; i < count; i++) {
        unsigned service = first_service + i;
        struct store_row *rows = push->rows + (size_t)i * fleet.rows;
        snprintf(text, sizeof(text), "service%u", service);
        labels_set(&push->labels[i], "service_name", text);
        labels_set(&push->labels[i], "version", "1");
        snprintf(text, sizeof(text), "host%u", host);
        labels_set(&push->labels[i], "host", text);
        for (unsigned k = 0; k < fleet.rows; k++) {
            double at = next_random(seed) / 2147483648.0;
            unsigned pick = (unsigned)(at * at * at * FLEET_STACKS); /* few are hot */
            if (fleet.in_turn)
                pick =
                    (unsigned)(time_ns / SECOND / fleet.window_s * fleet.rows + k) % FLEET_STACKS;
            struct stack stack =
                stacks[(size_t)service * FLEET_STACKS + MIN(pick, FLEET_STACKS - 1u)];
            if (next_random(seed) / 2147483648.0 < fleet.new_share)
                extend(&stack, seed);
            rows[k] = (struct store_row){.node = intern(&push->profile, service, &stack),
                                         .value = (1 + (next_random(seed) % 8 == 0)) * 10101010};
        }
        push->windows[i] = (struct store_profile){.labels = &push->labels[i],
                                                  .type = FLEET_TYPE,
                                                  .time_ns = time_ns,
                                                  .duration_ns = fleet.window_s * SECOND,
                                                  .profile = &push->profile,
                                                  .rows = rows,
                                                  .row_count = fleet.rows};
    }
}

static void push_release(struct push *push)
{
    for (unsigned i = 0; i < push->count; i++)
        labels_release(&push->labels[i]);
    free(push->labels);
    free(push->windows);
    free(push->rows);
    profile_release(&push->profile);
}

struct sender {
    struct store *store;
    const char *tenant;
    unsigned number, windows; /* how many windows of each series, from fleet_now_ns on */
    unsigned tenth;           /* services of one push */
    double making_s;          /* CPU time for making pushes up */
    uint64_t rows, pushes;
};

static void *send_all(void *context)
{
    struct sender *sender = context;
    uint64_t seed = 1000 + sender->number + (uint64_t)fleet_now_ns;
    unsigned job = 0;
    for (unsigned w = 0; w < sender->windows; w++)
        for (unsigned host = 0; host < fleet.hosts; host++)
            for (unsigned first = 0; first < fleet.services; first += sender->tenth) {
                if (job++ % SENDERS != sender->number)
                    continue;
                struct push push;
                int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                make_push(&push, host, first, MIN(sender->tenth, fleet.services - first),
                          fleet_now_ns + (int64_t)w * fleet.window_s * SECOND, &seed);
                sender->making_s += (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
                struct error error;
                struct store_batch batch = {
                    .tenant = sender->tenant, .profiles = push.windows, .count = push.count};
                if (store_write(sender->store, &batch, &error) < 0) {
                    fprintf(stderr, "%s\n", error.text);
                    exit(1);
                }
                before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                sender->rows += (uint64_t)push.count * fleet.rows;
                sender->pushes++;
                push_release(&push);
                sender->making_s += (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
            }
    return NULL;
}

double fleet_send(struct store *store, const char *tenant, unsigned windows, uint64_t *rows,
                  uint64_t *pushes)
{
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    double before = cpu_seconds(), making = 0;
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.store = store,
                                     .tenant = tenant,
                                     .number = i,
                                     .windows = windows,
                                     .tenth = MAX(1u, (1000 + fleet.rows - 1) / fleet.rows)};
        pthread_create(&threads[i], NULL, send_all, &senders[i]);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
        making += senders[i].making_s;
        *rows += senders[i].rows;
        *pushes += senders[i].pushes;
    }
    return cpu_seconds() - before - making;
}

void fleet_release(void)
{
    free(stacks);
    stacks = NULL;
}

static void write_batch(struct store *store, const struct store_batch *batch)
{
    struct error error;
    if (store_write(store, batch, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
}

#define SERVICES_AT_ONCE 10 /* of one batch: a commit takes its time however small it is */

void fleet_send_series(struct store *store, const char *tenant, unsigned services, unsigned series)
{
    struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    struct store_row row = {.node = intern(&profile, 0, &stacks[0]), .value = 10101010};
    size_t room = (size_t)series * SERVICES_AT_ONCE, count = 0;
    struct labels *labels = memory_zalloc(room, sizeof(*labels));
    struct store_profile *windows = memory_zalloc(room, sizeof(*windows));
    for (unsigned service = 0; service < services; service++) {
        for (unsigned i = 0; i < series; i++, count++) {
            char text[32];
            snprintf(text, sizeof(text), "service%u", service);
            labels_set(&labels[count], "service_name", text);
            labels_set(&labels[count], "version", i % 2 ? "1" : "2");
            labels_set(&labels[count], "region", i % 3 ? "north" : "south");
            snprintf(text, sizeof(text), "pod-%u-%u", service, i);
            labels_set(&labels[count], "pod", text);
            windows[count] = (struct store_profile){.labels = &labels[count],
                                                    .type = FLEET_TYPE,
                                                    .time_ns = fleet_now_ns,
                                                    .duration_ns = 10 * SECOND,
                                                    .profile = &profile,
                                                    .rows = &row,
                                                    .row_count = 1};
        }
        if (count == room || service + 1 == services) {
            write_batch(store, &(struct store_batch){
                                   .tenant = tenant, .profiles = windows, .count = count});
            count = 0;
        }
    }
    for (size_t i = 0; i < room; i++)
        labels_release(&labels[i]);
    free(labels);
    free(windows);
    profile_release(&profile);
}
