#!/usr/bin/env python3
"""index.py OUTPUT ARCHIVE...: one archive of the images of several architectures, as an OCI index.

Each ARCHIVE is one of `make image`. A program that asks for the image gets the one of its own architecture. The archive
has no part for docker before version 25, which cannot read an index.
"""

import io
import json
import sys
import tarfile

import oci

INDEX = "application/vnd.oci.image.index.v1+json"


def read(path):
    with tarfile.open(path) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar if info.isfile()}


def combine(archives):
    """The files of the new archive, by name."""
    files, entries, names = {}, [], set()
    for archive in archives:
        (entry,) = json.loads(archive["index.json"])["manifests"]
        names.add(tuple(sorted(entry.pop("annotations").items())))
        entries.append(entry)
        files.update({name: data for name, data in archive.items() if name.startswith("blobs/")})
    platforms = [entry["platform"]["architecture"] for entry in entries]
    if len(names) != 1 or len(set(platforms)) != len(platforms):
        sys.exit(f"index: the images have several names, or one architecture twice: {platforms}")
    entries.sort(key=lambda entry: entry["platform"]["architecture"])
    index = oci.encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
    top = {"mediaType": INDEX, "digest": oci.digest(index), "size": len(index), "annotations": dict(names.pop())}
    files[oci.blob_path(index)] = index
    files["oci-layout"] = oci.encode({"imageLayoutVersion": "1.0.0"})
    files["index.json"] = oci.encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": [top]})
    return files, top["digest"]


def main(output, *paths):
    files, digest = combine([read(path) for path in paths])
    with tarfile.open(output, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            tar.addfile(info, io.BytesIO(files[name]))
    print(digest)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
