// SPDX-License-Identifier: Apache-2.0
// Touches known amounts of new memory at known sites: toucher, which waits for a line first. Prints
// "KIND SITE BYTES" for each.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone))
#define MIB 1048576ull

static volatile char sink;

static char *map(size_t bytes, int flags, int fd)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED)
        exit(1);
    return memory;
}

/* Every page once, and nothing else that touches memory. */
#define TOUCH(memory, bytes)                                                                       \
    for (size_t at = 0; at < (bytes); at += 4096)                                                  \
    (memory)[at] = 1

SITE static void site_small(char *memory, size_t bytes)
{
    TOUCH(memory, bytes);
    sink = memory[0];
}

SITE static void site_huge(char *memory, size_t bytes)
{
    TOUCH(memory, bytes);
    sink = memory[1];
}

SITE static void site_again(char *memory, size_t bytes)
{
    TOUCH(memory, bytes);
    sink = memory[2];
}

SITE static void site_shared(char *memory, size_t bytes)
{
    TOUCH(memory, bytes);
    sink = memory[3];
}

SITE static void site_file(const char *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        sink = memory[at];
}

SITE static void site_read(char *memory, size_t bytes, int fd)
{
    if (pread(fd, memory, bytes, 0) != (ssize_t)bytes)
        exit(1);
}

SITE static void site_thread(char *memory, size_t bytes)
{
    TOUCH(memory, bytes);
    sink = memory[4];
}

static void *thread(void *argument)
{
    (void)argument;
    site_thread(map(64 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), 64 * MIB);
    return NULL;
}

int main(void)
{
    char name[] = "toucher-XXXXXX";
    char *buffer = map(64 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    int fd = mkstemp(name);
    unlink(name);
    prctl(PR_SET_THP_DISABLE, 1);
    if (getchar() == EOF)
        return 1;
    site_small(buffer, 64 * MIB);
    if (pwrite(fd, buffer, 64 * MIB, 0) != 64 * (ssize_t)MIB)
        return 1;
    for (int i = 0; i < 10; i++) {
        char *again = map(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        site_again(again, 8 * MIB);
        munmap(again, 8 * MIB);
    }
    site_shared(map(48 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1), 48 * MIB);
    site_file(map(64 * MIB, MAP_SHARED, fd), 64 * MIB);
    site_read(map(32 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), 32 * MIB, fd);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    prctl(PR_SET_THP_DISABLE, 0);
    size_t huge = 64 * MIB;
    char *large = map(huge + 2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    large += 2 * MIB - (size_t)large % (2 * MIB);
    madvise(large, huge, MADV_HUGEPAGE);
    site_huge(large, huge);
    printf("anon site_small %llu\nanon site_again %llu\nshmem site_shared %llu\n"
           "file site_file %llu\nanon site_read %llu\nanon site_thread %llu\nanon site_huge %llu\n",
           64 * MIB, 80 * MIB, 48 * MIB, 64 * MIB, 32 * MIB, 128 * MIB, 64 * MIB);
    return 0;
}
