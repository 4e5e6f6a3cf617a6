// SPDX-License-Identifier: Apache-2.0
// In libFuzzer's place where only seeds are read: gives the fuzzer nothing, and then each file
// below the directory. The limits are those of run.sh: ten seconds of CPU time for an input, 2 GiB
// of memory.

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/memory.h"

#define SECONDS_MAX 10
#define MEMORY_MAX_KB (2048l << 10)
#define INPUT_MAX (1u << 20)
#define OPEN_DIRECTORIES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=2048:allocator_may_return_null=0";
}

static unsigned inputs;

/* Of its own size, so that AddressSanitizer sees a byte read behind it. */
static void replay(const char *name, const uint8_t *bytes, size_t length)
{
    const struct itimerval limit = {.it_value.tv_sec = SECONDS_MAX};
    uint8_t *input = malloc(length ? length : 1);
    if (!input)
        abort();
    if (length)
        memcpy(input, bytes, length);
    fprintf(stderr, "%s\n", name); /* shown if it fails */
    setitimer(ITIMER_PROF, &limit, NULL);
    LLVMFuzzerTestOneInput(input, length);
    free(input);
    inputs++;

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss > MEMORY_MAX_KB) {
        fprintf(stderr, "%s took %ld MiB of memory.\n", name, usage.ru_maxrss >> 10);
        exit(1);
    }
}

static int visit(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)place;
    static uint8_t bytes[INPUT_MAX];
    if (type != FTW_F)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    if (length < 0 || length != status->st_size) {
        fprintf(stderr, "%s cannot be read whole.\n", path);
        exit(1);
    }
    close(fd);
    replay(path, bytes, (size_t)length);
    return 0;
}

int main(int argc, char **argv)
{
    replay("nothing", NULL, 0);
    if (argc != 2 || nftw(argv[1], visit, OPEN_DIRECTORIES, FTW_PHYS) != 0 || inputs < 2) {
        fprintf(stderr, "usage: %s DIRECTORY, with at least one file in it\n", argv[0]);
        return 1;
    }
    printf("%u inputs, no finding.\n", inputs);
    return 0;
}
