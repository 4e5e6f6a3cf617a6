# SPDX-License-Identifier: Apache-2.0
"""explain_fleet.py URL END: some minutes of services until END, in windows of 10 s, with noise. In the last two minutes
shop runs version 2, whose parse takes twice as long, with traces; locked waits for locks as never before; starved
waits for CPUs; grown holds more memory; and calm is as before."""

import sys
import urllib.request

import window_pprof

MINUTES = 12


def push(url, query, kind, unit, start, samples, seconds=10):
    sys.argv = ["", "window.pb", kind, unit, str(start), str(seconds)] + samples
    window_pprof.main()
    with open("window.pb", "rb") as file:
        urllib.request.urlopen(f"{url}/api/v1/push?{query}", file.read()).close()


def main():
    url, end = sys.argv[1], int(sys.argv[2])
    for start in range(end - 25 * 60, end, 10):
        push(url, "service=grown", "inuse_space", "bytes", start,
             [f"main;cache={(300 if start >= end - 300 else 100 + start // 10 * 7919 % 5) << 20}", f"main;table={(50 + start // 10 * 7907 % 7) << 20}"], 0)
    for start in range(end - MINUTES * 60, end, 10):
        late = start >= end - 120
        ms = 10**6
        noise = (start // 10 * 7919 % 13 - 6) * 10
        trace = f",trace_id={'b' * 32},span_id={'c' * 16}"
        parse = ((2000 if late else 1000) + noise) * ms
        push(url, f"service=shop&version={2 if late else 1}", "cpu", "nanoseconds", start,
             [f"main;serve;parse={parse}{trace if late else ''}", f"main;serve;render={(3000 - noise) * ms}"])
        states = [f"main;serve={(4000 + noise) * ms},state=running", f"main;idle={(6000 - noise) * ms},state=idle"]
        locked = states + ([f"main;take;pthread_mutex_lock={3000 * ms},state=lock"] if late else [])
        push(url, "service=locked&version=1", "wall", "nanoseconds", start, locked)
        starved = states + [f"main;serve={((3000 if late else 200) + noise) * ms},state=runnable"]
        push(url, "service=starved", "wall", "nanoseconds", start, starved)
        push(url, "service=calm&version=1", "cpu", "nanoseconds", start,
             [f"main;serve;parse={(1000 + noise) * ms}", f"main;serve;render={(3000 - noise) * ms}"])


if __name__ == "__main__":
    main()
