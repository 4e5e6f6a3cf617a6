# SPDX-License-Identifier: Apache-2.0
"""Threads that wait in known places. Prints "ready", and on each line of input what faulthandler
says of all threads to the file that is given."""
import faulthandler
import sys
import threading

WAIT = threading.Event()
STARTED = threading.Semaphore(0)


def wait():
    STARTED.release()
    WAIT.wait()


def generator():
    yield 1
    yield wait()


async def coroutine():
    wait()


class Thing:
    def __init__(self, deep):
        self.deep = deep
        self.go()

    def go(self):
        wait() if not self.deep else Thing(self.deep - 1)

    def __lt__(self, other):
        wait()
        return True


def recursion(depth):
    return recursion(depth - 1) if depth else wait()


def by_sorting():
    thing = Thing.__new__(Thing)
    sorted([thing, Thing.__new__(Thing)])


def by_coroutine():
    coroutine().send(None)


def by_exception():
    try:
        raise ValueError
    except ValueError:
        (
            wait()
        )


TARGETS = [
    wait,
    lambda: [wait() for _ in range(1)],
    lambda: list(generator()),
    lambda: list(map(lambda _: wait(), [1])),
    lambda: Thing(3),
    lambda: recursion(200),
    lambda: exec(compile("def inside():\n\n    wait()\ninside()", "made up.py", "exec"), {"wait": wait}),
    by_sorting,
    by_coroutine,
    by_exception,
]
for target in TARGETS:
    threading.Thread(target=target, daemon=True).start()
for target in TARGETS:
    STARTED.acquire()
print("ready", flush=True)
for line in sys.stdin:
    with open(sys.argv[1], "w") as file:
        faulthandler.dump_traceback(file)
    print("written", flush=True)
