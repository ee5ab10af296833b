#!/usr/bin/env python3
"""Holds an image and its bill of materials against the specifications and against each other, and unpacks it.

verify.py ARCHIVE SBOM ROOT: a line for each finding, exit status 1 if there are any.
Written without the modules that make them, so that a mistake there is no mistake here.
"""

import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile

MAX_LAYER_BYTES = 12_000_000
FORBIDDEN = re.compile(r"(^|/)(sh|bash|dash|busybox|env|cat|ls|cp|chmod|su|sudo|mount|python[0-9.]*|perl|curl|wget|"
                       r"apt|apt-get|dpkg|dpkg-deb|rpm|apk)$")
PROGRAMS = {"usr/bin/propeller-" + name for name in ("controller", "webhook", "certgen", "standalone")}
LABELS = ("title", "description", "version", "revision", "created", "licenses")
RELATIONS = {"DESCRIBES", "CONTAINS", "DEPENDS_ON"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

FINDINGS = []


def expect(good, text):
    if not good:
        FINDINGS.append(text)
    return good


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Archive:
    """The tar with the OCI layout: every blob is what its name says."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {info.name: tar.extractfile(info).read() for info in tar if info.isfile()}
        for name, data in self.files.items():
            if name.startswith("blobs/"):
                expect("blobs/" + sha256(data).replace(":", "/") == name, f"{name}: the digest of it is {sha256(data)}")

    def json(self, name):
        return json.loads(self.files[name])

    def blob(self, descriptor):
        data = self.files.get("blobs/" + descriptor["digest"].replace(":", "/"), b"")
        expect(len(data) == descriptor["size"], f"{descriptor['digest']}: {len(data)} bytes, not {descriptor['size']}")
        return data


def check_layout(archive):
    """manifest, config, layers as tars"""
    expect(archive.json("oci-layout") == {"imageLayoutVersion": "1.0.0"}, "oci-layout: not version 1.0.0")
    entries = archive.json("index.json")["manifests"]
    expect(len(entries) == 1, f"index.json: {len(entries)} images")
    manifest = json.loads(archive.blob(entries[0]))
    config = json.loads(archive.blob(manifest["config"]))
    packed = [archive.blob(layer) for layer in manifest["layers"]]
    layers = [gzip.decompress(layer) for layer in packed]
    for layer in packed:
        expect(len(layer) <= MAX_LAYER_BYTES, f"a layer has {len(layer)} bytes, at most {MAX_LAYER_BYTES} are allowed")
        expect(layer[3] == 0 and layer[4:8] == bytes(4), "a layer tells a file name or the time it was packed")
    expect(config["rootfs"]["diff_ids"] == [sha256(layer) for layer in layers], "diff_ids are not the layers'")
    docker = archive.json("manifest.json")[0]
    name = entries[0]["annotations"]["io.containerd.image.name"]
    expect(docker["RepoTags"] == [name], f"docker calls it {docker['RepoTags']}, containerd {name}")
    expect(archive.files[docker["Config"]] == archive.blob(manifest["config"]), "docker has another config")
    expect([archive.files[layer] for layer in docker["Layers"]] == packed, "docker has other layers")
    return manifest, config, layers


def check_config(manifest, config, bill):
    settings = config["config"]
    expect(settings["User"] == "65532:65532", f"it runs as '{settings['User']}'")
    expect(settings["Entrypoint"][0].lstrip("/") in PROGRAMS, f"entrypoint {settings['Entrypoint']}")
    for name in LABELS:
        expect(settings["Labels"].get("org.opencontainers.image." + name), f"no label {name}")
    expect(TIME.fullmatch(config["created"]), f"created is '{config['created']}'")
    for where, labels in ("label", settings["Labels"]), ("annotation", manifest["annotations"]):
        expect(labels.get("propeller.abstractmachines.fr/sbom") == sha256(bill), f"the {where} names another SBOM")


def unpack(layers, root):
    names = []
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            members = tar.getmembers()
            expect(len({info.name for info in members}) == len(members), "a name is in a layer twice")
            for info in members:
                owner = info.uid, info.gid, info.uname, info.gname, info.mtime
                expect(owner == (0, 0, "", "", 0), f"{info.name}: owner and time {owner}")
                expect(info.isfile() or info.isdir() or info.issym(), f"{info.name}: neither file, folder nor link")
                expect(info.issym() or info.mode in (0o644, 0o755), f"{info.name}: mode {info.mode:o}")
                expect(not FORBIDDEN.search(info.name) or not info.isfile(), f"{info.name} has no place here")
            names += [info.name for info in members]
            tar.extractall(root)
    expect(PROGRAMS <= set(names), f"missing: {PROGRAMS - set(names)}")
    for name in names:
        path = os.path.join(root, name)
        if os.path.islink(path):
            check_link(root, name)
    return names


def check_link(root, name):
    """Its end is in the image."""
    for _ in range(8):
        target = os.readlink(os.path.join(root, name))
        name = os.path.normpath(target.lstrip("/") if target[0] == "/" else
                                os.path.join(os.path.dirname(name), target))
        if not os.path.islink(os.path.join(root, name)):
            break
    expect(os.path.exists(os.path.join(root, name)), f"a link leads to {name}, which is not there")


def check_document(bill):
    """What SPDX 2.3 asks for in every document, package and file."""
    expect(bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0", "SPDX: version or licence")
    expect(re.match(r"[a-z]+:.", bill["documentNamespace"]) and "#" not in bill["documentNamespace"], "SPDX: namespace")
    expect(TIME.fullmatch(bill["creationInfo"]["created"]) and
           all(re.match("(Tool|Person|Organization): ?.", who) for who in bill["creationInfo"]["creators"]),
           "SPDX: creationInfo")
    ids = [bill["SPDXID"]] + [one["SPDXID"] for one in bill["packages"] + bill["files"]]
    expect(len(set(ids)) == len(ids), "SPDX: an id stands for two things")
    for one in ids:
        expect(re.fullmatch("SPDXRef-[A-Za-z0-9.-]+", one), f"SPDX: id '{one}'")
    for relation in bill["relationships"]:
        for end in "spdxElementId", "relatedSpdxElement":
            expect(relation[end] in ids, f"SPDX: a relationship with '{relation[end]}', which is not there")
        expect(relation["relationshipType"] in RELATIONS, f"SPDX: relationship {relation['relationshipType']}")
    for package in bill["packages"]:
        for field in "name", "downloadLocation", "versionInfo", "licenseConcluded", "licenseDeclared", "copyrightText":
            expect(package.get(field), f"SPDX: package {package['name']} without {field}")


def check_packages(bill):
    """The verification code is that of the files, and each file is in one package."""
    files = {one["SPDXID"]: one for one in bill["files"]}
    parts = {}
    for relation in bill["relationships"]:
        if relation["relationshipType"] == "CONTAINS" and relation["relatedSpdxElement"] in files:
            parts.setdefault(relation["spdxElementId"], []).append(relation["relatedSpdxElement"])
    expect(sorted(name for names in parts.values() for name in names) == sorted(files), "SPDX: files without a package")
    for package in bill["packages"]:
        sums = sorted(one["checksumValue"] for name in parts.get(package["SPDXID"], [])
                      for one in files[name]["checksums"] if one["algorithm"] == "SHA1")
        expect(bool(sums) == package["filesAnalyzed"], f"SPDX: files of {package['name']}")
        if sums:
            code = hashlib.sha1("".join(sums).encode(), usedforsecurity=False).hexdigest()
            expect(package["packageVerificationCode"]["packageVerificationCodeValue"] == code,
                   f"SPDX: verification code of {package['name']}")


def check_files(bill, names, root):
    """Its files are the image's, and no program or library of the image is left out."""
    listed = {one["fileName"].removeprefix("./") for one in bill["files"]}
    for one in bill["files"]:
        path = os.path.join(root, one["fileName"])
        if expect(os.path.isfile(path), f"SPDX: {one['fileName']} is not in the image"):
            with open(path, "rb") as file:
                data = file.read()
            sums = {check["algorithm"]: check["checksumValue"] for check in one["checksums"]}
            expect(sums == {"SHA1": hashlib.sha1(data, usedforsecurity=False).hexdigest(),
                            "SHA256": hashlib.sha256(data).hexdigest()}, f"SPDX: checksums of {one['fileName']}")
    for name in names:
        path = os.path.join(root, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                program = file.read(4) == b"\x7fELF"
            expect(not program or name in listed, f"SPDX: {name} is not listed")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[2], "rb") as file:
        text = file.read()
    bill = json.loads(text)
    manifest, config, layers = check_layout(Archive(sys.argv[1]))
    check_config(manifest, config, text)
    names = unpack(layers, sys.argv[3])
    check_document(bill)
    check_packages(bill)
    check_files(bill, names, sys.argv[3])
    for finding in FINDINGS:
        print(finding)
    sys.exit(bool(FINDINGS))


if __name__ == "__main__":
    main()
