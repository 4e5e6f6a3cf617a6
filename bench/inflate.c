// SPDX-License-Identifier: Apache-2.0
// The floor under every reader of pprof files: what it costs only to inflate them, or to inflate
// them and look at each number once. What a command takes beyond that is its own work.

#include <stdio.h>
#include <string.h>

#include "io/source.h"
#include "io/wire.h"

static int inflate(struct source *source, uint64_t *sum, struct error *error)
{
    for (;;) {
        int r = source_need(source, 1, error);
        if (r < 0)
            return r;
        size_t available = source_available(source);
        if (!available)
            return 0;
        *sum += available;
        source_skip(source, available);
    }
}

/* Adds up the numbers of a message, whatever they mean. Strings are only passed over. */
static int add_numbers(struct wire message, uint32_t container, uint64_t *sum)
{
    struct wire_field field;
    int r;
    while ((r = wire_next(&message, &field)) > 0) {
        if (field.type != WIRE_BYTES) {
            *sum += field.value;
        } else if (container == 2 && field.number <= 2) { /* a sample's locations and values */
            struct wire numbers = wire_repeated(&field);
            uint64_t number;
            while (numbers.at < numbers.end) {
                if (!wire_varint(&numbers, &number))
                    return -EBADMSG;
                *sum += number;
            }
        } else { /* a sample's label or a location's line */
            struct wire nested = wire_of_field(&field);
            struct wire_field inner;
            while ((r = wire_next(&nested, &inner)) > 0)
                *sum += inner.value;
            if (r < 0)
                return r;
        }
    }
    return r;
}

static int decode(struct source *source, uint64_t *sum, struct error *error)
{
    struct wire_stream stream;
    wire_stream_init(&stream, source);
    struct wire_field field;
    int r;
    while ((r = wire_stream_next(&stream, &field, error)) > 0) {
        if (field.type != WIRE_BYTES) {
            *sum += field.value;
            continue;
        }
        r = wire_stream_bytes(&stream, &field, error);
        if (r < 0)
            return r;
        if (field.number != 6 && add_numbers(wire_of_field(&field), field.number, sum) < 0)
            return wire_stream_malformed(&stream, "The message", error);
    }
    return r;
}

int main(int argc, char **argv)
{
    bool numbers = argc > 1 && !strcmp(argv[1], "--numbers");
    if (argc < 2 + numbers) {
        fputs("usage: bench-inflate [--numbers] FILE...\n", stderr);
        return 2;
    }
    uint64_t sum = 0;
    for (int i = 1 + numbers; i < argc; i++) {
        struct error error;
        _cleanup_source_ struct source source = {0};
        int r = source_open(&source, argv[i], 0, &error);
        if (!r)
            r = numbers ? decode(&source, &sum, &error) : inflate(&source, &sum, &error);
        if (r < 0) {
            fprintf(stderr, "bench-inflate: %s\n", error.text);
            return 1;
        }
    }
    /* Printed so that no compiler can leave the reading out. */
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
