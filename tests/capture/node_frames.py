# SPDX-License-Identifier: Apache-2.0
"""Checks JavaScript frames of recordings (node.sh): node_frames.py RECORDING POINTS, and the truth on
standard input. Only samples since the thread is called "measured" count."""

import sys

import recording


def require(holds, sentence):
    if not holds:
        sys.exit(sentence)


def main():
    path, points = sys.argv[1], float(sys.argv[2])
    taken = [
        ([frame.name for frame in sample.frames], sample.count)
        for sample in recording.read(path)
        if sample.labels["comm"] == "measured"
    ]
    # The collector and the compilers have threads of their own, with the same name in some versions.
    taken = [(names, count) for names, count in taken if "start_thread" not in names]
    total = sum(count for _, count in taken)
    require(total > 500, f"only {total} samples")

    def share(wanted):
        return sum(count for names, count in taken if wanted(names)) / total

    working = share(lambda names: "work" in names)
    truth = [line.split() for line in sys.stdin]
    # Reading the clock takes its time, too, and is in none of them.
    spent = share(lambda names: any(name in names for name, _ in truth))
    for name, percent in truth:
        found = 100 * share(lambda names, name=name: name in names) / max(spent, 0.01)
        print(f"{name}: {found:.2f}%, really {float(percent):.2f}%")
        require(abs(found - float(percent)) <= points, f"{name} is off by more than {points} points")
    print(f"{100 * working:.2f}% of {total} samples have whole JavaScript stacks")
    require(working >= 0.97, "too few samples have JavaScript frames")
    unnamed = share(lambda names: any(name.startswith("[j") for name in names))
    print(f"{100 * unnamed:.2f}% of samples have code without a name")
    require(unnamed <= 0.02, "too much code has no name")
    order = [names for names, _ in taken if "sixty" in names and "spin" in names]
    require(order, "sixty does not call spin")
    for names in order:
        require(names.index("work") < names.index("sixty") < names.index("spin"), f"wrong order: {names}")


main()
