# SPDX-License-Identifier: Apache-2.0
"""Python frames of every kind, for so many seconds of CPU time: deep recursion, a C library that calls
back, threads, a child, code that is made and thrown away, garbage collection, exceptions. Before that
the recorder has half a second of CPU time to find the interpreter; from then on threads are called
"measured"."""
import ctypes
import gc
import os
import sys
import threading
import time

SECONDS = float(sys.argv[1])
OVER = threading.Event()


def spin(seconds=0.002):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(i * i for i in range(50))


def recurse(depth):
    return recurse(depth - 1) if depth else spin(0.02)


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def called_back(left, right):
    spin(0.001)
    return left[0] - right[0]


def through_c():
    numbers = (ctypes.c_int * 5)(5, 3, 4, 1, 2)
    ctypes.CDLL(None).qsort(numbers, 5, 4, COMPARE(called_back))


def thrown_away(number):
    text = f"def made_{number}():\n    spin()\n    gc.collect(0)\n"
    scope = {"spin": spin, "gc": gc}
    exec(compile(text, f"/made/made_{number}.py", "exec"), scope)
    scope[f"made_{number}"]()


def raising():
    try:
        spin()
        raise ValueError
    except ValueError:
        spin()


def in_thread():
    while not OVER.is_set() or time.thread_time() < SECONDS / 10:
        raising()
        time.sleep(0.001)


def in_child():
    while time.thread_time() < SECONDS / 5:
        spin()


def main():
    spin(0.5)
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write("measured")
    child = os.fork()
    if not child:
        in_child()
        os._exit(0)
    thread = threading.Thread(target=in_thread)
    thread.start()
    number = 0
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        recurse(900)
        through_c()
        for _ in range(10):
            thrown_away(number)
            number += 1
    OVER.set()
    thread.join()
    os.waitpid(child, 0)


main()
