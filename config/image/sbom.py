"""Bill of materials of the image, as SPDX 2.3 JSON (https://spdx.github.io/spdx-spec/v2.3/).

Packages are the image's own programs and each Debian package of which a file is in the image; files are
those files, with their checksums. A package here has the files that are in the image, not all of Debian's.
"""

import hashlib
import re
import uuid

NO_ASSERTION = "NOASSERTION"
ID = "SPDXRef-"
IMAGE = ID + "image"


def spdx_id(kind, name):
    """Readable, and another one for every name: +1 and -1 are zones."""
    readable = re.sub("[^A-Za-z0-9.-]", "-", name.strip("/"))
    return f"{ID}{kind}-{readable}-" + hashlib.sha256(name.encode()).hexdigest()[:8]


def checksums(data):
    return [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data, usedforsecurity=False).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]


def verification_code(files):
    """Section 7.9: over the SHA1s of its files, in order."""
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    return {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode(), usedforsecurity=False).hexdigest()}


def file_of(root, path):
    with open(root + path, "rb") as file:
        data = file.read()
    return {"SPDXID": spdx_id("file", path), "fileName": "." + path, "checksums": checksums(data),
            "licenseConcluded": NO_ASSERTION, "copyrightText": NO_ASSERTION,
            "fileTypes": ["BINARY" if b"\0" in data else "TEXT"]}


def package(name, version, files, **more):
    return {"SPDXID": spdx_id("package", name), "name": name, "versionInfo": version,
            "downloadLocation": NO_ASSERTION, "filesAnalyzed": True, "licenseConcluded": NO_ASSERTION,
            "licenseDeclared": NO_ASSERTION, "copyrightText": NO_ASSERTION,
            "packageVerificationCode": verification_code(files), **more}


def debian_package(name, about, files, release):
    version, architecture, source, source_version = about
    url = f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}&distro=debian-{release}"
    return package(name, version, files, supplier="Organization: Debian",
                   sourceInfo=f"built from Debian's source package {source} {source_version}",
                   externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": url}])


def relation(first, kind, second):
    return {"spdxElementId": first, "relationshipType": kind, "relatedSpdxElement": second}


class Document:
    """Filled package by package; the same contents give the same document."""

    def __init__(self, name, version, created):
        self.name, self.version, self.created = name, version, created
        self.packages, self.files = [], []
        self.relations = [relation(ID + "DOCUMENT", "DESCRIBES", IMAGE)]

    def add(self, one, files, programs=None):
        self.packages.append(one)
        self.files += files
        self.relations.append(relation(IMAGE, "CONTAINS", one["SPDXID"]))
        self.relations += [relation(one["SPDXID"], "CONTAINS", file["SPDXID"]) for file in files]
        if programs:
            self.relations.append(relation(programs, "DEPENDS_ON", one["SPDXID"]))

    def value(self):
        image = {"SPDXID": IMAGE, "name": self.name, "versionInfo": self.version, "filesAnalyzed": False,
                 "downloadLocation": NO_ASSERTION, "licenseConcluded": NO_ASSERTION,
                 "licenseDeclared": NO_ASSERTION, "copyrightText": NO_ASSERTION,
                 "primaryPackagePurpose": "CONTAINER"}
        contents = "".join(sorted(file["fileName"] + file["checksums"][1]["checksumValue"] for file in self.files))
        unique = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.name} {self.version} {self.created} {contents}")
        return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": ID + "DOCUMENT",
                "name": f"{self.name}-{self.version}", "documentNamespace": f"urn:uuid:{unique}",
                "creationInfo": {"created": self.created, "creators": ["Tool: propeller-config-image"]},
                "packages": [image, *self.packages], "files": self.files, "relationships": self.relations}
