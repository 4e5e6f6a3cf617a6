// SPDX-License-Identifier: Apache-2.0
// exec-a ROUNDS: works in its own chain, then runs the other program (exec-b) in its place, which
// does the same, until the rounds are over. Linked statically to fixed addresses, the two are the
// same code.

#include <unistd.h>

#include "order.h"

#if LETTER_NUMBER == 1
#define OTHER "./exec-b"
#else
#define OTHER "./exec-a"
#endif

int main(int argc, char **argv)
{
    char left[16], *arguments[] = {OTHER, left, NULL};
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < 40; i++)
        NAME(start)();
    if (rounds <= 1)
        return 0;
    snprintf(left, sizeof(left), "%d", rounds - 1);
    execv(OTHER, arguments);
    return 9;
}
