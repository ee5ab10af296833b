#!/usr/bin/env python3
"""Signs a module in an OCI registry as cosign does: sign_module.py HOST:PORT REPOSITORY DIGEST KEY.

DIGEST is that of the manifest, KEY a file with an ECDSA P-256 key in PEM. By default the signature stands at the tag
sha256-<hex>.sig, with --bundle as a Sigstore bundle in the index at the tag sha256-<hex>. --says and --predicate make
signatures that must not count.
"""

import argparse
import base64
import json
import subprocess

from push_module import descriptor, push_artifact, push_document

INDEX = "application/vnd.oci.image.index.v1+json"
SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT = "application/vnd.in-toto+json"
SIGNATURE = "https://sigstore.dev/cosign/sign/v1"


def encoded(content):
    return base64.b64encode(content).decode()


def signature(key, content):
    return encoded(subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=content, check=True,
                                  capture_output=True).stdout)


def sign_at_tag(options):
    text = json.dumps({"critical": {"identity": {"docker-reference": ""},
                                    "image": {"docker-manifest-digest": options.says},
                                    "type": "cosign container image signature"}, "optional": None}).encode()
    layer = descriptor(SIMPLE, text)
    layer["annotations"] = {"dev.cosignproject.cosign/signature": signature(options.key, text)}
    tag = options.digest.replace(":", "-") + ".sig"
    push_artifact(options.host, options.repository, tag, SIMPLE, layer, text)


def sign_by_bundle(options):
    statement = json.dumps({"_type": "https://in-toto.io/Statement/v1",
                            "subject": [{"digest": {"sha256": options.says.split(":")[1]}}],
                            "predicateType": options.predicate, "predicate": {}}).encode()
    envelope = b"DSSEv1 %d %s %d %s" % (len(STATEMENT), STATEMENT.encode(), len(statement), statement)
    bundle = json.dumps({"mediaType": BUNDLE, "verificationMaterial": {"publicKey": {"hint": ""}},
                         "dsseEnvelope": {"payload": encoded(statement), "payloadType": STATEMENT,
                                          "signatures": [{"sig": signature(options.key, envelope)}]}}).encode()
    manifest = push_artifact(options.host, options.repository, None, BUNDLE, descriptor(BUNDLE, bundle), bundle)
    entry = descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
    entry["artifactType"] = BUNDLE
    push_document(options.host, options.repository, options.digest.replace(":", "-"), INDEX, {"manifests": [entry]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("host", "repository", "digest", "key"):
        parser.add_argument(name)
    parser.add_argument("--bundle", action="store_true", help="as cosign from version 3 on")
    parser.add_argument("--says", help="digest that is signed, other than that of the manifest")
    parser.add_argument("--predicate", default=SIGNATURE, help="type of the statement in the bundle")
    options = parser.parse_args()
    options.says = options.says or options.digest
    (sign_by_bundle if options.bundle else sign_at_tag)(options)


if __name__ == "__main__":
    main()
