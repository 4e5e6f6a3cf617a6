# SPDX-License-Identifier: Apache-2.0
"""One thread holds the global interpreter lock for ever, in a loop in C; one sleeps, and the main
thread waits for the lock or for input. Prints the number of the first."""

import collections
import itertools
import sys
import threading
import time


def hold():
    print(threading.get_native_id(), flush=True)
    collections.deque(itertools.repeat(None), maxlen=0)


threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
threading.Thread(target=hold, daemon=True).start()
sys.stdin.read()
