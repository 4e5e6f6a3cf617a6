// SPDX-License-Identifier: Apache-2.0
// sleeper: a process that does nothing, with several libraries mapped; many of them are a machine
// with much to look at. Ends with the process that started it.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        pause();
}
