#!/usr/bin/env python3
"""Creates and deletes Tasks when the plan says so, through whatever happens to the API server.

A request that fails is repeated until it is answered; what is there already, or gone already, is
taken for its own work. The journal has a line `created` and `deleted` for each, and `done` at last.
"""

import argparse
import heapq
import http.client
import json
import socket
import time

API = "propeller.propeller.abstractmachines.fr/v1"
PATIENCE = 20
BETWEEN_TRIES = 0.5


class LocalConnection(http.client.HTTPConnection):
    """To the API proxy's socket in the file system."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class Api:
    def __init__(self, path, namespace):
        self.path = path
        self.tasks = f"/apis/{API}/namespaces/{namespace}/tasks"

    def _once(self, method, path, body):
        connection = LocalConnection(self.path)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def ask(self, method, path, fine, body=None):
        """(status, body) once the status is one of `fine`. What is refused for good ends the program."""
        while True:
            try:
                status, answer = self._once(method, path, body)
            except (OSError, http.client.HTTPException):
                status, answer = 0, b""
            # An API server that starts says 404 of what is there, in plain text.
            if status in fine and (status != 404 or b'"NotFound"' in answer):
                return status, answer
            if status in (400, 422):
                raise SystemExit(f"stream: {method} {path}: {answer.decode(errors='replace')}")
            time.sleep(BETWEEN_TRIES)


def manifest(task, module, reference):
    spec = {"name": task["name"], "functionName": "main"}
    spec.update({"imageUrl": reference} if task["by_reference"] else {"file": module})
    spec["inputs"] = [str(task["naps"]), task["value"]]
    # The device speaks once a second, so that silence is noticed soon.
    spec["monitoringProfile"] = {"enabled": True, "interval": "1s"}
    if task["saves"]:
        spec["checkpoint"] = {"interval": "10s", "keep": 1}
        spec["backoffLimit"] = 1  # the first attempt fails (../device/scripted.py), and another one goes on
    if task["after"]:
        spec["dependsOn"] = task["after"]
    if task["deadline"]:
        spec["activeDeadlineSeconds"] = task["deadline"]
    if task["ttl"]:
        spec["ttlSecondsAfterFinished"] = task["ttl"]
    return {"apiVersion": API, "kind": "Task", "metadata": {"name": task["name"]}, "spec": spec}


class Stream:
    def __init__(self, api, journal, module, reference):
        self.api, self.journal, self.module, self.reference = api, journal, module, reference

    def write(self, event, **fields):
        print(json.dumps({"time": time.time(), "event": event, **fields}), file=self.journal, flush=True)

    def run(self, tasks):
        begin = time.monotonic()
        steps = [(task["at"], number, self._create, task) for number, task in enumerate(tasks)]
        heapq.heapify(steps)
        while steps:
            at, number, step, task = heapq.heappop(steps)
            time.sleep(max(0, begin + at - time.monotonic()))
            step(task)
            if step == self._create and task["delete_at"] is not None:
                heapq.heappush(steps, (task["delete_at"], number, self._delete, task))
        self.write("done")

    def _create(self, task):
        body = json.dumps(manifest(task, self.module, self.reference))
        status, answer = self.api.ask("POST", self.api.tasks, (201, 409), body)
        if status == 409:  # an earlier try was executed, and its answer lost
            _, answer = self.api.ask("GET", f"{self.api.tasks}/{task['name']}", (200,))
        self.write("created", name=task["name"], uid=json.loads(answer)["metadata"]["uid"])

    def _delete(self, task):
        self.api.ask("DELETE", f"{self.api.tasks}/{task['name']}", (200, 202, 404))
        self.write("deleted", name=task["name"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True, metavar="FILE", help="of the API proxy")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--plan", required=True, metavar="FILE", help="of plan.py tasks")
    parser.add_argument("--module", required=True, metavar="FILE", help="base64 of what they run")
    parser.add_argument("--reference", required=True, help="to the same in a registry")
    parser.add_argument("--journal", required=True, metavar="FILE")
    options = parser.parse_args()
    with open(options.plan, encoding="utf-8") as file:
        tasks = [json.loads(line) for line in file]
    with open(options.module, encoding="ascii") as file:
        module = file.read().strip()
    with open(options.journal, "a", encoding="utf-8") as journal:
        Stream(Api(options.socket, options.namespace), journal, module, options.reference).run(tasks)


if __name__ == "__main__":
    main()
