// SPDX-License-Identifier: Apache-2.0
// The made-up program: names, the call graph and its locations. See program.h.
//
// Functions are ordered from entry points to leaves, and calls go mostly forward by small steps, so
// that walks are long and share their beginnings, as the stacks of a server do. The last functions
// are the runtime (allocator, locks, copying) that every other function calls.

#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FUNCTION_BYTES 1024 /* room for a function's code */
#define DEEPEST_WALK 64     /* steps from the first function to the last */

struct random random_start(uint64_t seed)
{
    struct random random = {.state = seed * 0x9e3779b97f4a7c15ull + 1};
    if (!random.state)
        random.state = 1;
    for (int i = 0; i < 8; i++)
        random_next(&random);
    return random;
}

uint64_t random_next(struct random *random)
{
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * 0x2545f4914f6cdd1dull;
}

uint32_t random_below(struct random *random, uint32_t limit)
{
    return (uint32_t)((random_next(random) >> 32) * limit >> 32);
}

bool random_percent(struct random *random, uint32_t percent)
{
    return random_below(random, 100) < percent;
}

void zipf_init(struct zipf *zipf, uint32_t count)
{
    *zipf = (struct zipf){.sums = memory_zalloc(count, sizeof(double)), .count = count};
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        zipf->sums[i] = sum += 1.0 / (i + 1);
}

void zipf_release(struct zipf *zipf)
{
    free(zipf->sums);
    *zipf = (struct zipf){0};
}

uint32_t zipf_draw(const struct zipf *zipf, struct random *random)
{
    double at = (double)(random_next(random) >> 11) * 0x1p-53 * zipf->sums[zipf->count - 1];
    uint32_t low = 0, high = zipf->count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (zipf->sums[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static const char *const packages[] = {
    "main",
    "example.org/shop/internal/http",
    "example.org/shop/internal/cart",
    "example.org/shop/internal/catalog",
    "example.org/shop/internal/search",
    "example.org/shop/internal/payment",
    "example.org/shop/internal/session",
    "example.org/shop/pkg/render",
    "example.org/shop/pkg/codec/json",
    "example.org/shop/pkg/codec/proto",
    "example.org/shop/pkg/cache",
    "example.org/shop/pkg/queue",
    "example.org/shop/pkg/database/sql",
    "example.org/shop/pkg/compress",
    "example.org/shop/pkg/crypto/tls",
    "example.org/shop/pkg/text/template",
};
static const char *const objects[] = {
    "Server", "Handler", "Router", "Request", "Response", "Session", "Store",  "Index",
    "Cursor", "Reader",  "Writer", "Encoder", "Decoder",  "Buffer",  "Worker", "Scheduler",
    "Cache",  "Entry",   "Node",   "Tree",    "Token",    "Parser",  "Lexer",  "Connection",
};
static const char *const verbs[] = {
    "Serve",  "Handle", "Dispatch", "Read",   "Write",  "Flush", "Lookup", "Insert",
    "Delete", "Update", "Encode",   "Decode", "Parse",  "Next",  "Scan",   "Match",
    "Merge",  "Split",  "Sort",     "Hash",   "Verify", "Close", "Open",   "Resolve",
};

static const char *formatted(struct arena *names, const char *text, size_t length)
{
    return arena_strndup(names, text, length);
}

#define FORMAT_NAME(names, ...)                                                                    \
    ({                                                                                             \
        char text_[256];                                                                           \
        int length_ = snprintf(text_, sizeof(text_), __VA_ARGS__);                                 \
        formatted(names, text_, (size_t)length_);                                                  \
    })

static void name_function(struct program *program, uint32_t id)
{
    struct program_function *function = &program->functions[id];
    if (id >= program->runtime_start) {
        const char *verb = verbs[id % ARRAY_LENGTH(verbs)];
        function->name = FORMAT_NAME(&program->names, "runtime.%c%s%u", verb[0] | 0x20, verb + 1,
                                     id - program->runtime_start);
        function->file = FORMAT_NAME(&program->names, "/usr/lib/go/src/runtime/part%u.go", id / 40);
        return;
    }
    const char *package = packages[(size_t)id * ARRAY_LENGTH(packages) / program->runtime_start];
    const char *object = objects[id % ARRAY_LENGTH(objects)];
    const char *verb = verbs[id / 5 % ARRAY_LENGTH(verbs)];
    switch (id % 7) {
    case 0:
        function->name = FORMAT_NAME(&program->names, "%s.%s%s%u", package, verb, object, id);
        break;
    case 1:
        function->name =
            FORMAT_NAME(&program->names, "%s.(*%s).%s%u.func%u", package, object, verb, id, id % 3);
        break;
    case 2:
        function->name = FORMAT_NAME(&program->names, "%s.%s%u[...]", package, verb, id);
        break;
    default:
        function->name = FORMAT_NAME(&program->names, "%s.(*%s).%s%u", package, object, verb, id);
    }
    function->file = FORMAT_NAME(&program->names, "/home/build/src/%s/file%u.go", package, id / 12);
}

static uint32_t add_location(struct program *program, uint32_t function, struct random *random)
{
    array_reserve(program->locations, program->location_capacity, program->location_count + 1);
    struct program_function *at = &program->functions[function];
    at->code_bytes += 4 + random_below(random, 32); /* so that no two have the same address */
    struct program_location location = {
        .address = at->address + at->code_bytes,
        .function = function,
        .line = at->start_line + at->code_bytes / 16,
        .inlined = UINT32_MAX,
    };
    if (random_percent(random, 10)) {
        location.inlined = random_below(random, program->function_count);
        location.inlined_line = program->functions[location.inlined].start_line + 1;
    }
    program->locations[program->location_count] = location;
    return (uint32_t)program->location_count++;
}

static void add_call(struct program *program, uint32_t caller, uint32_t callee,
                     struct random *random)
{
    uint32_t location = add_location(program, caller, random);
    array_reserve(program->calls, program->call_capacity, program->call_count + 1);
    program->calls[program->call_count++] =
        (struct program_call){.location = location, .callee = callee};
}

/* Forward by up to twice the average step; one in twelve goes back or to itself: recursion. */
static uint32_t choose_callee(const struct program *program, uint32_t caller, struct random *random)
{
    uint32_t end =
        caller < program->runtime_start ? program->runtime_start : program->function_count;
    uint32_t step = program->runtime_start / DEEPEST_WALK * 2;
    if (random_below(random, 12) == 0) {
        uint32_t back = random_below(random, step);
        return back > caller ? caller : caller - back;
    }
    uint32_t callee = caller + 1 + random_below(random, step);
    return callee < end ? callee : end - 1 - random_below(random, step);
}

static void connect_function(struct program *program, uint32_t id, const struct zipf *popular,
                             struct random *random)
{
    struct program_function *function = &program->functions[id];
    function->first_call = (uint32_t)program->call_count;
    uint32_t calls = 2 + random_below(random, 6);
    for (uint32_t i = 0; i < calls; i++)
        add_call(program, id, choose_callee(program, id, random), random);
    function->runtime_calls = 1 + random_below(random, 3);
    for (uint32_t i = 0; i < function->runtime_calls; i++)
        add_call(program, id, program->runtime_start + zipf_draw(popular, random), random);
    function->call_count = (uint32_t)program->call_count - function->first_call;
    function->first_leaf = (uint32_t)program->location_count;
    function->leaf_count = 1 + random_below(random, 4);
    for (uint32_t i = 0; i < function->leaf_count; i++)
        add_location(program, id, random);
}

static void map_binaries(struct program *program)
{
    static const char *const files[PROGRAM_BINARIES] = {
        "/usr/bin/shopd", "/usr/lib/libcrypto.so.3", "/usr/lib/libz.so.1", "/usr/lib/libsql.so.0",
        "/usr/lib/libc.so.6"};
    for (uint32_t i = 0; i < PROGRAM_BINARIES; i++) {
        struct program_binary *binary = &program->binaries[i];
        binary->file = files[i];
        binary->build_id = FORMAT_NAME(&program->names, "%08x5eed%08x", i * 2654435761u, ~i);
        binary->start = i ? 0x7f0000000000ull + i * 0x10000000ull : 0x400000;
        binary->limit = binary->start + (uint64_t)program->function_count * FUNCTION_BYTES;
    }
}

void program_init(struct program *program, uint32_t function_count, struct random *random)
{
    *program = (struct program){.function_count = function_count};
    program->functions = memory_zalloc(function_count, sizeof(*program->functions));
    program->runtime_start = function_count - function_count / 16;
    map_binaries(program);
    for (uint32_t i = 0; i < function_count; i++) {
        struct program_function *function = &program->functions[i];
        /* Most code is in the program itself, libraries come in runs of neighbours. */
        function->binary = i % 1000 < 700 ? 0 : 1 + i / 1000 % (PROGRAM_BINARIES - 1);
        function->address =
            program->binaries[function->binary].start + (uint64_t)i * FUNCTION_BYTES;
        function->start_line = 10 + random_below(random, 900);
        name_function(program, i);
        bool same_file = i && !strcmp(function->file, function[-1].file);
        function->file_id = i ? function[-1].file_id + !same_file : 0;
    }
    struct zipf popular;
    zipf_init(&popular, function_count - program->runtime_start);
    for (uint32_t i = 0; i < function_count; i++)
        connect_function(program, i, &popular, random);
    zipf_release(&popular);
}

void program_release(struct program *program)
{
    arena_release(&program->names);
    free(program->functions);
    free(program->calls);
    free(program->locations);
    *program = (struct program){0};
}
