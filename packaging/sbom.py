#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the SBOM of a package as CycloneDX 1.5: sbom.py BUILD TREE VERSION OUTPUT. BUILD is the build
directory, TREE the tree that is packaged. It lists the program, the libraries that it is linked
with by the Debian package that holds each, the npm packages in the web page, the embedded BPF
objects and the tools that built it. The same input gives the same bytes: the time is
$SOURCE_DATE_EPOCH and the serial number is made of the content."""

import base64
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
STATIC = {"libiberty-dev": "libiberty.a"}  # linked into the program
TOOLS = ["gcc", "clang", "binutils", "meson", "ninja-build", "nodejs"]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sha256(path):
    return [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]


def distribution():
    release = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    return re.search(r'^ID="?(\w+)', release, re.MULTILINE)[1]


def debian_component(package, kind, linkage):
    version, architecture = run(
        "dpkg-query", "-W", "-f", "${Version} ${Architecture}", package
    ).split()
    name = package.split(":")[0]
    purl = f"pkg:deb/{distribution()}/{name}@{version}?arch={architecture}"
    properties = [{"name": "assay:linkage", "value": linkage}] if linkage else []
    return {
        "type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl,
        **({"properties": properties} if properties else {}),
    }  # fmt: skip


def owner(library):
    """The package that holds a file: dpkg knows it by the path before or after /usr was merged."""
    path = pathlib.Path(library).resolve()
    for candidate in (str(path), str(path).removeprefix("/usr"), library):
        found = subprocess.run(
            ["dpkg-query", "-S", candidate], capture_output=True, text=True, check=False
        )
        if found.returncode == 0:
            return found.stdout.split(": ")[0].split(",")[0]
    sys.exit(f"No Debian package holds {library}; install the library from a package.")


def linked_packages(program):
    """Of the libraries that the program names itself; theirs are their packages' business."""
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(program)))
    paths = dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", str(program)), re.MULTILINE))
    return sorted({owner(paths[name]) for name in needed if name in paths})


def npm_components():
    lock = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))
    for path, entry in sorted(lock["packages"].items()):
        if not path or entry.get("dev"):
            continue
        name = path.split("node_modules/")[-1]
        algorithm, digest = entry["integrity"].split("-", 1)
        content = base64.b64decode(digest).hex()
        purl = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
        yield {
            "type": "library", "bom-ref": purl, "name": name, "version": entry["version"],
            "purl": purl,
            "hashes": [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": content}],
            "licenses": [{"license": {"id": entry["license"]}}],
        }  # fmt: skip


def bpf_components(build):
    for path in sorted((build / "src/bpf").glob("*.bpf.o")):
        yield {
            "type": "file", "bom-ref": f"bpf/{path.name}", "name": path.name,
            "description": "BPF program, embedded in the executable",
            "hashes": sha256(path),
            "licenses": [{"expression": "GPL-2.0-only OR BSD-2-Clause"}],
        }  # fmt: skip


def main():
    build, tree, version, output = sys.argv[1:]
    build, tree = pathlib.Path(build), pathlib.Path(tree)
    program = tree / "usr/bin/assay"
    bpf = list(bpf_components(build))
    if not bpf:
        sys.exit(f"{build} holds no compiled BPF object.")
    linked = [debian_component(name, "library", "dynamic") for name in linked_packages(program)]
    linked += [debian_component(name, "library", "static") for name in STATIC]
    components = linked + list(npm_components()) + bpf
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    assay = {
        "type": "application", "bom-ref": "assay", "name": "assay", "version": version,
        "hashes": sha256(program), "licenses": [{"license": {"id": "Apache-2.0"}}],
    }  # fmt: skip
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [debian_component(name, "application", None) for name in TOOLS]},
            "component": assay,
        },
        "components": components,
        "dependencies": [{"ref": "assay", "dependsOn": [part["bom-ref"] for part in components]}],
    }  # fmt: skip
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}"
    pathlib.Path(output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


main()
