#!/usr/bin/env python3
"""Sends random writes to a kube-apiserver and records what it made of them.

A line a write: what was there before, the request, and the answer. standalone/tests/test_recorded.c does
the same writes with standalone/schema and standalone/patch, and compares. The server has crds/ and no
webhooks.

usage: record_writes.py SERVER TOKEN SEED COUNT >writes.jsonl
"""
import copy
import http.client
import json
import random
import ssl
import sys
import urllib.parse

GROUP = "propeller.propeller.abstractmachines.fr/v1"
MANAGERS = ["kubectl", "alpha", "beta", "controller"]
TEXTS = ["", "a", "b", "gateway", "1h", "60 * * * *", "\u00e4\u20ac", "A_B", "x" * 70, "2026-11-21T10:00:00Z"]
NUMBERS = [0, 1, 2, 7, 50, 100, 101, -1, 1.5, 2147483648, 100000000000]
MODULE = "AGFzbQEAAAA="


class Server:
    def __init__(self, address, token):
        self.host = urllib.parse.urlparse(address)
        self.token = token
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.connection = http.client.HTTPSConnection(self.host.hostname, self.host.port, context=context, timeout=60)

    def ask(self, method, path, body=None, content_type="application/json"):
        headers = {"Authorization": "Bearer " + self.token, "Accept": "application/json",
                   "Content-Type": content_type, "User-Agent": "recorder/1"}
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


def text(rng):
    return rng.choice(TEXTS)


def labels(rng):
    return {rng.choice(["app", "tier", "example.com/x", "bad key"]): rng.choice(["a", "b", "", "@"])
            for _ in range(rng.randint(0, 3))}


def metadata(rng):
    meta = {}
    if rng.random() < 0.5:
        meta["labels"] = {k: v for k, v in labels(rng).items() if (k != "bad key" and v != "@") or rng.random() < 0.1}
    if rng.random() < 0.3:
        meta["annotations"] = {"note": text(rng), "other": "x"}
    if rng.random() < 0.2:
        meta["finalizers"] = rng.sample(["example.com/a", "example.com/b", "example.com/c"], rng.randint(0, 3))
    if rng.random() < 0.15:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n + "-uid"}
                                   for n in rng.sample(["p", "q", "r"], rng.randint(0, 3))]
    return meta


def task_spec(rng):
    options = {
        "name": lambda: rng.choice(["add", "mul", "t"]),
        "imageUrl": lambda: rng.choice(["registry.example/a", "http://h/x.wasm"]),
        "file": lambda: MODULE,
        "cliArgs": lambda: [text(rng) for _ in range(rng.randint(0, 3))],
        "inputs": lambda: [rng.choice([1, "2", 1.5, {"a": [1]}]) for _ in range(rng.randint(0, 3))],
        "env": lambda: {k: text(rng) for k in rng.sample(["A", "B", "C"], rng.randint(0, 3))},
        "propletSelector": lambda: rng.choice([{}, {"propletId": "gateway"}, {"matchLabels": {"a": "b", "c": "d"}},
                                               {"matchCapabilities": ["gpu", "cpu"], "matchLabels": {}}]),
        "preferredPropletType": lambda: rng.choice(["any", "k8s", "external"]),
        "resourceRequirements": lambda: {"cpu": rng.choice(["500m", 2]), "custom": {"gpu": rng.choice([1, "2"])}},
        "mode": lambda: rng.choice(["infer", "train"]),
        "metadata": lambda: rng.choice([{"any": {"json": [1, 2]}}, {"any": {"json": []}, "k": None}, [1], "x"]),
        "dependsOn": lambda: rng.sample(["a", "b", "c"], rng.randint(0, 3)),
        "priority": lambda: rng.choice([0, 7, 50, 100]),
        "backoffLimit": lambda: rng.choice([0, 3]),
        "daemon": lambda: rng.choice([True, False]),
    }
    spec = {"name": "t", "imageUrl": "i"} if rng.random() < 0.8 else {}
    for key in rng.sample(sorted(options), rng.randint(0, 6)):
        spec[key] = options[key]()
    return spec


def conditions(rng):
    return [{"type": t, "status": rng.choice(["True", "False", "Unknown"]), "reason": rng.choice(["A", "B"]),
             "lastTransitionTime": "2026-11-21T10:00:00Z", "message": rng.choice(["", "m"])}
            for t in rng.sample(["Ready", "Scheduled", "Done", "Ready2"], rng.randint(0, 3))]


def task(rng):
    return {"apiVersion": GROUP, "kind": "Task", "metadata": metadata(rng), "spec": task_spec(rng)}


def task_status(rng):
    status = {"phase": rng.choice(["pending", "scheduled", "running", "completed"])}
    if rng.random() < 0.7:
        status["conditions"] = conditions(rng)
    if rng.random() < 0.4:
        status["results"] = rng.choice([42, "42", {"a": [1, {"b": None}]}, [1, 2]])
    if rng.random() < 0.3:
        status["assignedProplet"] = rng.choice(["gateway", "p"])
    return {"apiVersion": GROUP, "kind": "Task", "metadata": {}, "status": status}


def proplet(rng):
    spec = {"type": "external", "connectionConfig": {
        "mqttAddress": "tcp://b:1883", "domainId": "d", "channelId": "c", "clientId": "i", "clientKey": "k"}}
    if rng.random() < 0.5:
        spec["external"] = {"deviceType": "pi", "capabilities": rng.sample(["a", "b", "c"], rng.randint(0, 3))}
    if rng.random() < 0.3:
        spec["connectionConfig"]["mqttTimeout"] = rng.choice(["1m", "x", None])
    return {"apiVersion": GROUP, "kind": "Proplet", "metadata": metadata(rng), "spec": spec}


def job(rng):
    names = rng.sample(["a", "b", "c", "d"], rng.randint(1, 4))
    tasks = [dict(task_spec(rng), name=n) for n in names]
    for item in tasks:
        item.pop("dependsOn", None)
        item.setdefault("imageUrl", "i")
    if rng.random() < 0.08:
        tasks.append(tasks[0])
    return {"apiVersion": GROUP, "kind": "PropellerJob", "metadata": metadata(rng),
            "spec": {"name": "j", "tasks": tasks, "parallelism": rng.choice([1, 2])}}


def configmap(rng):
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(rng)}
    if rng.random() < 0.9:
        made["data"] = {k: text(rng) for k in rng.sample(["a", "b", "c.d", "e"], rng.randint(0, 4))}
    if rng.random() < 0.3:
        made["binaryData"] = {"f": rng.choice(["QQ==", "", "!"])}
    if rng.random() < 0.05:
        made["immutable"] = True
    return made


def secret(rng):
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(rng)}
    if rng.random() < 0.8:
        made["data"] = {k: rng.choice(["QQ==", "Qg==", ""]) for k in rng.sample(["a", "b"], rng.randint(0, 2))}
    if rng.random() < 0.3:
        made["stringData"] = {"b": "text"}
    if rng.random() < 0.2:
        made["type"] = rng.choice(["Opaque", "kubernetes.io/tls", "own"])
    return made


def lease(rng):
    made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata(rng)}
    if rng.random() < 0.9:
        made["spec"] = {k: v for k, v in {
            "holderIdentity": rng.choice(["a", "b", ""]), "leaseDurationSeconds": rng.choice([15, 30, 0]),
            "leaseTransitions": rng.choice([0, 3, -1]), "renewTime": "2026-11-21T10:00:00.000000Z"}.items()
            if rng.random() < 0.6}
    return made


def account(rng):
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(rng)}
    if rng.random() < 0.5:
        made["secrets"] = [{"name": n} for n in rng.sample(["s", "t", "u"], rng.randint(0, 3))]
    if rng.random() < 0.5:
        made["imagePullSecrets"] = [{"name": n} for n in rng.sample(["s", "t", "u"], rng.randint(0, 3))]
    return made


KINDS = {
    "tasks": ("/apis/" + GROUP, task), "proplets": ("/apis/" + GROUP, proplet),
    "propellerjobs": ("/apis/" + GROUP, job), "configmaps": ("/api/v1", configmap), "secrets": ("/api/v1", secret),
    "leases": ("/apis/coordination.k8s.io/v1", lease), "serviceaccounts": ("/api/v1", account),
}


def spoiled(rng, tree):
    """One value somewhere becomes something else."""
    tree = copy.deepcopy(tree)
    places = []

    def walk(value):
        if isinstance(value, dict):
            for key in value:
                if key not in ("apiVersion", "kind", "metadata"):
                    places.append((value, key))
                    walk(value[key])
        elif isinstance(value, list):
            for index in range(len(value)):
                places.append((value, index))
                walk(value[index])

    walk(tree)
    if places:
        holder, key = rng.choice(places)
        holder[key] = rng.choice([None, "", "zz", 0, -5, 1.5, True, [None], {}, [1.5], {"zz": 1}, "x" * 200])
    return tree


def patch_of(rng, old, new, top=True):
    """A merge patch that brings most of new into old."""
    patch = {}
    for key in sorted(set(old) | set(new)):
        if key in ("apiVersion", "kind"):
            continue
        if top and key == "metadata":
            patch[key] = {k: rng.choice([v, v, None]) for k, v in new.get(key, {}).items()}
            continue
        if key not in new:
            if rng.random() < 0.4 and key not in ("metadata", "spec"):
                patch[key] = None
        elif isinstance(old.get(key), dict) and isinstance(new[key], dict):
            patch[key] = patch_of(rng, old[key], new[key], False)
        else:
            patch[key] = new[key]
    return patch


def json_patch_of(rng, live, new):
    part = "spec" if "spec" in live else "data"
    operations = []
    for key, value in sorted(new.get(part, {}).items()):
        if rng.random() < 0.5:
            operations.append({"op": "add", "path": "/%s/%s" % (part, key), "value": value})
    for key in sorted(live.get(part, {})):
        if rng.random() < 0.2:
            operations.append({"op": rng.choice(["remove", "replace", "test"]), "path": "/%s/%s" % (part, key),
                               "value": "x"})
    if rng.random() < 0.1:
        operations.append({"op": "remove", "path": "/%s/nothing" % part})
    rng.shuffle(operations)
    return operations


def request_of(rng, plural, live, make):
    """verb, subresource, manager, force, body"""
    manager = rng.choice(MANAGERS)
    new = make(rng)
    if rng.random() < 0.12:
        new = spoiled(rng, new)
    if not live:
        return rng.choice(["create", "create", "apply"]), "", manager, rng.random() < 0.3, new
    status = plural == "tasks" and rng.random() < 0.3
    if status:
        new = task_status(rng)
        if rng.random() < 0.1:
            new = spoiled(rng, new)
    verb = rng.choice(["update", "apply", "apply", "apply", "merge", "json"])
    if verb == "apply" and rng.random() < 0.5:
        manager = rng.choice(MANAGERS[:2])
    if verb == "update":
        body = copy.deepcopy(live)
        body.update({k: v for k, v in new.items() if k != "metadata"})
        for key in ("labels", "annotations"):
            if key in new["metadata"]:
                body["metadata"][key] = new["metadata"][key]
        if rng.random() < 0.5:
            body["metadata"].pop("managedFields", None)
        elif rng.random() < 0.05:
            body["metadata"]["managedFields"] = rng.choice([[], [{}]])
        return verb, "status" if status else "", manager, False, body
    if verb == "merge":
        return verb, "status" if status else "", manager, False, patch_of(rng, live, new)
    if verb == "json":
        return verb, "", manager, False, json_patch_of(rng, live, make(rng))
    return verb, "status" if status else "", manager, rng.random() < 0.4, new


CONTENT = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
           "apply": "application/apply-patch+yaml"}


def send(server, path, name, verb, subresource, manager, force, body):
    query = "?fieldValidation=Ignore&fieldManager=" + manager
    if verb == "create":
        return server.ask("POST", path + query, json.dumps(body))
    target = "%s/%s%s%s" % (path, name, "/status" if subresource else "", query)
    if verb == "update":
        return server.ask("PUT", target, json.dumps(body))
    if verb == "apply" and force:
        target += "&force=true"
    return server.ask("PATCH", target, json.dumps(body), CONTENT[verb])


def main():
    server = Server(sys.argv[1], sys.argv[2])
    rng = random.Random(int(sys.argv[3]))
    left = int(sys.argv[4])
    space = "recorded-%s" % sys.argv[3]
    server.ask("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": space}}))
    number = 0
    while left > 0:
        number += 1
        plural = rng.choice(sorted(KINDS) + ["tasks", "tasks", "propellerjobs"])
        base, make = KINDS[plural]
        path = "%s/namespaces/%s/%s" % (base, space, plural)
        name, live = "o%d" % number, None
        for _ in range(rng.randint(1, 9)):
            verb, subresource, manager, force, body = request_of(rng, plural, live, make)
            if isinstance(body, dict) and verb in ("create", "apply"):
                body.setdefault("metadata", {})["name"] = name
            code, result = send(server, path, name, verb, subresource, manager, force, body)
            print(json.dumps({"plural": plural, "verb": verb, "subresource": subresource, "manager": manager,
                              "force": force, "namespace": space, "name": name, "live": live, "body": body,
                              "code": code, "result": result}, ensure_ascii=False))
            left -= 1
            if code < 300:
                live = result
        if live:
            live["metadata"].pop("finalizers", None)
            server.ask("PATCH", path + "/" + name, '{"metadata":{"finalizers":null}}', CONTENT["merge"])
            server.ask("DELETE", path + "/" + name)


if __name__ == "__main__":
    main()
