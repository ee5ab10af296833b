"""Creates Tasks: one at a time, telling how long it takes until a device has been told to start and
from its result to the status, or many at once; deletes them, and waits until so many are in a state.
Creates Proplets, many at once, and deletes them. Tells from a journal at what rate the answers came.

Clock: one machine, wall-clock. Printed as `what|value|budget` lines.
"""

import argparse
import datetime
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
OPERATOR = "system:serviceaccount:propeller-system:"
PAGE = 500
FINALIZERS = {"tasks": f"{API.split('/')[0]}/task-finalizer", "proplets": f"{API.split('/')[0]}/finalizer"}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if isinstance(self.timeout, (int, float)):
            self.sock.settimeout(self.timeout)
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


def metadata_of(options, kind, name):
    """With --defaulted as an object has it that the webhook has seen: the operator adds nothing."""
    return {"name": name, **({"finalizers": [FINALIZERS[kind]]} if options.defaulted else {})}


def create_task(connection, options, name):
    """Returns the uid, and the times before the request and after the answer."""
    spec = {"name": name, "functionName": "main", "inputs": [10, 32]}
    if options.image_url:
        spec["imageUrl"] = options.image_url
    else:
        spec["file"] = options.module + "A" * (options.inline_bytes // 4 * 4)
    if options.proplet:
        spec["propletSelector"] = {"propletId": options.proplet.replace("NUMBER", name.rpartition("-")[2])}
    if options.suspend:
        spec["suspend"] = True
    if options.daemon:
        spec["daemon"] = True
    if options.deadlines:
        spec["activeDeadlineSeconds"] = 36000 + int(name.rpartition("-")[2]) % options.deadlines
    if options.checkpoint:
        spec["checkpoint"] = {"interval": "60s", "keep": 1}
    task = {"apiVersion": API, "kind": "Task", "metadata": metadata_of(options, "tasks", name), "spec": spec}
    answer, before, after = send(connection, "POST", path_of(options, "tasks"), task)
    return answer["metadata"]["uid"], before, after


def create_proplet(connection, options, number):
    config = {"mqttAddress": options.broker, "domainId": options.domain}
    config.update(channelId=options.channel, clientId=f"device-{number}")
    config["clientKeySecretRef"] = {"name": "unused", "key": "key"}
    external = {"maxTasks": options.max_tasks} if options.max_tasks else {}
    spec = {"type": "external", "external": external, "connectionConfig": config}
    metadata = metadata_of(options, "proplets", f"worker-{number}")
    proplet = {"apiVersion": API, "kind": "Proplet", "metadata": metadata, "spec": spec}
    send(connection, "POST", path_of(options, "proplets"), proplet)


def set_windows(options):
    """The same for each Proplet, on every day, without a grace."""
    begin, end = options.window.split("-")
    schedule = {"windows": [{"days": ["mon-sun"], "from": begin, "until": end}]}
    body = {"spec": {"availability": {"schedule": schedule, "gracefulShutdownTimeout": "0s"}}}
    path = path_of(options, "proplets/worker-")
    in_parts(options, lambda to, number: send(to, "PATCH", f"{path}{number}", body, "application/merge-patch+json"))


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


def is_in_state(item, state):
    """state: a phase or a reason; empty for all of them."""
    status = item.get("status", {})
    return state in (status.get("phase"), status.get("reason"), "")


def list_in_state(connection, path, state):
    """The uids, and the version to watch from. In pages: one answer with all of them may be larger
    than this machine's patience."""
    uids = set()
    more = ""
    while True:
        answer, _, _ = send(connection, "GET", f"{path}?limit={PAGE}{more}", None)
        uids.update(item["metadata"]["uid"] for item in answer["items"] if is_in_state(item, state))
        if not answer["metadata"].get("continue"):
            return uids, answer["metadata"]["resourceVersion"]
        more = f"&continue={answer['metadata']['continue']}"


def apply_event(uids, event, state):
    """False: the stream cannot be followed any longer."""
    if event["type"] == "ERROR":
        return False
    uid = event["object"]["metadata"]["uid"]
    if event["type"] != "DELETED" and is_in_state(event["object"], state):
        uids.add(uid)
    else:
        uids.discard(uid)
    return True


def follow(options, path, uids, version, deadline):
    """A watch, not a list again and again, which would take its part of what is measured."""
    connection = UnixConnection(options.socket)
    connection.timeout = max(1, deadline - time.monotonic())
    connection.request("GET", f"{path}?watch=1&resourceVersion={version}")
    for line in connection.getresponse():
        if not apply_event(uids, json.loads(line), options.state) or len(uids) == options.count:
            return
        if time.monotonic() > deadline:
            return


def await_objects(options):
    """Until as many objects as --count are in the state."""
    path = path_of(options, options.kind)
    deadline = time.monotonic() + options.patience
    while True:
        uids, version = list_in_state(UnixConnection(options.socket), path, options.state)
        if len(uids) != options.count and time.monotonic() < deadline:
            try:
                follow(options, path, uids, version, deadline)
            except TimeoutError:
                pass  # told below
        if len(uids) == options.count:
            return
        if time.monotonic() >= deadline:
            state = options.state or "there"
            raise SystemExit(
                f"not within {options.patience} s: {options.count} {options.kind} {state}; {len(uids)} are"
            )


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


def seconds_of(timestamp):
    """Of an audit log: "2026-01-01T00:00:00.000000Z"."""
    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def own_times(lines, spans):
    """What the API server itself took of the time until each start: {name: seconds} of the operator's
    requests for the Task that were answered before. spans: {name: (when it was created, when started)};
    the operator may hear of a Task before the client has the answer to its create."""
    taken = dict.fromkeys(spans, 0.0)
    for line in lines:
        entry = json.loads(line)
        subject = entry.get("objectRef", {})
        name = subject.get("name")
        if subject.get("resource") != "tasks" or name not in spans or entry["verb"] == "create":
            continue
        if not entry["user"]["username"].startswith(OPERATOR):
            continue
        begun, ended = (seconds_of(entry[f"{at}Timestamp"]) for at in ("requestReceived", "stage"))
        created, started = spans[name]
        if created < ended <= started:
            taken[name] += ended - max(begun, created)
    return taken


def print_starts(options, created, starts):
    """created: {name: (uid, before, after)}; the time counts from the answer to the create."""
    taken = {name: starts[uid] - after for name, (uid, _, after) in created.items()}
    print_percentiles("created -> start on the device", list(taken.values()))
    if not options.audit:
        return
    with open(options.audit, encoding="utf-8") as file:
        own = own_times(file, {name: (after, starts[uid]) for name, (uid, _, after) in created.items()})
    print_percentiles("of it the API server's own", list(own.values()))
    print_percentiles(
        "created -> start beyond the API server's own",
        [taken[name] - own[name] for name in created],
        (15, 50),
    )


def measure_latency(options):
    connection = UnixConnection(options.socket)
    completions = Completions(options)
    created = {}
    for number in range(options.count):
        name = f"{options.prefix}-{number}"
        created[name] = create_task(connection, options, name)
        time.sleep(PAUSE)
    uids = {uid for uid, _, _ in created.values()}
    wait_until(lambda: uids <= times_of(options.journal, "start").keys(), "all Tasks to start")
    wait_until(lambda: uids <= completions.times.keys(), "all Tasks to be completed")
    starts = times_of(options.journal, "start")
    results = times_of(options.journal, "result")
    print_percentiles(
        "API server's answer to a create", [after - at for _, at, after in created.values()]
    )
    print_starts(options, created, starts)
    print_percentiles(
        "result of the device -> status told by a watch",
        [completions.times[uid] - results[uid] for uid in uids],
    )


def measure_runs(options):
    """One Task after the other: from the answer to the create until a watch tells that it is completed."""
    connection = UnixConnection(options.socket)
    completions = Completions(options)
    times = []
    for number in range(options.first + 1, options.first + options.count + 1):
        uid, _, after = create_task(connection, options, f"{options.prefix}-{number}")
        wait_until(lambda uid=uid: uid in completions.times, f"{options.prefix}-{number} to be completed")
        times.append(completions.times[uid] - after)
    print(f"{percentile(times, 0.5) * 1000:.1f}")


MODES = {
    "runs": measure_runs,
    "latency": measure_latency,
    "many": create_many,
    "drop": drop_tasks,
    "await": await_objects,
    "rate": tell_rate,
    "proplets": create_proplets,
    "drop-proplets": drop_proplets,
    "windows": set_windows,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=MODES)
    for name in ("socket", "namespace", "module"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--prefix", default="many", help="of the Tasks' names")
    parser.add_argument("--inline-bytes", type=int, default=0, help="added to the module")
    parser.add_argument("--image-url", help="reference to the module, instead of --module")
    parser.add_argument("--proplet", help="where they run; NUMBER is that of the Task")
    parser.add_argument("--journal", help="of the devices; for latency and rate")
    parser.add_argument("--audit", help="log of the API server; for latency")
    parser.add_argument("--from", type=int, default=0, dest="first", help="so many are there")
    parser.add_argument("--kind", default="tasks", choices=FINALIZERS, help="for await")
    parser.add_argument("--state", default="", help="phase or reason, for await; else all count")
    parser.add_argument("--patience", type=int, default=PATIENCE, help="seconds, for await")
    parser.add_argument("--defaulted", action="store_true", help="as the webhook leaves them")
    parser.add_argument("--suspend", action="store_true", help="Tasks that do not begin")
    parser.add_argument("--daemon", action="store_true", help="Tasks that keep their places")
    parser.add_argument("--deadlines", type=int, default=0, help="so many different ones; 0: none")
    parser.add_argument("--window", metavar="HH:MM-HH:MM", help="UTC; for windows")
    parser.add_argument("--checkpoint", action="store_true", help="Tasks that hand over their state")
    for name in ("broker", "domain", "channel"):
        parser.add_argument(f"--{name}", help="for proplets")
    parser.add_argument("--max-tasks", type=int, default=0, help="0: no limit; for proplets")
    options = parser.parse_args()
    MODES[options.mode](options)


if __name__ == "__main__":
    main()
