#!/usr/bin/env python3
"""Tests of what makes packages and releases, without building any; config/packages/install-test.sh has the rest."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE))

import provenance
import schemas
import yaml


class Schemas(unittest.TestCase):
    def setUp(self):
        self.schemas = {}
        for path in TOP.glob("crds/**/*.yaml"):
            for crd in yaml.safe_load_all(path.read_text(encoding="utf-8")):
                for _, schema in schemas.schemas_of(crd):
                    self.schemas[schema["properties"]["kind"]["enum"][0]] = schema

    def unknown(self, schema, value, path):
        """Paths of fields that the schema refuses."""
        if isinstance(value, list):
            return [found for item in value for found in self.unknown(schema.get("items", {}), item, path)]
        if not isinstance(value, dict) or schema.get("additionalProperties", True) is not False:
            return []
        found = []
        for name, inner in value.items():
            known = schema["properties"].get(name)
            found += [f"{path}.{name}"] if known is None else self.unknown(known, inner, f"{path}.{name}")
        return found

    def test_samples_have_known_fields_only(self):
        seen = 0
        for path in TOP.glob("config/samples/*.yaml"):
            for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
                if document and document["kind"] in self.schemas:
                    seen += 1
                    self.assertEqual([], self.unknown(self.schemas[document["kind"]], document, document["kind"]), path)
        self.assertGreater(seen, 10)

    def test_misspelt_field_is_a_mistake(self):
        task = {"apiVersion": "x", "kind": "Task", "spec": {"imageURL": "x"}}
        self.assertEqual(["Task.spec.imageURL"], self.unknown(self.schemas["Task"], task, "Task"))

    def test_extensions_are_converted(self):
        said = schemas.converted({"type": "object", "properties": {
            "open": {"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": True},
            "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "none": {"type": "string", "nullable": True}}})
        self.assertEqual({"type": "object", "additionalProperties": False, "properties": {
            "open": {"type": "object", "properties": {}},
            "port": {"type": ["integer", "string"], "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "none": {"type": ["string", "null"]}}}, said)


class Packages(unittest.TestCase):
    def test_each_program_is_in_one_package_with_completions_and_manual_page(self):
        text = "".join(path.read_text(encoding="utf-8") for pattern in ("*.install", "*.manpages")
                       for path in sorted((TOP / "debian").glob(pattern)))
        programs = re.findall(r"^bin/(\S+)", text, re.M)
        self.assertEqual(len(programs), len(set(programs)))
        self.assertEqual({"propeller-controller", "propeller-webhook", "propeller-certgen", "propeller-standalone", "propeller-graph",
                          "kubectl-propeller", "kubectl_complete-propeller"}, set(programs))
        for name in set(programs) - {"kubectl_complete-propeller"}:
            for file in f"completions/{name} ", f"completions/_{name} ", f"completions/{name}.fish ":
                self.assertIn(file, text)
            self.assertRegex(text, rf"man/{name}\.[18]\n")


class Provenance(unittest.TestCase):
    def test_subjects_are_all_files_and_the_image(self):
        os.environ["IMAGE"] = "registry.example.com:5000/propeller@sha256:" + "7" * 64
        self.addCleanup(os.environ.pop, "IMAGE")
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as sums:
            sums.write("5" * 64 + "  install.yaml\n")
            sums.flush()
            self.assertEqual([("install.yaml", "5" * 64), ("registry.example.com:5000/propeller", "7" * 64)],
                             [(one["name"], one["digest"]["sha256"]) for one in provenance.subjects(sums.name)])


class Release(unittest.TestCase):
    def check(self, version, revision="0123abc"):
        return subprocess.run([f"{HERE}/release.sh", "check"], env={**os.environ, "VERSION": version, "REVISION": revision},
                              capture_output=True, text=True, check=False)

    def test_version_with_an_entry_is_accepted(self):
        self.assertEqual(0, self.check("0.1.0").returncode)

    def test_version_without_an_entry_is_refused(self):
        said = self.check("99.0.0")
        self.assertEqual(1, said.returncode)
        self.assertIn("CHANGELOG.md has no entry '## 99.0.0", said.stderr)

    def test_sources_that_differ_from_their_commit_are_refused(self):
        said = self.check("0.1.0", "0123abc-dirty")
        self.assertEqual(1, said.returncode)
        self.assertIn("the sources differ from the commit", said.stderr)

    def test_other_versions_are_refused(self):
        for version in "", "v0.1.0", "0.1", "0.1.0-12-g1234567-dirty x", "0.1.0/..":
            self.assertIn("must be one of Semantic Versioning", self.check(version).stderr, version)


if __name__ == "__main__":
    unittest.main()
