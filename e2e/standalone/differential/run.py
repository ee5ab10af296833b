#!/usr/bin/env python3
"""Random sequences of calls to a kube-apiserver and to propeller-standalone. What they do must be the same: codes, reasons,
fields, objects, the order of versions, events; not sentences. A difference counts when it is seen twice in a row.
With TEST_TALLY set, a line "differential <sequences that are the same> <those that are not>" is appended to it."""
import argparse
import collections
import copy
import http.client
import json
import os
import re
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import sequences
from server import JSON, Api, in_threads

WORKERS, SETTLE_S, LAST = 3, 20, "zz-last"
LISTS = "finalizers", "secrets", "imagePullSecrets", "ownerReferences"  # that a strategic merge patch may merge
RUN = int(time.time()) & 0xfffff  # no two runs have the same namespaces
MANAGER = "manager", "operation", "subresource", "time", "fieldsV1"
FIELD = re.compile("[fkv]:")  # in fieldsV1
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOW = re.compile(time.strftime("%Y-%m-") + r"\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
RULE = re.compile(r'(Invalid value: "(object|string|array|integer)"|Required value|Forbidden): (?!.* in body )')  # a CRD's rule, which ours checks at admission
Answer = collections.namedtuple("Answer", "code headers body")


def known(path):
    """The file of differences that stay: PLACE | REQUEST | REAL | OURS | WHY, the first four regular expressions."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip().split(" | ") for line in file if line.strip() and not line.startswith("#")]
    return [[re.compile(part.strip()) for part in line[:4]] for line in lines]


class Seen:
    """What a server said in a sequence: its uids and versions are told apart by the order in which they came."""

    def __init__(self):
        self.labels, self.loose, self.ordered = {}, set(), True  # loose: versions that a collector made, at any time

    def label(self, what, text):
        label = self.labels.setdefault((what, text), "<%s %d>" % (what, len(self.labels)))
        self.loose |= {label} if not self.ordered and label == "<%s %d>" % (what, len(self.labels) - 1) else set()
        return label

    def order(self):
        versions = sorted((int(text), label) for (what, text), label in self.labels.items() if what == "version")
        return [label for _, label in versions if label not in self.loose]

    def tree(self, value, key=None, of_object=False):
        if isinstance(value, dict):
            named = key == "metadata" and ("name" in value or "uid" in value)
            made = {self.tree(k): self.tree(value[k], k, named) for k in sorted(value)}
            if isinstance(made.get("managedFields"), list):
                made["managedFields"].sort(key=lambda entry: [json.dumps(entry.get(key)) for key in MANAGER] if isinstance(entry, dict) else [])
            return made
        if isinstance(value, list):
            if key == "items":  # those of a built-in kind do not say what they are in a cluster
                value = [{k: v for k, v in item.items() if k not in ("apiVersion", "kind")} for item in value]
            return [random_name(re.sub(r"^(\d+[smh])+$", "<age>", v)) if key == "cells" and isinstance(v, str) else self.tree(v, key)
                    for v in value]
        if not isinstance(value, str) or key in ("continue", "message"):
            return value if not isinstance(value, str) else "<%s>" % key
        if key == "resourceVersion":
            return self.label("version", value) if of_object and value.isdigit() else "<version>"
        value = UUID.sub(lambda m: self.label("uid", m.group()), NOW.sub("<now>", value))
        return random_name(value)


def bare(tree):
    """A built-in kind without members that say nothing, some of which only kube-apiserver writes, and its lists without order."""
    if isinstance(tree, dict):
        made = {key: bare(value) for key, value in tree.items()}
        made = {key: value for key, value in made.items() if FIELD.match(key) or value not in (None, "", [], {})}
        return {key: sorted(value, key=json.dumps) if key in LISTS and isinstance(value, list) else value for key, value in made.items()}
    return [bare(item) for item in tree] if isinstance(tree, list) else tree


def random_name(text):
    return re.sub(r"\b(gen\d+-)[0-9a-z]{5,10}\b", r"\1<random>", text)


def causes(body):
    return [c for c in (body.get("details") or {}).get("causes") or [] if c.get("field", "<nil>") != "<nil>"]


def is_covered(cause, others):
    """A rule of a CRD names the object that the field is in, and no index."""
    own, fields = cause["field"], [c["field"] for c in others]
    return own in fields or any(f.startswith(own) or own.startswith(f) for f in fields)


class Side:
    """One server during one sequence."""

    def __init__(self, api, space):
        self.connection, self.api, self.space = api.connect(), api, space
        self.seen, self.first, self.last, self.streams = Seen(), {}, {}, []
        self.list = self.continue_ = "0"
        self.disturbed = False  # it was too busy, or a write may have been made twice

    def fill(self, text, step, unknown="1"):
        first, last = ((of.get(step.get("of") or step["key"]) or {}).get("metadata", {}) for of in (self.first, self.last))
        values = {"NS": self.space, "rv": last.get("resourceVersion", unknown), "first": first.get("resourceVersion", unknown),
                  "uid": last.get("uid", "00000000-0000-0000-0000-000000000001"), "list": self.list, "continue": self.continue_}
        return re.sub(r"@(NS|rv|first|uid|list|continue)\b", lambda m: values[m.group(1)], text)

    def send(self, method, target, body=None, kind=None, accept=None):
        for last in (False, True):
            try:
                response = self.connection.call(method, target, body, Content_Type=kind, Accept=accept)
                answer = response.status, response.headers, response.read()
                break
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.disturbed |= method != "GET"
                if last:
                    raise
        self.disturbed |= answer[0] in (429, 503, 504)
        try:
            return Answer(*answer[:2], json.loads(answer[2] or b"null"))
        except ValueError:
            return Answer(*answer[:2], {})

    def target(self, step):
        query = urllib.parse.urlencode([(k, self.fill(v, step, self.list)) for k, v in step["query"]])
        return self.fill(step["path"], step) + ("?" + query if query else "")

    def refresh(self, path):
        """What may be older than the last write is as new as that once a list has waited for it."""
        if "/namespaces/" in path:
            self.send("GET", "/".join(self.fill(path, {"key": None}).split("/")[:-1 if path[-2:-1] == "/" else None]) +
                      "?labelSelector=none%3Dsuch")

    def ask(self, step):
        if step["method"] in ("GET", "DELETE"):
            self.refresh(step["path"])
        body = step["body"]
        if step.get("base") and step["key"] in self.last:
            body = copy.deepcopy(self.last[step["key"]])
            for path, value in step["changes"]:
                sequences.put(body, path, value)
        text = step.get("raw") or (None if body is None else self.fill(json.dumps(body), step))
        answer = self.send(step["method"], self.target(step), text, step["type"], step["accept"])
        metadata = answer.body.get("metadata") or {} if isinstance(answer.body, dict) else {}
        if answer.code < 300 and "items" in answer.body:
            self.list, self.continue_ = metadata.get("resourceVersion") or self.list, metadata.get("continue") or self.continue_
        elif answer.code < 300 and step["key"] and "uid" in metadata and not step["accept"] and ["dryRun", "All"] not in step["query"]:
            self.first.setdefault(step["key"], answer.body)
            self.last[step["key"]] = answer.body
        return answer

    def watch(self, step):
        self.refresh(step["path"])
        connection = self.api.connect()
        response = connection.call("GET", self.target(step), Accept=step["accept"])
        if response.status == 200:
            self.streams.append((step, connection, response))
            return Answer(200, {}, {})
        return Answer(response.status, response.headers, json.loads(response.read()))

    def settle(self, step):
        """Until an object is gone, or free of its owner."""
        self.seen.ordered, ends = False, time.monotonic() + SETTLE_S
        while True:
            answer = self.send("GET", self.target(step))
            metadata = answer.body.get("metadata") or {}
            done = step["until"] == "free" and "ownerReferences" not in metadata
            if answer.code == 404 or done or time.monotonic() > ends:
                return answer
            time.sleep(0.02)

    def events(self, step, connection, response):
        """Those before one of an object that is made now."""
        kind, events = step["kind"], []
        self.send("POST", self.fill(kind.path(), step), self.fill(json.dumps(dict(
            kind.good, apiVersion=kind.version, kind=kind.kind, metadata={"name": LAST, "labels": {"tier": "x"}})), step), JSON)
        connection.sock.settimeout(SETTLE_S)
        try:
            while line := response.readline():
                event = json.loads(line)
                thing = event["object"]["rows"][0]["object"] if event["object"].get("rows") else event["object"]
                event["object"].pop("columnDefinitions", None)  # told once, or again for some
                name = random_name((thing.get("metadata") or {}).get("name") or "")
                if event["type"] != "BOOKMARK" or "annotations" in thing["metadata"]:
                    events.append((event["type"], name, event["object"]))
                if name == LAST or event["type"] == "ERROR":
                    break
        except OSError:
            events.append(("LATE", "", {}))
        connection.close()
        events = sorted(events, key=lambda e: (e[1], e[0])) if step.get("unordered") else events
        return [["%s %s" % event[:2], self.seen.tree(event[2])] for event in events]


def differences(real, ours, place):
    """[(place, what the real one has, what ours has)]"""
    if isinstance(real, dict) and isinstance(ours, dict):
        return [d for key in sorted({*real, *ours}) for d in differences(real.get(key), ours.get(key), "%s.%s" % (place, key))]
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [d for i, pair in enumerate(zip(real, ours)) for d in differences(*pair, "%s[%d]" % (place, i))]
    return [] if (type(real), real) == (type(ours), ours) else [(place, json.dumps(real), json.dumps(ours))]


def is_custom(step):
    return "/apis/propeller." in step["path"]


def of_answers(step, sides, real, ours):
    both = real.code < 300 and ours.code < 300
    if step.get("racy") and (real.code < 300) == (ours.code < 300):
        return []
    if both:
        trees = [side.seen.tree(a.body) for side, a in zip(sides, (real, ours))]
        found = differences(*(trees if is_custom(step) else map(bare, trees)), "body")
        extras = [("code", "%d" % a.code, "media type %s" % a.headers.get("Content-Type")) for a in (real, ours)]
        warnings = [len(a.headers.get_all("Warning") or []) if a.headers else 0 for a in (real, ours)]
        return found + differences(*map(list, extras), "answer") + differences(*warnings, "warnings")
    told = ["%d %s" % (a.code, a.body.get("reason") if a.code >= 300 else "") for a in (real, ours)]
    if told[0] != told[1]:
        return [("refusal", *["%s %s" % (t, json.dumps(sorted({"%s: %s" % (c["field"], c.get("message")) for c in causes(a.body)})
                                                      if a.code >= 300 else a.body)) for t, a in zip(told, (real, ours))])]
    theirs, mine = causes(real.body), causes(ours.body)
    at_schema = is_custom(step) and "admission webhook" not in (real.body.get("message") or "")
    lost = [c for c in theirs if not is_covered(c, mine) and not (mine and RULE.match(c.get("message") or ""))]
    more = [c for c in mine if not is_covered(c, theirs) and not (at_schema and theirs)]  # admission is not asked there
    return [("field", "%s: %s" % (c["field"], c.get("message")), "") for c in lost] + [
        ("field", "", "%s: %s" % (c["field"], c.get("message"))) for c in more]


class Runner:
    def __init__(self, options):
        self.apis, self.known, self.options = (Api(options.real), Api(options.ours)), known(options.known), options
        self.lock, self.began, self.shown, self.counts = threading.Lock(), time.monotonic(), set(), collections.Counter()
        self.indices = iter(range(options.sequences) if options.only is None else [options.only])

    def run(self, steps, space):
        """[(number of the step, its request, [(place, real, ours)])] of what differs and is not known; None: was disturbed."""
        sides, found = [Side(api, space) for api in self.apis], []

        def judge(number, request, those):
            left = [d for d in those if not any(all(p.search(t) for p, t in zip(entry, (d[0], request, *d[1:]))) for entry in self.known)]
            if left:
                found.append((number, request, left))

        for side in sides:
            side.send("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": space}}), JSON)
        for number, step in enumerate(steps):
            real, ours = (getattr(side, step["do"])(step) for side in sides)
            for _ in range(5):
                if "failed calling webhook" in json.dumps(real.body):
                    real = sides[0].ask(step)
            those = of_answers(step, sides, real, ours)
            judge(number, request_of(step), those)
            if (real.code < 300) != (ours.code < 300) or any("deletionTimestamp" in d[0] for d in those):
                return found  # the two have gone different ways
        for streams in zip(*[side.streams for side in sides]):
            told = [side.events(*stream) for side, stream in zip(sides, streams)]
            told = told if is_custom(streams[0][0]) else [bare(events) for events in told]
            names = [[event[0] for event in events] for events in told]
            judge(len(steps), "stream of " + request_of(streams[0][0]), differences(*names, "events") or differences(*told, "events"))
        judge(len(steps), "", differences(*[side.seen.order() for side in sides], "order of versions"))
        return None if found and sides[0].disturbed else found

    def decide(self, index):
        """The differences that were there twice; None: the real server was too busy. A single one says nothing."""
        steps, space, runs = sequences.sequence(self.options.seed, index), "d%s-%d-%05x" % (self.options.seed, index, RUN), []
        for number in range(4):
            found = self.run(steps, "%s-t%d" % (space, number))
            runs += [found] if found is not None else []
            if len(runs) == 2 or runs == [[]]:
                break
        twice = signs(runs[0]) & signs(runs[-1]) if runs else set()
        new = twice - self.shown
        with self.lock:
            self.shown |= twice
            self.counts["differ" if twice else "same" if runs else "too busy"] += 1
            self.counts["differed once"] += bool(runs and runs[0] and not twice)
        for difference in [d for d in runs[-1] if signs([d]) & new] if new else []:
            self.show(index, self.shrink(steps[:difference[0] + 1], signs([difference]), space), difference)

    def shrink(self, steps, wanted, space):
        """The steps without those that the difference does not need."""
        for number in reversed(range(len(steps) - 1)):
            fewer = steps[:number] + steps[number + 1:]
            if signs(self.run(fewer, "%s-s%d" % (space, number))) & wanted:
                steps = fewer
        return steps

    def show(self, index, steps, difference):
        _, request, left = difference
        lines = ["", "sequence %d: %s" % (index, request)]
        lines += ["  %s\n    real: %.400s\n    ours: %.400s" % place for place in left[:6]]
        lines += ["      %s %s" % (request_of(s), json.dumps(s.get("changes") or s["body"])[:300]) for s in steps]
        with self.lock:
            print("\n".join(lines), "  again: make differential SEED=%s ONLY=%d" % (self.options.seed, index), sep="\n", flush=True)
            if os.environ.get("TEST_FAILURES"):
                with open(os.environ["TEST_FAILURES"], "a", encoding="utf-8") as file:
                    print("differential, sequence %d of seed %s:\n    %.190s" % (index, self.options.seed, request), file=file)

    def work(self, _):
        while not self.options.seconds or time.monotonic() - self.began < self.options.seconds:
            with self.lock:
                index = next(self.indices, None)
            if index is None:
                return
            self.decide(index)


def request_of(step):
    query = "&".join("%s=%s" % tuple(q) for q in step["query"])
    return " ".join(filter(None, [step["do"] if step["do"] != "ask" else "", step["method"], step["path"] + ("?" + query if query else ""),
                                  step["type"] if step["method"] == "PATCH" else "", step["accept"], step.get("raw")]))


def signs(found):
    return {(re.sub(r"\?.*", "", request), re.sub(r"\d+", "", d[0])) for _, request, left in found or [] for d in left}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--real", "--ours", "--known"):
        parser.add_argument(name, required=True)
    for name, default in (("--sequences", 300), ("--seed", 1), ("--only", None), ("--seconds", 0)):
        parser.add_argument(name, type=int, default=default)
    runner = Runner(parser.parse_args())
    in_threads(WORKERS, runner.work)
    counts = runner.counts
    print("differential: seed %d, %.0f s: %s" % (runner.options.seed, time.monotonic() - runner.began, dict(counts)))
    if os.environ.get("TEST_TALLY"):
        with open(os.environ["TEST_TALLY"], "a", encoding="utf-8") as file:
            print("differential", counts["same"], counts["differ"], file=file)
    sys.exit(1 if counts["differ"] or not counts["same"] else 0)


if __name__ == "__main__":
    main()
