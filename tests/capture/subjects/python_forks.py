# SPDX-License-Identifier: Apache-2.0
"""Forks so many processes, each of which spends so many seconds of CPU time, after the recorder had
half a second to find the interpreter."""

import os
import sys
import time


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))


def in_child(seconds):
    spin(seconds)
    os._exit(0)


def main():
    spin(0.5)
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write("measured")
    for _ in range(int(sys.argv[1])):
        if not os.fork():
            in_child(float(sys.argv[2]))
    for _ in range(int(sys.argv[1])):
        os.wait()


main()
