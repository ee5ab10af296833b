#!/usr/bin/env python3
"""The part of Kueue that writes to Workloads: it admits by count and flavor, preempts and stops.

Reads --script, a JSON file that the case may replace at any time:
    {"queues": {LOCALQUEUE: CLUSTERQUEUE}, "quota": {CLUSTERQUEUE: {FLAVOR: PODS}}, "stopped": [CLUSTERQUEUE],
     "evict": {WORKLOAD: REASON}}
Writes by server-side apply with the manager kueue-admission, as Kueue does, and decides nothing about the rest. The
flavors of a ClusterQueue are tried in their order; a podSet goes to the first one whose labels do not contradict its
nodeSelector and that has room. Prints a line for each write. Ends with the API server.
"""

import argparse
import datetime
import http.client
import json
import pathlib
import socket
import time

API = "/apis/kueue.x-k8s.io/v1beta2"
PAUSE_S = 0.1


class Socket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, method, where, body=None, kind="application/json"):
    connection = Socket(path)
    try:
        connection.request(method, where, json.dumps(body) if body is not None else None, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(workload, kind):
    return next((c for c in workload.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def is_true(workload, kind):
    return condition(workload, kind).get("status") == "True"


class Queue:
    def __init__(self, api, namespace, script):
        self.api, self.namespace, self.script = api, namespace, script

    def settings(self):
        try:
            return json.loads(self.script.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}  # the case is writing it

    def get(self, where):
        status, text = ask(self.api, "GET", where)
        return json.loads(text).get("items", []) if status == 200 else []

    def apply(self, workload, said, admission, **changes):
        """All that this manager owns is in each apply: what is left out would be removed."""
        conditions = {c["type"]: c for c in workload.get("status", {}).get("conditions", [])}
        for kind, (status, reason, message) in changes.items():
            before = conditions.get(kind, {})
            conditions[kind] = {"type": kind, "status": status, "reason": reason, "message": message,
                                "observedGeneration": workload["metadata"]["generation"],
                                "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == status else now()}
        name = workload["metadata"]["name"]
        status = {"conditions": list(conditions.values())}
        if admission:
            status["admission"] = admission
        body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "status": status,
                "metadata": {"name": name, "namespace": self.namespace, "uid": workload["metadata"]["uid"],
                             "resourceVersion": workload["metadata"]["resourceVersion"]}}
        code, text = ask(self.api, "PATCH", f"{API}/namespaces/{self.namespace}/workloads/{name}/status"
                         "?fieldManager=kueue-admission&force=true", body, "application/apply-patch+yaml")
        print(f"{now()} {said} {name}: {code}" + ("" if code == 200 else f" {text[:300]!r}"), flush=True)
        return code == 200

    def usage(self, workloads):
        """Pods in use: {(ClusterQueue, flavor): count}."""
        used = {}
        for workload in workloads:
            if not is_true(workload, "QuotaReserved") or is_true(workload, "Finished"):
                continue
            status = workload["status"]
            given = {p["name"]: p["count"] for p in status.get("reclaimablePods", [])}
            for podset in status["admission"]["podSetAssignments"]:
                key = status["admission"]["clusterQueue"], next(iter(podset["flavors"].values()))
                used[key] = used.get(key, 0) + max(0, podset["count"] - given.get(podset["name"], 0))
        return used

    def assign(self, workload, cluster_queue, quota, flavors, used):
        """The admission, or None and why there is no room."""
        used, assignments = dict(used), []
        given = {p["name"]: p["count"] for p in workload.get("status", {}).get("reclaimablePods", [])}
        for podset in workload["spec"]["podSets"]:
            selector = podset["template"]["spec"].get("nodeSelector", {})
            count = max(0, podset["count"] - given.get(podset["name"], 0))
            for flavor, limit in quota.items():
                labels = flavors.get(flavor, {})
                key = cluster_queue, flavor
                if any(labels.get(k, v) != v for k, v in selector.items()) or used.get(key, 0) + count > limit:
                    continue
                used[key] = used.get(key, 0) + count
                assignments.append({"name": podset["name"], "count": podset["count"], "flavors": {"pods": flavor},
                                    "resourceUsage": {"pods": str(podset["count"])}})
                break
            else:
                return None, f"couldn't assign flavors to pod set {podset['name']}: insufficient unused quota for pods"
        return {"clusterQueue": cluster_queue, "podSetAssignments": assignments}, ""

    def preempt(self, workload, workloads, cluster_queue):
        priority = workload["spec"].get("priority", 0)
        victims = [w for w in workloads if is_true(w, "QuotaReserved") and not is_true(w, "Evicted")
                   and not is_true(w, "Finished") and w["spec"].get("priority", 0) < priority
                   and w["status"]["admission"]["clusterQueue"] == cluster_queue]
        if any(is_true(w, "Evicted") and is_true(w, "QuotaReserved") for w in workloads):
            return  # one at a time
        for victim in sorted(victims, key=lambda w: w["spec"].get("priority", 0))[:1]:
            message = "Preempted to accommodate a workload due to prioritization in the ClusterQueue"
            self.apply(victim, "preempted", victim["status"]["admission"], Evicted=("True", "Preempted", message),
                       Preempted=("True", "InClusterQueue", message))

    def obey(self, settings, workloads):
        for workload in workloads:
            reason = settings.get("evict", {}).get(workload["metadata"]["name"])
            if not workload["spec"].get("active", True):
                reason = "Deactivated"
            if reason and is_true(workload, "QuotaReserved") and not is_true(workload, "Evicted"):
                self.apply(workload, "evicted", workload["status"]["admission"],
                           Evicted=("True", reason, "The workload is " + reason.lower()))

    def turn(self):
        settings = self.settings()
        workloads = self.get(f"{API}/namespaces/{self.namespace}/workloads")
        flavors = {f["metadata"]["name"]: f.get("spec", {}).get("nodeLabels", {}) for f in self.get(f"{API}/resourceflavors")}
        self.obey(settings, workloads)
        used = self.usage(workloads)
        waiting = [w for w in workloads if not is_true(w, "QuotaReserved") and not is_true(w, "Finished")
                   and w["spec"].get("active", True) and "deletionTimestamp" not in w["metadata"]
                   and w["metadata"]["name"] not in settings.get("evict", {})]
        waiting.sort(key=lambda w: (-w["spec"].get("priority", 0), w["metadata"]["creationTimestamp"], w["metadata"]["name"]))
        for workload in waiting:
            cluster_queue = settings.get("queues", {}).get(workload["spec"]["queueName"])
            quota = settings.get("quota", {}).get(cluster_queue)
            admission, message = None, f"ClusterQueue {cluster_queue} doesn't exist"
            if cluster_queue in settings.get("stopped", []):
                message = f"ClusterQueue {cluster_queue} is inactive"
            elif quota:
                admission, message = self.assign(workload, cluster_queue, quota, flavors, used)
            if admission:
                said = f"Quota reserved in ClusterQueue {cluster_queue}"
                changes = {"QuotaReserved": ("True", "QuotaReserved", said), "Admitted": ("True", "Admitted", "The workload is admitted")}
                for kind in ("Evicted", "Preempted"):
                    if condition(workload, kind):
                        changes[kind] = ("False", "QuotaReserved", "Previously: " + condition(workload, kind)["message"])
                if self.apply(workload, "admitted", admission, **changes):
                    for podset in admission["podSetAssignments"]:
                        key = cluster_queue, podset["flavors"]["pods"]
                        used[key] = used.get(key, 0) + podset["count"]
                continue
            if condition(workload, "QuotaReserved").get("message") != message:
                self.apply(workload, "told", None, QuotaReserved=("False", "Pending", message))
            if quota and cluster_queue not in settings.get("stopped", []):
                self.preempt(workload, workloads, cluster_queue)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--api", required=True, help="socket of kubectl proxy")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--script", required=True, type=pathlib.Path)
    args = parser.parse_args()
    queue = Queue(args.api, args.namespace, args.script)
    while True:
        try:
            queue.turn()
        except (OSError, http.client.HTTPException) as error:
            print(f"{now()} {error}", flush=True)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
