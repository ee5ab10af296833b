#!/usr/bin/env python3
"""Makes the Helm chart of the kustomize folders, by the table chart.yaml.

    build.py --kubectl FILE --version VERSION [--flags PROGRAM=FILE]... FOLDER

writes the chart into FOLDER/propeller. FILE of --flags is what `PROGRAM --help` printed: settings of other names are
refused by the schema of the values.
"""

import argparse
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAMESPACE = "propeller-system"
RELEASE = "{{ $.Release.Namespace }}"
# Places in a document that become a template, of a part of a line and of lines. They never need quotes.
MARK, LINES = "zzPLACE", "zzLINES"
AMOUNTS = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
SCHEMAS = {
    "resources": {"type": "object", "additionalProperties": False, "properties": {"requests": AMOUNTS, "limits": AMOUNTS}},
    "tolerations": {"type": "array", "items": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "key": {"type": "string"},
            "operator": {"enum": ["Exists", "Equal"]},
            "value": {"type": "string"},
            "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
            "tolerationSeconds": {"type": "integer"},
        },
    }},
}


class Quoted(str):
    """A text whose template must stay in quotes."""


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data):
        return True


Dumper.add_representer(Quoted, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def dump(value):
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, width=1 << 20)


def name_of(document):
    """"KIND NAME", or "KIND NAMESPACE/NAME" outside of the namespace of the release."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace", NAMESPACE)
    return f"{document['kind']} {'' if namespace == NAMESPACE else namespace + '/'}{metadata['name']}"


def render(kubectl, folder):
    text = subprocess.run([kubectl, "kustomize", folder], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return [document for document in yaml.safe_load_all(text) if document]


def documents(table, kubectl):
    found = {}
    for folder, wanted in table["sources"].items():
        for document in render(kubectl, folder):
            name = name_of(document)
            if name in found or (wanted and name not in wanted) or fits(name, table["left_out"]):
                continue
            found[name] = document
    return found


def fits(name, patterns):
    return any(re.fullmatch(pattern, name) for pattern in patterns)


class Template:
    """One object as a template."""

    def __init__(self, document, rules, others):
        """others: the documents of a folder, by name."""
        self.document = document
        self.texts = []  # of each mark
        self.conditions = [rule["when"] for rule in rules if "when" in rule]
        self.each = next((rule["each"] for rule in rules if "each" in rule), None)
        for rule in rules:
            for path in rule.get("drop", ()):
                parent, key = self.find(path)
                parent.pop(key, None)
            for path, text in rule.get("set", {}).items():
                parent, key = self.find(path)
                parent[key] = self.mark(text)
            for path, text in rule.get("add", {}).items():
                self.add(path, text)
            for path, more in rule.get("more", {}).items():
                self.add_more(path, others(more["folder"])[name_of(document)], more["when"])
        if self.each:
            self.document["metadata"]["namespace"] = self.mark("{{ . | quote }}")

    def add_more(self, path, other, when):
        parent, key = self.find(path)
        theirs, last = self.find(path, other)
        items = [self.texts_of(item) for item in theirs[last] if item not in parent[key]]
        self.add(path, f"{{{{- if {when} }}}}\n{dump(items)}{{{{- end }}}}")

    def find(self, path, document=None):
        """The mapping or list that has the last part of the path, and this part."""
        *parents, last = (part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", path))
        value = document or self.document
        for part in parents:
            value = value[int(part)] if isinstance(value, list) else value.setdefault(part, {})
        return value, int(last) if isinstance(value, list) else last

    def mark(self, text, kind=MARK):
        self.texts.append(text)
        return f"{kind}{len(self.texts) - 1}zz"

    def add(self, path, text):
        parent, key = self.find(path)
        value = parent[key] if isinstance(parent, list) else parent.setdefault(key, {})
        mark = self.mark(text, LINES)
        if isinstance(value, list):
            value.append(mark)
        else:
            value[mark] = None

    def texts_of(self, value):
        """The same with the namespace of the release, and with braces that are no template."""
        if isinstance(value, dict):
            return {key: self.texts_of(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.texts_of(item) for item in value]
        if not isinstance(value, str):
            return value
        if value == NAMESPACE:
            return self.mark("{{ $.Release.Namespace | quote }}")
        if "{{" in value:
            return Quoted(value.replace("{{", self.mark('{{ "{{" }}')).replace(NAMESPACE, self.mark(RELEASE)))
        return value.replace(NAMESPACE, self.mark(RELEASE)) if NAMESPACE in value else value

    def lines(self):
        for line in dump(self.texts_of(self.document)).splitlines():
            added = re.fullmatch(rf"( *)(?:- )?{LINES}(\d+)zz(?:: null)?", line)
            if added:
                for own in self.texts[int(added[2])].rstrip("\n").split("\n"):
                    yield (added[1] if not own.startswith("{{- include") else "") + self.filled(own)
            else:
                yield self.filled(line)

    def filled(self, line):
        return re.sub(rf"{MARK}(\d+)zz", lambda match: self.texts[int(match[1])], line)

    def text(self):
        lines = list(self.lines())
        if self.each:
            lines = [f"{{{{- range {self.each} }}}}", "---", *lines, "{{- end }}"]
        if self.conditions:
            wanted = self.conditions[0]
            if len(self.conditions) > 1:
                wanted = "and " + " ".join(f"({condition})" for condition in self.conditions)
            lines = [f"{{{{- if {wanted} }}}}", *lines, "{{- end }}"]
        return "\n".join(lines) + "\n"


def flags_of(text):
    return sorted(set(re.findall(r"^ *(?:-\w, )?--([a-z0-9-]+)", text, re.MULTILINE)) - {"help", "version", "completion"})


def schema_of(schema, flags):
    """The JSON schema of a value; `flags`, `resources` and `tolerations` stand for longer ones."""
    if "flags" in schema:
        scalar = {"type": ["string", "number", "boolean"]}
        known = flags.get(schema["flags"])
        ret = {"type": "object", "additionalProperties": scalar if known is None else False}
        return {**ret, "properties": {flag: scalar for flag in known}} if known else ret
    return next((SCHEMAS[name] for name in SCHEMAS if name in schema), schema)


def values_of(table, flags):
    """values.yaml and values.schema.json."""
    lines, groups = [], {}
    for path, (default, schema, text) in table["values"].items():
        *parents, last = path.split(".")
        group = groups
        for depth, parent in enumerate(parents):
            if parent not in group.get("properties", {}):
                lines.append(f"{'  ' * depth}{parent}:")
            group = group.setdefault("properties", {}).setdefault(parent, {"type": "object", "additionalProperties": False})
        indent = "  " * len(parents)
        group.setdefault("properties", {})[last] = {**schema_of(schema, flags), "description": text, "default": default}
        lines += [f"{indent}# {text}", f"{indent}{last}: {json.dumps(default)}"]
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        **groups,
    }
    schema["properties"]["global"] = {"type": "object"}  # Helm adds it
    return "\n".join(lines) + "\n", json.dumps(schema, indent=2) + "\n"


def chart_of(version):
    number = re.match(r"v?(\d+\.\d+\.\d+)", version)
    return yaml.safe_dump({
        "apiVersion": "v2",
        "name": "propeller",
        "description": "Runs WebAssembly modules on devices and pods.",
        "type": "application",
        "version": number[1] if number else "0.0.0",
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    }, sort_keys=False)


def build(table, arguments, folder):
    templates = folder / "templates"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "templates", templates)
    shutil.copytree(ROOT / "config/metrics/dashboards", folder / "dashboards")
    used = set()

    @functools.cache
    def others(source):
        return {name_of(document): document for document in render(arguments.kubectl, source)}

    for name, document in documents(table, arguments.kubectl).items():
        rules = [rule for rule in table["rules"] if re.fullmatch(rule["objects"], name)]
        used.update(id(rule) for rule in rules)
        file = re.sub(r"[ /.:]+", "-", name).lower() + ".yaml"
        (templates / file).write_text(Template(document, rules, others).text(), encoding="utf-8")
    unused = [rule["objects"] for rule in table["rules"] if id(rule) not in used]
    if unused:
        sys.exit(f"chart: no object for the rules {unused}")
    flags = {}
    for pair in arguments.flags:
        program, _, file = pair.partition("=")
        known = flags_of(pathlib.Path(file).read_text(encoding="utf-8"))
        foreign = sorted(set(table["owned"][program]) - set(known))
        if foreign:
            sys.exit(f"chart: {program} has no flags {foreign}")
        flags[program] = [flag for flag in known if flag not in table["owned"][program]]
    values, schema = values_of(table, flags)
    (folder / "values.yaml").write_text(values, encoding="utf-8")
    (folder / "values.schema.json").write_text(schema, encoding="utf-8")
    (folder / "Chart.yaml").write_text(chart_of(arguments.version), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubectl", required=True, metavar="FILE")
    parser.add_argument("--version", required=True)
    parser.add_argument("--flags", action="append", default=[], metavar="PROGRAM=FILE")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    table = yaml.safe_load((HERE / "chart.yaml").read_text(encoding="utf-8"))
    build(table, arguments, arguments.folder / "propeller")


if __name__ == "__main__":
    main()
