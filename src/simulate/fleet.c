// SPDX-License-Identifier: Apache-2.0
// The fleet itself: functions of services, libraries and the kernel, and each service's stacks.
//
// Stacks are random walks that mostly leave an earlier stack near its end, as the stacks of a
// server do. They begin in the service's own code, end in it or in libraries that all services
// share, and one in six goes on into the kernel. How often a stack is seen follows Zipf's law.

#include "simulate/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "simulate/parts.h"
#include "simulate/random.h"

#define OWN_FUNCTIONS 400 /* of a service */
#define LIBRARY_FUNCTIONS 300
#define KERNEL_FUNCTIONS 200
#define DEPTH_LEAST 6
#define DEPTH_MOST 64

static const char *const packages[] = {"http",    "cart",   "catalog", "search",
                                       "session", "render", "codec",   "cache",
                                       "queue",   "sql",    "tls",     "template"};
static const char *const objects[] = {"Server", "Handler", "Router", "Request", "Store", "Index",
                                      "Cursor", "Reader",  "Writer", "Encoder", "Entry", "Tree"};
static const char *const verbs[] = {"Serve", "Read", "Write", "Lookup", "Insert", "Encode",
                                    "Parse", "Next", "Scan",  "Merge",  "Hash",   "Close"};

#define PICK(list, number) list[(number) % ARRAY_LENGTH(list)]

static void add_function(struct fleet *fleet, uint32_t binary, uint32_t line, const char *name,
                         const char *file)
{
    fleet->functions[fleet->function_count++] = (struct fleet_function){
        .name = arena_strndup(&fleet->names, name, strlen(name)),
        .file = *file ? arena_strndup(&fleet->names, file, strlen(file)) : "",
        .line = line,
        .binary = binary};
}

static void make_shared(struct fleet *fleet)
{
    char name[128], file[128];
    for (uint32_t i = 0; i < LIBRARY_FUNCTIONS; i++) {
        uint32_t binary = 1 + i % (PARTS_KERNEL - 1);
        snprintf(name, sizeof(name), "%s_%c%s%u", parts_binary(binary)->prefix,
                 PICK(verbs, i / 3)[0] | 0x20, PICK(verbs, i / 3) + 1, i);
        snprintf(file, sizeof(file), "/build/%s/src/part%u.c", parts_binary(binary)->prefix,
                 i / 24);
        add_function(fleet, binary, 10 + i * 7 % 900, name, file);
    }
    for (uint32_t i = 0; i < KERNEL_FUNCTIONS; i++) {
        snprintf(name, sizeof(name), i ? "__do_%c%s_%u" : "entry_SYSCALL_64_after_hwframe",
                 PICK(verbs, i)[0] | 0x20, PICK(verbs, i) + 1, i);
        add_function(fleet, PARTS_KERNEL, 0, name, "");
    }
    fleet->shared_functions = fleet->function_count;
}

static void make_own(struct fleet *fleet, struct fleet_service *service, uint32_t number)
{
    char name[160], file[128];
    service->first_function = fleet->function_count;
    service->jit = number % 4 == 3;
    snprintf(service->name, sizeof(service->name), "service-%03u", number);
    for (uint32_t i = 0; i < OWN_FUNCTIONS; i++) {
        const char *package = PICK(packages, i * ARRAY_LENGTH(packages) / OWN_FUNCTIONS);
        snprintf(name, sizeof(name), "example.org/s%03u/%s.(*%s).%s%u", number, package,
                 PICK(objects, i), PICK(verbs, i / 5), i);
        snprintf(file, sizeof(file), "/src/s%03u/%s/file%u.go", number, package, i / 12);
        add_function(fleet, 0, 10 + i * 13 % 900, i ? name : "main.main", file);
    }
}

/* The next location of a walk that stands in `function`. Locations are call sites: see parts.h. */
static uint32_t step(uint32_t first, uint32_t count, uint32_t *function, struct random *random)
{
    uint32_t local = *function - first;
    uint32_t ahead = local + 1 + random_below(random, 12);
    if (random_percent(random, 8)) /* back, or itself: recursion */
        ahead = local - random_below(random, MIN(local, 10u) + 1);
    uint32_t location = *function * PARTS_SITES + random_below(random, 3);
    *function = first + ahead % count;
    return location;
}

static uint32_t draw_depth(struct random *random)
{
    uint32_t depth = DEPTH_LEAST + random_below(random, 16);
    while (depth < DEPTH_MOST && random_percent(random, 92))
        depth++;
    return depth;
}

uint32_t fleet_walk(const struct fleet *fleet, const struct fleet_service *service, uint32_t *stack,
                    uint32_t length, struct random *random)
{
    uint32_t depth = MAX(draw_depth(random), MIN(length + 2, (uint32_t)DEPTH_MOST));
    uint32_t function = service->first_function;
    if (length) { /* goes on from the function that the last location is in */
        function = stack[length - 1] / PARTS_SITES;
        length--;
    }
    bool kernel = random_percent(random, 16);
    uint32_t own = depth - MIN(kernel ? 6u : 0u, depth / 2);
    if (function >= fleet->shared_functions) {
        while (length + 4 < own)
            stack[length++] = step(service->first_function, OWN_FUNCTIONS, &function, random);
        if (random_percent(random, 50)) { /* into a library */
            stack[length++] = function * PARTS_SITES + 3 + random_below(random, 3);
            function = random_below(random, LIBRARY_FUNCTIONS);
        }
    }
    uint32_t first = function < LIBRARY_FUNCTIONS         ? 0
                     : function < fleet->shared_functions ? LIBRARY_FUNCTIONS
                                                          : service->first_function;
    uint32_t count =
        first ? first == LIBRARY_FUNCTIONS ? KERNEL_FUNCTIONS : OWN_FUNCTIONS : LIBRARY_FUNCTIONS;
    while (length + 1 < own)
        stack[length++] = step(first, count, &function, random);
    if (kernel && length + 2 < depth) {
        stack[length++] = function * PARTS_SITES + 6;
        function = LIBRARY_FUNCTIONS;
        while (length + 1 < depth)
            stack[length++] = step(LIBRARY_FUNCTIONS, KERNEL_FUNCTIONS, &function, random);
    }
    stack[length++] = function * PARTS_SITES + 7;
    return length;
}

static void make_stacks(struct fleet *fleet, uint32_t number)
{
    struct fleet_service *service = &fleet->services[number];
    struct random random = random_start(fleet->options.seed, number, 0, 1);
    uint32_t count = 0, stack[FLEET_DEPTH_MAX];
    size_t capacity = 0;
    service->stacks = memory_zalloc(fleet->options.stacks, sizeof(*service->stacks));
    for (uint32_t i = 0; i < fleet->options.stacks; i++) {
        uint32_t shared = 0;
        if (i && random_percent(&random, 85)) {
            const struct fleet_stack *from = &service->stacks[random_below(&random, i)];
            shared = from->depth;
            while (shared > 1 && random_percent(&random, 80))
                shared--;
            memcpy(stack, service->locations + from->first, shared * sizeof(*stack));
        }
        uint32_t depth = fleet_walk(fleet, service, stack, shared, &random);
        array_reserve(service->locations, capacity, count + depth);
        memcpy(service->locations + count, stack, depth * sizeof(*stack));
        service->stacks[i] = (struct fleet_stack){.first = count, .depth = depth};
        count += depth;
    }
}

void fleet_init(struct fleet *fleet, const struct fleet_options *options)
{
    *fleet = (struct fleet){.options = *options};
    fleet->options.services_per_agent =
        MAX(1u, MIN(options->services_per_agent, options->services));
    size_t functions =
        LIBRARY_FUNCTIONS + KERNEL_FUNCTIONS + (size_t)options->services * OWN_FUNCTIONS;
    fleet->functions = memory_zalloc(functions, sizeof(*fleet->functions));
    fleet->services = memory_zalloc(options->services, sizeof(*fleet->services));
    make_shared(fleet);
    for (uint32_t i = 0; i < options->services; i++) {
        make_own(fleet, &fleet->services[i], i);
        make_stacks(fleet, i);
    }
    fleet->popularity = memory_zalloc(options->stacks, sizeof(*fleet->popularity));
    double sum = 0;
    for (uint32_t i = 0; i < options->stacks; i++)
        fleet->popularity[i] = sum += 1.0 / (i + 1);
    /* Where a stack that is seen often ends: a slower one would be noticed. */
    const struct fleet_service *service = &fleet->services[0];
    const struct fleet_stack *stack = &service->stacks[MIN(2u, options->stacks - 1)];
    fleet->slow = service->locations[stack->first + stack->depth - 1] / PARTS_SITES;
    fleet->location_count = functions * PARTS_SITES;
    fleet->frame_of = memory_zalloc(fleet->location_count, 2 * sizeof(*fleet->frame_of));
    fleet->frame_stamp = memory_zalloc(fleet->location_count, sizeof(*fleet->frame_stamp));
}

void fleet_release(struct fleet *fleet)
{
    for (uint32_t i = 0; fleet->services && i < fleet->options.services; i++) {
        free(fleet->services[i].stacks);
        free(fleet->services[i].locations);
    }
    free(fleet->services);
    free(fleet->functions);
    free(fleet->popularity);
    free(fleet->frame_of);
    free(fleet->frame_stamp);
    arena_release(&fleet->names);
    *fleet = (struct fleet){0};
}

uint32_t fleet_draw(const struct fleet *fleet, struct random *random)
{
    double at = random_share(random) * fleet->popularity[fleet->options.stacks - 1];
    uint32_t low = 0, high = fleet->options.stacks - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fleet->popularity[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const char *fleet_slow_function(const struct fleet *fleet)
{
    return fleet->functions[fleet->slow].name;
}
