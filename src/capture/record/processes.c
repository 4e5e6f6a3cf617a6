// SPDX-License-Identifier: Apache-2.0
// Processes and their mappings: see processes.h.

#include "capture/record/processes.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/record/excess.h"
#include "capture/record/module_file.h"

/* A process that has ended is kept for its last samples. */
#define ENDED_REST_NS 1000000000
/* With limits: of /proc/PID/maps at first, which is some 2,500 mappings, and so many times more
 * each time that it was not enough; and what a look takes at least. */
#define LOOKUP_BYTES (256u << 10)
#define LOOKUP_GROWTH 4
#define LOOKUP_BYTES_MAX (16u << 20)
#define LOOKUP_LEAST_NS 100000
#define SEARCHES_PART 2 /* of what may be spent on catching up */
#define LOOKUPS_SPAN_NS 10000000000
/* A process's user is looked at again after so long. */
#define USER_REST_NS 1000000000
/* Between looks at who was refused mappings. */
#define EXCESS_NS 1000000000
/* Refusals of users without processes are remembered for this long. */
#define SHARES_REST_NS 300000000000

void processes_init(struct processes *processes, struct modules *modules)
{
    memset(processes, 0, sizeof(*processes));
    processes->modules = modules;
}

void processes_limit(struct processes *processes, const struct processes_limits *limits)
{
    processes->limits = *limits;
    shares_init(&processes->mappings, limits->mappings);
    shares_init(&processes->lookups, (uint64_t)limits->lookup_ns);
    shares_init(&processes->searches, (uint64_t)limits->lookup_ns / SEARCHES_PART);
}

/* ---- what a user may have ---- */

/* A process can change its user at any time: sessions and workers begin as root's. What it holds
 * goes with it. */
static uint32_t user_of(struct processes *processes, struct process *process)
{
    char path[32];
    struct stat found;
    int64_t now_ns = monotonic_ns();
    if (process->user != PROCESS_USER_UNKNOWN && now_ns - process->user_ns < USER_REST_NS)
        return process->user;
    snprintf(path, sizeof(path), "/proc/%" PRIu32, process->pid);
    if (stat(path, &found) == 0)
        process->user = found.st_uid;
    process->user_ns = now_ns;
    if (process->charged && process->charged_user != process->user) {
        uint32_t charged = process->charged;
        shares_give(&processes->mappings, process->charged_user, charged);
        process->charged_user = process->user;
        process->charged = (uint32_t)shares_charge(&processes->mappings, process->user, charged);
    }
    return process->user;
}

static bool take_mappings(struct processes *processes, struct process *process, size_t count)
{
    if (!processes->limits.mappings)
        return true;
    uint32_t user = user_of(processes, process);
    if (!process->charged)
        process->charged_user = user;
    if (!shares_take(&processes->mappings, process->charged_user, count))
        return false;
    process->charged += (uint32_t)count;
    return true;
}

/* In which cgroup that was, for people to read. Looking takes time: once a second. */
static void refuse_mappings(struct processes *processes, const struct process *process)
{
    int64_t now_ns = monotonic_ns();
    processes->refused++;
    if (!processes->excess || now_ns - processes->excess_ns < EXCESS_NS)
        return;
    processes->excess_ns = now_ns;
    excess_note(processes->excess, process->pid, EXCESS_MAPPINGS, 0, now_ns);
}

static void give_mappings(struct processes *processes, struct process *process, size_t count)
{
    count = MIN(count, (size_t)process->charged);
    if (count)
        shares_give(&processes->mappings, process->charged_user, count);
    process->charged -= (uint32_t)count;
}

/* The cost of the last look predicts the next one's; it grows with the bytes read. */
static bool may_look_up(struct processes *processes, struct process *process, int64_t now_ns,
                        int64_t *ret_expected_ns)
{
    if (!process->lookup_bytes)
        process->lookup_bytes = processes->limits.lookup_ns ? LOOKUP_BYTES : UINT64_MAX;
    *ret_expected_ns = 0;
    if (!processes->limits.lookup_ns)
        return true;
    if (now_ns - processes->lookups_ns >= LOOKUPS_SPAN_NS) {
        processes->lookups_ns = now_ns;
        shares_clear(&processes->lookups);
    }
    *ret_expected_ns = MAX(process->lookup_ns, LOOKUP_LEAST_NS);
    if (shares_take(&processes->lookups, user_of(processes, process), (uint64_t)*ret_expected_ns))
        return true;
    processes->postponed++;
    return false;
}

static void note_lookup(struct processes *processes, struct process *process, int64_t took_ns,
                        int64_t expected_ns, bool cut)
{
    process->lookup_ns = took_ns;
    if (!processes->limits.lookup_ns)
        return;
    if (took_ns > expected_ns)
        shares_charge(&processes->lookups, user_of(processes, process),
                      (uint64_t)(took_ns - expected_ns));
    if (cut && process->lookup_bytes < LOOKUP_BYTES_MAX) {
        process->lookup_bytes *= LOOKUP_GROWTH;
        process->lookup_ns *= LOOKUP_GROWTH;
    }
}

bool processes_may_search(struct processes *processes, struct process *process, int64_t now_ns)
{
    if (!processes->limits.lookup_ns)
        return true;
    if (now_ns - processes->searches_ns >= LOOKUPS_SPAN_NS) {
        processes->searches_ns = now_ns;
        shares_clear(&processes->searches);
    }
    process->search_ns = MAX(process->search_ns, LOOKUP_LEAST_NS);
    return shares_take(&processes->searches, user_of(processes, process),
                       (uint64_t)process->search_ns);
}

void processes_searched(struct processes *processes, struct process *process, int64_t took_ns)
{
    if (processes->limits.lookup_ns && took_ns > process->search_ns)
        shares_charge(&processes->searches, user_of(processes, process),
                      (uint64_t)(took_ns - process->search_ns));
    process->search_ns = took_ns;
}

static struct process **seat_of(const struct processes *processes, uint32_t pid)
{
    struct process **page = pid < PIDS_MAX ? processes->pages[pid / PIDS_PER_PAGE] : NULL;
    return page ? &page[pid % PIDS_PER_PAGE] : NULL;
}

static void forget(struct processes *processes, struct process *process)
{
    if (processes->forget)
        processes->forget(processes->context, process);
    struct process *last = processes->list[--processes->count];
    processes->list[process->at] = last;
    last->at = process->at;
    *seat_of(processes, process->pid) = NULL;
    /* Over months every pid comes by once. */
    uint32_t page = process->pid / PIDS_PER_PAGE;
    if (!--processes->page_users[page]) {
        free(processes->pages[page]);
        processes->pages[page] = NULL;
    }
    give_mappings(processes, process, process->count);
    interpreter_unref(process->interpreter);
    contexts_leave(&process->contexts);
    free(process->mappings);
    free(process);
}

void processes_release(struct processes *processes)
{
    while (processes->count)
        forget(processes, processes->list[processes->count - 1]);
    for (size_t i = 0; i < ARRAY_LENGTH(processes->pages); i++)
        free(processes->pages[i]);
    free(processes->list);
    free(processes->threads);
    shares_release(&processes->mappings);
    shares_release(&processes->lookups);
    shares_release(&processes->searches);
    id_table_release(&processes->thread_index);
}

struct process *processes_find(const struct processes *processes, uint32_t pid)
{
    struct process **seat = seat_of(processes, pid);
    return seat ? *seat : NULL;
}

struct process *processes_get(struct processes *processes, uint32_t pid)
{
    struct process *process = processes_find(processes, pid);
    if (process)
        return process;
    if (processes->count == PROCESSES_MAX || pid >= PIDS_MAX) {
        processes->refused++;
        return NULL;
    }
    if (!processes->pages[pid / PIDS_PER_PAGE])
        processes->pages[pid / PIDS_PER_PAGE] = memory_zalloc(PIDS_PER_PAGE, sizeof(process));
    process = memory_zalloc(1, sizeof(*process));
    process->pid = pid;
    process->user = PROCESS_USER_UNKNOWN;
    process->at = processes->count;
    array_reserve(processes->list, processes->capacity, processes->count + 1);
    processes->list[processes->count++] = process;
    processes->page_users[pid / PIDS_PER_PAGE]++;
    *seat_of(processes, pid) = process;
    return process;
}

void processes_start(struct processes *processes, uint32_t pid, const struct process *parent)
{
    struct process *old = processes_find(processes, pid);
    if (old)
        forget(processes, old);
    if (!parent || !parent->known)
        return; /* it is looked up when it is seen */
    struct process *process = processes_get(processes, pid);
    if (!process)
        return;
    process->user = parent->user;
    process->user_ns = parent->user_ns;
    if (!take_mappings(processes, process, parent->count)) {
        refuse_mappings(processes, process);
        return;
    }
    array_reserve(process->mappings, process->capacity, parent->count);
    if (parent->count)
        memcpy(process->mappings, parent->mappings, parent->count * sizeof(*process->mappings));
    process->count = parent->count;
    process->known = true;
    process->program = parent->program;
    process->interpreter = interpreter_ref(parent->interpreter);
    contexts_share(&process->contexts, &parent->contexts);
    process->parent = parent->number ? parent->number : parent->parent;
    process->began_here = true;
    process->ancestors[0] = parent->pid;
    memcpy(process->ancestors + 1, parent->ancestors,
           sizeof(process->ancestors) - sizeof(process->ancestors[0]));
    memcpy(process->name, parent->name, sizeof(process->name));
}

void processes_end(struct processes *processes, uint32_t pid, int64_t now_ns)
{
    struct process *process = processes_find(processes, pid);
    if (process)
        process->ended_ns = now_ns;
}

void processes_tidy(struct processes *processes, int64_t now_ns)
{
    if (processes->limits.mappings && now_ns - processes->tidied_ns >= SHARES_REST_NS) {
        processes->tidied_ns = now_ns;
        shares_tidy(&processes->mappings);
    }
    for (size_t i = processes->count; i-- > 0;) {
        struct process *process = processes->list[i];
        if (!process->ended_ns || now_ns - process->ended_ns < ENDED_REST_NS)
            continue;
        /* A main thread can end before the others. */
        if (kill((pid_t)process->pid, 0) == 0 || errno != ESRCH)
            process->ended_ns = 0;
        else
            forget(processes, process);
    }
}

void processes_doubt(struct processes *processes, int64_t now_ns)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct process *process = processes->list[i];
        process->known = false;
        process->caught_up_ns = 0;
        if (!process->ended_ns) /* those that have not are found by processes_tidy */
            process->ended_ns = now_ns;
    }
}

void processes_suspect(struct processes *processes, int64_t now_ns)
{
    for (size_t i = 0; i < processes->count; i++)
        if (!processes->list[i]->ended_ns)
            processes->list[i]->ended_ns = now_ns;
}

static struct thread *find_thread(const struct processes *processes, uint32_t tid)
{
    struct id_probe probe = id_probe_start(hash_word(tid));
    uint32_t id;
    while ((id = id_table_next(&processes->thread_index, &probe)) != ID_NONE)
        if (processes->threads[id].tid == tid)
            return &processes->threads[id];
    return NULL;
}

void processes_name_thread(struct processes *processes, uint32_t tid, const char *name)
{
    if (processes->no_thread_names)
        return;
    struct thread *thread = find_thread(processes, tid);
    /* Nobody says which of them are gone: all begin anew, with their processes' names. */
    if (!thread && processes->thread_count == THREADS_MAX) {
        processes->thread_count = 0;
        id_table_clear(&processes->thread_index);
    }
    if (!thread) {
        array_reserve(processes->threads, processes->thread_capacity, processes->thread_count + 1);
        id_table_insert(&processes->thread_index, hash_word(tid),
                        (uint32_t)processes->thread_count);
        thread = &processes->threads[processes->thread_count++];
        thread->tid = tid;
    }
    snprintf(thread->name, sizeof(thread->name), "%s", name);
}

const char *processes_thread_name(const struct processes *processes, const struct process *process,
                                  uint32_t tid)
{
    const struct thread *thread = tid == process->pid ? NULL : find_thread(processes, tid);
    return thread ? thread->name : process->name;
}

void process_execute(struct processes *processes, struct process *process, uint64_t time_ns)
{
    give_mappings(processes, process, process->count);
    process->count = 0;
    process->user = PROCESS_USER_UNKNOWN; /* the program may be another user's */
    process->lookup_bytes = 0;
    interpreter_unref(TAKE_PTR(process->interpreter));
    contexts_leave(&process->contexts);
    process->mapped++;
    process->interpreter_next_ns = 0;
    process->interpreter_looks = 0;
    process->known = true;
    process->changed = true;
    process->started = 0;
    process->replaced_ns = time_ns;
    process->first_list = 0;
    process->program = NULL;
    process->parent = process->number ? process->number : process->parent;
    process->began_here = true;
    process->number = 0;
    process->labels_epoch = 0;
}

void process_note_execution(struct process *process, uint64_t time_ns)
{
    process->replaced_ns = MAX(process->replaced_ns, time_ns);
    if (process->told_ns < time_ns)
        process->first_list = 0;
}

void process_note_list(struct process *process, uint32_t number, uint64_t until_ns)
{
    if (!process->first_list && until_ns >= process->replaced_ns)
        process->first_list = number;
}

bool process_list_is_stale(const struct process *process, uint32_t number, uint64_t time_ns)
{
    if (!process->replaced_ns || time_ns < process->replaced_ns)
        return false;
    return !process->first_list || (int32_t)(number - process->first_list) < 0;
}

/* The first mapping that ends after `address`. */
static size_t position_of(const struct process *process, uint64_t address)
{
    size_t low = 0, high = process->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (process->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct mapping *process_find(const struct process *process, uint64_t address)
{
    size_t at = position_of(process, address);
    if (at == process->count || process->mappings[at].start > address)
        return NULL;
    return &process->mappings[at];
}

bool process_place(void *process, uint64_t address, struct unwind_place *ret_place)
{
    const struct mapping *mapping = process_find(process, address);
    if (!mapping)
        return false;
    struct module *module = mapping->module;
    *ret_place = (struct unwind_place){.rows = module ? module_rows(module->table, module) : NULL,
                                       .bias = mapping->bias,
                                       .generated = mapping->generated};
    return true;
}

/* Takes [start, end) out of what is mapped; a mapping may lose its head, its tail or its middle. */
static void unmap(struct process *process, uint64_t start, uint64_t end)
{
    size_t at = position_of(process, start);
    while (at < process->count && process->mappings[at].start < end) {
        struct mapping *mapping = &process->mappings[at];
        if (mapping->start < start && mapping->end > end) {
            array_reserve(process->mappings, process->capacity, process->count + 1);
            mapping = &process->mappings[at];
            memmove(mapping + 1, mapping, (process->count - at) * sizeof(*mapping));
            process->count++;
            mapping->end = start;
            mapping[1].offset += end - mapping[1].start;
            mapping[1].start = end;
            return;
        }
        if (mapping->start < start) {
            mapping->end = start;
            at++;
        } else if (mapping->end > end) {
            mapping->offset += end - mapping->start;
            mapping->start = end;
            return;
        } else {
            memmove(mapping, mapping + 1, (process->count - at - 1) * sizeof(*mapping));
            process->count--;
        }
    }
}

/* Whether other code than this is there, or was. */
static bool replaces(const struct process *process, const struct mapping *mapping)
{
    for (size_t at = position_of(process, mapping->start);
         at < process->count && process->mappings[at].start < mapping->end; at++)
        if (process->mappings[at].module != mapping->module ||
            process->mappings[at].bias != mapping->bias)
            return true;
    return false;
}

void process_map(struct processes *processes, struct process *process,
                 const struct mapping_event *event)
{
    struct mapping mapping = {.start = event->start, .offset = event->offset};
    if (!event->length || __builtin_add_overflow(event->start, event->length, &mapping.end))
        return;
    struct module_request request = {.path = event->path,
                                     .pid = process->pid,
                                     .start = event->start,
                                     .end = mapping.end,
                                     .device = event->device,
                                     .inode = event->inode};
    memcpy(request.ancestors, process->ancestors, sizeof(request.ancestors));
    mapping.module = modules_get(processes->modules, &request);
    /* A JIT has written what is in no file; but what a program begins with is its own code, in a
     * memfd that was gone before it could be read. */
    bool is_first = !process->program && event->time_ns && module_file_is_memory(event->path);
    mapping.generated = !mapping.module && !is_first && modules_is_no_file(event->path);
    if (!process->program)
        process->program = mapping.module;
    if (mapping.module)
        module_bias(mapping.module, event->start, event->offset, &mapping.bias);
    if (replaces(process, &mapping)) {
        process->replaced_ns = MAX(process->replaced_ns, event->time_ns);
        process->churned_ns = process->replaced_ns;
        process->first_list = 0;
    }
    size_t before = process->count;
    process->mapped++;
    unmap(process, event->start, mapping.end);
    process->changed = true;
    give_mappings(processes, process, before - MIN(before, process->count));
    unsigned limit = processes->limits.process_mappings;
    bool full = process->count >= (limit ? limit : MAPPINGS_MAX);
    if (full && processes->limits.mappings)
        shares_refuse(&processes->mappings, user_of(processes, process));
    if (full || !take_mappings(processes, process, 1)) {
        refuse_mappings(processes, process);
        return;
    }
    size_t at = position_of(process, event->start);
    array_reserve(process->mappings, process->capacity, process->count + 1);
    memmove(process->mappings + at + 1, process->mappings + at,
            (process->count - at) * sizeof(*process->mappings));
    process->mappings[at] = mapping;
    process->count++;
}

static void read_name(uint32_t pid, uint32_t tid, char ret_name[16])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/comm", pid, tid);
    FILE *file = fopen(path, "re");
    ret_name[0] = '\0';
    if (!file)
        return;
    if (fgets(ret_name, 16, file))
        ret_name[strcspn(ret_name, "\n")] = '\0';
    fclose(file);
}

/* A process's threads, where they are called something else than the process. */
static void read_names(struct processes *processes, struct process *process)
{
    char path[64], name[16];
    read_name(process->pid, process->pid, process->name);
    if (processes->no_thread_names)
        return;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", process->pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        uint32_t tid = (uint32_t)atoi(entry->d_name);
        if (!tid || tid == process->pid)
            continue;
        read_name(process->pid, tid, name);
        if (name[0] && strcmp(name, process->name) != 0)
            processes_name_thread(processes, tid, name);
    }
    if (folder)
        closedir(folder);
}

/* "7f00-7f10 r-xp 00000000 fd:01 1234   /usr/lib/x.so"; false for what is not executable. */
static bool parse_mapping(char *line, struct mapping_event *ret_event)
{
    uint64_t end;
    unsigned device_major, device_minor;
    char protection[5];
    int name = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
               &ret_event->start, &end, protection, &ret_event->offset, &device_major,
               &device_minor, &ret_event->inode, &name) < 7 ||
        !name || protection[2] != 'x' || end <= ret_event->start)
        return false;
    ret_event->device = makedev(device_major, device_minor);
    ret_event->length = end - ret_event->start;
    ret_event->path = line + name;
    return true;
}

void process_catch_up(struct processes *processes, struct process *process)
{
    char path[64], line[4600];
    int64_t expected_ns, began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    process->caught_up_ns = monotonic_ns();
    if (!may_look_up(processes, process, process->caught_up_ns, &expected_ns))
        return;
    if (!process->name[0])
        read_names(processes, process);
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", process->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    struct mapping *before = process->mappings;
    size_t before_count = process->count;
    uint64_t left = process->lookup_bytes;
    give_mappings(processes, process, process->charged);
    process->mappings = NULL;
    process->count = process->capacity = 0;
    while (left && fgets(line, sizeof(line), file)) {
        struct mapping_event event = {0};
        left -= MIN(left, strlen(line));
        if (parse_mapping(line, &event))
            process_map(processes, process, &event);
    }
    fclose(file);
    note_lookup(processes, process, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns, expected_ns,
                !left);
    if (!process->count) {
        /* A process that is ending has nothing left: what it had is better. */
        process->mappings = before;
        process->count = process->capacity = before_count;
        return;
    }
    free(before);
    process->known = true;
    process->read_ns = (uint64_t)process->caught_up_ns;
}

void processes_learn(struct processes *processes, const pid_t *pids, size_t count, bool all)
{
    DIR *proc = all ? opendir("/proc") : NULL;
    struct dirent *entry;
    struct process *process;
    uint64_t pid;
    for (size_t i = 0; i < count; i++)
        if ((process = processes_get(processes, (uint32_t)pids[i])))
            process_catch_up(processes, process);
    while (proc && processes->count < PROCESSES_LEARN_MAX && (entry = readdir(proc))) {
        if (!text_to_u64(entry->d_name, strlen(entry->d_name), &pid) || pid >= PIDS_MAX ||
            !(process = processes_get(processes, (uint32_t)pid)))
            continue;
        if (!process->known)
            process_catch_up(processes, process);
        if (!process->known) /* it runs in the kernel only, or has ended */
            forget(processes, process);
    }
    if (proc)
        closedir(proc);
}
