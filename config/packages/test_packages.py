#!/usr/bin/env python3
"""Tests of the Debian packages, without building any."""

import pathlib
import re
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent

class Packages(unittest.TestCase):
    def test_each_program_is_in_one_package_with_completions_and_manual_page(self):
        text = "".join(path.read_text(encoding="utf-8") for pattern in ("*.install", "*.manpages")
                       for path in sorted((TOP / "debian").glob(pattern)))
        programs = re.findall(r"^bin/(\S+)", text, re.M)
        self.assertEqual(len(programs), len(set(programs)))
        self.assertEqual({"propeller-controller", "propeller-webhook", "propeller-certgen", "propeller-standalone",
                          "kubectl-propeller", "kubectl_complete-propeller"}, set(programs))
        for name in set(programs) - {"kubectl_complete-propeller"}:
            for file in f"completions/{name} ", f"completions/_{name} ", f"completions/{name}.fish ":
                self.assertIn(file, text)
            self.assertRegex(text, rf"man/{name}\.[18]\n")


if __name__ == "__main__":
    unittest.main()
