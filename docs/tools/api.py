#!/usr/bin/env python3
"""api.py CRDS FOLDER: writes a page of Markdown for each CustomResourceDefinition of the folder CRDS, and an index.

A field has an anchor (`#spec-inputs`), its type, its default and limits, and its description. Rules of the API server
(CEL) stand below the object that they are about. A field without a description ends the program with 1.
"""

import pathlib
import sys

import yaml

LIMITS = (("minimum", "at least {}"), ("maximum", "at most {}"), ("minLength", "at least {} characters"),
          ("maxLength", "at most {} characters"), ("minItems", "at least {} items"), ("maxItems", "at most {} items"),
          ("maxProperties", "at most {} entries"), ("pattern", "matches `{}`"), ("format", "format {}"))
WITHOUT_DESCRIPTION = {"metadata"}  # of every object; the API server's own documentation has it


def type_of(schema):
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        return "number or string"
    if kind == "array":
        return f"list of {type_of(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {type_of(schema['additionalProperties'])}"
    return kind or "any"


def notes_of(schema, required):
    notes = ["required"] if required else []
    if "default" in schema:
        notes.append(f"default `{schema['default']}`")
    if "enum" in schema:
        notes.append("one of " + ", ".join(f"`{value}`" for value in schema["enum"]))
    shapes = [schema] + ([schema["items"]] if schema.get("type") == "array" else [])
    for number, shape in enumerate(shapes):
        for key, text in LIMITS:
            if key in shape and not (key == "pattern" and len(str(shape[key])) > 60):
                notes.append(("each " if number else "") + text.format(shape[key]))
        if number and "enum" in shape:
            notes.append("each one of " + ", ".join(f"`{value}`" for value in shape["enum"]))
    return notes


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


class Page:
    """The fields of one kind, and what was missing in it."""

    def __init__(self, kind):
        self.kind, self.lines, self.missing = kind, [], []

    def rules(self, schema):
        rules = [rule.get("message") or "see the CRD" for rule in schema.get("x-kubernetes-validations", [])]
        if rules:
            self.lines += ["", "The API server refuses an object that breaks a rule, with one of these messages:", ""]
            self.lines += [f"- {cell(rule)}" for rule in rules]

    def fields(self, path, schema, level):
        """A table of the members, then a section for each member that has members."""
        members = schema.get("properties", {})
        self.lines += ["", "| field | type | description |", "|---|---|---|"]
        further = []
        for name, member in members.items():
            here = f"{path}.{name}" if path else name
            description = member.get("description", "")
            if not description and name not in WITHOUT_DESCRIPTION:
                self.missing.append(f"{self.kind}: {here}")
            notes = notes_of(member, name in schema.get("required", []))
            text = cell(description) + (f" ({'; '.join(cell(note) for note in notes)})" if notes else "")
            anchor = here.replace(".", "-").replace("[]", "").lower()
            self.lines.append(f"| []{{#{anchor}}}`{name}` | {type_of(member)} | {text} |")
            inner, inner_path = member, here
            while inner.get("type") == "array" or isinstance(inner.get("additionalProperties"), dict):
                inner = inner["items"] if inner.get("type") == "array" else inner["additionalProperties"]
                inner_path += "[]"
            if inner.get("properties"):
                further.append((inner_path, inner))
        self.rules(schema)
        for inner_path, inner in further:
            self.lines += ["", f"{'#' * min(level, 4)} {inner_path}"]
            self.fields(inner_path, inner, level + 1)


def page_of(crd):
    spec = crd["spec"]
    names = spec["names"]
    page = Page(names["kind"])
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        page.lines += [f"# {names['kind']}", "", cell(schema.get("description", "")), "",
                       f"`apiVersion: {spec['group']}/{version['name']}`; in `kubectl`: `{names['plural']}`"
                       + "".join(f", `{short}`" for short in names.get("shortNames", [])) + "."]
        page.fields("", schema, 2)
    return names["plural"], page


def main(crds, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    missing, pages = [], []
    for file in sorted(pathlib.Path(crds).glob("**/*.yaml")):
        plural, page = page_of(yaml.safe_load(file.read_text(encoding="utf-8")))
        (folder / f"{plural}.md").write_text("\n".join(page.lines) + "\n", encoding="utf-8")
        missing += page.missing
        pages.append(plural)
    listed = "\n".join(pages)
    (folder / "index.md").write_text(
        "# API\n\nThe fields of all kinds, generated from `crds/`. `kubectl explain` shows the same texts.\n\n"
        f"```{{toctree}}\n{listed}\n```\n", encoding="utf-8")
    for field in missing:
        print(f"api: no description: {field}", file=sys.stderr)
    return 1 if missing or not pages else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
