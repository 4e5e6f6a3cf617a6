// SPDX-License-Identifier: Apache-2.0
// Samples of perf.data into the model: callchains, copied stacks, labels and values.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/memory.h"
#include "format/perfdata/perfdata.h"

#define KERNEL_NAME "[kernel.kallsyms]"

static const struct perf_walker *registered;

void perf_data_set_walker(const struct perf_walker *walker)
{
    registered = walker;
}

/* ---- events ---- */

static const char *event_name(const struct perf_event_attr *attr, char text[64])
{
    static const char *const hardware[] = {"cycles",
                                           "instructions",
                                           "cache-references",
                                           "cache-misses",
                                           "branches",
                                           "branch-misses",
                                           "bus-cycles",
                                           "stalled-cycles-frontend",
                                           "stalled-cycles-backend",
                                           "ref-cycles"};
    static const char *const software[] = {
        "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
        "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
        "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
    if (attr->type == PERF_TYPE_HARDWARE && attr->config < ARRAY_LENGTH(hardware))
        return hardware[attr->config];
    if (attr->type == PERF_TYPE_SOFTWARE && attr->config < ARRAY_LENGTH(software))
        return software[attr->config];
    snprintf(text, 64, attr->type == PERF_TYPE_RAW ? "r%" PRIx64 : "event-%" PRIx64,
             (uint64_t)attr->config);
    return text;
}

/* "cycles" of "cycles:ppp"; names of tracepoints have a colon of their own. */
static size_t without_modifiers(const struct perf_event_attr *attr, const char *name)
{
    size_t length = strlen(name);
    const char *colon = strrchr(name, ':');
    if (!colon || attr->type == PERF_TYPE_TRACEPOINT)
        return length;
    return colon[1 + strspn(colon + 1, "ukhIGHpPSDWRe")] ? length : (size_t)(colon - name);
}

static int types_full(struct perf_data *data)
{
    return error_set(data->error, -E2BIG, "Together the profiles have more than %d sample types.",
                     PROFILE_TYPES_MAX);
}

/* The event's sample type, made when its first sample comes. */
static int prepare_event(struct perf_data *data, struct perf_event_kind *event)
{
    struct profile *profile = data->profile;
    if (event->has_type)
        return 0;
    char text[64];
    const struct perf_event_attr *attr = &event->attr;
    event->clock = attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
                                                        attr->config == PERF_COUNT_SW_TASK_CLOCK);
    const char *name = event->name ? profile_text(profile, event->name) : event_name(attr, text);
    /* Two clocks measure the same time, which would be counted twice. */
    bool first = event->clock && (!data->clock || data->clock == 1 + attr->config);
    if (first)
        data->clock = 1 + attr->config;
    uint32_t type = first ? profile_cstring(profile, "cpu")
                          : profile_string(profile, name, without_modifiers(attr, name));
    uint32_t unit = profile_cstring(profile, event->clock ? "nanoseconds" : "count");
    event->type = profile_type(profile, type, unit);
    if (event->type == PROFILE_TYPES_MAX)
        return types_full(data);
    event->has_type = true;
    if (!profile->default_type || (data->chose_default && first)) {
        profile->default_type = type;
        data->chose_default = true;
    }
    if (first)
        profile_note_period(profile, type, unit,
                            attr->freq && attr->sample_freq
                                ? (int64_t)(1000000000 / MIN(attr->sample_freq, 1000000000ull))
                                : (int64_t)MIN(attr->sample_period, (uint64_t)INT64_MAX));
    return 0;
}

/* ---- frames ---- */

static void add_frame(struct perf_data *data, size_t *count, const struct profile_frame *frame)
{
    array_reserve(data->frames, data->frame_capacity, *count + 1);
    data->frames[(*count)++] = profile_frame(data->profile, frame);
}

static void add_mark(struct perf_data *data, size_t *count, const char *word)
{
    struct profile *profile = data->profile;
    struct profile_function function = {.name = profile_cstring(profile, word)};
    add_frame(data, count,
              &(struct profile_frame){.function = profile_function(profile, &function)});
}

static int compare_symbols(const void *left, const void *right)
{
    const struct perf_kernel_symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

/* BPF programs and other code that the kernel has announced; 0: none. */
static uint32_t announced_name(struct perf_data *data, uint64_t address)
{
    struct perf_kernel_symbol *symbols = data->kernel_symbols;
    if (!data->kernel_symbols_sorted && data->kernel_symbol_count) {
        qsort(symbols, data->kernel_symbol_count, sizeof(*symbols), compare_symbols);
        for (size_t i = 0; i < data->kernel_symbol_count; i++)
            symbols[i].serial = (uint32_t)i;
        data->kernel_symbols_sorted = true;
    }
    size_t low = 0, high = data->kernel_symbol_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < symbols[low - 1].end ? symbols[low - 1].name : 0;
}

/* Whether the recording is of the machine that reads it. */
static bool is_local(const struct perf_data *data)
{
    struct utsname here;
    return uname(&here) == 0 && !strcmp(here.nodename, data->hostname) &&
           !strcmp(here.release, data->release);
}

static uint32_t intern_kernel(struct perf_data *data)
{
    struct profile *profile = data->profile;
    const struct perf_mapping *text =
        data->kernel_text ? perf_list_find(&data->kernel, data->kernel_text) : NULL;
    const char *build_id = text ? data->files[text->file].build_id : "";
    if (!*build_id && data->walker && is_local(data))
        build_id = registered->running_kernel(data->walker);
    return profile_mapping(
        profile, &(struct profile_mapping){.start = data->kernel_text,
                                           .limit = UINT64_MAX,
                                           .offset = data->kernel_text, /* offsets are addresses */
                                           .file = profile_cstring(profile, KERNEL_NAME),
                                           .build_id = profile_cstring(profile, build_id)});
}

static void add_kernel_frame(struct perf_data *data, size_t *count, uint64_t address)
{
    struct profile *profile = data->profile;
    uint32_t name = announced_name(data, address);
    struct profile_frame frame = {.address = address, .kind = FRAME_KERNEL};
    if (name)
        frame.function = profile_function(profile, &(struct profile_function){.name = name});
    if (!data->kernel_mapping)
        data->kernel_mapping = intern_kernel(data);
    frame.mapping = data->kernel_mapping;
    add_frame(data, count, &frame);
}

static uint32_t generated_mapping(struct perf_data *data, struct perf_process *process)
{
    if (!process->generated) {
        char name[32];
        /* Names of such code are in files of this machine, by pid. */
        if (!data->hostname[0] || is_local(data))
            snprintf(name, sizeof(name), "[jit %u]", process->pid);
        else
            snprintf(name, sizeof(name), "//anon");
        process->generated = profile_mapping(
            data->profile, &(struct profile_mapping){.limit = UINT64_MAX,
                                                     .file = profile_cstring(data->profile, name)});
    }
    return process->generated;
}

uint32_t perf_file_mapping(struct perf_data *data, struct perf_mapping *mapping)
{
    struct profile *profile = data->profile;
    const struct perf_file *file = &data->files[mapping->file];
    if (!mapping->interned)
        mapping->interned = profile_mapping(
            profile,
            &(struct profile_mapping){.start = mapping->start,
                                      .limit = mapping->end,
                                      .offset = mapping->offset,
                                      .file = profile_cstring(profile, file->path),
                                      .build_id = profile_cstring(profile, file->build_id)});
    return mapping->interned;
}

static void add_user_frame(struct perf_data *data, size_t *count, struct perf_process *process,
                           uint64_t address)
{
    struct perf_mapping *mapping = perf_process_find(process, address);
    struct profile_frame frame = {.address = address, .kind = FRAME_NATIVE};
    if (mapping && data->files[mapping->file].generated) {
        frame.mapping = generated_mapping(data, process);
    } else if (mapping) {
        frame.mapping = perf_file_mapping(data, mapping);
        frame.address = address - mapping->start + mapping->offset;
    }
    add_frame(data, count, &frame);
}

/* ---- copied stacks ---- */

struct walk_context {
    struct perf_data *data;
    struct perf_process *process;
};

static bool find_place(void *context, uint64_t address, struct perf_walk_place *ret)
{
    const struct walk_context *walk = context;
    const struct perf_mapping *mapping = perf_process_find(walk->process, address);
    if (!mapping)
        return false;
    const struct perf_file *file = &walk->data->files[mapping->file];
    *ret = (struct perf_walk_place){.path = file->path,
                                    .build_id = file->build_id,
                                    .number = mapping->file,
                                    .start = mapping->start,
                                    .offset = mapping->offset,
                                    .inode = mapping->inode,
                                    .generated = file->generated};
    return true;
}

/* The kernel's numbers of x86-64 registers, by DWARF's. */
static const uint8_t kernel_number[PERF_WALK_REGISTERS] = {0,  3,  2,  1,  4,  5,  6,  7, 16,
                                                           17, 18, 19, 20, 21, 22, 23, 8};

static bool take_registers(const struct perf_sample *sample, uint64_t mask,
                           struct perf_walk_request *request)
{
    for (unsigned i = 0; i < PERF_WALK_REGISTERS; i++) {
        unsigned number = kernel_number[i];
        if (!(mask >> number & 1))
            continue;
        unsigned before = (unsigned)__builtin_popcountll(mask & ((1ull << number) - 1));
        request->registers[i] = perf_load_u64(sample->registers + 8 * (size_t)before);
        request->known |= 1u << i;
    }
    uint32_t needed = 1u << 16 | 1u << 7; /* ip and sp */
    return (request->known & needed) == needed;
}

/* Adds the frames of a copied stack, outermost first. False: there is none that can be walked. */
static bool add_walked(struct perf_data *data, const struct perf_event_kind *event,
                       const struct perf_sample *sample, struct perf_process *process,
                       size_t *count)
{
    struct walk_context context = {data, process};
    struct perf_walk_request request = {.stack = sample->stack,
                                        .stack_bytes = (size_t)sample->stack_bytes,
                                        .find = find_place,
                                        .context = &context};
    enum { ABI_64 = 2 };
    if (sample->registers_abi != ABI_64 || (data->has_architecture && !data->x86_64) ||
        !take_registers(sample, event->attr.sample_regs_user, &request))
        return false;
    if (!data->walker) {
        data->unwalked++;
        add_user_frame(data, count, process, request.registers[16]);
        return true;
    }
    size_t walked = 0;
    enum perf_walk_end end =
        registered->walk(data->walker, &request, data->walked, ARRAY_LENGTH(data->walked), &walked);
    if (end != PERF_WALK_COMPLETE)
        add_mark(data, count, end == PERF_WALK_TRUNCATED ? "[truncated]" : "[unknown]");
    for (size_t i = walked; i-- > 0;)
        add_user_frame(data, count, process, data->walked[i].address);
    return true;
}

/* ---- callchains ---- */

/* Index behind the last entry of the chain that is the kernel's: it comes first. */
static size_t kernel_part(const struct perf_sample *sample, bool in_kernel)
{
    bool kernel = in_kernel;
    size_t i = 0;
    for (; i < sample->chain_count; i++) {
        uint64_t word = perf_load_u64(sample->chain + 8 * i);
        if (word < PERF_CONTEXT_MAX) {
            if (!kernel)
                break;
            continue;
        }
        kernel = word == (uint64_t)PERF_CONTEXT_KERNEL || word == (uint64_t)PERF_CONTEXT_HV;
        if (!kernel)
            break;
    }
    return i;
}

/* Entries from..to of the chain, outermost first. In each part the first is the instruction itself
 * and the others are return addresses, one behind the call. */
static void add_chain(struct perf_data *data, const struct perf_sample *sample, size_t from,
                      size_t to, struct perf_process *process, bool kernel, size_t *count)
{
    size_t first = from;
    while (first < to && perf_load_u64(sample->chain + 8 * first) >= PERF_CONTEXT_MAX)
        first++;
    for (size_t i = to; i-- > from;) {
        uint64_t address = perf_load_u64(sample->chain + 8 * i);
        if (address >= PERF_CONTEXT_MAX)
            continue;
        address -= i > first && address;
        if (kernel)
            add_kernel_frame(data, count, address);
        else
            add_user_frame(data, count, process, address);
    }
}

static size_t collect_frames(struct perf_data *data, const struct perf_event_kind *event,
                             const struct perf_event_header *header,
                             const struct perf_sample *sample)
{
    size_t count = 0;
    unsigned mode = header->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    bool in_kernel = mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_HYPERVISOR;
    struct perf_process *process = perf_process(data, sample->pid);
    size_t split = kernel_part(sample, in_kernel);
    bool walked = event->attr.sample_type & PERF_SAMPLE_STACK_USER && sample->registers &&
                  add_walked(data, event, sample, process, &count);
    if (!walked)
        add_chain(data, sample, split, (size_t)sample->chain_count, process, false, &count);
    add_chain(data, sample, 0, split, process, true, &count);
    if (!count && sample->has_ip) {
        if (in_kernel)
            add_kernel_frame(data, &count, sample->ip);
        else
            add_user_frame(data, &count, process, sample->ip);
    }
    return count;
}

/* ---- samples ---- */

static uint32_t label_set(struct perf_data *data, const struct perf_sample *sample)
{
    struct profile *profile = data->profile;
    if (!(profile->detail & PROFILE_LABELS) || !sample->has_tid)
        return 0;
    struct profile_label labels[] = {
        {.key = profile_cstring(profile, "comm"),
         .text = perf_thread_comm(data, sample->pid, sample->tid)},
        {.key = profile_cstring(profile, "pid"), .number = sample->pid},
        {.key = profile_cstring(profile, "tid"), .number = sample->tid},
    };
    return profile_label_set(profile, labels, ARRAY_LENGTH(labels));
}

int perf_take_sample(struct perf_data *data, const struct perf_event_header *header)
{
    struct profile *profile = data->profile;
    uint64_t time;
    struct perf_event_kind *event = &data->events[perf_record_event(data, header, &time)];
    struct perf_sample sample;
    unsigned mode = header->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER) {
        data->guest_samples++;
        return 0;
    }
    if (!perf_decode_sample(data, event, header, &sample)) {
        data->short_records++;
        return 0;
    }
    int r = prepare_event(data, event);
    if (r < 0)
        return r;
    size_t count = collect_frames(data, event, header, &sample);
    uint32_t node = profile_stack(profile, data->frames, count);
    uint64_t when = sample.has_time && data->has_clock
                        ? sample.time + (uint64_t)data->wall_offset_ns
                        : sample.time;
    size_t row =
        profile_sample(profile, node, label_set(data, &sample), 0, sample.has_time ? when : 0);
    profile_add_value(profile, row, data->samples_type, 1);
    profile_add_value(profile, row, event->type, (int64_t)MIN(sample.period, (uint64_t)INT64_MAX));
    if (sample.branch_count && perf_wants_branches(data))
        perf_take_branches(data, &sample);
    data->sample_count++;
    if (sample.has_time) {
        if (!data->first_time || when < data->first_time)
            data->first_time = when;
        data->last_time = MAX(data->last_time, when);
    }
    if (profile_full(profile))
        return error_set(data->error, -E2BIG, "There are more than %zu different stacks.",
                         (size_t)profile->node_count);
    return source_check_memory(data->error);
}

int perf_samples_begin(struct perf_data *data)
{
    struct profile *profile = data->profile;
    data->samples_type = profile_type(profile, profile_cstring(profile, "samples"),
                                      profile_cstring(profile, "count"));
    if (data->samples_type == PROFILE_TYPES_MAX)
        return types_full(data);
    data->walker = registered ? registered->start() : NULL;
    return 0;
}

void perf_samples_end(struct perf_data *data)
{
    if (data->walker)
        registered->stop(data->walker);
    free(data->frames);
}
