#!/usr/bin/env python3
"""schemas.py CRDS FOLDER: the CRDs below the folder CRDS as JSON Schema, a file KIND_VERSION.json for each, for editors.

A field that the API server would drop is a mistake in a schema. Rules of CEL cannot be expressed, so they are missing.
"""

import json
import pathlib
import sys

import yaml


def converted(schema):
    """Of OpenAPI as the API server has it; extensions become what JSON Schema has for them, or are left away."""
    ret = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-") and key != "nullable"}
    if schema.get("x-kubernetes-int-or-string"):
        ret["type"] = ["integer", "string"]
    elif schema.get("nullable") and "type" in ret:
        ret["type"] = [ret["type"], "null"]
    if "properties" in ret:
        ret["properties"] = {name: converted(value) for name, value in ret["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            ret.setdefault("additionalProperties", False)
    for key in "items", "additionalProperties", "not":
        if isinstance(ret.get(key), dict):
            ret[key] = converted(ret[key])
    for key in "allOf", "anyOf", "oneOf":
        if key in ret:
            ret[key] = [converted(value) for value in ret[key]]
    return ret


def schemas_of(crd):
    """(file name, schema) of each version."""
    names = crd["spec"]["names"]
    for version in crd["spec"]["versions"]:
        schema = converted(version["schema"]["openAPIV3Schema"])
        schema["$schema"] = "http://json-schema.org/draft-07/schema#"
        schema["properties"] |= {
            "apiVersion": {"type": "string", "enum": [f"{crd['spec']['group']}/{version['name']}"]},
            "kind": {"type": "string", "enum": [names["kind"]]},
            "metadata": {"type": "object"},
        }
        schema["required"] = sorted({"apiVersion", "kind", "metadata", *schema.get("required", [])})
        yield f"{names['kind'].lower()}_{version['name']}.json", schema


def main(crds, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(pathlib.Path(crds).rglob("*.yaml")):
        for crd in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            for name, schema in schemas_of(crd):
                (folder / name).write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
