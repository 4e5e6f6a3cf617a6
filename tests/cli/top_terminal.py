# SPDX-License-Identifier: Apache-2.0
"""Runs `assay top` on a pseudo-terminal: top_terminal.py ASSAY PID [end]. Between the two there is
a small shell that stops and continues it. Prints a line for each thing that was right, and ends
with 1 at the first that wasn't, showing the screen."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE_S = 60  # for a machine with much else to do: never what is tested
PLAUSIBLE = range(65, 96)  # per cent, of a function that takes 80


class Screen:
    """As much of a terminal as `assay top` uses."""

    def __init__(self, rows, columns):
        self.alternate, self.cursor, self.wraps = False, True, True
        self.pending, self.raw = "", ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0

    def feed(self, text):
        self.raw += text
        self.pending += text
        token = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|\x1b(?=[^\[])|([^\x1b])")
        while match := token.match(self.pending):
            self.pending = self.pending[match.end() :]
            if match[4]:
                self.put(match[4])
            elif match[3]:
                self.sequence(match[1], match[2], match[3])
            else:
                raise ValueError("an escape character without a sequence")

    def put(self, character):
        if character in "\r\n":
            self.column = 0 if character == "\r" else self.column
            self.row += character == "\n"
            return
        if ord(character) < 32:
            raise ValueError(f"the control character {ord(character):#x}")
        if self.row < self.rows:
            self.lines[self.row][min(self.column, self.columns - 1)] = character
        self.column += 1

    def sequence(self, private, numbers, last):
        if private:
            attribute = {"1049": "alternate", "25": "cursor", "7": "wraps"}[numbers]
            setattr(self, attribute, last == "h")
        elif last == "H":
            self.row, self.column = int(numbers or 1) - 1, 0
        elif last == "K" and self.row >= self.rows:
            pass  # drawn before it knew of the new size
        elif last == "K":
            self.lines[self.row][self.column :] = [" "] * (self.columns - self.column)
        elif last == "J":
            self.lines = [[" "] * self.columns for _ in range(self.rows)]
        elif last != "m":
            raise ValueError(f"the sequence {numbers}{last}")

    def text(self):
        return ["".join(line).rstrip() for line in self.lines]


def shell(arguments, environment, report, orders):
    """The pty's session: runs the command in the foreground, reports each stop and the end."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
        os.execve(arguments[0], arguments, environment)
    os.write(report, b"pid %d\n" % child)
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            os.write(report, b"ended %d\n" % os.waitstatus_to_exitcode(status))
            os.read(orders, 1)  # the terminal lives until somebody has looked at it
            os._exit(0)
        os.write(report, b"stopped\n")
        os.read(orders, 1)
        os.tcsetpgrp(0, os.getpgid(child))
        os.killpg(child, signal.SIGCONT)


class Top:
    def __init__(self, arguments, rows=24, columns=80, environment=None):
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **(environment or {})}
        self.screen = Screen(rows, columns)
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        reports, report = os.pipe()
        orders, self.orders = os.pipe()
        self.shell, self.terminal = pty.fork()
        if not self.shell:
            os.read(orders, 1)
            shell(arguments, environment, report, orders)
        os.close(report)
        self.reports = os.fdopen(reports)
        self.set_size(rows, columns)
        self.modes = termios.tcgetattr(self.terminal)
        self.order()
        self.pid = int(self.reports.readline().split()[1])

    def order(self):
        os.write(self.orders, b"\n")

    def set_size(self, rows, columns):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.terminal], [], [], seconds)[0]:
            try:
                self.screen.feed(self.decoder.decode(os.read(self.terminal, 65536)))
            except OSError:
                pass

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def wait(self, what, condition):
        """Reads until the condition holds for the lines of the screen."""
        end = time.monotonic() + PATIENCE_S
        while not condition(self.screen.text()):
            if time.monotonic() > end:
                self.fail(what)
            self.read(0.2)
        print(what)

    def fail(self, what):
        print(f"NOT: {what}\n" + "\n".join(self.screen.text()))
        sys.stdout.flush()
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        sys.exit(1)

    def report(self):
        end = time.monotonic() + PATIENCE_S
        while not select.select([self.reports], [], [], 0)[0]:
            if time.monotonic() > end:
                self.fail("it ends or stops")
            self.read(0.1)
        return self.reports.readline().split()

    def expect_given_back(self, what):
        """After a report: nothing more comes, and all is as it was."""
        while select.select([self.terminal], [], [], 0.1)[0]:
            self.read(0)
        screen = self.screen
        same = termios.tcgetattr(self.terminal) == self.modes
        if screen.alternate or not screen.cursor or not screen.wraps or not same:
            self.fail(f"{what}: the terminal is given back")
        print(f"{what}: the terminal is as before")

    def expect_end(self, what, codes):
        word, code = self.report()
        if word != "ended" or int(code) not in codes:
            self.fail(f"{what}: ends with {codes} instead of {word} {code}")
        self.expect_given_back(what)
        self.order()
        os.waitpid(self.shell, 0)


ROW = re.compile(r"^([> ]) *([0-9.]+)%? +([0-9.]+)%? +(.*?)(?:  +(\S+))?$")


def rows(lines):
    """(cursor, self, total, function, binary) for each row of a table of functions."""
    found = [ROW.match(line) for line in lines[4:-1]]
    return [(m[1] == ">", float(m[2]), float(m[3]), m[4], m[5]) for m in found if m]


def cursor(lines):
    return next((i for i, line in enumerate(lines) if line.startswith(">")), None)


def samples(lines):
    match = re.match(r"([0-9,]+) samples of the last", lines[1])
    return int(match[1].replace(",", "")) if match else 0


def first(lines):
    return (rows(lines) or [(False, 0, 0, "", "")])[0]


def falls(values):
    return len(values) > 3 and all(a >= b for a, b in zip(values, values[1:]))


def whole_tour(assay, pid):
    top = Top([assay, "top", "-p", pid, "-F", "499", "-d", "0.5"])
    top.wait("it takes the terminal", lambda lines: top.screen.alternate)
    top.wait("the process is named",
             lambda lines: lines[0].startswith(f"assay top  process {pid} (known)"))  # fmt: skip
    top.wait("there are samples", lambda lines: samples(lines) > 200)
    # Kernel time counts for who called the kernel, and what is left is what the program does.
    top.press("k")
    top.wait("without the kernel", lambda lines: "without the kernel" in lines[1])
    top.wait("the hot function is first, in its binary, with its share",
             lambda lines: first(lines)[0] and int(first(lines)[1]) in PLAUSIBLE
             and first(lines)[3:] == ("burn", "known"))  # fmt: skip
    top.wait("by self", lambda lines: falls([row[1] for row in rows(lines)]))
    top.press("t")
    top.wait("by total", lambda lines: falls([row[2] for row in rows(lines)])
             and first(lines)[2] > 99 and first(lines)[3] != "burn")  # fmt: skip
    top.press("s")
    top.wait("by self again", lambda lines: first(lines)[3] == "burn")

    top.press("\x1b[B")
    top.wait("down", lambda lines: cursor(lines) == 5 and "simmer" in lines[5])
    top.press("\x1b[A")
    top.wait("up", lambda lines: cursor(lines) == 4)
    top.press("\x1b[F")
    top.wait("end", lambda lines: cursor(lines) == 3 + len(rows(lines)))
    top.press("\x1b[H")
    top.wait("home", lambda lines: cursor(lines) == 4)

    top.press("\r")
    top.wait("callers and callees", lambda lines: lines[2] == "Callers and callees of burn"
             and any(re.match(r"> *[0-9.]+% +[0-9.]+%   burn +known$", line) for line in lines)
             and any(re.match(r" +[0-9.]+%   called by eighty +known$", line)
                     for line in lines))  # fmt: skip
    top.press("\x1b")
    top.wait("back", lambda lines: first(lines)[3] == "burn")

    top.press("/TWE")
    top.wait("a filter is typed", lambda lines: lines[-1] == "/TWE_"
             and [row[3] for row in rows(lines)] == ["twenty"])  # fmt: skip
    top.press("\r")
    top.wait("and applied", lambda lines: 'only with "TWE"' in lines[1])
    top.press("\x1b")
    top.wait("and dropped", lambda lines: len(rows(lines)) > 3)

    top.press("p")
    top.wait("processes", lambda lines: re.match(rf">100\.0% +{pid}   known +[0-9.]+$", lines[4]))
    top.press("\r")
    top.wait("functions of one", lambda lines: lines[2] == f"Functions in process {pid} (known)")
    top.press("p")
    top.wait("functions of all", lambda lines: "in process" not in lines[2]
             and lines[3].startswith("  SELF%"))  # fmt: skip

    top.press("?")
    top.wait("help", lambda lines: any("quit" in line for line in lines[4:-1]))
    top.press("x")
    top.wait("no help", lambda lines: first(lines)[3] == "burn")

    top.press(" ")
    top.wait("a pause", lambda lines: lines[1].endswith("paused"))
    before = list(top.screen.text())
    for _ in range(10):
        top.read(0.2)
    if top.screen.text() != before:
        top.fail("nothing moves in a pause")
    top.press(" ")
    top.wait("and on", lambda lines: not lines[1].endswith("paused") and lines[1] != before[1])

    for height, width in ((10, 40), (3, 20), (50, 150), (24, 80)):
        top.set_size(height, width)
        top.wait(f"{width} by {height}", lambda lines, height=height: sum(map(bool, lines)) > 1
                 and (height < 24 or first(lines)[3] == "burn"))  # fmt: skip

    top.press("\x1a")
    if top.report() != ["stopped"]:
        top.fail("Ctrl-Z stops it")
    top.expect_given_back("Ctrl-Z")
    top.order()
    top.wait("it goes on", lambda lines: top.screen.alternate and first(lines)[3] == "burn")
    top.press("q")
    top.expect_end("q", [0])


def other_ends(assay, pid):
    for number, codes in (
        (signal.SIGINT, [0]), (signal.SIGTERM, [-15]), (signal.SIGHUP, [-1]),
        # A sanitizer takes these and exits.
        (signal.SIGSEGV, [-11, 1]), (signal.SIGABRT, [-6, 1]),
    ):  # fmt: skip
        top = Top([assay, "top", "-p", pid, "-d", "0.2"], environment={"NO_COLOR": "1"})
        top.wait("there are samples", lambda lines: samples(lines) and len(rows(lines)) > 3)
        drawn = top.screen.raw.replace("\x1b[7m", "")
        if re.search(r"\x1b\[[0-9;]*(?:[1-9]|[349][0-9])m", drawn):
            top.fail("NO_COLOR leaves no colour")
        os.kill(top.pid, number)
        top.expect_end(number.name, codes)
    top = Top([assay, "top", "-p", pid])
    top.wait("it takes the terminal", lambda lines: top.screen.alternate and lines[0])
    top.press("\x03")
    top.expect_end("Ctrl-C", [0])


def end_of_process(assay, pid):
    top = Top([assay, "top", "-p", pid, "-d", "0.5", "-F", "499"])
    top.wait("there are samples", lambda lines: samples(lines) > 20)
    os.kill(int(pid), signal.SIGKILL)
    top.wait("it says so", lambda lines: lines[1].endswith("ended"))
    top.wait("and keeps what was seen", lambda lines: len(rows(lines)) > 3)
    top.press("\x1b[B")
    top.wait("keys still work", lambda lines: cursor(lines) == 5)
    top.press("q")
    top.expect_end("q", [0])


def main():
    assay, pid = sys.argv[1:3]
    if sys.argv[3:]:
        end_of_process(assay, pid)
        return
    whole_tour(assay, pid)
    other_ends(assay, pid)


main()
