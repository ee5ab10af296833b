#!/usr/bin/env python3
"""Holds the objects of an installation against each other: manifests.py [--programs DIR] [--rights FILE] < List as JSON

What an API server takes one by one can still be wrong together: a selector that selects nothing, a
ServiceAccount that is not there, a flag that the program does not know. A line for each finding, exit
status 1 if there are any. --programs: each container's program is asked whether it takes its flags. --rights: the
table of identities in that file says what the rules say.
"""

import argparse
import json
import os
import re
import subprocess
import sys

FINDINGS = []


def expect(good, text):
    if not good:
        FINDINGS.append(text)


def at(value, *path):
    for key in path:
        value = (value or {}).get(key)
    return value


class Objects:
    def __init__(self, items):
        self.items = items
        names = [self.name(item) for item in items]
        for name in sorted(set(names)):
            expect(names.count(name) == 1, f"{name}: there {names.count(name)} times")
        self.names = set(names)

    @staticmethod
    def name(item):
        meta = item["metadata"]
        return " ".join(filter(None, (item["kind"], meta.get("namespace"), meta["name"])))

    def of(self, kind):
        return [item for item in self.items if item["kind"] == kind]

    def has(self, kind, namespace, name):
        return " ".join(filter(None, (kind, namespace, name))) in self.names


def selects(selector, labels):
    return bool(selector) and all((labels or {}).get(key) == value for key, value in selector.items())


def pods(objects):
    """(name, namespace, template) of what makes pods"""
    return [(objects.name(item), item["metadata"]["namespace"], item["spec"]["template"])
            for item in objects.of("Deployment")]


def check_selectors(objects):
    for item in objects.of("Deployment"):
        expect(selects(at(item, "spec", "selector", "matchLabels"), at(item, "spec", "template", "metadata", "labels")),
               f"{objects.name(item)}: its selector does not select its pods")
        for spread in at(item, "spec", "template", "spec").get("topologySpreadConstraints", []):
            expect(selects(spread["labelSelector"]["matchLabels"], at(item, "spec", "template", "metadata", "labels")),
                   f"{objects.name(item)}: spreads other pods than its own")
    for kind, path in ("Service", ("spec", "selector")), ("PodDisruptionBudget", ("spec", "selector", "matchLabels")), \
            ("NetworkPolicy", ("spec", "podSelector", "matchLabels")):
        for item in objects.of(kind):
            chosen = [template for _, namespace, template in pods(objects) if namespace == item["metadata"]["namespace"]
                      and selects(at(item, *path), at(template, "metadata", "labels"))]
            expect(len(chosen) == 1, f"{objects.name(item)}: selects the pods of {len(chosen)} Deployments")
            for template in chosen:
                check_ports(objects.name(item), ports_named_by(item), template)


def ports_named_by(item):
    ports = at(item, "spec", "ports") or []
    for rule in at(item, "spec", "ingress") or []:
        ports = ports + rule.get("ports", [])
    return [port.get("targetPort", port["port"]) for port in ports]


def check_ports(name, ports, template):
    there = [port["name"] for container in template["spec"]["containers"] for port in container.get("ports", [])]
    for port in ports:
        expect(port in there, f"{name}: port '{port}' is none of {there}")


def check_monitors(objects):
    for item in objects.of("ServiceMonitor"):
        services = [service for service in objects.of("Service")
                    if selects(item["spec"]["selector"]["matchLabels"], at(service, "metadata", "labels"))]
        for endpoint in item["spec"]["endpoints"]:
            expect([1 for service in services for port in service["spec"]["ports"] if port.get("name") == endpoint["port"]],
                   f"{objects.name(item)}: no Service has a port '{endpoint['port']}'")


def check_rights(objects):
    """kustomize follows a name that it changes into resourceNames, of whatever kind these are."""
    made = {item["metadata"]["name"] for item in objects.of("ConfigMap")}
    for kind in "Role", "ClusterRole":
        for item in objects.of(kind):
            for rule in item.get("rules") or []:  # an aggregate has none of its own
                wrong = made & set(rule.get("resourceNames", []))
                expect(not wrong or "configmaps" in rule["resources"],
                       f"{objects.name(item)}: {rule['resources']} with the name of a ConfigMap, {wrong}")


def check_references(objects):
    for name, namespace, template in pods(objects):
        spec = template["spec"]
        expect(objects.has("ServiceAccount", namespace, spec.get("serviceAccountName")),
               f"{name}: ServiceAccount '{spec.get('serviceAccountName')}' is not there")
        for volume in spec.get("volumes", []):
            secret = volume.get("secret")
            expect(not secret or secret.get("optional"), f"{name}: Secret '{at(secret, 'secretName')}' is not optional")
        for container in spec["containers"]:
            for source in container.get("envFrom", []):
                expect(objects.has("ConfigMap", namespace, source["configMapRef"]["name"]),
                       f"{name}: ConfigMap '{source['configMapRef']['name']}' is not there")
            for mount in container.get("volumeMounts", []):
                expect(mount["name"] in [volume["name"] for volume in spec.get("volumes", [])],
                       f"{name}: mounts '{mount['name']}', which is no volume")
    for kind in "RoleBinding", "ClusterRoleBinding":
        for item in objects.of(kind):
            role = item["roleRef"]
            expect(objects.has(role["kind"], item["metadata"].get("namespace") if role["kind"] == "Role" else None,
                               role["name"]), f"{objects.name(item)}: {role['kind']} '{role['name']}' is not there")
            for subject in item["subjects"]:
                expect(objects.has("ServiceAccount", subject["namespace"], subject["name"]),
                       f"{objects.name(item)}: ServiceAccount '{subject['name']}' is not there")
    for kind in "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
        for item in objects.of(kind):
            for webhook in item["webhooks"]:
                service = webhook["clientConfig"]["service"]
                expect(objects.has("Service", service["namespace"], service["name"]),
                       f"{objects.name(item)}: Service '{service['name']}' is not there")


def check_pods(objects):
    """Beyond what Pod Security asks for."""
    for name, _, template in pods(objects):
        spec = template["spec"]
        expect(spec.get("enableServiceLinks") is False, f"{name}: variables of Services could be taken for flags")
        expect(spec["securityContext"].get("runAsUser") == 65532, f"{name}: is not user 65532")
        for container in spec["containers"]:
            where = f"{name}, container '{container['name']}'"
            expect(at(container, "securityContext", "readOnlyRootFilesystem"), f"{where}: may write to its root")
            expect(container["imagePullPolicy"] == "IfNotPresent", f"{where}: imagePullPolicy")
            expect({"cpu", "memory"} <= set(at(container, "resources", "requests") or {}), f"{where}: requests")
            expect(set(at(container, "resources", "limits") or {}) == {"memory"}, f"{where}: limits")
            expect(container.get("livenessProbe") and container.get("readinessProbe"), f"{where}: probes")


def check_drains(objects):
    """A node can be drained whatever state its pods are in; other pods than restricted ones are not admitted."""
    for name, namespace, template in pods(objects):
        budgets = [item for item in objects.of("PodDisruptionBudget") if item["metadata"]["namespace"] == namespace
                   and selects(at(item, "spec", "selector", "matchLabels"), at(template, "metadata", "labels"))]
        expect(len(budgets) == 1, f"{name}: {len(budgets)} PodDisruptionBudgets")
        for budget in budgets:
            expect(at(budget, "spec", "maxUnavailable") == 1 and "minAvailable" not in budget["spec"],
                   f"{objects.name(budget)}: keeps a last pod on its node")
            expect(at(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow",
                   f"{objects.name(budget)}: pods that are not ready keep their node from being drained")
    for item in objects.of("Namespace"):
        expect(at(item, "metadata", "labels", "pod-security.kubernetes.io/enforce") == "restricted",
               f"{objects.name(item)}: Pod Security is not enforced")


def rules_of(objects):
    """{identity: {(resource, verb)}}, as the bindings have it"""
    found = {}
    for binding in objects.of("RoleBinding") + objects.of("ClusterRoleBinding"):
        role = binding["roleRef"]
        for item in objects.of(role["kind"]):
            if item["metadata"]["name"] == role["name"]:
                for subject in binding["subjects"]:
                    found.setdefault(subject["name"], set()).update(
                        (resource, verb) for rule in item["rules"] for resource in rule["resources"] for verb in rule["verbs"])
    return found


def check_documented(objects, path):
    """A row of the table is "RESOURCE, ...: VERB, ... (explanation); ...", up to its first full stop. An identity may have
    several rows."""
    documented = {}
    with open(path, encoding="utf-8") as file:
        for name, text in re.findall(r"^\| `([a-z-]+-controller)`[^|]*\| ([^|]*) \|$", file.read(), re.MULTILINE):
            text = re.sub(r" \([^)]*\)", "", text).split(".")[0]
            documented.setdefault(name, set()).update(
                (resource, verb) for clause in text.split("; ") for resource in clause.split(": ")[0].split(", ")
                for verb in clause.split(": ")[1].split(", "))
    for name, rules in rules_of(objects).items():
        for what, wrong in ("does not say", rules - documented.get(name, set())), ("makes up", documented.get(name, set()) - rules):
            expect(not wrong, f"{os.path.basename(path)} {what} of {name}: {sorted(wrong)}")


def check_flags(objects, programs):
    for name, namespace, template in pods(objects):
        for container in template["spec"]["containers"]:
            program, *flags = container["command"] + container.get("args", [])
            for source in container.get("envFrom", []):
                for item in objects.of("ConfigMap"):
                    if item["metadata"]["name"] == source["configMapRef"]["name"] and item["metadata"]["namespace"] == namespace:
                        flags += ["--" + key.removeprefix("PROPELLER_").replace("_", "-").lower() + "=" + value
                                  for key, value in item.get("data", {}).items()]
            # Flags are read in order: --help ends it, if those before it were good.
            result = subprocess.run([f"{programs}/{program}", *flags, "--help"], capture_output=True, text=True, check=False)
            expect(result.returncode == 0, f"{name}: {program} refuses its flags: {result.stderr.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", metavar="DIR")
    parser.add_argument("--rights", metavar="FILE")
    args = parser.parse_args()
    objects = Objects(json.load(sys.stdin)["items"])
    expect(pods(objects), "there is no Deployment")
    for check in check_selectors, check_monitors, check_references, check_rights, check_pods, check_drains:
        check(objects)
    if args.rights:
        check_documented(objects, args.rights)
    if args.programs:
        check_flags(objects, args.programs)
    for finding in FINDINGS:
        print(finding)
    sys.exit(bool(FINDINGS))


if __name__ == "__main__":
    main()
