#!/usr/bin/env python3
"""A bootstrap and an infrastructure provider of Cluster API, and the kubelet of each machine.

Every K0sWorkerConfig gets a data secret at once. A RemoteProxy that Cluster API has given to a Machine gets a
providerID and a Node that is Ready; the Node goes with it. That of the Cluster is just there. Ends with the API server.
"""

import argparse
import http.client
import json
import socket
import time

BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta1"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta1"
FINALIZER = "e2e.example.com/provider"
PAUSE_S = 0.2


class Socket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Api:
    def __init__(self, path):
        self.path = path

    def ask(self, method, path, body=None, expected=(200, 201)):
        connection = Socket(self.path)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status not in expected:
            print(f"{method} {path}: {answer.status} {text[:300]!r}", flush=True)
            return None
        return json.loads(text)

    def patch(self, path, body):
        return self.ask("PATCH", path, body, (200, 404))


class Provider:
    def __init__(self, api, namespace):
        self.api = api
        self.namespace = namespace

    def path(self, group_version, plural, name=""):
        return f"/apis/{group_version}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def items(self, group_version, plural):
        return (self.api.ask("GET", self.path(group_version, plural)) or {}).get("items", [])

    def serve_bootstrap(self, item):
        if "status" in item or "deletionTimestamp" in item["metadata"]:
            return
        name = item["metadata"]["name"]
        self.api.patch(self.path(BOOTSTRAP, "k0sworkerconfigs", name), {"status": {
            "dataSecretName": f"{name}-bootstrap", "initialization": {"dataSecretCreated": True}}})

    def make_node(self, name):
        node = f"{self.namespace}-{name}"
        self.api.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node},
                                               "spec": {"providerID": f"test://{name}"}}, (201, 409))
        conditions = [{"type": kind, "status": status, "reason": "Test", "message": "said by the case"}
                      for kind, status in (("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"),
                                           ("PIDPressure", "False"))]
        self.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": conditions}})

    def serve_infrastructure(self, item):
        meta, name = item["metadata"], item["metadata"]["name"]
        owners = [owner["kind"] for owner in meta.get("ownerReferences", []) if owner.get("controller")]
        path = self.path(INFRASTRUCTURE, "remoteproxies", name)
        if "deletionTimestamp" in meta:
            self.api.ask("DELETE", f"/api/v1/nodes/{self.namespace}-{name}", expected=(200, 404))
            self.api.patch(path, {"metadata": {"finalizers": None}})
            print(f"{name}: gone", flush=True)
        elif "status" not in item and owners == ["Cluster"]:
            self.api.patch(path, {"status": {"initialization": {"provisioned": True}}})
        elif "status" not in item and owners == ["Machine"]:
            self.api.patch(path, {"metadata": {"finalizers": [FINALIZER]}})
            self.make_node(name)
            self.api.patch(path, {"spec": {"providerID": f"test://{name}"}, "status": {"initialization": {"provisioned": True}}})
            print(f"{name}: provisioned", flush=True)

    def serve(self):
        while True:
            for item in self.items(BOOTSTRAP, "k0sworkerconfigs"):
                self.serve_bootstrap(item)
            for item in self.items(INFRASTRUCTURE, "remoteproxies"):
                self.serve_infrastructure(item)
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--namespace", required=True)
    args = parser.parse_args()
    Provider(Api(args.socket), args.namespace).serve()
