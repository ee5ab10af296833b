#!/usr/bin/env python3
"""Random sequences of calls to a kube-apiserver and to propeller-standalone: the answers must be the same.

usage: run.py --real KUBECONFIG --ours KUBECONFIG --known FILE [--sequences N] [--seed N] [--only INDEX] [--seconds N]
With TEST_TALLY set, a line "differential <sequences that are the same> <those that are not>" is appended to it.
"""
import argparse
import copy
import json
import os
import queue
import re
import sys
import threading
import time
import urllib.parse

import bodies
import compare
import sequences
from servers import Server, Session, Watch

HOLDER = re.compile(r"@\{(\w+)(?::([^}]*))?\}")
SETTLE_S = 120
KEPT_S = 8  # for the dependents of an object that stays: most of them stay, too
LAST = "zz-last"
MAX_SHOWN = 40
RUN = "%05x" % (int(time.time()) & 0xfffff)  # no two runs have the same namespaces
MAX_PLACES = 6
WEBHOOK_TRIES = 5
SEQUENCE_TRIES = 4
HUGE = b'{"metadata":{"name":"a"},"data":{"a":"' + b"x" * (4 << 20) + b'"}}'
DEEP = b'{"metadata":{"name":"a"},"data":' + b"[" * 20000 + b"]" * 20000 + b"}"


class Side:
    """One server during one sequence: what was seen of the objects."""

    def __init__(self, session, space):
        self.session, self.space = session, space
        self.seen = compare.Seen(session.server.name == "real")
        self.first, self.last = {}, {}
        self.list_version, self.continue_token = "0", "none"
        self.watches = []
        self.kept = False  # what was deleted stays, for a controller that does not run

    def value(self, match, unknown):
        what, key = match.group(1), match.group(2)
        metadata = (self.last.get(key) or {}).get("metadata", {})
        if what == "rv":
            return metadata.get("resourceVersion") or unknown
        if what == "first":
            return (self.first.get(key) or {}).get("metadata", {}).get("resourceVersion") or unknown
        if what == "uid":
            return metadata.get("uid", "00000000-0000-0000-0000-000000000001")
        if what == "name":
            return metadata.get("name", "a")
        return self.list_version if what == "list" else self.continue_token

    def text(self, text, unknown=None):
        """unknown: the version of an object that is not there; else that of the last list."""
        return HOLDER.sub(lambda match: self.value(match, unknown or self.list_version), text.replace("@NS", self.space))

    def fill(self, tree):
        """Of a body. The version of a list may be that of an object in it, or not, as others write."""
        if isinstance(tree, dict):
            return {key: self.fill(value) for key, value in tree.items()}
        if isinstance(tree, list):
            return [self.fill(value) for value in tree]
        return self.text(tree, "1") if isinstance(tree, str) else tree

    def target(self, step):
        query = urllib.parse.urlencode([(k, self.text(v)) for k, v in step["query"]])
        return self.text(step["path"]) + ("?" + query if query else "")

    def body(self, step):
        if "raw" in step:
            return {"@HUGE": HUGE, "@DEEP": DEEP}.get(step["raw"]) or step["raw"].encode("latin-1")
        if "body" not in step:
            return None
        tree = step["body"]
        if step.get("base") in self.last:
            tree = copy.deepcopy(self.last[step["base"]])
            for path, value in step["changes"]:
                change(tree, path, value)
        text = json.dumps(self.fill(tree))
        if step.get("duplicate"):
            text = re.sub(r'("\w+"): ("\w*"|\d+)', r"\1: \2, \1: \2", text, count=2)
        if "cut" in step:
            cut = step["cut"]
            text = text[:int(len(text) * cut) if 0 < cut < 1 else cut]
        return text.encode()

    def remember(self, step, answer):
        body = answer.body
        if answer.code >= 300 or not isinstance(body, dict) or step["headers"].get("Accept") == "application/yaml":
            return
        metadata = body.get("metadata") or {}
        if ("items" in body or "rows" in body) and ["resourceVersion", "1"] in step["query"]:
            return  # from where one may watch, or not: a cluster forgets every five minutes only
        if "items" in body or "rows" in body:
            self.list_version = metadata.get("resourceVersion") or self.list_version
            self.continue_token = metadata.get("continue") or self.continue_token
        elif step.get("key") and metadata.get("uid") and body.get("kind") not in ("Status", "PartialObjectMetadata") \
                and "dryRun" not in dict(step["query"]):
            self.first.setdefault(step["key"], body)
            self.last[step["key"]] = body

    def ask(self, step):
        # What may be older than the last write is as new as it, once a list has waited for that; its version, too.
        if step["method"] in ("GET", "DELETE") and any(k == "resourceVersion" and v for k, v in step["query"]):
            self.refresh(step)
        orphans = ["orphanDependents", "x"] in step["query"]  # it is true: the collector writes once more
        if orphans:
            self.seen.ordered = False
        answer = self.session.ask(step["method"], self.target(step), step["headers"], self.body(step),
                                  step.get("named", True))
        self.remember(step, answer)
        if orphans:
            self.collected(step)
        return answer

    def collected(self, step):
        """The collector has been at what was deleted: its writes come before those of the next call."""
        ends = time.monotonic() + SETTLE_S
        while time.monotonic() < ends:
            body = self.session.ask("GET", self.text(step["path"]), {}).body
            objects = body.get("items") or [body] if isinstance(body, dict) else []
            if not any("orphan" in ((o.get("metadata") or {}).get("finalizers") or []) for o in objects):
                return
            time.sleep(0.02)

    def refresh(self, step):
        base, _, rest = self.text(step["path"]).partition("/namespaces/")
        plural = (rest.split("/") + [""])[1]
        if plural:
            self.session.ask("GET", "%s/%s?labelSelector=none%%3Dsuch" % (base, plural), {})

    def watch(self, step):
        self.refresh(step)
        self.watches.append((step, Watch(self.session.server, self.target(step), step["headers"])))
        return self.watches[-1][1].answer

    def settled(self, step):
        self.seen.ordered = False

        def good(answer):
            metadata = answer.body.get("metadata") or {}
            if step["until"] == "gone":  # or kept by nothing but the finalizer of a controller that does not run
                left = metadata.get("finalizers") or []
                return answer.code == 404 or ("deletionTimestamp" in metadata and left and all(map(bodies.is_ours, left)))
            return answer.code == 404 or "ownerReferences" not in metadata

        ends = time.monotonic() + (KEPT_S if self.kept else SETTLE_S)
        while True:
            answer = self.session.ask("GET", self.target(step), {})
            if good(answer) or time.monotonic() > ends:
                self.kept |= answer.code != 404
                return answer
            time.sleep(0.02)

    def finish(self):
        for kind in {(step["plural"], step["version"]) for step, _ in self.watches}:
            kind = next(k for k in bodies.KINDS if (k.plural, k.version) == kind)
            self.session.ask("POST", self.text(kind.path()), {"Content-Type": "application/json"},
                             json.dumps(self.fill(last_of(kind))).encode())

    def close(self):
        for _, watch in self.watches:
            watch.close()


def last_of(kind):
    tree = {"apiVersion": kind.version, "kind": kind.kind, "metadata": {"name": LAST, "labels": {"tier": "x"}}}
    tree.update(bodies.GOOD.get(kind.plural, {}))
    if kind.plural == "events":
        tree.update({k: v for k, v in kind.make(FIRST).items() if k not in tree})
        tree.pop("firstTimestamp", None)
    return tree


class First:
    """Of every choice the first."""
    choice = staticmethod(lambda values: values[0])
    random = staticmethod(lambda: 0.99)
    randint = staticmethod(lambda low, high: low)
    sample = staticmethod(lambda values, count: list(values)[:count])


FIRST = First()


def change(tree, path, value):
    for key in path[:-1]:
        if not isinstance(tree.get(key), dict):
            tree[key] = {}
        tree = tree[key]
    if value is None:
        tree.pop(path[-1], None)
    else:
        tree[path[-1]] = copy.deepcopy(value)


def request_of(step):
    if step.get("do") == "settle":
        return "settle %s %s" % (step["key"], step["until"])
    query = "&".join("%s=%s" % tuple(q) for q in step["query"])
    kind = step["headers"].get("Content-Type", "") if step["method"] == "PATCH" else ""
    return " ".join(filter(None, [step["method"], step["path"] + ("?" + query if query else ""), kind,
                                  step["headers"].get("Accept"), step.get("spoiled")]))


def message_of(answer):
    return answer.body.get("message") or "" if isinstance(answer.body, dict) else ""


def webhook_failed(answer):
    """Nothing was written: on a machine with too much to do a connection to the webhook may end."""
    return answer.code == 500 and "failed calling webhook" in message_of(answer)


def cannot_be_had(step, answer):
    """In the form that Accept wishes: ours answers it in another one, which is then asked for there."""
    return step["method"] in ("GET", "HEAD") and "Accept" in step["headers"] and (
        answer.code == 406 or (answer.code == 500 and (step["method"] == "HEAD" or message_of(answer) == "content is not a list")))


def as_ours(step):
    accept, partial = step["headers"]["Accept"], "as=PartialObjectMetadata"
    if partial + "List;" in accept:
        accept = accept.replace(partial + "List;", partial + ";")
    elif partial in accept:
        accept = accept.replace(partial, partial + "List")
    else:
        accept = "application/json"
    return dict(step, headers=dict(step["headers"], Accept=accept))


class Runner:
    def __init__(self, real, ours, known):
        self.sessions = [Session(real), Session(ours)]
        self.known = known

    def run(self, steps, space):
        """What differs and is not known: (number of the step, its request, [(place, real, ours)])."""
        self.sessions[0].disturbed = False
        sides = [Side(session, space) for session in self.sessions]
        found = []
        for side in sides:
            side.session.ask("POST", "/api/v1/namespaces", {"Content-Type": "application/json"},
                             json.dumps({"metadata": {"name": space}}).encode())
        try:
            for number, step in enumerate(steps):
                if not self.step(sides, number, step, found):
                    return found
            self.watches(sides, len(steps), found)
        finally:
            for side in sides:
                side.close()
        orders = [side.seen.order() for side in sides]
        self.judge(found, len(steps), "order of versions", compare.differences(*orders))
        return found

    def was_disturbed(self):
        """The real server was: when ours is, that is a difference."""
        return self.sessions[0].disturbed

    def step(self, sides, number, step, found):
        """False: the two have gone different ways."""
        way = {"watch": Side.watch, "settle": Side.settled}.get(step.get("do"), Side.ask)
        answers = [way(side, step) for side in sides]
        for _ in range(WEBHOOK_TRIES):
            if not webhook_failed(answers[0]):
                break
            answers[0] = way(sides[0], step)
        if cannot_be_had(step, answers[0]):
            answers[0] = way(sides[0], as_ours(step))
        if step["headers"].get("Accept") == "application/yaml":  # ours says it in JSON: no versions are seen in it
            normal = [{"success": a.code < 300, "code": a.code} for a in answers]
        else:
            normal = [compare.normal(a, side.seen, step["method"]) for a, side in zip(answers, sides)]
        if step.get("racy"):
            normal = [{"success": n["success"], "outcome": n["success"]} for n in normal]
        different = compare.answer_differences(*normal)
        one_is_deleted = any("deletionTimestamp" in place for place, _, _ in different)
        if one_is_deleted:  # and a webhook is not asked about that one
            different = [d for d in different if d[0].lstrip(".") != "warnings"]
        self.judge(found, number, request_of(step), different)
        if one_is_deleted:
            return False
        return (answers[0].code < 300) == (answers[1].code < 300)

    def watches(self, sides, number, found):
        for side in sides:
            side.finish()
        for (step, real), (_, ours) in zip(sides[0].watches, sides[1].watches):
            if real.code != 200 or ours.code != 200:
                continue
            for watch in (real, ours):
                watch.wait(lambda events: any(compare.name_of(e) == LAST or e["type"] == "ERROR" for e in events), SETTLE_S)
            request = "stream of " + request_of(step)
            told = [compare.normal_events(w.events, s.seen, LAST, step.get("unordered"))
                    for w, s in zip((real, ours), sides)]
            short = [[(e["type"], compare.name_of(e)) for e in events] for events in told]
            different = compare.differences(*[["%s %s" % e for e in s] for s in short]) or compare.differences(*told)
            self.judge(found, number, request, different)

    def judge(self, found, number, request, differences):
        left = [(place.lstrip(".") or "all", real, ours) for place, real, ours in differences]
        left = [d for d in left if not self.known.explains(request, *d)]
        if left:
            found.append((number, request, left))


def signature(difference):
    _, request, ((place, real, ours), *_) = difference
    words = [request.split("?")[0].split(" ")[0], place, real, ours]
    return tuple(re.sub(r"\[\d+\]|\"[^\"]*\"|'[^']*'|\d+|/[abc]\b", "_", w)[:120] for w in words)


def decide(runner, steps, space):
    """(what differs each time, whether it did once and not again); None: the real server was too busy each time."""
    runs = []
    for number in range(SEQUENCE_TRIES):
        found = runner.run(steps, "%s-t%d" % (space, number))
        if not found or not runner.was_disturbed():
            runs.append(found)
        if len(runs) == 2 or runs == [[]]:
            break
    if not runs:
        return None
    before = {signature(d)[:3] for d in runs[0]}
    found = [d for d in runs[-1] if signature(d)[:3] in before]
    return found, bool(runs[0]) and not found


def shrink(runner, steps, wanted, space):
    """The steps without those that the difference does not need."""
    number = len(steps) - 1
    count = 0
    while number >= 0:
        fewer = steps[:number] + steps[number + 1:]
        count += 1
        if any(signature(d)[:3] == signature(wanted)[:3] for d in runner.run(fewer, "%s-s%d" % (space, count))):
            steps = fewer
        number -= 1
    return steps


class Report:
    def __init__(self, arguments):
        self.arguments = arguments
        self.lock = threading.Lock()
        self.counts, self.failed, self.compared = {}, set(), 0
        self.once, self.undecided = [], []
        self.began = time.monotonic()

    def is_over(self):
        return self.arguments.seconds is not None and time.monotonic() - self.began > self.arguments.seconds

    def count(self, index, decided):
        with self.lock:
            if decided is None:
                self.undecided.append(index)
                return []
            found, once = decided
            self.compared += 1
            if found:
                self.failed.add(index)
            if once:
                self.once.append(index)
            return found

    def tally(self):
        if os.environ.get("TEST_TALLY"):
            with open(os.environ["TEST_TALLY"], "a", encoding="utf-8") as file:
                print("differential", self.compared - len(self.failed), len(self.failed), file=file)

    def is_new(self, difference):
        with self.lock:
            sign = signature(difference)
            self.counts[sign] = self.counts.get(sign, 0) + 1
            return self.counts[sign] == 1 and (self.arguments.brief or len(self.counts) <= MAX_SHOWN)

    def show(self, index, steps, difference):
        number, request, left = difference
        with self.lock:
            print("\nsequence %d: %s" % (index, request))
            if os.environ.get("TEST_FAILURES"):
                with open(os.environ["TEST_FAILURES"], "a", encoding="utf-8") as file:
                    print("differential, sequence %d of seed %s:\n    %s" % (index, self.arguments.seed, request[:190]), file=file)
            for place, real, ours in left[:MAX_PLACES]:
                print("  %s\n    real: %s\n    ours: %s" % (place, compare.shown(real), compare.shown(ours)))
            for step in steps[number:number + 1] if self.arguments.brief else steps:
                print("      %s%s" % (request_of(step), shown_body(step)))
            print("  again: make differential SEED=%s ONLY=%d" % (self.arguments.seed, index), flush=True)


def shown_body(step):
    if "raw" in step:
        return " raw " + step["raw"]
    more = "".join(" %s=%s" % (k, json.dumps(step[k])) for k in ("changes", "cut", "duplicate") if step.get(k) is not None)
    return more + (" " + compare.shown(step["body"]) if "body" in step and "changes" not in step else "")


def work(runner, indices, report, arguments):
    while not report.is_over():
        try:
            index = indices.get_nowait()
        except queue.Empty:
            return
        space = "d%s-%d-%s" % (arguments.seed, index, RUN)
        steps = sequences.sequence(arguments.seed, index)
        for difference in report.count(index, decide(runner, steps, space)):
            if report.is_new(difference):
                few = steps if arguments.brief else shrink(runner, steps[:difference[0] + 1], difference, space)
                report.show(index, few, difference)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--real", "--ours", "--known"):
        parser.add_argument(name, required=True)
    parser.add_argument("--sequences", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", type=int)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="no further sequence begins after so many")
    parser.add_argument("--brief", action="store_true", help="the call alone, instead of the shortest sequence")
    arguments = parser.parse_args()
    known = compare.Known(arguments.known)
    report = Report(arguments)
    indices = queue.Queue()
    for index in [arguments.only] if arguments.only is not None else range(arguments.sequences):
        indices.put(index)
    errors = []

    def worker():
        try:
            work(Runner(Server("real", arguments.real), Server("ours", arguments.ours), known), indices, report, arguments)
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)
            raise

    threads = [threading.Thread(target=worker) for _ in range(arguments.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if arguments.only is None and arguments.seconds is None:
        for entry in known.unused():
            print("no longer seen: %s" % entry)
    for indices, what in ((report.once, "differed once and not again"), (report.undecided, "not compared, the real server was too busy")):
        if indices:
            print("%s: sequences %s" % (what, " ".join(map(str, sorted(indices)))))
    print("differential: %d sequences of seed %s in %.0f s, %d of them with %d differences that are not known"
          % (report.compared, arguments.seed, time.monotonic() - report.began, len(report.failed), len(report.counts)))
    report.tally()
    sys.exit(1 if report.failed or errors or not report.compared else 0)


if __name__ == "__main__":
    main()
