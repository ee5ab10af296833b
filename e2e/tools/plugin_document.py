#!/usr/bin/env python3
"""plugin_document.py: copies a JSON document of kubectl propeller from standard input to standard output, and fails
unless it is one of plugin/documents.yaml: each member is known and has its type, and none is missing."""

import json
import pathlib
import re
import sys

import yaml

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "plugin" / "documents.yaml"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
TYPES = {
    "text": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "time": lambda value: isinstance(value, str) and TIME.fullmatch(value),
    "texts": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "any": lambda value: True,
}


def check(path, value, schema):
    if isinstance(schema, str):
        kind = schema.split(",", 1)[0]
        if not TYPES[kind](value):
            sys.exit(f"{path}: {value!r} is no {kind}")
    elif isinstance(schema, list):
        if not isinstance(value, list):
            sys.exit(f"{path}: not a list")
        for number, item in enumerate(value):
            check(f"{path}[{number}]", item, schema[0])
    else:
        members = {name.rstrip("?"): member for name, member in schema.items()}
        if not isinstance(value, dict) or set(value) - set(members):
            sys.exit(f"{path}: {value!r} has other members than {', '.join(members)}")
        missing = [name for name in schema if not name.endswith("?") and name not in value]
        if missing:
            sys.exit(f"{path}: {', '.join(missing)} is missing")
        for name, item in value.items():
            check(f"{path}.{name}", item, members[name])


def main():
    document = json.load(sys.stdin)
    schemas = {}
    for name, row in yaml.safe_load(SCHEMA.read_text(encoding="utf-8")).items():
        schemas |= dict.fromkeys(row.get("kinds", [name]), row["members"])
    kind = document.pop("kind", None)
    if kind not in schemas or document.pop("apiVersion", None) != "cli.propeller.abstractmachines.fr/v1alpha1":
        sys.exit(f"kind {kind!r} or apiVersion is not of plugin/documents.yaml")
    check(kind, document, schemas[kind])
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main()
