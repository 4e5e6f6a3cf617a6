# SPDX-License-Identifier: Apache-2.0
"""Checks Python frames of recordings (python.sh) and of `assay stacks` (python-names.sh). The first
argument says what to check."""

import json
import re
import sys

import recording

UNREAD = "[python frames not read]"


def names_of(sample):
    return [frame.name for frame in sample.frames]


def share(all_samples, wanted):
    total = sum(sample.count for sample in all_samples)
    return sum(s.count for s in all_samples if wanted(names_of(s))) / max(total, 1)


def require(holds, sentence):
    if not holds:
        sys.exit(sentence)


def measured(path):
    """The samples since the program has set its threads' names: by then the interpreter is known.
    Those before have no Python frames, and how many they are depends on the load of the machine."""
    return [sample for sample in recording.read(path) if sample.labels["comm"] == "measured"]


def check_shares(path, points, whole_stacks=0.98):
    taken = measured(path)
    for line in sys.stdin:
        name, percent = line.split()
        found = 100 * share(taken, lambda names: any(n.split(":")[-1].split(".")[-1] == name for n in names))
        print(f"{name}: {found:.2f}%, really {float(percent):.2f}%")
        require(abs(found - float(percent)) <= points, f"{name} is off by more than {points} points")
    whole = share(taken, lambda names: any(n == "shares_of.py:<module>" for n in names))
    print(f"{100 * whole:.2f}% of {sum(s.count for s in taken)} samples have whole Python stacks")
    require(whole >= whole_stacks, "too few samples have Python frames")


def check_many(path):
    taken = measured(path)
    joined = {}
    for sample in taken:
        key = ";".join(names_of(sample))
        joined[key] = joined.get(key, 0) + sample.count
    text = "\n".join(joined)
    for kind in ("recurse", "called_back", "in_thread", "in_child", "raising", "thrown_away"):
        require(f"many_frames.py:{kind}" in text, f"no sample has {kind}")
    deepest = max(key.count("many_frames.py:recurse") for key in joined)
    require(deepest == 901, f"recursion is 901 deep, and {deepest} frames of it were seen")
    require(
        any(re.search(r"through_c;.*qsort.*called_back", key) for key in joined),
        "called_back is not seen below qsort, and that below through_c",
    )
    made = re.findall(r"made_(\d+)\.py:made_(\d+)", text)
    wrong = [pair for pair in made if pair[0] != pair[1]]
    require(made, "no function that was thrown away was seen")
    require(not wrong, f"frames with the name of one function and the file of another: {wrong}")
    # A jump to it in the procedure linkage table ("_PyEval_EvalFrameDefault@plt") is outside of it, and
    # is where such a sample really was.
    shown = [key for key in joined if "_PyEval_EvalFrameDefault" in key.split(";")]
    require(not shown, f"the evaluation function is not hidden: {shown[:1]}")
    # Each call of a frame has its caller: what calls what is known from the program's text.
    callers = {"recurse": ("recurse", "main"), "through_c": ("main",), "in_child": ("main",)}
    for key in joined:
        python = [name.split(":")[-1] for name in key.split(";") if name.startswith("many_frames.py:")]
        for caller, called in zip(python, python[1:]):
            require(caller in callers.get(called, (caller,)), f"{caller} calls {called}: {key[-300:]}")
    # Of functions that were thrown away before the recorder had its turn, nothing is left to read.
    kept = {key: count for key, count in joined.items() if "many_frames.py:thrown_away" not in key}
    total = sum(kept.values())
    unread = sum(count for key, count in kept.items() if UNREAD in key)
    print(f"{unread} of {total} samples have frames that could not be read")
    require(unread <= total * 0.05, "too many frames could not be read")


def check_native(path):
    found = share(recording.read(path), lambda names: any("_PyEval_EvalFrameDefault" in n for n in names))
    require(found > 0.9, f"only {found:.0%} of samples show the evaluation function")


def check_forked(path, processes):
    """All processes that were forked have frames down to their first, from their first sample on."""
    taken = [sample for sample in measured(path) if "python_forks.py:in_child" in names_of(sample)]
    pids = {sample.labels["pid"] for sample in taken}
    require(len(pids) == processes, f"{len(pids)} of {processes} processes have Python frames")
    for sample in taken:
        python = [name.split(":")[1] for name in names_of(sample) if name.startswith("python_forks.py:")]
        require(python[:3] == ["<module>", "main", "in_child"], f"the stack {names_of(sample)}")


def check_forged(path):
    taken = recording.read(path)
    total = sum(sample.count for sample in taken)
    require(total > 5, f"only {total} samples")
    for sample in taken:
        for name in names_of(sample):
            require(not name.startswith("name:") or name == "name:name", f"the name {name!r}")


def stacks_of(path):
    """By thread: functions (without what they are in), files and lines, innermost first."""
    with open(path, encoding="utf-8") as file:
        threads = json.load(file)["threads"]
    return [
        [
            (frame["function"].split(":", 1)[-1].split(".")[-1], frame["file"], frame["line"])
            for frame in thread["frames"]
            if frame.get("kind") == "cpython"
        ]
        for thread in threads
    ]


def compare(ours, theirs):
    """Without the thread that wrote theirs, which has moved on since."""
    ours = sorted(stack for stack in ours if stack and stack[-1][0] != "<module>")
    theirs = sorted(stack for stack in theirs if stack and stack[-1][0] != "<module>")
    require(len(ours) == len(theirs), f"{len(ours)} threads, and {len(theirs)} by the other's count")
    for mine, their in zip(ours, theirs):
        # faulthandler stops after 100 frames.
        # That of 3.14 stops where a class is called whose __init__ is in Python.
        if len(their) == 100 or their[-1][0] == "__init__":
            mine = mine[: len(their)]
        require(mine == their, f"ours:   {mine}\ntheirs: {their}")
    print(f"{len(ours)} threads, {sum(map(len, ours))} frames, all the same")


def check_faulthandler(ours, theirs):
    with open(theirs, encoding="utf-8") as file:
        dumps = file.read().split("\n\n")
    found = [
        [
            (name.split(".")[-1], path, int(line))
            for path, line, name in re.findall(r'File "(.*)", line (\d+) in (.*)', dump)
        ]
        for dump in dumps
    ]
    compare(stacks_of(ours), found)


def check_py_spy(ours, theirs):
    with open(theirs, encoding="utf-8") as file:
        threads = json.load(file)
    found = [
        # It shows the interpreter's own frames of constructors, too: they have no line.
        [(f["name"].split(".")[-1], f["filename"], f["line"]) for f in thread["frames"] if f["line"]]
        for thread in threads
    ]
    compare(stacks_of(ours), found)


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "shares":
        check_shares(arguments[0], float(arguments[1]))
    elif what == "few":  # of which one is more than a percent
        check_shares(arguments[0], float(arguments[1]), 0.9)
    elif what == "forked":
        check_forked(arguments[0], int(arguments[1]))
    else:
        checks = {
            "many": check_many,
            "native": check_native,
            "forged": check_forged,
            "faulthandler": check_faulthandler,
            "py-spy": check_py_spy,
        }
        checks[what](*arguments)


main()
