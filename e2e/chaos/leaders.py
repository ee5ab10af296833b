"""Who spoke to the broker as leader, and whether anybody did who was leader no more.

The broker's log says which connection is whose by its port, links.py says to which replica a port
belongs, and the harness when each replica was started. A process leads once at most: whoever has
seen another holder ends. So once another process has connected, the former one has no say: neither
a PUBLISH on the control connection nor a PUBACK on the one of results may follow, in the broker's
own order. A connection alone says nothing; it is counted, because a packet that was held up on its
way may open one when nobody is there any more to take it back.
"""

import re

CONNECTED = re.compile(r"^(\d+): New client connected from [^ ]*:(\d+) as (\S+) \(")
SPOKEN = re.compile(r"^\d+: Received (PUBLISH|PUBACK) from (\S+) \((.*)$")
RESULTS = "-results"
# The broker's times are whole seconds, and those of the turn of its loop; no port is used again so soon.
NEARBY = 60


class LeadersError(Exception):
    """The log cannot be judged."""


class Leaders:
    def __init__(self, log, links, replicas, client):
        self.client = client
        self.opened = {}  # port -> [(time opened, time accepted, replica)]
        for line in links:
            if line["event"] == "opened" and line["link"].endswith("-broker"):
                entry = line["time"], line["accepted"], line["link"].removesuffix("-broker")
                self.opened.setdefault(line["port"], []).append(entry)
        self.starts = {}  # replica -> [time]
        for line in replicas:
            if line["event"] == "started":
                self.starts.setdefault(line["replica"], []).append(line["time"])
        self.terms = []  # processes, in the order in which they came to the broker
        self.changes = []  # when each but the first came
        self.current = {}  # client id -> process that has the connection
        self.returns = 0
        self.violations = []
        self.spoken = 0
        for line in log:
            self._line(line)

    def _line(self, line):
        if match := CONNECTED.match(line):
            second, port, ident = match.groups()
            if ident in (self.client, self.client + RESULTS):
                self._connected(ident, *self._process(int(port), int(second)))
        elif match := SPOKEN.match(line):
            kind, ident, what = match.groups()
            if ident in (self.client, self.client + RESULTS):
                self._spoken(kind, ident, what)

    def _process(self, port, second):
        """((replica, which start of it), when)."""
        known = [entry for entry in self.opened.get(port, []) if abs(entry[0] - second) <= NEARBY]
        if not known:
            raise LeadersError(f"a connection from port {port} at {second} came by no link")
        opened, accepted, replica = min(known, key=lambda entry: abs(entry[0] - second))
        number = sum(start <= accepted for start in self.starts.get(replica, []))
        return (replica, number), opened

    def _connected(self, ident, process, at):
        self.current[ident] = process
        if process not in self.terms:
            self.terms.append(process)
            if len(self.terms) > 1:
                self.changes.append(at)
        elif process != self.terms[-1]:
            self.returns += 1

    def _spoken(self, kind, ident, what):
        if (kind == "PUBACK") != ident.endswith(RESULTS):
            return
        self.spoken += 1
        process = self.current.get(ident)
        if process and process != self.terms[-1]:
            text = f"sent {kind} ({what.strip()[:120]} after '{name(self.terms[-1])}' had connected"
            self.violations.append((name(process), text))


def name(process):
    return f"{process[0]}{process[1]}"
