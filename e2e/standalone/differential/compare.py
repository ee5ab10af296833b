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
WEBHOOK = re.compile(r'^admission webhook "validate\.[a-z-]+\.propeller\.abstractmachines\.fr" denied the request: ')
NEAR_S = 7200
SHOWN = 400
CUT = 200  # bytes that a message that is cut has left


class Seen:
    """What one server said in one sequence: its versions, uids and names by the order in which they came."""

    def __init__(self, webhook):
        self.labels = {}
        self.counts = {}
        self.webhook = webhook  # whether admission is asked for outside
        self.ordered = True  # False: what is new was made by others, in whatever order
        self.unordered = set()

    def label(self, what, text):
        if (what, text) not in self.labels:
            self.counts[what] = self.counts.get(what, 0) + 1
            self.labels[what, text] = "<%s %d>" % (what, self.counts[what])
            if not self.ordered:
                self.unordered.add(self.labels[what, text])
        return self.labels[what, text]

    def order(self):
        """The versions that were seen, oldest first, by their labels."""
        versions = [(int(text), label) for (what, text), label in self.labels.items() if what == "version"]
        return [label for _, label in sorted(versions) if label not in self.unordered]

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
            if "resources" in made and "groupVersion" in made:  # by name, or as their definitions came
                made["resources"] = sorted(made["resources"], key=lambda r: r["name"])
            if "managedFields" in made and isinstance(made["managedFields"], list):
                made["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
            return made
        if isinstance(value, list):
            if key == "verbs":
                return sorted(value)
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


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def shown(value):
    text = text_of(value)
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
    return [(place, *["(nothing)" if side is NOTHING else text_of(side) for side in (real, ours)])]


def causes_of(body, webhook):
    """The causes of a refusal, taken out of it; nor their order nor that one is told twice counts. They must be what
    the message says."""
    message = body.get("message") or ""
    if webhook:
        message = WEBHOOK.sub("", message)
    told = (body.get("details") or {}).get("causes") or []
    if message.startswith("Apply failed with "):  # by managers, in the order of a map of Go
        told.sort(key=lambda cause: json.dumps(cause, sort_keys=True))
    causes = [c for i, c in enumerate(told) if c not in told[:i]]
    texts = ["%s: %s" % (c.get("field"), c.get("message")) for c in causes]
    listed = texts[0] if len(texts) == 1 else "[%s]" % ", ".join(texts)
    if causes and message.endswith(" is invalid: " + listed):
        message = message[:-len(listed)] + "<causes>"
        body["details"].pop("causes")
    else:
        texts = causes = []
    body["message"] = message
    return sorted("%s (%s)" % (text, c.get("reason")) for text, c in zip(texts, causes))


def status_of(body):
    """A refusal in one text."""
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
        body = made.pop("body")
        made["by_webhook"] = seen.webhook and bool(WEBHOOK.match(body.get("message") or ""))
        made["causes"] = causes_of(body, seen.webhook)
        made["status"] = status_of(body)
        if made["code"] == answer.body.get("code"):
            del made["code"]
    return made


def answer_differences(real, ours):
    """Of two normal answers; a refusal and an object differ as a whole."""
    real, ours = ({k: v for k, v in n.items() if k != "success"} for n in (real, ours))
    if ("status" in real) != ("status" in ours):
        return [("status", *[refusal(n) if "status" in n else "%s %s" % (n["code"], text_of(n.get("body"))) for n in (real, ours)])]
    if "status" not in real:
        return differences(real, ours)
    if real["status"] != ours["status"]:
        return [("status", refusal(real), refusal(ours))]
    found = differences(*[{k: v for k, v in n.items() if k not in ("causes", "by_webhook", "warnings")} for n in (real, ours)])
    if real["warnings"] != ours["warnings"]:  # what both warn of is left out
        found.append(("warnings of a refusal", *[text_of([w for w in one["warnings"] if w not in other["warnings"]])
                                                 for one, other in ((real, ours), (ours, real))]))
    return found + cause_differences(real, ours)


CAUSE = re.compile(r"^(.*?): (Invalid value|Required value|Forbidden|Unsupported value)(?:: (.*))? \((\w+)\)$", re.DOTALL)


def is_rule(real, ours):
    """Whether a CRD's rule has said what admission says: of the object as a whole, and not where in a list."""
    a, b = CAUSE.match(real), CAUSE.match(ours)
    if not a or not b or re.sub(r"\[\d+\]$", "", b.group(1)) != a.group(1):
        return False
    words = re.match(r'"(?:object|string|array|integer|boolean)": (.*)$', a.group(3) or "", re.DOTALL)
    return bool(words) and (b.group(3) or "").endswith(words.group(1))


def cause_differences(real, ours):
    only = [c for c in real["causes"] if c not in ours["causes"]]
    others = [c for c in ours["causes"] if c not in real["causes"]]
    found = []
    for cause in list(only):
        pair = next((o for o in others if is_rule(cause, o)), None)
        place = "cause by a rule"
        if not pair:
            pair = next((o for o in others if o.split(":")[0] == cause.split(":")[0]), None)
            place = "cause"
        if pair:
            only.remove(cause)
            others.remove(pair)
            found.append((place, cause, pair))
    # Who is refused by the schema is not asked about by admission; both have refused for something else, too.
    nothing = "(nothing)" if real["by_webhook"] or not (real["causes"] and ours["causes"]) else "(nothing yet)"
    return found + [("cause", c, nothing) for c in only] + [("cause", nothing, c) for c in others]


def refusal(answer):
    return answer["status"] + "".join(" + " + c for c in answer["causes"])


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
    kept = []
    for event in events:
        if event["type"] == "BOOKMARK" and not is_end_of_initial(event):
            continue
        kept.append(event)
        if name_of(event) == last:
            break
    if unordered:
        kept.sort(key=lambda e: str(name_of(e)))
    return [seen.tree(event) for event in kept]


class Known:
    """The file of differences that stay: PLACE | REQUEST | REAL | OURS | WHY, the first four regular expressions.
    @1 in OURS is what the first group of REAL has found."""

    def __init__(self, path):
        self.entries = []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                parts = [part.strip() for part in line.split(" | ")]
                if len(parts) != 5 or not parts[4]:
                    raise SystemExit("differential: %s:%d: five parts with ' | ' between them" % (path, number))
                self.entries.append({"text": line.strip(), "used": 0, "ours": parts[3],
                                     "match": [re.compile(p, re.DOTALL) for p in parts[:3]]})

    @staticmethod
    def takes(entry, request, place, real, ours):
        found = [pattern.search(value) for pattern, value in zip(entry["match"], (place, request, real))]
        if not all(found):
            return False
        if entry["ours"] == "(cut)":
            return len(ours) >= CUT and real.startswith(ours)
        same = re.escape(found[2].group(1) or "") if found[2].re.groups else ""
        return bool(re.search(entry["ours"].replace("@1", same), ours, re.DOTALL))

    def explains(self, request, place, real, ours):
        for entry in self.entries:
            if self.takes(entry, request, place, real, ours):
                entry["used"] += 1
                return True
        return False

    def unused(self):
        return [entry["text"] for entry in self.entries if not entry["used"]]
