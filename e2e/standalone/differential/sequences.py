"""Random sequences of calls. A sequence of a seed is always the same; what only a server knows stands in it as
@{rv:KEY}, @{first:KEY} (its first resourceVersion), @{uid:KEY}, @{name:KEY}, @{list} (the resourceVersion of the
last list), @{continue}; @NS is the namespace of the sequence. KEY is <plural>/<name>."""
import random

import bodies
from bodies import BY_PLURAL, KINDS, NAMES, named

MANAGERS = ["kubectl", "alpha", "beta", "controller"]
SELECTORS = ["tier=x", "tier!=x", "tier in (x,y)", "tier notin (x)", "tier", "!tier", "tier=x,tier!=y", "a==b"]
BAD_SELECTORS = ["tier in x", "=x", "tier=@", "bad key=x", "tier>x", "tier in (", ",", "tier=x,"]
FIELDS = ["metadata.name=a", "metadata.name!=a", "metadata.namespace=@NS", "metadata.name=a,metadata.name=b",
          "metadata.name=="]
BAD_FIELDS = ["spec.name=a", "metadata.name", "metadata.uid=1", "=a", "status.phase=x", "metadata.name=a,foo=b"]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
ACCEPTS = [TABLE, TABLE.split(",", 1)[0], PARTIAL, PARTIAL_LIST, "application/yaml", "text/html", "*/*", "application/*",
           "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=Table;v=v9;g=meta.k8s.io",
           "application/json;as=Nonsense;v=v1;g=meta.k8s.io", "application/json;q=0.5", "nonsense"]
MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


def call(method, path, body=None, query=(), key=None, **more):
    step = {"method": method, "path": path, "query": list(query), "headers": {}, "key": key}
    if body is not None:
        step["body"] = body
        step["headers"]["Content-Type"] = "application/json"
    step.update(more)
    return step


def write_options(rng, options):
    """Query of a write: mostly nothing."""
    query = []
    if rng.random() < 0.5:
        query.append(["fieldManager", rng.choice(MANAGERS)])
    elif rng.random() < 0.03:
        query.append(["fieldManager", rng.choice(["m" * 129, "a\tb", ""])])
    if rng.random() < 0.4:
        query.append(["fieldValidation", rng.choice(["Strict", "Strict", "Warn", "Ignore"])])
    elif rng.random() < 0.02:
        query.append(["fieldValidation", rng.choice(["strict", "Nonsense", ""])])
    if rng.random() < 0.08:
        query.append(["dryRun", "All"])
    elif rng.random() < 0.02:
        query.append(["dryRun", rng.choice(["None", "", "true"])])
    if rng.random() < 0.02:
        query.append([rng.choice(["nonsense", "pretty", "timeout"]), rng.choice(["1", "true", "x"])])
    return query + options


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.kinds = rng.sample(KINDS, 2)
        if rng.random() < 0.5:
            self.kinds[0] = KINDS[0]
        self.generated = 0

    def kind(self):
        return self.kinds[0] if self.rng.random() < 0.7 else self.kinds[1]

    def place(self):
        kind, name = self.kind(), self.rng.choice(NAMES)
        return kind, name, kind.plural + "/" + name

    # --- writes ---

    def create(self):
        rng = self.rng
        kind, name, key = self.place()
        body = named(rng, kind, name)
        if rng.random() < 0.06 and isinstance(body.get("metadata"), dict):
            self.generated += 1
            body["metadata"].pop("name", None)
            body["metadata"]["generateName"] = rng.choice(["gen%d-" % self.generated] * 9 + ["g" * 80 + "-"])
            key = "%s/gen%d" % (kind.plural, self.generated)
        step = call("POST", kind.path(), body, write_options(rng, []), key)
        return self.spoil_request(step)

    def changes(self, kind):
        """Of an object as it was seen last: [path, value] each, a value of None removes."""
        rng = self.rng
        fresh = kind.make(rng)
        part = rng.choice([k for k in fresh if k not in ("apiVersion", "kind", "metadata")] or ["data"])
        made = []

        def wrong(place, values):
            key, value = rng.choice(values)
            return [[place, key] if place else [key], value]

        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            made.append(rng.choice([
                [[part], fresh.get(part)],
                [[part], fresh.get(part)],
                [[part], rng.choice([None, {}, [], "x", 5])],
                [["metadata", "labels"], {"tier": rng.choice(["x", "y"])}],
                [["metadata", "annotations"], {"note": rng.choice(["1", "2"])}],
                [["metadata", "finalizers"], rng.choice([None, [], ["example.com/a"], ["example.com/b", "example.com/a"]])],
                [["metadata", "resourceVersion"], rng.choice([None, "@{first:%s}", "0", "x"])],
                [["metadata", "managedFields"], rng.choice([None, [], [{}]])],
                [["status"], {"phase": "running"}],
                [["unknwon"], 1],
                wrong("metadata", bodies.WRONG_METADATA), wrong(None, bodies.WRONG_HEADS),
            ]))
        return made

    def update(self):
        rng = self.rng
        kind, name, key = self.place()
        changes = self.changes(kind)
        for change in changes:
            if isinstance(change[1], str):
                change[1] = change[1].replace("%s", key)
        sub = "status" if rng.random() < (0.3 if kind.status else 0.02) else None
        if sub and kind.status:
            changes = changes[:1] + [[["status"], kind.status(rng)["status"]]]
        step = call("PUT", kind.path(name, sub), named(rng, kind, name), write_options(rng, []), key,
                    base=key, changes=changes)
        return self.spoil_request(step)

    def patch(self):
        rng = self.rng
        kind, name, key = self.place()
        sub = "status" if rng.random() < (0.3 if kind.status else 0.02) else None
        make = kind.status if sub and kind.status else kind.make
        way = rng.choice([MERGE, JSON, APPLY, APPLY, STRATEGIC if kind.core or rng.random() < 0.2 else MERGE])
        options = []
        if way == APPLY:
            body = make(rng)
            for part in [p for p in ("finalizers", "labels", "annotations") if not body["metadata"].get(p)]:
                body["metadata"].pop(part, None)  # what is empty is stored there, and is not to be seen
            if rng.random() < 0.85:
                body["metadata"]["name"] = name
            if rng.random() < 0.1:
                body = bodies.record_writes.spoiled(rng, body)
            elif rng.random() < 0.1:
                bodies.wrong_head(rng, body)
            options = [["force", "true"]] if rng.random() < 0.35 else []
            if rng.random() < 0.95:
                options.append(["fieldManager", rng.choice(MANAGERS[:3])])
        else:
            body = self.json_patch(make(rng)) if way == JSON else self.merge_patch(make(rng), way == STRATEGIC)
        if way != APPLY or rng.random() < 0.3:
            options = write_options(rng, options)
        if way != APPLY and rng.random() < 0.02:
            options.append(["force", "true"])
        step = call("PATCH", kind.path(name, sub), body, options, key)
        step["headers"]["Content-Type"] = way
        return self.spoil_request(step)

    def merge_patch(self, fresh, strategic):
        rng = self.rng
        patch = {}
        for key, value in fresh.items():
            if key in ("apiVersion", "kind", "metadata"):
                continue
            if isinstance(value, dict):
                chosen = rng.sample(sorted(value), rng.randint(0, len(value)))
                patch[key] = {k: rng.choice([value[k], value[k], value[k], None]) for k in chosen}
            else:
                patch[key] = value
        if rng.random() < 0.5:
            patch["metadata"] = rng.choice([
                {"labels": {"tier": rng.choice(["x", "y", None])}}, {"annotations": None}, {"finalizers": None},
                {"finalizers": ["example.com/a"]}, {"labels": None}, {"resourceVersion": "1"}, {"name": "other"},
                {"uid": "u"}, {"managedFields": None}, {"labels": {"tier": 5}}])
        if rng.random() < 0.08:
            patch["unknwon"] = rng.choice([1, {}])
        if strategic and rng.random() < 0.3:
            patch.update(rng.choice([
                {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
                {"metadata": {"labels": {"$patch": "replace", "k": "v"}}}, {"data": {"$patch": "delete"}},
                {"secrets": [{"$patch": "delete", "name": "s"}]}, {"secrets": [{"$patch": "replace"}, {"name": "t"}]},
                {"metadata": {"finalizers": ["example.com/b"], "$setElementOrder/finalizers": ["example.com/b", "example.com/a"]}},
                {"data": {"$retainKeys": ["a"], "a": "x"}}, {"metadata": {"$patch": "nonsense"}},
                {"secrets": [{"$patch": "delete"}]}, {"secrets": [{"fieldPath": "x"}]}]))
        if rng.random() < 0.03:
            return rng.choice([[], [patch], "x", 5, {}])
        return patch

    def json_patch(self, fresh):
        rng = self.rng
        part = rng.choice([k for k in fresh if k not in ("apiVersion", "kind", "metadata")] or ["data"])
        value = fresh.get(part)
        operations = []
        for _ in range(rng.randint(1, 3)):
            inner = rng.choice(sorted(value)) if isinstance(value, dict) and value else "x"
            got = value.get(inner) if isinstance(value, dict) else value
            operations.append(rng.choice([
                {"op": "add", "path": "/%s/%s" % (part, inner), "value": got},
                {"op": "add", "path": "/%s" % part, "value": value},
                {"op": "replace", "path": "/%s/%s" % (part, inner), "value": got},
                {"op": "remove", "path": "/%s/%s" % (part, inner)},
                {"op": "test", "path": "/%s/%s" % (part, inner), "value": got},
                {"op": "add", "path": "/metadata/labels", "value": {"tier": rng.choice(["x", "y"])}},
                {"op": "add", "path": "/metadata/labels/tier", "value": rng.choice(["x", "y"])},
                {"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations"},
                {"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"},
                {"op": "test", "path": "/metadata/name", "value": rng.choice(["a", "b"])},
                {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]},
                {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"},
                {"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/b"},
                {"op": "remove", "path": "/metadata/finalizers/0"},
                {"op": rng.choice(["nonsense", ""]), "path": "/spec"},
                {"op": "remove", "path": rng.choice(["/nothing", "", "spec", "/metadata/name/deeper"])},
                {"op": "add", "path": "/spec/unknwon", "value": 1},
                {"op": "replace", "path": "/metadata/name", "value": "other"},
                {"op": "replace", "path": "/kind", "value": "Other"},
                {"path": "/spec"}, {"op": "add", "value": 1}, {"op": "add", "path": "/metadata/annotations"},
            ]))
        if rng.random() < 0.04:
            return rng.choice([{}, [5], "x", [[]], {"op": "add"}])
        return operations

    def delete_options(self, key):
        rng = self.rng
        options = {}
        if rng.random() < 0.3:
            options["propagationPolicy"] = rng.choice(["Background", "Background", "Nonsense", ""])
        if rng.random() < 0.2:
            options["gracePeriodSeconds"] = rng.choice([0, 30, 1, -1])
        if rng.random() < 0.3:
            options["preconditions"] = rng.choice([
                {"uid": "@{uid:%s}" % key}, {"uid": "00000000-0000-0000-0000-000000000000"},
                {"resourceVersion": "@{rv:%s}" % key}, {"resourceVersion": "@{first:%s}" % key},
                {"uid": "@{uid:%s}" % key, "resourceVersion": "1"}, {}])
        if rng.random() < 0.08:
            options["orphanDependents"] = False
        for key, chance, values in (("dryRun", 0.08, [["All"], ["All"], [], ["Nonsense"]]), ("unknwon", 0.1, [1])):
            if rng.random() < chance:
                options[key] = rng.choice(values)
        if rng.random() < 0.15:
            options.update(rng.choice([{"kind": "DeleteOptions", "apiVersion": "v1"}, {"kind": "Nonsense"},
                                       {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}, {"apiVersion": "v9"},
                                       {"gracePeriodSeconds": "x"}, {"propagationPolicy": 5}, {"preconditions": "x"}]))
        query = []
        if not options and rng.random() < 0.3:
            query = rng.choice([[["propagationPolicy", "Background"]], [["gracePeriodSeconds", "0"]], [["dryRun", "All"]],
                                [["propagationPolicy", "Nonsense"]], [["gracePeriodSeconds", "x"]],
                                [["orphanDependents", "false"]], [["orphanDependents", "x"]]])
        return options or (rng.choice([None, None, {}])), query

    def delete(self):
        kind, name, key = self.place()
        options, query = self.delete_options(key)
        return self.spoil_request(call("DELETE", kind.path(name), options, query, key))

    def delete_collection(self):
        rng = self.rng
        kind, _, key = self.place()
        options, query = self.delete_options(key)
        if rng.random() < 0.6:
            query = query + [rng.choice([["labelSelector", rng.choice(SELECTORS)], ["fieldSelector", rng.choice(FIELDS)],
                                         ["labelSelector", rng.choice(BAD_SELECTORS)], ["limit", "1"],
                                         ["resourceVersion", "0"], ["fieldSelector", rng.choice(BAD_FIELDS)]])]
        return call("DELETE", kind.path(), options, query)

    # --- reads ---

    def get(self):
        rng = self.rng
        kind, name, key = self.place()
        query = []
        if rng.random() < 0.3:
            query.append(["resourceVersion", rng.choice(["0", "@{rv:%s}" % key, "@{first:%s}" % key, "x", "-1", ""])])
        if rng.random() < 0.05:
            query.append(["resourceVersionMatch", rng.choice(["Exact", "NotOlderThan"])])
        step = call(rng.choice(["GET"] * 9 + ["HEAD"]), kind.path(name, "status" if rng.random() < 0.06 else None),
                    None, query, key)
        if rng.random() < 0.4:
            step["headers"]["Accept"] = rng.choice(ACCEPTS[:4] * 3 + ACCEPTS)
        if rng.random() < 0.1:
            step["query"].append(["includeObject", rng.choice(["None", "Object", "Metadata", "Nonsense"])])
        return self.spoil_request(step)

    def list(self):
        rng = self.rng
        kind, _, key = self.place()
        query = []
        if rng.random() < 0.35:
            query.append(["limit", rng.choice(["1", "2", "500", "0", "-1", "x"])])
            if rng.random() < 0.5:
                query.append(["continue", rng.choice(["@{continue}"] * 6 + ["nonsense", "e30="])])
        if rng.random() < 0.35:
            query.append(["labelSelector", rng.choice(SELECTORS * 2 + BAD_SELECTORS)])
        if rng.random() < 0.25:
            query.append(["fieldSelector", rng.choice(FIELDS * 2 + BAD_FIELDS)])
        if rng.random() < 0.3:
            query.append(["resourceVersion", rng.choice(["0", "0", "@{list}", "@{rv:%s}" % key, "x", "-1", "1"])])
        if rng.random() < 0.2:
            query.append(["resourceVersionMatch", rng.choice(["Exact", "NotOlderThan", "Nonsense", ""])])
        if rng.random() < 0.03:
            query.append(["sendInitialEvents", "true"])
        step = call(rng.choice(["GET"] * 14 + ["HEAD"]), kind.path(), None, query)
        if rng.random() < 0.3:
            step["headers"]["Accept"] = rng.choice(ACCEPTS)
        if rng.random() < 0.08:
            step["query"].append(["includeObject", rng.choice(["None", "Object", "Metadata"])])
        if rng.random() < 0.06:
            step["path"] = kind.path(space=None)
            step["query"] = [q for q in query if q[0] not in ("limit", "continue", "resourceVersion", "fieldSelector")]
            step["query"].append(["fieldSelector", "metadata.namespace=@NS"])
        return step

    def watch(self):
        rng = self.rng
        kind, _, key = self.place()
        query = [["watch", rng.choice(["1", "true", "true"])]]
        version = rng.choice(["", "0", "@{list}", "@{list}", "@{rv:%s}" % key])
        if version:
            query.append(["resourceVersion", version])
        if rng.random() < 0.25:
            query.append(["labelSelector", rng.choice(["tier=x", "tier in (x,y)", "tier"])])
        if rng.random() < 0.15:
            query.append(["fieldSelector", rng.choice(["metadata.name!=a", "metadata.namespace=@NS"])])
        if rng.random() < 0.3:
            query.append(["allowWatchBookmarks", "true"])
        if rng.random() < 0.2:
            query += [["sendInitialEvents", rng.choice(["true", "true", "false"])], ["resourceVersionMatch", "NotOlderThan"]]
        if rng.random() < 0.06:
            query.append(rng.choice([["resourceVersion", "x"], ["resourceVersionMatch", "Exact"], ["timeoutSeconds", "x"],
                                     ["labelSelector", "tier in x"], ["fieldSelector", "spec.x=1"], ["limit", "1"],
                                     ["sendInitialEvents", "true"], ["continue", "x"]]))
        step = call("GET", kind.path(), None, query, do="watch", plural=kind.plural, version=kind.version)
        if rng.random() < 0.2:
            step["headers"]["Accept"] = rng.choice([TABLE, PARTIAL, "application/json"])
        return step

    # --- requests that are none ---

    def spoil_request(self, step):
        rng = self.rng
        if rng.random() > 0.05:
            return step
        if "body" not in step or rng.random() < 0.2:
            path = step["path"]
            step["path"] = rng.choice([path + "/x", path + "/status/x", path + "/scale", path + "/"] + [path.replace(*p, 1) for p in (
                ("/v1", "/v1beta9"), ("namespaces/", ""), ("@NS", "no-such-namespace"), ("@NS/", ""))])
            return step if "/no-such-namespace/" in step["path"] else dict(step, spoiled="(no path)")
        spoiled = rng.randrange(4)
        if spoiled == 0:
            step["headers"]["Content-Type"] = rng.choice(["text/plain", "application/xml", "", "application/json; charset=utf-8",
                                                          "application/yaml", "nonsense", MERGE, JSON, STRATEGIC, APPLY])
            return dict(step, spoiled="(sent as %s)" % step["headers"]["Content-Type"])
        if spoiled == 1:
            return dict(step, cut=rng.choice([0, 1, 0.5, 0.9, -1]), spoiled="(cut)")
        if spoiled == 2:
            return dict(step, duplicate=True, spoiled="(a key twice)")
        raw = rng.choice(["null", "[]", "5", "\"x\"", "{}", "{\"a\":", "{\"kind\": 5}", " ", "\x00", "{} {}", "{}x",
                          "a: [b", "kind: x", "\xff", "{\"metadata\": {\"name\": \"a\"", "@HUGE", "@DEEP"])
        return dict(step, raw=raw, spoiled="(raw %s)" % ascii(raw)[1:-1])

    def odd(self):
        """Something else than the usual calls of objects."""
        rng = self.rng
        kind, name, key = self.place()
        path = kind.path(name)
        made = rng.choice([
            call("POST", path, {}), call("PUT", kind.path(), {}), call("PATCH", kind.path(), {}), call("OPTIONS", path),
            call("GET", path, named=False), call("GET", "/apis/%s/no-such-kinds" % kind.version),
            call("GET", "/apis/no.such.group/v1/things"), call("GET", "/api/v2"), call("GET", "/nonsense"),
            call("GET", "/apis/" + bodies.GROUP), call("GET", "/apis/" + bodies.GROUP.split("/", 1)[0]),
            call("GET", "/apis/coordination.k8s.io/v1"), call("GET", "/apis/coordination.k8s.io"), call("GET", "/api"),
            call("GET", "/healthz"), call("GET", "/livez"), call("POST", "/readyz", {}),
            call("GET", "/apis/%s/tasks/a" % bodies.GROUP), call("GET", kind.base + "//" + kind.plural),
            call("GET", "/api/v1/namespaces/@NS"), call("GET", "/api/v1/namespaces/@NS/status"),
            call("GET", "/api/v1/namespaces", None, [["fieldSelector", "metadata.name=@NS"]]),
            call("DELETE", kind.path(name, "status")), call("POST", kind.path(name, "status"), {}),
            call("GET", kind.path(), None, [["watch", "x"]], do="watch", plural=kind.plural, version=kind.version), call("TRACE", path), call("GET", path, None, [["pretty", "true"]]),
            call("GET", kind.path(), None, [["resourceVersion", "0"], ["resourceVersionMatch", "Exact"]]),
            call("GET", path, None, [["watch", "false"]]), call("POST", kind.path(space=None), named_body(rng, kind)),
            call("POST", "/api/v1/namespaces", {"metadata": {"name": rng.choice(["Bad_Name", "", "x" * 64, "a.b"])}}),
        ])
        return made


def named_body(rng, kind):
    tree = kind.make(rng)
    tree["metadata"]["name"] = "a"
    return tree


STEPS = [(Maker.create, 22), (Maker.update, 16), (Maker.patch, 26), (Maker.delete, 9), (Maker.delete_collection, 3),
         (Maker.get, 9), (Maker.list, 11), (Maker.odd, 4)]


def ordinary(rng):
    made = Maker(rng)
    steps = []
    watches = 2 if rng.random() < 0.4 else 0
    if watches and rng.random() < 0.7:
        steps.append(made.watch())
        watches -= 1
    for kind in made.kinds:
        if rng.random() < 0.7:
            tree = kind.make(rng)
            tree["metadata"]["name"] = "a"
            steps.append(call("POST", kind.path(), tree, write_options(rng, []), kind.plural + "/a"))
    for _ in range(rng.randint(3, 12)):
        steps.append(rng.choices([s for s, _ in STEPS], [w for _, w in STEPS])[0](made))
        if watches and rng.random() < 0.15:
            steps, watches = steps + [made.list(), made.watch()], watches - 1
    return steps


def settled(key, until):
    plural, name = key.split("/")
    return {"do": "settle", "method": "GET", "path": BY_PLURAL[plural].path(name), "query": [], "headers": {},
            "key": key, "until": until}


def owners(rng):
    """An owner, what depends on it, and a deletion that takes its time."""
    kinds = rng.sample([k for k in KINDS if k.plural != "events"], 2)
    owner = kinds[0].plural + "/a"
    tree = dict(bodies.GOOD.get(kinds[0].plural, {}), apiVersion=kinds[0].version, kind=kinds[0].kind, metadata={"name": "a"})
    steps = [call("POST", kinds[0].path(), tree, key=owner)]
    policy = rng.choice(["Foreground", "Background", "Orphan"])
    dependents = []
    for name in rng.sample(NAMES[1:], rng.randint(1, 2)):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": kinds[0].version, "kind": kinds[0].kind, "name": "a", "uid": "@{uid:%s}" % owner}]}}
        if rng.random() < 0.5:
            body["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
        if rng.random() < 0.3:
            body["metadata"]["ownerReferences"][0]["controller"] = True
        dependents.append("configmaps/" + name)
        steps.append(call("POST", "/api/v1/namespaces/@NS/configmaps", body, key=dependents[-1]))
    if kinds[0].plural == "configmaps":
        steps.append(call("GET", BY_PLURAL["configmaps"].path(), None, []))
    if rng.random() < 0.5:
        steps.append(call("GET", kinds[0].path()))
        steps.append(call("GET", BY_PLURAL["configmaps"].path(), None, [["watch", "1"], ["resourceVersion", "@{list}"]], do="watch",
                          plural="configmaps", version="v1", unordered=True))
    options = {"propagationPolicy": policy} if rng.random() < 0.8 else {"orphanDependents": policy == "Orphan"}
    if options.get("orphanDependents") is False:
        policy = "Background"
    if rng.random() < 0.2:
        options["preconditions"] = {"uid": "@{uid:%s}" % owner}
    steps.append(call("DELETE", kinds[0].path("a"), options, [], owner, racy=policy != "Background"))
    steps.append(settled(owner, "gone"))
    steps += [settled(d, "free" if policy == "Orphan" else "gone") for d in dependents]
    steps.append(call("GET", BY_PLURAL["configmaps"].path()))
    return steps


def spaces(rng):
    """A namespace's life. What is in it has a finalizer: so it stays while it ends."""
    name, path = "@NS-x", "/api/v1/namespaces/@NS-x"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    if rng.random() < 0.4:
        body["metadata"]["labels"] = rng.choice([{"tier": "x"}, {"kubernetes.io/metadata.name": "other"}, {"bad key": "x"}])
    if rng.random() < 0.3:
        body["metadata"]["finalizers"] = ["example.com/a"]
    if rng.random() < 0.2:
        body["spec"] = {"finalizers": rng.choice([["kubernetes"], ["example.com/b"], []])}
    if rng.random() < 0.2:
        body["status"] = {"phase": rng.choice(["Active", "Terminating"])}
    made = "configmaps/a"
    content = "/api/v1/namespaces/@NS-x/configmaps"
    steps = [call("POST", "/api/v1/namespaces", body, write_options(rng, []), "namespaces/x"),
             call("POST", content, {"metadata": {"name": "a", "finalizers": ["example.com/a"]}}, [], made)]
    for _ in range(rng.randint(0, 4)):
        steps.append(rng.choice([
            call("PATCH", path, {"metadata": {"labels": {"tier": rng.choice(["y", None])}}}, [], "namespaces/x",
                 headers={"Content-Type": rng.choice([MERGE, STRATEGIC])}),
            call("PATCH", path, {"metadata": {"labels": {"kubernetes.io/metadata.name": None}}}, [], "namespaces/x",
                 headers={"Content-Type": MERGE}),
            call("PUT", path, body, [], "namespaces/x", base="namespaces/x", changes=[[["metadata", "labels"], {"tier": "z"}]]),
            call("PUT", path + "/status", body, [], "namespaces/x", base="namespaces/x", changes=[[["status", "phase"], "Terminating"]]),
            call("PUT", path, body, [], "namespaces/x", base="namespaces/x", changes=[[["spec", "finalizers"], []]]),
            call("PUT", path + "/finalize", body, [], "namespaces/x", base="namespaces/x", changes=[]),
            call("PATCH", path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": {"a": "b"}}},
                 [["fieldManager", "alpha"]], "namespaces/x", headers={"Content-Type": APPLY}),
            call("GET", path, None, [], "namespaces/x", headers={"Accept": rng.choice(ACCEPTS[:4])}),
            call("POST", "/api/v1/namespaces", body, [], "namespaces/x"),
            call("DELETE", path, None, [["dryRun", "All"]]),
            call("DELETE", "/api/v1/namespaces"),
        ]))
    if rng.random() < 0.7:
        steps.append(call("DELETE", path, rng.choice([None, {"propagationPolicy": "Background"}, {}]), [], "namespaces/x", racy=True))
        for _ in range(rng.randint(1, 3)):
            steps.append(rng.choice([
                call("POST", content, {"metadata": {"name": "b"}}, [], "configmaps/b"),
                call("POST", content, {"metadata": {"generateName": "gen0-"}}, [], "configmaps/b"),
                call("POST", "/apis/%s/namespaces/@NS-x/tasks" % bodies.GROUP, named_body(rng, KINDS[0])),
                call("PATCH", content + "/a", {"data": {"k": "v"}}, [], made, headers={"Content-Type": MERGE}, racy=True),
                call("PATCH", content + "/c", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
                     [["fieldManager", "alpha"]], "configmaps/c", headers={"Content-Type": APPLY}),
                call("POST", "/api/v1/namespaces", body, [], "namespaces/x"),
            ]))
    return steps


def sequence(seed, index):
    rng = random.Random("%s/%s" % (seed, index))
    return rng.choices([ordinary, owners, spaces], [94, 3, 3])[0](rng)
