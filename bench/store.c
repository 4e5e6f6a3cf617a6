// SPDX-License-Identifier: Apache-2.0
// bench-store: the embedded store without a server. Fills a directory with a made-up fleet's
// profiles as senders would, keeps house, and asks for flame graphs. Everything follows from a
// seed. Times are CPU time of all threads, so that a busy machine changes little.
//
//     bench-store [--services N] [--hosts N] [--hours N] [--window S] [--rows N] [--keep DIR]

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/store.h"

#define SECOND 1000000000ll
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define BEGIN (20000 * DAY)
#define TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define STACKS 5000   /* of a service */
#define FUNCTIONS 600 /* of a service */
#define DEPTH_MAX 40
#define SENDERS 32 /* threads that push at once */

static struct {
    unsigned services, hosts, hours, window_s, rows; /* rows of one window */
    double new_share;
    const char *keep;
} settings = {
    .services = 100, .hosts = 5, .hours = 26, .window_s = 60, .rows = 100, .new_share = 0.001};

static _Atomic int64_t now_ns = BEGIN;

static int64_t simulated_clock(void *context)
{
    (void)context;
    return now_ns;
}

static double cpu_seconds(void)
{
    return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*seed >> 33);
}

/* ---- the fleet: each service's stacks as function numbers ---- */

struct stack {
    uint16_t functions[DEPTH_MAX];
    uint8_t depth;
};

static struct stack *stacks; /* services x STACKS */

static void extend(struct stack *stack, uint64_t *seed)
{
    unsigned more = 3 + next_random(seed) % 6;
    while (more-- && stack->depth < DEPTH_MAX)
        stack->functions[stack->depth++] = (uint16_t)(next_random(seed) % FUNCTIONS);
}

/* Each leaves an earlier stack near its end, as call graphs do. */
static void make_stacks(void)
{
    stacks = memory_zalloc((size_t)settings.services * STACKS, sizeof(*stacks));
    for (unsigned service = 0; service < settings.services; service++) {
        uint64_t seed = service + 1;
        struct stack *list = stacks + (size_t)service * STACKS;
        for (unsigned i = 0; i < STACKS; i++) {
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
    push->rows = memory_zalloc((size_t)count * settings.rows, sizeof(*push->rows));
    profile_init(&push->profile, PROFILE_ALL);
    for (unsigned i = 0; i < count; i++) {
        unsigned service = first_service + i;
        struct store_row *rows = push->rows + (size_t)i * settings.rows;
        snprintf(text, sizeof(text), "service%u", service);
        labels_set(&push->labels[i], "service_name", text);
        labels_set(&push->labels[i], "version", "1");
        snprintf(text, sizeof(text), "host%u", host);
        labels_set(&push->labels[i], "host", text);
        for (unsigned k = 0; k < settings.rows; k++) {
            double at = next_random(seed) / 2147483648.0;
            unsigned pick = (unsigned)(at * at * at * STACKS); /* few are hot */
            struct stack stack = stacks[(size_t)service * STACKS + MIN(pick, STACKS - 1u)];
            if (next_random(seed) / 2147483648.0 < settings.new_share)
                extend(&stack, seed);
            rows[k] = (struct store_row){.node = intern(&push->profile, service, &stack),
                                         .value = (1 + (next_random(seed) % 8 == 0)) * 10101010};
        }
        push->windows[i] = (struct store_profile){.labels = &push->labels[i],
                                                  .type = TYPE,
                                                  .time_ns = time_ns,
                                                  .duration_ns = settings.window_s * SECOND,
                                                  .profile = &push->profile,
                                                  .rows = rows,
                                                  .row_count = settings.rows};
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
    unsigned number, windows; /* how many windows of each series, from now_ns on */
    unsigned tenth;           /* services of one push */
    double making_s;          /* CPU time for making pushes up */
    uint64_t rows, pushes;
};

static void *send_all(void *context)
{
    struct sender *sender = context;
    uint64_t seed = 1000 + sender->number + (uint64_t)now_ns;
    unsigned job = 0;
    for (unsigned w = 0; w < sender->windows; w++)
        for (unsigned host = 0; host < settings.hosts; host++)
            for (unsigned first = 0; first < settings.services; first += sender->tenth) {
                if (job++ % SENDERS != sender->number)
                    continue;
                struct push push;
                int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                make_push(&push, host, first, MIN(sender->tenth, settings.services - first),
                          now_ns + (int64_t)w * settings.window_s * SECOND, &seed);
                sender->making_s += (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
                struct error error;
                struct store_batch batch = {
                    .tenant = sender->tenant, .profiles = push.windows, .count = push.count};
                if (store_write(sender->store, &batch, &error) < 0) {
                    fprintf(stderr, "%s\n", error.text);
                    exit(1);
                }
                before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                sender->rows += (uint64_t)push.count * settings.rows;
                sender->pushes++;
                push_release(&push);
                sender->making_s += (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
            }
    return NULL;
}

/* All series' windows of some time; gives CPU seconds of the store and rows. */
static double send_some(struct store *store, const char *tenant, unsigned windows, uint64_t *rows,
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
                                     .tenth = MAX(1u, (1000 + settings.rows - 1) / settings.rows)};
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

/* Millions of rows a second: a tenant of its own, whose common stacks are known from before. */
static double append_rate(struct store *store, const char *tenant)
{
    uint64_t rows = 0, pushes = 0;
    double share = settings.new_share;
    settings.new_share = 0;
    send_some(store, tenant, 30, &rows, &pushes);
    settings.new_share = share;
    rows = 0;
    double seconds = send_some(store, tenant, 20, &rows, &pushes);
    return (double)rows / seconds / 1e6;
}

static double maintain(struct store *store)
{
    struct error error;
    double before = cpu_seconds();
    int r;
    while ((r = store_maintain(store, NULL, &error)) == 1)
        ;
    if (r < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return cpu_seconds() - before;
}

/* ---- results ---- */

static bool missed;

static void line(bool held, const char *what, double got, const char *unit, const char *bar)
{
    missed |= !held;
    printf("%-6s %-46s %12.2f %-14s %s\n", *bar ? held ? "held" : "MISSED" : "", what, got, unit,
           bar);
}

static double merge(struct store *store, const struct store_selection *selection,
                    const struct store_limits *limits, struct store_quality *quality,
                    double *wall_s)
{
    struct error error;
    struct profile profile;
    profile_init(&profile, 0);
    double before = cpu_seconds();
    int64_t start = monotonic_ns();
    if (store_merge(store, selection, limits, &profile, quality, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    *wall_s = (double)(monotonic_ns() - start) / 1e9;
    double cpu = cpu_seconds() - before;
    profile_release(&profile);
    return cpu;
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct store *open_store(const char *directory)
{
    struct store_options options = {.directory = directory,
                                    .now = simulated_clock,
                                    .commit_ms = 50,
                                    .memory_limit_bytes = 1u << 30};
    struct store *store;
    struct error error;
    if (store_open_embedded(&options, &store, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return store;
}

static void measure_reading(struct store *store)
{
    struct store_selection selection = {
        .tenant = "bench", .type = TYPE, .from_ns = BEGIN, .to_ns = BEGIN + settings.hours * HOUR};
    struct store_limits limits = {
        .raw_only = true, .smallest_share = 1e-4, .memory_bytes = 1u << 30};
    struct store_quality quality;
    double wall, best = 1e9;
    for (int i = 0; i < 3; i++)
        best = MIN(best, merge(store, &selection, &limits, &quality, &wall));
    line((double)quality.rows / best >= 150e6, "merge scan, raw blocks, all services",
         (double)quality.rows / best / 1e6, "M rows/s", ">= 150 a core");
    limits.raw_only = false;
    double cpu[50], walls[50];
    uint64_t seed = 7;
    for (size_t i = 0; i < ARRAY_LENGTH(cpu); i++) {
        int64_t length = settings.hours > 24 ? DAY : settings.hours * HOUR / 2;
        int64_t room = settings.hours * HOUR - length;
        selection.from_ns = BEGIN + (int64_t)next_random(&seed) % (room / SECOND) * SECOND;
        selection.to_ns = selection.from_ns + length;
        cpu[i] = merge(store, &selection, &limits, &quality, &walls[i]);
    }
    qsort(cpu, ARRAY_LENGTH(cpu), sizeof(*cpu), compare_numbers);
    qsort(walls, ARRAY_LENGTH(walls), sizeof(*walls), compare_numbers);
    line(true, "flame graph of a day, any start, p50 CPU", cpu[25] * 1e3, "ms", "");
    line(cpu[49] <= 0.2, "flame graph of a day, any start, p99 CPU", cpu[49] * 1e3, "ms",
         "<= 200 (on 2 cores)");
    line(true, "the same, p99 by the clock", walls[49] * 1e3, "ms", "");
    selection.from_ns = BEGIN;
    selection.to_ns = BEGIN + DAY;
    limits.smallest_share = 0;
    double exact = merge(store, &selection, &limits, &quality, &wall);
    line(true, "a whole day exactly, every stack of it", exact * 1e3, "ms", "");
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"services", required_argument, NULL, 's'}, {"hosts", required_argument, NULL, 'H'},
        {"hours", required_argument, NULL, 'h'},    {"window", required_argument, NULL, 'w'},
        {"rows", required_argument, NULL, 'r'},     {"new", required_argument, NULL, 'n'},
        {"keep", required_argument, NULL, 'k'},     {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        unsigned number = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;
        if (option == 'k')
            settings.keep = optarg;
        else if (option == 'n')
            settings.new_share = strtod(optarg, NULL);
        else if (!number || option == '?')
            exit(2);
        else
            *(option == 's'   ? &settings.services
              : option == 'H' ? &settings.hosts
              : option == 'h' ? &settings.hours
              : option == 'w' ? &settings.window_s
                              : &settings.rows) = number;
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    char made[] = "/tmp/bench-store.XXXXXX";
    const char *directory = settings.keep ? settings.keep : mkdtemp(made);
    struct utsname system_name;
    uname(&system_name);
    printf("%u services x %u hosts, a window each %u s of %u rows, %.0f%% new stacks, %u hours; "
           "Linux %s, %ld CPUs\n",
           settings.services, settings.hosts, settings.window_s, settings.rows,
           settings.new_share * 100, settings.hours, system_name.release,
           sysconf(_SC_NPROCESSORS_ONLN));
    make_stacks();
    struct store *store = open_store(directory);
    uint64_t rows = 0, pushes = 0;
    double writing = 0, keeping = 0;
    for (unsigned hour = 0; hour < settings.hours; hour++) {
        writing += send_some(store, "bench", 3600 / settings.window_s, &rows, &pushes);
        now_ns += HOUR;
        keeping += maintain(store);
    }
    now_ns += HOUR;
    keeping += maintain(store);
    printf("%llu million rows in %llu pushes\n", (unsigned long long)rows / 1000000,
           (unsigned long long)pushes);
    line(true, "appended and durable, few new stacks", (double)rows / writing / 1e6, "M rows/s",
         "");
    line(true, "compaction and rollups", (double)rows / keeping / 1e6, "M rows/s", "");
    store_close(store);
    store = open_store(directory);
    struct store_stats stats;
    if (store_stats(store, &stats, NULL) < 0 || stats.rows < rows / 2)
        exit(1);
    line((double)stats.bytes[STORE_RAW] / (double)stats.rows <= 2, "raw files",
         (double)stats.bytes[STORE_RAW] / (double)stats.rows, "bytes/row", "<= 2");
    line(true, "ten-minute, hour and day rollups",
         (double)(stats.bytes[1] + stats.bytes[2] + stats.bytes[3]) / (double)stats.rows,
         "bytes/row", "");
    measure_reading(store);
    settings.new_share = 0.05;
    double some = append_rate(store, "five");
    line(some >= 1, "appended and durable, 5% new stacks", some, "M rows/s", ">= 1 a core");
    settings.new_share = 1;
    line(true, "appended and durable, all stacks new", append_rate(store, "all"), "M rows/s", "");
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    line(true, "memory at its peak", (double)usage.ru_maxrss / 1024, "MiB", "");
    store_close(store);
    free(stacks);
    if (!settings.keep) {
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", directory);
        if (system(command))
            return 1;
    }
    return missed;
}
