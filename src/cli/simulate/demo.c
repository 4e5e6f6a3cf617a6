// SPDX-License-Identifier: Apache-2.0
// `assay demo`: a small simulated web shop, as an example to profile. Two versions of it run under
// the same load; in the second, looking up discounts is slow.

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/simulate/simulate.h"

#define SERVICE "demo-shop"
#define WORKERS 3
#define QUEUE_MAX 64
#define ORDERS_PER_SECOND 150
#define ORDERS_PER_SECOND_MAX 10000
#define DISCOUNTS 16384
#define ITEMS 24
#define LINE_BYTES 64
/* It shall be seen as what it is called. */
#define STEP __attribute__((noinline, noclone))

struct discount {
    char code[16];
    unsigned percent;
};

struct order {
    char text[ITEMS * LINE_BYTES]; /* "code quantity price" lines */
    struct {
        char code[16];
        unsigned quantity, price;
    } items[ITEMS];
    size_t count;
    uint64_t total;
};

struct shop {
    bool slow; /* version 2 */
    unsigned orders_per_second;
    struct discount discounts[DISCOUNTS]; /* by code */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned queue[QUEUE_MAX]; /* seeds of orders */
    size_t queued;
    uint64_t done, turned_away, revenue;
    bool closing;
};

static atomic_bool stopping;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&stopping, true);
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* ---- what the shop does ---- */

STEP static void parse_order(struct order *order)
{
    char *save = NULL;
    order->count = 0;
    for (char *line = strtok_r(order->text, "\n", &save); line && order->count < ITEMS;
         line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%15s %u %u", order->items[order->count].code,
                   &order->items[order->count].quantity, &order->items[order->count].price) == 3)
            order->count++;
    }
}

static int compare_code(const void *code, const void *discount)
{
    return strcmp(code, ((const struct discount *)discount)->code);
}

/* As it was in version 1. */
STEP static unsigned find_discount(const struct shop *shop, const char *code)
{
    const struct discount *found =
        bsearch(code, shop->discounts, DISCOUNTS, sizeof(struct discount), compare_code);
    return found ? found->percent : 0;
}

static inline bool same_letters(const char *a, const char *b)
{
    while (*a && (*a | 0x20) == (*b | 0x20))
        a++, b++;
    return !*a && !*b;
}

/* Version 2 takes any case, and looks at all of them to do so: the planted regression. */
STEP static unsigned find_discount_any_case(const struct shop *shop, const char *code)
{
    unsigned percent = 0;
    for (size_t i = 0; i < DISCOUNTS; i++)
        if (same_letters(code, shop->discounts[i].code))
            percent = shop->discounts[i].percent;
    return percent;
}

STEP static void price_order(const struct shop *shop, struct order *order)
{
    order->total = 0;
    for (size_t i = 0; i < order->count; i++) {
        const char *code = order->items[i].code;
        unsigned percent =
            shop->slow ? find_discount_any_case(shop, code) : find_discount(shop, code);
        order->total +=
            (uint64_t)order->items[i].quantity * order->items[i].price * (100 - percent);
    }
}

STEP static uint64_t sign_receipt(const char *text, size_t length)
{
    uint64_t sum = 14695981039346656037ull;
    for (int round = 0; round < 1000; round++)
        for (size_t i = 0; i < length; i++)
            sum = (sum ^ (uint8_t)text[i]) * 1099511628211ull;
    return sum;
}

STEP static uint64_t render_receipt(const struct order *order)
{
    char text[ITEMS * LINE_BYTES];
    size_t length = 0;
    for (size_t i = 0; i < order->count; i++)
        length += (size_t)snprintf(text + length, LINE_BYTES, "%2u x %-16s %8.2f\n",
                                   order->items[i].quantity, order->items[i].code,
                                   order->items[i].price / 100.0);
    return sign_receipt(text, length);
}

STEP static void receive_order(unsigned seed, struct order *order)
{
    size_t length = 0;
    for (int i = 0; i < ITEMS; i++) {
        unsigned code = next_random(&seed) % (2 * DISCOUNTS), quantity = next_random(&seed) % 9;
        length += (size_t)snprintf(order->text + length, LINE_BYTES, "CODE%06u %u %u\n", code,
                                   quantity + 1, next_random(&seed) % 10000);
    }
}

STEP static uint64_t handle_order(const struct shop *shop, unsigned seed)
{
    struct order order;
    receive_order(seed, &order);
    parse_order(&order);
    price_order(shop, &order);
    return order.total + (render_receipt(&order) & 1);
}

/* ---- threads ---- */

static void *work(void *argument)
{
    struct shop *shop = argument;
    pthread_mutex_lock(&shop->lock);
    for (;;) {
        while (!shop->queued && !shop->closing)
            pthread_cond_wait(&shop->changed, &shop->lock);
        if (shop->closing)
            break;
        unsigned seed = shop->queue[--shop->queued];
        pthread_mutex_unlock(&shop->lock);
        uint64_t revenue = handle_order(shop, seed);
        pthread_mutex_lock(&shop->lock);
        shop->done++;
        shop->revenue += revenue;
    }
    pthread_mutex_unlock(&shop->lock);
    return NULL;
}

/* The load: orders at an even rate, whatever becomes of them. */
static void send_orders(struct shop *shop, double seconds)
{
    unsigned seed = 1;
    int64_t began = monotonic_ns();
    for (uint64_t sent = 0; !atomic_load(&stopping); sent++) {
        int64_t due = began + (int64_t)((double)sent * 1e9 / shop->orders_per_second);
        int64_t left = due - monotonic_ns();
        if (seconds > 0 && (double)(due - began) >= seconds * 1e9)
            return;
        if (left > 0)
            nanosleep(&(struct timespec){left / 1000000000, left % 1000000000}, NULL);
        pthread_mutex_lock(&shop->lock);
        if (shop->queued == QUEUE_MAX)
            shop->turned_away++;
        else
            shop->queue[shop->queued++] = next_random(&seed);
        pthread_cond_signal(&shop->changed);
        pthread_mutex_unlock(&shop->lock);
    }
}

static int run_shop(unsigned version, unsigned orders_per_second, double seconds)
{
    struct shop *shop = memory_zalloc(1, sizeof(*shop));
    pthread_t workers[WORKERS];
    size_t started = 0;
    shop->slow = version == 2;
    shop->orders_per_second = orders_per_second;
    pthread_mutex_init(&shop->lock, NULL);
    pthread_cond_init(&shop->changed, NULL);
    for (unsigned i = 0; i < DISCOUNTS; i++) {
        snprintf(shop->discounts[i].code, sizeof(shop->discounts[i].code), "CODE%06u", 2 * i);
        shop->discounts[i].percent = i % 50;
    }
    while (started < WORKERS && !pthread_create(&workers[started], NULL, work, shop))
        started++;
    if (started)
        send_orders(shop, seconds);
    pthread_mutex_lock(&shop->lock);
    shop->closing = true;
    pthread_cond_broadcast(&shop->changed);
    pthread_mutex_unlock(&shop->lock);
    for (size_t i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
    double cpu_ms = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
    printf(SERVICE " %u.0: %llu orders, %.2f ms of CPU time each", version,
           (unsigned long long)shop->done, shop->done ? cpu_ms / (double)shop->done : 0);
    if (shop->turned_away)
        printf("; %llu were rejected", (unsigned long long)shop->turned_away);
    printf("\n");
    free(shop);
    return started ? EXIT_FINE : EXIT_FAILED;
}

/* ---- processes ---- */

/* Profilers read the environment that a program was started with, so it is started again. */
static void become(unsigned version, unsigned orders_per_second, double seconds)
{
    char number[16], rate[24], duration[32], attributes[64];
    snprintf(number, sizeof(number), "%u", version);
    snprintf(rate, sizeof(rate), "%u", orders_per_second);
    snprintf(duration, sizeof(duration), "%.3f", seconds);
    snprintf(attributes, sizeof(attributes), "service.version=%u.0", version);
    setenv("OTEL_SERVICE_NAME", SERVICE, 1);
    setenv("OTEL_RESOURCE_ATTRIBUTES", attributes, 1);
    execl("/proc/self/exe", "assay-simulate", "demo", "--run", number, "--rate", rate, "--seconds",
          duration, NULL);
    perror("assay: failed to restart the program");
    _exit(127);
}

static int run_versions(unsigned only, unsigned orders_per_second, double seconds)
{
    pid_t children[2] = {0}, parent = getpid();
    int code = EXIT_FINE, status;
    fprintf(stderr,
            "assay: " SERVICE " runs%s, with %u orders a second each; press Ctrl-C to stop\n",
            only == 1   ? " in version 1.0"
            : only == 2 ? " in version 2.0"
                        : " in versions 1.0 and 2.0",
            orders_per_second);
    for (unsigned version = 1; version <= 2; version++) {
        if (only && only != version)
            continue;
        pid_t child = fork();
        if (!child) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            if (getppid() != parent)
                _exit(1);
            become(version, orders_per_second, seconds);
        }
        children[version - 1] = child;
    }
    for (unsigned i = 0; i < 2; i++) {
        while (children[i] > 0 && waitpid(children[i], &status, 0) < 0)
            if (errno == EINTR && atomic_load(&stopping))
                for (unsigned j = 0; j < 2; j++)
                    if (children[j] > 0)
                        kill(children[j], SIGTERM);
        if (children[i] < 0 || (children[i] && status))
            code = EXIT_FAILED;
        children[i] = 0;
    }
    return code;
}

int simulate_shop(int argc, char **argv)
{
    uint64_t run = 0, only = 0, rate = ORDERS_PER_SECOND;
    double seconds = 0;
    const struct option own[] = {
        {"only", 'o', OPTION_COUNT, "N", "only version 1 or 2 (default: both)", &only},
        {"seconds", 's', OPTION_NUMBER, "S", "stop after this time (default: at Ctrl-C)", &seconds},
        {"rate", 'r', OPTION_COUNT, "N", "orders per second for each version (150)", &rate},
        {"run", 0, OPTION_COUNT, "N", "run this version in the same process", &run},
        {0}};
    struct command_line line = {
        .command = "demo",
        .arguments = "",
        .summary = "A sample service in two versions, the second of which is slower, to profile "
                   "with\n`assay up`.",
        .options = own,
        .least = 0,
        .most = 0,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    if (only > 2 || run > 2)
        return options_wrong("demo", "The version must be 1 or 2.");
    if (!rate || rate > ORDERS_PER_SECOND_MAX)
        return options_wrong("demo", "--rate must be from 1 to %d.", ORDERS_PER_SECOND_MAX);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    return run ? run_shop((unsigned)run, (unsigned)rate, seconds)
               : run_versions((unsigned)only, (unsigned)rate, seconds);
}
