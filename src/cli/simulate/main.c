// SPDX-License-Identifier: Apache-2.0
// assay-simulate: simulated work for assay to profile and store. It is a program of its own so that
// hosts which don't need it don't have it; `assay simulate` and `assay demo` start it.

#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/simulate/simulate.h"

int main(int argc, char **argv)
{
    int code = EXIT_USAGE;
    if (argc > 1 && !strcmp(argv[1], "simulate"))
        code = simulate_fleet(argc - 1, argv + 1);
    else if (argc > 1 && !strcmp(argv[1], "demo"))
        code = simulate_shop(argc - 1, argv + 1);
    else
        fprintf(stderr, "Usage: assay simulate [options], or assay demo [options].\n");
    if (fflush(stdout) == EOF && code == EXIT_FINE) {
        perror("assay: failed to write to standard output");
        code = EXIT_FAILED;
    }
    return code;
}
