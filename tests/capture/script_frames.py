# SPDX-License-Identifier: Apache-2.0
"""Checks frames of PHP and Ruby in recordings (php.sh, ruby.sh):

    script_frames.py shares FILE POINTS OUTERMOST   the truth on standard input
    script_frames.py many FILE DEPTH NAME...        functions that must be there
    script_frames.py forged FILE

Only samples since the process is called "measured" count: by then its interpreter is known."""

import collections
import re
import sys

import recording

UNREAD = re.compile(r"\[(php|ruby) frame not read\]")


def names_of(sample):
    return [frame.name for frame in sample.frames]


def bare(name):
    """Without its file or class."""
    return re.split(r"::|:", name)[-1]


def share(all_samples, wanted):
    total = sum(sample.count for sample in all_samples)
    return sum(s.count for s in all_samples if wanted(names_of(s))) / max(total, 1)


def require(holds, sentence):
    if not holds:
        sys.exit(sentence)


def measured(path):
    taken = [sample for sample in recording.read(path) if sample.labels["comm"] == "measured"]
    require(sum(sample.count for sample in taken) > 300, "too few samples")
    return taken


def check_shares(path, points, outermost):
    taken = measured(path)
    for line in sys.stdin:
        name, percent = line.split()
        found = 100 * share(taken, lambda names: any(bare(n).removeprefix("block in ") == name for n in names))
        print(f"{name}: {found:.2f}%, really {float(percent):.2f}%")
        require(abs(found - float(percent)) <= float(points), f"{name} is off by more than {points} points")
    # A fiber's stack of C begins with the fiber.
    whole = share(taken, lambda names: outermost in names or any("<main>" in n or "block" in n for n in names))
    print(f"{100 * whole:.2f}% of {sum(s.count for s in taken)} samples have whole stacks")
    require(whole >= 0.99, "too few samples have frames of the program")
    first = collections.Counter(names_of(s)[0] for s in taken if outermost in names_of(s))
    require(first.most_common(1)[0][0] == outermost, f"stacks begin with {first.most_common(3)}")


def check_many(path, depth, wanted):
    taken = measured(path)
    joined = collections.Counter()
    for sample in taken:
        joined[";".join(names_of(sample))] += sample.count
    seen = collections.Counter(bare(name) for key in joined for name in set(key.split(";")))
    missing = [name for name in wanted if name not in seen]
    require(not missing, f"no sample has {missing}; there are {seen.most_common(60)}")
    deepest = max(sum(bare(n) == "recurse" for n in key.split(";")) for key in joined)
    require(deepest == int(depth), f"recursion is {depth} deep, and {deepest} frames of it were seen")
    # What calls what is known from the program's text.
    callers = {"recurse": {"recurse", "main"}, "raising": {"main", "in_thread"}, "in_fiber": {"main"}}
    for key in joined:
        program = [bare(n) for n in key.split(";")]
        for caller, called in zip(program, program[1:]):
            if called in callers and not caller.startswith(("block", "[")):
                require(caller in callers[called], f"{caller} calls {called}: {key[-300:]}")
    made = re.findall(r"made_(\d+)\.rb:made_(\d+)", "\n".join(joined))
    wrong = [pair for pair in made if pair[0] != pair[1]]
    require(not wrong, f"frames with the name of one function and the file of another: {wrong}")
    kept = {key: count for key, count in joined.items() if "thrown_away" not in key}
    unread = sum(count for key, count in kept.items() if UNREAD.search(key))
    print(f"{unread} of {sum(kept.values())} samples have frames that could not be read")
    require(unread <= sum(kept.values()) * 0.05, "too many frames could not be read")


def check_forged(path):
    taken = recording.read(path)
    require(sum(sample.count for sample in taken) > 5, "too few samples")
    named = {name for sample in taken for name in names_of(sample) if ":" in name}
    print(f"names: {sorted(named)[:5]}")
    require(len(named) <= 2, f"{len(named)} names of functions that don't exist")


def main():
    what, path, *rest = sys.argv[1:]
    if what == "shares":
        check_shares(path, *rest)
    elif what == "many":
        check_many(path, rest[0], rest[1:])
    else:
        check_forged(path)


main()
