#!/usr/bin/env python3
"""What the identities of rbac/ did during a run, by the API server's audit log, against their rights.

Reads folders, one for each API server that took part: audit*.log; rbac.json, a list of roles and
bindings; apiserver-starts, when it was started; absent-namespaces, which were watched while they were
away; missing-rights, lines `BEGIN END` of when rights were taken away (each of the three may be missing).

Fails on a request that was refused, on one that came from another identity than its reconciler's,
and (--complete) on a right that nobody used, but for what EXPECTED_* below gives a reason for; also
on a reason for a right that is not granted. Rights are all that is bound to a ServiceAccount of the
namespace, whoever made the binding; "*" counts as a right of that name, which nobody uses.
"""

import argparse
import collections
import datetime
import json
import pathlib
import re
import sys

GROUP = "propeller.propeller.abstractmachines.fr"
VMAFX = "vmafx.dev"
MACHINES = "5spot.finos.org"
READS = {"get", "list", "watch"}

# Who alone changes what: (API group, resource) -> ServiceAccount.
OWNERS = {
    (GROUP, "tasks/status"): "task-controller",
    (GROUP, "proplets/status"): "proplet-controller",
    (GROUP, "propellerjobs"): "propellerjob-controller",
    (GROUP, "propellerjobs/status"): "propellerjob-controller",
    (GROUP, "federatedjobs/status"): "federatedjob-controller",
    (GROUP, "enrollments/status"): "enrollment-controller",
    (GROUP, "trainingrounds"): "federatedjob-controller",
    (GROUP, "trainingrounds/status"): "traininground-controller",
    (VMAFX, "vmafxjobs/status"): "vmafxjob-controller",
    (VMAFX, "vmafxnodes/status"): "vmafxnode-controller",
    (VMAFX, "vmafxmodeltrainings/status"): "vmafxmodeltraining-controller",
    (MACHINES, "scheduledmachines"): "scheduledmachine-controller",
    (MACHINES, "scheduledmachines/status"): "scheduledmachine-controller",
    ("cluster.x-k8s.io", "machines"): "scheduledmachine-controller",
    ("bootstrap.cluster.x-k8s.io", "k0sworkerconfigs"): "scheduledmachine-controller",
    ("infrastructure.cluster.x-k8s.io", "remoteproxies"): "scheduledmachine-controller",
    ("infrastructure.cluster.x-k8s.io", "remotemachines"): "scheduledmachine-controller",
    ("k0smotron.io", "k0sworkerconfigs"): "scheduledmachine-controller",
    ("k0smotron.io", "remotemachines"): "scheduledmachine-controller",
    ("", "nodes"): "scheduledmachine-controller",
    ("", "pods"): "scheduledmachine-controller",
    ("", "pods/eviction"): "scheduledmachine-controller",
    ("kueue.x-k8s.io", "workloads"): "propellerjob-controller",
    ("kueue.x-k8s.io", "workloads/status"): "propellerjob-controller",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): "certificate-controller",
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): "certificate-controller",
    ("batch", "jobs"): "task-controller",
    ("coordination.k8s.io", "leases"): "propeller-controller",
    ("", "serviceaccounts/token"): "propeller-controller",
}
# All their rights are in namespaces, which are gone with their case.
NAMESPACED = {"module-controller"}
# Who changes what several may change.
SHARED = {
    (GROUP, "tasks"): {"task-controller", "propellerjob-controller", "traininground-controller"},
    (GROUP, "proplets"): {"proplet-controller", "enrollment-controller"},
    ("", "configmaps"): {"scheduledmachine-controller", "task-controller", "checkpoint-controller", "federatedjob-controller",
                         "traininground-controller"},
    ("", "secrets"): {"certificate-controller", "proplet-controller"},
    ("apps", "deployments"): {"proplet-controller", "task-controller"},
    ("apps", "statefulsets"): {"proplet-controller"},
    ("events.k8s.io", "events"): {"task-controller", "proplet-controller", "checkpoint-controller", "propellerjob-controller",
                                 "federatedjob-controller", "traininground-controller", "vmafxjob-controller",
                                 "vmafxnode-controller", "vmafxmodeltraining-controller", "scheduledmachine-controller"},
}

# Rights that a complete run does not use: "account group/resource verb" -> why they are granted.
EXPECTED_UNUSED = {
    "task-controller events.k8s.io/events patch":
        "a series: the same event of the same Task twice in ten minutes, which no case provokes",
    "task-controller propeller.propeller.abstractmachines.fr/tasks/finalizers update":
        "no request: the API server asks for it when a Job is made with blockOwnerDeletion",
    "task-controller propeller.propeller.abstractmachines.fr/trainingrounds get":
        "an update comes before the cache has its round",
    "task-controller apps/deployments get":
        "a Deployment is there that the cache does not know: a reply was lost, or the process died",
    "checkpoint-controller events.k8s.io/events patch":
        "a series: stored checkpoints of two attempts of a Task cannot be read within ten minutes",
    "checkpoint-controller propeller.propeller.abstractmachines.fr/tasks/finalizers update":
        "no request: the API server asks for it when bytes are stored with blockOwnerDeletion",
    "proplet-controller events.k8s.io/events list":
        "the pods of a StatefulSet are refused, which 72 provokes, and not where pods really run",
    "proplet-controller propeller.propeller.abstractmachines.fr/proplets/finalizers update":
        "no request: the API server asks for it when pods are made with blockOwnerDeletion",
    "propellerjob-controller events.k8s.io/events patch":
        "a series: the same event of the same job twice in ten minutes, which no case provokes",
    "propellerjob-controller propeller.propeller.abstractmachines.fr/propellerjobs/finalizers update":
        "no request: the API server asks for it when a Task is made with blockOwnerDeletion",
    "federatedjob-controller events.k8s.io/events patch":
        "a series: the same event of the same job twice in ten minutes, which no case provokes",
    "federatedjob-controller propeller.propeller.abstractmachines.fr/federatedjobs/finalizers update":
        "no request: the API server asks for it when a round is made with blockOwnerDeletion",
    "federatedjob-controller propeller.propeller.abstractmachines.fr/tasks get":
        "a late update that nobody counted is in the store when older ones are removed",
    "traininground-controller events.k8s.io/events patch":
        "a series: the same event of the same round twice in ten minutes, which no case provokes",
    "traininground-controller propeller.propeller.abstractmachines.fr/federatedjobs/finalizers update":
        "no request: the API server asks for it when a model is made with blockOwnerDeletion",
    "traininground-controller propeller.propeller.abstractmachines.fr/trainingrounds/finalizers update":
        "no request: the API server asks for it when a Task is made with blockOwnerDeletion",
    "vmafxjob-controller events.k8s.io/events patch":
        "a series: the same event of the same job twice in ten minutes, which no case provokes",
    "vmafxnode-controller events.k8s.io/events patch":
        "a series: the same event of the same node twice in ten minutes, which no case provokes",
    "vmafxmodeltraining-controller events.k8s.io/events patch":
        "a series: the same event of the same training twice in ten minutes, which no case provokes",
    "scheduledmachine-controller events.k8s.io/events patch":
        "a series: the same event of the same machine twice in ten minutes, which no case provokes",
    "scheduledmachine-controller 5spot.finos.org/scheduledmachines/finalizers update":
        "no request: the API server asks for it when a Machine is made with blockOwnerDeletion",
    "propellerjob-controller propeller.propeller.abstractmachines.fr/tasks get":
        "a Task is there that the cache does not know: a reply was lost, or the process died",
}


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def resource_of(ref):
    name = ref.get("resource", "")
    return f"{name}/{ref['subresource']}" if ref.get("subresource") else name


# seconds: when it was received; answered: when that was decided. One of another replica may come in between.
Request = collections.namedtuple("Request", "account group resource verb name ns code seconds answered user")


def code_of(answer):
    """What cannot be made because its namespace goes is no matter of rights, though the code says so."""
    code = answer.get("code", 0)
    return 409 if code == 403 and answer.get("message", "").endswith("because it is being terminated") else code


def read_log(paths, namespaces):
    """Each request of ours."""
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
                yield Request(match[2], ref.get("apiGroup", ""), resource_of(ref), event["verb"],
                              ref.get("name", ""), ref.get("namespace", ""),
                              code_of(event.get("responseStatus", {})),
                              time_of(event["requestReceivedTimestamp"]),
                              time_of(event["stageTimestamp"]), user)


def accounts_of(binding, namespace):
    """ServiceAccounts that a binding gives rights to; those of a group under the name of the group."""
    for subject in binding.get("subjects") or []:
        if subject["kind"] == "ServiceAccount" and subject.get("namespace") == namespace:
            yield subject["name"]
        elif subject["kind"] == "Group" and subject["name"] == f"system:serviceaccounts:{namespace}":
            yield subject["name"]


def rights_of_rule(rule):
    """(group, resource, verb, name or ""); what is no resource is its URL."""
    for verb in rule["verbs"]:
        for url in rule.get("nonResourceURLs") or []:
            yield ("", url, verb, "")
        for group in rule.get("apiGroups") or []:
            for resource in rule.get("resources") or []:
                for name in rule.get("resourceNames") or [""]:
                    yield (group, resource, verb, name)


def rights_of(objects, namespace):
    """(account, group, resource, verb, name or "") of all that is granted by rules of ours."""
    rules = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o.get("rules") or []
             for o in objects if o["kind"] in ("Role", "ClusterRole")}
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        ref = binding["roleRef"]
        where = binding["metadata"].get("namespace", "") if ref["kind"] == "Role" else ""
        for account in accounts_of(binding, namespace):
            for rule in rules.get((ref["kind"], where, ref["name"]), []):
                for right in rights_of_rule(rule):
                    yield (account, *right)


def name_right(account, group, resource, verb, name):
    text = f"{account} {group}/{resource} {verb}"
    return f"{text} {name}" if name else text


def print_table(requests):
    counts = collections.defaultdict(collections.Counter)
    for request in requests:
        counts[request.account][f"{request.resource} {request.verb}"] += 1
    for account in sorted(counts):
        print(f"{account}: {sum(counts[account].values())} requests")
        for what, count in sorted(counts[account].items()):
            print(f"    {count:7} {what}")


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def granted_before(seconds, starts, granted):
    """What makes a refusal at seconds a wrong one: when the same was granted, or "never". None where it is right:
    an API server that starts refuses what is allowed until it has read its rules, so what is granted at some time
    counts only if it was so since the last start."""
    if not granted:
        return "never"
    begin = max((start for start in starts if start <= seconds), default=None)
    if begin is None:
        return iso(granted[0])
    return next((iso(time) for time in granted if begin <= time <= seconds), None)


# The API server knows rights that are back a little later.
RIGHTS_SEEN_S = 10


def refused(requests, starts, absent, missing=()):
    """A line a right, with the first request: whose it was and when says in which case to look."""
    found = {}
    granted = collections.defaultdict(list)
    for request in requests:
        if request.code and request.code != 403:
            granted[request[:4]].append(request.answered)
    for request in requests:
        if request.code != 403 or (request.verb in READS and request.ns in absent):
            continue
        if any(begin <= request.answered and request.seconds <= end + RIGHTS_SEEN_S for begin, end in missing):
            continue
        before = granted_before(request.seconds, starts, granted[request[:4]])
        if before:
            found.setdefault(name_right(*request[:5]), []).append((request.seconds, before, request))
    for right, those in found.items():
        seconds, before, first = min(those)
        yield (f"refused: {right}, {len(those)} times, at first {iso(seconds)} in {first.ns or 'all namespaces'} "
               f"to {first.user}; granted before: {before}")


def misplaced(requests, accounts):
    for request in requests:
        account, group, resource, verb = request[:4]
        if account not in accounts:
            yield f"'{account}' is no identity of rbac/: {verb} {resource} '{request.name}'"
        elif verb not in READS:
            owners = SHARED.get((group, resource)) or {OWNERS.get((group, resource))}
            if account not in owners:
                yield f"{verb} {group}/{resource} came from '{account}'"


def unused(rights, requests):
    used = set()
    for request in requests:
        if request.code and request.code != 403:
            used.add((*request[:4], ""))
            used.add(request[:5])
            used.add((request.account, request.group, "*", request.verb, ""))
    return sorted(name_right(*right) for right in rights - used)


def judge_unused(never, granted):
    """Prints what nobody used; what has no reason is a problem. A right that a run happens to use may
    stay on the list."""
    print("rights that were granted and never used:")
    for right in never:
        why = EXPECTED_UNUSED.get(right)
        print(f"    {right}: {why or 'no reason known'}")
        if not why:
            yield f"granted and never used: {right}"
    if not never:
        print("    none")
    for right in sorted(set(EXPECTED_UNUSED) - granted):
        yield f"on the list of unused rights, but not granted: {right}"


def words_of(path):
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", required=True, help="where the ServiceAccounts are")
    parser.add_argument("--also", default="", help="regular expression of other such namespaces")
    parser.add_argument("--complete", action="store_true", help="all cases ran: find unused rights")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()

    namespaces = f"{re.escape(args.namespace)}|{args.also}" if args.also else re.escape(args.namespace)
    rights, requests, problems = set(), [], collections.Counter()
    for folder in args.folders:
        rights.update(rights_of(json.loads((folder / "rbac.json").read_text(encoding="utf-8"))["items"],
                                args.namespace))
        here = list(read_log(sorted(folder.glob("audit*.log")), namespaces))
        starts = [float(word) for word in words_of(folder / "apiserver-starts")]
        times = [float(word) for word in words_of(folder / "missing-rights")]
        missing = list(zip(times[::2], times[1::2]))
        problems.update(refused(here, starts, set(words_of(folder / "absent-namespaces")), missing))
        requests += here
    if not requests:
        problems["no request of any identity: wrong log?"] += 1

    print_table(requests)
    problems.update(misplaced(requests, NAMESPACED | {right[0] for right in rights}))
    if args.complete:
        problems.update(judge_unused(unused(rights, requests), {name_right(*r) for r in rights}))
    for problem, count in sorted(problems.items()):
        print(f"PROBLEM ({count} times): {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
