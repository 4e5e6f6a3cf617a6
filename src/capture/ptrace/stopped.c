// SPDX-License-Identifier: Apache-2.0
// Other processes' threads: see stopped.h.

#include "capture/ptrace/stopped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

long task_status_number(pid_t pid, pid_t tid, const char *key)
{
    char path[64], line[256];
    size_t length = strlen(key);
    long number = -1;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    while (file && number < 0 && fgets(line, sizeof(line), file))
        if (!strncmp(line, key, length) && line[length] == ':')
            number = atol(line + length + 1);
    if (file)
        fclose(file);
    return number;
}

/* The name may hold anything, parentheses among it. */
int task_stat_read(pid_t pid, pid_t tid, struct task_stat *ret_stat)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0)
        return -ESRCH;
    text[length] = '\0';
    char *start = strchr(text, '('), *end = strrchr(text, ')');
    struct task_stat stat = {0};
    unsigned long user, system;
    if (!start || !end ||
        sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu", &stat.state,
               &stat.flags, &user, &system) != 4)
        return -ESRCH;
    *end = '\0';
    snprintf(stat.name, sizeof(stat.name), "%s", start + 1);
    stat.ticks = user + system;
    *ret_stat = stat;
    return 0;
}

int stopped_registers(pid_t tid, struct thread_registers *ret_registers)
{
    struct user_regs_struct user;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &user) < 0)
        return -errno;
    *ret_registers = registers_of_thread(&user);
    return 0;
}

size_t stopped_memory(pid_t tid, uint64_t address, void *to, size_t length)
{
    struct iovec local = {to, length}, remote = {(void *)(uintptr_t)address, length};
    ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

int ptrace_scope(void)
{
    int scope = 0;
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file) {
        if (fscanf(file, "%d", &scope) != 1)
            scope = 0;
        fclose(file);
    }
    return scope;
}
