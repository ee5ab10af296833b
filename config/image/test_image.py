#!/usr/bin/env python3
"""Tests of what makes the image, without programs to put into it; e2e/cases/46-image.sh has the rest."""

import argparse
import io
import json
import os
import shlex
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import build
import index
import oci
import sbom


class Folder:
    """A folder of small files for the time of a test."""

    def __init__(self, names):
        self.place = tempfile.TemporaryDirectory()
        self.path = self.place.name
        for name in names:
            path = os.path.join(self.path, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(name)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        self.place.cleanup()


class Layers(unittest.TestCase):
    NAMES = ["b/two", "a/one", "c"]

    def test_the_same_files_give_the_same_bytes_whoever_made_them_when_and_in_which_order(self):
        with Folder(self.NAMES) as first, Folder(reversed(self.NAMES)) as second:
            os.utime(os.path.join(second, "c"), (1, 1))
            os.chmod(os.path.join(second, "c"), 0o600)
            self.assertEqual(oci.layer_of(first), oci.layer_of(second))

    def test_two_names_of_one_file_are_two_files(self):
        with Folder(["a/one"]) as first, Folder(["a/one"]) as second:
            os.link(os.path.join(first, "a/one"), os.path.join(first, "b"))
            with open(os.path.join(second, "b"), "w", encoding="ascii") as file:
                file.write("a/one")
            self.assertEqual(oci.layer_of(first), oci.layer_of(second))

    def test_a_program_stays_one_and_a_link_stays_a_link(self):
        with Folder(["run"]) as folder:
            os.chmod(os.path.join(folder, "run"), 0o4700)
            os.symlink("run", os.path.join(folder, "walk"))
            with tarfile.open(fileobj=io.BytesIO(oci.layer_of(folder))) as tar:
                self.assertEqual(0o755, tar.getmember("run").mode)
                self.assertEqual("run", tar.getmember("walk").linkname)

    def test_a_packed_layer_tells_no_time(self):
        self.assertEqual(bytes(4), oci.compress(b"layer")[4:8])


class Names(unittest.TestCase):
    def test_names_with_and_without_a_host_are_taken(self):
        for name in "propeller:v1", "localhost/propeller:1.0-3-gabc", "example.com:5000/team/propeller:latest":
            self.assertTrue(build.NAME.fullmatch(name), name)

    def test_names_without_a_tag_and_with_capitals_are_refused(self):
        for name in "propeller", "localhost/Propeller:v1", "propeller:", "propeller:-v1", "a b:c":
            self.assertFalse(build.NAME.fullmatch(name), name)


class Index(unittest.TestCase):
    def archive(self, architecture, name="localhost/a:1"):
        """The files of an archive of an image without files."""
        with Folder([]) as folder, tempfile.TemporaryDirectory() as output:
            image = oci.Image(name, [oci.layer_of(folder)], {"Labels": {"of": architecture}})
            image.write(output + "/a.tar")
            files = index.read(output + "/a.tar")
        about = json.loads(files["index.json"])
        about["manifests"][0]["platform"]["architecture"] = architecture
        return {**files, "index.json": oci.encode(about)}

    def test_index_has_the_images_of_all_architectures(self):
        files, digest = index.combine([self.archive("arm64"), self.archive("amd64")])
        (top,) = json.loads(files["index.json"])["manifests"]
        self.assertEqual(digest, top["digest"])
        inner = json.loads(files["blobs/" + digest.replace(":", "/")])
        self.assertEqual(["amd64", "arm64"], [entry["platform"]["architecture"] for entry in inner["manifests"]])
        for entry in inner["manifests"]:
            self.assertEqual(entry["digest"], oci.digest(files["blobs/" + entry["digest"].replace(":", "/")]))
        self.assertNotIn("manifest.json", files)

    def test_order_of_the_archives_does_not_matter(self):
        one, other = self.archive("arm64"), self.archive("amd64")
        self.assertEqual(index.combine([one, other]), index.combine([other, one]))

    def test_same_architecture_twice_and_other_names_are_refused(self):
        for archives in ([self.archive("arm64")] * 2, [self.archive("arm64"), self.archive("amd64", "localhost/b:1")]):
            with self.assertRaises(SystemExit):
                index.combine(archives)


class Bill(unittest.TestCase):
    def test_names_that_differ_in_a_sign_have_ids_of_their_own(self):
        self.assertNotEqual(sbom.spdx_id("file", "/Etc/GMT+1"), sbom.spdx_id("file", "/Etc/GMT-1"))

    def test_the_same_contents_give_the_same_document(self):
        with Folder(["a"]) as folder:
            def document():
                one = sbom.Document("image", "1", "2026-01-01T00:00:00Z")
                files = [sbom.file_of(folder, "/a")]
                one.add(sbom.package("p", "1", files), files)
                return one.value()
            self.assertEqual(document(), document())


class Containerfile(unittest.TestCase):
    """Nothing here builds it: it is held against what `make image` makes."""

    TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

    def setUp(self):
        with open(os.path.join(self.TOP, "config/image/Containerfile"), encoding="utf-8") as file:
            text = file.read().replace("\\\n", " ")
        self.lines = [line.split(None, 1) for line in text.splitlines() if line and line[0] != "#"]
        last = max(number for number, line in enumerate(self.lines) if line[0] == "FROM")
        self.first, self.last = self.lines[:last], self.lines[last:]

    def values(self, stage, word):
        return [rest for first, rest in stage if first == word]

    def test_its_image_runs_as_that_of_make_image_does(self):
        wanted = build.config({})
        self.assertEqual([wanted["User"]], self.values(self.last, "USER"))
        self.assertEqual(wanted["Env"], self.values(self.last, "ENV"))
        self.assertEqual([wanted["Entrypoint"]], [json.loads(value) for value in self.values(self.last, "ENTRYPOINT")])
        self.assertEqual(["scratch"], self.values(self.last, "FROM"))
        self.assertEqual(["--from=build /image /"], self.values(self.last, "COPY"))

    def test_its_labels_are_those_of_make_image_but_for_the_bill_of_materials(self):
        args = argparse.Namespace(version="${VERSION}", revision="${REVISION}")
        wanted = build.labels(args, "${CREATED}", b"")
        del wanted["propeller.abstractmachines.fr/sbom"]
        (label,) = self.values(self.last, "LABEL")
        self.assertEqual(wanted, dict(part.split("=", 1) for part in shlex.split(label)))

    def test_what_it_copies_is_there_and_what_it_makes_is_a_target(self):
        for value in self.values(self.first, "COPY"):
            for name in value.split()[:-1]:
                self.assertTrue(os.path.exists(os.path.join(self.TOP, name)), name)
        (make,) = [value for value in self.values(self.first, "RUN") if value.startswith("make")]
        with open(os.path.join(self.TOP, "config/config.mk"), encoding="utf-8") as file:
            self.assertIn("\n" + make.split()[-1] + ":", file.read())
        self.assertIn("ROOT_OUT=/image", make)


if __name__ == "__main__":
    unittest.main()
