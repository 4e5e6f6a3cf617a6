// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD whose calls fail when a test says so. $FAULTS names a file of
// `struct control`, which faults.py maps as well. Calls that libc makes to itself don't pass here.

#undef _FILE_OFFSET_BITS // pwrite and pwrite64 are two symbols here

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LARGE_BYTES (64u << 10)
#define EXPORT __attribute__((visibility("default")))

enum kind { NONE, WRITE, SYNC, MAP, SOCKET, BPF, LARGE, SMALL, KINDS };

struct control {
    _Atomic uint64_t kind;     /* that fails */
    _Atomic uint64_t position; /* calls of it since it was set */
    uint64_t skip, count;      /* so many pass, then so many fail */
    uint64_t error;
    _Atomic uint64_t seen[KINDS], failed[KINDS];
};

static struct control *control;

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = (void *)syscall(SYS_mmap, NULL, sizeof(*control), PROT_READ | PROT_WRITE,
                                MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        control = map;
}

static bool fails(enum kind kind)
{
    if (!control)
        return false;
    atomic_fetch_add(&control->seen[kind], 1);
    if (atomic_load(&control->kind) != kind)
        return false;
    uint64_t at = atomic_fetch_add(&control->position, 1);
    if (at < control->skip || at - control->skip >= control->count)
        return false;
    atomic_fetch_add(&control->failed[kind], 1);
    errno = (int)control->error;
    return true;
}

/* Writing to an event or a pipe of one's own doesn't fail in the real world. */
static bool write_fails(int fd)
{
    struct stat status;
    if (!control || fd <= STDERR_FILENO || fstat(fd, &status) || !S_ISREG(status.st_mode))
        return false;
    return fails(WRITE);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(type, name, parameters, arguments, condition, failure)                                \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        static _Atomic(__typeof__(&name)) real;                                                    \
        if (!atomic_load(&real))                                                                   \
            atomic_store(&real, REAL(name));                                                       \
        if (condition)                                                                             \
            return failure;                                                                        \
        return atomic_load(&real) arguments;                                                       \
    }

WRAP(ssize_t, write, (int fd, const void *data, size_t length), (fd, data, length), write_fails(fd),
     -1)
WRAP(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count),
     write_fails(fd), -1)
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t length, off_t at), (fd, data, length, at),
     write_fails(fd), -1)
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t length, off64_t at),
     (fd, data, length, at), write_fails(fd), -1)
WRAP(int, ftruncate, (int fd, off_t length), (fd, length), write_fails(fd), -1)
WRAP(int, ftruncate64, (int fd, off64_t length), (fd, length), write_fails(fd), -1)
WRAP(int, posix_fallocate, (int fd, off_t at, off_t length), (fd, at, length), write_fails(fd),
     (int)control->error)
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t length), (fd, mode, at, length),
     write_fails(fd), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), fails(WRITE), -1)
WRAP(int, renameat, (int from_fd, const char *from, int to_fd, const char *to),
     (from_fd, from, to_fd, to), fails(WRITE), -1)

WRAP(int, fsync, (int fd), (fd), fails(SYNC), -1)
WRAP(int, fdatasync, (int fd), (fd), fails(SYNC), -1)
WRAP(int, msync, (void *address, size_t length, int flags), (address, length, flags), fails(SYNC),
     -1)

WRAP(void *, mmap, (void *at, size_t length, int protection, int flags, int fd, off_t offset),
     (at, length, protection, flags, fd, offset), fails(MAP), MAP_FAILED)
WRAP(void *, mmap64, (void *at, size_t length, int protection, int flags, int fd, off64_t offset),
     (at, length, protection, flags, fd, offset), fails(MAP), MAP_FAILED)

WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), fails(SOCKET), -1)
WRAP(int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length),
     fails(SOCKET), -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), fails(SOCKET), -1)
WRAP(int, connect, (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length), fails(SOCKET), -1)
WRAP(int, accept, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length),
     fails(SOCKET), -1)
WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags), fails(SOCKET), -1)
WRAP(ssize_t, send, (int fd, const void *data, size_t length, int flags), (fd, data, length, flags),
     fails(SOCKET), -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
     fails(SOCKET), -1)
WRAP(ssize_t, recv, (int fd, void *data, size_t length, int flags), (fd, data, length, flags),
     fails(SOCKET), -1)
WRAP(ssize_t, recvfrom,
     (int fd, void *data, size_t length, int flags, struct sockaddr *address, socklen_t *size),
     (fd, data, length, flags, address, size), fails(SOCKET), -1)
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t length),
     (fd, level, name, value, length), fails(SOCKET), -1)

/* libbpf and assay call these by number. */
EXPORT long syscall(long number, ...)
{
    static _Atomic(__typeof__(&syscall)) real;
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if ((number == SYS_bpf || number == SYS_perf_event_open) && fails(BPF))
        return -1;
    if (!atomic_load(&real))
        atomic_store(&real, REAL(syscall));
    return atomic_load(&real)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- memory ---- */

extern void *__libc_malloc(size_t length);
extern void *__libc_calloc(size_t count, size_t length);
extern void *__libc_realloc(void *pointer, size_t length);

static bool memory_fails(size_t length)
{
    return fails(length >= LARGE_BYTES ? LARGE : SMALL);
}

EXPORT void *malloc(size_t length)
{
    return memory_fails(length) ? NULL : __libc_malloc(length);
}

EXPORT void *calloc(size_t count, size_t length)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, length, &bytes))
        bytes = SIZE_MAX;
    return memory_fails(bytes) ? NULL : __libc_calloc(count, length);
}

EXPORT void *realloc(void *pointer, size_t length)
{
    return memory_fails(length) ? NULL : __libc_realloc(pointer, length);
}

EXPORT void *reallocarray(void *pointer, size_t count, size_t length)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, length, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(pointer, bytes);
}
