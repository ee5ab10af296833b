#!/usr/bin/env python3
"""Makes the documents that propeller-standalone serves as bytes: discovery, OpenAPI v3 and v2, and the kinds.

    documents.py >build/documents      (from the top of the tree; the Makefile does it)

Sources are the manifests of crds/crds.def, kinds.yaml and builtin.json. The output is a sequence of entries, each a line with the name
of the document, a tab and its length, then the document and a NUL. standalone/schema/bundle.c reads it.
"""
import hashlib
import json
import pathlib
import re
import struct
import sys

import yaml

HERE = pathlib.Path(__file__).parent
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
VERSION = "v1.34.0"  # of Kubernetes: what GET /version says

# The orders of kube-apiserver.
VERBS = "create delete deletecollection get list patch update watch".split()
CUSTOM_VERBS = "delete deletecollection get list patch create update watch".split()
NAMESPACE_VERBS = "create delete get list patch update watch".split()
ABSENT_VERBS = "get list watch".split()
STATUS_VERBS = "get patch update".split()


class Loader(yaml.SafeLoader):
    """YAML 1.2 as the programs read it: yes, on and dates are strings."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rsplit(":", 1)[1] in ("null", "int", "float", "merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))


# --- kinds ------------------------------------------------------------------------------------------------------


def kind_of(entry, custom=False, absent=False):
    kind = {
        "group": entry["group"], "version": "v1", "kind": entry["kind"], "plural": entry["plural"],
        "singular": entry["kind"].lower(), "listKind": entry["kind"] + "List",
        "namespaced": entry.get("namespaced", True), "shortNames": entry.get("shortNames", []),
        "categories": entry.get("categories", []), "custom": custom, "absent": absent,
        "status": entry.get("status", False), "fields": entry.get("fields", []),
        "definition": entry.get("definition", ""),
    }
    kind["verbs"] = (ABSENT_VERBS if absent else CUSTOM_VERBS if custom
                     else NAMESPACE_VERBS if kind["plural"] == "namespaces" else VERBS)
    return kind


def steps_of(path):
    """The JSONPath `.a.b[?(@.type=="Ready")].c` as ["a", "b", {"type": "Ready"}, "c"]"""
    steps = list(re.finditer(r'\.(\w+)|\[\?\(@\.(\w+)=="([^"]*)"\)\]', path))
    assert "".join(step[0] for step in steps) == path, path
    return [step[1] or {step[2]: step[3]} for step in steps]


def column_of(column, definitions):
    text = column.get("description", "")
    if "#" in text and " " not in text:
        definition, member = text.split("#")
        text = definitions[definition]["properties"][member]["description"]
    definition = {"name": column["name"], "type": column.get("type", "string"), "format": column.get("format", ""),
                  "description": text, "priority": column.get("priority", 0)}
    return {"definition": definition, "cell": column.get("cell", ""),
            "paths": [steps_of(path) for path in column["jsonPath"].split(",")]}


def custom_kind(manifest, definitions):
    spec, version = manifest["spec"], manifest["spec"]["versions"][0]
    names = spec["names"]
    kind = kind_of({**names, "group": spec["group"], "namespaced": spec["scope"] == "Namespaced",
                    "status": "status" in version.get("subresources", {})}, custom=True)
    kind.update(version=version["name"], singular=names["singular"], listKind=names["listKind"])
    kind["definition"] = ".".join([*reversed(spec["group"].split(".")), version["name"], names["kind"]])
    columns = [{"name": "Name", "format": "name", "description": META + "ObjectMeta#name", "jsonPath": ".metadata.name"}]
    for column in version.get("additionalPrinterColumns", []):
        words = f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
        columns.append({"description": words, **column})
    kind["columns"] = [column_of(column, definitions) for column in columns]
    kind["schema"] = version["schema"]["openAPIV3Schema"]
    return kind


def read_kinds(definitions):
    table = yaml.load((HERE / "kinds.yaml").read_text(), Loader)
    served = []
    for entry in table["served"]:
        kind = kind_of(entry)
        kind["columns"] = [column_of(column, definitions) for column in entry["columns"]]
        served.append(kind)
    crds = HERE.parent.parent / "crds"
    for folder, name in re.findall(r"^CRD(?:_IN)?\((?:(\w+), )?(\w+)\)", (crds / "crds.def").read_text(), re.M):
        served.append(custom_kind(yaml.load((crds / folder / f"{name}.yaml").read_text(), Loader), definitions))
    served.sort(key=lambda kind: (kind["group"], kind["plural"]))
    return served, [kind_of(entry, absent=True) for entry in table["absent"]]


def without_words(schema):
    """The schema without descriptions, which the server does not need. A property may be called description."""
    if isinstance(schema, list):
        return [without_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: {key: without_words(value) for key, value in member.items()} if name == "properties"
            else member if name in ("default", "enum") else without_words(member)
            for name, member in schema.items() if name != "description"}


def resources(served, absent, definitions):
    """What resource.c reads. metadata of a custom kind is what every object has there. A built-in kind requires nothing."""
    kinds = []
    for kind in served:
        kind = {name: member for name, member in kind.items() if name != "verbs"}
        schema = kind.get("schema")
        if schema:
            properties = {**schema["properties"], "metadata": {"$ref": "#/definitions/" + META + "ObjectMeta"}}
            kind["schema"] = without_words({**schema, "properties": properties})
        else:
            kind["schema"] = {"$ref": "#/definitions/" + kind["definition"]}
        kinds.append(kind)
    return {"definitions": {name: without_words({key: value for key, value in schema.items() if key != "required"})
                            for name, schema in definitions.items()},
            "served": kinds + absent}


# --- discovery --------------------------------------------------------------------------------------------------


def names_of(kind):
    return {name: kind[name] for name in ("shortNames", "categories") if kind[name]}


def group_of(kind):
    version = {"groupVersion": f"{kind['group']}/{kind['version']}", "version": kind["version"]}
    return {"name": kind["group"], "versions": [version], "preferredVersion": version}


def resource_list(kinds, group, version):
    items = []
    for kind in kinds:
        items.append({"name": kind["plural"], "singularName": kind["singular"], "namespaced": kind["namespaced"],
                      "kind": kind["kind"], "verbs": kind["verbs"], **names_of(kind)})
        if kind["status"]:
            items.append({"name": kind["plural"] + "/status", "singularName": "", "namespaced": kind["namespaced"],
                          "kind": kind["kind"], "verbs": STATUS_VERBS})
    return {"kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version, "resources": items}


def aggregated_resource(kind):
    response = {name: kind[name] for name in ("group", "version", "kind")}
    item = {"resource": kind["plural"], "responseKind": response,
            "scope": "Namespaced" if kind["namespaced"] else "Cluster", "singularResource": kind["singular"],
            "verbs": kind["verbs"], **names_of(kind)}
    if kind["status"]:
        item["subresources"] = [{"subresource": "status", "responseKind": response, "verbs": STATUS_VERBS}]
    return item


def aggregated(groups, api_version):
    """KEP-3352."""
    items = []
    for (group, version), kinds in groups.items():
        name = {"name": group} if group else {}
        items.append({"metadata": {**name, "creationTimestamp": None},
                      "versions": [{"version": version, "resources": [aggregated_resource(kind) for kind in kinds],
                                    "freshness": "Current"}]})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/" + api_version, "metadata": {},
            "items": items}


def discovery(served, absent):
    groups = {}
    for kind in [*served, *absent]:
        groups.setdefault((kind["group"], kind["version"]), []).append(kind)
    core = {key: kinds for key, kinds in groups.items() if not key[0]}
    named = {key: kinds for key, kinds in groups.items() if key[0]}
    yield "/api", {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs":
                   [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]}
    yield "/apis", {"kind": "APIGroupList", "apiVersion": "v1",
                    "groups": [group_of(kinds[0]) for kinds in named.values()]}
    for version in "v2", "v2beta1":
        yield "/api " + version, aggregated(core, version)
        yield "/apis " + version, aggregated(named, version)
    for (group, version), kinds in groups.items():
        if group:
            yield "/apis/" + group, {"kind": "APIGroup", "apiVersion": "v1", **group_of(kinds[0])}
        yield path_of(group, version), resource_list(kinds, group, version)


def path_of(group, version):
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


# --- OpenAPI ----------------------------------------------------------------------------------------------------

# Method, action, where it is, parameters of the query.
ITEM, STATUS, COLLECTION, ALL = "item", "status", "collection", "all"
WRITE = ["dryRun", "fieldManager", "fieldValidation"]
OPERATIONS = [
    ("get", "list", (ALL, COLLECTION), ["allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit"]),
    ("post", "post", (COLLECTION,), WRITE),
    ("delete", "deletecollection", (COLLECTION,), ["dryRun", "fieldSelector", "labelSelector"]),
    ("get", "get", (ITEM, STATUS), ["resourceVersion"]),
    ("put", "put", (ITEM, STATUS), WRITE),
    ("patch", "patch", (ITEM, STATUS), [*WRITE, "force"]),
    ("delete", "delete", (ITEM,), ["dryRun", "gracePeriodSeconds", "propagationPolicy"]),
]
TYPES = {"force": "boolean", "allowWatchBookmarks": "boolean", "limit": "integer", "gracePeriodSeconds": "integer"}
PATCH_TYPES = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
               "application/strategic-merge-patch+json"]


class OpenAPI:
    """One of the two forms."""

    def __init__(self, served, definitions, v3):
        self.served, self.definitions, self.v3 = served, definitions, v3

    def reference(self, definition):
        return {"$ref": ("#/components/schemas/" if self.v3 else "#/definitions/") + definition}

    def schema(self, source):
        if "$ref" in source:  # v3 has what stands beside a reference outside of it
            beside = {name: member for name, member in source.items() if name != "$ref"}
            target = self.reference(source["$ref"].rsplit("/", 1)[-1])
            return {**beside, "allOf": [target]} if self.v3 else {**beside, **target}
        left_out = () if self.v3 else ("default", "nullable")
        if not self.v3 and source.get("x-kubernetes-preserve-unknown-fields"):
            left_out += ("type",)  # an older kubectl explains a value without a type as anything
        schema = {}
        for name, member in source.items():
            if name == "properties":
                schema[name] = {key: self.schema(value) for key, value in member.items()}
            elif name in ("items", "additionalProperties") and isinstance(member, dict):
                schema[name] = self.schema(member)
            elif name not in left_out:
                schema[name] = member
        if self.v3 and "x-kubernetes-int-or-string" in source:
            schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        return schema

    def standard(self, metadata, words):
        """The words that every kind has for the members of every object."""
        listed = self.definitions["io.k8s.api.core.v1.SecretList"]["properties"]
        reference = {"$ref": META + metadata, "description": words}
        return {"apiVersion": listed["apiVersion"], "kind": listed["kind"], "metadata": self.schema(reference)}

    def custom(self, kind):
        def kinds(name):
            return [{"group": kind["group"], "kind": name, "version": kind["version"]}]

        schema = self.schema(kind["schema"])
        properties = schema.pop("properties")
        standard = self.standard("ObjectMeta", f"Standard object's metadata. More info: {CONVENTIONS}#metadata")
        schema["properties"] = {**properties, **standard}
        schema["x-kubernetes-group-version-kind"] = kinds(kind["kind"])
        items = {"description": f"List of {kind['plural']}. More info: {CONVENTIONS}", "type": "array",
                 "items": self.schema({"$ref": kind["definition"]})}
        standard = self.standard("ListMeta", f"Standard list metadata. More info: {CONVENTIONS}#types-kinds")
        listed = {"description": f"{kind['listKind']} is a list of {kind['kind']}", "type": "object",
                  "required": ["items"], "properties": {**standard, "items": items},
                  "x-kubernetes-group-version-kind": kinds(kind["listKind"])}
        return {kind["definition"]: schema, kind["definition"] + "List": listed}

    def schemas(self, kinds):
        """Those of the package of a kind, of metadata, and those that events.k8s.io refers to."""
        packages = {kind["definition"].rsplit(".", 1)[0] + "." for kind in kinds if not kind["custom"]}
        packages.add("io.k8s.apimachinery.")
        if any(kind["group"] == "events.k8s.io" for kind in kinds):
            packages.add("io.k8s.api.core.v1.")
        schemas = {name: self.schema(schema) for name, schema in self.definitions.items()
                   if name.startswith(tuple(packages))}
        for kind in kinds:
            if kind["custom"]:
                schemas.update(self.custom(kind))
        return schemas

    def parameter(self, name, place):
        required = {"required": True} if place == "path" else {}
        schema = {"type": TYPES.get(name, "string"), "uniqueItems": True}
        return {"name": name, "in": place, **required, **({"schema": schema} if self.v3 else schema)}

    def body(self, kind, action, operation):
        patch = action == "patch"
        schema = {"schema": self.reference(META + "Patch" if patch else kind["definition"])}
        types = PATCH_TYPES[:-1] if kind["custom"] else PATCH_TYPES
        if self.v3:
            types = types if patch else ["application/json"]
            operation["requestBody"] = {"content": {name: schema for name in types}, "required": True}
        else:
            operation["parameters"].append({"name": "body", "in": "body", "required": True, **schema})
            operation.update({"consumes": types} if patch else {})

    def operation(self, kind, action, parameters, path):
        operation = {"description": f"{action} {kind['kind']}", "operationId": f"{action} {path}",
                     "parameters": [self.parameter(name, "query") for name in parameters]}
        if action in ("post", "put", "patch"):
            self.body(kind, action, operation)
        schema = {"schema": self.reference(kind["definition"] + ("List" if action == "list" else ""))}
        response = {"content": {"application/json": schema}} if self.v3 else schema
        operation["responses"] = {"200": {"description": "OK", **response}}
        operation["x-kubernetes-action"] = action
        operation["x-kubernetes-group-version-kind"] = {name: kind[name] for name in ("group", "version", "kind")}
        return operation

    def paths(self, kinds):
        paths = {}
        for kind in kinds:
            base = path_of(kind["group"], kind["version"])
            collection = base + ("/namespaces/{namespace}/" if kind["namespaced"] else "/") + kind["plural"]
            places = {collection: COLLECTION, collection + "/{name}": ITEM}
            if kind["namespaced"]:
                places = {f"{base}/{kind['plural']}": ALL, **places}
            if kind["status"]:
                places[collection + "/{name}/status"] = STATUS
            for path, place in places.items():
                parameters = [self.parameter(name, "path") for name in ("name", "namespace") if f"{{{name}}}" in path]
                paths[path] = {"parameters": parameters}
                for method, action, where, query in OPERATIONS:
                    if place in where:
                        paths[path][method] = self.operation(kind, action, query, path)
        return paths

    def document(self, kinds):
        schemas = self.schemas(kinds)
        return {**({"openapi": "3.0.0"} if self.v3 else {"swagger": "2.0"}),
                "info": {"title": "Propeller", "version": VERSION}, "paths": self.paths(kinds),
                **({"components": {"schemas": schemas}} if self.v3 else {"definitions": schemas})}


def openapi(served, definitions):
    v2 = OpenAPI(served, definitions, v3=False).document(served)
    v3 = OpenAPI(served, definitions, v3=True)
    index = {}
    for group, version in dict.fromkeys((kind["group"], kind["version"]) for kind in served):
        path = path_of(group, version)
        text = json_bytes(v3.document([kind for kind in served if kind["group"] == group]))
        digest = hashlib.sha256(text).hexdigest()
        index[path[1:]] = {"serverRelativeURL": f"/openapi/v3{path}?hash={digest}"}
        yield "/openapi/v3" + path, text
    yield "/openapi/v3", json_bytes({"paths": index})
    yield "/openapi/v2", json_bytes(v2)
    yield "/openapi/v2 protobuf", protobuf_document(v2)


# --- protobuf ---------------------------------------------------------------------------------------------------
# google/gnostic-models openapiv2/OpenAPIv2.proto, as far as the document of v2 has it. kubectl before 1.27 reads it.


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    """One field of a message: text and messages, whole numbers and booleans, doubles. None: it is not set."""
    if value is None:
        return b""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def named(number, name, message):
    return field(number, field(1, name) + field(2, message))


def any_of(value):
    return field(2, json_bytes(value))


def extensions(number, source):
    return b"".join(named(number, name, any_of(value)) for name, value in source.items() if name.startswith("x-"))


LIMITS = [("maximum", 7), ("minimum", 9), ("maxLength", 11), ("minLength", 12), ("maxItems", 14), ("minItems", 15),
          ("maxProperties", 17), ("minProperties", 18), ("pattern", 13)]


def protobuf_schema(schema):
    out = [field(1, schema.get("$ref")), field(2, schema.get("format")), field(4, schema.get("description"))]
    for name, number in LIMITS:
        value = schema.get(name)
        out.append(field(number, float(value) if value is not None and number in (7, 9) else value))
    out += [field(19, name) for name in schema.get("required", [])]
    out += [field(20, any_of(value)) for value in schema.get("enum", [])]
    if "type" in schema:
        out.append(field(22, field(1, schema["type"])))
    if isinstance(schema.get("additionalProperties"), dict):
        out.append(field(21, field(1, protobuf_schema(schema["additionalProperties"]))))
    if "items" in schema:
        out.append(field(23, field(1, protobuf_schema(schema["items"]))))
    if "properties" in schema:
        out.append(field(25, protobuf_schemas(schema["properties"])))
    return b"".join(out) + extensions(31, schema)


def protobuf_schemas(schemas):
    return b"".join(named(1, name, protobuf_schema(schema)) for name, schema in schemas.items())


def protobuf_parameter(parameter):
    """Parameters are messages of their own by the place where they stand."""
    if parameter["in"] == "body":
        body = (field(3, "body") + field(2, parameter["name"]) + field(4, True) +
                field(5, protobuf_schema(parameter["schema"])))
        return field(1, field(1, body))
    path = parameter["in"] == "path"
    value = field(2, parameter["in"]) + field(4, parameter["name"]) + field(1, True if path else None)
    value += field(5 if path else 6, parameter["type"])
    return field(1, field(2, field(4 if path else 3, value)))


def protobuf_operation(operation):
    out = [field(3, operation["description"]), field(5, operation["operationId"])]
    out += [field(7, name) for name in operation.get("consumes", [])]
    out += [field(8, protobuf_parameter(parameter)) for parameter in operation["parameters"]]
    for code, response in operation["responses"].items():
        schema = field(1, protobuf_schema(response["schema"]))
        out.append(field(9, named(1, code, field(1, field(1, response["description"]) + field(2, schema)))))
    return b"".join(out) + extensions(13, operation)


def protobuf_path(item):
    methods = [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)]
    out = [field(number, protobuf_operation(item[name])) for name, number in methods if name in item]
    return b"".join(out) + b"".join(field(9, protobuf_parameter(parameter)) for parameter in item["parameters"])


def protobuf_document(document):
    info = field(1, document["info"]["title"]) + field(2, document["info"]["version"])
    paths = b"".join(named(2, path, protobuf_path(item)) for path, item in document["paths"].items())
    return (field(1, document["swagger"]) + field(2, info) + field(8, paths) +
            field(9, protobuf_schemas(document["definitions"])))


# --- all --------------------------------------------------------------------------------------------------------


def json_bytes(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def main():
    definitions = json.loads((HERE / "builtin.json").read_text())["definitions"]
    served, absent = read_kinds(definitions)
    documents = {"resources": json_bytes(resources(served, absent, definitions))}
    documents.update((name, json_bytes(document) + b"\n") for name, document in discovery(served, absent))
    documents.update(openapi(served, definitions))
    for name, document in documents.items():
        sys.stdout.buffer.write(f"{name}\t{len(document)}\n".encode() + document + b"\0")


if __name__ == "__main__":
    main()
