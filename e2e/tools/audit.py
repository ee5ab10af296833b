#!/usr/bin/env python3
"""What the identities of rbac/ did during a run, by the API server's audit log, against their rights.

Fails on a request that was refused, on one that came from another identity than its reconciler's,
and (--complete) on a right that nobody used, but for what EXPECTED_* below gives a reason for.
"""

import argparse
import collections
import datetime
import json
import re
import sys

GROUP = "propeller.propeller.abstractmachines.fr"
READS = {"get", "list", "watch"}

# Who alone changes what: (API group, resource) -> ServiceAccount.
OWNERS = {
    (GROUP, "tasks/status"): "task-controller",
    (GROUP, "proplets"): "proplet-controller",
    (GROUP, "proplets/status"): "proplet-controller",
    (GROUP, "propellerjobs"): "propellerjob-controller",
    (GROUP, "propellerjobs/status"): "propellerjob-controller",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): "certificate-controller",
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): "certificate-controller",
    ("", "secrets"): "certificate-controller",
    ("coordination.k8s.io", "leases"): "propeller-controller",
    ("", "serviceaccounts/token"): "propeller-controller",
}
# Who changes what several may change.
SHARED = {
    (GROUP, "tasks"): {"task-controller", "propellerjob-controller"},
    ("events.k8s.io", "events"): {"task-controller", "proplet-controller", "propellerjob-controller"},
}

# An API server that starts refuses what is allowed until it has read its rules.
START_SECONDS = 20

# Rights that a complete run does not use: "account group/resource verb" -> why they are granted.
EXPECTED_UNUSED = {
    "task-controller events.k8s.io/events patch":
        "a series: the same event of the same Task twice in ten minutes, which no case provokes",
    "task-controller propeller.propeller.abstractmachines.fr/tasks/finalizers update":
        "no request: the API server asks for it when a Job is made with blockOwnerDeletion",
    "task-controller apps/deployments get":
        "a Deployment is there that the cache does not know: a reply was lost, or the process died",
    "propellerjob-controller events.k8s.io/events patch":
        "a series: the same event of the same job twice in ten minutes, which no case provokes",
    "propellerjob-controller propeller.propeller.abstractmachines.fr/propellerjobs/finalizers update":
        "no request: the API server asks for it when a Task is made with blockOwnerDeletion",
    "propellerjob-controller propeller.propeller.abstractmachines.fr/tasks get":
        "a Task is there that the cache does not know: a reply was lost, or the process died",
}


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def resource_of(ref):
    name = ref.get("resource", "")
    return f"{name}/{ref['subresource']}" if ref.get("subresource") else name


def read_log(paths, namespaces):
    """(account, group, resource, verb, name, code, seconds) of each request of ours."""
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # the API server was killed while it wrote it
                user = event.get("user", {}).get("username", "")
                match = re.fullmatch(r"system:serviceaccount:([^:]+):([^:]+)", user)
                if not match or not re.fullmatch(namespaces, match[1]):
                    continue
                ref = event.get("objectRef", {})
                yield (match[2], ref.get("apiGroup", ""), resource_of(ref), event["verb"],
                       ref.get("name", ""), event.get("responseStatus", {}).get("code", 0),
                       time_of(event["requestReceivedTimestamp"]))


def rights_of(objects, namespace):
    """(account, group, resource, verb, name or "") of all that is granted by rules of ours."""
    rules = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o.get("rules") or []
             for o in objects if o["kind"] in ("Role", "ClusterRole")}
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        ref = binding["roleRef"]
        where = binding["metadata"].get("namespace", "") if ref["kind"] == "Role" else ""
        for subject in binding.get("subjects") or []:
            if subject["kind"] != "ServiceAccount" or subject.get("namespace") != namespace:
                continue
            for rule in rules.get((ref["kind"], where, ref["name"]), []):
                for group in rule.get("apiGroups", []):
                    for resource in rule.get("resources", []):
                        for verb in rule["verbs"]:
                            for name in rule.get("resourceNames") or [""]:
                                yield (subject["name"], group, resource, verb, name)


def name_right(account, group, resource, verb, name):
    text = f"{account} {group}/{resource} {verb}"
    return f"{text} {name}" if name else text


def print_table(requests):
    counts = collections.defaultdict(collections.Counter)
    for account, group, resource, verb, _, _, _ in requests:
        counts[account][f"{resource} {verb}"] += 1
    for account in sorted(counts):
        print(f"{account}: {sum(counts[account].values())} requests")
        for what, count in sorted(counts[account].items()):
            print(f"    {count:7} {what}")


def refused(requests, starts):
    for account, group, resource, verb, name, code, when in requests:
        starting = any(0 <= when - start <= START_SECONDS for start in starts)
        if code == 403 and not starting:
            yield f"refused: {name_right(account, group, resource, verb, name)}"


def misplaced(requests, accounts):
    for account, group, resource, verb, name, _, _ in requests:
        if account not in accounts:
            yield f"'{account}' is no identity of rbac/: {verb} {resource} '{name}'"
        elif verb not in READS:
            owners = SHARED.get((group, resource)) or {OWNERS.get((group, resource))}
            if account not in owners:
                yield f"{verb} {group}/{resource} came from '{account}'"


def unused(rights, requests):
    used = set()
    for account, group, resource, verb, name, code, _ in requests:
        if code and code != 403:
            used.add((account, group, resource, verb, ""))
            used.add((account, group, resource, verb, name))
    return sorted(name_right(*right) for right in rights - used)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rbac", required=True, help="JSON list of roles and bindings")
    parser.add_argument("--namespace", required=True, help="where the ServiceAccounts are")
    parser.add_argument("--also", default="", help="regular expression of other such namespaces")
    parser.add_argument("--starts", help="file with the times at which the API server was started")
    parser.add_argument("--complete", action="store_true", help="all cases ran: find unused rights")
    parser.add_argument("logs", nargs="+")
    args = parser.parse_args()

    with open(args.rbac, encoding="utf-8") as file:
        rights = set(rights_of(json.load(file)["items"], args.namespace))
    starts = []
    if args.starts:
        with open(args.starts, encoding="utf-8") as file:
            starts = [float(line) for line in file]
    namespaces = f"{re.escape(args.namespace)}|{args.also}" if args.also else re.escape(args.namespace)
    requests = list(read_log(args.logs, namespaces))

    print_table(requests)
    problems = collections.Counter(refused(requests, starts))
    problems.update(misplaced(requests, {right[0] for right in rights}))
    if not requests:
        problems["no request of any identity: wrong log?"] += 1
    if args.complete:
        print("rights that were granted and never used:")
        never = unused(rights, requests)
        for right in never:
            why = EXPECTED_UNUSED.get(right)
            print(f"    {right}: {why or 'no reason known'}")
            if not why:
                problems[f"granted and never used: {right}"] += 1
        if not never:
            print("    none")
    for problem, count in sorted(problems.items()):
        print(f"PROBLEM ({count} times): {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
