// SPDX-License-Identifier: Apache-2.0
// `assay simulate` and `assay demo`: both are in assay-simulate, a program in the same directory.

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/input.h"

#define PROGRAM "assay-simulate"

int command_simulated(int argc, char **argv)
{
    struct error error = {0};
    char path[PATH_MAX + sizeof(PROGRAM)];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length < 0) {
        error_set_errno(&error, -errno, "Failed to find the path of this program");
        return fail(&error);
    }
    path[length] = 0;
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, PROGRAM);
    char **arguments = memory_zalloc((size_t)argc + 2, sizeof(*arguments));
    arguments[0] = (char *)PROGRAM;
    memcpy(arguments + 1, argv, ((size_t)argc + 1) * sizeof(*arguments)); /* with its NULL */
    execv(path, arguments);
    error_set_errno(&error, -errno, "`assay %s` failed to start %s", argv[0], path);
    free(arguments);
    return fail(&error);
}
