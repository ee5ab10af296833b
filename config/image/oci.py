#!/usr/bin/env python3
"""An image out of folders, without a registry or a daemon: an OCI layout in a tar.

Beside the layout stands the manifest.json of a docker archive about the same blobs, so containerd
(`ctr images import`), docker (`docker load`), kind (`kind load image-archive`) and skopeo all take it.

The same folders give the same bytes: names in order, times of 1970, owner root, modes 0644 and 0755.
"""

import argparse
import hashlib
import io
import json
import os
import tarfile
import zlib

ANNOTATION = "org.opencontainers.image."


def plain(info):
    """What a file is, without whose it is and when it was made."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o777 if info.issym() else 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    if info.name == "tmp":
        info.mode = 0o1777
    return info


def layer_of(root):
    """Everything below a folder as a tar."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted(folders + files):
                path = os.path.join(folder, name)
                info = plain(tar.gettarinfo(path, os.path.relpath(path, root)))
                if info.islnk():  # that two names are one file is the machine's business
                    info.type, info.linkname, info.size = tarfile.REGTYPE, "", os.path.getsize(path)
                if info.isreg():
                    with open(path, "rb") as file:
                        tar.addfile(info, file)
                else:
                    tar.addfile(info)
    return buffer.getvalue()


def compress(data):
    """gzip without a name and a time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def blob_path(data):
    return "blobs/" + digest(data).replace(":", "/")


def encode(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def descriptor(kind, data, **more):
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data), **more}


def architecture():
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


class Image:
    """Layers as tars, bottom first; config as in the OCI image specification."""

    def __init__(self, name, layers, config, annotations=None, created=None, packed=True):
        self.name = name
        self.layers = [compress(layer) for layer in layers] if packed else layers
        about = {"architecture": architecture(), "os": "linux", "config": config,
                 "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}}
        if created:
            about["created"] = created
        self.config = encode(about)
        self.manifest = encode({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("config.v1+json", self.config),
            "layers": [descriptor("layer.v1.tar+gzip" if packed else "layer.v1.tar", layer) for layer in self.layers],
            **({"annotations": annotations} if annotations else {})})

    def digest(self):
        return digest(self.manifest)

    def index(self):
        names = {"io.containerd.image.name": self.name, ANNOTATION + "ref.name": self.name.rpartition(":")[2]}
        platform = {"architecture": architecture(), "os": "linux"}
        entry = descriptor("manifest.v1+json", self.manifest, annotations=names, platform=platform)
        return {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}

    def write(self, path):
        blobs = [self.config, self.manifest, *self.layers]
        docker = [{"Config": blob_path(self.config), "RepoTags": [self.name],
                   "Layers": [blob_path(layer) for layer in self.layers]}]
        files = {"oci-layout": encode({"imageLayoutVersion": "1.0.0"}), "index.json": encode(self.index()),
                 "manifest.json": encode(docker), **{blob_path(data): data for data in sorted(blobs, key=digest)}}
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="localhost/NAME:TAG")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--user", default="65532:65532")
    parser.add_argument("root")
    parser.add_argument("output")
    parser.add_argument("entrypoint", nargs="+")
    args = parser.parse_args()
    config = {"Env": args.env, "Entrypoint": args.entrypoint, "User": args.user}
    Image(args.name, [layer_of(args.root)], config, packed=False).write(args.output)


if __name__ == "__main__":
    main()
