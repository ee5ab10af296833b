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
    stopped: bool = False
    results: list = field(default_factory=list)


@dataclass
class Journal:
    """All device journals together."""

    executions: dict = field(default_factory=dict)  # message id -> [Execution], in order
    orphans: list = field(default_factory=list)  # results of what was never started: (device, id)
    deaf: list = field(default_factory=list)  # microcontrollers that were sent too much
    devices: set = field(default_factory=set)
    counts: dict = field(default_factory=dict)  # other events, by name

    def of(self, ident):
        return self.executions.get(ident, [])


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


class JournalReader:
    def __init__(self):
        self.journal = Journal()
        self.boots = {}
        self.current = {}  # (device, id) -> Execution
        self.handlers = {
            "boot": self._boot,
            "start": self._start,
            "computed": self._computed,
            "result": self._result,
            "acknowledged": self._acknowledged,
            "stopped": self._stopped,
            "deaf": self._deaf,
        }

    def read(self, path):
        for line in lines_of(path):
            event, device = line.get("event"), line.get("device")
            self.handlers.get(event, self._other)(device, (device, line.get("task")), line)
        return self.journal

    def _other(self, _device, _key, line):
        event = str(line.get("event"))
        self.journal.counts[event] = self.journal.counts.get(event, 0) + 1

    def _boot(self, device, _key, _line):
        self.journal.devices.add(device)
        self.boots[device] = self.boots.get(device, 0) + 1
        for key in [key for key in self.current if key[0] == device]:
            del self.current[key]

    def _start(self, device, key, line):
        execution = Execution(device, self.boots.get(device, 0), line["time"])
        self.journal.executions.setdefault(key[1], []).append(execution)
        self.current[key] = execution

    def _computed(self, _device, key, _line):
        if key in self.current:
            self.current[key].computed += 1

    def _result(self, device, key, line):
        if key not in self.current:
            self.journal.orphans.append((device, key[1]))
            return
        result = Result(line["time"], line.get("results"), line.get("error"))
        self.current[key].results.append(result)

    def _acknowledged(self, _device, key, line):
        for result in self.current[key].results if key in self.current else []:
            if result.acknowledged is None:
                result.acknowledged = line["time"]
                return

    def _stopped(self, _device, key, _line):
        if key in self.current:
            self.current[key].stopped = True

    def _deaf(self, device, _key, line):
        self.journal.deaf.append((device, line.get("bytes")))


def read_journals(paths):
    reader = JournalReader()
    for path in paths:
        reader.read(path)
    return reader.journal


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
