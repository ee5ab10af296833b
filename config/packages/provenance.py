#!/usr/bin/env python3
"""provenance.py SUMS: prints a statement of in-toto about the files of SUMS (SHA256SUMS) and the image IMAGE, which is
NAME@sha256:DIGEST, with SLSA provenance v1.

It names the sources by VERSION and REVISION, the command, and the packages of Debian that the build used. It says nothing
that changes between two builds of the same sources on the same packages.
"""

import json
import os
import subprocess
import sys

BUILD_TYPE = "tag:propeller.abstractmachines.fr,2026:make-release"
# What compiles, links and packs.
TOOLS = ("gcc", "binutils", "make", "libc6-dev", "python3", "debhelper", "dpkg-dev")
CROSS_TOOLS = ("gcc-aarch64-linux-gnu", "binutils-aarch64-linux-gnu", "mmdebstrap", "qemu-user-static")


def subjects(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            digest, name = line.split()
            yield {"name": name, "digest": {"sha256": digest}}
    name, _, digest = os.environ["IMAGE"].partition("@sha256:")
    yield {"name": name, "digest": {"sha256": digest}}


def packages():
    tools = TOOLS + CROSS_TOOLS if os.environ.get("CROSS") else TOOLS
    said = subprocess.run(["dpkg-query", "--show", "--showformat=${Package} ${Version} ${Architecture}\n", *tools],
                          capture_output=True, text=True, check=True).stdout
    for line in sorted(said.splitlines()):
        name, version, architecture = line.split()
        yield {"uri": f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}"}


def statement(sums):
    revision = os.environ["REVISION"]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": list(subjects(sums)),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"command": f"make release VERSION={os.environ['VERSION']}",
                                       "revision": revision},
                "resolvedDependencies": [{"uri": "git+file:.", "digest": {"gitCommit": revision}}, *packages()],
            },
            "runDetails": {"builder": {"id": "tag:propeller.abstractmachines.fr,2026:own-machine"}},
        },
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    json.dump(statement(sys.argv[1]), sys.stdout, indent=1, sort_keys=True)
    print()
