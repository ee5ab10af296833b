"""What a broker that is killed can have lost: messages it had sent and nobody had acknowledged.

Mosquitto 2.0.11 does not save what is in flight to a connected client. So no more results can have
died in a kill than its log shows unacknowledged on the session of results at that moment.
"""

import re

STARTING = re.compile(r"^\d+: mosquitto version \S+ starting")


class InFlight:
    def __init__(self, log, client):
        ident = re.escape(client + "-results")
        self.sent = re.compile(rf"^\d+: Sending PUBLISH to {ident} \(d\d, q[12], r\d, m(\d+),")
        self.acknowledged = re.compile(rf"^\d+: Received PUBACK from {ident} \(Mid: (\d+),")
        self.numbers = set()
        self.seen = 0
        self.lost = []  # at each start of the broker but the first, how many
        self.starts = 0
        for line in log:
            self._line(line)

    def _line(self, text):
        if match := self.sent.match(text):
            self.numbers.add(match[1])
            self.seen += 1
        elif match := self.acknowledged.match(text):
            self.numbers.discard(match[1])
        elif STARTING.match(text):
            if self.starts:
                self.lost.append(len(self.numbers))
            self.starts += 1
            self.numbers.clear()
