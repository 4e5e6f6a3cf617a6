// SPDX-License-Identifier: Apache-2.0
// The uploads of a simulated agent: a profile of each of its services, encoded and compressed.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "format/format.h"
#include "format/otlp/otlp.h"
#include "format/pprof/pprof.h"
#include "simulate/parts.h"

#define REGIONS 3

static const struct parts_binary binaries[] = {
    {"", "", 0x400000},
    {"/usr/lib/x86_64-linux-gnu/libc.so.6", "libc", 0x7f1000000000},
    {"/usr/lib/x86_64-linux-gnu/libssl.so.3", "ssl", 0x7f2000000000},
    {"/usr/lib/x86_64-linux-gnu/libz.so.1", "z", 0x7f3000000000},
    {"[kernel.kallsyms]", "kernel", 0xffffffff81000000},
};

const struct parts_binary *parts_binary(uint32_t binary)
{
    return &binaries[binary];
}

/* While one service's samples are added. */
struct making {
    struct fleet *fleet;
    const struct fleet_service *service;
    struct profile *profile;
    uint32_t number; /* of the service */
    unsigned version;
    bool slower;
    uint32_t labels;
    uint32_t mappings[ARRAY_LENGTH(binaries)]; /* 0: not yet */
    struct random random;
    struct fleet_sum sum;
};

static uint32_t mapping_of(struct making *making, uint32_t binary)
{
    if (making->mappings[binary])
        return making->mappings[binary];
    char file[64], build_id[48];
    uint64_t identity = binary ? binary : (making->number + 1ull) << 8 | making->version;
    snprintf(file, sizeof(file), "%s%s", binary ? "" : "/usr/bin/",
             binary ? binaries[binary].file : making->service->name);
    snprintf(build_id, sizeof(build_id), "%016llx%016llx%08x",
             (unsigned long long)hash_word(identity),
             (unsigned long long)hash_word(identity ^ ~0ull), (unsigned)identity);
    struct profile_mapping mapping = {.start = binaries[binary].start,
                                      .limit = binaries[binary].start + (1 << 28),
                                      .file = profile_cstring(making->profile, file),
                                      .build_id = profile_cstring(making->profile, build_id)};
    return making->mappings[binary] = profile_mapping(making->profile, &mapping);
}

static uint32_t add_frame(struct making *making, uint32_t function, uint32_t location,
                          uint64_t displaced, bool inlined)
{
    const struct fleet_function *from = &making->fleet->functions[function];
    const struct fleet_function *code = &making->fleet->functions[location / PARTS_SITES];
    struct profile *profile = making->profile;
    uint32_t site = location % PARTS_SITES;
    struct profile_function named = {.name = profile_cstring(profile, from->name),
                                     .file = profile_cstring(profile, from->file),
                                     .start_line = from->line};
    struct profile_frame frame = {
        .function = profile_function(profile, &named),
        .mapping = mapping_of(making, code->binary),
        .address = (location / PARTS_SITES + 16ull) * 1024 + site * 64 + displaced,
        .line = from->line ? from->line + (inlined ? 1 : 3 * site) : 0,
        .kind = code->binary == PARTS_KERNEL ? FRAME_KERNEL : FRAME_NATIVE,
        .inlined = inlined};
    return profile_frame(profile, &frame);
}

/* The frames of a location: one, or two where something was inlined. */
static unsigned location_frames(struct making *making, uint32_t location, uint32_t *ret_frames)
{
    struct fleet *fleet = making->fleet;
    uint32_t *known = fleet->frame_of + 2 * (size_t)location;
    if (fleet->frame_stamp[location] != fleet->stamp) {
        uint32_t function = location / PARTS_SITES;
        uint64_t dice = hash_word(location);
        fleet->frame_stamp[location] = fleet->stamp;
        known[0] = add_frame(making, function, location, 0, false);
        known[1] = 0;
        if (fleet->functions[function].binary != PARTS_KERNEL && dice % 10 == 0 && function)
            known[1] = add_frame(making, function - 1, location, 0, true);
    }
    ret_frames[0] = known[0];
    ret_frames[1] = known[1];
    return known[1] ? 2 : 1;
}

static unsigned stack_frames(struct making *making, const uint32_t *stack, uint32_t depth,
                             uint32_t *frames)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < depth; i++)
        count += location_frames(making, stack[i], frames + count);
    return count;
}

static void add_row(struct making *making, const uint32_t *frames, unsigned count, uint32_t leaf,
                    uint64_t samples)
{
    struct profile *profile = making->profile;
    int64_t value = (int64_t)samples * FLEET_PERIOD_NS;
    if (making->slower && leaf / PARTS_SITES == making->fleet->slow)
        value = (int64_t)((double)value * (1 + making->fleet->options.regression));
    uint32_t node = profile_stack(profile, frames, count);
    size_t before = profile->samples.count;
    size_t row = profile_sample(profile, node, making->labels, 0, 0);
    profile_add_value(profile, row, 0, value);
    making->sum.rows += profile->samples.count > before;
    making->sum.value += value;
}

static void add_known(struct making *making, uint32_t number, uint64_t samples)
{
    const struct fleet_stack *stack = &making->service->stacks[number];
    const uint32_t *locations = making->service->locations + stack->first;
    uint32_t frames[2 * FLEET_DEPTH_MAX];
    unsigned count = stack_frames(making, locations, stack->depth, frames);
    add_row(making, frames, count, locations[stack->depth - 1], samples);
}

/* A stack that no other upload has: an earlier one left near its end, at an address that nothing
 * was seen at before; or, where code is made at run time, in a function that is new. */
static void add_new(struct making *making)
{
    struct random *random = &making->random;
    const struct fleet_service *service = making->service;
    const struct fleet_stack *from = &service->stacks[fleet_draw(making->fleet, random)];
    uint32_t stack[FLEET_DEPTH_MAX], frames[2 * FLEET_DEPTH_MAX + 1], shared = from->depth;
    while (shared > 1 && random_percent(random, 60))
        shared--;
    memcpy(stack, service->locations + from->first, shared * sizeof(*stack));
    uint32_t depth = fleet_walk(making->fleet, service, stack, shared, random);
    unsigned count = stack_frames(making, stack, depth - 1, frames);
    uint64_t unique = random_next(random) >> 32;
    if (service->jit) {
        char name[48];
        snprintf(name, sizeof(name), "lambda$%010llx", (unsigned long long)unique);
        struct profile_function function = {.name = profile_cstring(making->profile, name)};
        struct profile_frame frame = {.function = profile_function(making->profile, &function),
                                      .address = 0x7e0000000000 + unique * 16,
                                      .kind = FRAME_JVM};
        frames[count++] = profile_frame(making->profile, &frame);
    } else {
        uint32_t leaf = stack[depth - 1];
        frames[count++] =
            add_frame(making, leaf / PARTS_SITES, leaf, (1ull << 27) + unique * 4, false);
    }
    add_row(making, frames, count, stack[depth - 1], 1);
}

/* Stacks by how often they are seen, until there are enough distinct ones. */
static void add_samples(struct making *making)
{
    const struct fleet_options *options = &making->fleet->options;
    uint32_t fresh = 0;
    for (uint32_t i = 0; i < options->rows; i++)
        fresh += random_share(&making->random) >= options->known;
    uint32_t known = MIN(options->rows - fresh, options->stacks), seen = 0;
    _cleanup_free_ uint32_t *counts = memory_zalloc(options->stacks, sizeof(*counts));
    for (uint32_t draws = 0; seen < known && draws < 4 * known; draws++)
        seen += !counts[fleet_draw(making->fleet, &making->random)]++;
    uint32_t at = random_below(&making->random, options->stacks);
    for (; seen < known; at = (at + 1) % options->stacks)
        if (!counts[at]) {
            counts[at] = 1;
            seen++;
        }
    for (uint32_t i = 0; i < options->stacks; i++)
        if (counts[i])
            add_known(making, i, counts[i]);
    while (fresh--)
        add_new(making);
}

/* ---- labels and encoding ---- */

struct identity {
    char host[32], region[16], version[16];
};

static struct identity identity_of(const struct fleet *fleet, uint32_t agent, uint32_t service,
                                   unsigned version)
{
    struct identity identity;
    snprintf(identity.host, sizeof(identity.host), "host-%05u", agent);
    snprintf(identity.region, sizeof(identity.region), "region-%c",
             'a' + (int)(hash_word(fleet->options.seed + agent) % REGIONS));
    snprintf(identity.version, sizeof(identity.version), "1.%u.%u", service % 20, version);
    return identity;
}

static uint32_t label_set(struct profile *profile, const struct fleet_service *service,
                          const struct identity *identity)
{
    const char *texts[][2] = {{"service.name", service->name},
                              {"service.version", identity->version},
                              {"host.name", identity->host},
                              {"cloud.region", identity->region}};
    struct profile_label labels[ARRAY_LENGTH(texts)] = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        labels[i].key = profile_cstring(profile, texts[i][0]);
        labels[i].text = profile_cstring(profile, texts[i][1]);
    }
    return profile_label_set(profile, labels, ARRAY_LENGTH(texts));
}

static void add_service(struct fleet *fleet, struct profile *profile, uint32_t agent,
                        uint32_t round, uint32_t number, struct fleet_upload *upload)
{
    const struct fleet_options *options = &fleet->options;
    bool prime = round == FLEET_PRIME;
    bool deployed = !prime && options->deploy && round >= options->deploy;
    struct making making = {.fleet = fleet,
                            .service = &fleet->services[number],
                            .profile = profile,
                            .number = number,
                            .version = deployed,
                            .slower = deployed && !number,
                            .random = random_start(options->seed, agent, round, number + 2),
                            .sum = {.service = number}};
    struct identity identity = identity_of(fleet, prime ? 0 : agent, number, deployed);
    if (options->format == FLEET_OTLP)
        making.labels = label_set(profile, making.service, &identity);
    else
        snprintf(upload->target, sizeof(upload->target),
                 "/api/v1/push?service_name=%s&version=%s&host=%s&cloud.region=%s",
                 making.service->name, identity.version, identity.host, identity.region);
    fleet->stamp++; /* build IDs differ between services: frames of one are not the other's */
    if (prime)
        for (uint32_t i = 0; i < options->stacks; i++)
            add_known(&making, i, 1);
    else
        add_samples(&making);
    upload->sums[upload->sum_count++] = making.sum;
    upload->rows += making.sum.rows;
}

static void encode(const struct fleet *fleet, const struct profile *profile, struct buffer *out)
{
    struct error error = {0};
    _cleanup_buffer_ struct buffer plain = {0};
    if (fleet->options.format == FLEET_OTLP)
        otlp_write(&plain, profile);
    else
        pprof_write(&plain, profile, &(struct write_options){.type = -1}, &error);
    if (fleet->options.coding == FLEET_GZIP) {
        format_compress_gzip(&plain, out);
    } else if (fleet->options.coding == FLEET_ZSTD) {
        size_t room = ZSTD_compressBound(plain.length);
        out->length += ZSTD_compress(buffer_reserve(out, room), room, plain.data, plain.length, 3);
    } else {
        buffer_add(out, plain.data, plain.length);
    }
}

uint32_t fleet_uploads(const struct fleet *fleet)
{
    return fleet->options.format == FLEET_OTLP ? 1 : fleet->options.services_per_agent;
}

uint32_t fleet_primers(const struct fleet *fleet)
{
    return fleet->options.services;
}

void fleet_upload_release(struct fleet_upload *upload)
{
    buffer_release(&upload->body);
    free(upload->sums);
    *upload = (struct fleet_upload){0};
}

void fleet_upload_make(struct fleet *fleet, uint32_t agent, uint32_t round, uint32_t part,
                       struct fleet_upload *ret_upload)
{
    const struct fleet_options *options = &fleet->options;
    bool prime = round == FLEET_PRIME, otlp = options->format == FLEET_OTLP;
    uint32_t here = prime || !otlp ? 1 : options->services_per_agent;
    struct fleet_upload upload = {.sums = memory_zalloc(here, sizeof(*upload.sums)),
                                  .target = "/v1development/profiles"};
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    uint32_t cpu = profile_cstring(&profile, "cpu"),
             unit = profile_cstring(&profile, "nanoseconds");
    profile_type(&profile, cpu, unit);
    profile_note_period(&profile, cpu, unit, FLEET_PERIOD_NS);
    /* Agents don't look at the same moment. */
    int64_t offset = prime ? -options->interval_ns
                           : (int64_t)round * options->interval_ns +
                                 options->interval_ns / options->agents * agent;
    profile_note_source(&profile, options->start_ns + offset, options->interval_ns);
    for (uint32_t i = 0; i < here; i++) {
        uint64_t first = (uint64_t)agent * options->services_per_agent + (otlp ? i : part);
        add_service(fleet, &profile, agent, round,
                    prime ? agent : (uint32_t)(first % options->services), &upload);
    }
    encode(fleet, &profile, &upload.body);
    snprintf(upload.batch_id, sizeof(upload.batch_id), "sim-%llx-%llx-%x-%x-%x",
             (unsigned long long)options->seed, (unsigned long long)options->start_ns, agent, round,
             part);
    *ret_upload = upload;
}
