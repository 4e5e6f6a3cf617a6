// SPDX-License-Identifier: Apache-2.0
// bench-store: the embedded store without a server. Fills a directory with a made-up fleet's
// profiles as senders would, keeps house, and asks what dashboards ask. Times are CPU time of all
// threads, so that a busy machine changes little. README.md says what is measured.

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "label/selector.h"
#include "store_fleet.h"

#define TRIES 40

static const char *keep; /* a directory that stays */
static bool reuse;       /* and is filled already */
static unsigned label_services = 100, label_series = 1000, label_days = 14;

static bool missed;

static int64_t fleet_clock(void *context)
{
    (void)context;
    return fleet_now_ns;
}

static void check(int result, const struct error *error)
{
    if (result < 0) {
        fprintf(stderr, "%s\n", error->text);
        exit(1);
    }
}

static void line(bool held, const char *what, double got, const char *unit, const char *bar)
{
    missed |= !held;
    printf("%-6s %-52s %10.2f %-10s %s\n", *bar ? held ? "held" : "MISSED" : "", what, got, unit,
           bar);
    fflush(stdout);
}

static struct store *open_store(const char *directory)
{
    struct store_options options = {.directory = directory,
                                    .now = fleet_clock,
                                    .commit_ms = 50,
                                    .memory_limit_bytes = 1u << 30};
    struct store *store;
    struct error error;
    check(store_open_embedded(&options, &store, &error), &error);
    return store;
}

static double maintain(struct store *store)
{
    struct error error;
    double before = cpu_seconds();
    int r;
    while ((r = store_maintain(store, NULL, &error)) == 1)
        ;
    check(r, &error);
    return cpu_seconds() - before;
}

/* ---- what is asked ---- */

static int ignore_points(void *context, const struct labels *group,
                         const struct store_point *points, size_t count)
{
    (void)group;
    (void)points;
    *(size_t *)context += count;
    return 0;
}

static int ignore_text(void *context, const char *text)
{
    (void)text;
    ++*(size_t *)context;
    return 0;
}

static int ignore_series(void *context, const struct labels *labels, const char *type,
                         int64_t first_ns, int64_t last_ns)
{
    (void)labels;
    (void)type;
    (void)first_ns;
    (void)last_ns;
    ++*(size_t *)context;
    return 0;
}

enum query_context { MERGE, POINTS, TYPES, NAMES, VALUES, SERIES };

struct ask {
    enum query_context query_context;
    struct store_selection selection;
    struct store_limits limits;
    struct store_timeseries_query points;
    struct store_quality quality; /* of the last answer */
    size_t count;                 /* of what it gave */
};

static void ask(struct store *store, struct ask *ask)
{
    struct error error;
    struct profile profile;
    int r = 0;
    ask->count = 0;
    switch (ask->query_context) {
    case MERGE:
        profile_init(&profile, 0);
        r = store_merge(store, &ask->selection, &ask->limits, &profile, &ask->quality, &error);
        ask->count = profile.samples.count;
        profile_release(&profile);
        break;
    case POINTS:
        r = store_timeseries(store, &ask->selection, &ask->points, &ask->limits, ignore_points,
                             &ask->count, &ask->quality, &error);
        break;
    case TYPES:
        r = store_types(store, &ask->selection, ignore_text, &ask->count, &error);
        break;
    case NAMES:
        r = store_label_names(store, &ask->selection, ignore_text, &ask->count, &error);
        break;
    case VALUES:
        r = store_label_values(store, &ask->selection, "service_name", ignore_text, &ask->count,
                               &error);
        break;
    case SERIES:
        r = store_series(store, &ask->selection, ignore_series, &ask->count, &error);
        break;
    }
    check(r, &error);
    if (!ask->count) {
        fprintf(stderr, "A question had no answer.\n");
        exit(1);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* CPU milliseconds: the middle one and the worst but one of a hundred, which is the worst here;
 * and of the first one, which finds nothing in memory. */
struct times {
    double p50_ms, p99_ms, first_ms;
    double clock_ms; /* the middle one's by the clock */
};

/* `length_ns` from any second of what is there. */
static struct times ask_often(struct store *store, struct ask *query_context, int64_t length_ns,
                              unsigned tries)
{
    double cpu[TRIES], passed[TRIES], first = 0;
    uint64_t seed = 7;
    int64_t room = fleet.hours * HOUR - length_ns;
    for (unsigned i = 0; i <= tries; i++) {
        int64_t offset = room > 0 ? (int64_t)next_random(&seed) % (room / SECOND) * SECOND : 0;
        query_context->selection.from_ns = FLEET_BEGIN_NS + offset;
        query_context->selection.to_ns = query_context->selection.from_ns + length_ns;
        double before = cpu_seconds();
        int64_t clock_before = monotonic_ns();
        ask(store, query_context);
        double seconds = cpu_seconds() - before;
        if (!i) {
            first = seconds;
            continue;
        }
        cpu[i - 1] = seconds;
        passed[i - 1] = (double)(monotonic_ns() - clock_before) / 1e9;
    }
    qsort(cpu, tries, sizeof(*cpu), compare_numbers);
    qsort(passed, tries, sizeof(*passed), compare_numbers);
    return (struct times){.p50_ms = cpu[tries / 2] * 1e3,
                          .p99_ms = cpu[tries - 1] * 1e3,
                          .first_ms = first * 1e3,
                          .clock_ms = passed[tries / 2] * 1e3};
}

static void time_lines(struct times times, const char *what, double bar_ms)
{
    char text[96], bar[32] = "";
    snprintf(text, sizeof(text), "%s, p50", what);
    line(true, text, times.p50_ms, "ms", "");
    if (bar_ms)
        snprintf(bar, sizeof(bar), "<= %.0f", bar_ms);
    snprintf(text, sizeof(text), "%s, p99", what);
    line(!bar_ms || times.p99_ms <= bar_ms, text, times.p99_ms, "ms", bar);
}

/* ---- measurements ---- */

/* A day, or most of what is there, in whole hours. */
static int64_t long_range(void)
{
    return fleet.hours > 24 ? DAY : fleet.hours * 3 / 4 * HOUR;
}

static void measure_scan(struct store *store)
{
    struct ask whole = {.query_context = MERGE,
                        .selection = {.tenant = "bench",
                                      .type = FLEET_TYPE,
                                      .from_ns = FLEET_BEGIN_NS,
                                      .to_ns = FLEET_BEGIN_NS + fleet.hours * HOUR},
                        .limits = {.raw_only = true, .smallest_share = 1e-4}};
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        double before = cpu_seconds();
        ask(store, &whole);
        best = MIN(best, cpu_seconds() - before);
    }
    line((double)whole.quality.rows / best >= 150e6, "merge scan, raw blocks, all services",
         (double)whole.quality.rows / best / 1e6, "M rows/s", ">= 150 a core");
    /* Half an hour of each block's hour has to be taken apart row by row. */
    double cpu = 0, rows = 0;
    for (unsigned hour = 0; hour < fleet.hours; hour++) {
        whole.selection.from_ns = FLEET_BEGIN_NS + hour * HOUR;
        whole.selection.to_ns = whole.selection.from_ns + HOUR / 2;
        double before = cpu_seconds();
        ask(store, &whole);
        cpu += cpu_seconds() - before;
        rows += 2.0 * (double)whole.quality.rows;
    }
    line(true, "the same by half hours, rows that are passed over too", rows / cpu / 1e6,
         "M rows/s", "");
}

static void measure_flames(struct store *store)
{
    struct ask flame = {.query_context = MERGE,
                        .selection = {.tenant = "bench", .type = FLEET_TYPE},
                        .limits = {.smallest_share = 1e-4}};
    int64_t day = long_range();
    char text[96];
    snprintf(text, sizeof(text), "flame graph of %lld h, all services", (long long)(day / HOUR));
    struct times times = ask_often(store, &flame, day, TRIES);
    time_lines(times, text, 200);
    line(true, "  p50 by the clock, two threads", times.clock_ms, "ms", "");
    line(true, "  the first after a start, which reads stacks and names", times.first_ms, "ms", "");
    time_lines(ask_often(store, &flame, HOUR, TRIES), "flame graph of 1 h, all services", 0);
    flame.limits.raw_only = true;
    snprintf(text, sizeof(text), "the same from raw data");
    time_lines(ask_often(store, &flame, day, 10), text, 0);
    flame.limits = (struct store_limits){0};
    time_lines(ask_often(store, &flame, day, 5), "the same, every stack of it", 0);
    struct selector selector;
    struct error error;
    const char *one = "{service_name=\"service7\"}";
    check(selector_parse(one, strlen(one), &selector, &error), &error);
    flame.selection.selector = &selector;
    time_lines(ask_often(store, &flame, day, TRIES), "the same of one service", 0);
    selector_release(&selector);
}

static void measure_points(struct store *store)
{
    static const char *const version[] = {"version"}, *const host[] = {"host"};
    struct selector selector;
    struct error error;
    const char *one = "{service_name=\"service7\"}";
    check(selector_parse(one, strlen(one), &selector, &error), &error);
    int64_t day = long_range();
    struct ask points = {
        .query_context = POINTS,
        .selection = {.tenant = "bench", .type = FLEET_TYPE, .selector = &selector},
        .points = {.step_ns = 60 * SECOND}};
    time_lines(ask_often(store, &points, day, TRIES), "time series of a service, 1 min steps", 0);
    points.points.function = &(const struct store_function){.name = "library::module0::function17"};
    time_lines(ask_often(store, &points, day, TRIES), "of one function, flat", 0);
    points.points.count = STORE_CUMULATIVE;
    time_lines(ask_often(store, &points, day, TRIES), "of one function, cumulative", 0);
    points.points =
        (struct store_timeseries_query){.step_ns = 60 * SECOND, .group_by = host, .group_count = 1};
    time_lines(ask_often(store, &points, day, TRIES), "by host", 0);
    points.selection.selector = NULL;
    points.points = (struct store_timeseries_query){
        .step_ns = 600 * SECOND, .group_by = version, .group_count = 1};
    time_lines(ask_often(store, &points, day, 10), "all services, 10 min steps, by version", 0);
    selector_release(&selector);
}

static void measure_labels(struct store *store, const char *tenant, int64_t from_ns)
{
    static const char *const names[] = {[TYPES] = "profile types",
                                        [NAMES] = "label names",
                                        [VALUES] = "values of service_name",
                                        [SERIES] = "series"};
    struct selector selector;
    struct error error;
    const char *one = "{service_name=\"service7\"}";
    check(selector_parse(one, strlen(one), &selector, &error), &error);
    for (unsigned limited = 0; limited < 2; limited++)
        for (unsigned query_context = TYPES; query_context <= SERIES; query_context++) {
            struct ask labels = {.query_context = query_context,
                                 .selection = {.tenant = tenant,
                                               .from_ns = from_ns + HOUR,
                                               .to_ns = fleet_now_ns,
                                               .selector = limited ? &selector : NULL}};
            double best = 1e9, first = 0;
            char text[96];
            for (unsigned i = 0; i < 5; i++) {
                double before = cpu_seconds();
                ask(store, &labels);
                best = MIN(best, cpu_seconds() - before);
                first = i ? first : cpu_seconds() - before;
            }
            snprintf(text, sizeof(text), "%s%s (%zu)", names[query_context],
                     limited ? " of one service" : "", labels.count);
            /* All series are an answer of their own size. */
            bool all = !limited && query_context == SERIES;
            line(all || best <= 0.01, text, best * 1e3, "ms", all ? "" : "<= 10");
            if (!limited && query_context == TYPES)
                line(true, "  the first after a start, which reads all series", first * 1e3, "ms",
                     "");
        }
    selector_release(&selector);
}

/* Millions of rows a second: a tenant of its own, whose stacks are known from before. */
static double append_rate(struct store *store, const char *tenant, double new_share)
{
    uint64_t rows = 0, pushes = 0;
    fleet.new_share = 0;
    fleet.in_turn = true;
    fleet_send(store, tenant, FLEET_STACKS / fleet.rows + 1, &rows, &pushes);
    fleet.in_turn = false;
    fleet.new_share = new_share;
    rows = 0;
    double seconds = fleet_send(store, tenant, 20, &rows, &pushes);
    return (double)rows / seconds / 1e6;
}

/* Fills an empty store, an hour at a time, and says what that took. */
static void fill(struct store *store)
{
    uint64_t rows = 0, pushes = 0;
    double writing = 0, keeping = 0;
    for (unsigned hour = 0; hour < fleet.hours; hour++) {
        writing += fleet_send(store, "bench", 3600 / fleet.window_s, &rows, &pushes);
        fleet_now_ns += HOUR;
        keeping += maintain(store);
    }
    fleet_now_ns += HOUR;
    keeping += maintain(store);
    line(true, "appended and durable, few new stacks", (double)rows / writing / 1e6, "M rows/s",
         "");
    line(true, "compaction and rollups", (double)rows / keeping / 1e6, "M rows/s", "");
}

/* The first day's raw file: of the day after there is an hour, with a tree of its own. */
static double first_day_bytes(const char *directory)
{
    char path[512];
    struct stat status;
    snprintf(path, sizeof(path), "%s/bench/raw-default-2024-10-04.assay", directory);
    if (stat(path, &status) < 0) {
        perror(path);
        exit(1);
    }
    return (double)status.st_size;
}

static void measure_size(struct store *store, const char *directory)
{
    struct store_stats stats;
    struct error error;
    check(store_stats(store, &stats, &error), &error);
    struct ask day = {.query_context = MERGE,
                      .selection = {.tenant = "bench",
                                    .type = FLEET_TYPE,
                                    .from_ns = FLEET_BEGIN_NS,
                                    .to_ns = FLEET_BEGIN_NS + DAY},
                      .limits = {.raw_only = true, .smallest_share = 1}};
    ask(store, &day);
    double bytes = first_day_bytes(directory) / (double)day.quality.rows;
    printf("%llu million rows in %llu windows of %u series, %u distinct stacks a service\n",
           (unsigned long long)stats.rows / 1000000, (unsigned long long)stats.windows,
           fleet.services * fleet.hosts, FLEET_STACKS);
    /* What stacks and names take is shared by the rows of a day: fewer hours say little. */
    bool whole = fleet.hours >= 24;
    line(!whole || bytes <= 2, "a day's raw file, stacks and names included", bytes, "bytes/row",
         whole ? "<= 2" : "");
    line(true, "ten-minute, hour and day rollups",
         (double)(stats.bytes[1] + stats.bytes[2] + stats.bytes[3]) / (double)stats.rows,
         "bytes/row", "");
}

/* ---- the program ---- */

static void parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"services", required_argument, NULL, 's'}, {"hosts", required_argument, NULL, 'H'},
        {"hours", required_argument, NULL, 'h'},    {"window", required_argument, NULL, 'w'},
        {"rows", required_argument, NULL, 'r'},     {"new", required_argument, NULL, 'n'},
        {"keep", required_argument, NULL, 'k'},     {"reuse", no_argument, NULL, 'u'},
        {"quick", no_argument, NULL, 'q'},          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        unsigned number = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;
        if (option == 'q') {
            fleet.hours = 5;
            label_series = 100;
            label_days = 5;
        } else if (option == 'u') {
            reuse = true;
        } else if (option == 'k') {
            keep = optarg;
        } else if (option == 'n') {
            fleet.new_share = strtod(optarg, NULL);
        } else if (!number || option == '?') {
            exit(2);
        } else {
            *(option == 's'   ? &fleet.services
              : option == 'H' ? &fleet.hosts
              : option == 'h' ? &fleet.hours
              : option == 'w' ? &fleet.window_s
                              : &fleet.rows) = number;
        }
    }
}

/* On a store that is opened anew, which is left open. */
static struct store *measure_series(struct store *store, const char *directory)
{
    int64_t from = fleet_now_ns;
    for (unsigned day = 0; day < label_days; day++) {
        fleet_send_series(store, "labels", label_services, label_series);
        fleet_now_ns += DAY;
    }
    maintain(store);
    store_close(store);
    store = open_store(directory);
    printf("%u services x %u series on each of %u days\n", label_services, label_series,
           label_days);
    measure_labels(store, "labels", from - 2 * HOUR);
    return store;
}

static void print_machine(void)
{
    struct utsname system_name;
    char model[128] = "";
    uname(&system_name);
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(model, sizeof(model), file) && strncmp(model, "model name", 10))
        ;
    if (file)
        fclose(file);
    model[strcspn(model, "\n")] = '\0';
    const char *name = strchr(model, ':');
    printf("Linux %s, %ld CPUs%s\n", system_name.release, sysconf(_SC_NPROCESSORS_ONLN),
           name ? name : "");
    printf("%u services x %u hosts, a window each %u s of %u rows, %.1f%% new stacks, %u hours\n",
           fleet.services, fleet.hosts, fleet.window_s, fleet.rows, fleet.new_share * 100,
           fleet.hours);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    char made[] = "/tmp/bench-store.XXXXXX";
    const char *directory = keep ? keep : mkdtemp(made);
    print_machine();
    fleet_make();
    struct store *store = open_store(directory);
    if (reuse)
        fleet_now_ns += (fleet.hours + 1) * HOUR;
    else
        fill(store);
    store_close(store);
    store = open_store(directory);
    measure_size(store, directory);
    measure_scan(store);
    measure_flames(store);
    measure_points(store);
    if (!reuse) {
        store = measure_series(store, directory);
        double some = append_rate(store, "five", 0.05);
        line(some >= 1, "appended and durable, 5% new stacks", some, "M rows/s", ">= 1 a core");
        line(true, "appended and durable, all stacks new", append_rate(store, "all", 1), "M rows/s",
             "");
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    line(true, "memory at its peak, the fleet's included", (double)usage.ru_maxrss / 1024, "MiB",
         "");
    store_close(store);
    fleet_release();
    if (!keep) {
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", directory);
        if (system(command))
            return 1;
    }
    return missed;
}
