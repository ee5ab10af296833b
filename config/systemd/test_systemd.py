#!/usr/bin/env python3
"""Tests of the units of systemd and of the backup that their timer starts."""

import datetime
import os
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "../../build/bin/propeller-standalone")
# In tenths, as systemd-analyze takes it.
MAX_EXPOSURE = 20


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
class Units(unittest.TestCase):
    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)

    def test_services_are_hardened(self):
        for name in "propeller-standalone.service", "propeller-backup.service":
            said = self.analyze("security", "--offline=true", f"--threshold={MAX_EXPOSURE}", f"{HERE}/{name}")
            self.assertEqual(0, said.returncode, said.stdout + said.stderr)

    def test_units_have_no_unknown_setting(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in "propeller-standalone.service", "propeller-backup.service", "propeller-backup.timer":
                with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                    file.write(re.sub("=/usr/(bin|lib/propeller)/[a-z.-]+", "=/bin/true", read(name)))
                said = self.analyze("verify", "--man=no", f"{folder}/{name}")
                self.assertEqual("", "\n".join(line for line in said.stderr.splitlines() if "propeller" in line))


class Settings(unittest.TestCase):
    @unittest.skipUnless(os.path.exists(PROGRAM), "the programs are not built")
    def test_variables_are_flags(self):
        flags = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        flags += subprocess.run([PROGRAM.replace("standalone", "controller"), "--help"], capture_output=True, text=True,
                                check=True).stdout
        names = re.findall(r"PROPELLER_([A-Z_]+)=", read("propeller-standalone.default") + read("propeller-standalone.service"))
        self.assertGreater(len(names), 4)
        for name in names:
            self.assertIn(f"--{name.lower().replace('_', '-')} ", flags)


class Backup(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder, self.program = place.name + "/copies", place.name + "/propeller-standalone"
        os.mkdir(self.folder)
        self.write_program("#!/bin/sh\necho store >\"$3\"\n")

    def write_program(self, text):
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.program, 0o755)

    def run_backup(self):
        path = f"{os.path.dirname(self.program)}:{os.environ['PATH']}"
        return subprocess.run([f"{HERE}/propeller-backup.sh", self.folder], env={"PATH": path}, check=False).returncode

    def days(self, count):
        """The names of the copies of the last days, the oldest first."""
        today = datetime.datetime.now(datetime.timezone.utc).date()
        return [f"propeller-{today - datetime.timedelta(days=day)}.db" for day in range(count - 1, -1, -1)]

    def make(self, names):
        for name in names:
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write("old")

    def test_seven_newest_copies_are_kept_and_other_files_too(self):
        self.make([*self.days(10)[:-1], "notes.db"])
        self.assertEqual(0, self.run_backup())
        self.assertEqual(sorted([*self.days(7), "notes.db"]), sorted(os.listdir(self.folder)))

    def test_rest_of_a_copy_that_was_killed_is_removed(self):
        self.make(["propeller-2026-01-02.db.new-a1B2c3", "propeller-2026-01-02.db.new-a1B2c3-journal", "notes.db.new-a1B2c3"])
        self.assertEqual(0, self.run_backup())
        self.assertEqual(sorted([*self.days(1), "notes.db.new-a1B2c3"]), sorted(os.listdir(self.folder)))

    def test_second_run_of_a_day_makes_no_copy(self):
        self.assertEqual(0, self.run_backup())
        self.write_program("#!/bin/sh\nexit 1\n")
        self.assertEqual(0, self.run_backup())
        self.assertEqual(self.days(1), os.listdir(self.folder))

    def test_failed_backup_removes_no_copy(self):
        self.make(self.days(10)[:-1])
        self.write_program("#!/bin/sh\nexit 1\n")
        self.assertNotEqual(0, self.run_backup())
        self.assertEqual(9, len(os.listdir(self.folder)))


if __name__ == "__main__":
    unittest.main()
