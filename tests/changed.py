# SPDX-License-Identifier: Apache-2.0
"""Which tests a change can break, nearest first: for ./dev test --changed. A change is what differs
from the last commit, or where nothing does, from the branch's fork off `main`. Files that depend on
a changed one are found by their includes. A source file counts as part of its directory: whoever
includes a header of that directory may call it. Scripts are chosen by the parts of the program that
they use."""

import collections
import json
import pathlib
import re
import subprocess

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Scripts have no includes: the directory of their tests, and the sources that these are about.
SCRIPTS = {
    "cli": ("src/cli/file", "src/cli/live", "src/cli/remote", "src/format", "src/profile"),
    "server": ("src/server", "src/http", "src/store", "src/query", "src/symbol/store"),
    "agent": ("src/agent", "src/cli/service"),
    "capture": ("src/capture", "src/bpf", "src/elf", "src/arch"),
    "peers": ("src/format", "src/symbol"),
}
ALWAYS = ("layers", "paths")  # cheap, and any change can break them
FAR = 9  # steps; beyond that, everything depends on everything


def git(root, *arguments):
    done = subprocess.run(["git", *arguments], cwd=root, check=False, capture_output=True, text=True)
    return [line for line in done.stdout.split("\n") if line] if not done.returncode else []


def changed_files(root):
    """Paths from the root, and since when."""
    files = git(root, "diff", "--name-only", "HEAD")
    files += git(root, "ls-files", "--others", "--exclude-standard")
    if files:
        return files, "the last commit"
    for main in ("origin/main", "main"):
        if base := git(root, "merge-base", "HEAD", main):
            if found := git(root, "diff", "--name-only", base[0], "HEAD"):
                return found, f"{main} ({base[0][:8]})"
    return git(root, "diff", "--name-only", "HEAD~1", "HEAD"), "the commit before"


def distances(root, changed):
    """How many includes lie between each C file and the nearest changed one."""
    users = collections.defaultdict(set)
    for path in [*root.glob("src/**/*.[ch]"), *root.glob("tests/unit/*.[ch]")]:
        name = str(path.relative_to(root))
        for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
            users["src/" + header].add(name)
        if name.endswith(".c") and name.startswith("src/"):
            for header in path.parent.glob("*.h"):  # its functions are declared in one of them
                users[name].add(str(header.relative_to(root)))
    steps = {name: 0 for name in changed}
    queue = collections.deque(changed)
    while queue:
        name = queue.popleft()
        for user in users[name]:
            if user not in steps and steps[name] < FAR:
                steps[user] = steps[name] + 1
                queue.append(user)
    return steps


def steps_of(test, steps, changed):
    """How near a test is to the change; None: it can't break."""
    if test in ALWAYS or any(pathlib.Path(name).stem in (test, "test_" + test) for name in changed):
        return 0
    if (unit := f"tests/unit/test_{test}.c") in steps:
        return steps[unit]
    folder, _, case = test.partition("-")
    if f"tests/{folder}/{case}.sh" in changed:
        return 0
    helpers = [name for name in changed if not name.endswith((".sh", ".stdout"))]
    near = [1 for name in helpers if name.startswith(f"tests/{folder}/")]
    near += [2 for name in changed if name.startswith(SCRIPTS.get(folder, ()))]
    # A case is often called after what it tests.
    words = {word for name in changed for word in re.split(r"[/_.-]", name)}
    near += [1 for word in case.split("-") if near and len(word) > 3 and word in words]
    if test.startswith(("man-", "check-")):
        near += [0 for name in changed if name.startswith(("man/", "docs/", "src/cli/"))]
    if test.startswith("web"):
        near += [0 for name in changed if name.startswith("web/")]
    return min(near) if near else None


class Plan:
    """The tests of these that a change can break, nearest first."""

    def __init__(self, root, tests, build):
        changed, since = changed_files(root)
        steps = distances(root, changed)
        try:
            took = json.loads((root / build / "durations.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            took = {}
        reached = ((steps_of(test, steps, changed), took.get(test, [guess(test)])[0], test) for test in tests)
        self.tests = sorted(item for item in reached if item[0] is not None)
        self.what = f"{len(changed)} files differ from {since}"

    def choose(self, seconds):
        """Names of those that fit into so many seconds of work, and of all that a change is in."""
        chosen, spent = [], 0.0
        for near, duration, test in self.tests:
            if near and spent + duration > seconds:
                continue
            spent += duration
            chosen.append(test)
        return chosen


def guess(test):
    """Seconds that a test takes which hasn't run here yet."""
    folder = test.partition("-")[0]
    return {"web": 60.0, "man": 1.0}.get(folder, 8.0 if folder in SCRIPTS else 1.0)
