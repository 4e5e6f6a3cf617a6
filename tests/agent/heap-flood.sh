# SPDX-License-Identifier: Apache-2.0
# Many processes of a user, each of which passes probes of memory a little less often than one may:
# together they may have as many events as four, and the rest is refused and reported.
. "$ROOT/tests/agent/common.bash"
type gcc jq >/dev/null || { echo "gcc or jq is missing."; exit 77; }

cat >flooder.c <<'C'
#include <stdlib.h>
#include <time.h>
int main(void)
{
    for (;;) {
        for (int i = 0; i < 900; i++) {
            void *volatile block = malloc(32 << 20); /* so large that each is sampled */
            free(block);
        }
        nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100000000}, NULL);
    }
}
C
gcc -O1 -o flooder flooder.c
library=$(dirname "$ASSAY")/sdk/libassay_heap.so

start_server server --data store
start_agent one -c generous.yaml
need_host one
status() { "$ASSAY" agent status --data "$PWD/one" --json; }
until status | jq -e '.collectors | has("cpu")' >/dev/null; do sleep 0.1; done
if ! status | jq -e '.collectors | has("heap")' >/dev/null; then
    echo "No heap collector here: $(status | jq -r .shortcoming)"
    exit 77
fi
flood() { # how many more
    for _ in $(seq "$1"); do
        # Blocks that are filled take milliseconds each.
        MALLOC_PERTURB_=0 LD_PRELOAD=$library ASSAY_HEAP_RATE=100000 ./flooder &
        agents+=("$!") # ends with the test
    done
}
runs() { status | jq .collectors.heap.runs; }
flood 2
until [ "$(runs)" -gt 5000 ]; do sleep 0.2; done
# Two may do that.
status | jq -e '(.losses.heap_refused // 0) == 0' >/dev/null
flood 14
until status | jq -e '.losses.heap_refused > 0' >/dev/null; do sleep 0.2; done
status | jq -c .losses
