#!/usr/bin/env python3
"""The chart renders what the kustomize overlays and the install files have, and refuses wrong values by name.

    test_chart.py --helm FILE --kubectl FILE --install FOLDER FOLDER

--install names the folder of install.yaml, the other one that of the chart that build.py made.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml
from build import HERE, NAMESPACE, ROOT, render

TABLE = yaml.safe_load((HERE / "chart.yaml").read_text(encoding="utf-8"))
HASHED = re.compile(r"(propeller-(?:settings|dashboards))-[a-z0-9]{10}\b")

# Values, and what the refusal must name.
WRONG = [
    ({"replicas": 2}, "replicas"),
    ({"controller": {"replicas": 0}}, "controller.replicas|/controller/replicas"),
    ({"controller": {"resources": {"limit": {}}}}, "limit"),
    ({"image": {"digest": "sha256:abc"}}, "digest"),
    ({"mqtt": {"address": "mosquitto:1883"}}, "address"),
    ({"settings": {"log-levl": "debug"}}, "log-levl"),
    ({"settings": {"log-level": {"a": 1}}}, "log-level"),
    ({"settings": {"client-key": "secret"}}, "client-key"),
    ({"settings": {"leader-elect": False}}, "leader-elect"),
    ({"webhook": {"settings": {"port": 8443}}}, "port"),
    ({"image": {"tag": ""}}, "image.tag"),
    ({"webhook": {"enabled": False, "settings": {"allow-image-schemes": "oci"}}}, "webhook.settings"),
    ({"rbac": {"namespaces": ["lab"]}, "webhook": {"settings": {"allow-image-schemes": "oci"}}}, "webhook.settings"),
    ({"webhook": {"certificates": "openssl"}}, "certificates"),
    ({"webhook": {"settings": {"allow-image-scheme": "oci"}}}, "allow-image-scheme"),
    ({"rbac": {"namespaces": ["Lab"]}}, "namespaces"),
    ({"crds": {"keep": False}, "rbac": {"namespaces": ["lab"]}}, "crds.keep"),
    ({"settings": {"uninstall": True}}, "uninstall"),
    ({"controller": {"tolerations": [{"key": "a", "operator": "Is"}]}}, "tolerations"),
]


class Chart:
    def __init__(self, helm, folder):
        self.helm, self.folder = helm, folder

    def run(self, *arguments, values=None):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(values or {}, file)
            file.flush()
            return subprocess.run([self.helm, *arguments, "--values", file.name], capture_output=True, text=True)

    def objects(self, values, namespace=NAMESPACE):
        done = self.run("template", "propeller", self.folder, "--namespace", namespace, values=values)
        if done.returncode:
            raise AssertionError(done.stderr)
        return [document for document in yaml.safe_load_all(done.stdout) if document]


def key_of(document):
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def without_hashes(document):
    return json.loads(HASHED.sub(r"\1", json.dumps(document)))


def normal(document):
    """Without what a chart has and an overlay cannot have: see chart.yaml."""
    document = without_hashes(document)
    for holder in (document, document.get("spec", {}).get("template", {})):
        metadata = holder.get("metadata", {}) if isinstance(holder, dict) else {}
        annotations = metadata.get("annotations") or {}
        for name in ("helm.sh/resource-policy", "checksum/settings"):
            annotations.pop(name, None)
        if not annotations:
            metadata.pop("annotations", None)
    for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
        container.get("ports", []).sort(key=lambda port: port["containerPort"])
    if document["kind"] == "NetworkPolicy":
        document["spec"]["ingress"].sort(key=json.dumps)
    return document


def differences(chart, what, documents, values):
    """documents: what the chart must render with these values."""
    ours = {key_of(d): normal(d) for d in chart.objects(values)}
    theirs = {key_of(d): d for d in map(normal, documents) if d["kind"] != "Namespace"}
    # kustomize gives the dashboards no namespace.
    theirs = {(kind, NAMESPACE if "dashboards" in name else namespace, name): d for (kind, namespace, name), d in theirs.items()}
    for document in ours.values():
        if document["metadata"]["name"] == "propeller-dashboards":
            del document["metadata"]["namespace"]
    for key in sorted(ours.keys() | theirs.keys()):
        if ours.get(key) != theirs.get(key):
            yield f"{what}: {' '.join(key)}: {'only there' if key not in ours else 'only in the chart' if key not in theirs else differing(ours[key], theirs[key])}"


def differing(ours, theirs, path=""):
    """Where two documents differ first."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours.keys() | theirs.keys():
            if ours.get(key) != theirs.get(key):
                return differing(ours.get(key), theirs.get(key), f"{path}.{key}")
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (a, b) in enumerate(zip(ours, theirs)):
            if a != b:
                return differing(a, b, f"{path}[{index}]")
    return f"{path} is {json.dumps(ours)[:200]}, there {json.dumps(theirs)[:200]}"


def install_file(chart, file, values):
    """That file has the objects of the chart with the image by its digest, in an order that one call can apply."""
    documents = [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]
    images = set(re.findall(r"image: (\S+)", file.read_text(encoding="utf-8")))
    if len(images) != 1 or not re.fullmatch(r"[^@]+@sha256:[0-9a-f]{64}", *images):
        yield f"{file.name}: the images are {sorted(images)}, expected one with a digest"
        return
    repository, _, digest = images.pop().partition("@")
    yield from differences(chart, file.name, documents, {**values, "image": {"repository": repository, "digest": digest}})
    kinds = [document["kind"] for document in documents]
    if kinds[0] != "Namespace":
        yield f"{file.name}: begins with a {kinds[0]}, and the namespace must be first"


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, problems):
        problems = list(problems)
        self.passed += not problems
        self.failed += bool(problems)
        for problem in problems:
            print(f"chart: {what}: {problem}")


def refused(chart, values, name):
    done = chart.run("template", "propeller", chart.folder, values=values)
    if done.returncode == 0:
        yield f"{json.dumps(values)} was taken"
    elif not re.search(name, done.stderr):
        yield f"{json.dumps(values)}: the message does not name {name}: {done.stderr}"


def settings(chart, values, expected):
    found = next(d for d in chart.objects(values) if key_of(d)[2] == "propeller-settings")["data"]
    for name, value in expected.items():
        if found.get(name) != value:
            yield f"{name} is {found.get(name)!r}, expected {value!r}"


def hooks(chart):
    """Objects of the uninstall exist in its hook alone, and the CRDs go with it."""
    def kept(values):
        return {key_of(d)[0] for d in chart.objects(values)
                if "helm.sh/resource-policy" in (d["metadata"].get("annotations") or {})}

    def hooked(values):
        return sorted(f"{d['kind']} {d['metadata']['name']}" for d in chart.objects(values)
                      if (d["metadata"].get("annotations") or {}).get("helm.sh/hook") == "pre-delete")

    removes = {"crds": {"keep": False}}
    if kept({}) != {"CustomResourceDefinition"} or kept(removes):
        yield f"kept by default: {kept({})}, with crds.keep=false: {kept(removes)}"
    if hooked({}) or len(hooked(removes)) != 6 or "Job propeller-uninstall" not in hooked(removes):
        yield f"hooks by default: {hooked({})}, with crds.keep=false: {hooked(removes)}"
    for document in chart.objects(removes, "lab"):
        if document["metadata"]["name"].endswith(("uninstall", "uninstall-controller")) and "propeller-system" in json.dumps(document):
            yield f"names the namespace: {json.dumps(document)}"


def other_namespace(chart):
    text = json.dumps(chart.objects({"metrics": {"serviceMonitor": True, "rules": True}, "coordinator": {"enabled": True},
                                     "webhook": {"certificates": "cert-manager"}, "flowControl": {"enabled": True},
                                     "scheduledMachines": {"enabled": True}}, "lab"))
    for match in re.finditer(rf".{{0,60}}{NAMESPACE}.{{0,40}}", text):
        yield f"names the namespace: {match[0]}"
    for match in re.finditer(r"\.substring\(\d+\).{0,40}", text):
        yield f"depends on the length of the namespace: {match[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helm", required=True, metavar="FILE")
    parser.add_argument("--kubectl", required=True, metavar="FILE")
    parser.add_argument("--install", required=True, type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    chart, tally = Chart(arguments.helm, arguments.folder), Tally()
    lint = chart.run("lint", "--strict", arguments.folder)
    tally.check("helm lint --strict", [] if lint.returncode == 0 else [lint.stdout + lint.stderr])
    for overlay in sorted(path.name for path in (ROOT / "config/overlays").iterdir()):
        documents = render(arguments.kubectl, f"config/overlays/{overlay}")
        tally.check("overlays", differences(chart, overlay, documents, TABLE["overlays"][overlay]))
    for name, overlay in {"install.yaml": "default", "install-namespaced.yaml": "namespaced"}.items():
        tally.check("install files", install_file(chart, arguments.install / name, TABLE["overlays"][overlay]))
    for values, name in WRONG:
        tally.check("wrong values", refused(chart, values, name))
    tally.check("another namespace", other_namespace(chart))
    tally.check("hooks", hooks(chart))
    tally.check("settings", settings(
        chart,
        {"mqtt": {"address": "mqtts://b.example", "passwordKey": "pw", "caKey": "ca.crt"}, "settings": {"log-level": "debug", "max-result-bytes": 1048576, "domain-id": 20250101}},
        {"PROPELLER_MQTT_ADDRESS": "mqtts://b.example", "PROPELLER_CLIENT_KEY_FILE": "/etc/propeller/mqtt/pw",
         "PROPELLER_MQTT_CA_FILE": "/etc/propeller/mqtt/ca.crt", "PROPELLER_LOG_LEVEL": "debug",
         "PROPELLER_MAX_RESULT_BYTES": "1048576", "PROPELLER_DOMAIN_ID": "20250101"}))
    tally.check("a limit in bytes", (
        "is lost" for d in chart.objects({"coordinator": {"enabled": True}, "controller": {"resources": {"limits": {"memory": 402653184}}}})
        if key_of(d)[::2] == ("Deployment", "propeller-controller")
        and d["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] != 402653184))
    tally.check("a webhook of its own", (
        "is there with rbac.namespaces" for d in chart.objects({"rbac": {"namespaces": ["a", "b"]}}) if key_of(d)[2] == "propeller-webhook"))
    print(f"chart, {pathlib.Path(arguments.helm).name}: {tally.passed} passed, {tally.failed} failed")
    if "TEST_TALLY" in os.environ:
        with open(os.environ["TEST_TALLY"], "a", encoding="utf-8") as file:
            file.write(f"chart {tally.passed} {tally.failed}\n")
    sys.exit(tally.failed > 0)


if __name__ == "__main__":
    main()
