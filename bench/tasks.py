"""Creates Tasks: one at a time, telling how long it takes until a device has been told to start,
or many at once.

Clock: one machine, wall-clock. Printed as `what|value|budget` lines.
"""

import argparse
import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

API = "propeller.propeller.abstractmachines.fr/v1"
PAUSE = 0.05  # between two Tasks, so that each one meets an idle controller
PATIENCE = 60
WRITERS = 4


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


def create_task(connection, options, name):
    """Returns the uid, and the times before the request and after the answer."""
    task = {
        "apiVersion": API,
        "kind": "Task",
        "metadata": {"name": name},
        "spec": {"name": name, "functionName": "main", "file": options.module, "inputs": [10, 32]},
    }
    before = time.time()
    path = f"/apis/{API}/namespaces/{options.namespace}/tasks"
    connection.request("POST", path, json.dumps(task), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    body = json.loads(reply.read())
    after = time.time()
    if reply.status != 201:
        raise SystemExit(f"task not created: {body.get('message')}")
    return body["metadata"]["uid"], before, after


def started_at(journal):
    times = {}
    with open(journal, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                entry = json.loads(line)
                if entry["event"] == "start":
                    times.setdefault(entry["task"], entry["time"])
    return times


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def print_percentiles(what, values, budgets_ms=None):
    for index, (name, part) in enumerate((("p50", 0.5), ("p99", 0.99))):
        budget = f"|<= {budgets_ms[index]}" if budgets_ms else ""
        print(f"{what}, {name} (ms)|{percentile(values, part) * 1000:.1f}{budget}")


def create_part(options, part):
    connection = UnixConnection(options.socket)
    for number in range(part, options.count, WRITERS):
        create_task(connection, options, f"many-{number}")


def create_many(options):
    before = time.time()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda part: create_part(options, part), range(WRITERS)))
    rate = options.count / (time.time() - before)
    print(f"creates of {options.count} Tasks by {WRITERS} writers (Tasks/s)|{rate:.0f}")


def measure_latency(options):
    connection = UnixConnection(options.socket)
    created = []
    for number in range(options.count):
        created.append(create_task(connection, options, f"latency-{number}"))
        time.sleep(PAUSE)
    deadline = time.monotonic() + PATIENCE
    times = started_at(options.journal)
    while any(uid not in times for uid, _, _ in created) and time.monotonic() < deadline:
        time.sleep(PAUSE)
        times = started_at(options.journal)
    late = [uid for uid, _, _ in created if uid not in times]
    if late:
        raise SystemExit(f"{len(late)} Tasks did not start within {PATIENCE} s")
    answers = [after - before for _, before, after in created]
    starts = [times[uid] - after for uid, _, after in created]
    print_percentiles("API server's answer to a create", answers)
    print_percentiles("created -> start on the device", starts, (15, 50))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("latency", "many"))
    for name in ("socket", "namespace", "module"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--journal", help="of the devices; for latency")
    parser.add_argument("--count", type=int, required=True)
    options = parser.parse_args()
    (measure_latency if options.mode == "latency" else create_many)(options)


if __name__ == "__main__":
    main()
