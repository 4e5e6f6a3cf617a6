# SPDX-License-Identifier: Apache-2.0
"""Spends CPU time in three functions, about 60, 30 and 10 of 100, for so many seconds, and prints
how much each really took. One of them is a generator, one a method. Before that the recorder has half a
second to find the interpreter; from then on the thread is called "measured"."""
import sys
import time


def spin(seconds):
    end = time.process_time() + seconds
    count = 0
    while time.process_time() < end:
        for i in range(200):
            count += i * i
    return count


def sixty():
    spin(0.06)


def thirty():
    for _ in range(3):
        yield spin(0.01)


class Worker:
    def ten(self):
        spin(0.01)


def measured(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def main():
    spin(0.5)
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write("measured")
    worker, took = Worker(), [0.0, 0.0, 0.0]
    while sum(took) < float(sys.argv[1]):
        took[0] += measured(sixty)
        took[1] += measured(lambda: list(thirty()))
        took[2] += measured(worker.ten)
    for name, seconds in zip(("sixty", "thirty", "ten"), took):
        print(name, 100 * seconds / sum(took))


main()
