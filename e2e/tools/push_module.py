#!/usr/bin/env python3
"""Pushes a WebAssembly module to an OCI registry without TLS: push_module.py HOST:PORT REPOSITORY TAG FILE.

Prints the digest of the manifest. The layer is application/wasm, the config empty. --type and --size make a manifest
that says something else.
"""

import argparse
import hashlib
import http.client
import json
import sys

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
EMPTY = b"{}"


def digest_of(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def descriptor(kind, content):
    return {"mediaType": kind, "digest": digest_of(content), "size": len(content)}


def ask(host, method, path, body=b"", kind=None):
    """The headers of an answer that is no error."""
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request(method, path, body, {"Content-Type": kind or "application/octet-stream"})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    if reply.status >= 300:
        sys.exit(f"{method} {path}: {reply.status} {text.decode(errors='replace')}")
    return reply.headers


def push_blob(host, repository, content):
    place = ask(host, "POST", f"/v2/{repository}/blobs/uploads/")["Location"]
    path = place.split(host, 1)[-1]
    mark = "&" if "?" in path else "?"
    ask(host, "PUT", f"{path}{mark}digest={digest_of(content)}", content)


def push_document(host, repository, tag, kind, document):
    text = json.dumps({"schemaVersion": 2, "mediaType": kind, **document}).encode()
    ask(host, "PUT", f"/v2/{repository}/manifests/{tag or digest_of(text)}", text, kind)
    return text


def push_artifact(host, repository, tag, kind, layer, content):
    """Pushes a manifest of one layer, which is given with its descriptor, and returns its text."""
    push_blob(host, repository, EMPTY)
    push_blob(host, repository, content)
    return push_document(host, repository, tag, MANIFEST, {
        "artifactType": kind,
        "config": descriptor("application/vnd.oci.empty.v1+json", EMPTY),
        "layers": [layer],
    })


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("host", "repository", "tag", "file"):
        parser.add_argument(name)
    parser.add_argument("--type", default="application/wasm", help="media type of the layer")
    parser.add_argument("--size", type=int, help="size of the layer, other than that of the file")
    options = parser.parse_args()
    with open(options.file, "rb") as file:
        module = file.read()
    layer = descriptor(options.type, module)
    layer["size"] = layer["size"] if options.size is None else options.size
    print(digest_of(push_artifact(options.host, options.repository, options.tag, "application/vnd.wasm.config.v0+json",
                                  layer, module)))


if __name__ == "__main__":
    main()
