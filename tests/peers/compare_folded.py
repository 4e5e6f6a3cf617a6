#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares folded stacks: compare_folded.py PEER OURS. They must be the same with the same counts,
except that ours may have callers that the peer's unwinder lost."""

import collections
import sys


def read(path):
    counts = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            counts[tuple(stack.split(";")) if stack else ()] += int(count)
    return counts


def main():
    peer, ours = read(sys.argv[1]), read(sys.argv[2])
    lost, extra = peer - ours, ours - peer
    for stack in sorted(lost, key=len, reverse=True):
        for longer in list(extra):
            if lost[stack] and (not stack or longer[-len(stack) :] == stack):
                taken = min(lost[stack], extra[longer])
                lost[stack] -= taken
                extra[longer] -= taken
    left = [f"-{';'.join(stack)} {count}" for stack, count in (+lost).items()]
    left += [f"+{';'.join(stack)} {count}" for stack, count in (+extra).items()]
    print("\n".join(left))
    return 1 if left else 0


sys.exit(main())
