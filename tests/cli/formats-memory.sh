# SPDX-License-Identifier: Apache-2.0
# A small file takes little memory, whatever it says: each fuzzer's seed of a format, as it is and
# with runs of its bytes replaced by those that make lengths and counts large.
cat >measure.py <<'END'
import os
import pathlib
import random
import sys

LIMIT_KIB = 24 << 10  # an empty profile takes 14 MiB
VARIANTS = 8


def damage(content, random):
    content = bytearray(content)
    at = random.randrange(len(content))
    run = random.choice([b"\xff", b"\xff" * 4, b"\x7f" * 4, b"\xff" * 9 + b"\x01", b"9" * 9, b"\x80" * 3])
    content[at:at + len(run)] = run
    return bytes(content)


def peak_kib(assay, path):
    pid = os.fork()
    if not pid:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.execv(assay, [assay, "info", path])
    _, status, usage = os.wait4(pid, 0)
    assert os.WIFEXITED(status), f"{path}: ended by signal {status & 127}"
    return usage.ru_maxrss


def main(assay, seeds, formats):
    count, worst = 0, (0, "")
    for name in formats:
        files = [path for path in sorted(pathlib.Path(seeds, name).iterdir()) if path.stat().st_size]
        assert files, f"There are no seeds of {name}."
        for path in files:
            numbers = random.Random(str(path.name))
            content = path.read_bytes()
            for variant in range(VARIANTS + 1):
                pathlib.Path("input").write_bytes(damage(content, numbers) if variant else content)
                kib = peak_kib(assay, "input")
                count += 1
                worst = max(worst, (kib, f"{name}/{path.name}, variant {variant}"))
                if kib > LIMIT_KIB:
                    os.rename("input", "large")
                    sys.exit(f"{name}/{path.name}, variant {variant}: {kib} KiB")
    print(f"{count} files, {worst[0]} KiB at most: {worst[1]}")


main(sys.argv[1], sys.argv[2], sys.argv[3:])
END
[[ $(ldd "$ASSAY") != *libasan* ]] || { echo "The address sanitizer keeps memory that was given back."; exit 77; }
python3 measure.py "$ASSAY" "$ROOT/tests/fuzz/seeds" austin bpftrace callgrind chrome-trace cpuprofile dtrace \
    firefox flamebearer folded gperftools-cpu gperftools-heap heapprofile heaptrack jfr macos-sample massif \
    otlp otlp-json perf-data perf-script pprof pstats speedscope stackprof
