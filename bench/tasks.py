"""Creates Tasks: one at a time, telling how long it takes until a device has been told to start and
from its result to the status, or many at once; deletes and counts them. Creates Proplets, many at
once, and deletes them. Tells from a journal at what rate the answers came.

Clock: one machine, wall-clock. Printed as `what|value|budget` lines.
"""

import argparse
import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

API = "propeller.propeller.abstractmachines.fr/v1"
PAUSE = 0.05  # between two Tasks, so that each one meets an idle controller
PATIENCE = 60
WRITERS = 4
PAGE = 500


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
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, {"Content-Type": content})
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


def entries_of(journal, skipped=0):
    """The last line may not be whole yet."""
    with open(journal, encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number >= skipped and line.endswith("\n"):
                yield json.loads(line)


def times_of(journal, event):
    times = {}
    for entry in entries_of(journal):
        if entry["event"] == event:
            times.setdefault(entry["task"], entry["time"])
    return times


class Completions(threading.Thread):
    """When a watch told that each Task, by its uid, is completed."""

    def __init__(self, options):
        super().__init__(daemon=True)
        connection = UnixConnection(options.socket)
        path = path_of(options, "tasks")
        answer, _, _ = send(connection, "GET", f"{path}?limit=1", None)
        version = answer["metadata"]["resourceVersion"]
        connection.request("GET", f"{path}?watch=1&resourceVersion={version}")
        self.stream = connection.getresponse()
        self.times = {}
        self.start()

    def run(self):
        for line in self.stream:
            now = time.time()
            task = json.loads(line)["object"]
            if task.get("status", {}).get("phase") == "completed":
                self.times.setdefault(task["metadata"]["uid"], now)


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


def drop_tasks(options):
    path = path_of(options, f"tasks/{options.prefix}-")
    in_parts(options, lambda to, number: send(to, "DELETE", f"{path}{number}", {}))


def count_tasks(options):
    """In pages: one answer with all of them may be larger than this machine's patience."""
    connection = UnixConnection(options.socket)
    path = f"{path_of(options, 'tasks')}?limit={PAGE}"
    counted = 0
    more = ""
    while True:
        answer, _, _ = send(connection, "GET", path + more, None)
        statuses = [item.get("status", {}) for item in answer["items"]]
        counted += sum(options.state in (s.get("phase"), s.get("reason"), "") for s in statuses)
        if not answer["metadata"].get("continue"):
            break
        more = f"&continue={answer['metadata']['continue']}"
    print(counted)


def tell_rate(options):
    """Without the first and the last tenth: not all places are taken yet, or any more."""
    entries = entries_of(options.journal, options.first)
    times = sorted(entry["time"] for entry in entries if entry["event"] == "result")
    times = times[: options.count]
    tenth = len(times) // 10
    print(f"{(len(times) - 2 * tenth - 1) / (times[-1 - tenth] - times[tenth]):.2f}")


def create_many(options):
    name = options.prefix + "-{}"
    took = in_parts(options, lambda to, number: create_task(to, options, name.format(number)))
    print(f"creates of {options.count} Tasks by {WRITERS} writers (Tasks/s)|{options.count / took:.0f}")


def create_proplets(options):
    in_parts(options, lambda to, number: create_proplet(to, options, number))


def wait_until(is_there, what):
    deadline = time.monotonic() + PATIENCE
    while not is_there():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE} s: {what}")
        time.sleep(PAUSE)


def measure_latency(options):
    connection = UnixConnection(options.socket)
    completions = Completions(options)
    created = []
    for number in range(options.count):
        created.append(create_task(connection, options, f"latency-{number}"))
        time.sleep(PAUSE)
    uids = {uid for uid, _, _ in created}
    wait_until(lambda: uids <= times_of(options.journal, "start").keys(), "all Tasks to start")
    wait_until(lambda: uids <= completions.times.keys(), "all Tasks to be completed")
    starts = times_of(options.journal, "start")
    results = times_of(options.journal, "result")
    print_percentiles("API server's answer to a create", [after - at for _, at, after in created])
    print_percentiles(
        "created -> start on the device", [starts[uid] - after for uid, _, after in created], (15, 50)
    )
    print_percentiles(
        "result of the device -> status told by a watch",
        [completions.times[uid] - results[uid] for uid in uids],
    )


MODES = {
    "latency": measure_latency,
    "many": create_many,
    "drop": drop_tasks,
    "count": count_tasks,
    "rate": tell_rate,
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
    parser.add_argument("--journal", help="of the devices; for latency and rate")
    parser.add_argument("--from", type=int, default=0, dest="first", help="so many are there")
    parser.add_argument("--state", default="", help="phase or reason of those that are counted")
    parser.add_argument("--suspend", action="store_true", help="Tasks that do not begin")
    parser.add_argument("--daemon", action="store_true", help="Tasks that keep their places")
    for name in ("broker", "domain", "channel"):
        parser.add_argument(f"--{name}", help="for proplets")
    parser.add_argument("--max-tasks", type=int, default=0, help="0: no limit; for proplets")
    options = parser.parse_args()
    MODES[options.mode](options)


if __name__ == "__main__":
    main()
