# SPDX-License-Identifier: Apache-2.0
"""What keeps the machine busy: PostgreSQL under pgbench where it is installed, else subjects."""

import glob
import os
import pwd
import shutil
import signal
import subprocess

import machine

CLIENTS = 2 * machine.CPUS
MOST_SECONDS = 1200


def _server_programs():
    for folder in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True):
        if os.access(os.path.join(folder, "initdb"), os.X_OK):
            return folder
    return None


class Postgres:
    """A server of our own, on a socket in a folder of our own; it refuses to run as root."""

    def __init__(self, tools, programs):
        self.programs, self.data = programs, os.path.join(tools.scratch, "postgres")
        names = [user.pw_name for user in pwd.getpwall()]
        self.user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        os.mkdir(self.data)
        os.chmod(tools.scratch, 0o711)
        os.chown(self.data, self.user.pw_uid, self.user.pw_gid)
        self.name = f"PostgreSQL under pgbench with {CLIENTS} clients"
        database = os.path.join(self.data, "db")
        subprocess.run(
            [self.program("initdb"), "-D", database, "-A", "trust", "-U", "bench", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, **self.as_user(),
        )  # fmt: skip
        self.server = machine.start(
            [self.program("postgres"), "-D", database, "-k", self.data, "-c", "listen_addresses=",
             "-c", "fsync=off", "-c", "autovacuum=off"],
            end_signal=signal.SIGQUIT, stderr=subprocess.DEVNULL, **self.as_user(),
        )  # fmt: skip
        machine.wait_until(self.is_ready, 30, "The start of PostgreSQL")
        self.pgbench("-i", "-q", "-s", "5").wait()
        self.clients = self.pgbench(
            "-n", "-c", str(CLIENTS), "-j", str(machine.CPUS), "-T", str(MOST_SECONDS),
            "-b", "select-only@8", "-b", "tpcb-like@2",
        )  # fmt: skip

    def program(self, name):
        return os.path.join(self.programs, name)

    def as_user(self):
        return {
            "user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": [],
            "cwd": self.data,
        }  # fmt: skip

    def is_ready(self):
        command = [self.program("pg_isready"), "-q", "-h", self.data]
        return subprocess.run(command, check=False).returncode == 0

    def pgbench(self, *arguments):
        return machine.start(
            [shutil.which("pgbench"), *arguments, "-h", self.data, "-U", "bench", "postgres"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def close(self):
        machine.stop(self.clients)
        machine.stop(self.server)
        shutil.rmtree(self.data, ignore_errors=True)


class Subjects:
    def __init__(self, tools):
        self.name = f"{CLIENTS} processes that compute (there is no PostgreSQL here)"
        self.processes = [
            machine.start([tools.subject, str(10 + 10 * i), str(16 * (i % 2))])
            for i in range(CLIENTS)
        ]

    def close(self):
        for process in self.processes:
            machine.stop(process)


def start(tools):
    programs = _server_programs()
    if programs and shutil.which("pgbench"):
        return Postgres(tools, programs)
    return Subjects(tools)
