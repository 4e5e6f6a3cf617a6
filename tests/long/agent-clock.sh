# SPDX-License-Identifier: Apache-2.0
# The wall clock is set back while the agent runs: windows of hours that come twice are different ones,
# and none is taken for a repeat of another.
. "$ROOT/tests/agent/common.bash"
. "$ROOT/tests/agent/outage.bash"

cat >clock.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(clock, now);
    if (clock == CLOCK_REALTIME && access("set-back", F_OK) == 0)
        now->tv_sec -= 40;
    return r;
}
C
cc -shared -fPIC -o clock.so clock.c -ldl
behave ok
start_fake
# shellcheck disable=SC2034 # for start_agent
url=http://127.0.0.1:$port
cp generous.yaml agent.yaml
echo 'confine: false' >>agent.yaml # the file that sets the clock is looked for all the time
printf '#!/bin/sh\nexec env LD_PRELOAD=%s/clock.so "%s" "$@"\n' "$PWD" "$ASSAY" >shifted
chmod +x shifted
program=$ASSAY
ASSAY=$PWD/shifted
start_agent agent --config agent.yaml
need_host agent
ASSAY=$program
./busy 3600 &
agents+=("$!")
# Three whole windows, and then the same moments once more.
until_within 120 has_counted stored 4
touch set-back
until_within 180 has_counted stored 11
stop_agent
[ "$(counted again)" = 0 ]
python3 - <<'PYTHON'
import sys
times = [line.split()[2].split("-")[0] for line in open("fake.log") if " stored " in line]
if len(times) == len(set(times)):
    sys.exit(f"No moment came twice, which says nothing: {times}")
PYTHON
