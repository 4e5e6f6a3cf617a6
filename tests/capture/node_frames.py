# SPDX-License-Identifier: Apache-2.0
"""Checks JavaScript frames of recordings (node.sh): node_frames.py RECORDING POINTS, and the truth on
standard input. Only samples since the thread is called "measured" count.
node_frames.py few RECORDING POINTS: likewise, of few samples.
node_frames.py stack STACKS TRUTH: functions of a stack, beside V8's.
node_frames.py lines RECORDING CPUPROFILE: the lines of functions, beside those of V8's own profiler."""

import gzip
import json
import sys

import recording


def require(holds, sentence):
    if not holds:
        sys.exit(sentence)


def check_lines(path, theirs):
    """By name and file, where these are unique."""
    with gzip.open(path) as file:
        profile = recording.message(file.read())
    strings = [text.decode() for text in profile[6]]
    ours = {}
    for data in profile[5]:
        function = {number: values[0] for number, values in recording.message(data).items()}
        name, file = strings[function.get(2, 0)], strings[function.get(4, 0)]
        if not name.startswith("(anonymous)"):
            ours.setdefault((name, file), set()).add(function.get(5, 0))
    known = {}
    with open(theirs, encoding="utf-8") as file:
        for node in json.load(file)["nodes"]:
            call = node["callFrame"]
            place = call["url"].removeprefix("file://")
            known.setdefault((call["functionName"], place), set()).add(call["lineNumber"] + 1)
    common = [key for key in ours if key in known and len(ours[key]) == len(known[key]) == 1]
    for key in common:
        require(ours[key] == known[key], f"{key} begins in line {known[key]}, and here in {ours[key]}")
    print(f"{len(common)} functions have the same line")
    for name in ("sixty", "thirty", "ten", "spin", "work"):
        require(any(key[0] == name for key in common), f"{name} was not compared")


def check_stack(ours, theirs):
    """All of V8's frames, without the numbers that ours have for functions without a name."""
    with open(ours, encoding="utf-8") as file:
        threads = json.load(file)["threads"]
    stacks = [[frame for frame in thread["frames"] if frame.get("kind") == "v8js"] for thread in threads]
    stacks = [stack for stack in stacks if stack]
    require(len(stacks) == 1, f"{len(stacks)} threads with JavaScript")
    found = [
        ("(anonymous)" if str(frame["function"]).startswith("(anonymous)") else str(frame["function"]))
        + "\t" + frame.get("file", "")
        for frame in stacks[0]
    ]
    with open(theirs, encoding="utf-8") as file:
        known = file.read().split("\nready")[0].split("\n")
    # It waits in the next line of the same function, by a function of its own.
    found = found[next(i for i, name in enumerate(found) if name == known[0]) :]
    # Code of eval() has no name and no file, and is called so by V8.
    found = [name for name in found if name != "(anonymous)\t"]
    known = [name for name in known if not name.startswith("eval\t")]
    require(found == known, "ours:\n" + "\n".join(found) + "\ntheirs:\n" + "\n".join(known))
    print(f"{len(found)} functions, all the same")


def main():
    if sys.argv[1] in ("lines", "stack"):
        {"lines": check_lines, "stack": check_stack}[sys.argv[1]](*sys.argv[2:])
        return
    few = sys.argv[1] == "few"
    path, points = sys.argv[1 + few], float(sys.argv[2 + few])
    taken = [
        ([frame.name for frame in sample.frames], sample.count)
        for sample in recording.read(path)
        if sample.labels["comm"] == "measured"
    ]
    # The collector and the compilers have threads of their own, with the same name in some versions.
    taken = [(names, count) for names, count in taken if "start_thread" not in names]
    total = sum(count for _, count in taken)
    require(total > (20 if few else 500), f"only {total} samples")

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
    require(working >= (0.9 if few else 0.97), "too few samples have JavaScript frames")
    unnamed = share(lambda names: any(name.startswith("[j") for name in names))
    print(f"{100 * unnamed:.2f}% of samples have code without a name")
    require(unnamed <= (0.1 if few else 0.02), "too much code has no name")
    order = [names for names, _ in taken if "sixty" in names and "spin" in names]
    require(order, "sixty does not call spin")
    for names in order:
        require(names.index("work") < names.index("sixty") < names.index("spin"), f"wrong order: {names}")


main()
