# SPDX-License-Identifier: Apache-2.0
"""watch_fleet.py URL DEPLOY END: profiles of the service shop in windows of 10 s, version 1 for eight minutes before
DEPLOY and version 2 until END, in which parse takes half more."""

import sys
import urllib.request

import window_pprof


def send(url, version, start, parse_ms):
    noise = start // 10 * 7919 % 13 - 6
    sys.argv = ["", "window.pb", "cpu", "nanoseconds", str(start), "10",
                f"main;serve;parse={(parse_ms + noise * 10) * 10**6}",
                f"main;serve;render={3 * 10**9}", f"main;collect={2 * 10**9}"]
    window_pprof.main()
    with open("window.pb", "rb") as file:
        urllib.request.urlopen(f"{url}/api/v1/push?service=shop&version={version}", file.read()).close()


def main():
    url, deploy, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for start in range(deploy - 480, deploy, 10):
        send(url, 1, start, 1000)
    for start in range(deploy, end, 10):
        send(url, 2, start, 1500)


if __name__ == "__main__":
    main()
