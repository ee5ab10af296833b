"""What the oracle reads: device journals, the cluster's Tasks, faults, the broker's traffic."""

import json
from dataclasses import dataclass, field


class RecordError(Exception):
    """A file that cannot be judged; the text names it."""


@dataclass
class Result:
    """One result that a device handed to its MQTT client."""

    time: float
    results: object
    error: object
    acknowledged: float | None = None  # when the broker said that it has it


@dataclass
class Execution:
    """One start that a device accepted, and what came of it."""

    device: str
    boot: int
    time: float
    computed: int = 0
    stopped: float | None = None  # the time of the first stop that it was told
    results: list = field(default_factory=list)


@dataclass
class Fault:
    """A process that was killed between `begin` and `end`; it was seen dead before `end`."""

    what: str
    begin: float
    end: float


def lines_of(path):
    """Objects of a file of JSON lines. A process that is killed leaves half a line, at most one a life."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


class Journal:
    """All device journals together."""

    def __init__(self, paths=()):
        self.executions = {}  # message id -> [Execution], in order
        self.orphans = []  # results of what was never started: (device, id)
        self.deaf = []  # microcontrollers that were sent too much
        self.devices = set()
        self.counts = {}  # other events, by name
        self.boots = {}
        self.current = {}  # (device, id) -> Execution
        for path in paths:
            for line in lines_of(path):
                self._take(line, line.get("event"), line.get("device"), line.get("task"))

    def of(self, ident):
        return self.executions.get(ident, [])

    def _take(self, line, event, device, ident):
        execution = self.current.get((device, ident))
        if event == "boot":
            self.devices.add(device)
            self.boots[device] = self.boots.get(device, 0) + 1
            self.current = {key: value for key, value in self.current.items() if key[0] != device}
        elif event == "start":
            execution = Execution(device, self.boots.get(device, 0), line["time"])
            self.executions.setdefault(ident, []).append(execution)
            self.current[device, ident] = execution
        elif event == "result" and not execution:
            self.orphans.append((device, ident))
        elif event == "deaf":
            self.deaf.append((device, line.get("bytes")))
        elif event not in ("result", "computed", "acknowledged", "stopped"):
            self.counts[str(event)] = self.counts.get(str(event), 0) + 1
        elif execution:
            self._of_execution(execution, event, line)

    @staticmethod
    def _of_execution(execution, event, line):
        if event == "result":
            execution.results.append(Result(line["time"], line.get("results"), line.get("error")))
        elif event == "computed":
            execution.computed += 1
        elif event == "stopped":
            execution.stopped = execution.stopped or line["time"]
        else:  # acknowledged: the first that is not yet
            for result in execution.results:
                if result.acknowledged is None:
                    result.acknowledged = line["time"]
                    return


def read_list(path):
    """Objects of `kubectl get KIND -o json`, or of the API's own list."""
    with open(path, encoding="utf-8") as file:
        try:
            items = json.load(file)["items"]
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"'{path}' is not a list of objects: {error!r}") from error
    return items


def read_faults(path):
    """Lines {"what": "broker", "begin": seconds, "end": seconds}."""
    return [Fault(line["what"], line["begin"], line["end"]) for line in lines_of(path)]


WIRE_KINDS = {
    "control/manager/start": ("start", "id"),
    "control/proplet/results": ("result", "task_id"),
    "control/controller/marker": ("marker", None),
}


@dataclass
class Message:
    """One message as the broker passed it on."""

    time: float
    kind: str
    ident: str | None


def wire_line(line):
    """The message of one line `TIME TOPIC PAYLOAD`, or None."""
    time, _, rest = line.partition(" ")
    topic, _, payload = rest.partition(" ")
    kind, key = WIRE_KINDS.get("/".join(topic.split("/")[-3:]), (None, None))
    try:
        ident = json.loads(payload)[key] if key else None
        message = Message(float(time), kind, ident)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None  # anybody may say anything
    return message if kind and (key is None or isinstance(ident, str)) else None


def read_wire(path):
    """Starts, results and markers in the order in which the broker passed them on."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return [entry for entry in map(wire_line, file) if entry]
