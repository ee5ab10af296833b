"""Creates Tasks: one at a time, telling how long it takes until a device has been told to start,
or many at once. Creates Proplets, many at once, and deletes them.

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


def send(connection, method, path, body, content="application/json"):
    """Returns the answer's object, and the times before the request and after the answer."""
    before = time.time()
    connection.request(method, path, json.dumps(body), {"Content-Type": content})
    reply = connection.getresponse()
    answer = json.loads(reply.read())
    after = time.time()
    if reply.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.get('message')}")
    return answer, before, after


def path_of(options, kind):
    return f"/apis/{API}/namespaces/{options.namespace}/{kind}"


def create_task(connection, options, name):
    """Returns the uid, and the times before the request and after the answer."""
    spec = {"name": name, "functionName": "main", "inputs": [10, 32]}
    spec["file"] = options.module + "A" * (options.inline_bytes // 4 * 4)
    if options.suspend:
        spec["suspend"] = True
    if options.daemon:
        spec["daemon"] = True
    task = {"apiVersion": API, "kind": "Task", "metadata": {"name": name}, "spec": spec}
    answer, before, after = send(connection, "POST", path_of(options, "tasks"), task)
    return answer["metadata"]["uid"], before, after


def create_proplet(connection, options, number):
    config = {"mqttAddress": options.broker, "domainId": options.domain}
    config.update(channelId=options.channel, clientId=f"device-{number}")
    config["clientKeySecretRef"] = {"name": "unused", "key": "key"}
    external = {"maxTasks": options.max_tasks} if options.max_tasks else {}
    spec = {"type": "external", "external": external, "connectionConfig": config}
    metadata = {"name": f"worker-{number}"}
    proplet = {"apiVersion": API, "kind": "Proplet", "metadata": metadata, "spec": spec}
    send(connection, "POST", path_of(options, "proplets"), proplet)


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


def in_parts(options, act):
    """act(connection, number) for first + 1 ... count, by several writers; returns how long it took."""

    def run(part):
        connection = UnixConnection(options.socket)
        for number in range(1 + options.first + part, 1 + options.count, WRITERS):
            act(connection, number)

    before = time.time()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(run, range(WRITERS)))
    return time.time() - before


def drop_proplet(connection, options, number):
    send(connection, "DELETE", path_of(options, f"proplets/worker-{number}"), {})


def drop_proplets(options):
    in_parts(options, lambda to, number: drop_proplet(to, options, number))


def create_many(options):
    name = options.prefix + "-{}"
    took = in_parts(options, lambda to, number: create_task(to, options, name.format(number)))
    print(f"creates of {options.count} Tasks by {WRITERS} writers (Tasks/s)|{options.count / took:.0f}")


def create_proplets(options):
    in_parts(options, lambda to, number: create_proplet(to, options, number))


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


MODES = {
    "latency": measure_latency,
    "many": create_many,
    "proplets": create_proplets,
    "drop-proplets": drop_proplets,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=MODES)
    for name in ("socket", "namespace", "module"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--prefix", default="many", help="of the Tasks' names")
    parser.add_argument("--inline-bytes", type=int, default=0, help="added to the module")
    parser.add_argument("--journal", help="of the devices; for latency")
    parser.add_argument("--from", type=int, default=0, dest="first", help="so many are there")
    parser.add_argument("--suspend", action="store_true", help="Tasks that do not begin")
    parser.add_argument("--daemon", action="store_true", help="Tasks that keep their places")
    for name in ("broker", "domain", "channel"):
        parser.add_argument(f"--{name}", help="for proplets")
    parser.add_argument("--max-tasks", type=int, default=0, help="0: no limit; for proplets")
    options = parser.parse_args()
    MODES[options.mode](options)


if __name__ == "__main__":
    main()
