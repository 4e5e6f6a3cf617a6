# SPDX-License-Identifier: Apache-2.0
"""Checks Java frames of recordings (java.sh) and of `assay stacks` (java-names.sh). The first argument says what to check. Only samples of
the thread "measured" count: it starts when the virtual machine has been found."""

import json
import re
import sys

import recording

UNREAD = "[java frame not read]"


def require(holds, sentence):
    if not holds:
        sys.exit(sentence)


def measured(path):
    """Samples with the names of their frames, outermost first."""
    return [
        ([frame.name for frame in sample.frames], sample.count)
        for sample in recording.read(path)
        if sample.labels["comm"] == "measured"
    ]


def share(taken, wanted):
    total = sum(count for _, count in taken)
    return sum(count for names, count in taken if wanted(names)) / max(total, 1)


def is_whole(names):
    return "java.lang.Thread.run" in names and names[0] not in recording.CUT


def check_shares(path, points):
    taken = measured(path)
    require(sum(count for _, count in taken) > 500, "too few samples")
    for line in sys.stdin:
        name, percent = line.split()
        found = 100 * share(taken, lambda names: f"JavaShares.{name}" in names)
        print(f"{name}: {found:.2f}%, really {float(percent):.2f}%")
        require(abs(found - float(percent)) <= points, f"{name} is off by more than {points} points")
    check_whole(taken)


def check_whole(taken):
    whole = share(taken, is_whole)
    total = sum(count for _, count in taken)
    print(f"{100 * whole:.2f}% of {total} samples have whole Java stacks")
    for names, count in taken:
        if not is_whole(names):
            print(count, ";".join(names)[-200:])
    require(whole >= 0.98, "too few samples have whole Java stacks")


# What calls what is known from the program's text; lambdas, bridges and the library are between.
CALLERS = {
    "recurse": ("recurse", "work"),
    "thrower": ("raising",),
    "sorting": ("work",),
    "streams": ("work",),
    "shapes": ("work",),
    "raising": ("work",),
    "copying": ("work",),
    "garbage": ("work",),
    "reflecting": ("work",),
    "thrownAway": ("work",),
}


def check_many(path):
    taken = measured(path)
    check_whole(taken)
    joined = ["\n".join(names) for names, _ in taken]
    for kind in ("recurse", "sorting", "streams", "shapes", "raising", "copying", "garbage"):
        require(any(f"JavaMany.{kind}" in key for key in joined), f"no sample has {kind}")
    deepest = max(key.count("JavaMany.recurse") for key in joined)
    require(deepest == 401, f"recursion is 401 deep, and {deepest} frames of it were seen")
    require(
        any(re.search(r"JavaMany.reflecting\n(.*\n)*JavaMany.spin", key) for key in joined),
        "a method called by reflection is not seen below its caller",
    )
    for names, _ in taken:
        java = [name for name in names if name.startswith("JavaMany.")]
        for caller, called in zip(java, java[1:]):
            allowed = CALLERS.get(called.split(".")[1])
            require(not allowed or caller.split(".")[1] in allowed, f"{caller} calls {called}: {names}")
    unread = share(taken, lambda names: UNREAD in names)
    print(f"{100 * unread:.2f}% of samples have frames that could not be read")
    require(unread <= 0.02, "too many frames could not be read")
    unnamed = share(taken, lambda names: any(name.startswith("[jit") for name in names))
    print(f"{100 * unnamed:.2f}% of samples have generated code without a name")
    require(unnamed <= 0.02, "too much generated code has no name")


def check_forged(path, how):
    taken = recording.read(path)
    total = sum(sample.count for sample in taken)
    require(total > 5, f"only {total} samples")
    names = {frame.name for sample in taken for frame in sample.frames}
    print(sorted(names))
    if how == "0":
        require("forged.Class.name" in names, "a well-formed method has no name")
    for name in names:
        require(not name.startswith("forged.") or name == "forged.Class.name", f"the name {name!r}")


def readable(name):
    """Classes that are made at run time have numbers in their names."""
    return re.sub(r"(\$\$Lambda).*\.", r"\1.", name)


def check_jstack(ours, theirs):
    """By thread: methods with file and line, innermost first. jstack has no line of native methods,
    and no file of classes that are made at run time."""
    with open(ours, encoding="utf-8") as file:
        threads = json.load(file)["threads"]
    mine = {
        thread["name"]: [
            (readable(f["function"]), f"{f['file']}:{f['line']}" if f.get("line") else "")
            for f in thread["frames"]
            if f.get("kind") == "jvm" and not f["function"].startswith("[")
        ]
        for thread in threads
    }
    with open(theirs, encoding="utf-8") as file:
        dumps = file.read().split("\n\n")
    compared = 0
    for name in ("interpreted", "compiled", "initialiser", "lambdas"):
        dump = next(dump for dump in dumps if dump.startswith(f'"{name}"'))
        their = [
            (readable(method.split("/")[-1] if "$$Lambda" not in method else method), place)
            for method, place in re.findall(r"\tat (.*)\((?:.*/)?(.*)\)", dump)
        ]
        their = [(method, place if ":" in place else "") for method, place in their]
        require(mine.get(name) == their, f"{name}\nours:   {mine.get(name)}\ntheirs: {their}")
        compared += len(their)
    print(f"{compared} frames, all the same")


def main():
    if sys.argv[1] == "jstack":
        check_jstack(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "forged":
        check_forged(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "shares":
        check_shares(sys.argv[2], float(sys.argv[3]))
    else:
        check_many(sys.argv[2])


main()
