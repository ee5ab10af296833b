#!/usr/bin/env python3
"""The image of the programs, and its bill of materials; `make image` calls it.

In the image: the programs without symbols, the libraries they are linked with, the roots of TLS, the
time zones, copyright notices. No shell, no package manager, nothing that is written to; user 65532.
"""

import argparse
import datetime
import json
import os
import re
import sys
import tempfile

import contents
import oci
import sbom

# Of each layer, compressed.
MAX_LAYER_BYTES = 12_000_000
# Host, path and tag as in the distribution specification.
NAME = re.compile(r"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
TITLE = "propeller"
DESCRIPTION = "Runs WebAssembly modules on devices, from Kubernetes"


def debian_release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return dict(line.rstrip().split("=", 1) for line in file if "=" in line).get("VERSION_ID", "").strip('"')


def bill(args, created, debian, programs):
    """debian, programs: (folder, what fill_... said)"""
    document = sbom.Document(TITLE, args.version, created)
    folder, paths = programs
    files = [sbom.file_of(folder, path) for path in paths]
    own = sbom.package(TITLE + "-programs", args.version, files, supplier="Organization: Propeller",
                       primaryPackagePurpose="APPLICATION")
    own.update(licenseDeclared="Apache-2.0", licenseConcluded="Apache-2.0")
    document.add(own, files)
    folder, package_of = debian
    for package in sorted(set(package_of.values())):
        files = [sbom.file_of(folder, path) for path in sorted(package_of) if package_of[path] == package]
        about = contents.version_of(package)
        document.add(sbom.debian_package(package, about, files, debian_release()), files, own["SPDXID"])
    return json.dumps(document.value(), indent=1).encode() + b"\n"


def labels(args, created, materials):
    return {oci.ANNOTATION + "title": TITLE, oci.ANNOTATION + "description": DESCRIPTION,
            oci.ANNOTATION + "version": args.version, oci.ANNOTATION + "revision": args.revision,
            oci.ANNOTATION + "created": created, oci.ANNOTATION + "licenses": "Apache-2.0",
            # which bill of materials is the one of this image
            "propeller.abstractmachines.fr/sbom": oci.digest(materials)}


def config(about):
    # The C library keeps no freed blocks for each thread; Containerfile says why.
    return {"User": f"{contents.USER}:{contents.USER}", "WorkingDir": "/",
            "Env": ["PATH=/usr/bin", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"],
            "Entrypoint": ["/usr/bin/propeller-controller"], "Labels": about}


def megabytes(count):
    return f"{count / 1e6:.1f} MB"


def report(args, image, layers):
    print(f"image    {image.name}")
    print(f"digest   {image.digest()}")
    print(f"size     {megabytes(sum(map(len, image.layers)))} compressed"
          f" ({' + '.join(megabytes(len(layer)) for layer in image.layers)}), {megabytes(sum(map(len, layers)))} on disk")
    print(f"archive  {args.output}/{TITLE}.tar")
    print(f"sbom     {args.output}/{TITLE}.spdx.json")


def build(args, work):
    debian, programs = work + "/debian", work + "/programs"
    created = datetime.datetime.fromtimestamp(args.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    paths = contents.fill_programs(programs, args.programs, args.licence)
    package_of = contents.fill_debian(debian, [f"{args.programs}/{name}" for name in contents.PROGRAMS])
    materials = bill(args, created, (debian, package_of), (programs, paths))
    about = labels(args, created, materials)
    layers = [oci.layer_of(debian), oci.layer_of(programs)]
    image = oci.Image(args.name, layers, config(about), annotations=about, created=created)
    for layer in image.layers:
        if len(layer) > MAX_LAYER_BYTES:
            raise contents.Unusable(f"a layer has {len(layer)} bytes, at most {MAX_LAYER_BYTES} are allowed")
    os.makedirs(args.output, exist_ok=True)
    with open(f"{args.output}/{TITLE}.spdx.json", "wb") as file:
        file.write(materials)
    image.write(f"{args.output}/{TITLE}.tar")
    with open(f"{args.output}/{TITLE}.digest", "w", encoding="utf-8") as file:
        file.write(f"{image.name.rpartition(':')[0]}@{image.digest()}\n")
    report(args, image, layers)


def fill(args):
    """Both layers into one folder, for those who have a builder (Containerfile)."""
    contents.fill_debian(args.root, [f"{args.programs}/{name}" for name in contents.PROGRAMS])
    contents.fill_programs(args.root, args.programs, args.licence)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True, metavar="DIR", help="folder of the programs")
    parser.add_argument("--licence", default="LICENSE", metavar="FILE")
    parser.add_argument("--root", metavar="DIR", help="fill this folder and make no image")
    parser.add_argument("--name", default="localhost/propeller:latest", help="name and tag (%(default)s)")
    parser.add_argument("--version", default="unknown")
    parser.add_argument("--revision", default="unknown")
    parser.add_argument("--epoch", type=int, default=0, metavar="SECONDS", help="time of the sources")
    parser.add_argument("--output", metavar="DIR", help="folder for archive and bill of materials")
    args = parser.parse_args()
    if not args.root and not args.output:
        parser.error("one of --output and --root is needed")
    if not NAME.fullmatch(args.name):
        parser.error(f"--name: '{args.name}' must be [HOST/]NAME:TAG, the name in lower case")
    try:
        if args.root:
            fill(args)
        else:
            with tempfile.TemporaryDirectory() as work:
                build(args, work)
    except (contents.Unusable, OSError) as error:
        sys.exit(f"image: {error}")


if __name__ == "__main__":
    main()
