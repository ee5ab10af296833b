"""Random sequences of calls; that of a seed and an index is always the same. What only a server knows stands in them as
@rv, @first, @uid (of the object of a step's key; @first is its first resourceVersion), @list (the resourceVersion of the
last list), @continue; @NS is the namespace of the sequence. A key is <plural>/<name>."""
import copy
import random

GROUP = "propeller.propeller.abstractmachines.fr/v1"
NAMES, MANAGERS = ["a", "b", "c"], ["kubectl", "alpha", "beta"]
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
AS = "application/json;as=%s;v=v1;g=meta.k8s.io"
ACCEPTS = [AS % "Table" + ",application/json", AS % "PartialObjectMetadata", AS % "PartialObjectMetadataList"]
SELECTORS = ["tier=x", "tier!=x", "tier in (x,y)", "tier notin (x)", "tier", "!tier", "tier=x,tier!=y", "tier in x", "bad key=x"]
FIELDS = ["metadata.name=a", "metadata.name!=a", "metadata.namespace=@NS", "metadata.name=a,metadata.name=b", "spec.name=a"]
WRONG = [None, "", "zz", 0, -5, 1.5, True, [None], {}, {"zz": 1}, "x" * 200]  # one of these instead of a good value
METADATA = {"labels": [{"tier": "x"}, {"tier": "y"}, {"tier": "x"}, {}, None], "annotations": [{"note": "1"}, {"note": "2"}],
            "finalizers": [["example.com/a"], ["example.com/b", "example.com/a"], []]}
WRONG_METADATA = {"labels": [{"bad key": "x"}, {"tier": "@@"}, {"tier": 5}, []], "annotations": [{"a b": "x"}, {"n": "x" * 300000}],
                  "finalizers": ["x"], "name": ["Upper", "x" * 254, "", "other", "a/b", 5], "namespace": ["elsewhere"],
                  "uid": ["00000000-0000-0000-0000-000000000000"],
                  "ownerReferences": [[{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]],
                  "managedFields": [[{"manager": "m", "operation": "Nonsense"}]]}


class Kind:
    """good: what nobody refuses; fields: values that some of its fields may have; status: those of a status."""

    def __init__(self, plural, kind, version, good, fields, status=None):
        self.plural, self.kind, self.version, self.good, self.fields, self.status = plural, kind, version, good, fields, status
        self.core = version != GROUP

    def path(self, name=None, sub=None, space="@NS"):
        base = ("/apis/" if "/" in self.version else "/api/") + self.version
        return "/".join(filter(None, [base, "namespaces/" + space, self.plural, name, sub]))

    def make(self, rng, name, wrong=0.15):
        """An object with some of its fields; of some objects one is wrong."""
        tree = dict(copy.deepcopy(self.good), apiVersion=self.version, kind=self.kind, metadata={"name": name})
        for path in rng.sample(sorted(self.fields), rng.randint(0, min(4, len(self.fields)))):
            put(tree, path, rng.choice(self.fields[path]))
        for path in rng.sample(sorted(METADATA), rng.randint(0, 2)):
            put(tree, "metadata." + path, rng.choice(METADATA[path]))
        if rng.random() < wrong:
            put(tree, *self.mistake(rng))
        return tree

    def mistake(self, rng):
        if rng.random() < 0.4:
            name = rng.choice(sorted(WRONG_METADATA))
            return "metadata." + name, rng.choice(WRONG_METADATA[name])
        if rng.random() < 0.2:
            return rng.choice(["unknwon", "spec.unknwon"]), 1
        return rng.choice(sorted(self.fields)), rng.choice(WRONG)

    def with_status(self, rng):
        status = {path: rng.choice(values) for path, values in self.status.items() if rng.random() < 0.6}
        return {"apiVersion": self.version, "kind": self.kind, "metadata": {}, "status": status}


def put(tree, path, value):
    *above, last = path.split(".") if isinstance(path, str) else path
    for key in above:
        if not isinstance(tree.get(key), dict):
            tree[key] = {}
        tree = tree[key]
    if value is None:
        tree.pop(last, None)
    else:
        tree[last] = copy.deepcopy(value)


CONDITIONS = [[{"type": t, "status": "True", "reason": "A", "message": "", "lastTransitionTime": "2026-11-21T10:00:00Z"} for t in types]
              for types in (["Ready"], ["Done", "Ready"], ["Ready", "Ready"])]
REFERENCE = {"apiVersion": GROUP, "kind": "Task", "name": "a", "namespace": "@NS"}
PARTICIPANTS = [["p"], ["p", "q"], ["r", "p"]]
KINDS = [
    Kind("tasks", "Task", GROUP, {"spec": {"name": "t", "imageUrl": "i"}}, {
        "spec.name": ["t", "add"], "spec.imageUrl": ["registry.example/a", None], "spec.file": ["AGFzbQEAAAA="],
        "spec.cliArgs": [["a", ""], []], "spec.inputs": [[1, "2", 1.5, {"a": [1]}], []], "spec.env": [{"A": "b"}, {"A": "", "B": "c"}],
        "spec.propletSelector": [{}, {"propletId": "p"}, {"matchLabels": {"a": "b"}, "matchCapabilities": ["gpu", "cpu"]}],
        "spec.mode": ["infer", "train"], "spec.metadata": [{"any": {"json": [1, 2]}}, [1], "x"], "spec.priority": [0, 7, 100, 101],
        "spec.dependsOn": [["b", "c"], ["a"], []], "spec.backoffLimit": [0, 3], "spec.daemon": [True, False],
        "spec.resourceRequirements": [{"cpu": "500m"}, {"cpu": 2, "custom": {"gpu": 1}}], "spec.schedule": ["* * * * *", "60 * * * *"]},
        {"phase": ["pending", "scheduled", "running", "completed"], "conditions": CONDITIONS, "results": [42, {"a": [1, {"b": None}]}],
         "assignedProplet": ["p"]}),
    Kind("proplets", "Proplet", GROUP, {"spec": {"type": "external", "external": {"deviceType": "pi"}, "connectionConfig": {
        "mqttAddress": "tcp://b:1883", "domainId": "d", "channelId": "c", "clientId": "i", "clientKey": "k"}}}, {
            "spec.external.capabilities": [["a", "b"], ["b"]], "spec.connectionConfig.mqttTimeout": ["1m", "x"],
            "spec.connectionConfig.clientId": ["i", "j"], "spec.type": ["external", "k8s"]},
         {"phase": ["Running", "Offline", "nonsense"], "conditions": CONDITIONS}),
    Kind("propellerjobs", "PropellerJob", GROUP, {"spec": {"name": "j", "tasks": [{"name": "t", "imageUrl": "i"}]}}, {
        "spec.tasks": [[{"name": n, "imageUrl": "i"} for n in names] for names in ("ab", "cab", "aa")], "spec.parallelism": [1, 2]},
         {"phase": ["Pending", "Running", "Completed"], "conditions": CONDITIONS}),
    Kind("federatedjobs", "FederatedJob", GROUP, {"spec": {
        "experimentId": "e", "taskWasmImage": "i", "participants": [{"propletId": "p"}], "rounds": {"total": 1}}}, {
            "spec.participants": [[{"propletId": p} for p in some] for some in PARTICIPANTS], "spec.rounds.total": [1, 3],
            "spec.kOfN": [1, 9], "spec.timeoutSeconds": [10], "spec.aggregator": [{"algorithm": "fedavg"}, {"algorithm": "nothing"}],
            "spec.hyperparams": [{"lr": 0.1}, {}]}, {"phase": ["Pending", "Running", "nonsense"], "conditions": CONDITIONS}),
    Kind("trainingrounds", "TrainingRound", GROUP, {"spec": {
        "roundId": "r", "federatedJobRef": {"name": "f"}, "taskWasmImage": "i", "modelRef": "http://h/m", "participants": ["p"]}},
         {"spec.participants": PARTICIPANTS, "spec.kOfN": [1, 2, 5]}, {"phase": ["Pending", "Running"], "conditions": CONDITIONS}),
    Kind("configmaps", "ConfigMap", "v1", {}, {
        "data": [{"a": "b"}, {"a": "c", "d.e": ""}, {}], "binaryData": [{"f": "QQ=="}, {"f": "!"}], "immutable": [False, True]}),
    Kind("secrets", "Secret", "v1", {}, {
        "data": [{"a": "QQ=="}, {"a": "Qg==", "b": ""}], "stringData": [{"b": "text"}], "type": ["Opaque", "own"]}),
    Kind("serviceaccounts", "ServiceAccount", "v1", {}, {
        "secrets": [[{"name": "s"}], [{"name": "t"}, {"name": "s"}]], "imagePullSecrets": [[{"name": "s"}]]}),
    Kind("leases", "Lease", "coordination.k8s.io/v1", {}, {
        "spec.holderIdentity": ["a", "b"], "spec.leaseDurationSeconds": [15, 30], "spec.leaseTransitions": [0, 3],
        "spec.renewTime": ["2026-11-21T10:00:00.000000Z"]}),
    Kind("events", "Event", "v1", {"involvedObject": REFERENCE, "reason": "Made", "type": "Normal"}, {
        "message": ["", "said"], "count": [1, 2], "firstTimestamp": ["2026-11-21T10:00:00Z"], "source": [{"component": "c"}]}),
    Kind("events", "Event", "events.k8s.io/v1", {
        "regarding": REFERENCE, "reason": "Made", "type": "Normal", "eventTime": "2026-11-21T10:00:00.000000Z", "action": "Making",
        "reportingController": "example.com/c", "reportingInstance": "i"}, {
            "note": ["", "said"], "action": ["Making", None], "eventTime": ["2026-11-21T10:00:00.000000Z", None]}),
    Kind("enrollments", "Enrollment", GROUP, {"spec": {"domainId": "d", "channelId": "c", "mqttAddress": "tcp://b:1883"}}, {
        "spec.channelId": ["c", None], "spec.channelPerDevice": [True, False], "spec.domainId": ["d", "e"], "spec.limit": [1, 50, 501],
        "spec.match": [{"clientIdPrefix": "s"}, {"tags": ["a", "b"]}, {}], "spec.rejected": [["a"], ["b", "a"], []],
        "spec.approval": ["Manual", "Automatic"], "spec.maxProplets": [2], "spec.template": [
            {"labels": {"a": "b"}, "external": {"capabilities": ["x"]}}, {"resources": {"cpu": 1, "memory": "1Gi"}, "namePrefix": "p-"}]},
         {"pending": [[{"clientId": c, "channelId": "c", "metadata": {"any": [1]}} for c in some] for some in ("a", "ba")],
          "pendingCount": [0, 2], "enrolledCount": [-1, 1], "overflow": [True], "conditions": CONDITIONS}),
]
CONFIGMAPS = KINDS[5]


def call(method, path, body=None, query=(), key=None, **more):
    return dict({"method": method, "path": path, "query": list(query), "key": key, "body": body,
                 "type": "application/json" if body is not None else None, "accept": None, "do": "ask"}, **more)


def maybe(rng, *chances):
    """Parameters of a query: of each (chance, name, values) that comes about one."""
    return [[name, rng.choice(values)] for chance, name, values in chances if rng.random() < chance]


def of_write(rng):
    return maybe(rng, (0.5, "fieldManager", MANAGERS), (0.3, "fieldValidation", ["Strict", "Strict", "Warn", "Ignore", "Nonsense"]),
                 (0.1, "dryRun", ["All", "All", "Nonsense"]))


def create(rng, kind, name, key):
    body = kind.make(rng, name)
    if rng.random() < 0.06:
        body["metadata"].pop("name", None)
        body["metadata"]["generateName"] = "gen%d-" % rng.randrange(1000)
    return call("POST", kind.path(), body, of_write(rng), key)


def update(rng, kind, name, key):
    """The object as it was seen last, with changes; or another one in its place."""
    fresh = kind.make(rng, name)
    changes = [[[part], fresh.get(part)] for part in rng.sample(sorted(set(fresh) - {"apiVersion", "kind", "metadata"}), len(fresh) > 3)]
    changes += [[["metadata", part], fresh["metadata"].get(part)] for part in METADATA if rng.random() < 0.2]
    changes += [rng.choice([kind.mistake(rng), ("metadata.resourceVersion", rng.choice([None, "@first"]))])] * (rng.random() < 0.2)
    sub = "status" if kind.status and rng.random() < 0.3 else None
    if sub:
        changes.append(["status", kind.with_status(rng)["status"]])
    return call("PUT", kind.path(name, sub), fresh, of_write(rng), key, base=True, changes=changes)


def json_patch(rng, fresh):
    operations = []
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(sorted(set(fresh) - {"apiVersion", "kind", "metadata"}) or ["data"])
        value = fresh.get(part, {})
        inner = rng.choice(sorted(value)) if isinstance(value, dict) and value else "x"
        path, got = "/%s/%s" % (part, inner), value.get(inner) if isinstance(value, dict) else value
        operations.append(rng.choice([
            {"op": "add", "path": path, "value": got}, {"op": "add", "path": "/" + part, "value": value}, {"op": "remove", "path": path},
            {"op": "replace", "path": path, "value": got}, {"op": "test", "path": path, "value": got},
            {"op": "add", "path": "/metadata/labels", "value": {"tier": rng.choice(["x", "y"])}},
            {"op": "add", "path": "/metadata/labels/tier", "value": "y"}, {"op": "test", "path": "/metadata/name", "value": "a"},
            {"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"},
            {"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations/copied"},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"}, {"op": "remove", "path": "/metadata/finalizers/0"},
            {"op": "nonsense", "path": "/spec"}, {"op": "remove", "path": "/nothing"}]))
    return operations


def merge_patch(rng, fresh, strategic):
    made = {key: fresh[key] for key in fresh if key not in ("apiVersion", "kind", "metadata")}
    for part in [part for part in made.values() if isinstance(part, dict) and rng.random() < 0.3]:
        part.update({key: None for key in rng.sample(sorted(part), min(1, len(part)))})
    if rng.random() < 0.5:
        made["metadata"] = rng.choice([{"labels": {"tier": rng.choice(["x", "y", None])}}, {"annotations": None}, {"finalizers": None},
                                       {"finalizers": ["example.com/a"]}, {"resourceVersion": "1"}, {"uid": "u"}, {"labels": {"tier": 5}}])
    if strategic and rng.random() < 0.3:
        made.update(rng.choice([
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}, {"data": {"$patch": "delete"}},
            {"metadata": {"labels": {"$patch": "replace", "k": "v"}}}, {"secrets": [{"$patch": "delete", "name": "s"}]},
            {"metadata": {"finalizers": ["example.com/b"], "$setElementOrder/finalizers": ["example.com/b", "example.com/a"]}}]))
    return made


def patch(rng, kind, name, key):
    sub = "status" if kind.status and rng.random() < 0.3 else None
    way = rng.choice([MERGE, JSON_PATCH, APPLY, APPLY, STRATEGIC if kind.core else MERGE])
    fresh = kind.with_status(rng) if sub else kind.make(rng, name, 0.08)
    query = of_write(rng)
    if way == APPLY:
        body = dict(fresh, metadata={part: value for part, value in fresh["metadata"].items() if value})
        body["metadata"].setdefault("name", name)
        query = maybe(rng, (0.95, "fieldManager", MANAGERS), (0.35, "force", ["true"]), (0.08, "dryRun", ["All"]))
    else:
        body = json_patch(rng, fresh) if way == JSON_PATCH else merge_patch(rng, fresh, way == STRATEGIC)
    return call("PATCH", kind.path(name, sub), body, query, key, type=way)


def delete(rng, kind, name, key):
    options = dict(maybe(rng, (0.3, "propagationPolicy", ["Background", "Nonsense"]), (0.2, "gracePeriodSeconds", [0, 30]),
                         (0.08, "dryRun", [["All"]]), (0.3, "preconditions", [
                             {"uid": "@uid"}, {"uid": "u"}, {"resourceVersion": "@rv"}, {"resourceVersion": "@first"}])))
    return call("DELETE", kind.path(name), options or None, [], key)


def delete_collection(rng, kind, _, key):
    return call("DELETE", kind.path(), None, maybe(
        rng, (0.6, "labelSelector", SELECTORS), (0.3, "fieldSelector", FIELDS), (0.1, "dryRun", ["All"])), key)


def get(rng, kind, name, key):
    return call("GET", kind.path(name), None, maybe(rng, (0.2, "resourceVersion", ["0", "@rv", "@first", "x"])), key,
                accept=rng.choice([None, None, *ACCEPTS[:2]]))


def list_all(rng, kind, _, key):
    query = maybe(rng, (0.35, "limit", ["1", "2", "500", "x"]), (0.35, "labelSelector", SELECTORS), (0.25, "fieldSelector", FIELDS))
    if query[:1] and query[0][0] == "limit" and rng.random() < 0.5:
        query.append(["continue", rng.choice(["@continue"] * 6 + ["nonsense"])])
    query += maybe(rng, (0.3, "resourceVersion", ["0", "0", "@list", "@rv", "x"]), (0.15, "resourceVersionMatch", ["Exact", "NotOlderThan"]))
    return call("GET", kind.path(), None, query, key, accept=rng.choice([None, None, ACCEPTS[0], ACCEPTS[2]]))


def watch(rng, kind, _, key):
    query = [["watch", "1"]] + maybe(rng, (0.75, "resourceVersion", ["0", "@list", "@list", "@rv"]), (0.25, "labelSelector", ["tier=x", "tier in (x,y)", "tier"]),
                                     (0.15, "fieldSelector", FIELDS[1:3]), (0.3, "allowWatchBookmarks", ["true"]))
    if rng.random() < 0.2:
        query += [["sendInitialEvents", "true"], ["resourceVersionMatch", "NotOlderThan"]]
    return call("GET", kind.path(), None, query, key, do="watch", kind=kind, accept=rng.choice([None] * 6 + ACCEPTS[:2]))


def wrong(rng, kind, name, key):
    """Requests that are refused whatever is there."""
    path = kind.path(name)
    return rng.choice([
        call("POST", kind.path(), None, [], key, raw=rng.choice(["{\"a\":", "[]", "x", "5", ""]), type="application/json"),
        call("PUT", path, {"metadata": {"name": "other"}, "apiVersion": kind.version, "kind": kind.kind}, [], key),
        call("PATCH", path, None, [], key, raw="{", type=rng.choice([MERGE, JSON_PATCH, APPLY])),
        call("PATCH", path, {}, [], key, type="text/plain"), call("POST", kind.path(), {}, [], key, type="text/plain"),
        call("GET", "/apis/" + GROUP + "/namespaces/@NS/nothings"), call("GET", "/apis/no.such.group/v1/things"), call("GET", "/api/v2"),
        call("POST", kind.path(space="no-such-namespace"), kind.make(rng, name, 0)),
        call("DELETE", "/api/v1/namespaces")])


STEPS = {create: 22, update: 16, patch: 26, delete: 9, delete_collection: 3, get: 9, list_all: 11, wrong: 3}


def ordinary(rng):
    first, second = rng.sample(KINDS, 2)
    steps = [watch(rng, first, "a", first.plural + "/a")] if rng.random() < 0.4 else []
    steps.append(call("POST", first.path(), first.make(rng, "a", 0), [], first.plural + "/a"))
    for _ in range(rng.randint(3, 12)):
        kind, name = first if rng.random() < 0.7 else second, rng.choice(NAMES)
        way = rng.choices(list(STEPS), STEPS.values())[0] if rng.random() > 0.03 else watch
        steps.append(way(rng, kind, name, kind.plural + "/" + name))
    return steps


def owners(rng):
    """An owner that no controller keeps, what depends on it, and a deletion that takes its time."""
    kind = rng.choice(KINDS[5:9])
    owner, policy = kind.plural + "/a", rng.choice(["Background", "Orphan"])
    steps = [call("POST", kind.path(), dict(kind.good, apiVersion=kind.version, kind=kind.kind, metadata={"name": "a"}), key=owner)]
    if rng.random() < 0.5:
        steps.append(call("GET", CONFIGMAPS.path(), None, [["watch", "1"]], do="watch", kind=CONFIGMAPS, unordered=True))
    for name in NAMES[1:]:
        reference = {"apiVersion": kind.version, "kind": kind.kind, "name": "a", "uid": "@uid", "blockOwnerDeletion": rng.random() < 0.5}
        steps.append(call("POST", CONFIGMAPS.path(), {"metadata": {"name": name, "ownerReferences": [reference]}}, key="configmaps/" + name,
                          of=owner))
    steps.append(call("DELETE", kind.path("a"), {"propagationPolicy": policy}, [], owner, racy=policy != "Background"))
    steps.append(call("GET", kind.path("a"), do="settle", until="gone"))
    return steps + [call("GET", CONFIGMAPS.path(name), do="settle", until="free" if policy == "Orphan" else "gone")
                    for name in NAMES[1:]] + [call("GET", CONFIGMAPS.path())]


def spaces(rng):
    """The life of a namespace. What is in it has a finalizer, so it stays while it ends."""
    path, inside, key = "/api/v1/namespaces/@NS-x", CONFIGMAPS.path(space="@NS-x"), "namespaces/x"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "@NS-x", "labels": rng.choice([{}, {"tier": "x"}, {"bad key": "x"}])}}
    label = {"metadata": {"labels": {rng.choice(["tier", "kubernetes.io/metadata.name"]): rng.choice(["y", None])}}}
    steps = [call("POST", "/api/v1/namespaces", body, of_write(rng), key),
             call("POST", inside, {"metadata": {"name": "a", "finalizers": ["example.com/a"]}}, [], "configmaps/a"),
             call("PATCH", path, label, [], key, type=rng.choice([MERGE, STRATEGIC])), call("GET", path, accept=rng.choice([None, ACCEPTS[0]])),
             call("PUT", path, body, [], key, base=True, changes=[["metadata.labels", {"tier": "z"}]])]
    after = [call("POST", inside, {"metadata": {"name": "b"}}, [], "configmaps/b"), call("POST", "/api/v1/namespaces", body, [], key),
             call("PATCH", inside + "/a", {"data": {"k": "v"}}, [], "configmaps/a", type=MERGE, racy=True)]
    return steps + [call("DELETE", path, None, [], key, racy=True)] + rng.sample(after, 2)


def sequence(seed, index):
    rng = random.Random("%s/%s" % (seed, index))
    return rng.choices([ordinary, owners, spaces], [92, 4, 4])[0](rng)
