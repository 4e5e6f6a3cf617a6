// SPDX-License-Identifier: Apache-2.0
// Threads under a tracer, and their accounts: see tracees.h.

#include "capture/ptrace/tracees.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/ptrace/stopped.h"

/* ---- the table ---- */

/* The scheduler's counters: CPU time in nanoseconds, time waiting for it, and turns.
 * False where the kernel doesn't count. */
static bool scheduler_counts(pid_t pid, pid_t tid, uint64_t *ret_cpu_ns, uint64_t *ret_wait_ns)
{
    char path[64], text[128];
    *ret_cpu_ns = *ret_wait_ns = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[MAX(length, 0)] = '\0';
    char *end;
    *ret_cpu_ns = strtoull(text, &end, 10);
    *ret_wait_ns = strtoull(end, &end, 10);
    return strtoull(end, NULL, 10) > 0;
}

void tracees_init(struct tracees *tracees)
{
    uint64_t cpu_ns, wait_ns;
    *tracees = (struct tracees){.coarse = !scheduler_counts(getpid(), getpid(), &cpu_ns, &wait_ns)};
}

static void drop_process(struct tracee_process *process)
{
    if (--process->threads > 0)
        return;
    free(process->mappings);
    free(process);
}

void tracees_release(struct tracees *tracees)
{
    for (size_t i = 0; i < tracees->count; i++) {
        drop_process(tracees->list[i]->process);
        free(tracees->list[i]);
    }
    free(tracees->list);
    free(tracees->accounts);
    *tracees = (struct tracees){0};
}

/* The first whose tid is not below. */
static size_t position_of(const struct tracees *tracees, pid_t tid)
{
    size_t low = 0, high = tracees->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (tracees->list[middle]->tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tracee *tracees_find(const struct tracees *tracees, pid_t tid)
{
    size_t at = position_of(tracees, tid);
    return at < tracees->count && tracees->list[at]->tid == tid ? tracees->list[at] : NULL;
}

static struct tracee_process *new_process(pid_t pid, const struct tracee_process *parent)
{
    struct tracee_process *process = memory_zalloc(1, sizeof(*process));
    process->pid = pid;
    if (!parent)
        return process;
    memcpy(process->name, parent->name, sizeof(process->name));
    process->size_pages = parent->size_pages;
    array_reserve(process->mappings, process->mapping_capacity, parent->mapping_count);
    if (parent->mapping_count)
        memcpy(process->mappings, parent->mappings,
               parent->mapping_count * sizeof(*parent->mappings));
    process->mapping_count = parent->mapping_count;
    return process;
}

struct tracee *tracees_add(struct tracees *tracees, pid_t tid, pid_t pid,
                           const struct tracee_process *parent)
{
    if (tracees->count == TRACEES_MAX) {
        tracees->refused++;
        return NULL;
    }
    /* The first thread's entry stays as long as the process does. */
    const struct tracee *leader = tid == pid ? NULL : tracees_find(tracees, pid);
    struct tracee *tracee = memory_zalloc(1, sizeof(*tracee));
    tracee->tid = tid;
    tracee->process = leader ? leader->process : new_process(pid, parent);
    tracee->process->threads++;
    tracee->process->living++;
    memcpy(tracee->name, tracee->process->name, sizeof(tracee->name));
    size_t at = position_of(tracees, tid);
    array_reserve(tracees->list, tracees->capacity, tracees->count + 1);
    memmove(tracees->list + at + 1, tracees->list + at,
            (tracees->count - at) * sizeof(*tracees->list));
    tracees->list[at] = tracee;
    tracees->count++;
    return tracee;
}

void tracees_remove(struct tracees *tracees, struct tracee *tracee)
{
    size_t at = position_of(tracees, tracee->tid);
    memmove(tracees->list + at, tracees->list + at + 1,
            (tracees->count - at - 1) * sizeof(*tracees->list));
    tracees->count--;
    drop_process(tracee->process);
    free(tracee);
}

/* ---- clocks ---- */

uint64_t tracee_cpu_ns(const struct tracees *tracees, const struct tracee *tracee,
                       uint64_t *ret_wait_ns)
{
    uint64_t cpu_ns = 0, wait_ns = 0;
    struct task_stat stat;
    if (!tracees->coarse)
        scheduler_counts(tracee->process->pid, tracee->tid, &cpu_ns, &wait_ns);
    else if (task_stat_read(tracee->process->pid, tracee->tid, &stat) == 0)
        cpu_ns = stat.ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
    if (ret_wait_ns)
        *ret_wait_ns = wait_ns;
    return cpu_ns;
}

/* The clock of another process; those of its threads cannot be read like that. 0 when it has
 * ended. */
static uint64_t process_clock_ns(const struct tracee_process *process)
{
    struct timespec used;
    if (clock_gettime((clockid_t)(~(unsigned)process->pid << 3 | 2), &used) < 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* The scheduler counts what a running thread uses at its own pace, some milliseconds. */
uint64_t tracee_clock_ns(const struct tracees *tracees, const struct tracee *tracee)
{
    return tracee->process->living == 1 ? process_clock_ns(tracee->process)
                                        : tracee_cpu_ns(tracees, tracee, NULL);
}

bool tracee_process_active(struct tracee_process *process, uint64_t look)
{
    if (process->looked_at != look) {
        uint64_t clock_ns = process_clock_ns(process);
        process->looked_at = look;
        process->active = clock_ns != process->clock_ns;
        process->clock_ns = clock_ns;
    }
    return process->active;
}

/* ---- accounts ---- */

static struct tracee_account *find_account(const struct tracees *tracees, const char *name)
{
    for (size_t i = 0; i < tracees->account_count; i++)
        if (!strcmp(tracees->accounts[i].name, name))
            return &tracees->accounts[i];
    return NULL;
}

/* CPU time since the thread's last sample; 0 for a thread that has ended. */
static uint64_t unpaid_ns(const struct tracees *tracees, const struct tracee *tracee)
{
    uint64_t used_ns = tracee_cpu_ns(tracees, tracee, NULL);
    return used_ns > tracee->paid_ns ? used_ns - tracee->paid_ns : 0;
}

uint64_t tracees_settle(struct tracees *tracees, struct tracee *tracee)
{
    struct tracee_process *process = tracee->process;
    struct tracee_account *account = find_account(tracees, process->name);
    uint64_t unpaid = unpaid_ns(tracees, tracee), owed_ns = unpaid + process->owed_ns;
    tracee->paid_ns += unpaid;
    process->owed_ns = 0;
    if (account) {
        owed_ns += account->owed_ns;
        *account = tracees->accounts[--tracees->account_count];
    }
    return owed_ns;
}

uint64_t tracees_owed_ns(const struct tracees *tracees, const struct tracee_process *process)
{
    const struct tracee_account *account = find_account(tracees, process->name);
    return process->owed_ns + (account ? account->owed_ns : 0);
}

bool tracees_end(struct tracees *tracees, struct tracee *tracee)
{
    if (!tracee->ending) {
        uint64_t unpaid = unpaid_ns(tracees, tracee);
        tracee->paid_ns += unpaid;
        tracee->process->owed_ns += unpaid;
        tracee->process->living--;
        tracee->ending = true;
    }
    return tracee->process->living == 0;
}

void tracees_bequeath(struct tracees *tracees, struct tracee_process *process)
{
    if (!process->owed_ns)
        return;
    struct tracee_account *account = find_account(tracees, process->name);
    if (!account && tracees->account_count == TRACEE_NAMES_MAX) {
        tracees->written_off_ns += process->owed_ns;
    } else {
        if (!account) {
            array_reserve(tracees->accounts, tracees->account_capacity, tracees->account_count + 1);
            account = &tracees->accounts[tracees->account_count++];
            *account = (struct tracee_account){0};
            memcpy(account->name, process->name, sizeof(account->name));
        }
        account->owed_ns += process->owed_ns;
    }
    process->owed_ns = 0;
}

uint64_t tracees_unsettled_ns(const struct tracees *tracees)
{
    uint64_t sum_ns = tracees->written_off_ns;
    for (size_t i = 0; i < tracees->account_count; i++)
        sum_ns += tracees->accounts[i].owed_ns;
    return sum_ns;
}
