"""Sends what the AdmissionReviews of webhook/tests/reviews are about to a real API server.

`seed` makes the objects that reviews of an UPDATE begin with, while the schemas take anything.
`clear` takes them away again, with their finalizers.
`check` sends every request as a dry run and compares the answer with <case>.expected.json:

    schema    the schemas and their rules alone: `withoutWebhook`, or else `allowed`
    webhook   the webhook alone: `allowed`, with its causes, warnings and defaults
    both      refused if either refuses

A review that no API server can send has to be in the list below, with the reason.
"""

import argparse
import copy
import http.client
import json
import pathlib
import re
import socket
import sys
import urllib.parse

IMPOSSIBLE = {
    "validate-task/other-subresource-is-allowed": "the kind has no scale",
}
SECRET = "planted-key"
WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')


class ApiServer:
    """Answers as (status, object, warnings)."""

    def __init__(self, path, namespace):
        self.path = path
        self.namespace = namespace
        self.connection = None

    def connect(self):
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(60)
        connection.sock.connect(self.path)
        return connection

    def ask(self, method, resource, body=None, content="application/json", **query):
        group = f"{resource['group']}/{resource['version']}/namespaces/{self.namespace}"
        query = urllib.parse.urlencode({"fieldValidation": "Ignore", **query})
        if self.connection is None:
            self.connection = self.connect()
        self.connection.request(
            method,
            f"/apis/{group}/{resource['path']}?{query}",
            None if body is None else json.dumps(body),
            {"Content-Type": content},
        )
        reply = self.connection.getresponse()
        text = reply.read()
        warnings = WARNING.findall(", ".join(reply.headers.get_all("Warning") or []))
        if reply.will_close:
            self.connection = None
        return reply.status, json.loads(text), [re.sub(r"\\(.)", r"\1", w) for w in warnings]


class Case:
    def __init__(self, number, file):
        self.file = file
        self.name = f"{file.parent.name}/{file.name.removesuffix('.request.json')}"
        self.hook = file.parent.name.split("-")[0]
        self.expected = json.loads(
            file.with_name(file.name.replace(".request.", ".expected.")).read_text("utf-8")
        )
        self.request = None
        self.seeded = f"review-{number}"
        if self.expected["code"] == 200:
            self.request = json.loads(file.read_text("utf-8"))["request"]

    def is_possible(self):
        return self.request is not None and self.name not in IMPOSSIBLE

    def operation(self):
        return self.request["operation"]

    def resource(self, *more):
        path = "/".join([self.request["resource"]["resource"], *[part for part in more if part]])
        return {**self.request["resource"], "path": path}

    def object(self, which, version=None):
        result = copy.deepcopy(self.request[which])
        for field in ("uid", "creationTimestamp", "resourceVersion", "generation", "namespace"):
            result["metadata"].pop(field, None)
        if self.operation() != "CREATE":
            result["metadata"]["name"] = self.seeded
        if version:
            result["metadata"]["resourceVersion"] = version
        return result


def cases(folder):
    files = sorted(pathlib.Path(folder).glob("*/*.request.json"))
    found = [Case(number, file) for number, file in enumerate(files)]
    unknown = IMPOSSIBLE.keys() - {case.name for case in found}
    if unknown:
        sys.exit(f"no such review: {', '.join(sorted(unknown))}")
    return [case for case in found if case.is_possible()]


# ---- seed ----


def must(answer, case, what):
    status, body, _ = answer
    if status not in (200, 201, 202):
        sys.exit(f"{case.name}: {what}: {status} {body.get('message')}")
    return body


def seed_one(server, case):
    """Returns the resourceVersion of the object that the request changes."""
    old = case.object("oldObject")
    deleted = old["metadata"].pop("deletionTimestamp", None)
    if deleted:
        old["metadata"].setdefault("finalizers", ["example.com/keep"])  # or it would be gone
    stored = must(server.ask("POST", case.resource(), old), case, "create")
    if "status" in old:
        stored["status"] = old["status"]
        path = case.resource(case.seeded, "status")
        stored = must(server.ask("PUT", path, stored), case, "status")
    if deleted:
        stored = must(server.ask("DELETE", case.resource(case.seeded)), case, "delete")
    return stored["metadata"]["resourceVersion"]


def seed(server, options):
    versions = {}
    for case in cases(options.reviews):
        if case.operation() != "CREATE":
            versions[case.name] = seed_one(server, case)
    pathlib.Path(options.state).write_text(json.dumps(versions), "utf-8")
    print(f"{len(versions)} objects made")


def clear(server, options):
    for case in cases(options.reviews):
        if case.operation() != "CREATE":
            body = {"metadata": {"finalizers": None}}
            server.ask("PATCH", case.resource(case.seeded), body, "application/merge-patch+json")
            server.ask("DELETE", case.resource(case.seeded))


# ---- check ----


def send(server, case, versions):
    subresource = case.request.get("subResource")
    if case.operation() == "CREATE":
        return server.ask("POST", case.resource(), case.object("object"), dryRun="All")
    if case.operation() == "DELETE":
        return server.ask("DELETE", case.resource(case.seeded), dryRun="All")
    body = case.object("object", versions[case.name])
    return server.ask("PUT", case.resource(case.seeded, subresource), body, dryRun="All")


def should_be_allowed(case, mode):
    by_webhook = case.expected["allowed"] and case.expected.get("validation") != "refused"
    by_schema = case.expected.get("withoutWebhook", "allowed" if by_webhook else "refused")
    return {
        "schema": by_schema == "allowed",
        "webhook": by_webhook,
        "both": by_webhook and by_schema == "allowed",
    }[mode]


def value_at(document, pointer):
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            document = document[-1 if part == "-" else int(part)]
        else:
            document = document.get(part)
    return document


def defaults_differ(case, body):
    for operation in case.expected.get("patch", []):
        if value_at(body, operation["path"]) != operation["value"]:
            return f"{operation['path']} is {value_at(body, operation['path'])}"
    return None


def added(case, body):
    """Fields of the spec that nobody asked for and no patch names."""
    patched = {op["path"].split("/")[2] for op in case.expected.get("patch", []) if "/spec/" in op["path"]}
    return body["spec"].keys() - case.request["object"]["spec"].keys() - patched


def differs(case, mode, answer):
    """What is wrong with the answer; None: nothing."""
    status, body, warnings = answer
    allowed = status in (200, 201, 202)
    said = body.get("message", "")
    if not allowed and status != 422:
        return f"{status} {said}"
    if not allowed and SECRET in json.dumps(body):
        return f"the key is in the message: {said}"
    if allowed != should_be_allowed(case, mode):
        return f"{'allowed' if allowed else 'refused'}: {said}"
    if mode == "webhook" and case.hook == "validate":
        if not allowed and body["details"].get("causes") != case.expected.get("causes"):
            return f"causes: {body['details'].get('causes')}"
        if set(warnings) != set(case.expected.get("warnings", [])):
            return f"warnings: {warnings}"
    if mode != "schema" and case.hook == "mutate" and allowed and case.operation() != "DELETE":
        if mode == "webhook" and added(case, body):
            return f"not asked for: {added(case, body)}"
        return defaults_differ(case, body)
    return None


def check(server, options):
    versions = json.loads(pathlib.Path(options.state).read_text("utf-8"))
    chosen = cases(options.reviews)
    wrong = 0
    for case in chosen:
        problem = differs(case, options.mode, send(server, case, versions))
        if problem:
            wrong += 1
            print(f"{options.mode}: {case.name}: {problem}")
    print(f"{options.mode}: {len(chosen)} requests, {wrong} not as expected")
    sys.exit(1 if wrong else 0)


VERBS = {"seed": seed, "check": check, "clear": clear}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("mode", nargs="?", choices=("schema", "webhook", "both"))
    for name in ("socket", "namespace", "reviews", "state"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    if (options.verb == "check") != (options.mode is not None):
        parser.error("only check needs a mode")
    server = ApiServer(options.socket, options.namespace)
    VERBS[options.verb](server, options)


if __name__ == "__main__":
    main()
