// SPDX-License-Identifier: Apache-2.0
// Writes pprof profiles of a made-up program (program.h), for benchmarks: the same options give the
// same bytes on every machine.
//
// Two orders of messages are written, because readers must cope with both. "runtime" is Go's own:
// a location and its functions come just before the first sample that uses them. "tables-last" is
// that of pprof's encoder, in the order of field numbers: samples name locations not seen yet.

#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/wire.h"
#include "program.h"

#define PERIOD_NS 10000000
#define THREADS 20
#define SHARED_PERCENT 80 /* of a file's distinct stacks, when there are many files */

struct options {
    uint64_t samples, stacks, files, seed, functions, gzip_level;
    bool tables_last;
    const char *output;
};

/* One file being written. Ids are given by first use, so they differ between files. */
struct writer {
    const struct program *program;
    struct buffer samples, locations, functions; /* in runtime order all go into `samples` */
    bool tables_last;
    uint32_t *location_ids, *function_ids; /* 0: not written yet */
    uint32_t location_count, function_count;
    uint32_t *file_strings; /* by file_id */
    struct buffer strings;
    uint32_t string_count;
    uint32_t thread_key, size_key, size_unit, threads[THREADS];
};

static uint32_t add_string(struct writer *writer, const char *text)
{
    wire_put_bytes(&writer->strings, 6, text, strlen(text));
    return writer->string_count++;
}

static void put_value_type(struct buffer *out, uint32_t number, uint32_t type, uint32_t unit)
{
    size_t mark = wire_begin(out, number);
    wire_put_u64(out, 1, type);
    wire_put_u64(out, 2, unit);
    wire_end(out, mark);
}

static void put_function(struct writer *writer, uint32_t id)
{
    if (writer->function_ids[id])
        return;
    writer->function_ids[id] = ++writer->function_count;
    const struct program_function *function = &writer->program->functions[id];
    uint32_t name = add_string(writer, function->name);
    uint32_t *file = &writer->file_strings[function->file_id];
    if (!*file)
        *file = add_string(writer, function->file);
    struct buffer *out = writer->tables_last ? &writer->functions : &writer->samples;
    size_t mark = wire_begin(out, 5);
    wire_put_u64(out, 1, writer->function_ids[id]);
    wire_put_u64(out, 2, name);
    wire_put_u64(out, 3, name);
    wire_put_u64(out, 4, *file);
    wire_put_u64(out, 5, function->start_line);
    wire_end(out, mark);
}

static void put_line(struct writer *writer, struct buffer *out, uint32_t function, uint32_t line)
{
    size_t mark = wire_begin(out, 4);
    wire_put_u64(out, 1, writer->function_ids[function]);
    wire_put_u64(out, 2, line);
    wire_end(out, mark);
}

static void put_location(struct writer *writer, uint32_t id)
{
    if (writer->location_ids[id])
        return;
    writer->location_ids[id] = ++writer->location_count;
    const struct program_location *location = &writer->program->locations[id];
    if (location->inlined != UINT32_MAX)
        put_function(writer, location->inlined);
    put_function(writer, location->function);
    struct buffer *out = writer->tables_last ? &writer->locations : &writer->samples;
    size_t mark = wire_begin(out, 4);
    wire_put_u64(out, 1, writer->location_ids[id]);
    wire_put_u64(out, 2, writer->program->functions[location->function].binary + 1);
    wire_put_u64(out, 3, location->address);
    if (location->inlined != UINT32_MAX)
        put_line(writer, out, location->inlined, location->inlined_line);
    put_line(writer, out, location->function, location->line);
    wire_end(out, mark);
}

static void put_labels(struct writer *writer, struct random *random)
{
    struct buffer *out = &writer->samples;
    if (random_percent(random, 30)) {
        size_t mark = wire_begin(out, 3);
        wire_put_u64(out, 1, writer->thread_key);
        wire_put_u64(out, 2, writer->threads[random_below(random, THREADS)]);
        wire_end(out, mark);
    }
    if (random_percent(random, 10)) {
        size_t mark = wire_begin(out, 3);
        wire_put_u64(out, 1, writer->size_key);
        wire_put_u64(out, 3, 16u << random_below(random, 12));
        wire_put_u64(out, 4, writer->size_unit);
        wire_end(out, mark);
    }
}

static void put_sample(struct writer *writer, const uint32_t *stack, size_t depth,
                       struct random *random)
{
    for (size_t i = depth; i--;)
        put_location(writer, stack[i]);
    struct buffer *out = &writer->samples;
    size_t mark = wire_begin(out, 2);
    size_t packed = wire_begin(out, 1);
    for (size_t i = depth; i--;) /* the leaf comes first */
        wire_put_varint(out, writer->location_ids[stack[i]]);
    wire_end(out, packed);
    uint64_t count = random_percent(random, 85) ? 1 : 2 + random_below(random, 8);
    packed = wire_begin(out, 2);
    wire_put_varint(out, count);
    wire_put_varint(out, count * PERIOD_NS);
    wire_end(out, packed);
    put_labels(writer, random);
    wire_end(out, mark);
}

static void put_mappings(struct writer *writer, struct buffer *out)
{
    for (uint32_t i = 0; i < PROGRAM_BINARIES; i++) {
        const struct program_binary *binary = &writer->program->binaries[i];
        uint32_t file = add_string(writer, binary->file);
        uint32_t build_id = add_string(writer, binary->build_id);
        size_t mark = wire_begin(out, 3);
        wire_put_u64(out, 1, i + 1);
        wire_put_u64(out, 2, binary->start);
        wire_put_u64(out, 3, binary->limit);
        wire_put_u64(out, 5, file);
        wire_put_u64(out, 6, build_id);
        wire_put_u64(out, 7, true);
        wire_end(out, mark);
    }
}

/* Every stack occurs once, the rest is drawn by rank; then all are shuffled. */
static uint32_t *draw_samples(const struct options *options, const uint32_t *stack_ids,
                              uint32_t stack_count, struct random *random)
{
    struct zipf zipf;
    zipf_init(&zipf, stack_count);
    uint32_t *drawn = memory_zalloc(options->samples, sizeof(*drawn));
    for (uint64_t i = 0; i < options->samples; i++)
        drawn[i] = stack_ids[i < stack_count ? i : zipf_draw(&zipf, random)];
    zipf_release(&zipf);
    for (uint64_t i = options->samples; i > 1; i--) {
        uint32_t other = random_below(random, (uint32_t)i);
        uint32_t kept = drawn[i - 1];
        drawn[i - 1] = drawn[other];
        drawn[other] = kept;
    }
    return drawn;
}

static void build_profile(struct buffer *out, struct writer *writer, const struct options *options,
                          const struct stacks *stacks, const uint32_t *drawn, uint64_t file,
                          struct random *random)
{
    add_string(writer, "");
    uint32_t samples = add_string(writer, "samples"), count = add_string(writer, "count");
    uint32_t cpu = add_string(writer, "cpu"), nanoseconds = add_string(writer, "nanoseconds");
    writer->thread_key = add_string(writer, "thread");
    writer->size_key = add_string(writer, "size");
    writer->size_unit = add_string(writer, "bytes");
    for (uint32_t i = 0; i < THREADS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "worker-%u", i);
        writer->threads[i] = add_string(writer, name);
    }
    put_value_type(out, 1, samples, count);
    put_value_type(out, 1, cpu, nanoseconds);
    for (uint64_t i = 0; i < options->samples; i++)
        put_sample(writer, stacks->locations + stacks->starts[drawn[i]],
                   stacks->starts[drawn[i] + 1] - stacks->starts[drawn[i]], random);
    buffer_add(out, writer->samples.data, writer->samples.length);
    put_mappings(writer, out);
    buffer_add(out, writer->locations.data, writer->locations.length);
    buffer_add(out, writer->functions.data, writer->functions.length);
    buffer_add(out, writer->strings.data, writer->strings.length);
    wire_put_u64(out, 9, 1700000000000000000ull + file * 10000000000ull);
    wire_put_u64(out, 10, 10000000000ull);
    put_value_type(out, 11, cpu, nanoseconds);
    wire_put_u64(out, 12, PERIOD_NS);
}

static int compress_and_write(const struct options *options, const char *path,
                              const struct buffer *raw, struct error *error)
{
    if (!options->gzip_level)
        return file_write_atomic(path, raw->data, raw->length, error);
    struct libdeflate_compressor *compressor =
        libdeflate_alloc_compressor((int)options->gzip_level);
    size_t bound = libdeflate_gzip_compress_bound(compressor, raw->length);
    _cleanup_free_ void *packed = memory_alloc(bound);
    size_t length = libdeflate_gzip_compress(compressor, raw->data, raw->length, packed, bound);
    libdeflate_free_compressor(compressor);
    return file_write_atomic(path, packed, length, error);
}

static int write_file(const struct options *options, const char *path,
                      const struct program *program, const struct stacks *stacks,
                      const uint32_t *stack_ids, uint32_t stack_count, uint64_t file,
                      struct random *random, struct error *error)
{
    struct writer writer = {.program = program, .tables_last = options->tables_last};
    writer.location_ids = memory_zalloc(program->location_count, sizeof(uint32_t));
    writer.function_ids = memory_zalloc(program->function_count, sizeof(uint32_t));
    writer.file_strings = memory_zalloc(program->function_count, sizeof(uint32_t));
    _cleanup_free_ uint32_t *drawn = draw_samples(options, stack_ids, stack_count, random);
    _cleanup_buffer_ struct buffer out = {0};
    build_profile(&out, &writer, options, stacks, drawn, file, random);
    int r = compress_and_write(options, path, &out, error);
    if (!r)
        printf("%s: %llu samples, %u stacks, %u locations, %u functions, %zu bytes before gzip\n",
               path, (unsigned long long)options->samples, stack_count, writer.location_count,
               writer.function_count, out.length);
    buffer_release(&writer.samples);
    buffer_release(&writer.locations);
    buffer_release(&writer.functions);
    buffer_release(&writer.strings);
    free(writer.location_ids);
    free(writer.function_ids);
    free(writer.file_strings);
    return r;
}

/* Profiles of one program, one after the other: most stacks are in all of them, and each has some
 * that no other has. */
static int write_files(const struct options *options, const struct program *program,
                       struct random *random, struct error *error)
{
    uint32_t per_file = (uint32_t)options->stacks;
    uint32_t shared = options->files > 1 ? per_file * SHARED_PERCENT / 100 : per_file;
    uint32_t own = per_file - shared;
    struct stacks stacks = {0};
    stacks_add(&stacks, program, shared + own * options->files, random);
    _cleanup_free_ uint32_t *ids = memory_zalloc(per_file, sizeof(*ids));
    int r = 0;
    if (options->files > 1 && mkdir(options->output, 0777) < 0 && errno != EEXIST)
        r = error_set_errno(error, -errno, "%s cannot be made", options->output);
    for (uint64_t file = 0; file < options->files && !r; file++) {
        /* A rotation per file, so that what is hot in one is not in the next. */
        for (uint32_t i = 0; i < shared; i++)
            ids[i] = (uint32_t)((i + file * 7) % shared);
        for (uint32_t i = 0; i < own; i++)
            ids[shared + i] = (uint32_t)(shared + file * own + i);
        char path[4096];
        snprintf(path, sizeof(path), options->files > 1 ? "%s/%03llu.pb.gz" : "%s", options->output,
                 (unsigned long long)file);
        r = write_file(options, path, program, &stacks, ids, per_file, file, random, error);
    }
    stacks_release(&stacks);
    return r;
}

static int usage(void)
{
    fputs("usage: bench-generate --output FILE|DIRECTORY [--samples N] [--stacks N] [--files N]\n"
          "                      [--functions N] [--seed N] [--gzip-level 0-12]\n"
          "                      [--order runtime|tables-last]\n",
          stderr);
    return 2;
}

static bool parse_options(int argc, char **argv, struct options *options)
{
    const struct {
        const char *name;
        uint64_t *value, minimum, maximum;
    } numbers[] = {
        {"samples", &options->samples, 1, 1u << 30},
        {"stacks", &options->stacks, 1, 1u << 24},
        {"files", &options->files, 1, 100000},
        {"seed", &options->seed, 0, UINT64_MAX},
        {"functions", &options->functions, 256, 1u << 20},
        {"gzip-level", &options->gzip_level, 0, 12},
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        bool known = false;
        if (strncmp(name, "--", 2))
            return false;
        for (size_t n = 0; n < ARRAY_LENGTH(numbers); n++)
            if (!strcmp(name + 2, numbers[n].name))
                known = text_to_u64(value, strlen(value), numbers[n].value) &&
                        *numbers[n].value >= numbers[n].minimum &&
                        *numbers[n].value <= numbers[n].maximum;
        if (!strcmp(name, "--output")) {
            options->output = value;
            known = true;
        } else if (!strcmp(name, "--order")) {
            options->tables_last = !strcmp(value, "tables-last");
            known = options->tables_last || !strcmp(value, "runtime");
        }
        if (!known)
            return false;
    }
    return argc % 2 == 1 && options->output && options->stacks <= options->samples;
}

int main(int argc, char **argv)
{
    /* Level 1 is what Go's runtime uses. */
    struct options options = {.samples = 10000,
                              .stacks = 2000,
                              .files = 1,
                              .seed = 1,
                              .functions = 4000,
                              .gzip_level = 1};
    if (!parse_options(argc, argv, &options))
        return usage();
    struct random random = random_start(options.seed);
    struct program program;
    program_init(&program, (uint32_t)options.functions, &random);
    struct error error;
    int r = write_files(&options, &program, &random, &error);
    if (r < 0)
        fprintf(stderr, "bench-generate: %s\n", error.text);
    program_release(&program);
    return r < 0;
}
