"""Objects, and what can be wrong with them."""
import copy
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import record_writes  # pylint: disable=wrong-import-position

GROUP = record_writes.GROUP
NAMES = ["a", "b", "c"]


def is_ours(finalizer):
    return finalizer.startswith("propeller.")


class Kind:
    def __init__(self, plural, kind, version, make, status=False, core=False):
        self.plural, self.kind, self.version, self.make = plural, kind, version, make
        self.status, self.core = status, core
        self.base = ("/api/" if "/" not in version else "/apis/") + version

    def path(self, name=None, sub=None, space="@NS"):
        return "/".join([self.base] + (["namespaces", space] if space else []) + [self.plural] +
                        ([name] if name else []) + ([sub] if sub else []))


def no_owners(make):
    """The collector of garbage would remove them at some time."""
    def made(rng):
        tree = make(rng)
        tree["metadata"].pop("ownerReferences", None)
        return tree
    return made


def federated(rng):
    spec = {"experimentId": "e", "modelRef": "http://h/m", "taskWasmImage": "registry.example/a",
            "participants": [{"propletId": p} for p in rng.sample(["p", "q", "r"], rng.randint(1, 3))],
            "rounds": {"total": rng.choice([1, 3, 3, 0])}}
    for key, values in (("kOfN", [1, 2, 9]), ("timeoutSeconds", [10, 0, -1]),
                        ("aggregator", [{"algorithm": "fedavg"}, {"algorithm": "nothing"}]),
                        ("hyperparams", [{"lr": 0.1}, {"epochs": 2}, {}])):
        if rng.random() < 0.4:
            spec[key] = rng.choice(values)
    return {"apiVersion": GROUP, "kind": "FederatedJob", "metadata": record_writes.metadata(rng), "spec": spec}


def training_round(rng):
    spec = {"roundId": "r", "federatedJobRef": {"name": "f"}, "modelRef": "http://h/m",
            "taskWasmImage": "registry.example/a",
            "participants": rng.sample(["p", "q"], rng.randint(1, 2))}
    if rng.random() < 0.5:
        spec["kOfN"] = rng.choice([1, 2, 5, 0])
    return {"apiVersion": GROUP, "kind": "TrainingRound", "metadata": record_writes.metadata(rng), "spec": spec}


def event(rng):
    made = {"apiVersion": "v1", "kind": "Event", "metadata": record_writes.metadata(rng), "type": "Normal",
            "involvedObject": {"apiVersion": GROUP, "kind": "Task", "name": "a", "namespace": "@NS"},
            "reason": rng.choice(["Made", "Gone"]), "message": rng.choice(["", "said"]),
            "source": {"component": "controller"}, "count": rng.choice([1, 2])}
    if rng.random() < 0.1:
        made["involvedObject"]["namespace"] = "default"
    if rng.random() < 0.3:
        made["firstTimestamp"] = made["lastTimestamp"] = "2026-11-21T10:00:00Z"
    return made


def new_event(rng):
    made = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": record_writes.metadata(rng),
            "eventTime": "2026-11-21T10:00:00.000000Z", "type": rng.choice(["Normal", "Warning"]),
            "regarding": {"apiVersion": GROUP, "kind": "Task", "name": "a", "namespace": "@NS"},
            "reason": rng.choice(["Made", "Gone"]), "note": "said", "action": "Making",
            "reportingController": "example.com/c", "reportingInstance": "i"}
    if rng.random() < 0.15:
        made.pop(rng.choice(["eventTime", "action", "reason", "type", "reportingController", "reportingInstance"]))
    return made


def other_status(kind):
    def made(rng):
        status = {"conditions": record_writes.conditions(rng)}
        if rng.random() < 0.6:
            status["phase"] = rng.choice(["Running", "Offline", "Pending", "pending", "Completed", "nonsense"])
        return {"apiVersion": GROUP, "kind": kind, "metadata": {}, "status": status}
    return made


KINDS = [
    Kind("tasks", "Task", GROUP, no_owners(record_writes.task), record_writes.task_status),
    Kind("proplets", "Proplet", GROUP, no_owners(record_writes.proplet), other_status("Proplet")),
    Kind("propellerjobs", "PropellerJob", GROUP, no_owners(record_writes.job), other_status("PropellerJob")),
    Kind("federatedjobs", "FederatedJob", GROUP, no_owners(federated), other_status("FederatedJob")),
    Kind("trainingrounds", "TrainingRound", GROUP, no_owners(training_round), other_status("TrainingRound")),
    Kind("configmaps", "ConfigMap", "v1", no_owners(record_writes.configmap), core=True),
    Kind("secrets", "Secret", "v1", no_owners(record_writes.secret), core=True),
    Kind("serviceaccounts", "ServiceAccount", "v1", no_owners(record_writes.account), core=True),
    Kind("leases", "Lease", "coordination.k8s.io/v1", no_owners(record_writes.lease), core=True),
    Kind("events", "Event", "v1", no_owners(event), core=True),
    Kind("events", "Event", "events.k8s.io/v1", no_owners(new_event), core=True),
]
BY_PLURAL = {kind.plural: kind for kind in reversed(KINDS)}


# What nobody refuses.
GOOD = {
    "tasks": {"spec": {"name": "t", "imageUrl": "i"}},
    "proplets": {"spec": {"type": "external", "external": {"deviceType": "pi"}, "connectionConfig": {
        "mqttAddress": "tcp://b:1883", "domainId": "d", "channelId": "c", "clientId": "i", "clientKey": "k"}}},
    "propellerjobs": {"spec": {"name": "j", "tasks": [{"name": "t", "imageUrl": "i"}]}},
    "federatedjobs": {"spec": {"experimentId": "e", "taskWasmImage": "i", "participants": [{"propletId": "p"}],
                               "rounds": {"total": 1}}},
    "trainingrounds": {"spec": {"roundId": "r", "federatedJobRef": {"name": "f"}, "taskWasmImage": "i", "modelRef": "http://h/m",
                                "participants": ["p"]}},
}


def named(rng, kind, name):
    """An object, mostly a good one."""
    tree = kind.make(rng)
    tree["metadata"]["name"] = name
    if rng.random() < 0.4:
        tree["metadata"]["labels"] = {"tier": rng.choice(["x", "y"])}
    chance = rng.random()
    if chance < 0.10:
        tree = record_writes.spoiled(rng, tree)
    elif chance < 0.18:
        add_unknown(rng, tree)
    elif chance < 0.26:
        wrong_head(rng, tree)
    return tree


def add_unknown(rng, tree):
    place = tree
    for _ in range(rng.randint(0, 3)):
        below = [v for v in place.values() if isinstance(v, dict)]
        if not below:
            break
        place = rng.choice(below)
    nulls = [] if place is tree.get("binaryData") else [None]  # stored as "", so the next patch changes it
    place["unknwon"] = rng.choice([1, "x", {"a": 1}] + nulls)
    if rng.random() < 0.3:
        tree["another"] = True


WRONG_HEADS = [
    ("kind", "ConfigMapp"), ("kind", ""), ("kind", None), ("kind", 5), ("apiVersion", "v7"), ("apiVersion", ""),
    ("apiVersion", None), ("apiVersion", "apps/v1"), ("metadata", None), ("metadata", []), ("metadata", "x"),
]
WRONG_METADATA = [
    ("name", "Upper"), ("name", "x" * 254), ("name", ""), ("name", 5), ("name", "other"), ("name", "a/b"), ("name", None),
    ("namespace", "elsewhere"), ("namespace", ""), ("namespace", None), ("uid", "00000000-0000-0000-0000-000000000000"),
    ("resourceVersion", "1"), ("resourceVersion", "x"), ("resourceVersion", "0"), ("generation", 7), ("generation", "7"),
    ("labels", {"tier": 5}), ("labels", {"bad key": "x"}), ("labels", {"tier": "@@"}), ("labels", {"k": "v" * 64}),
    ("labels", []), ("labels", None), ("annotations", {"a b": "x"}), ("annotations", {"note": None}),
    ("annotations", {"note": "x" * 300000}),
    ("finalizers", ["nodomain"]), ("finalizers", "x"), ("finalizers", ["example.com/a", "example.com/a"]),
    ("finalizers", ["-bad-/x"]), ("creationTimestamp", "2020-01-01T00:00:00Z"), ("creationTimestamp", "yesterday"),
    ("deletionTimestamp", "2020-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 5), ("selfLink", "/x"),
    ("ownerReferences", [{"apiVersion": "v1", "kind": "ConfigMap", "name": "p"}]),
    ("ownerReferences", [{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]),
    ("ownerReferences", [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]),
    ("managedFields", [{"manager": "m", "operation": "Update"}]), ("managedFields", [{"operation": "Nonsense"}]),
    ("generateName", "Upper_"),
]


def wrong_head(rng, tree):
    if rng.random() < 0.3:
        key, value = rng.choice(WRONG_HEADS)
        place = tree
    else:
        key, value = rng.choice(WRONG_METADATA)
        place = tree["metadata"]
    if value is None:
        place.pop(key, None)
    else:
        place[key] = copy.deepcopy(value)
