#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the include graph of the sources: layers.py ROOT [--print]. It fails when a file under
ROOT/src includes a header of a directory that its own directory may not use, when an entry of the
table is not used, when the table has a cycle, when a private header is included from outside its
directory, when base uses anything but libc, or when a timed wait doesn't go through
base/condition.h. ARCHITECTURE.md explains the directories."""

import pathlib
import re
import sys

# Each directory below src/ and the directories whose headers it includes, from the bottom up.
# "kernel" stands for all files that run in the kernel (*.bpf.c, *.bpf.h).
USES = {
    "base": "",
    "agent/guard": "base",
    "http": "base",
    "io": "base",
    "io/arrow": "base io",
    "http/grpc": "base http io",
    "http/client": "base base/limits http http/grpc",
    "label": "base io",
    "agent/identity": "base http/client io label",
    "config": "base",
    "label/redact": "base io label",
    "label/rules": "base config io label label/redact",
    "agent/settings": "agent/identity base config label label/rules",
    "agent/send": "agent/settings base base/limits http/client http/grpc",
    "elf": "base",
    "bpf/runtimes": "",
    "bpf": "bpf/runtimes elf",
    "arch": "bpf",
    "elf/cfi": "base elf",
    "arch/x86_64": "arch base elf elf/cfi",
    "capture/perf": "arch/x86_64 base",
    "elf/usdt": "arch/x86_64 base elf",
    "elf/go": "arch/x86_64 base elf",
    "elf/unwind": "arch/x86_64 base elf elf/cfi elf/go",
    "profile": "base io profile/names",
    "profile/views": "base io profile",
    "profile/triage": "base io profile",
    "profile/names": "base",
    "compare": "base profile",
    "compare/gate": "base compare config io",
    "compare/picture": "base compare format/picture",
    "runtime": "arch/x86_64 base bpf/runtimes elf elf/cfi",
    "context": "base bpf elf io runtime",
    "runtime/hotspot": "arch/x86_64 base bpf/runtimes elf elf/unwind runtime",
    "runtime/v8": "base bpf/runtimes elf runtime",
    "runtime/go": "base bpf elf runtime",
    "runtime/php": "base bpf/runtimes elf runtime",
    "runtime/python": "base bpf/runtimes elf runtime",
    "runtime/ruby": "base bpf/runtimes elf runtime",
    "symbol": "arch/x86_64 base elf elf/cfi elf/go elf/unwind profile/names",
    "symbol/recorded": "base elf elf/unwind format/perfdata profile symbol symbol/naming",
    "symbol/jit": "base base/limits elf profile profile/names symbol",
    "capture/record": (
        "arch/x86_64 base base/limits base/process capture/perf context elf elf/unwind profile "
        "runtime runtime/go runtime/hotspot runtime/php runtime/python runtime/ruby runtime/v8 "
        "symbol/jit"
    ),
    "elf/dwarf": "base elf",
    "symbol/index": "base elf elf/dwarf profile profile/names symbol",
    "symbol/naming": "base elf profile symbol symbol/index symbol/jit",
    "capture/bpf": "base bpf capture/record elf/unwind profile/names symbol symbol/naming",
    "capture/ptrace": (
        "arch/x86_64 base capture/perf capture/record elf/unwind runtime/python runtime/v8"
    ),
    "capture/wall": "arch base bpf capture/bpf capture/record elf profile/triage",
    "capture/goroutines": "base capture/bpf runtime/go",
    "capture/events": "base bpf capture/bpf capture/perf",
    "capture/rss": "base base/limits capture/bpf",
    "capture/jvm": "base",
    "capture/faults": "base bpf capture/bpf",
    "capture/heap": "arch/x86_64 base bpf capture/bpf capture/record elf/usdt profile",
    "capture": (
        "arch/x86_64 base base/process capture/bpf capture/events capture/faults "
        "capture/goroutines capture/heap capture/ptrace capture/record capture/rss capture/wall "
        "profile"
    ),
    "format": "base io profile",
    "format/otlp": "base format io profile",
    "http/access": "base io",
    "http/server": "base format http http/access http/grpc io",
    "symbol/store": "base base/limits elf symbol/index",
    "agent": (
        "agent/guard agent/identity agent/send agent/settings base base/limits base/process "
        "capture capture/bpf elf format/otlp http/client http/server io label profile symbol "
        "symbol/jit symbol/naming symbol/store"
    ),
    "cli": "base format io profile symbol/naming symbol/recorded",
    "format/picture": "base format format/timeline io profile profile/views",
    "format/jfr": "base format io profile",
    "format/pprof": "base format io profile",
    "store/block": "base",
    "spans": "base io",
    "store": "base label profile store/block",
    "symbol/maps": "base io",
    "query": "base config label label/rules profile profile/views spans store",
    "symbol/sources": "base",
    "server/audit": "base io",
    "server/web": "base http/server",
    "server/admission": "base base/limits http/server store",
    "server/handler": "base format http/server io label server/admission server/audit",
    "server/symbols": (
        "base config http/client io label profile query query/naming store symbol/maps "
        "symbol/sources symbol/store"
    ),
    "server/query": (
        "base io profile profile/views query query/naming server/admission server/handler "
        "server/symbols"
    ),
    "server/control": "base io label server/audit server/handler server/symbols",
    "server/symbols/api": (
        "base config elf http/access io label profile/views server/admission server/audit "
        "server/control server/handler server/query server/symbols"
    ),
    "server/ingest": (
        "base format format/jfr format/otlp format/parca io label label/rules profile query "
        "server/admission server/handler store"
    ),
    "server/requests": (
        "base config format/picture io label/rules profile/views query query/naming "
        "server/admission server/handler server/ingest server/query server/symbols spans"
    ),
    "server/compare": (
        "base compare format http/access query/naming server/admission server/api server/handler "
        "server/query"
    ),
    "server/api": (
        "base compare/picture config format format/picture http/access http/server io label "
        "profile profile/triage profile/views query query/naming server/admission server/handler "
        "server/ingest server/query server/symbols server/symbols/api store"
    ),
    "server/grpc": "base io server/handler store",
    "server/saved": "base io query server/audit server/handler store",
    "server/rules": (
        "base config http/client io label profile query query/naming server/admission "
        "server/compare server/control server/handler server/ingest server/query server/symbols "
        "server/watch store"
    ),
    "server/watch": (
        "base compare io label profile profile/names query server/admission server/compare "
        "server/handler store"
    ),
    "server/cost": "base http/access io query server/api server/handler server/query server/rules",
    "server/explain": (
        "base config label query query/naming server/api server/compare server/handler "
        "server/query server/symbols server/watch"
    ),
    "server/pyroscope": (
        "base format format/pprof http/access http/server io profile profile/views query "
        "server/admission server/api server/handler server/query server/symbols/api"
    ),
    "server/parca": "io server/admission server/handler server/pyroscope server/symbols/api",
    "server/scrape": (
        "base base/limits config format http/client io label label/rules server/admission "
        "server/handler server/ingest"
    ),
    "server": (
        "base config http http/server io query server/admission server/api server/audit "
        "server/compare server/control server/cost server/explain server/grpc server/handler "
        "server/ingest server/parca server/pyroscope server/query server/requests server/rules "
        "server/saved server/scrape server/symbols server/symbols/api server/watch server/web "
        "spans store"
    ),
    "cli/compare": (
        "base cli cli/remote compare compare/gate compare/picture format/picture profile"
    ),
    "cli/file": (
        "base cli cli/compare compare compare/picture format/picture http/client http/server io "
        "profile profile/views server/api server/query server/web symbol/recorded symbol/sources "
        "symbol/store"
    ),
    "cli/live": (
        "base base/process capture capture/bpf capture/heap capture/jvm capture/ptrace cli "
        "cli/remote config elf io profile profile/names profile/triage symbol/jit symbol/naming"
    ),
    "cli/remote": (
        "base cli compare elf http/client io profile symbol/index symbol/sources symbol/store"
    ),
    "simulate": "base format format/otlp format/pprof http/client",
    "cli/service": (
        "agent base base/limits capture cli config http/access http/client io query server "
        "server/admission server/audit server/rules spans store"
    ),
    "cli/simulate": "base cli config io query simulate",
    "format/gperftools": "base format io profile",
    "format/speedscope": "base format io profile",
    "format/text": "base format format/picture",
    "format/timeline": "base profile",
    "format/v8": "base format format/timeline io profile",
    "format/ruby": "base format io",
    "format/pyroscope": "base format io",
    "format/perfdata": "base format",
    "format/graph": "base profile",
    "format/autofdo": "base format",
    "format/valgrind": "base format format/graph",
    "format/python": "base format format/graph",
    "format/heaptrack": "base format",
    "format/firefox": "base format format/timeline io",
    "format/parca": "base format/otlp io io/arrow profile",
    "kernel": "bpf",
    "store/file": "base label profile store store/block",
    "store/embedded": "base base/limits profile profile/views store store/block store/file",
    "store/maintain": "base store/embedded",
    "store/clickhouse": "base format http/client profile store store/file",
    "store/memory": "base profile store store/block store/file",
    "store/transfer": "base store store/block store/embedded store/file",
    "query/naming": (
        "base label profile query store symbol symbol/jit symbol/maps symbol/naming symbol/store"
    ),
    "base/limits": "base",
    "base/process": "base",
    "http/server/h2": "base http http/server",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
LIBC = re.compile(
    r"^(?:(?:sys|linux|arpa|net|netinet)/[a-z0-9_/]+"
    r"|assert|ctype|dirent|dlfcn|elf|endian|errno|fcntl|float|fnmatch|getopt|glob|grp|inttypes"
    r"|libgen|limits|link|locale|malloc|math|netdb|poll|pthread|pwd|sched|search|semaphore|signal"
    r"|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|syslog"
    r"|termios|threads|time|ucontext|unistd|wchar)\.h$"
)
# Headers for the files of one directory and those below it.
PRIVATE = re.compile(r"(?:^|[_/])(?:internal|parts)\.h$")
# These wait on the wall clock, or on whichever clock an attribute says.
TIMED_WAIT = re.compile(
    r"\b(pthread_cond_(?:timed|clock)wait|pthread_condattr_\w+|sem_(?:timed|clock)wait"
    r"|pthread_mutex_(?:timed|clock)lock|pthread_rwlock_(?:timed|clock)(?:rd|wr)lock)\s*\("
)
WAITS = ("base", "condition.h")


def directory_of(name):
    """The entry of USES for a file or header, named as seen from src/."""
    if re.search(r"\.bpf\.[ch]$", name):
        return "kernel"
    return name.rpartition("/")[0]


def complaints_about(path, name, used):
    """Yields one sentence per include or call in the file that may not be there."""
    directory = directory_of(name)
    text = path.read_text(encoding="utf-8")
    if path.parts[-2:] != WAITS:
        for match in TIMED_WAIT.finditer(text):
            yield f"calls {match[1]}(): use base/condition.h, which waits on the monotonic clock"
    for match in INCLUDE.finditer(text):
        system, header = match[1] == "<", match[2]
        if system:
            if directory.split("/")[0] == "base" and not LIBC.match(header):
                yield f"includes <{header}>, but base uses libc only"
            continue
        target = directory_of(header)
        if target not in USES or ".." in header:
            yield f'includes "{header}", which names no directory: write it as seen from src/'
            continue
        used.add((directory, target))
        if target != directory and target not in USES[directory].split():
            yield f'includes "{header}", but {directory} may not use {target}'
        elif PRIVATE.search(header) and not (name + "/").startswith(header.rpartition("/")[0] + "/"):
            yield f'includes "{header}", which is private to its directory'


def cycle():
    """A directory that uses itself through others, or None."""
    done, path = set(), []

    def visit(directory):
        if directory in path:
            return " -> ".join(path[path.index(directory) :] + [directory])
        if directory in done:
            return None
        path.append(directory)
        found = next(filter(None, map(visit, USES[directory].split())), None)
        path.pop()
        done.add(directory)
        return found

    return next(filter(None, map(visit, USES)), None)


def main():
    source = pathlib.Path(sys.argv[1]) / "src"
    files = sorted(path for path in source.rglob("*") if path.suffix in (".c", ".h"))
    if not files:
        sys.exit(f"There are no C files under {source}.")
    complaints, used = [], set()
    for path in files:
        name = str(path.relative_to(source))
        if directory_of(name) not in USES:
            complaints.append(f"src/{name} is in no known directory; {sys.argv[0]} lists them.")
            continue
        complaints += [f"src/{name} {text}." for text in complaints_about(path, name, used)]
    if found := cycle():
        complaints.append(f"The table has a cycle: {found}.")
    present = {directory_of(str(path.relative_to(source))) for path in files}
    for directory in present & USES.keys() if len(present) == len(USES) else ():
        for target in USES[directory].split():
            if (directory, target) not in used:
                complaints.append(f"{directory} no longer uses {target}: remove it from the table.")
    if "--print" in sys.argv:
        for directory, targets in USES.items():
            print(f"{directory}: {targets}")
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


main()
