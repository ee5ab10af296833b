#!/usr/bin/env python3
"""documents.py DOCUMENTS FILE: writes a page of Markdown about the JSON documents of kubectl propeller
(plugin/documents.yaml)."""

import pathlib
import sys

import yaml

TYPES = {"texts": "list of texts"}


def rows(schema, prefix=""):
    for name, member in schema.items():
        path, note = prefix + name.rstrip("?"), " May be absent." if name.endswith("?") else ""
        if isinstance(member, str):
            kind, text = member.split(", ", 1)
            yield f"| `{path}` | {TYPES.get(kind, kind)} | {text}{note} |"
        elif isinstance(member, list):
            yield f"| `{path}` | list | Rows with these members.{note} |"
            yield from rows(member[0], f"{path}[].")
        else:
            yield f"| `{path}` | object | These members.{note} |"
            yield from rows(member, f"{path}.")


def main(source, file):
    documents = yaml.safe_load(pathlib.Path(source).read_text(encoding="utf-8"))
    lines = ["# Output of kubectl propeller", "",
             "With `-o json` and `-o yaml` each command prints one document. Its `apiVersion` is "
             "`cli.propeller.abstractmachines.fr/v1alpha1`. Tables show a part of the same document. "
             "`-o name` prints the member `object` of each row.", "",
             "| exit status | meaning |", "|---|---|", "| 0 | done |",
             "| 1 | the answer is no: it failed, or there are findings |",
             "| 2 | wrong use: an argument, a flag, or a file that one names |",
             "| 3 | the API server refused or did not answer |", "| 124 | the time of `--timeout` is over |",
             "| 130 and others above 128 | a signal ended the command |"]
    for name, row in documents.items():
        kinds = ", ".join(f"`{kind}`" for kind in row.get("kinds", [name]))
        lines += ["", f"## {row['command']}", "", f"Kind: {kinds}.", "", "| member | type | meaning |", "|---|---|---|",
                  *rows(row["members"])]
    path = pathlib.Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
