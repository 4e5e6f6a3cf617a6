// SPDX-License-Identifier: Apache-2.0
// The child's side of confined.h: first the limits, then the filter of system calls, then the work.

#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "symbol/confined.h"

enum { EXIT_FAILED = 3, EXIT_NOT_CONFINED = 4 };

void confined_write(const void *bytes, size_t length)
{
    if (file_write_all(CONFINED_OUTPUT, bytes, length) < 0)
        _exit(EXIT_FAILED);
}

/* The size of the process's existing mappings. A sanitizer's share is terabytes. */
static uint64_t address_space_bytes(void)
{
    char text[64] = {0};
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    return got > 0 ? strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static bool limit(int what, uint64_t value)
{
    /* A signal comes at the first of the two limits; with both the same it is SIGKILL. */
    struct rlimit both = {.rlim_cur = value, .rlim_max = value}, now;
    if (getrlimit(what, &now) < 0)
        return false;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
        both.rlim_cur = both.rlim_max = now.rlim_max;
    return setrlimit(what, &both) == 0;
}

static bool set_limits(const struct confined_program *program, const struct confined_input *input)
{
    uint64_t files = 0, memory = program->memory_bytes;
    for (int i = 0; i < CONFINED_FILES_MAX; i++) {
        struct stat found;
        if (input->files[i] >= 0 && fstat(input->files[i], &found) == 0 && found.st_size > 0)
            files += (uint64_t)found.st_size;
    }
    if (program->memory_ratio && files < memory / program->memory_ratio)
        memory = MIN(memory, CONFINED_MEMORY_FLOOR + program->memory_ratio * files);
    uint64_t bytes = address_space_bytes() + memory + files;
    return limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) &&
           limit(RLIMIT_NOFILE, CONFINED_FILES + CONFINED_FILES_MAX) &&
           limit(RLIMIT_CPU, program->cpu_seconds) && limit(RLIMIT_AS, bytes) &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/*
 * The system calls that allocation and reading need. Calls that open files by name fail as if the
 * files were missing, since libraries try that; any other call ends the process.
 */
static bool filter_calls(void)
{
    static const int allowed[] = {
        SCMP_SYS(read),        SCMP_SYS(pread64),     SCMP_SYS(lseek),         SCMP_SYS(fstat),
        SCMP_SYS(close),       SCMP_SYS(munmap),      SCMP_SYS(mremap),        SCMP_SYS(brk),
        SCMP_SYS(futex),       SCMP_SYS(madvise),     SCMP_SYS(clock_gettime), SCMP_SYS(exit),
        SCMP_SYS(exit_group),  SCMP_SYS(sched_yield), SCMP_SYS(getpid),        SCMP_SYS(gettid),
        SCMP_SYS(sigaltstack),
    };
    static const int denied[] = {SCMP_SYS(open),       SCMP_SYS(openat), SCMP_SYS(readlink),
                                 SCMP_SYS(readlinkat), SCMP_SYS(access), SCMP_SYS(stat),
                                 SCMP_SYS(getcwd),     SCMP_SYS(fcntl),  SCMP_SYS(sysinfo)};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (!filter)
        return false;
    int r = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++)
        r |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    for (size_t i = 0; i < ARRAY_LENGTH(denied); i++)
        r |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), denied[i], 0);
    /* fstat() of some C libraries is a newfstatat of the descriptor itself. */
    r |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
                          SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH));
    r |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(newfstatat), 1,
                          SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, 0));
    r |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
                          SCMP_A0(SCMP_CMP_EQ, CONFINED_OUTPUT));
    r |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
                          SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO));
    r |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                          SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    r |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                          SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (!r)
        r = seccomp_load(filter);
    seccomp_release(filter);
    return r == 0;
}

/* The C library loads a few things when they are first used, which is too late afterwards. */
static void use_lazy_things(void)
{
    char text[8];
    snprintf(text, sizeof(text), "%d", 1);
    free(memory_alloc(1));
}

void confined_child_run(const struct confined_program *program)
{
    struct confined_input input = {0};
    struct stat found;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fstat(CONFINED_OUTPUT, &found) < 0 || fstat(CONFINED_REQUEST, &found) < 0)
        _exit(EXIT_FAILED);
    input.request_bytes = (size_t)found.st_size;
    if (found.st_size > 0) {
        void *map = mmap(NULL, input.request_bytes, PROT_READ, MAP_PRIVATE, CONFINED_REQUEST, 0);
        if (map == MAP_FAILED)
            _exit(EXIT_FAILED);
        input.request = map;
    }
    for (int i = 0; i < CONFINED_FILES_MAX; i++)
        input.files[i] = fstat(CONFINED_FILES + i, &found) == 0 ? CONFINED_FILES + i : -1;
    use_lazy_things();
    if (!set_limits(program, &input) || !filter_calls())
        _exit(EXIT_NOT_CONFINED);
    _exit(program->run(&input) == 0 ? 0 : EXIT_FAILED);
}
