"""Answers without what may differ: uids, times, resourceVersions (their order stays), random names."""
import calendar
import json
import re
import time

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)")
GENERATED = re.compile(r"\b(gen\d+-|g{58})[bcdfghjklmnpqrstvwxz2456789]{5}\b")
AGE = re.compile(r"^(\d+[smhdy])+$")
VERSIONS = re.compile(r"((?:ResourceVersion in (?:the )?[a-z ]+|[Rr]esource version|current|resourceVersion)(?::| (?=\()) ?[\"(]?)(\d+)(\)?(?: \(\d+\))?)")
NEAR_S = 7200
SHOWN = 400


class Seen:
    """What one server said in one sequence: its versions, uids and names by the order in which they came."""

    def __init__(self):
        self.labels = {}
        self.counts = {}

    def label(self, what, text):
        if (what, text) not in self.labels:
            self.counts[what] = self.counts.get(what, 0) + 1
            self.labels[what, text] = "<%s %d>" % (what, self.counts[what])
        return self.labels[what, text]

    def order(self):
        """The versions that were seen, oldest first, by their labels."""
        versions = [(int(text), label) for (what, text), label in self.labels.items() if what == "version"]
        return [label for _, label in sorted(versions)]

    def text(self, value):
        value = UUID.sub(lambda m: m.group() if m.group().startswith("00000000") else self.label("uid", m.group()), value)
        value = TIME.sub(lambda m: "<now>" if is_near(m.group(1)) else m.group(), value)
        value = GENERATED.sub(lambda m: m.group(1) + "<random>", value)
        return VERSIONS.sub(lambda m: m.group(1) + "<version>", value)

    def tree(self, value, key=None, parent=None):
        if isinstance(value, dict):
            made = {self.text(k): self.tree(value[k], k, value) for k in sorted(value)}
            if key == "metadata" and "name" not in value and "uid" not in value and "resourceVersion" in value:
                made["resourceVersion"] = "<of the list>"
            if "managedFields" in made and isinstance(made["managedFields"], list):
                made["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
            return made
        if isinstance(value, list):
            if key == "cells":
                return [self.cell(cell) for cell in value]
            return [self.tree(item, key, value) for item in value]
        if not isinstance(value, str):
            return value
        if key == "resourceVersion":
            return self.label("version", value) if value.isdigit() and is_object_metadata(parent) else "<of the list>"
        if key == "continue" and value:
            return "<continue>"
        return self.text(value)

    def cell(self, value):
        return "<age>" if isinstance(value, str) and AGE.match(value) else self.tree(value)


def is_object_metadata(parent):
    return isinstance(parent, dict) and ("name" in parent or "uid" in parent)


def is_near(text):
    try:
        return abs(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) - time.time()) < NEAR_S
    except ValueError:
        return False


def shown(value):
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


NOTHING = object()


def differences(real, ours, place=""):
    """[(place, what the real one has, what ours has)], texts."""
    if isinstance(real, dict) and isinstance(ours, dict):
        found = []
        for key in sorted(set(real) | set(ours)):
            found += differences(real.get(key, NOTHING), ours.get(key, NOTHING), "%s.%s" % (place, key))
        return found
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [d for i, pair in enumerate(zip(real, ours)) for d in differences(*pair, "%s[%d]" % (place, i))]
    if type(real) is type(ours) and real == ours:
        return []
    return [(place, "(nothing)" if real is NOTHING else shown(real), "(nothing)" if ours is NOTHING else shown(ours))]


def status_of(body):
    """A refusal in one text; that something is said twice does not count."""
    causes = (body.get("details") or {}).get("causes")
    if causes:
        body["details"]["causes"] = [c for i, c in enumerate(causes) if c not in causes[:i]]
    reason = " " + body["reason"] if "reason" in body else ""
    details = " " + json.dumps(body["details"], sort_keys=True) if "details" in body else ""
    others = {k: v for k, v in body.items() if k not in ("reason", "details", "message", "code", "status", "kind", "apiVersion")}
    return "%s%s: %s%s%s" % (body.get("code"), reason, body.get("message"), details,
                             "" if others == {"metadata": {}} else " " + json.dumps(others, sort_keys=True))


def normal(answer, seen, method):
    made = {"code": answer.code, "type": answer.headers.get("Content-Type"),
            "warnings": [seen.text(w) for w in answer.headers.get_all("Warning") or []],
            "retry": answer.headers.get("Retry-After"), "allow": answer.headers.get("Allow")}
    if method != "HEAD":
        made["body"] = seen.tree(answer.body)
    made["success"] = answer.code < 300
    if method != "HEAD" and isinstance(made["body"], dict) and made["body"].get("status") == "Failure":
        made["status"] = status_of(made.pop("body"))
        if made["code"] == answer.body.get("code"):
            del made["code"]
    return made


def answer_differences(real, ours):
    """Of two normal answers; a refusal and an object differ as a whole."""
    real, ours = ({k: v for k, v in n.items() if k != "success"} for n in (real, ours))
    if ("status" in real) != ("status" in ours):
        return [("status", *[shown(n.get("status") or "%s %s" % (n["code"], shown(n.get("body")))) for n in (real, ours)])]
    return differences(real, ours)


def object_of(event):
    """The object of an event: of a Table, the one in its row."""
    thing = event.get("object") or {}
    return thing["rows"][0]["object"] if thing.get("rows") else thing


def name_of(event):
    return (object_of(event).get("metadata") or {}).get("name")


def is_end_of_initial(event):
    notes = (object_of(event).get("metadata") or {}).get("annotations") or {}
    return event["type"] == "BOOKMARK" and "k8s.io/initial-events-end" in notes


def normal_events(events, seen, last, unordered):
    """Up to the object `last`; bookmarks left out, but for the one that ends the initial events."""
    made = []
    for event in events:
        if event["type"] == "BOOKMARK" and not is_end_of_initial(event):
            continue
        made.append(seen.tree(event))
        if name_of(event) == last:
            break
    if unordered:
        made.sort(key=lambda e: str(name_of(e)))
    return made


class Known:
    """The file of differences that stay: PLACE | REQUEST | REAL | OURS | WHY, the first four regular expressions."""

    def __init__(self, path):
        self.entries = []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                parts = [part.strip() for part in line.split(" | ")]
                if len(parts) != 5 or not parts[4]:
                    raise SystemExit("differential: %s:%d: five parts with ' | ' between them" % (path, number))
                self.entries.append({"text": line.strip(), "used": 0,
                                     "match": [re.compile(p, re.DOTALL) for p in parts[:4]]})

    def explains(self, request, place, real, ours):
        for entry in self.entries:
            values = (place, request, real, ours)
            if all(pattern.search(value) for pattern, value in zip(entry["match"], values)):
                entry["used"] += 1
                return True
        return False

    def unused(self):
        return [entry["text"] for entry in self.entries if not entry["used"]]
