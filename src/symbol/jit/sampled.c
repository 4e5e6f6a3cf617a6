// SPDX-License-Identifier: Apache-2.0
// Names of sampled code of untrusted processes: limits, in total and per user, on the bytes that
// are read and kept, so that a user who writes gigabytes loses only his own names.

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "symbol/jit/internal.h"

/* Processes without samples are forgotten after this many rounds; this often, a process without a
 * dump is checked for one. */
#define IDLE_ROUNDS 6
#define LOOK_ROUNDS 6
#define PROCESSES_MAX 1024
/* Of lists of mappings, which cost more than files: in a round, and of one process. */
#define MAPS_ROUND_BYTES (1u << 20)
#define MAPS_BYTES (256u << 10)
#define SOURCES 4 /* of a process, with those of passes that have not ended */
#define LOST_ROUNDS 30

void jit_names_limit(struct jit_names *names, const struct jit_limits *limits)
{
    names->limits = *limits;
    shares_init(&names->shares, limits->memory_bytes);
    shares_init(&names->lost, 0);
}

static void note_lost(struct jit_names *names, const struct jit_process *process)
{
    names->stats.refused++;
    shares_refuse(&names->lost, process->place.effective_user);
}

/* ---- processes ---- */

static void start_source(struct jit_names *names, struct jit_process *process,
                         struct jit_source *source, bool has_times)
{
    jit_source_release(source);
    jit_source_init(source, has_times);
    source->codes.wanted = &process->wanted;
    source->codes.bytes_max = names->limits.process_bytes / SOURCES;
}

static void forget_names(struct jit_names *names, struct jit_process *process)
{
    start_source(names, process, &process->mapped, false);
    start_source(names, process, &process->dumped, true);
    start_source(names, process, &process->map_pass.fresh, false);
    start_source(names, process, &process->dump_pass.fresh, true);
    jit_dump_release(&process->dump);
    jit_wanted_release(&process->wanted);
    process->map = (struct perf_map){0};
    process->map_pass.runs = process->dump_pass.runs = false;
    process->map_pass.again = process->dump_pass.again = true;
}

static struct jit_process *take_process(struct jit_names *names, uint32_t pid)
{
    struct jit_process *process = jit_find_process(names, pid);
    if (!process && names->count >= PROCESSES_MAX) {
        names->stats.refused++;
        return NULL;
    }
    if (!process && (process = jit_get_process(names, pid)))
        forget_names(names, process);
    if (process)
        process->round = names->round;
    return process;
}

static void remove_idle(struct jit_names *names)
{
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        struct jit_process *process = names->list[i];
        if (names->round - process->round < IDLE_ROUNDS) {
            names->list[kept++] = process;
            continue;
        }
        names->descriptors -= jit_descriptors_of(process);
        names->stats.bytes -= process->bytes;
        shares_give(&names->shares, process->user, process->bytes);
        jit_process_free(process);
    }
    if (kept == names->count)
        return;
    names->count = kept;
    id_table_clear(&names->index);
    for (size_t i = 0; i < kept; i++)
        id_table_insert(&names->index, hash_word(names->list[i]->place.pid), (uint32_t)i);
}

/* A user over his share has no room left. */
static void account(struct jit_names *names, struct jit_process *process)
{
    size_t bytes = jit_source_bytes(&process->mapped) + jit_source_bytes(&process->dumped) +
                   jit_source_bytes(&process->map_pass.fresh) +
                   jit_source_bytes(&process->dump_pass.fresh) +
                   process->wanted.capacity * sizeof(*process->wanted.list);
    shares_give(&names->shares, process->user, process->bytes);
    names->stats.bytes -= process->bytes;
    process->user = process->place.effective_user;
    process->bytes = 0;
    if (!shares_take(&names->shares, process->user, bytes)) {
        note_lost(names, process);
        forget_names(names, process);
        return;
    }
    process->bytes = bytes;
    names->stats.bytes += bytes;
}

/* ---- what is wanted ---- */

static void want(struct jit_process *process, uint64_t address)
{
    if (!jit_wanted_add(&process->wanted, address) ||
        jit_codes_find(&process->mapped.codes, address, 0) ||
        jit_codes_find(&process->dumped.codes, address, 0))
        return;
    process->map_pass.again = process->dump_pass.again = true;
}

static void want_sampled(struct jit_names *names, const struct profile *profile)
{
    _cleanup_free_ struct jit_process **processes =
        memory_zalloc(profile->mapping_count + 1, sizeof(struct jit_process *));
    uint32_t pid;
    for (uint32_t i = 0; i < profile->mapping_count; i++)
        if (jit_mapping_pid(profile_text(profile, profile->mappings[i].file), &pid))
            processes[i] = take_process(names, pid);
    for (uint32_t i = 0; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        if (frame->mapping && processes[frame->mapping])
            want(processes[frame->mapping], frame->address);
    }
}

/* ---- who may read how much ---- */

/* A process, or all of a user's. */
struct demand {
    uint32_t user;
    struct jit_process *process;
    uint64_t map_bytes, dump_bytes;
    uint64_t wanted, granted; /* bytes */
};

static int by_user(const void *left, const void *right)
{
    const struct demand *a = left, *b = right;
    if (a->user != b->user)
        return a->user < b->user ? -1 : 1;
    return a->wanted < b->wanted ? -1 : a->wanted > b->wanted;
}

static int by_size(const void *left, const void *right)
{
    const struct demand *a = left, *b = right;
    return a->wanted < b->wanted ? -1 : a->wanted > b->wanted;
}

/* Small requests are granted; the others share the rest equally. In order of size. */
static void grant(struct demand *list, size_t count, uint64_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        list[i].granted = MIN(list[i].wanted, bytes / (count - i));
        bytes -= list[i].granted;
    }
}

/* Demands in order of users, and of size for each; those of users in order of size. */
static void grant_all(struct jit_names *names, struct demand *list, size_t count)
{
    _cleanup_free_ struct demand *users = memory_zalloc(count + 1, sizeof(*users));
    size_t user_count = 0;
    qsort(list, count, sizeof(*list), by_user);
    for (size_t i = 0; i < count; i++) {
        if (!i || list[i].user != list[i - 1].user)
            users[user_count++].user = list[i].user;
        users[user_count - 1].wanted += list[i].wanted;
    }
    qsort(users, user_count, sizeof(*users), by_size);
    grant(users, user_count, names->limits.read_bytes);
    for (size_t u = 0; u < user_count; u++) {
        size_t first = 0, own = 0;
        while (list[first].user != users[u].user)
            first++;
        while (first + own < count && list[first + own].user == users[u].user)
            own++;
        grant(list + first, own, users[u].granted);
    }
}

/* ---- reading ---- */

static uint64_t size_of(int fd)
{
    struct stat found;
    return fd >= 0 && fstat(fd, &found) == 0 && found.st_size > 0 ? (uint64_t)found.st_size : 0;
}

/* The bytes to read of a file of this size. At least some of an existing one: it may have been
 * replaced, as it certainly was when it is smaller. */
static uint64_t left_of(const struct jit_pass *pass, uint64_t size, uint64_t offset)
{
    uint64_t from = (!pass->runs && pass->again) || size < offset ? 0 : offset;
    return size ? MAX(size - from, 1u) : 0;
}

static void look_at(struct jit_names *names, struct jit_process *process, uint64_t *maps_bytes,
                    struct demand *demand)
{
    names->descriptors -= jit_descriptors_of(process);
    jit_place_update(&process->place);
    if (process->place.renewed)
        forget_names(names, process);
    if (!process->looked_round || names->round - process->looked_round >= LOOK_ROUNDS) {
        uint64_t allowance = MIN(MAPS_BYTES, *maps_bytes), before = allowance;
        jit_find_dump(process, &allowance);
        *maps_bytes -= before - allowance;
        /* A list that can't be read to its end may hide one. */
        if (process->dump_fd < 0 && !allowance)
            note_lost(names, process);
        process->looked_round = names->round;
    }
    int map = jit_place_open_map(&process->place);
    *demand = (struct demand){
        .user = process->place.effective_user,
        .process = process,
        .map_bytes =
            left_of(&process->map_pass, MIN(size_of(map), PERF_MAP_BYTES_MAX), process->map.offset),
        .dump_bytes =
            left_of(&process->dump_pass, size_of(process->dump_fd), process->dump.offset)};
    demand->wanted = demand->map_bytes + demand->dump_bytes;
    if (map >= 0)
        close(map);
    names->descriptors += jit_descriptors_of(process);
    jit_limit_descriptors(names, process);
}

/* Begins a pass where one is due. Returns where what is read goes. */
static struct jit_source *begin_pass(struct jit_names *names, struct jit_process *process,
                                     struct jit_pass *pass, struct jit_source *source,
                                     bool *ret_began)
{
    *ret_began = !pass->runs && pass->again;
    if (*ret_began) {
        start_source(names, process, &pass->fresh, source->codes.has_times);
        pass->runs = true;
        pass->again = false;
    }
    return pass->runs ? &pass->fresh : source;
}

static void end_pass(struct jit_names *names, struct jit_process *process, struct jit_pass *pass,
                     struct jit_source *source)
{
    if (!pass->runs)
        return;
    jit_source_release(source);
    *source = pass->fresh;
    pass->fresh = (struct jit_source){0};
    start_source(names, process, &pass->fresh, source->codes.has_times);
    pass->runs = false;
}

static void read_map(struct jit_names *names, struct jit_process *process, uint64_t allowance)
{
    int fd = jit_place_open_map(&process->place);
    bool began;
    if (fd < 0)
        return;
    struct jit_source *into =
        begin_pass(names, process, &process->map_pass, &process->mapped, &began);
    if (began)
        process->map = (struct perf_map){0};
    uint64_t refused = into->codes.refused;
    process->map.allowance = allowance;
    int r = perf_map_read(&process->map, fd, !process->place.alive, &into->codes);
    close(fd);
    if (into->codes.refused > refused)
        note_lost(names, process);
    if (!r)
        end_pass(names, process, &process->map_pass, &process->mapped);
}

static void read_dump(struct jit_names *names, struct jit_process *process, uint64_t allowance)
{
    bool began;
    struct jit_source *into =
        begin_pass(names, process, &process->dump_pass, &process->dumped, &began);
    if (began) {
        jit_dump_release(&process->dump);
        process->dump.read = jit_read_dump_file;
        process->dump.context = process;
    }
    uint64_t refused = into->codes.refused;
    process->dump.allowance = allowance + 1; /* with which its end is seen */
    int r = jit_dump_read(&process->dump, &into->codes);
    if (into->codes.refused > refused)
        note_lost(names, process);
    if (r == 1)
        return;
    /* Code that was moved to where it is wanted has its name where it was before. */
    for (size_t i = 0; i < process->dump.moved_count; i++)
        if (jit_wanted_add(&process->wanted, process->dump.moved_from[i]))
            process->dump_pass.again = true;
    process->dump.moved_count = 0;
    end_pass(names, process, &process->dump_pass, &process->dumped);
}

static void read_granted(struct jit_names *names, const struct demand *demand)
{
    struct jit_process *process = demand->process;
    if (demand->granted < demand->wanted)
        note_lost(names, process);
    /* The dump says more: it comes first. */
    uint64_t dump_bytes = MIN(demand->granted, demand->dump_bytes);
    if (dump_bytes)
        read_dump(names, process, dump_bytes);
    if (demand->granted > dump_bytes)
        read_map(names, process, demand->granted - dump_bytes);
    account(names, process);
}

void jit_names_load_sampled(struct jit_names *names, const struct profile *profile)
{
    size_t count = 0;
    uint64_t maps_bytes = MAPS_ROUND_BYTES;
    names->round++;
    if (names->round % LOST_ROUNDS == 0)
        shares_tidy(&names->lost);
    want_sampled(names, profile);
    remove_idle(names);
    _cleanup_free_ struct demand *list = memory_zalloc(names->count + 1, sizeof(*list));
    for (size_t i = 0; i < names->count; i++)
        if (names->list[i]->round == names->round)
            look_at(names, names->list[i], &maps_bytes, &list[count++]);
    if (!count)
        return;
    grant_all(names, list, count);
    for (size_t i = 0; i < count; i++)
        read_granted(names, &list[i]);
}

void jit_names_forget(struct jit_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        jit_process_free(names->list[i]);
    names->count = 0;
    names->descriptors = 0;
    names->stats.bytes = 0;
    id_table_clear(&names->index);
    shares_clear(&names->shares);
}

size_t jit_names_excess(const struct jit_names *names, struct jit_excess *ret_list, size_t room)
{
    size_t count = 0;
    for (size_t i = 1; i < names->lost.count; i++) {
        const struct share *share = &names->lost.list[i];
        size_t at = count;
        while (at && ret_list[at - 1].count < share->refused)
            at--;
        if (at == room)
            continue;
        count = MIN(count + 1, room);
        memmove(ret_list + at + 1, ret_list + at, (count - at - 1) * sizeof(*ret_list));
        ret_list[at] = (struct jit_excess){share->owner, share->refused};
    }
    return count;
}
