#!/usr/bin/env python3
"""An image out of a folder, without a registry or a daemon: an OCI layout in a tar, one layer.

The same folder gives the same bytes: names in order, times of 1970, owner root.
"""

import argparse
import hashlib
import io
import json
import os
import tarfile


def plain(info):
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode |= 0o444 | (0o111 if info.isdir() or info.mode & 0o100 else 0)
    if info.name == "tmp":
        info.mode = 0o1777
    return info


def layer_of(root):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted(folders + files):
                path = os.path.join(folder, name)
                tar.add(path, os.path.relpath(path, root), recursive=False, filter=plain)
    return buffer.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def descriptor(kind, data, **more):
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data), **more}


def encode(value):
    return json.dumps(value, sort_keys=True).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="localhost/NAME:TAG")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--user", default="65532:65532")
    parser.add_argument("root")
    parser.add_argument("output")
    parser.add_argument("entrypoint", nargs="+")
    args = parser.parse_args()

    layer = layer_of(args.root)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    config = encode({"architecture": machine, "os": "linux",
                     "config": {"Env": args.env, "Entrypoint": args.entrypoint, "User": args.user},
                     "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}})
    manifest = encode({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                       "config": descriptor("config.v1+json", config),
                       "layers": [descriptor("layer.v1.tar", layer)]})
    names = {"io.containerd.image.name": args.name,
             "org.opencontainers.image.ref.name": args.name.rpartition(":")[2]}
    index = encode({"schemaVersion": 2,
                    "manifests": [descriptor("manifest.v1+json", manifest, annotations=names)]})
    files = {"oci-layout": encode({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    files |= {"blobs/" + digest(data).replace(":", "/"): data for data in (layer, config, manifest)}
    with tarfile.open(args.output, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
