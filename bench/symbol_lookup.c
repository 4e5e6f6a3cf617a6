// SPDX-License-Identifier: Apache-2.0
// bench-symbol-lookup INDEX ADDRESSES ROUNDS: asks a symbol index about all addresses (hexadecimal,
// one per line), once to warm up and then ROUNDS times, and prints the CPU time of one look-up in
// nanoseconds, and how many frames the addresses have.

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "symbol/index/index.h"

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Every pointer and number of the answers goes into the sum, or they need not be found. */
static uint64_t ask(const struct symbol_index *index, const uint64_t *addresses, size_t count,
                    uint64_t *frame_count)
{
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    uint64_t sum = 0, start;
    for (size_t i = 0; i < count; i++) {
        size_t found = symbol_index_look_up(index, addresses[i], frames, SYMBOL_FRAMES_MAX, &start);
        for (size_t k = 0; k < found; k++)
            sum += (uint64_t)(uintptr_t)frames[k].name + (uint64_t)(uintptr_t)frames[k].file +
                   frames[k].line;
        *frame_count += found;
        sum += start;
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct symbol_index index;
    struct error error = {0};
    uint64_t *addresses = NULL, frames = 0, sum;
    size_t count = 0, capacity = 0;
    unsigned long long address;
    if (argc != 4) {
        fputs("usage: bench-symbol-lookup INDEX ADDRESSES ROUNDS\n", stderr);
        return 2;
    }
    FILE *list = fopen(argv[2], "r");
    long rounds = strtol(argv[3], NULL, 10);
    if (!list || rounds < 1 || symbol_index_open(argv[1], &index, &error) < 0) {
        fprintf(stderr, "bench-symbol-lookup: %s\n", error.text[0] ? error.text : argv[2]);
        return 1;
    }
    while (fscanf(list, "%llx", &address) == 1) {
        array_reserve(addresses, capacity, count + 1);
        addresses[count++] = address;
    }
    fclose(list);
    sum = ask(&index, addresses, count, &frames);
    double start = cpu_seconds();
    uint64_t again = 0;
    for (long i = 0; i < rounds; i++)
        sum += ask(&index, addresses, count, &again);
    double spent = cpu_seconds() - start;
    printf("%.1f %" PRIu64 "\n", count ? spent * 1e9 / (double)count / (double)rounds : 0, frames);
    fprintf(stderr, "sum %" PRIx64 "\n", sum);
    free(addresses);
    symbol_index_close(&index);
    return 0;
}
