// SPDX-License-Identifier: Apache-2.0
// Random walks over the made-up program, each kept once. See program.h.

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/idtable.h"
#include "base/memory.h"
#include "program.h"

#define DEPTH_MIN 8
#define DEPTH_MAX 48
#define ENTRY_POINTS 20 /* threads' first functions */

void stacks_release(struct stacks *stacks)
{
    free(stacks->locations);
    free(stacks->starts);
    *stacks = (struct stacks){0};
}

/* Early callees are the likely ones: most functions have one that does nearly all their work. */
static uint32_t choose_call(uint32_t count, struct random *random)
{
    uint32_t chosen = 0;
    while (chosen + 1 < count && random_percent(random, 30))
        chosen++;
    return chosen;
}

/* Walks on from `function` until the stack has `depth` locations. The last step often goes to the
 * runtime. */
static void walk(const struct program *program, uint32_t function, uint32_t *stack, size_t length,
                 size_t depth, struct random *random)
{
    while (length < depth - 1) {
        const struct program_function *at = &program->functions[function];
        bool last = length == depth - 2 && random_percent(random, 60);
        uint32_t first = last ? at->call_count - at->runtime_calls : 0;
        uint32_t count = last ? at->runtime_calls : at->call_count - at->runtime_calls;
        const struct program_call *call =
            &program->calls[at->first_call + first + choose_call(count, random)];
        stack[length++] = call->location;
        function = call->callee;
    }
    const struct program_function *leaf = &program->functions[function];
    stack[length] = leaf->first_leaf + choose_call(leaf->leaf_count, random);
}

/* Most stacks leave an earlier one somewhere along its way, mostly near its end. Returns how much
 * of it they share: less than `depth`. */
static size_t start_of_walk(const struct stacks *stacks, const struct program *program,
                            uint32_t *stack, size_t depth, uint32_t *ret_function,
                            struct random *random)
{
    if (!stacks->count || random_percent(random, 20)) {
        *ret_function = random_below(random, ENTRY_POINTS);
        return 0;
    }
    size_t from = random_next(random) % stacks->count;
    const uint32_t *known = stacks->locations + stacks->starts[from];
    size_t length = stacks->starts[from + 1] - stacks->starts[from];
    size_t shared = MIN(length, depth) - 1;
    while (shared && random_percent(random, 85))
        shared--;
    memcpy(stack, known, shared * sizeof(*stack));
    *ret_function = program->locations[known[shared]].function;
    return shared;
}

static bool is_known(const struct stacks *stacks, const struct id_table *index, uint64_t hash,
                     const uint32_t *stack, size_t depth)
{
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(index, &probe)) != ID_NONE) {
        size_t length = stacks->starts[id + 1] - stacks->starts[id];
        if (length == depth &&
            !memcmp(stacks->locations + stacks->starts[id], stack, depth * sizeof(*stack)))
            return true;
    }
    return false;
}

static void append(struct stacks *stacks, const uint32_t *stack, size_t depth)
{
    array_reserve(stacks->locations, stacks->location_capacity, stacks->location_count + depth);
    memcpy(stacks->locations + stacks->location_count, stack, depth * sizeof(*stack));
    stacks->location_count += depth;
    array_reserve(stacks->starts, stacks->capacity, stacks->count + 2);
    stacks->starts[0] = 0;
    stacks->starts[++stacks->count] = stacks->location_count;
}

void stacks_add(struct stacks *stacks, const struct program *program, size_t count,
                struct random *random)
{
    struct id_table index = {0};
    for (size_t i = 0; i < stacks->count; i++)
        id_table_insert(&index,
                        XXH3_64bits(stacks->locations + stacks->starts[i],
                                    (stacks->starts[i + 1] - stacks->starts[i]) * sizeof(uint32_t)),
                        (uint32_t)i);
    for (size_t end = stacks->count + count; stacks->count < end;) {
        uint32_t stack[DEPTH_MAX];
        uint32_t function;
        size_t depth = DEPTH_MIN + random_below(random, DEPTH_MAX - DEPTH_MIN + 1);
        size_t shared = start_of_walk(stacks, program, stack, depth, &function, random);
        walk(program, function, stack, shared, depth, random);
        uint64_t hash = XXH3_64bits(stack, depth * sizeof(*stack));
        if (is_known(stacks, &index, hash, stack, depth))
            continue;
        id_table_insert(&index, hash, (uint32_t)stacks->count);
        append(stacks, stack, depth);
    }
    id_table_release(&index);
}
