#!/usr/bin/env python3
"""Holds the libraries of the fleet page against npm, or takes them from there.

    vendor_page.py          fails if a file is not what its package has
    vendor_page.py --take   writes the files, and their digests into the manifest

controller/page/vendor/manifest.json has a row for each file: its package, version, path, licence and SHA-256.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

FOLDER = pathlib.Path("controller/page/vendor")


def packed(row, folder):
    name = subprocess.run(["npm", "pack", "--silent", f"{row['package']}@{row['version']}"], cwd=folder, check=True,
                          capture_output=True, text=True).stdout.strip()
    with tarfile.open(pathlib.Path(folder) / name) as archive:
        return archive.extractfile(f"package/{row['path']}").read()


def main(*arguments):
    manifest = FOLDER / "manifest.json"
    rows, wrong = json.loads(manifest.read_text(encoding="utf-8")), 0
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            content = packed(row, folder)
            if "--take" in arguments:
                (FOLDER / row["file"]).write_bytes(content)
                row["sha256"] = hashlib.sha256(content).hexdigest()
            kept = (FOLDER / row["file"]).read_bytes()
            is_right = kept == content and hashlib.sha256(kept).hexdigest() == row["sha256"]
            wrong += not is_right
            print(f"{row['file']}: {row['package']} {row['version']}: {'ok' if is_right else 'not what npm has'}")
    if "--take" in arguments:
        text = ",\n".join("  " + json.dumps(row) for row in rows)
        manifest.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
